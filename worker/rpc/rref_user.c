/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref_user.c - handles, and the forks that were made of them.
 *
 * A handle of another's value is pending until its owner has confirmed it, and
 * stays till then even if nobody here has it any more: only then can it be said
 * that it has ended. What it passed on keeps it, until that is accepted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/future.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/rref_inner.h"

/* --- life ------------------------------------------------------------------- */

static struct xr_rref *
ref_rref(struct xr_rref *h)
{
	atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
	return h;
}

static bool
same_rref(const struct xr_rref *a, const struct xr_rref *b)
{
	return rref_same(&a->id, &b->id);
}

static const struct value_rref_ops value_ops = {
	.ref = ref_rref,
	.unref = xr_rref_unref,
	.equal = same_rref,
};

static void
tell_values(void)
{
	value_set_rref_ops(&value_ops);
}

static struct xr_rref *
handle_new(const struct rref_gid *id, const struct rref_gid *fork,
	struct peer *owner, uint32_t owner_id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct xr_rref *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	pthread_once(&once, tell_values);
	h->node.id = *fork;
	h->id = *id;
	atomic_init(&h->refs, 1);
	h->life = rref.life;
	h->owner = owner;
	h->owner_id = owner_id;
	if (owner != NULL)
		memcpy(h->owner_name, owner->name, sizeof(h->owner_name));
	h->due = INT64_MAX;
	LIST_INIT(&h->awaits);
	return h;
}

struct xr_rref *
handle_of_owned(struct owned *o)
{
	struct xr_rref *h = handle_new(&o->node.id, &o->node.id, agent_self(),
		agent_self()->id);

	if (h == NULL)
		return NULL;
	h->is_owner = true;
	h->state = USER_CONFIRMED;
	h->owned = o;
	o->handles++;
	return h;
}

struct xr_rref *
user_new(const struct rref_gid *id, const struct rref_gid *fork,
	struct peer *owner, uint32_t owner_id)
{
	return handle_new(id, fork, owner, owner_id);
}

void
handle_free(struct xr_rref *h)
{
	xr_value_unref(h->error);
	xr_future_unref(h->asked);
	xr_future_unref(h->created);
	free(h);
}

void
user_add(struct xr_rref *h)
{
	gid_add(&rref.users, &h->node);
	h->mapped = true;
	if (h->state == USER_PENDING)
		rref.pending++;
}

static void
discard(struct xr_rref *h, struct rref_todo *todo)
{
	if (h->mapped)
		gid_remove(&rref.users, &h->node);
	h->mapped = false;
	h->node.next = todo->handles;
	todo->handles = &h->node;
}

/* --- what becomes of one ---------------------------------------------------- */

static void
tell_end(struct xr_rref *h, uint32_t flags, struct rref_todo *todo)
{
	struct rref_wire word = rref_wire_of(&h->id, &h->node.id, flags);

	rref_later(todo, MESSAGE_RREF_USER_DELETE, h->owner, &word);
	h->ended = true;
}

/* Nobody here has it any more. */
static void
released(struct xr_rref *h, struct rref_todo *todo)
{
	if (h->state == USER_PENDING)
		return; /* until its owner knows of it */
	if (h->state == USER_CONFIRMED && !h->ended)
		tell_end(h, 0, todo);
	else if (h->state == USER_FAILED && h->unmade)
		tell_end(h, RREF_UNMADE, todo);
	discard(h, todo);
}

static void
settle(struct xr_rref *h, enum user_state state, struct rref_todo *todo)
{
	struct await *a;

	if (h->state == USER_PENDING && h->mapped)
		rref.pending--;
	h->state = (uint8_t)state;
	h->due = INT64_MAX;
	while ((a = LIST_FIRST(&h->awaits)) != NULL) {
		LIST_REMOVE(a, list);
		refs_one_ready(a, state != USER_CONFIRMED, todo);
	}
	rref_look(todo);
}

void
user_confirm(struct xr_rref *h, struct rref_todo *todo)
{
	struct rref_wire word = rref_wire_of(&h->id, &h->node.id, 0);

	if (h->state != USER_PENDING)
		return;
	if (h->parent != NULL)
		rref_later(todo, MESSAGE_RREF_CHILD_ACCEPT, h->parent, &word);
	h->parent = NULL;
	settle(h, USER_CONFIRMED, todo);
	if (atomic_load(&h->refs) == 0)
		released(h, todo);
}

