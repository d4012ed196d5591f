/* SPDX-License-Identifier: Apache-2.0 */
/* desk.c - see desk.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "store/desk.h"

#define TURN_MAX 64 /* replies of a turn */

struct desk_wait {
	TAILQ_ENTRY(desk_wait) due;  /* of those whose patience ends */
	TAILQ_ENTRY(desk_wait) list; /* of its guest: open or ready */
	struct desk_guest *guest;
	struct store_waiter *waiter; /* NULL: it is ready */
	int64_t patience, until;
	struct store_reply reply;
};

struct desk {
	struct store *store;
	struct desk_setup setup;
	struct desk_waits due; /* the first first */
};

/* --- who waits ------------------------------------------------------------- */

static void
undue(struct desk *desk, struct desk_wait *w)
{
	if (w->until != DESK_NEVER)
		TAILQ_REMOVE(&desk->due, w, due);
}

/* Most have the same patience, and come last. */
static void
put_due(struct desk *desk, struct desk_wait *w)
{
	struct desk_wait *before;

	if (w->until == DESK_NEVER)
		return;
	before = TAILQ_LAST(&desk->due, desk_waits);
	while (before != NULL && before->until > w->until)
		before = TAILQ_PREV(before, desk_waits, due);
	if (before == NULL)
		TAILQ_INSERT_HEAD(&desk->due, w, due);
	else
		TAILQ_INSERT_AFTER(&desk->due, before, w, due);
}

static void
make_ready(struct desk *desk, struct desk_wait *w)
{
	struct desk_guest *g = w->guest;
	bool first = TAILQ_EMPTY(&g->ready);

	undue(desk, w);
	w->waiter = NULL;
	TAILQ_REMOVE(&g->open, w, list);
	TAILQ_INSERT_TAIL(&g->ready, w, list);
	if (first)
		desk->setup.ready(g, desk->setup.ctx);
}

/* What the store has for one of them. */
static void
on_answer(const struct store_answer *a, void *ctx)
{
	struct desk_wait *w = (struct desk_wait *)(uintptr_t)a->id;

	w->reply.status = a->status;
	if (a->status != XR_OK)
		fail(&w->reply.err, a->status, "store: shutting down");
	if (a->value != NULL)
		w->reply.value = store_value_ref(a->value);
	make_ready(ctx, w);
}

static void
expire(struct desk *desk, struct desk_wait *w)
{
	struct span key = store_waiter_key(w->waiter);
	char time[32];

	w->reply.status = fail(&w->reply.err, XR_E_TIMEOUT,
		"store: nobody has set the key '%.*s' within %s", QUOTED(key),
		clock_text(w->patience, time, sizeof(time)));
	store_cancel(desk->store, w->waiter);
	make_ready(desk, w);
}

int64_t
desk_due(const struct desk *desk)
{
	const struct desk_wait *w = TAILQ_FIRST(&desk->due);

	return w == NULL ? DESK_NEVER : w->until;
}

void
desk_turn(struct desk *desk, int64_t now)
{
	for (int i = 0; i < TURN_MAX && desk_due(desk) <= now; i++)
		expire(desk, TAILQ_FIRST(&desk->due));
}

/* --- guests ---------------------------------------------------------------- */

void
desk_enter(struct desk_guest *guest, void *of)
{
	*guest = (struct desk_guest){ .of = of };
	store_owner_init(&guest->owner, guest);
	TAILQ_INIT(&guest->open);
	TAILQ_INIT(&guest->ready);
}

void
desk_leave(struct desk *desk, struct desk_guest *guest)
{
	struct desk_wait *w;

	store_owner_drop(desk->store, &guest->owner);
	while ((w = TAILQ_FIRST(&guest->open)) != NULL) {
		undue(desk, w);
		TAILQ_REMOVE(&guest->open, w, list);
		free(w);
	}
	while ((w = TAILQ_FIRST(&guest->ready)) != NULL) {
		TAILQ_REMOVE(&guest->ready, w, list);
		store_value_unref(w->reply.value);
		free(w);
	}
}

bool
desk_has(const struct desk_guest *guest)
{
	return !TAILQ_EMPTY(&guest->ready);
}

bool
desk_take(struct desk_guest *guest, struct store_reply *reply)
{
	struct desk_wait *w = TAILQ_FIRST(&guest->ready);

	if (w == NULL)
		return false;
	TAILQ_REMOVE(&guest->ready, w, list);
	*reply = w->reply;
	free(w);
	return true;
}

