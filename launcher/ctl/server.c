/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/queue.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/ctl/server.h"

#define READ_MAX     (64 << 10) /* bytes a turn and client */
#define MESSAGES_MAX 16         /* messages a turn and client */
#define OUT_HIGH     (64 << 10) /* bytes unsent: no more is read */
#define OUT_MAX      (80 << 20) /* bytes unsent: it is dropped */
#define SLOW_NS      (30 * NS_PER_S)
#define HALF_NS      (10 * NS_PER_S)   /* for the rest of a line */
#define AGAIN_NS     (100 * NS_PER_MS) /* to a kernel that refused */

struct ctl_client {
	TAILQ_ENTRY(ctl_client) list; /* the longest silent first */
	struct ctl *ctl;
	int fd;
	struct watch *readable, *writable;
	struct buf in, out;
	size_t in_at;    /* bytes of `in` that are done with */
	size_t out_at;   /* bytes of `out` that are sent */
	int64_t sent_ns; /* clock_now(), when it last took something */
	int64_t waits;   /* for the end, as this message; CONTROL_NONE */
	uint32_t rank;   /* CTL_NO_RANK: a client's */
	int64_t half_ns; /* clock_now(), when a line began that is not whole; 0 */
	bool waiting;
	bool ended; /* it will say nothing more */
	bool dead;
};

TAILQ_HEAD(client_list, ctl_client);

struct ctl {
	struct ctl_config config;
	int fd; /* that listens, or -1 */
	struct watch *listening;
	struct timer *again; /* accept, messages that are left, slow clients */
	struct client_list clients;
	uint32_t count;
	bool refused; /* the kernel had no descriptor for one more */
};

static void
drop(struct ctl_client *c)
{
	struct ctl *ctl = c->ctl;

	TAILQ_REMOVE(&ctl->clients, c, list);
	ctl->count -= c->rank == CTL_NO_RANK;
	watch_close(c->readable);
	watch_close(c->writable);
	ctl->config.close(ctl->config.ctx, c->fd);
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
}

static size_t
unsent(const struct ctl_client *c)
{
	return c->out.len - c->out_at;
}

static void
come_back(struct ctl *ctl, int64_t ns)
{
	if (!timer_armed(ctl->again) || timer_left(ctl->again) > ns)
		timer_arm(ctl->again, ns);
}

/* What goes now; the rest when it can be written. */
static void
flush(struct ctl_client *c)
{
	ssize_t n = 0;

	while (unsent(c) > 0 && n >= 0) {
		n = send(c->fd, c->out.data + c->out_at, unsent(c),
			MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			c->out_at += (size_t)n;
			c->sent_ns = clock_now();
		}
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		c->dead = true;
	if (unsent(c) == 0) {
		buf_clear(&c->out);
		c->out_at = 0;
		watch_pause(c->writable);
	} else {
		watch_resume(c->writable);
		come_back(c->ctl, SLOW_NS);
	}
}

void
ctl_send(struct ctl_client *to, const struct control *m)
{
	bool idle = unsent(to) == 0;

	if (to->dead)
		return;
	if (idle)
		to->sent_ns = clock_now();
	control_put(&to->out, m);
	if (to->out.bad != XR_OK || unsent(to) > OUT_MAX)
		to->dead = true;
	else if (idle)
		flush(to);
}

void
ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err)
{
	struct control m = control_new(CONTROL_ERROR, id);

	m.error.code = xr_status_name(status);
	m.error.text = err->text;
	ctl_send(to, &m);
}

bool
ctl_wait(struct ctl_client *client, int64_t id)
{
	if (client->waiting)
		return false;
	client->waiting = true;
	client->waits = id;
	return true;
}

/* --- reading -------------------------------------------------------------- */

static void
take_line(struct ctl_client *c, char *line, size_t len)
{
	struct control m;
	struct xr_error err = { 0 };
	enum xr_status status;

	line[len] = '\0';
	status = control_read(&m, line, len,
		c->rank == CTL_NO_RANK ? CONTROL_BY_CLIENT : CONTROL_BY_RANK,
		&err);
	if (status == XR_OK)
		c->ctl->config.fn(c, &m, c->ctl->config.ctx);
	else if (m.type < CONTROL_TYPES &&
		control_rows[m.type].by == CONTROL_BY_JOB)
		c->dead = true; /* a job at the other end, and no end to it */
	else
		ctl_refuse(c, m.id, status, &err);
}

