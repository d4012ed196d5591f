/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - see link.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "worker/store/link.h"

#define READ_MIN (64 << 10)
#define READ_MAX (4 << 20)

/* A thread that asks; on its stack. */
struct call {
	TAILQ_ENTRY(call) all;     /* that have no reply */
	TAILQ_ENTRY(call) sending; /* that are not sent, the first first */
	struct buf bytes;
	size_t sent;
	int fd; /* goes with the first byte; -1 */
	int64_t id;
	pthread_cond_t wake; /* the reply is there, or nobody reads */
	bool queued;         /* is in `sending` */
	bool done;
	struct store_reply *reply;
};

TAILQ_HEAD(calls, call);

struct link {
	struct driver driver;
	const struct link_speech *speech;
	int fd, bell; /* the bell wakes who reads */
	pthread_mutex_t lock;
	struct calls all, sending;
	int64_t last_id;
	bool reading;        /* somebody does */
	enum xr_status over; /* XR_OK; why nothing more can be asked */
	struct xr_error why;
	struct link_in in; /* who reads has it */
};

/* --- under the lock -------------------------------------------------------- */

static void
finish(struct link *l, struct call *c)
{
	TAILQ_REMOVE(&l->all, c, all);
	if (c->queued)
		TAILQ_REMOVE(&l->sending, c, sending);
	c->done = true;
	pthread_cond_signal(&c->wake);
}

static void
fail_call(struct link *l, struct call *c)
{
	*c->reply = (struct store_reply){
		.status = l->over,
		.err = l->why,
	};
	finish(l, c);
}

static void
ring(struct link *l)
{
	uint64_t one = 1;
	ssize_t n = write(l->bell, &one, sizeof(one));

	(void)n; /* it rings already */
}

/* Nothing more can be asked: @status, in @err's words. The first counts. */
static void
end(struct link *l, enum xr_status status, const struct xr_error *err)
{
	if (l->over != XR_OK)
		return;
	l->over = status;
	l->why = *err;
	while (!TAILQ_EMPTY(&l->all))
		fail_call(l, TAILQ_FIRST(&l->all));
	ring(l);
}

static void
end_by(struct link *l, int sys)
{
	struct xr_error err = { 0 };

	if (sys == 0 || sys == EPIPE || sys == ECONNRESET)
		fail(&err, XR_E_PEER_LOST,
			"store: whoever serves it has closed the connection");
	else
		fail(&err, XR_E_PEER_LOST, "store: the connection: %s",
			strerror(sys));
	end(l, XR_E_PEER_LOST, &err);
}

/* What goes without a wait, of all. */
static void
send_some(struct link *l)
{
	struct call *c;
	ssize_t n;

	while ((c = TAILQ_FIRST(&l->sending)) != NULL) {
		n = along_send(l->fd, c->bytes.data + c->sent,
			c->bytes.len - c->sent, c->sent == 0 ? c->fd : -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN)
				end_by(l, errno);
			return;
		}
		c->sent += (size_t)n;
		if (c->sent < c->bytes.len)
			continue;
		TAILQ_REMOVE(&l->sending, c, sending);
		c->queued = false;
	}
}

static void
deliver(struct link *l, struct store_reply *r)
{
	struct call *c;

	TAILQ_FOREACH(c, &l->all, all)
	if (c->id == r->id)
		break;
	if (c == NULL || c->queued) {
		store_value_unref(r->value); /* he has given up, or asks yet */
		return;
	}
	*c->reply = *r;
	finish(l, c);
}

/* --- reading, by one thread ------------------------------------------------ */

static void
keep_fds(struct link_in *in, const struct along *got)
{
	for (unsigned i = 0; i < got->count; i++)
		if (in->fds.count < ALONG_MAX)
			in->fds.fd[in->fds.count++] = got->fd[i];
		else
			fd_close(got->fd[i]);
}

/* Room behind what is not taken yet; a large reply's is given back. */
static void
compact(struct link_in *in)
{
	struct buf *b = &in->bytes;

	if (in->at == b->len && b->cap > READ_MAX)
		buf_fini(b);
	else if (in->at > 0 && in->at >= b->len / 2)
		memmove(b->data, b->data + in->at, b->len - in->at);
	else
		return;
	b->len -= b->len == 0 ? 0 : in->at;
	in->at = 0;
}

