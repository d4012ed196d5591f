/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/queue.h>
#include <sys/socket.h>

#include "base/along.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/ctl/server.h"

#define READ_MAX     (64 << 10) /* bytes a turn and client */
#define MESSAGES_MAX 16         /* messages a turn and client */
#define OUT_HIGH     (64 << 10) /* bytes unsent: no more is read */
#define OUT_MAX      (80 << 20) /* bytes unsent: it is dropped */
#define SLOW_NS      (30 * NS_PER_S)
#define TURN_NS      (5 * NS_PER_MS)   /* of the loop; others wait meanwhile */
#define HALF_NS      (10 * NS_PER_S)   /* for the rest of a line */
#define GONE_NS      NS_PER_S          /* to look whether who waits is there */
#define AGAIN_NS     (100 * NS_PER_MS) /* to a kernel that refused */
#define FD_MAX       4         /* that came with lines that are not done */
#define MORE_MAX     (1 << 20) /* bytes a turn of answers that were wanted */

/* A descriptor on its way: it goes with the byte that is the at-th of all. */
struct underway {
	int fd;
	uint64_t at;
};

struct ctl_client {
	TAILQ_ENTRY(ctl_client) list; /* the longest silent first */
	struct ctl *ctl;
	int fd;
	struct watch *readable, *writable;
	struct buf in, out;
	size_t in_at;   /* bytes of `in` that are done with */
	size_t out_at;  /* bytes of `out` that are sent */
	uint64_t taken; /* bytes that were done with, in all */
	uint64_t sent;  /* bytes that were sent, in all */
	struct underway in_fd[FD_MAX];
	unsigned in_fds;
	struct underway out_fd; /* .fd is -1: none */
	void *of;
	unsigned held;   /* answers that are to come */
	bool wants;      /* more() */
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
	struct ctl_client *resume; /* where on_again() was cut; or NULL */
	bool refused; /* the kernel had no descriptor for one more */
};

