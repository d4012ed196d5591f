/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - see far.h: what came, or is to come, for a get that has gone on.
 *
 * It is listed until another get takes it, or it was given back. A get that finds that it
 * is being given back waits for that: what is behind it was put later.
 */
#include <stddef.h>
#include <string.h>

#include <xrun/future.h>

#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"

static bool
is_of(const struct far_call *c, const struct xr_queue *q)
{
	struct far_ask ask;

	memcpy(&ask, c->ask, sizeof(ask));
	return ask.first == q->first && ask.lanes == q->count;
}

struct far_call *
late_pop(const struct xr_queue *q)
{
	struct far *f = q->far;
	struct far_call *c;

	pthread_mutex_lock(&f->lock);
	TAILQ_FOREACH(c, &f->late, list)
	if (is_of(c, q))
		break;
	if (c != NULL) {
		TAILQ_REMOVE(&f->late, c, list);
		c->is_listed = false;
	}
	pthread_mutex_unlock(&f->lock);
	return c;
}

/* False: somebody has taken it. */
static bool
unlist(struct far *f, struct far_call *c)
{
	bool was;

	pthread_mutex_lock(&f->lock);
	was = c->is_listed;
	if (was)
		TAILQ_REMOVE(&f->late, c, list);
	c->is_listed = false;
	pthread_mutex_unlock(&f->lock);
	return was;
}

/* --- giving back ------------------------------------------------------------------------- */

/* NULL: no memory, or nothing to be given back. */
static struct far_call *
return_of(const struct far_call *c, const struct xr_queue *q)
{
	struct far_answer a = { 0 };
	struct far_call *back;
	size_t len = 0;

	if (xr_value_kind(c->answer) == XR_BYTES)
		xr_value_data(c->answer, &len);
	if (len >= sizeof(a))
		memcpy(&a, xr_value_data(c->answer, &len), sizeof(a));
	if (a.status != XR_OK || a.number == 0)
		return NULL;
	back = far_call_new(q, FAR_RETURN, 0);
	if (back != NULL)
		memcpy(back->ask + offsetof(struct far_ask, number), &a.number,
			sizeof(a.number));
	return back;
}

void
late_return(const struct xr_queue *q, const struct far_call *c, int64_t until)
{
	struct far_call *back = return_of(c, q);

	if (back != NULL && far_send(q->far, back, NULL) == XR_OK)
		far_await(back, until, NULL);
	far_call_unref(back);
}

bool
late_is_back(struct far_call *c, int64_t until)
{
	return far_await(c->back, until, NULL) != XR_E_AGAIN;
}

static enum xr_status
hear_back(struct xr_future *future, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct far_call *c = ctx;

	(void)future;
	(void)result;
	(void)err;
	if (unlist(c->far, c))
		far_call_unref(c);
	far_call_unref(c);
	return XR_OK;
}

/* It has an answer, and nobody waits for it: @c->back gives back what that has. False:
 * there is nothing. */
static bool
begin_back(struct far *f, struct far_call *c)
{
	const struct xr_queue q = { .far = f, .count = f->hall.plan.lanes };
	bool is_ours;

	pthread_mutex_lock(&f->lock);
	is_ours = c->is_listed && c->back == NULL;
	if (is_ours && c->answer == NULL)
		xr_future_value(c->future, &c->answer, NULL);
	if (is_ours && c->answer != NULL)
		c->back = return_of(c, &q);
	if (is_ours && c->back != NULL && far_send(f, c->back, NULL) != XR_OK) {
		far_call_unref(c->back);
		c->back = NULL;
	}
	is_ours = is_ours && c->back == NULL;
	pthread_mutex_unlock(&f->lock);
	return !is_ours;
}

static void
give_back(struct far *f, struct far_call *c)
{
	struct xr_future *future;

	if (!begin_back(f, c)) {
		if (unlist(f, c))
			far_call_unref(c);
		return;
	}
	pthread_mutex_lock(&f->lock);
	future = c->back != NULL && !c->is_told ?
		xr_future_ref(c->back->future) :
		NULL;
	c->is_told |= future != NULL;
	pthread_mutex_unlock(&f->lock);
	if (future == NULL)
		return;
	atomic_fetch_add(&c->refs, 1);
	if (xr_future_then(future, hear_back, c, XR_THEN, NULL) != XR_OK)
		far_call_unref(c);
	xr_future_unref(future);
}

static enum xr_status
hear_late(struct xr_future *future, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct far_call *c = ctx;

	(void)future;
	(void)result;
	(void)err;
	give_back(c->far, c);
	far_call_unref(c);
	return XR_OK;
}

/* --- being late ---------------------------------------------------------------------------- */

static void
listen(struct far_call *c)
{
	atomic_fetch_add(&c->refs, 1);
	if (xr_future_then(c->future, hear_late, c, XR_THEN, NULL) != XR_OK)
		far_call_unref(c);
}

/* What nobody else can have stays, and is no reason for anything to stay. */
void
late_push(const struct xr_queue *q, struct far_call *c)
{
	struct far *f = q->far;
	bool is_kept = c->is_kept || f->hall.plan.kind == XR_QUEUE_P2P;
	bool is_new = !is_kept && c->far == NULL;

	c->is_late = true;
	if (is_new) {
		far_come(f);
		c->far = f;
	}
	atomic_fetch_add(&c->refs, 1); /* ours, while it may be anybody's */
	pthread_mutex_lock(&f->lock);
	TAILQ_INSERT_HEAD(&f->late, c, list);
	c->is_listed = true;
	pthread_mutex_unlock(&f->lock);
	if (is_new)
		listen(c);
	else if (!is_kept && xr_future_done(c->future))
		give_back(f, c);
	far_call_unref(c);
}