static bool
is_choked(const struct ctl_client *c)
{
	return c->dead || unsent(c) > OUT_HIGH;
}

static bool
has_line(const struct ctl_client *c)
{
	size_t left = c->in.len - c->in_at;

	return left > 0 && memchr(c->in.data + c->in_at, '\n', left) != NULL;
}

/* The complete lines there are; more of them than a turn has are left, and
 * nothing more is read before they are done. */
static void
take_lines(struct ctl_client *c)
{
	char *line, *end;
	unsigned done;

	for (done = 0; done < MESSAGES_MAX && !is_choked(c) && has_line(c);
		done++) {
		line = c->in.data + c->in_at;
		end = memchr(line, '\n', c->in.len - c->in_at);
		c->in_at += (size_t)(end - line) + 1;
		take_line(c, line, (size_t)(end - line));
	}
}

/* Room at the end of what is not done with yet. */
static void
compact(struct ctl_client *c)
{
	if (c->in_at == 0)
		return;
	memmove(c->in.data, c->in.data + c->in_at, c->in.len - c->in_at);
	c->in.len -= c->in_at;
	c->in_at = 0;
}

/* What is left of it is half a line, for how long by now. */
static void
note_half(struct ctl_client *c)
{
	if (c->in.len == c->in_at)
		c->half_ns = 0;
	else if (c->half_ns == 0)
		c->half_ns = clock_now();
	if (c->half_ns != 0)
		come_back(c->ctl, HALF_NS);
	if (c->in.len - c->in_at >= CONTROL_LINE_MAX)
		c->dead = true;
}

static void
go_on(struct ctl_client *c)
{
	bool more;

	take_lines(c);
	more = has_line(c);
	if (more && !is_choked(c))
		come_back(c->ctl, 0);
	if (!more)
		note_half(c);
	if (c->dead || (c->ended && !more && unsent(c) == 0 && !c->waiting))
		drop(c);
	else if (more || c->ended || is_choked(c))
		watch_pause(c->readable);
	else
		watch_resume(c->readable);
}

static void
on_readable(int fd, void *ctx)
{
	struct ctl_client *c = ctx;
	char data[READ_MAX];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	TAILQ_REMOVE(&c->ctl->clients, c, list);
	TAILQ_INSERT_TAIL(&c->ctl->clients, c, list);
	compact(c);
	if (n > 0)
		buf_put(&c->in, data, (size_t)n);
	c->ended = n == 0; /* who has asked may close this way, and read on */
	if (n < 0 || c->in.bad != XR_OK)
		drop(c);
	else
		go_on(c);
}

static void
on_writable(int fd, void *ctx)
{
	struct ctl_client *c = ctx;

	(void)fd;
	flush(c);
	go_on(c);
}

/* --- who comes ------------------------------------------------------------ */

static bool
may_speak(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		(who.uid == geteuid() || who.uid == 0);
}

static void
greet(struct ctl_client *c)
{
	struct control m = control_new(CONTROL_WELCOME, CONTROL_NONE);

	m.welcome.v = CONTROL_VERSION;
	m.welcome.job = c->ctl->config.job;
	m.welcome.pid = c->ctl->config.pid;
	if (c->rank != CTL_NO_RANK)
		m.welcome.rank = c->rank;
	ctl_send(c, &m);
}

/* Of those who only come to ask, not to wait. */
static void
make_room(struct ctl *ctl)
{
	struct ctl_client *c, *first = NULL;

	if (ctl->count < ctl->config.most)
		return;
	TAILQ_FOREACH(c, &ctl->clients, list)
	{
		if (c->rank != CTL_NO_RANK)
			continue;
		if (first == NULL)
			first = c;
		if (!c->waiting)
			break;
	}
	drop(c != NULL ? c : first);
}

/* A rank has one. */
static void
drop_former(struct ctl *ctl, uint32_t rank)
{
	struct ctl_client *c;

	if (rank == CTL_NO_RANK)
		return;
	TAILQ_FOREACH(c, &ctl->clients, list)
	if (c->rank == rank)
		break;
	if (c != NULL)
		drop(c);
}

