/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - see events.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/status.h"
#include "base/utf8.h"
#include "launcher/cmd/attempt.h"
#include "launcher/cmd/events.h"
#include "launcher/cmd/events_put.h"
#include "launcher/cmd/lookout.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/job/outcome.h"

#define CHUNK (64 * 1024)

struct settings {
	bool follow, json;
};

#define AT(field) .offset = offsetof(struct settings, field)

const struct opt events_options[] = {
	{ .name = "follow",
		.letter = 'f',
		VERB_ROW,
		.type = OPT_FLAG,
		AT(follow),
		.help = "go on with what happens, until the job is over" },
	{ .name = "json",
		VERB_ROW,
		.type = OPT_FLAG,
		AT(json),
		.help = "as they stand in the file: a JSON object each" },
	{ 0 },
};

/* The file as it grows. */
struct events {
	struct settings s;
	struct attempt job; /* its attempts are all in one file */
	int fd;             /* -1: it is not there, yet */
	struct buf in, out;
	bool headed;
	int sys; /* why nothing can be written any more, or 0 */
};

static void
open_file(struct events *e)
{
	char path[PATH_MAX + 16];
	struct stat st;

	if (e->fd != -1)
		return;
	snprintf(path, sizeof(path), "%s/events.jsonl", e->job.job.dir);
	e->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (e->fd != -1 && (fstat(e->fd, &st) == -1 || !S_ISREG(st.st_mode))) {
		fd_close(e->fd);
		e->fd = -1;
	}
}

static void
put_line(struct events *e, struct span line)
{
	if (e->s.json) {
		buf_put(&e->out, line.at, line.len);
		buf_put_char(&e->out, '\n');
		return;
	}
	if (!e->headed)
		events_put_head(&e->out);
	e->headed = true;
	events_put_row(&e->out, line);
}

/* Whole lines of what is read; the rest waits for its newline. */
static void
put_lines(struct events *e)
{
	const char *at = e->in.data, *end = at + e->in.len, *nl;

	while ((nl = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		put_line(e, (struct span){ at, (size_t)(nl - at) });
		at = nl + 1;
	}
	e->in.len = (size_t)(end - at);
	memmove(e->in.data, at, e->in.len);
}

/* Names and words in them are anybody's. */
static void
flush(struct events *e)
{
	struct buf *out = &e->out;

	if (out->len > 0 && out->bad == XR_OK && isatty(STDOUT_FILENO))
		utf8_tame(out->data, utf8_narrow(STDOUT_FILENO));
	if (out->bad != XR_OK || e->in.bad != XR_OK)
		e->sys = ENOMEM;
	else if (fd_write_all(STDOUT_FILENO, buf_text(out), out->len) == -1)
		e->sys = errno;
	buf_clear(out);
}

/* What there is now. */
static void
put_all(struct events *e)
{
	ssize_t n = 1;
	char *room;

	open_file(e);
	while (e->fd != -1 && n > 0 && e->sys == 0) {
		room = buf_room(&e->in, CHUNK);
		n = room == NULL ? 0 : fd_read_some(e->fd, room, CHUNK);
		if (room != NULL)
			e->in.len -= CHUNK - (n > 0 ? (size_t)n : 0);
		if (n > 0)
			put_lines(e);
		flush(e);
	}
}

static void
ignore(void *ctx, int folder, const char *name)
{
	(void)ctx;
	(void)folder;
	(void)name;
}

/* Until nobody has the lock: the next attempt of a job goes on in the file. */
static enum xr_status
follow(struct events *e, struct xr_error *err)
{
	const char *folder = e->job.job.dir;
	enum lookout_news news = LOOKOUT_OVER;
	struct lookout lookout;
	bool runs = true;

	if (!lookout_open(&lookout))
		return fail(err, XR_E_SYS, "events: inotify: %s",
			strerror(errno));
	lookout_folder(&lookout, folder);
	while (runs && e->sys == 0) {
		if (news == LOOKOUT_OVER)
			lookout_lock(&lookout, folder);
		runs = attempt_job_runs(&e->job);
		put_all(e);
		if (runs && e->sys == 0)
			news = lookout_wait(&lookout, true, ignore, NULL);
		if (news == LOOKOUT_CLOSED)
			e->sys = EPIPE;
	}
	lookout_close(&lookout);
	return XR_OK;
}

int
cmd_events(int argc, char **argv)
{
	struct events e = { .fd = -1 };
	struct verb_args args;
	struct xr_error err = { 0 };
	enum xr_status status;

	(void)argc;
	if (!verb_args_read(&args, events_options, &e.s, 1, argv))
		return EXIT_XRUN;
	status = attempt_find_job(args.count > 0 ? args.operand[0] : NULL,
		"events", &e.job, &err);
	if (status == XR_OK && e.s.follow)
		status = follow(&e, &err);
	else if (status == XR_OK)
		put_all(&e);
	fd_close(e.fd);
	buf_fini(&e.in);
	buf_fini(&e.out);
	return status == XR_OK ? say_unwritten(e.sys) : say_error(&err);
}