/* @error is borrowed. */
void
user_fail(struct xr_rref *h, struct xr_value *error, bool tell,
	struct rref_todo *todo)
{
	if (h->state == USER_FAILED || h->state == USER_CLOSED)
		return;
	h->error = error != NULL ? xr_value_ref(error) : NULL;
	h->unmade = tell;
	if (tell)
		tell_end(h, RREF_UNMADE, todo);
	settle(h, USER_FAILED, todo);
	if (atomic_load(&h->refs) == 0)
		discard(h, todo);
}

enum xr_status
user_usable(const struct xr_rref *h, struct xr_error *err)
{
	if (h->life != rref.life || !rref.open || h->state == USER_CLOSED ||
		(h->is_owner && h->owned->closed))
		return fail(err, XR_E_CLOSED,
			"the reference ended when the agent was shut down");
	if (h->state == USER_FAILED)
		return failure_status(h->error, err);
	return XR_OK;
}

/* Of an agent that is gone, or about to be: nobody is told. */
static void
orphaned(struct xr_rref *h, struct rref_todo *todo)
{
	if (h->mapped && h->state == USER_PENDING)
		rref.pending--;
	discard(h, todo);
}

XR_EXPORT struct xr_rref *
xr_rref_ref(struct xr_rref *h)
{
	return ref_rref(h);
}

/* False: it was the last, and the lock is held. */
static bool
drop(struct xr_rref *h)
{
	uint32_t n = atomic_load(&h->refs);

	while (n > 1)
		if (atomic_compare_exchange_weak(&h->refs, &n, n - 1))
			return true;
	/* Who finds it in a table takes it under the lock. */
	pthread_mutex_lock(&rref.lock);
	if (atomic_fetch_sub(&h->refs, 1) == 1)
		return false;
	pthread_mutex_unlock(&rref.lock);
	return true;
}

XR_EXPORT void
xr_rref_unref(struct xr_rref *h)
{
	struct rref_todo todo;
	struct owned *o;
	bool inside;

	/* After fork() the lock may be anybody's. */
	if (h == NULL || inside_not_forked(NULL) != XR_OK)
		return;
	rref_todo_init(&todo);
	/* Peers stay meanwhile. */
	inside = agent_enter(NULL) == XR_OK;
	if (!drop(h)) {
		o = h->owned;
		if (o != NULL) {
			discard(h, &todo);
			o->handles--;
			owned_look(o, &todo);
		} else if (h->life != rref.life || !inside) {
			orphaned(h, &todo);
		} else {
			released(h, &todo);
		}
		pthread_mutex_unlock(&rref.lock);
		rref_do(&todo);
	}
	if (inside)
		agent_leave();
}

/* --- forks ------------------------------------------------------------------ */

struct child *
child_new(const struct rref_gid *fork, struct xr_rref *parent, struct peer *to)
{
	struct child *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->node.id = *fork;
	c->parent = ref_rref(parent);
	c->to = to;
	gid_add(&rref.children, &c->node);
	return c;
}

void
child_remove(struct child *c, struct rref_todo *todo)
{
	gid_remove(&rref.children, &c->node);
	c->node.next = todo->children;
	todo->children = &c->node;
	rref_look(todo);
}

/* --- messages --------------------------------------------------------------- */

/* What is confirmed and not here, any more, has ended. */
static void
confirmed(struct xr_rref *h, struct peer *from, const struct rref_wire *wire,
	struct rref_todo *todo)
{
	struct rref_wire word = *wire;

	if (h == NULL || h->ended) {
		word.flags = h != NULL && h->unmade ? RREF_UNMADE : 0;
		rref_later(todo, MESSAGE_RREF_USER_DELETE, from, &word);
	} else if (h->owner == from) {
		user_confirm(h, todo);
	}
}

