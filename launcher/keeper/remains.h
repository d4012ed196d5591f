/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.h - what jobs left that are over: for a person who asks.
 *
 * remains_end() ends what the next job's xrun ends anyway (orphan.h,
 * ctl/place.h). remains_look() finds the same and changes nothing. It also finds
 * processes that only say that they are of a job: XRUN_JOB in an environment is
 * no proof, so xrun never ends them. Processes and files of a job
 * that runs are neither listed nor touched.
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
#include "proc/stray.h"

struct remain_process {
	pid_t pid;
	char name[17]; /* as ps(1) has it */
};

/* Of one job. */
struct remain {
	char id[STATE_ID_MAX + 1];
	bool known;    /* else its processes' word is all there is of it, and
			 * they are not ended; both may have the same id */
	bool unclosed; /* its record has no end */
	bool groups;   /* control groups of its ranks */
	bool socket;   /* the folder of its control socket */
	struct stray_job job; /* its processes; of known ones */
	uint32_t count;
	struct remain_process *process;
};

struct remains {
	struct remain *remain;
	size_t count;
};

/* remains_look() - finds them; reads all of /proc. */
void remains_look(struct remains *out);

/* remains_end() - ends and removes what remains_look() finds and is known. Look
 * again to see the result. Blocks for seconds if a process does not end. */
void remains_end(void);

/* remains_find() - that of job @id, known or not; or NULL. */
const struct remain *remains_find(const struct remains *r, const char *id,
	bool known);

void remains_fini(struct remains *r);

#endif /* LAUNCHER_KEEPER_REMAINS_H */
