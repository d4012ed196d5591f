/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - see client.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/along.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/ctl/client.h"
#include "launcher/ctl/place.h"

#define READ_SIZE (64 << 10)

/* Milliseconds until @until for poll(), which are not too few. */
static int
client_left(int64_t until)
{
	int64_t left = until - clock_now();

	if (until == INT64_MAX)
		return -1;
	return left > 0 ? (int)((left + NS_PER_MS) / NS_PER_MS) : 0;
}

/*
 * Returns true when @fd can be read, false if it cannot by @until. If this process
 * reaches @until late, since it was stopped or had no CPU, the supervisor may have
 * been late, too: the wait goes on for as long again, at most CTL_PATIENCE.
 */
static bool
client_wait(int fd, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool is_extended = false;
	int64_t now;
	int n;

	for (;;) {
		n = poll(&p, 1, client_left(until));
		if (n == 1 || (n == -1 && errno != EINTR))
			return n == 1;
		now = clock_now();
		if (now < until)
			continue;
		if (is_extended)
			return false;
		is_extended = true;
		until = now - until < CTL_PATIENCE ? now + (now - until) :
						     now + CTL_PATIENCE;
	}
}

static bool
is_gone(int sys)
{
	return sys == ECONNRESET || sys == EPIPE || sys == ENOTCONN;
}

/* What @sys, of the socket, says of the job; 0: the end of what it says. */
static enum xr_status
fail_call(const struct ctl_call *c, int sys, struct xr_error *err)
{
	if (sys == 0 || is_gone(sys))
		return fail(err, XR_E_CLOSED, CTL_HAS_ENDED, c->id, c->id);
	if (sys == EAGAIN)
		return fail(err, XR_E_TIMEOUT,
			"%s runs, but its supervisor does not answer\txrun stop %s",
			c->id, c->id);
	return fail(err,
		sys == ENOENT || sys == ECONNREFUSED ? XR_E_NOTFOUND : XR_E_SYS,
		"%s: its control socket: %s", c->id, strerror(sys));
}

static enum xr_status
read_more(struct ctl_call *c, int64_t until, struct xr_error *err)
{
	char *room;
	ssize_t n;

	if (!client_wait(c->fd, until))
		return fail_call(c, EAGAIN, err);
	if (c->at > 0)
		memmove(c->in.data, c->in.data + c->at, c->in.len - c->at);
	c->in.len -= c->at;
	c->at = 0;
	room = buf_room(&c->in, READ_SIZE);
	if (room == NULL)
		return fail(err, c->in.bad, "an answer is too long");
	c->in.len -= READ_SIZE;
	n = recv(c->fd, room, READ_SIZE, 0);
	if (n > 0)
		c->in.len += (size_t)n;
	if (n > 0 || (n == -1 && (errno == EINTR || errno == EAGAIN)))
		return XR_OK;
	return fail_call(c, n == 0 ? 0 : errno, err);
}

/* The next line, terminated, without its end. */
static enum xr_status
read_line(struct ctl_call *c, int64_t until, struct span *line,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;
	char *end = NULL;

	while (status == XR_OK) {
		end = c->in.len == c->at ?
			NULL :
			memchr(c->in.data + c->at, '\n', c->in.len - c->at);
		if (end != NULL)
			break;
		status = read_more(c, until, err);
	}
	if (status != XR_OK)
		return status;
	*end = '\0';
	line->at = c->in.data + c->at;
	line->len = (size_t)(end - line->at);
	c->at += line->len + 1;
	return XR_OK;
}

static enum xr_status
read_message(struct ctl_call *c, struct control *m, int64_t until,
	struct xr_error *err)
{
	struct span line = { 0 };
	enum xr_status status = read_line(c, until, &line, err);

	return status == XR_OK ? control_read(m, (char *)line.at, line.len,
					 CONTROL_BY_JOB, err) :
				 status;
}

/* Whoever greets otherwise is none of ours, or of another time. */
static enum xr_status
check_greeting(const struct ctl_call *c, const struct control *m,
	struct xr_error *err)
{
	if (m->type != CONTROL_WELCOME)
		return fail(err, XR_E_PROTO, "%s: it does not greet", c->id);
	if (m->welcome.v != CONTROL_VERSION)
		return fail(err, XR_E_PROTO,
			"%s: it speaks version %lld of the control protocol, and this xrun %d\tthe xrun that started it",
			c->id, (long long)m->welcome.v, CONTROL_VERSION);
	return XR_OK;
}

enum xr_status
ctl_dial_within(struct ctl_call *call, const char *id, int64_t ns,
	struct xr_error *err)
{
	const int64_t until = clock_now() + ns;
	struct control m;
	enum xr_status status;

	*call = (struct ctl_call){ .id = id, .fd = ctl_connect(id, until) };
	if (call->fd == -1)
		return fail_call(call, errno, err);
	status = read_message(call, &m, until, err);
	if (status == XR_OK)
		status = check_greeting(call, &m, err);
	if (status != XR_OK)
		ctl_hang_up(call);
	return status;
}

enum xr_status
ctl_dial(struct ctl_call *call, const char *id, struct xr_error *err)
{
	return ctl_dial_within(call, id, CTL_PATIENCE, err);
}

void
ctl_hang_up(struct ctl_call *call)
{
	fd_close(call->fd);
	call->fd = -1;
	buf_fini(&call->in);
}

static enum control_type
answer_to(enum control_type question)
{
	switch (question) {
	case CONTROL_STATUS:
		return CONTROL_JOB;
	case CONTROL_WAIT:
		return CONTROL_OVER;
	default:
		return CONTROL_DONE;
	}
}

static enum xr_status
put_question(const struct ctl_call *call, const struct control *question,
	int fd, struct xr_error *err)
{
	struct buf line = { 0 };
	enum xr_status status = XR_OK;

	control_put(&line, question);
	if (line.bad != XR_OK)
		status = fail(err, line.bad, "no memory for a question");
	else if (along_send(call->fd, line.data, line.len, fd) !=
		(ssize_t)line.len)
		status = fail_call(call, errno, err);
	buf_fini(&line);
	return status;
}

enum xr_status
ctl_ask(struct ctl_call *call, const struct control *question,
	struct control *answer, struct xr_error *err)
{
	return ctl_ask_along(call, question, -1, answer, err);
}

enum xr_status
ctl_ask_along(struct ctl_call *call, const struct control *question, int fd,
	struct control *answer, struct xr_error *err)
{
	const bool waits = question->type == CONTROL_WAIT;
	enum xr_status status = put_question(call, question, fd, err);

	if (status == XR_OK)
		status = read_message(call, answer,
			waits ? INT64_MAX : clock_now() + CTL_PATIENCE, err);
	if (status == XR_OK && answer->type == CONTROL_ERROR)
		status = fail(err, status_of_name(answer->error.code), "%s",
			answer->error.text);
	else if (status == XR_OK && answer->type != answer_to(question->type))
		status = fail(err, XR_E_PROTO, "%s: '%s' is answered by '%s'",
			call->id, control_rows[question->type].name,
			control_rows[answer->type].name);
	return status;
}