void
user_confirmed(struct peer *from, const struct rref_wire *wire)
{
	struct rref_gid fork = rref_fork_of(wire);
	bool refused = (wire->flags & RREF_UNMADE) != 0;
	struct xr_value *why = NULL;
	struct rref_todo todo;
	struct xr_rref *h;

	if (refused)
		why = failure_new(XR_E_NOMEM,
			"%s (%u) has no memory for a reference", from->name,
			from->id);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	h = (struct xr_rref *)gid_find(&rref.users, &fork);
	if (!refused)
		confirmed(h, from, wire, &todo);
	else if (h != NULL && h->owner == from && h->state == USER_PENDING)
		user_fail(h, why, false, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	xr_value_unref(why);
}

void
user_accepted(struct peer *from, const struct rref_wire *wire)
{
	struct rref_gid fork = rref_fork_of(wire);
	struct rref_todo todo;
	struct child *c;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	c = (struct child *)gid_find(&rref.children, &fork);
	if (c != NULL && c->to == from)
		child_remove(c, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
}

/* --- time, and losses -------------------------------------------------------- */

/* The first that is due by @now; else @next: when the next is. */
static struct xr_rref *
find_due(int64_t now, int64_t *next)
{
	struct gid_node *n;

	*next = INT64_MAX;
	if (rref.pending == 0)
		return NULL;
	for (n = gid_first(&rref.users); n != NULL;
		n = gid_next(&rref.users, n)) {
		struct xr_rref *h = (struct xr_rref *)n;

		if (h->due <= now)
			return h;
		*next = h->due < *next ? h->due : *next;
	}
	return NULL;
}

/* The call is canceled; who asks for its end hears why. */
static bool
expire_one(int64_t now, int64_t *next)
{
	struct xr_future *asked = NULL, *created = NULL;
	struct xr_value *why = NULL;
	struct rref_todo todo;
	struct xr_rref *h;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	h = find_due(now, next);
	if (h != NULL) {
		why = failure_new(XR_E_TIMEOUT,
			"no word from %s (%u) of a remote call in time",
			h->owner->name, h->owner->id);
		asked = xr_future_ref(h->asked);
		created = xr_future_ref(h->created);
		user_fail(h, why, true, &todo);
	}
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	if (h == NULL)
		return false;
	future_end(created, why, true);
	xr_future_cancel(asked);
	xr_future_unref(asked);
	xr_future_unref(created);
	return true;
}

int64_t
users_expire(int64_t now)
{
	int64_t next;

	while (expire_one(now, &next))
		continue;
	return next;
}

void
users_lost(struct peer *peer, struct rref_todo *todo)
{
	struct xr_value *why = failure_new(XR_E_PEER_LOST,
		"lost %s (%u), which had the value", peer->name, peer->id);
	struct gid_node *n, *behind;

	for (n = gid_first(&rref.users); n != NULL; n = behind) {
		struct xr_rref *h = (struct xr_rref *)n;

		behind = gid_next(&rref.users, n);
		if (h->parent == peer)
			h->parent = NULL;
		if (h->owner == peer)
			user_fail(h, why, false, todo);
	}
	for (n = gid_first(&rref.children); n != NULL; n = behind) {
		struct child *c = (struct child *)n;

		behind = gid_next(&rref.children, n);
		if (c->to == peer || c->parent->owner == peer)
			child_remove(c, todo);
	}
	xr_value_unref(why);
}

/* --- end --------------------------------------------------------------------- */

/* They stay in the table for as long as the program has them, to be told of. */
void
users_release(struct rref_todo *todo)
{
	struct gid_node *n, *behind;

	for (n = gid_first(&rref.users); n != NULL; n = behind) {
		struct xr_rref *h = (struct xr_rref *)n;

		behind = gid_next(&rref.users, n);
		if (h->state == USER_FAILED || h->state == USER_CLOSED)
			continue;
		tell_end(h, 0, todo);
		settle(h, USER_CLOSED, todo);
		if (atomic_load(&h->refs) == 0)
			discard(h, todo);
	}
}

void
users_close(struct rref_todo *todo)
{
	struct gid_node *n;

	while ((n = gid_first(&rref.users)) != NULL) {
		struct xr_rref *h = (struct xr_rref *)n;

		settle(h, USER_CLOSED, todo);
		gid_remove(&rref.users, n);
		h->mapped = false;
		h->owner = h->parent = NULL;
		if (atomic_load(&h->refs) == 0)
			discard(h, todo);
	}
	while ((n = gid_first(&rref.children)) != NULL)
		child_remove((struct child *)n, todo);
}
