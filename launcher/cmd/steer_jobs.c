/* SPDX-License-Identifier: Apache-2.0 */
/* steer_jobs.c - see steer_jobs.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/steer_jobs.h"
#include "launcher/job/outcome.h"

static void
steer_jobs_add(struct steer_jobs *l, const struct which *job)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->job[i].id, job->id) == 0 &&
			strcmp(l->job[i].dir, job->dir) == 0)
			return;
	l->job = xrealloc(l->job, (l->count + 1) * sizeof(*l->job));
	l->job[l->count++] = *job;
}

static bool
steer_jobs_add_running(void *ctx, const struct which *job)
{
	if (job->running)
		steer_jobs_add(ctx, job);
	return true;
}

/* A job that is not found keeps its place, so its exit status has one, too. */
static void
steer_jobs_name(struct steer_jobs *l, const char *name)
{
	struct which job = { 0 };
	struct xr_error err = { 0 };

	if (which_job(name, WHICH_RUNNING, &job, &err) != XR_OK) {
		say_error(&err);
		job = (struct which){ 0 };
	}
	steer_jobs_add(l, &job);
}

enum xr_status
steer_jobs_find(struct steer_jobs *l, const struct verb_args *args, int from,
	bool all, struct xr_error *err)
{
	*l = (struct steer_jobs){ .verb = l->verb };
	if (all && args->count > from)
		return fail(err, XR_E_INVAL,
			"%s: --all takes no job\txrun %s --all", l->verb,
			l->verb);
	if (all)
		which_each(steer_jobs_add_running, l);
	else if (args->count <= from)
		steer_jobs_name(l, NULL);
	for (int i = from; i < args->count; i++)
		steer_jobs_name(l, args->operand[i]);
	return XR_OK;
}

void
steer_jobs_free(struct steer_jobs *l)
{
	free(l->job);
	*l = (struct steer_jobs){ 0 };
}

static int
steer_jobs_call(struct which *job, steer_jobs_fn *fn, void *ctx)
{
	return job->id[0] == '\0' ? EXIT_XRUN : fn(job, ctx);
}

static int
steer_jobs_reap(pid_t pid)
{
	int how;

	while (waitpid(pid, &how, 0) == -1)
		if (errno != EINTR)
			return EXIT_XRUN;
	return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static int
steer_jobs_together(const struct steer_jobs *l, steer_jobs_fn *fn, void *ctx)
{
	pid_t *pid = xcalloc(l->count, sizeof(*pid));
	int first = 0, status;

	for (size_t i = 0; i < l->count; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(steer_jobs_call(&l->job[i], fn, ctx));
	}
	for (size_t i = 0; i < l->count; i++) {
		status = pid[i] == -1 ? steer_jobs_call(&l->job[i], fn, ctx) :
					steer_jobs_reap(pid[i]);
		first = first != 0 ? first : status;
	}
	free(pid);
	return first;
}

int
steer_jobs_each(const struct steer_jobs *l, bool together, steer_jobs_fn *fn,
	void *ctx)
{
	int first = 0, status;

	if (together && l->count > 1)
		return steer_jobs_together(l, fn, ctx);
	for (size_t i = 0; i < l->count; i++) {
		status = steer_jobs_call(&l->job[i], fn, ctx);
		first = first != 0 ? first : status;
	}
	return first;
}
