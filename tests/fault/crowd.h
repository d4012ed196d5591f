/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd.h - what crowd.c and crowdkill.c tell each other, in a file that they map.
 *
 * Ranks make groups of all who live, and do things in them, until a member dies:
 * then they hear of it, and make one of those who are left. Whoever started them
 * kills one after the other, at whatever they are.
 */
#ifndef TESTS_FAULT_CROWD_H
#define TESTS_FAULT_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include <xrun/coll.h>
#include <xrun/group.h>

#define CROWD_RANKS 8
/* Of the agent: they are made as they are needed, and stay. Beside them a rank has its
 * first one, and those of two carriers at most. */
#define CROWD_POOL    4
#define CROWD_THREADS (CROWD_POOL + 3)
#define CROWD_WRONG   16
#define CROWD_SOON    INT64_C(1000000000) /* ns, in which a death is heard of */

enum crowd_state {
	CROWD_JOINS,
	CROWD_MAKES, /* groups */
	CROWD_MADE,  /* and has met nobody in them */
	CROWD_MEETS,
	CROWD_GOES,
};

struct crowd {
	/* By who starts the job. */
	uint64_t seed;
	uint32_t ranks;
	bool works; /* all kinds of operations, and groups made anew; or barriers */
	_Atomic bool over;
	_Atomic bool dead[CROWD_RANKS]; /* or will be at any moment */
	_Atomic int64_t killed_ns[CROWD_RANKS];

	/* By each rank. */
	_Atomic int pid[CROWD_RANKS];
	_Atomic uint32_t state[CROWD_RANKS];
	_Atomic uint64_t
		word[CROWD_RANKS]; /* members << 32 | entered barrier */
	_Atomic uint64_t beat[CROWD_RANKS];        /* steps */
	_Atomic uint64_t made[CROWD_RANKS];        /* pairs of groups */
	_Atomic uint64_t barriers[2][CROWD_RANKS]; /* as first member: of ranks,
						    * of names */
	_Atomic uint64_t works_done[CROWD_RANKS];
	_Atomic uint64_t heard[CROWD_RANKS];  /* errors, all of them right */
	_Atomic int64_t slowest[CROWD_RANKS]; /* ns, to hear of a death */
	_Atomic uint32_t spans[CROWD_RANKS];  /* of the arena, at the end */

	_Atomic uint32_t wrong;
	char text[CROWD_WRONG][400];
};

/* --- crowd.c ------------------------------------------------------------------ */

/* The groups of those who live. */
struct crowd_team {
	uint32_t mask;  /* of members */
	uint32_t times; /* how many of this mask before */
	uint32_t member[CROWD_RANKS], count;
	struct xr_coll *coll;
	struct xr_group *group;
};

extern struct crowd *crowd;
extern uint32_t crowd_me;

int64_t crowd_now(void);

/* crowd_wrong() - for whoever started the job. */
void crowd_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* crowd_judge() - what a call gave that began at @begun: XR_OK, or the loss of one
 * member that is dead, soon. False: it is no success. */
bool crowd_judge(const struct crowd_team *t, const char *what, int64_t begun,
	enum xr_status status, const struct xr_error *err);

/* crowd_draw() - below @most, each time another. */
uint32_t crowd_draw(uint64_t *random, uint32_t most);

/* --- crowd_work.c --------------------------------------------------------------- */

/* crowd_serve() - before the world is made: functions that others call. */
enum xr_status crowd_serve(struct xr_error *err);

/* crowd_hand_out() - once a group is made: its keys. */
bool crowd_hand_out(const struct crowd_team *t);

/* crowd_work() - one of all kinds of operations, which is the same on all for the
 * same @random; its results are looked at. False: a member is lost. */
bool crowd_work(const struct crowd_team *t, uint64_t random);

#endif /* TESTS_FAULT_CROWD_H */
