/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - who waits for what.
 *
 * A waiter has a link for each key that is missing, in the list of that key's
 * entry. The last one gone, it is ready. It is taken out of everything and
 * freed before its owner hears of it, so that the answer may do what it likes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "store/store_inner.h"

struct store_link {
	TAILQ_ENTRY(store_link) next; /* of its entry */
	struct store_entry *entry;    /* NULL: it has come */
	struct store_waiter *waiter;
};

struct store_waiter {
	TAILQ_ENTRY(store_waiter) next;  /* waiting or ready */
	TAILQ_ENTRY(store_waiter) owned; /* of its owner */
	struct store_owner *owner;
	uint64_t id;
	bool wants_value;
	bool ready;
	struct store_value *value; /* it has come; a reference */
	size_t count;              /* of links */
	size_t missing;
	struct store_link links[];
};

void
store_owner_init(struct store_owner *owner, void *of)
{
	*owner = (struct store_owner){ .of = of };
	TAILQ_INIT(&owner->waiters);
}

/* --- an end ---------------------------------------------------------------- */

static void
unlink_entry(struct store *s, struct store_link *link)
{
	TAILQ_REMOVE(&link->entry->waits, link, next);
	link->entry = NULL;
	link->waiter->missing--;
	s->waits--;
}

/* Of no list any more, with no link to a key; its memory is left. */
static void
detach(struct store *s, struct store_waiter *w)
{
	TAILQ_REMOVE(w->ready ? &s->ready : &s->waiting, w, next);
	TAILQ_REMOVE(&w->owner->waiters, w, owned);
	w->owner->count--;
	for (size_t i = 0; i < w->count; i++) {
		struct store_entry *e = w->links[i].entry;

		if (e == NULL)
			continue;
		unlink_entry(s, &w->links[i]);
		store_entry_leave(s, e);
	}
}

static void
drop(struct store *s, struct store_waiter *w)
{
	detach(s, w);
	store_value_unref(w->value);
	free(w);
}

struct span
store_waiter_key(const struct store_waiter *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->links[i].entry != NULL)
			return entry_key(w->links[i].entry);
	return (struct span){ 0 };
}

/* The key is told, and goes with the waiter. */
static void
answer(struct store *s, struct store_waiter *w)
{
	char key[STORE_KEY_MAX];
	struct span missing = store_waiter_key(w);
	struct store_value *value = w->value;
	struct store_answer a = {
		.owner = w->owner,
		.id = w->id,
		.status = w->ready ? XR_OK : XR_E_CLOSED,
		.value = value,
	};

	if (a.status != XR_OK) {
		memcpy(key, missing.at, missing.len);
		a.key = (struct span){ .at = key, .len = missing.len };
	}
	detach(s, w);
	free(w);
	s->setup.answer(&a, s->setup.ctx);
	store_value_unref(value);
}

void
store_begin(struct store *s)
{
	s->calls++;
}

/* Called by an answer, it leaves what is ready to whoever answers. */
void
store_end(struct store *s)
{
	struct store_waiter *w;

	if (!s->answering) {
		s->answering = true;
		while ((w = TAILQ_FIRST(&s->ready)) != NULL)
			answer(s, w);
		s->answering = false;
	}
	if (--s->calls == 0 && s->gone)
		store_free(s);
}

void
store_wake(struct store *s, struct store_entry *e)
{
	struct store_link *link;

	while ((link = TAILQ_FIRST(&e->waits)) != NULL) {
		struct store_waiter *w = link->waiter;

		unlink_entry(s, link);
		if (w->missing > 0)
			continue;
		w->ready = true;
		if (w->wants_value)
			w->value = store_value_ref(e->value);
		TAILQ_REMOVE(&s->waiting, w, next);
		TAILQ_INSERT_TAIL(&s->ready, w, next);
	}
}

void
store_cancel(struct store *s, struct store_waiter *waiter)
{
	drop(s, waiter);
}

void
store_owner_drop(struct store *s, struct store_owner *owner)
{
	owner->closed = true;
	while (!TAILQ_EMPTY(&owner->waiters))
		drop(s, TAILQ_FIRST(&owner->waiters));
}

void
store_owner_close(struct store *s, struct store_owner *owner)
{
	owner->closed = true;
	store_begin(s);
	while (!TAILQ_EMPTY(&owner->waiters))
		answer(s, TAILQ_FIRST(&owner->waiters));
	store_end(s);
}

void
store_close(struct store *s)
{
	s->closed = true;
	store_begin(s);
	while (!TAILQ_EMPTY(&s->waiting))
		answer(s, TAILQ_FIRST(&s->waiting));
	store_end(s);
}

