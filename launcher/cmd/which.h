/* SPDX-License-Identifier: Apache-2.0 */
/*
 * which.h - the job that a verb is about.
 *
 * Jobs are found by their folders. Those that run are found by their control
 * sockets and records (ctl/record.h) as well, and those that have ended by the
 * history (state/history.h), since with --no-logs and --log-dir there is no folder
 * where others are. A few characters of an id are enough if no other begins with
 * them, or none that runs.
 */
#ifndef LAUNCHER_CMD_WHICH_H
#define LAUNCHER_CMD_WHICH_H

#include <stdbool.h>
#include <limits.h>

#include "launcher/state/state.h"
#include "xrun/error.h"

struct which {
	char id[STATE_ID_MAX + 1];
	char dir[PATH_MAX]; /* its folder; "": not where folders are */
	bool running;
	bool past; /* the history tells how it ended, or its last run, if that
		    * was later than its folder's */
	bool kept; /* with past: it kept its output, and that is gone */
	char start[40]; /* when it began, as in job.json; "": read that */
};

/* Told of each job; false: enough. */
typedef bool which_fn(void *ctx, const struct which *job);
void which_each(which_fn *fn, void *ctx);

/* Which job is meant where none is named. */
enum which_none {
	WHICH_RUNNING, /* the only one that runs */
	WHICH_LATEST,  /* that, else the one that began last */
};

/*
 * which_job() - the job called @text, or whose id begins so.
 *
 * @text: NULL selects a job by @none; a line on stderr then names it
 * Returns  XR_OK; XR_E_NOTFOUND, XR_E_INVAL (several) with words in @err
 */
enum xr_status which_job(const char *text, enum which_none none,
	struct which *job, struct xr_error *err);

/* which_said() - returns job.json or the line of the history of @job; NULL if it
 * has neither. The caller deletes it. */
struct cJSON *which_said(const struct which *job);

/* which_runs() - returns true if @job still runs: by the lock of its folder, or by its
 * whole id among all jobs if it has none. Sets @job->running. */
bool which_runs(struct which *job);

#endif /* LAUNCHER_CMD_WHICH_H */
