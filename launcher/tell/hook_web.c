/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_web.c - what xrun-notify is to send; see hook.h.
 *
 * It reads a line each, "URL JSON", from a stream socket, and writes words to
 * the same. Neither waits for the other here: what it does not take is kept, up
 * to QUEUE_MAX, and then dropped and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/json.h"
#include "launcher/job/sup.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"

#define QUEUE_MAX  (256 << 10) /* bytes */
#define WORDS_MAX  10          /* lines that are said */
#define DEATHS_MAX 3

struct hook_web {
	struct aide *aide; /* NULL: it is dead */
	int fd;
	struct watch *readable, *writable;
	struct buf out, words;
	size_t sent; /* of out */
	unsigned dropped, said, deaths;
	bool last; /* nothing comes any more */
};

static void
close_line(struct hook_web *w)
{
	watch_close(w->readable);
	watch_close(w->writable);
	w->readable = w->writable = NULL;
	fd_close(w->fd);
	w->fd = -1;
}

/* What it was given and did not send is lost; the next event starts another. */
static void
on_over(int status, bool late, void *ctx)
{
	struct job *job = ctx;
	struct hook_web *w = job->hooks->sending;

	(void)late;
	w->aide = NULL;
	close_line(w);
	if (status != 0 && ++w->deaths <= DEATHS_MAX)
		hook_say(job, "xrun: --on-event: xrun-notify ended (%d)%s",
			status,
			w->deaths < DEATHS_MAX ?
				"" :
				"; web hooks are not told any more");
	buf_clear(&w->out);
	w->sent = 0;
	hook_done(job);
}

static void
on_words(int fd, void *ctx)
{
	struct job *job = ctx;
	struct hook_web *w = job->hooks->sending;
	char data[1024], *end;
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		watch_pause(w->readable);
	if (n <= 0)
		return;
	buf_put(&w->words, data, (size_t)n);
	while (w->words.len > 0 &&
		(end = memchr(w->words.data, '\n', w->words.len)) != NULL) {
		*end = '\0';
		if (w->said++ < WORDS_MAX)
			hook_say(job, "xrun: --on-event: %.300s",
				w->words.data);
		n = end + 1 - w->words.data;
		memmove(w->words.data, end + 1, w->words.len - (size_t)n);
		w->words.len -= (size_t)n;
	}
	if (w->words.len > sizeof(data) || w->words.bad != XR_OK)
		buf_clear(&w->words);
}

static void
flush(struct hook_web *w)
{
	ssize_t n = 1;

	while (w->fd != -1 && w->sent < w->out.len && n > 0) {
		n = send(w->fd, w->out.data + w->sent, w->out.len - w->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);
		w->sent += n > 0 ? (size_t)n : 0;
	}
	if (w->fd == -1)
		return;
	if (w->sent < w->out.len) {
		watch_resume(w->writable);
		return;
	}
	watch_pause(w->writable);
	buf_clear(&w->out);
	w->sent = 0;
	if (w->last)
		shutdown(w->fd, SHUT_WR);
}

static void
on_writable(int fd, void *ctx)
{
	(void)fd;
	flush(ctx);
}

static bool
start(struct job *job, struct hook_web *w)
{
	char *argv[] = { (char *)"xrun-notify", NULL }, *env[] = { NULL };
	struct aide_config config = {
		.path = job->hooks->notify,
		.argv = argv,
		.envp = env,
		.out = -1,
		.err = -1,
		.fn = on_over,
		.ctx = job,
	};
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == -1)
		return false;
	config.in = fd[1];
	w->fd = fd[0];
	w->readable = watch_open(job->sup->loop, w->fd, false, on_words, job);
	w->writable = watch_open(job->sup->loop, w->fd, true, on_writable, w);
	if (w->readable != NULL && w->writable != NULL)
		w->aide = aide_start(job, &config);
	fd_close(fd[1]);
	if (w->aide == NULL)
		close_line(w);
	return w->aide != NULL;
}

/* The event, and of which job it is where it does not say so itself. */
static void
put_body(struct buf *out, const struct job *job, enum bus_event event,
	struct span line, unsigned dropped)
{
	struct buf head = { 0 };
	char host[256];
	struct json j;

	json_init(&j, &head);
	json_open_object(&j, NULL);
	if (event != BUS_JOB_START) {
		json_text(&j, "job", job->state.id);
		json_text(&j, "host", host_name(host, sizeof(host)));
	}
	if (dropped > 0)
		json_int(&j, "dropped", dropped);
	if (head.len > 1)
		buf_put_char(&head, ',');
	buf_put(out, head.data, head.len);
	buf_put(out, line.at + 1, line.len - 1);
	buf_put_char(out, '\n');
	if (head.bad != XR_OK)
		out->bad = head.bad;
	buf_fini(&head);
}

void
hook_web_tell(struct job *job, const char *url, enum bus_event event,
	struct span line)
{
	struct hook_web *w = job->hooks->sending;
	size_t before;

	if (w == NULL) {
		w = job->hooks->sending = calloc(1, sizeof(*w));
		if (w == NULL)
			return;
		w->fd = -1;
	}
	before = w->out.len;
	if (w->deaths >= DEATHS_MAX || before - w->sent > QUEUE_MAX ||
		(w->aide == NULL && !start(job, w))) {
		w->dropped++;
		return;
	}
	buf_fmt(&w->out, "%s ", url);
	put_body(&w->out, job, event, line, w->dropped);
	if (w->out.bad != XR_OK) {
		w->out.bad = XR_OK;
		w->out.len = before;
		w->dropped++;
		return;
	}
	w->dropped = 0;
	flush(w);
}

void
hook_web_last(struct job *job)
{
	struct hook_web *w = job->hooks->sending;

	if (w == NULL)
		return;
	w->last = true;
	flush(w);
}

bool
hook_web_busy(const struct job *job)
{
	return job->hooks->sending != NULL && job->hooks->sending->aide != NULL;
}

void
hook_web_give_up(struct job *job)
{
	struct hook_web *w = job->hooks->sending;

	if (w == NULL)
		return;
	aide_end(w->aide);
	w->aide = NULL;
	close_line(w);
}
