/* SPDX-License-Identifier: Apache-2.0 */
/* detach.h - what the xrun that was called (-d) and its job share; see
 * sup/detach.h. */
#ifndef LAUNCHER_JOB_DETACH_H
#define LAUNCHER_JOB_DETACH_H

#include <limits.h>
#include <stdint.h>

#include <sys/types.h>

#include "launcher/state/state.h"

/* Shared by caller, keeper and supervisor. */
struct detach {
	pid_t caller;
	int32_t runs; /* all ranks were started: the caller may go */
	/* Written before that, for the caller. */
	char job[STATE_ID_MAX + 1];
	char where[PATH_MAX]; /* the attempt's folder */
	uint32_t ranks;
	/* Descriptors of keeper and supervisor. */
	int words; /* the file for standard error; -1: it is there already */
	int hold;  /* the pipe, till job.json is there */
	int death; /* pidfd of the caller; -1: no more of interest */
};

#endif /* LAUNCHER_JOB_DETACH_H */