void
store_drop_all(struct store *s)
{
	while (!TAILQ_EMPTY(&s->ready))
		drop(s, TAILQ_FIRST(&s->ready));
	while (!TAILQ_EMPTY(&s->waiting))
		drop(s, TAILQ_FIRST(&s->waiting));
}

/* --- a beginning ----------------------------------------------------------- */

static enum xr_status
allowed(const struct store *s, const struct store_owner *owner, size_t missing,
	struct xr_error *err)
{
	const struct store_limits *max = &s->setup.limits;

	if (s->closed || owner->closed)
		return fail(err, XR_E_CLOSED, "store: shutting down");
	if (owner->count >= max->owner)
		return fail(err, XR_E_AGAIN,
			"store: %zu gets and waits are open here, at most %zu",
			owner->count, max->owner);
	if (missing > max->waits || s->waits > max->waits - missing)
		return fail(err, XR_E_AGAIN,
			"store: %zu keys are waited for, %zu more would be beyond %zu",
			s->waits, missing, max->waits);
	return XR_OK;
}

/* @w waits for @key, too. */
static enum xr_status
link_key(struct store *s, struct store_waiter *w, struct span key,
	struct xr_error *err)
{
	struct store_entry *e = table_find(&s->table, key);
	struct store_link *link = &w->links[w->count];
	enum xr_status status = XR_OK;

	if (e != NULL && e->value != NULL)
		return XR_OK;
	if (e == NULL)
		status = store_entry_new(s, key, 0, &e, err);
	if (status != XR_OK)
		return status;
	*link = (struct store_link){ .entry = e, .waiter = w };
	TAILQ_INSERT_TAIL(&e->waits, link, next);
	w->count++;
	w->missing++;
	s->waits++;
	return XR_OK;
}

static struct store_waiter *
new_waiter(const struct store_ask *ask, size_t missing)
{
	struct store_waiter *w;
	size_t size;

	if (__builtin_mul_overflow(missing, sizeof(w->links[0]), &size) ||
		__builtin_add_overflow(sizeof(*w), size, &size))
		return NULL;
	w = malloc(size);
	if (w != NULL)
		*w = (struct store_waiter){
			.owner = ask->owner,
			.id = ask->id,
		};
	return w;
}

/* The rest of store_wait() and store_get(): @missing of the keys are. */
static enum xr_status
wait_for(struct store *s, const struct span *keys, size_t missing,
	struct store_ask *ask, struct xr_error *err)
{
	enum xr_status status = allowed(s, ask->owner, missing, err);
	struct store_waiter *w;

	if (status != XR_OK)
		return status;
	w = new_waiter(ask, missing);
	if (w == NULL)
		return fail(err, XR_E_NOMEM, "store: no memory to wait");
	TAILQ_INSERT_TAIL(&s->waiting, w, next);
	TAILQ_INSERT_TAIL(&ask->owner->waiters, w, owned);
	ask->owner->count++;
	for (; status == XR_OK && w->missing < missing; keys++)
		status = link_key(s, w, *keys, err);
	if (status == XR_OK) {
		ask->waiter = w;
		return XR_OK;
	}
	drop(s, w);
	return status;
}

static bool
is_there(const struct store *s, struct span key)
{
	const struct store_entry *e = table_find(&s->table, key);

	return e != NULL && e->value != NULL;
}

bool
store_check(const struct store *s, const struct span *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_there(s, keys[i]))
			return false;
	return true;
}

enum xr_status
store_wait(struct store *s, const struct span *keys, size_t n,
	struct store_ask *ask, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	size_t missing = 0;

	for (size_t i = 0; i < n && status == XR_OK; i++) {
		status = store_key(keys[i], err);
		missing += !is_there(s, keys[i]);
	}
	if (status != XR_OK)
		return status;
	if (missing > 0)
		return wait_for(s, keys, missing, ask, err);
	ask->waiter = NULL;
	return XR_OK;
}

enum xr_status
store_get(struct store *s, struct span key, struct store_ask *ask,
	struct store_value **value, struct xr_error *err)
{
	const struct store_entry *e;
	enum xr_status status = store_key(key, err);

	if (status != XR_OK)
		return status;
	e = table_find(&s->table, key);
	if (e != NULL && e->value != NULL) {
		*value = store_value_ref(e->value);
		if (ask != NULL)
			ask->waiter = NULL;
		return XR_OK;
	}
	if (ask == NULL)
		return fail(err, XR_E_NOTFOUND,
			"store: nobody has set the key '%.*s'", QUOTED(key));
	status = wait_for(s, &key, 1, ask, err);
	if (status != XR_OK)
		return status;
	ask->waiter->wants_value = true;
	*value = NULL;
	return XR_OK;
}
