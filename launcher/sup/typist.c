/* SPDX-License-Identifier: Apache-2.0 */
/* typist.c - see typist.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/fd.h"
#include "base/status.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/sup/typist.h"

struct typist {
	LIST_ENTRY(typist) list;
	struct job *job;
	struct ctl_client *client;
	uint32_t r;
	int fd; /* a stream socket: nothing else is read without a wait */
	struct watch *input, *room;
	struct pty_before before;
	char data[4096];
	size_t len; /* typed, and not taken by the terminal yet */
};

static void
end(struct typist *t)
{
	LIST_REMOVE(t, list);
	watch_close(t->input);
	watch_close(t->room);
	steer_close(t->job, t->fd);
	ctl_hold(t->client, -1);
	pty_left(t->job, t->r, &t->before);
	free(t);
}

/* False: it ended. */
static bool
pass_on(struct typist *t)
{
	ssize_t n = write(t->job->rank[t->r].tty, t->data, t->len);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		end(t);
		return false;
	}
	if (n > 0) {
		t->len -= (size_t)n;
		memmove(t->data, t->data + n, t->len);
	}
	if (t->len > 0) {
		watch_pause(t->input);
		watch_resume(t->room);
	} else {
		watch_pause(t->room);
		watch_resume(t->input);
	}
	return true;
}

static void
on_room(int fd, void *ctx)
{
	(void)fd;
	pass_on(ctx);
}

static void
on_input(int fd, void *ctx)
{
	struct typist *t = ctx;
	ssize_t n = recv(fd, t->data, sizeof(t->data), MSG_DONTWAIT);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(t);
		return;
	}
	t->len = (size_t)n;
	pass_on(t);
}

static struct typist *
find_client(const struct job *job, const struct ctl_client *client)
{
	struct typist *t;

	LIST_FOREACH(t, &job->sup->typists, list)
	if (t->client == client)
		return t;
	return NULL;
}

static struct typist *
find_rank(const struct job *job, uint32_t r)
{
	struct typist *t;

	LIST_FOREACH(t, &job->sup->typists, list)
	if (t->r == r)
		return t;
	return NULL;
}

/* May @from have the keyboard of the rank that it asks for, local number @r? */
static enum xr_status
check(const struct job *job, const struct ctl_client *from, int64_t rank,
	struct xr_error *err)
{
	int64_t r = rank - job->plan.first;

	if (r < 0 || r >= job_size(job))
		return fail(err, XR_E_RANGE, "attach: there is no rank %lld",
			(long long)rank);
	if (!job->opt.pty)
		return fail(err, XR_E_STATE,
			"attach: ranks of %s have no terminal to type at: it was started without --pty",
			job->state.id);
	if (job->rank[r].tty == -1)
		return fail(err, XR_E_STATE,
			"attach: the terminal of rank %lld is closed",
			(long long)rank);
	if (find_client(job, from) != NULL)
		return fail(err, XR_E_EXISTS,
			"attach: this connection is attached already");
	if (find_rank(job, (uint32_t)r) != NULL ||
		(job->sup->tty_in != NULL &&
			tty_in_is_for(job->sup->tty_in, job->rank[r].tty)))
		return fail(err, XR_E_EXISTS,
			"rank %lld of %s: somebody types there already",
			(long long)rank, job->state.id);
	return XR_OK;
}

/* False: @rows or @cols is none. */
static bool
size_of(int64_t rows, int64_t cols, struct winsize *size)
{
	*size = (struct winsize){ .ws_row = (unsigned short)rows,
		.ws_col = (unsigned short)cols };
	return rows > 0 && rows <= UINT16_MAX && cols > 0 && cols <= UINT16_MAX;
}

/* Takes @fd, which is a stream socket, if it succeeds. */
static struct typist *
begin(struct job *job, struct ctl_client *client, uint32_t r, int fd)
{
	struct typist *t = calloc(1, sizeof(*t));
	struct loop *loop = job->sup->loop;

	if (t == NULL)
		return NULL;
	*t = (struct typist){ .job = job, .client = client, .r = r, .fd = fd };
	t->room = watch_open(loop, job->rank[r].tty, true, on_room, t);
	t->input = watch_open(loop, fd, false, on_input, t);
	if (t->room == NULL || t->input == NULL) {
		watch_close(t->room);
		watch_close(t->input);
		free(t);
		return NULL;
	}
	watch_pause(t->room);
	LIST_INSERT_HEAD(&job->sup->typists, t, list);
	ctl_hold(client, 1);
	return t;
}

static enum xr_status
attach(struct job *job, struct ctl_client *from,
	const struct control_attach *wish, struct xr_error *err)
{
	enum xr_status status = check(job, from, wish->rank, err);
	uint32_t r = (uint32_t)(wish->rank - job->plan.first);
	struct winsize size;
	struct typist *t;
	int fd;

	if (status != XR_OK)
		return status;
	fd = ctl_take_fd(from);
	if (fd == -1 || !steer_is_stream(fd)) {
		if (fd != -1)
			steer_close(job, fd);
		return fail(err, XR_E_INVAL,
			"attach: a stream socket has to come along");
	}
	t = begin(job, from, r, fd);
	if (t == NULL) {
		steer_close(job, fd);
		return fail(err, XR_E_NOMEM, "attach: no memory for it");
	}
	pty_typed(job, r, size_of(wish->rows, wish->cols, &size) ? &size : NULL,
		&t->before);
	return XR_OK;
}

static enum xr_status
resize(struct job *job, const struct ctl_client *from,
	const struct control_resize *wish, struct xr_error *err)
{
	const struct typist *t = find_client(job, from);
	struct winsize size;

	if (t == NULL)
		return fail(err, XR_E_STATE,
			"resize: this connection is not attached");
	if (!size_of(wish->rows, wish->cols, &size))
		return fail(err, XR_E_RANGE, "resize: no such size");
	pty_size(job, t->r, &size);
	return XR_OK;
}

void
typist_asked(struct job *job, struct ctl_client *from, const struct control *m)
{
	struct control done = control_new(CONTROL_DONE, m->id);
	struct xr_error err = { 0 };
	enum xr_status status = m->type == CONTROL_ATTACH ?
		attach(job, from, &m->attach, &err) :
		resize(job, from, &m->resize, &err);

	if (status == XR_OK)
		ctl_send(from, &done);
	else
		ctl_refuse(from, m->id, status, &err);
}

void
typist_gone(struct job *job, struct ctl_client *client)
{
	struct typist *t = find_client(job, client);

	if (t != NULL)
		end(t);
}

void
typist_over(struct job *job, uint32_t r)
{
	struct typist *t = find_rank(job, r);

	if (t != NULL)
		end(t);
}
