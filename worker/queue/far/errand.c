/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errand.c - what is asked from afar and may have to wait; see ward.h.
 *
 * All is tried at once, by the thread that reads. If that was too early, and there is time,
 * one of the porters does the same, with all the time that is left.
 */
#include <stdlib.h>
#include <string.h>

#include <xrun/func.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/queue/far/ward_inner.h"
#include "worker/queue/user.h"

struct errand {
	struct porter_job job;
	struct ward *ward;
	struct xr_queue *queue; /* the ward's, or: */
	struct xr_queue lane;
	struct xr_call *call;
	struct far_ask ask;
	struct xr_part rest;
	void *own;   /* what @rest lies in, once it is deferred */
	size_t done; /* items that were put */
	int64_t deadline;
	struct xr_error err;
};

/* --- in ------------------------------------------------------------------------------- */

/* The letters of what came; false: that is none. */
static bool
read_letters(const struct errand *e, struct letter *letters,
	struct xr_part *parts)
{
	const uint8_t *at = e->rest.data;
	size_t count = e->ask.count, left = e->rest.len;
	const uint8_t *body = at + count * sizeof(struct far_item);

	left -= count * sizeof(struct far_item);
	for (size_t i = 0; i < count; i++) {
		struct far_item item;

		memcpy(&item, at + i * sizeof(item), sizeof(item));
		if (item.len > left || item.kind > CELL_VALUE)
			return false;
		parts[i] = (struct xr_part){ body, item.len };
		letters[i] = (struct letter){ .parts = &parts[i],
			.count = 1,
			.len = item.len,
			.kind = (enum cell_kind)item.kind };
		body += item.len;
		left -= item.len;
	}
	return left == 0;
}

/* XR_E_TIMEOUT: not all in time. */
static enum xr_status
put(struct errand *e, struct letter *letters, int64_t timeout)
{
	size_t count = e->ask.count - e->done;
	enum xr_status status =
		give_all(e->queue, letters + e->done, &count, timeout, &e->err);

	e->done += count;
	return status;
}

/* Room for one, and for as many more as there is now: nobody gets the first to make room
 * for another before they are put. XR_E_TIMEOUT: for none; else it is answered. */
static enum xr_status
offer(struct errand *e, struct letter *letters, int64_t timeout)
{
	size_t all = e->ask.count, first = all > 0, more = all - first;
	struct far_answer a = { 0 };
	struct ward_offer *o =
		malloc(sizeof(*o) + all * sizeof(struct hall_hand));
	enum xr_status status;

	if (o == NULL)
		return fail(&e->err, XR_E_NOMEM, "out of memory");
	for (size_t i = 0; i < all; i++)
		letters[i].is_offer = true;
	status = give_all(e->queue, letters, &first, timeout, &e->err);
	if (status != XR_OK) {
		free(o);
		return status;
	}
	if (more > 0)
		give_all(e->queue, letters + first, &more, 0, NULL);
	o->count = first + more;
	for (size_t i = 0; i < o->count; i++)
		o->hand[i] = (struct hall_hand){ letters[i].lane,
			letters[i].ticket };
	a.count = (uint32_t)o->count;
	a.number = ward_offer(e->ward, o);
	xr_reply_bytes(e->call, &a, sizeof(a));
	return XR_OK;
}

static enum xr_status
bring(struct errand *e, int64_t timeout)
{
	size_t count = e->ask.count;
	struct letter *letters = calloc(count + 1, sizeof(*letters));
	struct xr_part *parts = calloc(count + 1, sizeof(*parts));
	enum xr_status status;

	if (letters == NULL || parts == NULL)
		status = fail(&e->err, XR_E_NOMEM, "out of memory");
	else if (!read_letters(e, letters, parts))
		status = fail(&e->err, XR_E_PROTO, "those are no items");
	else if (e->ask.op == FAR_OFFER)
		status = offer(e, letters, timeout);
	else
		status = put(e, letters, timeout);
	free(letters);
	free(parts);
	return status;
}

/* --- out ------------------------------------------------------------------------------ */

/* Items on their way to an answer. */
struct basket {
	struct taker *takers; /* [room] */
	struct got *gots;     /* [room] */
	size_t room, count;
	size_t taken; /* from the queue; sort_out() may leave some out of @count */
	uint64_t number; /* struct far_answer's */
	uint8_t *whole;  /* the answer, of @len bytes */
	size_t len;
};

static void
basket_free(struct basket *b)
{
	for (size_t i = 0; b->takers != NULL && i < b->room; i++)
		free(b->takers[i].made);
	free(b->whole);
	free(b->takers);
	free(b->gots);
}

