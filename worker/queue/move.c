/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - items into a queue and out of it, with waiting; see queue_inner.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/queue/far/far.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/trail.h"
#include "worker/queue/user.h"
#include "worker/queue/vigil.h"

/* --- who may ------------------------------------------------------------------------- */

/* Of XR_QUEUE_P2P each end of a lane has one process, until that is gone. */
static enum xr_status
take_end(struct hall *h, _Atomic uint32_t *end, uint32_t who,
	struct xr_error *err)
{
	uint32_t has = atomic_load_explicit(end, memory_order_relaxed);
	char text[USER_TEXT];

	if (has == who)
		return XR_OK;
	for (int turn = 0; turn < 2; turn++) {
		has = 0;
		if (atomic_compare_exchange_strong(end, &has, who))
			return XR_OK;
		user_check(h, has);
	}
	user_text(h, has, text);
	return fail(err, XR_E_EXISTS, "%s has this end of the queue already",
		text);
}

/* XR_E_AGAIN: it may, and the queue is of another machine. */
static enum xr_status
may_begin(struct xr_queue *q, enum xr_queue_role role, struct xr_error *err)
{
	if (q == NULL)
		return fail(err, XR_E_INVAL, "the queue is NULL");
	if (hall_has(q->hall, role))
		return XR_OK;
	if (q->far != NULL)
		return far_may(q, role, err);
	return fail(err, XR_E_STATE,
		role == XR_QUEUE_WRITER ?
			"this process is no writer of the queue" :
			"this process is no reader of the queue");
}

/* The same; resolves @timeout. */
static enum xr_status
move_may_wait(struct xr_queue *q, enum xr_queue_role role, int64_t *timeout,
	struct xr_error *err)
{
	if (*timeout < 0 &&
		timeout_argument(timeout, XR_TIMEOUT_NEVER, err) != XR_OK)
		return XR_E_INVAL;
	return may_begin(q, role, err);
}

/* --- in ------------------------------------------------------------------------------- */

struct giving {
	struct xr_queue *q;
	uint32_t who;
	struct spell spell;
	uint32_t fresh; /* put, and nobody was woken for it yet */
};

static void
tell(struct giving *g)
{
	struct hall *h = g->q->hall;

	if (g->fresh == 0)
		return;
	/* Of lanes anybody may wait for another one. */
	wake_ring(&h->head->items_wake,
		h->plan.lanes > 1 ? UINT32_MAX : g->fresh);
	hall_light(h);
	g->fresh = 0;
}

/* Into the next lane that has room. */
static enum xr_status
give_once(struct giving *g, struct letter *letter, struct xr_error *err)
{
	struct xr_queue *q = g->q;
	uint32_t at = atomic_load_explicit(&q->put_at, memory_order_relaxed);
	enum xr_status status = XR_E_AGAIN;

	for (uint32_t n = 0; n < q->count; n++) {
		struct lane *lane =
			&q->hall->lane[q->first + (at + n) % q->count];

		if (q->hall->plan.kind == XR_QUEUE_P2P)
			status = take_end(q->hall, &lane->ends->writer, g->who,
				err);
		if (status != XR_OK && status != XR_E_AGAIN)
			return status;
		status = lane_put(q->hall, lane, g->who, letter, &g->spell.met);
		if (status == XR_E_AGAIN)
			continue;
		if (status == XR_OK && q->count > 1)
			atomic_store_explicit(&q->put_at,
				(at + n + 1) % q->count, memory_order_relaxed);
		return status;
	}
	return XR_E_AGAIN;
}

/* What it waits for: a cell, or memory. Who was woken for a cell, and has no memory for it,
 * leaves it to another. */
static void
choose_wake(struct giving *g)
{
	struct hall_head *head = g->q->hall->head;
	struct wake *wake =
		g->spell.met.is_memory ? &head->memory_wake : &head->space_wake;

	if (g->spell.wake == wake)
		return;
	if (g->spell.met.is_memory)
		wake_ring(&head->space_wake, 1);
	g->spell.wake = wake;
	g->spell.armed = false;
}

static enum xr_status
give(struct giving *g, struct letter *letter, struct xr_error *err)
{
	enum xr_status status;

	while ((status = give_once(g, letter, err)) == XR_E_AGAIN) {
		tell(g);
		choose_wake(g);
		status = spell_turn(&g->spell, err);
		if (status != XR_OK)
			break;
	}
	if (status == XR_OK)
		g->fresh++;
	else
		lane_unpack(g->q->hall, letter);
	if (status == XR_E_CLOSED)
		fail(err, status, "the queue is closed");
	else if (status == XR_E_RANGE)
		fail(err, status, "%zu bytes are too long for a queue",
			letter->len);
	else if (status == XR_E_PROTO)
		fail(err, status, "a queue that somebody has damaged");
	else if (status == XR_E_SYS && errno == EFBIG)
		fail(err, status, "an item of a queue: %s", strerror(errno));
	return status;
}

