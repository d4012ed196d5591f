/* SPDX-License-Identifier: Apache-2.0 */
/*
 * again.h - does a job that failed begin again, and when? Pure.
 *
 * struct again is what outlives an attempt: it stands in the page that keeper
 * and supervisors share. A failure is counted by --restarts until a rank comes
 * further than any did before, or --restart-window is over: so a job that
 * fails once a day goes on for ever, and one that cannot work gives up soon.
 * The first restart is immediate, later ones come after a pause that doubles; and
 * however far an attempt came, a second lies between two failures at least.
 */
#ifndef LAUNCHER_JOB_AGAIN_H
#define LAUNCHER_JOB_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#define AGAIN_MOST 1000 /* restarts that can be asked for */
#define AGAIN_PAST 32   /* attempts that are remembered */

/* One attempt that is over. */
struct again_past {
	uint32_t number;
	int32_t exit_status;
	uint32_t culprit; /* number of the rank; UINT32_MAX: none */
	char reason[16];
	int64_t begun_wall, ended_wall;
};

struct again {
	/* Of the end of this attempt: */
	int32_t due;      /* there is a next one */
	int32_t spent;    /* there would be, but for --restarts */
	int64_t pause_ns; /* before its first rank */
	/* Between two supervisors: */
	int32_t told; /* a signal that tells to end; 0 */
	/* Of all: */
	uint32_t restarts; /* of any kind, so far */
	uint32_t failures; /* after which it began again */
	int64_t last_ns;   /* when the last of them was */
	uint32_t counted;  /* of them, those that stand in @failed_ns */
	int64_t failed_ns[AGAIN_MOST];
	int64_t best;     /* the highest step that a rank told; -1 */
	int64_t begun_ns; /* clock_now() at the first attempt; for --timeout */
	uint64_t events;  /* told so far */
	uint32_t past_count;
	struct again_past past[AGAIN_PAST]; /* a ring, by past_count */
};

struct again_rule {
	uint32_t most;     /* --restarts */
	int64_t window_ns; /* --restart-window; 0: the whole job */
};

/*
 * again_judge() - the job failed at @now, having come to @best, which is -1 if
 * nobody told a step.
 *
 * Sets due or spent, and pause_ns. @random spreads the pause by a tenth.
 */
void again_judge(struct again *a, const struct again_rule *rule, int64_t now,
	int64_t best, uint32_t random);

/* again_asked() - somebody wants it: at once, and it is not counted. */
void again_asked(struct again *a);

/* again_is_due() - was it decided that another attempt follows? */
bool again_is_due(const struct again *a);

/* again_cancel() - it was, and yet none does. */
void again_cancel(struct again *a);

/* again_note() - @past is over. */
void again_note(struct again *a, const struct again_past *past);

/* again_each() - attempts that are remembered, the oldest first: @i from 0 on;
 * NULL: no more. */
const struct again_past *again_each(const struct again *a, uint32_t i);

#endif /* LAUNCHER_JOB_AGAIN_H */