/* taker.over of item @i: the client has room for fewer bytes; 0: it has for any. */
static uint64_t
errand_over(const struct errand *e, size_t i)
{
	uint64_t room;

	memcpy(&room, (const uint8_t *)e->rest.data + i * sizeof(room),
		sizeof(room));
	return room == FAR_ANY_ROOM ? 0 : room + 1;
}

/* The same for all items together: the client has no time for so many bytes. */
static uint64_t
errand_limit(const struct errand *e)
{
	if (e->ask.timeout == INT64_MAX)
		return 0;
	return (e->ask.number > FAR_SHORT ? e->ask.number : FAR_SHORT) + 1;
}

/* No more than there can be at a time. */
static bool
basket_new(const struct errand *e, struct basket *b)
{
	uint64_t most = (uint64_t)e->queue->hall->plan.items * e->queue->count;

	b->room = e->ask.count < most ? e->ask.count : (size_t)most;
	b->takers = calloc(b->room + 1, sizeof(*b->takers));
	b->gots = calloc(b->room + 1, sizeof(*b->gots));
	if (b->takers == NULL || b->gots == NULL)
		return false;
	for (size_t i = 0; i < b->room; i++) {
		got_prepare(&b->takers[i], &b->gots[i]);
		b->takers[i].over = errand_over(e, i);
	}
	return true;
}

/* One item, of fewer than @limit bytes. The first may be waited for. */
static enum xr_status
basket_take(struct errand *e, struct basket *b, uint64_t limit, int64_t timeout)
{
	struct taker *t = &b->takers[b->count];
	uint64_t over = t->over;
	enum xr_status status;
	size_t one = 1;

	if (over == 0 || limit < over)
		t->over = limit;
	status = b->count == 0 ?
		take_some(e->queue, t, &one, timeout, &e->err) :
		take_now(e->queue, t, &one, NULL);
	t->over = over;
	return status;
}

/* The first item, and others that are there and that the client has time for. Each has fewer
 * bytes than are left of the limit, so that there is always one left. */
static enum xr_status
basket_fill(struct errand *e, struct basket *b, int64_t timeout)
{
	uint64_t limit = errand_limit(e), len = 0;
	enum xr_status status = XR_OK;

	if (limit == 0) {
		b->count = b->room;
		return take_some(e->queue, b->takers, &b->count, timeout,
			&e->err);
	}
	while (b->count < b->room && status == XR_OK) {
		status = basket_take(e, b, limit - len, timeout);
		if (status == XR_OK)
			len += b->gots[b->count++].buf.len;
	}
	return b->count > 0 ? XR_OK : status;
}

static size_t
basket_len(const struct basket *b)
{
	size_t len = 0;

	for (size_t i = 0; i < b->count; i++)
		len += b->gots[i].buf.len;
	return len;
}

/* What was put by reference goes as a copy. */
static enum xr_status
copy_shared(struct errand *e, struct taker *t, struct got *g)
{
	const struct xr_enc_opts opts = { .size = sizeof(opts),
		.mode = XR_ENC_COPY };
	struct xr_encoded *encoded = NULL;
	struct xr_value *value = NULL;
	const struct xr_part *parts;
	enum xr_status status;
	size_t count = 0, len = 0;

	status = got_value(t, g, &value, &e->err);
	t->made = NULL;
	if (status == XR_OK)
		status = xr_encode(value, &opts, &encoded, &e->err);
	xr_value_unref(value);
	if (status != XR_OK)
		return status;
	parts = xr_encoded_parts(encoded, &count);
	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	t->made = malloc(len + 1);
	for (size_t i = 0, at = 0; t->made != NULL && i < count; i++) {
		if (parts[i].len > 0)
			memcpy((char *)t->made + at, parts[i].data,
				parts[i].len);
		at += parts[i].len;
	}
	g->buf.len = len;
	t->kind = CELL_VALUE;
	xr_encoded_free(encoded);
	if (t->made == NULL)
		return fail(&e->err, XR_E_NOMEM, "out of memory");
	return t->over == 0 || len < t->over ?
		XR_OK :
		fail(&e->err, XR_E_DECODE,
			"what was put by reference has no room as a copy");
}

/* What cannot be had is left out, unless there is nothing else. Without memory all fail. */
static enum xr_status
sort_out(struct errand *e, struct basket *b)
{
	enum xr_status status, first = XR_OK;
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++) {
		struct taker *t = &b->takers[i];

		status = t->kind == CELL_SHARED ?
			copy_shared(e, t, &b->gots[i]) :
			XR_OK;
		if (status == XR_E_NOMEM)
			return status;
		if (status != XR_OK) {
			first = first == XR_OK ? status : first;
			continue;
		}
		if (n != i) {
			free(b->takers[n].made);
			b->takers[n].made = t->made;
			b->takers[n].kind = t->kind;
			b->gots[n].buf.len = b->gots[i].buf.len;
			t->made = NULL;
		}
		n++;
	}
	b->count = n;
	return n > 0 ? XR_OK : first;
}