/* Of XR_QUEUE_P2P, when it was closed meanwhile: what its reader has not got, and will not,
 * was not put. Of the letters from @first on. */
static bool
withdraw(struct giving *g, struct letter *letters, size_t first, size_t *count)
{
	size_t all = *count;

	for (size_t i = all; i-- > first;)
		if (lane_withdraw(g->q->hall, &letters[i]))
			*count = i;
	return *count < all;
}

/* All is told; and with one to one nothing is late. What tells is a fence behind it. */
static enum xr_status
settle(struct giving *g, struct letter *letters, size_t first, size_t *count,
	struct xr_error *err)
{
	const struct hall *h = g->q->hall;

	tell(g);
	if (h->plan.kind != XR_QUEUE_P2P || *count == first ||
		__builtin_expect(atomic_load_explicit(&h->head->end,
					 memory_order_relaxed) == HALL_OPEN,
			true) ||
		letters->is_offer || !withdraw(g, letters, first, count))
		return XR_OK;
	return fail(err, XR_E_CLOSED, "the queue is closed");
}

/* Of several lanes each may have a reader of its own, and what is put into one of them must not
 * be got when what was before it is not. */
static bool
settles_each(const struct xr_queue *q)
{
	return q->hall->plan.kind == XR_QUEUE_P2P && q->count > 1;
}

enum xr_status
give_all(struct xr_queue *q, struct letter *letters, size_t *count,
	int64_t timeout, struct xr_error *err)
{
	struct giving g = { .q = q };
	size_t want = *count, first = 0;
	enum xr_status status =
		move_may_wait(q, XR_QUEUE_WRITER, &timeout, err);

	if (status == XR_E_AGAIN)
		return far_give(q, letters, count, timeout, err);
	*count = 0;
	if (status == XR_OK)
		status = user_self(q->hall, &g.who, err);
	if (status != XR_OK)
		return status;
	spell_init(&g.spell, q->hall, &q->hall->head->space_wake, timeout);
	while (*count < want && status == XR_OK) {
		if (settles_each(q))
			status = settle(&g, letters, first, count, err);
		first = settles_each(q) ? *count : 0;
		if (status == XR_OK)
			status = give(&g, &letters[*count], err);
		if (status == XR_OK)
			++*count;
	}
	if (settle(&g, letters, first, count, err) != XR_OK)
		status = XR_E_CLOSED;
	spell_end(&g.spell);
	if (*count > 0)
		trail_moved(q->hall);
	return status;
}

/* --- out ------------------------------------------------------------------------------ */

struct taking {
	struct xr_queue *q;
	uint32_t who;
	struct taker *takers; /* [want] */
	size_t want, count;
	struct lane_met met;
};

/* What of one lane can be had. */
static enum xr_status
take_of(struct taking *t, struct lane *lane, struct xr_error *err)
{
	struct hall *h = t->q->hall;
	enum xr_status status = XR_OK;

	if (h->plan.kind == XR_QUEUE_P2P)
		status = take_end(h, &lane->ends->reader, t->who, err);
	while (status == XR_OK && t->count < t->want) {
		struct taker *taker = &t->takers[t->count];

		taker->who = t->who;
		status = lane_get(h, lane, taker, &t->met);
		if (status == XR_OK)
			t->count++;
	}
	return status;
}

/* From those that have something, in turn. What was got counts, whatever came after it. */
static enum xr_status
take_once(struct taking *t, struct lane_met *met, struct xr_error *err)
{
	struct xr_queue *q = t->q;
	uint32_t at = atomic_load_explicit(&q->get_at, memory_order_relaxed);

	*met = (struct lane_met){ 0 };
	for (uint32_t n = 0; n < q->count && t->count < t->want; n++) {
		uint32_t i = (at + n) % q->count;
		size_t before = t->count;
		enum xr_status status =
			take_of(t, &q->hall->lane[q->first + i], err);

		if (t->count > before && q->count > 1)
			atomic_store_explicit(&q->get_at, (i + 1) % q->count,
				memory_order_relaxed);
		if (t->met.is_coming)
			*met = t->met;
		if (status != XR_OK && status != XR_E_AGAIN && t->count == 0)
			return status;
	}
	return t->count > 0 ? XR_OK : XR_E_AGAIN;
}

