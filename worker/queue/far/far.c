/* SPDX-License-Identifier: Apache-2.0 */
/* far.c - see far.h: the life of a far handle, and what is asked but for items. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include <xrun/call.h>
#include <xrun/rpc.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/future.h"

/* --- asking --------------------------------------------------------------------------- */

/* agent_leave() is to follow. An agent that was shut down took all with it. */
static enum xr_status
enter(const struct far *f, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	if (agent_self()->incarnation == f->life)
		return XR_OK;
	agent_leave();
	return fail(err, XR_E_STATE,
		"the agent by which the queue was opened was shut down");
}

struct far_call *
far_call_new(const struct xr_queue *q, uint32_t op, size_t len)
{
	struct far_ask ask = {
		.op = op,
		.first = q->first,
		.lanes = q->count,
		.token = q->far->token,
		.acked = atomic_load(&q->far->acked),
	};
	struct far_call *c = calloc(1, sizeof(*c) + sizeof(ask) + len);

	if (c == NULL)
		return NULL;
	atomic_init(&c->refs, 1);
	c->len = sizeof(ask) + len;
	memcpy(c->ask, &ask, sizeof(ask));
	return c;
}

void
far_call_unref(struct far_call *c)
{
	struct far *f;

	if (c == NULL || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	f = c->far;
	/* What is sent yet is read from here. */
	if (c->future != NULL && !xr_future_done(c->future))
		xr_future_cancel(c->future);
	xr_future_unref(c->future);
	xr_value_unref(c->answer);
	far_call_unref(c->back);
	free(c);
	if (f != NULL)
		far_go(f);
}

static struct xr_raw_call
raw_of(const struct far *f, const struct far_call *c)
{
	return (struct xr_raw_call){
		.size = sizeof(struct xr_raw_call),
		.to = f->home,
		.method = f->method,
		.data = c->ask,
		.len = c->len,
		.timeout = c->timeout != 0 ? c->timeout : XR_TIMEOUT_NEVER,
	};
}

enum xr_status
far_send(struct far *f, struct far_call *c, struct xr_error *err)
{
	const struct xr_raw_call call = raw_of(f, c);
	enum xr_status status = enter(f, err);

	if (status != XR_OK)
		return status;
	status = call_within(&call, c->limit, &c->future, err);
	agent_leave();
	return status;
}

/* Nobody answers; who is gone need not be told. */
static void
tell(struct far *f, const struct far_call *c)
{
	const struct xr_raw_call call = raw_of(f, c);

	if (enter(f, NULL) != XR_OK)
		return;
	xr_call_oneway(&call, NULL);
	agent_leave();
}

/* Of a queue XR_E_CLOSED would be that it has come to its end. */
static enum xr_status
fail_call(enum xr_status status, struct xr_error *err)
{
	if (status != XR_E_CLOSED && status != XR_E_CANCELLED)
		return status;
	return fail(err, XR_E_STATE,
		"the agent by which the queue was opened was shut down");
}

enum xr_status
far_check(const struct far_call *c, struct xr_error *err)
{
	size_t len = 0;

	if (xr_value_kind(c->answer) == XR_BYTES)
		xr_value_data(c->answer, &len);
	return len >= sizeof(struct far_answer) ?
		XR_OK :
		fail(err, XR_E_PROTO, "who serves the queue answers nonsense");
}

/* A process that was late itself, as it was stopped or had no processor, has not
 * read yet: it waits as much longer, up to FAR_LOOK_NS. */
static enum xr_status
far_await_late(struct far_call *c, int64_t until, struct xr_error *err)
{
	int64_t late = clock_now() - until;

	if (late < FAR_LATE_NS)
		return XR_E_TIMEOUT;
	return xr_future_wait(c->future,
		late < FAR_LOOK_NS ? late : FAR_LOOK_NS, &c->answer, err);
}

enum xr_status
far_await(struct far_call *c, int64_t until, struct xr_error *err)
{
	int64_t left =
		until == INT64_MAX ? XR_TIMEOUT_NEVER : future_left(until);
	enum xr_status status;

	if (c->answer != NULL)
		return XR_OK;
	status = xr_future_wait(c->future, left, &c->answer, err);
	if (status == XR_E_TIMEOUT && left > 0)
		status = far_await_late(c, until, err);
	/* It may have come since; or that is how the call ended. XR_E_AGAIN: neither. */
	if (status == XR_E_TIMEOUT)
		status = xr_future_value(c->future, &c->answer, err);
	return status == XR_OK ? far_check(c, err) : fail_call(status, err);
}

enum xr_status
far_said(const struct far_call *c, struct xr_error *err)
{
	size_t len;
	const char *data = xr_value_data(c->answer, &len);
	struct far_answer a;

	memcpy(&a, data, sizeof(a));
	if (a.status == XR_OK)
		return XR_OK;
	return fail(err, (enum xr_status)a.status, "%.*s",
		(int)(len - sizeof(a) < 200 ? len - sizeof(a) : 200),
		data + sizeof(a));
}

/* An op without items, and its answer; NULL, with @err. */
static struct far_call *
ask_for(const struct xr_queue *q, uint32_t op, struct xr_error *err)
{
	struct far_call *c = far_call_new(q, op, 0);
	enum xr_status status;

	if (c == NULL) {
		fail(err, XR_E_NOMEM, "out of memory");
		return NULL;
	}
	c->timeout = XR_TIMEOUT_DEFAULT;
	status = far_send(q->far, c, err);
	if (status == XR_OK)
		status = far_await(c, INT64_MAX, err);
	if (status == XR_OK)
		status = far_said(c, err);
	if (status == XR_OK)
		return c;
	far_call_unref(c);
	return NULL;
}

static void
tell_of(const struct xr_queue *q, uint32_t op, uint32_t count)
{
	struct far_call *c = far_call_new(q, op, 0);

	if (c == NULL)
		return;
	memcpy(c->ask + offsetof(struct far_ask, count), &count, sizeof(count));
	tell(q->far, c);
	far_call_unref(c);
}

void
far_tell(struct far *f, uint32_t op, uint64_t number)
{
	const struct xr_queue q = { .far = f, .count = f->hall.plan.lanes };
	struct far_call *c = far_call_new(&q, op, 0);

	if (c == NULL)
		return;
	memcpy(c->ask + offsetof(struct far_ask, number), &number,
		sizeof(number));
	/* The next question says so again. */
	c->timeout = op == FAR_ACK ? FAR_SLACK_NS : 0;
	tell(f, c);
	far_call_unref(c);
}

/* --- coming and going ------------------------------------------------------------------- */

static enum xr_status
find_home(struct far *f, const struct where_queue *where, struct xr_error *err)
{
	enum xr_status status;

	if (where->worker < 0)
		return fail(err, XR_E_NOTFOUND,
			"the queue is on another machine, and who has it had no agent: xr_rpc_init() comes before xr_queue_text()");
	if (agent_state() != AGENT_RUNS)
		return fail(err, XR_E_STATE,
			"the queue is on another machine: xr_rpc_init() comes first");
	status = agent_enter(err);
	if (status != XR_OK)
		return status;
	f->life = agent_self()->incarnation;
	status = xr_peer_find(NULL, where->worker, &f->home, err);
	if (status == XR_OK)
		status = xr_method_find(FAR_FUNC, &f->method, err);
	agent_leave();
	return status;
}

static enum xr_status
shape_of(struct far *f, const struct far_call *c, struct xr_error *err)
{
	size_t len;
	const char *data = xr_value_data(c->answer, &len);
	struct far_answer answer;
	struct far_shape shape;

	if (len != sizeof(answer) + sizeof(shape))
		return fail(err, XR_E_VERSION,
			"who serves the queue is of another version");
	memcpy(&answer, data, sizeof(answer));
	memcpy(&shape, data + sizeof(answer), sizeof(shape));
	f->token = answer.number;
	f->hall.plan.lanes = shape.lanes;
	f->hall.plan.kind = (enum xr_queue_kind)shape.kind;
	atomic_store(&f->roles, shape.roles);
	return XR_OK;
}

/* There is none yet that would have a token. */
static enum xr_status
attach(struct far *f, struct xr_error *err)
{
	const struct xr_queue q = { .far = f };
	size_t len = strlen(f->text);
	struct far_call *c = far_call_new(&q, FAR_ATTACH, len);
	enum xr_status status;

	if (c == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	memcpy(c->ask + sizeof(struct far_ask), f->text, len);
	c->timeout = XR_TIMEOUT_DEFAULT;
	status = far_send(f, c, err);
	if (status == XR_OK)
		status = far_await(c, INT64_MAX, err);
	if (status == XR_OK)
		status = far_said(c, err);
	if (status == XR_OK)
		status = shape_of(f, c, err);
	far_call_unref(c);
	return status;
}

static void
discard(struct far *f)
{
	struct far_call *c;

	while ((c = TAILQ_FIRST(&f->late)) != NULL) {
		TAILQ_REMOVE(&f->late, c, list);
		far_call_unref(c);
	}
	fd_close(f->fd);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

enum xr_status
far_open(const char *text, const struct where_queue *where, struct far **far,
	struct xr_error *err)
{
	struct far *f = calloc(1, sizeof(*f));
	enum xr_status status;

	if (f == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	atomic_init(&f->refs, 1);
	pthread_mutex_init(&f->lock, NULL);
	TAILQ_INIT(&f->late);
	f->fd = -1;
	snprintf(f->text, sizeof(f->text), "%s", text);
	status = find_home(f, where, err);
	if (status == XR_OK)
		status = attach(f, err);
	if (status == XR_OK)
		*far = f;
	else
		discard(f);
	return status;
}

struct far *
far_ref(struct far *f)
{
	atomic_fetch_add(&f->refs, 1);
	return f;
}

void
far_unref(struct far *f)
{
	if (atomic_fetch_sub(&f->refs, 1) == 1)
		discard(f);
}

void
far_come(struct far *f)
{
	atomic_fetch_add(&f->handles, 1);
	far_ref(f);
}

void
far_go(struct far *f)
{
	if (atomic_fetch_sub(&f->handles, 1) == 1)
		far_tell(f, FAR_DETACH, 0);
	far_unref(f);
}

/* --- asking ---------------------------------------------------------------------------- */

enum xr_status
far_may(const struct xr_queue *q, enum xr_queue_role role, struct xr_error *err)
{
	if ((atomic_load(&q->far->roles) & role) != 0)
		return XR_E_AGAIN;
	return fail(err, XR_E_STATE,
		role == XR_QUEUE_WRITER ?
			"this process is no writer of the queue" :
			"this process is no reader of the queue");
}

void
far_close(struct xr_queue *q)
{
	struct far_call *c = ask_for(q, FAR_CLOSE, NULL);

	if (c != NULL)
		far_darken(q->far, true);
	far_call_unref(c);
}

void
far_leave(struct xr_queue *q, uint32_t roles)
{
	atomic_fetch_and(&q->far->roles, ~roles);
	tell_of(q, FAR_LEAVE, roles);
}

void
far_done(struct xr_queue *q)
{
	far_tell(q->far, FAR_DONE, 0);
}

size_t
far_count(const struct xr_queue *q)
{
	struct far_call *c = ask_for(q, FAR_COUNT, NULL);
	struct far_answer a = { 0 };
	size_t len;

	if (c != NULL)
		memcpy(&a, xr_value_data(c->answer, &len), sizeof(a));
	far_call_unref(c);
	return a.count;
}

/* --- polling ---------------------------------------------------------------------------- */

/* The lock is held. */
static void
light(const struct far *f)
{
	const uint64_t one = 1;
	int saved = errno;

	if (write(f->fd, &one, sizeof(one)) == -1)
		errno = saved; /* so it is lit already */
}

static void watch(struct far *f);

/* It is lit; or, if it may be of what was got meanwhile, there is another look. */
static void
seen(struct far *f, bool has_failed)
{
	bool again;

	pthread_mutex_lock(&f->lock);
	again = f->is_stale && !has_failed;
	f->is_stale = false;
	f->is_watched = again;
	if (!again)
		light(f);
	pthread_mutex_unlock(&f->lock);
	if (again)
		watch(f);
	far_unref(f);
}

static enum xr_status
hear(struct xr_future *future, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct far_call *c = ctx;
	struct far *f = c->watched;

	(void)result;
	(void)err;
	seen(f, xr_future_value(future, NULL, NULL) != XR_OK);
	far_call_unref(c);
	return XR_OK;
}

/* is_watched is set by the caller. What fails is heard by the get that follows. */
static void
watch(struct far *f)
{
	const struct xr_queue q = { .far = f, .count = f->hall.plan.lanes };
	struct far_call *c = far_call_new(&q, FAR_WATCH, 0);
	const int64_t never = INT64_MAX;
	struct xr_future *future;

	far_ref(f);
	if (c == NULL) {
		seen(f, true);
		return;
	}
	c->watched = f;
	memcpy(c->ask + offsetof(struct far_ask, timeout), &never,
		sizeof(never));
	if (far_send(f, c, NULL) != XR_OK) {
		far_call_unref(c);
		seen(f, true);
		return;
	}
	/* Once it is heard, it is gone. */
	future = xr_future_ref(c->future);
	if (xr_future_then(future, hear, c, XR_THEN, NULL) != XR_OK) {
		far_call_unref(c);
		seen(f, true);
	}
	xr_future_unref(future);
}

void
far_darken(struct far *f, bool is_over)
{
	int saved = errno;
	uint64_t count;
	bool is_mine;

	pthread_mutex_lock(&f->lock);
	is_mine = f->fd != -1 && !f->is_over && !f->is_watched && !is_over;
	f->is_stale = f->is_watched;
	if (is_mine && read(f->fd, &count, sizeof(count)) == -1)
		errno = saved; /* it was dark */
	if (f->fd != -1 && is_over)
		light(f);
	f->is_over |= is_over;
	f->is_watched |= is_mine;
	pthread_mutex_unlock(&f->lock);
	if (is_mine)
		watch(f);
}

enum xr_status
far_fd(struct xr_queue *q, int *fd, struct xr_error *err)
{
	struct far *f = q->far;
	bool is_first;

	pthread_mutex_lock(&f->lock);
	is_first = f->fd == -1;
	if (is_first)
		f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*fd = f->fd;
	pthread_mutex_unlock(&f->lock);
	if (*fd == -1)
		return fail(err, XR_E_SYS, "eventfd: %s", strerror(errno));
	/* What there is at once is lit at once. */
	if (is_first && far_count(q) > 0) {
		pthread_mutex_lock(&f->lock);
		light(f);
		pthread_mutex_unlock(&f->lock);
	} else if (is_first) {
		far_darken(f, false);
	}
	return XR_OK;
}
