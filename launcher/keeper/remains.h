/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.h - what jobs left that are over: for a person who asks.
 *
 * Ending is what the next job's xrun does anyway (orphan.h, ctl/place.h), and
 * in addition processes of jobs that were ended in order. Looking finds what
 * would be ended, with the same eyes, and changes nothing. What belongs to a
 * job that runs is neither told nor touched.
 *
 * For short-lived verbs: memory that is missing ends xrun.
 */
#ifndef LAUNCHER_KEEPER_REMAINS_H
#define LAUNCHER_KEEPER_REMAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include "launcher/state/state.h"

struct remain_process {
	pid_t pid;
	char name[17]; /* as ps(1) has it */
};

/* Of one job. */
struct remain {
	char id[STATE_ID_MAX + 1];
	bool known;     /* else its processes' word is all there is of it, and
			 * they are not ended */
	bool unclosed;  /* its record has no end */
	bool groups;    /* control groups of its ranks */
	bool socket;    /* the folder of its control socket */
	int64_t since;  /* clock_wall() when it began; of known ones */
	char *cgroup;   /* as in proc/stray.h */
	bool this_boot; /* else no process can be its */
	uint32_t count;
	struct remain_process *process;
};

struct remains {
	struct remain *remain;
	size_t count;
};

/* remains_look() - find them; a look at all of /proc. */
void remains_look(struct remains *out);

/* remains_end() - end and remove what @found has, but for what is not known.
 * Look again to see what came of it. Blocks for seconds if somebody does not
 * go. */
void remains_end(const struct remains *found);

/* remains_find() - that of job @id, or NULL. */
const struct remain *remains_find(const struct remains *r, const char *id);

void remains_fini(struct remains *r);

#endif /* LAUNCHER_KEEPER_REMAINS_H */