/* Who polls is told when there is nothing; what came in between is told again, as is the
 * end of who came meanwhile. */
static enum xr_status
darken(struct xr_queue *q, enum xr_status status, struct xr_error *err)
{
	struct hall *h = q->hall;

	if (atomic_load_explicit(&h->head->polled, memory_order_relaxed) == 0)
		return status;
	hall_darken(h);
	if (vigil_follow(h, err) != XR_OK)
		return XR_E_SYS;
	for (uint32_t i = 0; i < h->plan.lanes; i++)
		if (!lane_is_empty(h, &h->lane[i]))
			hall_light(h);
	return status;
}

/* Whether it is closed is asked first: what was put before that is there. */
static bool
is_over(const struct hall *h)
{
	bool is = atomic_load(&h->head->end) != HALL_OPEN;

	if (is)
		atomic_thread_fence(memory_order_seq_cst);
	return is;
}

/* It is closed, and nothing is there. False: so it was before. */
static bool
shut(const struct xr_queue *q)
{
	bool is_new = false;

	for (uint32_t i = 0; i < q->count; i++)
		if (q->hall->plan.kind == XR_QUEUE_P2P &&
			lane_shut(&q->hall->lane[q->first + i]))
			is_new = true;
	return is_new;
}

static enum xr_status
take(struct taking *t, struct spell *s, struct xr_error *err)
{
	enum xr_status status;

	for (;;) {
		bool ends = is_over(t->q->hall);

		status = take_once(t, &s->met, err);
		if (status != XR_E_AGAIN)
			return status;
		ends = ends && !s->met.is_coming;
		if (ends && shut(t->q))
			continue;
		if (ends)
			return fail(err, XR_E_CLOSED,
				"the queue is closed, and empty");
		status = spell_turn(s, err);
		if (status != XR_OK)
			break;
	}
	return status == XR_E_TIMEOUT ? darken(t->q, status, err) : status;
}

enum xr_status
take_said(enum xr_status status, const struct taker *first,
	struct xr_error *err)
{
	if (status == XR_E_RANGE)
		return fail(err, status, "an item of %zu bytes does not fit",
			first->buf->len);
	if (status == XR_E_NOMEM)
		return fail(err, status, "out of memory");
	return status;
}

static enum xr_status
say(enum xr_status status, const struct taking *t, struct xr_error *err)
{
	if (status == XR_E_PROTO)
		return fail(err, status, "a queue that somebody has damaged");
	return take_said(status, t->takers, err);
}

/* Others may put as many. */
static void
tell_room(const struct xr_queue *q, size_t count)
{
	if (count > 0)
		wake_ring(&q->hall->head->space_wake,
			q->hall->plan.lanes > 1 ? UINT32_MAX : (uint32_t)count);
}

enum xr_status
take_now(struct xr_queue *q, struct taker *takers, size_t *count,
	struct xr_error *err)
{
	struct taking t = { .q = q, .takers = takers, .want = *count };
	enum xr_status status = may_begin(q, XR_QUEUE_READER, err);
	struct lane_met met;

	*count = 0;
	if (status == XR_OK)
		status = user_self(q->hall, &t.who, err);
	if (status != XR_OK)
		return status;
	status = take_once(&t, &met, err);
	*count = t.count;
	tell_room(q, t.count);
	if (t.count > 0)
		trail_moved(q->hall);
	return status;
}

enum xr_status
take_some(struct xr_queue *q, struct taker *takers, size_t *count,
	int64_t timeout, struct xr_error *err)
{
	struct taking t = { .q = q, .takers = takers, .want = *count };
	enum xr_status status =
		move_may_wait(q, XR_QUEUE_READER, &timeout, err);
	struct spell s;

	if (status == XR_E_AGAIN)
		return far_take(q, takers, count, timeout, err);
	*count = 0;
	if (status == XR_OK)
		status = user_self(q->hall, &t.who, err);
	if (status != XR_OK || t.want == 0)
		return status;
	spell_init(&s, q->hall, &q->hall->head->items_wake, timeout);
	status = say(take(&t, &s, err), &t, err);
	spell_end(&s);
	*count = t.count;
	/* It stays, for one who may be asleep. */
	if (status == XR_E_RANGE || status == XR_E_NOMEM)
		wake_ring(&q->hall->head->items_wake, 1);
	tell_room(q, t.count);
	if (t.count > 0)
		trail_moved(q->hall);
	return status;
}
