/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ward.c - see ward.h: who has queues of ours, and what they ask.
 *
 * Whatever comes is checked before it is believed: a token that nobody has, lengths that
 * are not there, lanes that the queue has not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include <xrun/func.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/queue/far/ward.h"
#include "worker/queue/far/ward_inner.h"
#include "worker/queue/far/wire.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/serve_inner.h"

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(ward_list, ward) all;
	uint64_t token; /* the last */
} wards = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- coming and going -------------------------------------------------------------------- */

static struct ward *
ward_find(const struct peer *peer, uint64_t token)
{
	struct ward *w;

	pthread_mutex_lock(&wards.lock);
	LIST_FOREACH(w, &wards.all, list)
	if (w->token == token && w->peer == peer)
		break;
	if (w != NULL)
		atomic_fetch_add(&w->refs, 1);
	pthread_mutex_unlock(&wards.lock);
	return w;
}

void
ward_unref(struct ward *w)
{
	struct ward_offer *o;
	struct ward_held *h;

	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	while ((o = LIST_FIRST(&w->offers)) != NULL)
		ward_decide(w, o->number, false);
	/* What was sent to one who is gone may have come: nobody gets it twice. */
	if (!w->queue->hall->plan.redeliver)
		xr_queue_done(w->queue);
	while ((h = LIST_FIRST(&w->held)) != NULL) {
		LIST_REMOVE(h, list);
		free(h);
	}
	xr_queue_free(w->queue);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void
bury(struct porter_job *job)
{
	ward_unref((struct ward *)((char *)job - offsetof(struct ward, job)));
}

/* Whoever waits for it is told to go; the lock is held no more. To free it may take
 * a while. */
static void
dismiss(struct ward *w)
{
	atomic_store(&w->queue->hall->is_quit, true);
	hall_wake(w->queue->hall);
	w->job.run = bury;
	if (!porter_post(&w->job))
		bury(&w->job);
}

/* One of them that is @peer's, or anybody's; not listed any more. */
static struct ward *
take_off(const struct peer *peer, uint64_t token)
{
	struct ward *w;

	pthread_mutex_lock(&wards.lock);
	LIST_FOREACH(w, &wards.all, list)
	if ((peer == NULL || w->peer == peer) &&
		(token == 0 || w->token == token))
		break;
	if (w != NULL)
		LIST_REMOVE(w, list);
	pthread_mutex_unlock(&wards.lock);
	return w;
}

static void
on_lost(struct peer *peer)
{
	struct ward *w;

	while ((w = take_off(peer, 0)) != NULL)
		dismiss(w);
}

static void
on_closed(void)
{
	on_lost(NULL);
}

/* The first is a number that nobody guesses by mistake. */
static void
enlist(struct ward *w)
{
	pthread_mutex_lock(&wards.lock);
	if (wards.token == 0 &&
		getrandom(&wards.token, sizeof(wards.token), 0) == -1)
		wards.token = (uint64_t)clock_now();
	w->token = ++wards.token;
	LIST_INSERT_HEAD(&wards.all, w, list);
	pthread_mutex_unlock(&wards.lock);
}

/* --- what is on its way ------------------------------------------------------------------- */

/* With XR_QUEUE_P2P nothing was kept. */
void
ward_pass(struct ward *w, const struct taker *taker)
{
	struct hall *h = w->queue->hall;

	if (!h->plan.redeliver && taker->hand.lane != NULL)
		hall_settle(h, &taker->hand, false);
}

uint64_t
ward_hold(struct ward *w, const struct taker *takers, size_t count)
{
	struct ward_held *held =
		malloc(sizeof(*held) + count * sizeof(held->hand[0]));

	if (held == NULL)
		return 0;
	held->count = count;
	for (size_t i = 0; i < count; i++)
		held->hand[i] = takers[i].hand;
	pthread_mutex_lock(&w->lock);
	held->number = ++w->number;
	LIST_INSERT_HEAD(&w->held, held, list);
	pthread_mutex_unlock(&w->lock);
	return held->number;
}

/* The last first: each is before those that were given back. */
void
ward_settle(struct ward *w, uint64_t number, bool is_back)
{
	struct hall *hall = w->queue->hall;
	struct ward_held *h;

	pthread_mutex_lock(&w->lock);
	LIST_FOREACH(h, &w->held, list)
	if (h->number == number)
		break;
	if (h != NULL)
		LIST_REMOVE(h, list);
	pthread_mutex_unlock(&w->lock);
	if (h == NULL)
		return;
	for (size_t i = h->count; i > 0; i--)
		if (is_back || !hall->plan.redeliver)
			hall_settle(hall, &h->hand[i - 1], is_back);
	free(h);
}

/* --- what may be put ---------------------------------------------------------------------- */

uint64_t
ward_offer(struct ward *w, struct ward_offer *offer)
{
	pthread_mutex_lock(&w->lock);
	offer->number = ++w->number;
	LIST_INSERT_HEAD(&w->offers, offer, list);
	pthread_mutex_unlock(&w->lock);
	return offer->number;
}

/* Who waits for what was to come looks again, whatever it came to. */
void
ward_decide(struct ward *w, uint64_t number, bool is_put)
{
	struct hall *h = w->queue->hall;
	uint32_t wakes = UINT32_MAX;
	struct ward_offer *o;

	pthread_mutex_lock(&w->lock);
	LIST_FOREACH(o, &w->offers, list)
	if (o->number == number)
		break;
	if (o != NULL)
		LIST_REMOVE(o, list);
	pthread_mutex_unlock(&w->lock);
	if (o == NULL)
		return;
	for (size_t i = 0; i < o->count; i++)
		(is_put ? lane_return : lane_release)(h, o->hand[i].lane,
			o->hand[i].ticket);
	if (is_put && h->plan.lanes == 1 &&
		atomic_load(&h->head->end) == HALL_OPEN)
		wakes = (uint32_t)o->count;
	wake_ring(&h->head->items_wake, wakes);
	if (is_put)
		hall_light(h);
	else
		wake_ring(&h->head->space_wake, UINT32_MAX);
	free(o);
}

/* --- answering ---------------------------------------------------------------------------- */

void
ward_answer(struct xr_call *call, enum xr_status status, uint32_t count,
	const struct xr_error *err)
{
	struct {
		struct far_answer a;
		char text[sizeof(err->text)];
	} whole = { .a = { .status = (int32_t)status, .count = count } };
	size_t len = 0;

	if (status != XR_OK && err != NULL) {
		len = strlen(err->text);
		memcpy(whole.text, err->text, len);
	}
	xr_reply_bytes(call, &whole, sizeof(whole.a) + len);
}

static void
refuse(struct xr_call *call, enum xr_status status, const char *why)
{
	struct xr_error err = { 0 };

	fail(&err, status, "%s", why);
	ward_answer(call, status, 0, &err);
}

static enum xr_status
attach(struct xr_call *call, const char *text, size_t len)
{
	struct {
		struct far_answer a;
		struct far_shape shape;
	} whole = { 0 };
	struct ward *w = calloc(1, sizeof(*w));
	char copy[XR_QUEUE_TEXT_MAX] = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status = XR_E_NOMEM;

	if (len < sizeof(copy))
		memcpy(copy, text, len);
	if (w != NULL)
		status = queue_open_own(copy, &w->queue, &err);
	if (status != XR_OK) {
		free(w);
		ward_answer(call, status, 0, &err);
		return XR_OK;
	}
	atomic_init(&w->refs, 1);
	w->peer = call->peer;
	pthread_mutex_init(&w->lock, NULL);
	w->queue->hall->is_ward = true;
	snprintf(w->queue->hall->name, USER_NAME, "%.*s", USER_NAME - 1,
		w->peer->name);
	w->queue->hall->keeps = w->queue->hall->plan.kind != XR_QUEUE_P2P;
	/* Before it takes anything that it might give back. */
	atomic_store(&w->queue->hall->head->returns, 1);
	enlist(w);
	whole.a.number = w->token;
	whole.shape.lanes = w->queue->count;
	whole.shape.kind = w->queue->hall->plan.kind;
	whole.shape.roles = atomic_load(&w->queue->hall->roles);
	xr_reply_bytes(call, &whole, sizeof(whole));
	return XR_OK;
}

/* --- asking --------------------------------------------------------------------------------- */

static void
leave(struct ward *w, const struct far_ask *ask)
{
	xr_queue_leave(w->queue, ask->count);
}

static void
detach(struct ward *w)
{
	struct ward *it = take_off(w->peer, w->token);

	if (it != NULL)
		dismiss(it);
}

/* What needs no waiting; false: it does, or may. */
static bool
serve_simple(struct xr_call *call, struct ward *w, const struct far_ask *ask)
{
	struct xr_queue lane = ward_lane(w, ask);

	switch (ask->op) {
	case FAR_COUNT:
		/* Nothing may be left, whatever the ends say. */
		ward_answer(call, XR_OK,
			xr_queue_empty(&lane) ? 0 :
						(uint32_t)xr_queue_count(&lane),
			NULL);
		return true;
	case FAR_CLOSE:
		xr_queue_close(w->queue);
		break;
	case FAR_COMMIT:
		ward_decide(w, ask->number, true);
		break;
	case FAR_REVOKE:
		ward_decide(w, ask->number, false);
		break;
	case FAR_RETURN:
		ward_settle(w, ask->number, true);
		break;
	case FAR_ACK:
		ward_settle(w, ask->number, false);
		break;
	case FAR_LEAVE:
		leave(w, ask);
		break;
	case FAR_DONE:
		xr_queue_done(w->queue);
		break;
	case FAR_DETACH:
		detach(w);
		break;
	default:
		return false;
	}
	ward_answer(call, XR_OK, 0, NULL);
	return true;
}

static enum xr_status
serve(struct xr_call *call, const void *data, size_t len, void *unused)
{
	const uint8_t *rest = (const uint8_t *)data + sizeof(struct far_ask);
	struct far_ask ask;
	struct ward *w;

	(void)unused;
	if (len < sizeof(ask)) {
		refuse(call, XR_E_PROTO, "that asks nothing of a queue");
		return XR_OK;
	}
	memcpy(&ask, data, sizeof(ask));
	len -= sizeof(ask);
	if (ask.op == FAR_ATTACH)
		return attach(call, (const char *)rest, len);
	w = ward_find(call->peer, ask.token);
	if (w == NULL) {
		refuse(call, XR_E_PEER_LOST,
			"who served the queue took this process for gone");
		return XR_OK;
	}
	if (ask.acked != 0)
		ward_settle(w, ask.acked, false);
	if (!ward_has_lanes(w, &ask))
		refuse(call, XR_E_RANGE, "the queue has no such lane");
	else if (!serve_simple(call, w, &ask))
		errand_begin(call, w, &ask, (struct xr_part){ rest, len });
	ward_unref(w);
	return XR_OK;
}

static const struct guest guest = { .lost = on_lost, .closed = on_closed };

enum xr_status
ward_serve(int *worker, struct xr_error *err)
{
	static const struct xr_func func = { .size = sizeof(func),
		.name = FAR_FUNC,
		.flags = XR_FN_SHORT,
		.raw = serve };
	struct xr_error why = { 0 };
	enum xr_status status;

	*worker = -1;
	if (agent_state() != AGENT_RUNS || agent_enter(NULL) != XR_OK)
		return XR_OK;
	*worker = (int)agent_self()->id;
	agent_leave();
	guest_set(&guest);
	status = xr_fn_register(&func, &why);
	return status == XR_OK || status == XR_E_EXISTS ?
		XR_OK :
		fail(err, status, "%s", why.text);
}