static enum xr_status
pack_items(struct errand *e, struct basket *b)
{
	size_t head =
		sizeof(struct far_answer) + b->count * sizeof(struct far_item);
	struct far_answer a = { .count = (uint32_t)b->count,
		.number = b->number };
	uint8_t *at;

	b->len = head + basket_len(b);
	b->whole = malloc(b->len);
	if (b->whole == NULL)
		return fail(&e->err, XR_E_NOMEM, "out of memory");
	memcpy(b->whole, &a, sizeof(a));
	at = b->whole + head;
	for (size_t i = 0; i < b->count; i++) {
		const struct far_item item = {
			.kind = (uint32_t)b->takers[i].kind,
			.len = b->gots[i].buf.len,
		};

		memcpy(b->whole + sizeof(a) + i * sizeof(item), &item,
			sizeof(item));
		memcpy(at, b->takers[i].made, item.len);
		at += item.len;
	}
	return XR_OK;
}

/* One that does not fit, or that the client has no time for: how long it is. */
static void
answer_length(const struct errand *e, enum xr_status status, uint64_t len)
{
	struct {
		struct far_answer a;
		char text[sizeof(e->err.text)];
	} whole = { .a = { .status = status, .number = len } };
	size_t words = strlen(e->err.text);

	memcpy(whole.text, e->err.text, words);
	xr_reply_bytes(e->call, &whole, sizeof(whole.a) + words);
}

/* A client without a timeout still waits or is dead: what it is given is its. Another may have
 * timed out. */
static enum xr_status
hold(struct errand *e, struct basket *b)
{
	b->taken = b->count;
	if (e->ask.timeout == INT64_MAX || !e->queue->hall->keeps)
		return XR_OK;
	b->number = ward_hold(e->ward, b->takers, b->count);
	return b->number != 0 ? XR_OK :
				fail(&e->err, XR_E_NOMEM, "out of memory");
}

/* The last first, as ward_settle() does. */
static void
give_back(const struct errand *e, const struct basket *b)
{
	struct hall *h = e->queue->hall;

	if (b->number != 0)
		ward_settle(e->ward, b->number, true);
	for (size_t i = b->number == 0 && h->keeps ? b->taken : 0; i > 0; i--)
		hall_settle(h, &b->takers[i - 1].hand, true);
}

/* What was taken is not the queue's any more; or, without memory for the answer, is. */
static void
part_with(const struct errand *e, const struct basket *b, enum xr_status status)
{
	if (status == XR_E_NOMEM)
		give_back(e, b);
	else if (b->number == 0)
		for (size_t i = 0; i < b->taken; i++)
			ward_pass(e->ward, &b->takers[i]);
	else if (status != XR_OK)
		ward_settle(e->ward, b->number, false);
}

/* Values that were put by reference may be longer as copies, for which the client has no
 * time: they go back. Returns true if so. */
static bool
put_back(struct errand *e, struct basket *b)
{
	uint64_t limit = errand_limit(e);

	if (limit == 0 || b->number == 0 || basket_len(b) < limit)
		return false;
	ward_settle(e->ward, b->number, true);
	answer_length(e, XR_E_AGAIN, basket_len(b));
	return true;
}

/* XR_E_RANGE of the first item: it does not fit, or the client has no time for it. */
static void
answer_too_long(const struct errand *e, const struct basket *b)
{
	uint64_t len = b->gots[0].buf.len, over = errand_over(e, 0);

	answer_length(e, over == 0 || len < over ? XR_E_AGAIN : XR_E_RANGE,
		len);
}

/* XR_E_TIMEOUT: there is nothing yet, and nothing was answered; else it is. */
static enum xr_status
get(struct errand *e, int64_t timeout)
{
	struct basket b = { 0 };
	enum xr_status status = XR_E_NOMEM;
	bool is_long;

	if (basket_new(e, &b))
		status = basket_fill(e, &b, timeout);
	else
		fail(&e->err, status, "out of memory");
	if (status == XR_OK)
		status = hold(e, &b);
	if (status == XR_OK)
		status = sort_out(e, &b);
	is_long = status == XR_OK && put_back(e, &b);
	if (status == XR_OK && !is_long)
		status = pack_items(e, &b);
	part_with(e, &b, status);
	if (b.whole != NULL &&
		xr_reply_bytes(e->call, b.whole, b.len) == XR_E_NOMEM)
		give_back(e, &b);
	if (b.whole != NULL || is_long)
		;
	else if (status == XR_E_RANGE && b.gots != NULL && b.count == 0)
		answer_too_long(e, &b);
	else if (status != XR_E_TIMEOUT)
		ward_answer(e->call, status, 0, &e->err);
	basket_free(&b);
	return status;
}

