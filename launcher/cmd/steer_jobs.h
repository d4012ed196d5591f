/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer_jobs.h - the jobs that one command is for: one, several, or all.
 */
#ifndef LAUNCHER_CMD_STEER_JOBS_H
#define LAUNCHER_CMD_STEER_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/cmd/verb_args.h"
#include "launcher/cmd/which.h"

struct steer_jobs {
	const char *verb;  /* for messages; set by the caller */
	struct which *job; /* one that was not found has no id */
	size_t count;
};

/* For option tables: every job that runs. */
#define STEER_JOBS_ALL(field) \
	{ .name = "all", \
		.type = OPT_FLAG, \
		VERB_ROW, \
		AT(field), \
		.help = "every job that runs" }

/*
 * steer_jobs_find() - the jobs that the operands of @args from @from on name, each
 * once; the only job that runs if there are none; with @all every job that runs.
 * If a job is not found, the function prints an error and continues with the next.
 *
 * Returns  XR_OK; the caller calls steer_jobs_free(). XR_E_INVAL if @all and jobs are
 *          both given; @err describes it
 */
enum xr_status steer_jobs_find(struct steer_jobs *jobs,
	const struct verb_args *args, int from, bool all, struct xr_error *err);
void steer_jobs_free(struct steer_jobs *jobs);

/* Returns an exit status. */
typedef int steer_jobs_fn(struct which *job, void *ctx);

/*
 * steer_jobs_each() - calls @fn for each job, in their order. A job that was not
 * found counts as exit status 125.
 *
 * @together: several jobs at the same time, each in a process of its own
 * Returns the first exit status that is not 0, in the order of jobs, or 0
 */
int steer_jobs_each(const struct steer_jobs *jobs, bool together,
	steer_jobs_fn *fn, void *ctx);

#endif /* LAUNCHER_CMD_STEER_JOBS_H */