void
ctl_admit(struct ctl *ctl, int fd, uint32_t rank)
{
	struct ctl_client *c = calloc(1, sizeof(*c));

	drop_former(ctl, rank);
	if (c == NULL) {
		ctl->config.close(ctl->config.ctx, fd);
		return;
	}
	c->ctl = ctl;
	c->fd = fd;
	c->rank = rank;
	c->waits = CONTROL_NONE;
	TAILQ_INSERT_TAIL(&ctl->clients, c, list);
	ctl->count += rank == CTL_NO_RANK;
	c->readable = watch_open(ctl->config.loop, fd, false, on_readable, c);
	c->writable = watch_open(ctl->config.loop, fd, true, on_writable, c);
	if (c->readable == NULL || c->writable == NULL) {
		drop(c);
		return;
	}
	greet(c);
	if (c->dead)
		drop(c);
}

uint32_t
ctl_rank(const struct ctl_client *client)
{
	return client->rank;
}

/* One a turn: a crowd at the door keeps nobody inside waiting. */
static void
on_connect(int fd, void *ctx)
{
	struct ctl *ctl = ctx;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client != -1 && may_speak(client)) {
		make_room(ctl);
		ctl_admit(ctl, client, CTL_NO_RANK);
		return;
	}
	if (client == -1 && errno != EAGAIN && errno != EINTR &&
		errno != ECONNABORTED) {
		ctl->refused = true;
		watch_pause(ctl->listening);
		come_back(ctl, AGAIN_NS);
	}
	fd_close(client);
}

/* --- what no event tells of ----------------------------------------------- */

/* The next time to look at this client, from now on; 0: it was dropped. */
static int64_t
look_at(struct ctl_client *c, int64_t now)
{
	int64_t due = INT64_MAX;

	if (unsent(c) > 0)
		due = c->sent_ns + SLOW_NS;
	if (c->half_ns != 0 && c->half_ns + HALF_NS < due)
		due = c->half_ns + HALF_NS;
	if (now >= due) {
		drop(c);
		return 0;
	}
	if (has_line(c) && !is_choked(c))
		go_on(c); /* may drop it */
	return due == INT64_MAX ? INT64_MAX : due - now;
}

static void
on_again(void *ctx)
{
	struct ctl *ctl = ctx;
	struct ctl_client *c, *next;
	int64_t now = clock_now(), soonest = INT64_MAX, at;

	if (ctl->refused)
		watch_resume(ctl->listening);
	ctl->refused = false;
	for (c = TAILQ_FIRST(&ctl->clients); c != NULL; c = next) {
		next = TAILQ_NEXT(c, list);
		at = look_at(c, now);
		if (at > 0 && at < soonest)
			soonest = at;
	}
	if (soonest != INT64_MAX)
		come_back(ctl, soonest);
}

struct ctl *
ctl_open(const struct ctl_config *config)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));

	if (ctl == NULL)
		return NULL;
	ctl->config = *config;
	ctl->fd = -1;
	TAILQ_INIT(&ctl->clients);
	ctl->again = timer_open(config->loop, on_again, ctl);
	if (ctl->again != NULL)
		return ctl;
	free(ctl);
	return NULL;
}

bool
ctl_listen(struct ctl *ctl, int fd)
{
	ctl->fd = fd;
	ctl->listening =
		watch_open(ctl->config.loop, fd, false, on_connect, ctl);
	if (ctl->listening != NULL)
		return true;
	fd_close(fd);
	ctl->fd = -1;
	return false;
}

void
ctl_close(struct ctl *ctl)
{
	if (ctl == NULL)
		return;
	while (!TAILQ_EMPTY(&ctl->clients))
		drop(TAILQ_FIRST(&ctl->clients));
	watch_close(ctl->listening);
	timer_close(ctl->again);
	fd_close(ctl->fd);
	free(ctl);
}

void
ctl_end(struct ctl *ctl, const struct control_over *over)
{
	struct ctl_client *c;
	struct control m = control_new(CONTROL_OVER, CONTROL_NONE);

	m.over = *over;
	if (ctl == NULL)
		return;
	TAILQ_FOREACH(c, &ctl->clients, list)
	{
		m.id = c->waits;
		if (c->waiting)
			ctl_send(c, &m);
	}
}