/* --- requests -------------------------------------------------------------- */

/* A get or wait that may have to wait. True: it need not, or may not. */
static bool
ask_waiting(struct desk *desk, struct desk_guest *guest,
	const struct store_request *q, int64_t now, struct store_reply *r)
{
	struct desk_wait *w = calloc(1, sizeof(*w));
	struct store_ask ask = {
		.owner = &guest->owner,
		.id = (uintptr_t)w,
	};

	if (w == NULL) {
		r->status = fail(&r->err, XR_E_NOMEM, "store: out of memory");
		return true;
	}
	r->status = q->op == STORE_GET ?
		store_get(desk->store, q->key, &ask, &r->value, &r->err) :
		store_wait(desk->store, q->keys, q->count, &ask, &r->err);
	if (r->status != XR_OK || ask.waiter == NULL) {
		free(w);
		return true;
	}
	w->guest = guest;
	w->waiter = ask.waiter;
	w->reply.id = q->id;
	w->patience = q->patience;
	if (__builtin_add_overflow(now, q->patience, &w->until))
		w->until = DESK_NEVER;
	put_due(desk, w);
	TAILQ_INSERT_TAIL(&guest->open, w, list);
	return false;
}

/* Without patience. */
static void
look(struct desk *desk, const struct store_request *q, struct store_reply *r)
{
	struct store_value *value = NULL;

	if (q->op == STORE_GET) {
		r->status = store_get(desk->store, q->key, NULL, &r->value,
			&r->err);
		return;
	}
	for (size_t i = 0; i < q->count && r->status == XR_OK; i++) {
		r->status = store_get(desk->store, q->keys[i], NULL, &value,
			&r->err);
		store_value_unref(value);
		value = NULL;
	}
}

static void
count_keys(struct desk *desk, const struct store_request *q,
	struct store_reply *r)
{
	for (size_t i = 0; i < q->count; i++)
		r->number += store_check(desk->store, &q->keys[i], 1);
}

static void
compare_set(struct desk *desk, const struct store_request *q,
	struct store_reply *r)
{
	struct store_swap swap = {
		.key = q->key,
		.expected = q->expected,
		.desired = q->value,
	};

	r->status = store_compare_set(desk->store, &swap, &r->value, &r->err);
}

static bool
is_sound(const struct store_request *q, struct store_reply *r)
{
	if (q->count <= DESK_KEYS_MAX)
		return true;
	r->status = fail(&r->err, XR_E_RANGE,
		"store: %zu keys at once, at most %d", q->count, DESK_KEYS_MAX);
	return false;
}

bool
desk_ask(struct desk *desk, struct desk_guest *guest,
	const struct store_request *q, int64_t now, struct store_reply *r)
{
	*r = (struct store_reply){ .id = q->id, .status = XR_OK };
	if (!is_sound(q, r))
		return true;
	switch (q->op) {
	case STORE_SET:
		r->status = store_set(desk->store, q->key, q->value, &r->err);
		return true;
	case STORE_GET:
	case STORE_WAIT:
		if (q->patience > 0)
			return ask_waiting(desk, guest, q, now, r);
		look(desk, q, r);
		return true;
	case STORE_ADD:
		r->status = store_add(desk->store, q->key, q->number,
			&r->number, &r->err);
		return true;
	case STORE_COMPARE_SET:
		compare_set(desk, q, r);
		return true;
	case STORE_CHECK:
		count_keys(desk, q, r);
		return true;
	case STORE_DELETE:
		r->number = store_delete(desk->store, q->key);
		return true;
	case STORE_OPS:
		break;
	}
	r->status = fail(&r->err, XR_E_NOTFOUND, "store: no such operation");
	return true;
}

struct desk *
desk_new(const struct desk_setup *setup)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	struct store_setup store = {
		.limits = setup->limits,
		.seed = setup->seed,
		.answer = on_answer,
		.ctx = desk,
	};

	if (desk == NULL)
		return NULL;
	desk->setup = *setup;
	TAILQ_INIT(&desk->due);
	desk->store = store_new(&store);
	if (desk->store != NULL)
		return desk;
	free(desk);
	return NULL;
}

struct store *
desk_store(struct desk *desk)
{
	return desk->store;
}

void
desk_free(struct desk *desk)
{
	if (desk == NULL)
		return;
	store_free(desk->store);
	free(desk);
}