/* --- whether there is anything -------------------------------------------------------------- */

static bool
is_ready(struct hall *h)
{
	if (atomic_load(&h->head->end) != HALL_OPEN)
		return true;
	for (uint32_t i = 0; i < h->plan.lanes; i++)
		if (!lane_is_empty(h, &h->lane[i]))
			return true;
	return false;
}

/* Who was woken for something, and leaves it, wakes another. */
static enum xr_status
watch(struct errand *e, int64_t timeout)
{
	struct hall *h = e->queue->hall;
	enum xr_status status;
	struct spell s;
	uint32_t who;

	status = user_self(h, &who, &e->err);
	if (status != XR_OK)
		return status;
	spell_init(&s, h, &h->head->items_wake, timeout);
	while (!is_ready(h) && status == XR_OK)
		status = spell_turn(&s, &e->err);
	spell_end(&s);
	wake_ring(&h->head->items_wake, 1);
	return status;
}

/* --- both --------------------------------------------------------------------------------- */

/* False: it is to be tried again, with more time. */
static bool
try(struct errand *e, int64_t timeout, bool is_last)
{
	enum xr_status status;

	switch (e->ask.op) {
	case FAR_GET:
		status = get(e, timeout);
		if (status != XR_E_TIMEOUT)
			return true;
		break;
	case FAR_OFFER:
		status = bring(e, timeout);
		if (status == XR_OK)
			return true;
		break;
	case FAR_PUT:
		status = bring(e, timeout);
		break;
	default:
		status = watch(e, timeout);
		break;
	}
	if (status == XR_E_TIMEOUT && !is_last)
		return false;
	ward_answer(e->call, status, (uint32_t)e->done, &e->err);
	return true;
}

static void
run(struct porter_job *job)
{
	struct errand *e =
		(struct errand *)((char *)job - offsetof(struct errand, job));
	int64_t left = INT64_MAX, now = clock_now();

	if (e->deadline != INT64_MAX)
		left = e->deadline > now ? e->deadline - now : 0;
	try(e, left, true);
	xr_call_drop(e->call);
	ward_unref(e->ward);
	free(e->own);
	free(e);
}

/* It outlives the message: what came is copied. */
static struct errand *
keep(const struct errand *from)
{
	struct errand *e = calloc(1, sizeof(*e));
	void *own = malloc(from->rest.len + 1);
	struct xr_call *call = NULL;

	if (e != NULL && own != NULL)
		call = xr_call_defer(from->call);
	if (call == NULL) {
		free(own);
		free(e);
		return NULL;
	}
	memcpy(own, from->rest.data, from->rest.len);
	*e = *from;
	if (from->queue == &from->lane)
		e->queue = &e->lane;
	e->call = call;
	e->own = own;
	e->rest.data = own;
	e->job.run = run;
	atomic_fetch_add(&e->ward->refs, 1);
	return e;
}

static void
defer(struct errand *from)
{
	struct errand *e = keep(from);

	if (e == NULL) {
		fail(&from->err, XR_E_NOMEM, "out of memory");
		ward_answer(from->call, XR_E_NOMEM, (uint32_t)from->done,
			&from->err);
		return;
	}
	if (porter_post(&e->job))
		return;
	fail(&e->err, XR_E_SYS, "no thread to wait for a queue");
	ward_answer(e->call, XR_E_SYS, (uint32_t)e->done, &e->err);
	xr_call_drop(e->call);
	ward_unref(e->ward);
	free(e->own);
	free(e);
}

static bool
is_whole(const struct far_ask *ask, size_t len)
{
	size_t each = ask->op == FAR_PUT || ask->op == FAR_OFFER ?
		sizeof(struct far_item) :
		ask->op == FAR_GET ? sizeof(uint64_t) :
				     0;

	return ask->op <= FAR_WATCH && ask->timeout >= 0 &&
		len / (each > 0 ? each : 1) >= ask->count * (each > 0);
}

void
errand_begin(struct xr_call *call, struct ward *w, const struct far_ask *ask,
	struct xr_part rest)
{
	struct errand e = { .ward = w,
		.call = call,
		.ask = *ask,
		.rest = rest,
		.deadline = INT64_MAX };
	int64_t now = clock_now();

	if (!is_whole(ask, rest.len)) {
		fail(&e.err, XR_E_PROTO, "that asks nothing of a queue");
		ward_answer(call, XR_E_PROTO, 0, &e.err);
		return;
	}
	e.lane = ward_lane(w, ask);
	e.queue = ask->lanes == w->queue->count ? w->queue : &e.lane;
	if (ask->timeout < INT64_MAX - now)
		e.deadline = now + ask->timeout;
	if (!try(&e, 0, ask->timeout == 0))
		defer(&e);
}
