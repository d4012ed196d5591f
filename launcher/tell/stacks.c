/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/bus.h"
#include "launcher/tell/stacks.h"
#include "launcher/tell/who.h"

#define FILE_NAME   "stacks.txt"
#define SUMMARY_MAX (64 << 10)
#define A_TURN      (16 << 10)

struct stacks_run {
	struct job *job;
	struct aide *aide; /* NULL: it is dead, or nobody hears of it */
	struct watch *said;
	struct timer *cancelled;
	stacks_fn *fn;
	const char *why;
	int out;
	uint32_t ranks;
	struct buf summary;
};

extern char **environ;

/* --- what it is told and tells -------------------------------------------- */

/* A line a living rank, "RANK PID", in a file without a name; -1. */
static int
list_ranks(const struct job *job, uint32_t *count)
{
	int fd = memfd_create("xrun-ranks", MFD_CLOEXEC);
	struct buf text = { 0 };

	*count = 0;
	for (uint32_t i = 0; i < job_size(job); i++) {
		if (job->rank[i].pidfd == -1)
			continue;
		buf_fmt(&text, "%u %d\n", job_rank(job, i),
			(int)job->rank[i].pid);
		++*count;
	}
	if (fd != -1 &&
		(text.bad != XR_OK || *count == 0 ||
			fd_write_all(fd, text.data, text.len) == -1 ||
			lseek(fd, 0, SEEK_SET) == -1)) {
		fd_close(fd);
		fd = -1;
	}
	buf_fini(&text);
	return fd;
}

/* The rest of it is in the file. */
static void
on_said(int fd, void *ctx)
{
	struct stacks_run *r = ctx;
	char some[A_TURN];
	ssize_t n = read(fd, some, sizeof(some));

	if (n > 0 && r->summary.len + (size_t)n <= SUMMARY_MAX)
		buf_put(&r->summary, some, (size_t)n);
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		watch_pause(r->said);
}

static void
read_rest(struct stacks_run *r)
{
	char some[A_TURN];
	ssize_t n;

	while ((n = read(r->out, some, sizeof(some))) > 0)
		if (r->summary.len + (size_t)n <= SUMMARY_MAX)
			buf_put(&r->summary, some, (size_t)n);
}

/* --- its end -------------------------------------------------------------- */

static void
forget(struct stacks_run *r)
{
	if (r == NULL)
		return;
	r->job->sup->stacks = NULL;
	aide_end(r->aide);
	watch_close(r->said);
	timer_close(r->cancelled);
	fd_close(r->out);
	buf_fini(&r->summary);
	free(r);
}

/* Two columns in, as all that belongs to a line of xrun's. */
static void
put_indented(struct buf *out, const char *text)
{
	struct span rest = span_of(text), line;

	while (rest.at != NULL) {
		line = span_next(&rest, '\n');
		if (line.len > 0)
			buf_fmt(out, "  %.*s\n", (int)line.len, line.at);
	}
}

static void
say(const struct stacks_run *r, bool taken)
{
	struct job *job = r->job;
	struct buf out = { 0 };
	char path[PATH_MAX];

	if (!taken) {
		buf_fmt(&out, "xrun: stacks of the ranks could not be taken\n");
	} else {
		buf_fmt(&out, "xrun: stacks of %u %s:", r->ranks,
			who_plural(r->ranks, "rank", "ranks"));
		if (stacks_path(job) != NULL)
			buf_fmt(&out, " %s",
				state_tilde(stacks_path(job), path,
					sizeof(path)));
		buf_put_char(&out, '\n');
	}
	put_indented(&out, buf_text(&r->summary));
	if (out.bad == XR_OK)
		logs_put(job->sup->logs, buf_text(&out), out.len);
	buf_fini(&out);
}

/* The last thing that is done with it. */
static void
tell(struct stacks_run *r, bool taken)
{
	struct job *job = r->job;
	struct buf summary = r->summary;
	stacks_fn *fn = r->fn;
	r->summary = (struct buf){ 0 };
	forget(r);
	fn(job, taken, taken ? stacks_path(job) : NULL, buf_text(&summary));
	buf_fini(&summary);
}

