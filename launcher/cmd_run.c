/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - see cmd_run.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/check.h"
#include "launcher/cmd_run.h"
#include "launcher/job.h"
#include "launcher/keeper.h"
#include "launcher/normal.h"
#include "launcher/outcome.h"
#include "launcher/prepare.h"
#include "launcher/report.h"
#include "launcher/words.h"
#include "launcher/show.h"
#include "launcher/sup.h"

static const char *
absolute(const char *path)
{
	char *cwd, *whole;

	if (path[0] == '/')
		return path;
	cwd = getcwd(NULL, 0);
	whole = xasprintf("%s/%s", cwd == NULL ? "." : cwd, path);
	free(cwd);
	return whole;
}

/* Files are opened, or found to be writable, where xrun was started: before
 * --chdir. */
static enum xr_status
open_outputs(struct job *job, struct xr_error *err)
{
	job->events_fd = -1;
	if (job->opt.report != NULL) {
		job->opt.report = absolute(job->opt.report);
		if (report_file_check(job->opt.report, err) != XR_OK)
			return err->status;
	}
	if (job->opt.events == NULL)
		return XR_OK;
	job->events_fd = open(job->opt.events,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (job->events_fd == -1)
		return fail(err, XR_E_SYS, "--events: %s: %s", job->opt.events,
			strerror(errno));
	return XR_OK;
}

/* Does this terminal draw bars? What the locale says, in its order. */
static bool
speaks_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL;

	for (int i = 0; i < 3 && (value == NULL || value[0] == '\0'); i++)
		value = getenv(names[i]);
	return value != NULL &&
		(strcasestr(value, "utf-8") != NULL ||
			strcasestr(value, "utf8") != NULL);
}

static bool
wants_color(int mode, bool tty)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (mode != COLOR_AUTO)
		return mode == COLOR_ALWAYS;
	return tty && (no == NULL || no[0] == '\0') && term != NULL &&
		strcmp(term, "dumb") != 0;
}

static enum xr_status
compile_route(struct job *job, struct xr_error *err)
{
	bool out = isatty(STDOUT_FILENO), errs = isatty(STDERR_FILENO);
	struct route_config c = {
		.ranks = job_size(job),
		.first = job->plan.first,
		.size = job->plan.size,
		.show = job->opt.show,
		.prefix = job->opt.prefix,
		.tty = { out, errs },
		.color = { wants_color(job->opt.color, out),
			wants_color(job->opt.color, errs) },
		.utf8 = speaks_utf8(),
	};

	job->errors_are_tty = errs;
	return route_compile(&job->route, &c, err);
}

static enum xr_status
out_of_memory(struct xr_error *err)
{
	return fail(err, XR_E_NOMEM, "no memory for %s: %s", "the job",
		strerror(errno));
}

/* Everything two processes will share, and one table of ranks. */
static enum xr_status
make_shared(struct job *job, struct xr_error *err)
{
	job->page = keeper_page_new();
	job->share = raw_share_new(job_size(job), job->plan.first,
		job->state.attempt_fd);
	job->rank = calloc(job_size(job), sizeof(*job->rank));
	if (job->page == NULL || job->share == NULL || job->rank == NULL)
		return out_of_memory(err);
	for (uint32_t i = 0; i < job_size(job); i++)
		job->rank[i].pidfd = -1;
	if (job->state.attempt != NULL)
		snprintf(job->page->where, sizeof(job->page->where), "%s",
			job->state.attempt);
	return XR_OK;
}

static bool
only_asks(const struct job *job)
{
	return job->opt.dry_run || job->opt.show_env;
}

static int
answer(struct job *job, const struct prepared *p)
{
	uint32_t rank = (uint32_t)job->opt.show_env_rank;

	if (!job->opt.show_env)
		return show_plan(job, p);
	if (job->opt.show_env_rank < job->plan.first ||
		job->opt.show_env_rank >= job->plan.first + job_size(job)) {
		words_line(
			"--show-env: there is no rank %lld here, only %u to %u",
			(long long)job->opt.show_env_rank, job->plan.first,
			job->plan.first + job_size(job) - 1);
		return EXIT_XRUN;
	}
	return show_env(job, rank);
}

static enum xr_status
prepare(struct job *job, struct prepared *p, struct xr_error *err)
{
	bool logs = job->opt.logs && !only_asks(job);
	enum xr_status status;

	limit_read(&job->limits);
	status = prepare_plan(job, p, err);
	if (status == XR_OK)
		status = check_limits(&job->limits, job_size(job), err);
	if (status == XR_OK)
		status = compile_route(job, err);
	job->files_max = check_files_max(&job->limits, job_size(job));
	if (status == XR_OK)
		status = state_open(&job->state, job->opt.log_dir, logs, err);
	if (status != XR_OK)
		return status;
	status = prepare_env(job, p, err);
	if (status == XR_OK)
		status = make_shared(job, err);
	if (status != XR_OK)
		state_remove(&job->state);
	return status;
}

int
cmd_run(const struct run_options *opt, char *const *argv)
{
	struct job job = { .opt = *opt, .argv = argv };
	struct prepared p = { 0 };
	struct xr_error err = { 0 };
	struct normal normal;
	enum xr_status status;

	job.begun_ns = clock_now();
	job.begun_wall = clock_wall();
	if (normal_init(&normal) == -1) {
		words_line("/dev/null: %s", strerror(errno));
		return EXIT_XRUN;
	}
	job.hup_ignored = normal.hup_ignored;
	p.exit_status = EXIT_XRUN;
	status = open_outputs(&job, &err);
	if (status == XR_OK)
		status = prepare(&job, &p, &err);
	if (status != XR_OK) {
		words_error(&err);
		return p.exit_status;
	}
	if (only_asks(&job))
		return answer(&job, &p);
	return keeper_run(&job, supervise);
}