static void
drop(struct ctl_client *c)
{
	struct ctl *ctl = c->ctl;

	if (ctl->config.gone != NULL)
		ctl->config.gone(ctl->config.ctx, c);
	if (ctl->resume == c)
		ctl->resume = TAILQ_NEXT(c, list);
	TAILQ_REMOVE(&ctl->clients, c, list);
	watch_close(c->readable);
	watch_close(c->writable);
	for (unsigned i = 0; i < c->in_fds; i++)
		ctl->config.close(ctl->config.ctx, c->in_fd[i].fd);
	if (c->out_fd.fd != -1)
		ctl->config.close(ctl->config.ctx, c->out_fd.fd);
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

/* Bytes, with the descriptor that goes with the first of them, if it does. */
static ssize_t
send_some(const struct ctl_client *c)
{
	const char *data = c->out.data + c->out_at;
	uint64_t before = c->out_fd.at - c->sent;

	if (c->out_fd.fd == -1)
		return along_send(c->fd, data, unsent(c), -1);
	return before > 0 ? along_send(c->fd, data, before, -1) :
			    along_send(c->fd, data, unsent(c), c->out_fd.fd);
}

static void
note_sent(struct ctl_client *c, size_t n)
{
	if (c->out_fd.fd != -1 && c->out_fd.at == c->sent) {
		fd_close(c->out_fd.fd);
		c->out_fd.fd = -1;
	}
	c->out_at += n;
	c->sent += n;
	c->sent_ns = clock_now();
}

/* What goes now; the rest when it can be written. */
static void
flush(struct ctl_client *c)
{
	ssize_t n = 0;

	while (unsent(c) > 0 && n >= 0) {
		n = send_some(c);
		if (n > 0)
			note_sent(c, (size_t)n);
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
	if (to->dead)
		come_back(to->ctl, 0); /* it may not be its turn */
}

bool
ctl_send_fd(struct ctl_client *to, const struct control *m, int fd)
{
	if (to->out_fd.fd != -1)
		return false;
	to->out_fd.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	to->out_fd.at = to->sent + unsent(to);
	if (to->out_fd.fd == -1)
		return false;
	ctl_send(to, m);
	return true;
}

int
ctl_take_fd(struct ctl_client *from)
{
	int fd = from->in_fds > 0 && from->in_fd[0].at <= from->taken ?
		from->in_fd[0].fd :
		-1;

	if (fd == -1)
		return -1;
	from->in_fds--;
	memmove(from->in_fd, from->in_fd + 1,
		from->in_fds * sizeof(from->in_fd[0]));
	return fd;
}

void
ctl_want(struct ctl_client *client)
{
	client->wants = true;
	come_back(client->ctl, 0);
}

void
ctl_hold(struct ctl_client *client, int by)
{
	client->held += (unsigned)by;
}

void **
ctl_of(struct ctl_client *client)
{
	return &client->of;
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
	return c->dead || unsent(c) > OUT_HIGH || c->out_fd.fd != -1;
}

static bool
is_waiting(const struct ctl_client *c)
{
	return c->waiting || c->held > 0;
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
	int fd;

	for (done = 0; done < MESSAGES_MAX && !is_choked(c) && has_line(c);
		done++) {
		line = c->in.data + c->in_at;
		end = memchr(line, '\n', c->in.len - c->in_at);
		c->in_at += (size_t)(end - line) + 1;
		c->taken += (size_t)(end - line) + 1;
		c->half_ns = 0; /* what follows is another one */
		take_line(c, line, (size_t)(end - line));
		while ((fd = ctl_take_fd(c)) != -1)
			c->ctl->config.close(c->ctl->config.ctx, fd);
	}
}

/* Its other end is closed, and not for sending only. */
static bool
is_gone(const struct ctl_client *c)
{
	struct pollfd p = { .fd = c->fd }; /* of no other event */

	return poll(&p, 1, 0) == 1;
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
	if (c->in.len > c->in_at && c->half_ns == 0)
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
	if ((more || c->wants) && !is_choked(c))
		come_back(c->ctl, 0);
	if (!more)
		note_half(c);
	if (c->ended)
		come_back(c->ctl, GONE_NS);
	if (c->dead || (c->ended && !more && unsent(c) == 0 && !is_waiting(c)))
		drop(c);
	else if (more || c->ended || is_choked(c))
		watch_pause(c->readable);
	else
		watch_resume(c->readable);
}

/* Of what came along, one is kept, with the last of the @n bytes. */
static void
keep_fds(struct ctl_client *c, const struct along *got, size_t n)
{
	const struct ctl *ctl = c->ctl;

	for (unsigned i = 0; i < got->count; i++)
		if (i == 0 && n > 0 && c->in_fds < FD_MAX)
			c->in_fd[c->in_fds++] = (struct underway){ got->fd[i],
				c->taken + (c->in.len - c->in_at) + n };
		else
			ctl->config.close(ctl->config.ctx, got->fd[i]);
}

/* It is the last that was silent. A turn that was cut before it goes on with the
 * one behind. */
static void
to_tail(struct ctl_client *c)
{
	struct ctl *ctl = c->ctl;

	if (ctl->resume == c)
		ctl->resume = TAILQ_NEXT(c, list);
	TAILQ_REMOVE(&ctl->clients, c, list);
	TAILQ_INSERT_TAIL(&ctl->clients, c, list);
}

static void
on_readable(int fd, void *ctx)
{
	struct ctl_client *c = ctx;
	char data[READ_MAX];
	struct along got;
	ssize_t n = along_receive(fd, data, sizeof(data), &got);

	if (n >= 0)
		keep_fds(c, &got, (size_t)n);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	to_tail(c);
	compact(c);
	if (n > 0)
		buf_put(&c->in, data, (size_t)n);
	c->ended = n == 0; /* who has asked may close this way, and read on */
	if (n < 0 || c->in.bad != XR_OK || (c->ended && is_gone(c)))
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

/* Among the connections of @rank, or of clients. Of those who only come to ask,
 * not to wait, if there are any. */
static void
make_room(struct ctl *ctl, uint32_t rank, uint32_t most)
{
	struct ctl_client *c, *first = NULL, *idle = NULL;
	uint32_t count = 0;

	TAILQ_FOREACH(c, &ctl->clients, list)
	{
		if (c->rank != rank)
			continue;
		count++;
		if (first == NULL)
			first = c;
		if (idle == NULL && !is_waiting(c))
			idle = c;
	}
	if (count >= most)
		drop(idle != NULL ? idle : first);
}

void
ctl_admit(struct ctl *ctl, int fd, uint32_t rank)
{
	struct ctl_client *c = calloc(1, sizeof(*c));

	if (rank == CTL_NO_RANK)
		make_room(ctl, rank, ctl->config.most);
	else
		make_room(ctl, rank, CTL_RANK_MOST);
	if (c == NULL) {
		ctl->config.close(ctl->config.ctx, fd);
		return;
	}
	c->ctl = ctl;
	c->fd = fd;
	c->rank = rank;
	c->waits = CONTROL_NONE;
	c->out_fd.fd = -1;
	TAILQ_INSERT_TAIL(&ctl->clients, c, list);
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
	if (c->ended && due > now + GONE_NS)
		due = now + GONE_NS;
	if (now >= due || c->dead || (c->ended && is_gone(c))) {
		drop(c);
		return 0;
	}
	if (c->ended || (has_line(c) && !is_choked(c)))
		go_on(c); /* may drop it */
	return due == INT64_MAX ? INT64_MAX : due - now;
}

/* Answers that were wanted, until @given is what a turn bears. */
static void
give_more(struct ctl_client *c, size_t *given)
{
	struct ctl *ctl = c->ctl;
	size_t before;

	while (c->wants && !is_choked(c) && *given < MORE_MAX) {
		before = c->sent + unsent(c);
		c->wants = false;
		ctl->config.more(ctl->config.ctx, c);
		*given += c->sent + unsent(c) - before + 1;
	}
	if (c->wants && !is_choked(c))
		come_back(ctl, 0);
}

static void
on_again(void *ctx)
{
	struct ctl *ctl = ctx;
	struct ctl_client *c, *next;
	int64_t now = clock_now(), soonest = INT64_MAX, at;
	size_t given = 0;
	bool resumed = ctl->resume != NULL;

	if (ctl->refused)
		watch_resume(ctl->listening);
	ctl->refused = false;
	c = resumed ? ctl->resume : TAILQ_FIRST(&ctl->clients);
	ctl->resume = NULL;
	for (; c != NULL; c = next) {
		next = TAILQ_NEXT(c, list);
		if (clock_now() - now > TURN_NS) {
			ctl->resume = c; /* others of the loop first */
			soonest = 0;
			break;
		}
		give_more(c, &given);
		at = look_at(c, now);
		if (at > 0 && at < soonest)
			soonest = at;
	}
	/* Those before, in the turn that was cut, have times of their own. */
	if (resumed && soonest > NS_PER_S)
		soonest = NS_PER_S;
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

int
ctl_unlisten(struct ctl *ctl)
{
	int fd;

	if (ctl == NULL || ctl->fd == -1)
		return -1;
	fd = ctl->fd;
	watch_close(ctl->listening);
	ctl->listening = NULL;
	ctl->refused = false;
	ctl->fd = -1;
	return fd;
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