static void
on_death(int status, bool late, void *ctx)
{
	struct stacks_run *r = ctx;
	struct job *job = r->job;
	bool taken = !late && WIFEXITED(status) && WEXITSTATUS(status) == 0;

	r->aide = NULL;
	read_rest(r);
	if (taken && job->sup->stacks_path != NULL) {
		job->sup->stacks_kept = true;
		job->page->kept = 1; /* though no rank wrote a byte */
	}
	if (taken)
		bus_tell(job->sup->bus, BUS_JOB_STACKS, 0);
	if (job->sup->phase == PHASE_RUN && !job->opt.quiet)
		say(r, taken);
	tell(r, taken);
}

static void
on_cancelled(void *ctx)
{
	tell(ctx, false);
}

void
stacks_cancel(struct job *job)
{
	struct stacks_run *r = job->sup->stacks;

	if (r == NULL)
		return;
	aide_end(r->aide);
	r->aide = NULL;
	timer_arm(r->cancelled, 0);
}

void
stacks_close(struct job *job)
{
	forget(job->sup->stacks);
	free(job->sup->stacks_path);
	job->sup->stacks_path = NULL;
}

void
stacks_put_event(struct json *j, const struct job *job)
{
	json_text(j, "why", job->sup->stacks->why);
	json_int(j, "ranks", job->sup->stacks->ranks);
	if (stacks_path(job) != NULL)
		json_text(j, "path", stacks_path(job));
}

const char *
stacks_path(const struct job *job)
{
	return job->sup->stacks_kept ? job->sup->stacks_path : NULL;
}

/* --- its beginning -------------------------------------------------------- */

/* Once a job; false if there is no memory for it. */
static bool
find_path(struct job *job)
{
	struct buf path = { 0 };

	if (job->state.attempt == NULL || job->sup->stacks_path != NULL)
		return true;
	buf_fmt(&path, "%s/" FILE_NAME, job->state.attempt);
	if (path.bad != XR_OK) {
		buf_fini(&path);
		return false;
	}
	job->sup->stacks_path = path.data;
	return true;
}

static bool
start(struct stacks_run *r, int in, int out)
{
	struct job *job = r->job;
	char *argv[] = { "xrun", "stacks", "--pids", "--title", (char *)r->why,
		job->sup->stacks_path == NULL ? NULL : "--save",
		job->sup->stacks_path, NULL };
	const struct aide_config config = {
		.path = "/proc/self/exe",
		.argv = argv,
		.envp = environ,
		.in = in,
		.out = out,
		.err = out,
		.time_ns = STACKS_PATIENCE,
		.fn = on_death,
		.ctx = r,
	};

	r->cancelled = timer_open(job->sup->loop, on_cancelled, r);
	r->said = watch_open(job->sup->loop, r->out, false, on_said, r);
	if (r->cancelled == NULL || r->said == NULL)
		return false;
	r->aide = aide_start(job, &config);
	return r->aide != NULL;
}

bool
stacks_begin(struct job *job, const char *why, stacks_fn *fn)
{
	struct stacks_run *r;
	int in, fd[2];
	bool begun;

	if (job->sup->phase != PHASE_RUN || job->stop_ns != 0 ||
		job->sup->stacks != NULL)
		return false;
	r = calloc(1, sizeof(*r));
	if (r == NULL || pipe2(fd, O_CLOEXEC) == -1) {
		free(r);
		return false;
	}
	*r = (struct stacks_run){ .job = job,
		.fn = fn,
		.why = why,
		.out = fd[0] };
	job->sup->stacks = r;
	in = list_ranks(job, &r->ranks);
	begun = in != -1 && find_path(job) &&
		fcntl(r->out, F_SETFL, O_NONBLOCK) == 0 && start(r, in, fd[1]);
	fd_close(in);
	fd_close(fd[1]);
	if (!begun)
		forget(r);
	return begun;
}