/* False: the connection is over, and errno says why; 0: by its end. */
static bool
receive(struct link *l)
{
	struct buf *b = &l->in.bytes;
	struct along got;
	size_t room = l->in.need > READ_MAX ? READ_MAX : l->in.need;
	char *to;
	ssize_t n;

	compact(&l->in);
	if (room < READ_MIN)
		room = READ_MIN;
	to = buf_room(b, room);
	if (to == NULL) {
		errno = ENOMEM;
		return false;
	}
	b->len -= room;
	n = along_receive(l->fd, to, room, &got);
	if (n >= 0)
		keep_fds(&l->in, &got);
	if (n > 0)
		b->len += (size_t)n;
	if (n == 0)
		errno = 0;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
take_all(struct link *l)
{
	struct store_reply r;
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;
	bool there = true;

	while (status == XR_OK && there) {
		status = l->speech->take(&l->in, &r, &there, &err);
		pthread_mutex_lock(&l->lock);
		if (status != XR_OK)
			end(l, status, &err);
		else if (there)
			deliver(l, &r);
		pthread_mutex_unlock(&l->lock);
	}
}

/* Until something came, or @until, or the bell. Without the lock. If poll() fails, there
 * are no events. */
static void
read_turn(struct link *l, bool unsent, int64_t until)
{
	struct pollfd p[2] = {
		{ .fd = l->fd, .events = unsent ? POLLIN | POLLOUT : POLLIN },
		{ .fd = l->bell, .events = POLLIN },
	};
	int64_t left = until == INT64_MAX ? INT64_MAX : until - clock_now();
	uint64_t bell;
	int sys = 0;

	if (left < 0)
		return;
	if (left > 3600 * NS_PER_S)
		left = 3600 * NS_PER_S;
	poll(p, 2, (int)((left + NS_PER_MS - 1) / NS_PER_MS));
	if (p[1].revents != 0 && read(l->bell, &bell, sizeof(bell)) < 0)
		return;
	if ((p[0].revents & ~POLLOUT) == 0)
		return;
	if (!receive(l))
		sys = errno == 0 ? EPIPE : errno;
	take_all(l);
	if (sys == 0)
		return;
	pthread_mutex_lock(&l->lock);
	end_by(l, sys);
	pthread_mutex_unlock(&l->lock);
}

/* --- asking ---------------------------------------------------------------- */

static void
await(struct call *c, struct link *l, int64_t until)
{
	struct timespec at = {
		.tv_sec = until / NS_PER_S,
		.tv_nsec = until % NS_PER_S,
	};

	if (until == INT64_MAX)
		pthread_cond_wait(&c->wake, &l->lock);
	else
		pthread_cond_timedwait(&c->wake, &l->lock, &at);
}

/* The next one reads. */
static void
pass_on(struct link *l)
{
	struct call *c = TAILQ_FIRST(&l->all);

	l->reading = false;
	if (c != NULL)
		pthread_cond_signal(&c->wake);
}

static void
run(struct link *l, struct call *c, int64_t until)
{
	bool unsent;

	while (!c->done && clock_now() < until) {
		send_some(l);
		if (c->done)
			break;
		if (l->reading) {
			await(c, l, until);
			continue;
		}
		l->reading = true;
		unsent = !TAILQ_EMPTY(&l->sending);
		pthread_mutex_unlock(&l->lock);
		read_turn(l, unsent, until);
		pthread_mutex_lock(&l->lock);
		l->reading = false;
	}
	if (!l->reading)
		pass_on(l);
}

/* Its time is over. */
static void
give_up(struct link *l, struct call *c, const struct store_request *q)
{
	struct xr_error err = { 0 };
	bool unsent = c->sent < c->bytes.len;

	finish(l, c);
	reply_fail(c->reply, XR_E_TIMEOUT,
		"store: the key '%.*s': whoever serves the store did not answer in time",
		QUOTED(q->count > 0 ? q->keys[0] : q->key));
	if (unsent && c->sent > 0)
		end(l,
			fail(&err, XR_E_PEER_LOST,
				"store: the connection stands still"),
			&err);
}

static void
link_ask(struct driver *driver, struct store_request *q, int64_t until,
	struct store_reply *r)
{
	struct link *l = (struct link *)driver;
	struct call c = { .fd = -1, .reply = r };
	struct xr_error err = { 0 };
	enum xr_status status;
	pthread_condattr_t attr;

	q->id = __atomic_add_fetch(&l->last_id, 1, __ATOMIC_RELAXED);
	c.id = q->id;
	status = l->speech->put(&c.bytes, q, &c.fd, &err);
	if (status == XR_OK && c.bytes.bad != XR_OK)
		status = fail(&err, c.bytes.bad, "store: out of memory");
	if (status != XR_OK) {
		*r = (struct store_reply){ .status = status, .err = err };
		goto out;
	}
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c.wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_lock(&l->lock);
	TAILQ_INSERT_TAIL(&l->all, &c, all);
	if (l->over != XR_OK) {
		fail_call(l, &c);
	} else {
		TAILQ_INSERT_TAIL(&l->sending, &c, sending);
		c.queued = true;
		send_some(l);
		/* Who reads has to look for room, too. */
		if (!c.done && c.sent < c.bytes.len && l->reading)
			ring(l);
		run(l, &c, until);
		if (!c.done)
			give_up(l, &c, q);
	}
	pthread_mutex_unlock(&l->lock);
	pthread_cond_destroy(&c.wake);
out:
	fd_close(c.fd);
	buf_fini(&c.bytes);
}

static void
link_close(struct driver *driver)
{
	struct link *l = (struct link *)driver;
	struct xr_error err = { 0 };

	pthread_mutex_lock(&l->lock);
	end(l, fail(&err, XR_E_CLOSED, "store: this handle was closed"), &err);
	pthread_mutex_unlock(&l->lock);
}

static void
link_free(struct driver *driver)
{
	struct link *l = (struct link *)driver;

	fd_close(l->fd);
	fd_close(l->bell);
	for (unsigned i = 0; i < l->in.fds.count; i++)
		fd_close(l->in.fds.fd[i]);
	buf_fini(&l->in.bytes);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static const struct driver_ops ops = {
	.ask = link_ask,
	.close = link_close,
	.free = link_free,
};

enum xr_status
link_open(int fd, const struct link_speech *speech, struct driver **driver,
	struct xr_error *err)
{
	struct link *l = calloc(1, sizeof(*l));
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (l == NULL || bell == -1) {
		enum xr_status status =
			fail(err, l == NULL ? XR_E_NOMEM : XR_E_SYS,
				"store: %s", strerror(errno));

		free(l);
		fd_close(bell);
		fd_close(fd);
		return status;
	}
	l->driver.ops = &ops;
	l->speech = speech;
	l->fd = fd;
	l->bell = bell;
	TAILQ_INIT(&l->all);
	TAILQ_INIT(&l->sending);
	pthread_mutex_init(&l->lock, NULL);
	*driver = &l->driver;
	return XR_OK;
}
