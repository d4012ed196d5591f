/* SPDX-License-Identifier: Apache-2.0 */
/* rref_life.c - references from the agent's beginning to its end, and those that a
 * call makes; see rref.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"

/* --- the agent's life -------------------------------------------------------- */

void
rref_open(void)
{
	pthread_mutex_lock(&rref.lock);
	rref.life++;
	rref.next = 0;
	rref.flags = 0;
	rref.open = true;
	pthread_mutex_unlock(&rref.lock);
}

void
rref_set_flags(uint32_t flags)
{
	pthread_mutex_lock(&rref.lock);
	rref.flags = flags;
	pthread_mutex_unlock(&rref.lock);
}

void
rref_lost(struct peer *peer)
{
	struct rref_todo todo;

	rref_tell_drop(peer);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	users_lost(peer, &todo);
	owners_lost(peer, &todo);
	rref_look(&todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t
rref_expire(int64_t now)
{
	struct rref_todo todo;
	int64_t next;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	next = owners_expire(now, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	next = earlier(next, users_expire(now));
	next = earlier(next, births_expire(now));
	return earlier(next, rref_tell_again(now));
}

void
rref_abandon(void)
{
	struct rref_todo todo;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	owners_abandon(&todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
}

void
rref_close(void)
{
	struct rref_todo todo;

	struct xr_value *value;
	bool any = true;

	while (any) {
		value = NULL;
		rref_todo_init(&todo);
		pthread_mutex_lock(&rref.lock);
		rref.open = false;
		users_close(&todo);
		any = owners_close(&todo, &value);
		pthread_mutex_unlock(&rref.lock);
		rref_do(&todo);
		xr_value_unref(value);
	}
	rref_tell_drop(NULL);
	pthread_mutex_lock(&rref.lock);
	gid_free(&rref.users);
	gid_free(&rref.children);
	gid_free(&rref.owned);
	gid_free(&rref.forks);
	pthread_mutex_unlock(&rref.lock);
}

/* --- a graceful end ---------------------------------------------------------- */

static bool
wait_empty(bool owners, int64_t deadline)
{
	struct waiter w = { 0 };
	struct rref_todo todo;
	bool left;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	rref.settled = &w;
	rref.settles_owners = owners;
	rref_look(&todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	if (lead_wait(&w, NULL, deadline))
		return true;
	pthread_mutex_lock(&rref.lock);
	left = rref.settled == &w;
	rref.settled = NULL;
	pthread_mutex_unlock(&rref.lock);
	return !left && lead_wait(&w, NULL, INT64_MAX);
}

enum xr_status
rref_settle(bool all, int64_t deadline, struct xr_error *err)
{
	struct rref_todo todo;
	bool users, owners;

	users = wait_empty(false, deadline);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	users_release(&todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	owners = !all || wait_empty(true, deadline);
	if (users && owners)
		return XR_OK;
	return fail(err, XR_E_TIMEOUT,
		"references: %u are not confirmed, %u not accepted, and others have %u",
		rref_figure(RREF_PENDING_USERS),
		rref_figure(RREF_PENDING_CHILDREN), rref_figure(RREF_FORKS));
}

struct list {
	char *text;
	size_t cap, len;
	uint32_t count;
};

static void
put_leak(struct list *l, const struct rref_gid *id, const struct rref_gid *fork)
{
	if (l->len < l->cap)
		l->len += (size_t)snprintf(l->text + l->len, l->cap - l->len,
			"%s(%u, %" PRIu64 ") by fork (%u, %" PRIu64 ")",
			l->count > 0 ? ", " : "", id->worker, id->local,
			fork->worker, fork->local);
	l->count++;
}

uint32_t
rref_leaks(char *text, size_t cap)
{
	struct list l = { .text = text, .cap = cap };
	struct gid_node *n;

	text[0] = '\0';
	pthread_mutex_lock(&rref.lock);
	for (n = gid_first(&rref.users); n != NULL;
		n = gid_next(&rref.users, n)) {
		struct xr_rref *h = (struct xr_rref *)n;

		if (atomic_load(&h->refs) > 0 && h->state != USER_FAILED)
			put_leak(&l, &h->id, &n->id);
	}
	for (n = gid_first(&rref.forks); n != NULL;
		n = gid_next(&rref.forks, n))
		put_leak(&l, &((struct fork *)n)->of->node.id, &n->id);
	pthread_mutex_unlock(&rref.lock);
	return l.count;
}

/* --- figures ----------------------------------------------------------------- */

static uint32_t
count_owners(void)
{
	struct gid_node *n;
	uint32_t count = 0;

	for (n = gid_first(&rref.owned); n != NULL;
		n = gid_next(&rref.owned, n)) {
		const struct owned *o = (const struct owned *)n;

		count += o->fork_count > 0 || o->creating;
	}
	return count;
}

uint32_t
rref_figure(enum rref_figure which)
{
	uint32_t figure = 0;

	pthread_mutex_lock(&rref.lock);
	switch (which) {
	case RREF_OWNERS:
		figure = count_owners();
		break;
	case RREF_FORKS:
		figure = rref.forks.count;
		break;
	case RREF_USERS:
		figure = rref.users.count;
		break;
	case RREF_PENDING_USERS:
		figure = rref.pending;
		break;
	case RREF_PENDING_CHILDREN:
		figure = rref.children.count;
		break;
	case RREF_PENDING_FUTURES:
		figure = rref.wanted;
		break;
	case RREF_FIGURES:
		break;
	}
	pthread_mutex_unlock(&rref.lock);
	return figure;
}

/* --- calls that make a value -------------------------------------------------- */

enum xr_status
rref_owner_peer(struct xr_rref *h, struct peer **peer, struct xr_error *err)
{
	enum xr_status status;

	pthread_mutex_lock(&rref.lock);
	status = user_usable(h, err);
	*peer = h->owner;
	pthread_mutex_unlock(&rref.lock);
	return status;
}

enum xr_status
rref_birth(struct peer *to, struct rref_wire *birth, struct xr_rref **out,
	struct xr_error *err)
{
	bool self = to == agent_self();
	struct xr_rref *h = NULL;
	struct rref_gid id, fork;
	struct rref_todo todo;
	struct owned *o;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	id = rref_new_gid();
	fork = self ? id : rref_new_gid();
	if (self) {
		o = owned_new(&id);
		h = o != NULL ? handle_of_owned(o) : NULL;
		if (h == NULL && o != NULL)
			owned_look(o, &todo);
	} else {
		h = user_new(&id, &fork, to, to->id);
		if (h != NULL)
			user_add(h);
	}
	*birth = rref_wire_of(&id, &fork,
		(rref.flags & XR_RREF_ACK_ON_DONE) != 0 ? RREF_LATE : 0);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	if (h == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	*out = h;
	return XR_OK;
}

void
rref_unborn(struct xr_rref *h)
{
	struct rref_todo todo;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	if (!h->is_owner)
		user_fail(h, NULL, false, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	xr_rref_unref(h);
}

/* A call on its way: the handle may be released before it ends. */
struct birth {
	struct rref_gid id, fork;
	uint32_t life;
	struct xr_future *created; /* a reference */
};

/* What the owner's library or function said: it has the handle. */
static bool
is_the_owners(enum xr_status status)
{
	return status == XR_OK || status == XR_E_REMOTE ||
		status == XR_E_NO_FUNCTION || status == XR_E_SCHEMA ||
		status == XR_E_PROTO || status == XR_E_DECODE ||
		status == XR_E_CANCELLED;
}

/* The lock is held. */
static void
born(const struct birth *b, struct xr_value *error, bool theirs,
	struct rref_todo *todo)
{
	struct xr_rref *h = (struct xr_rref *)gid_find(&rref.users, &b->fork);
	struct owned *o = owned_find(&b->id);

	if (rref_same(&b->id, &b->fork)) {
		if (o != NULL && !theirs)
			owned_set(o, error, true, todo);
	} else if (h != NULL && theirs) {
		user_confirm(h, todo);
	} else if (h != NULL && h->state == USER_PENDING) {
		user_fail(h, error, true, todo);
	}
}

static void
call_ended(struct xr_future *asked, void *ctx)
{
	struct xr_value *error = xr_future_error(asked);
	enum xr_status status =
		error != NULL ? failure_status(error, NULL) : XR_OK;
	struct birth *b = ctx;
	struct rref_todo todo;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	if (rref.open && rref.life == b->life)
		born(b, error, is_the_owners(status), &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	if (error != NULL)
		future_end(b->created, error, true);
	else
		future_end(b->created, xr_value_new_nil(), false);
	xr_future_unref(b->created);
	free(b);
}

/* The lock is held. */
static void
limit_birth(const struct rref_gid *id, struct xr_future *asked, int64_t due)
{
	struct owned *o = owned_find(id);

	if (o != NULL)
		owned_limit(o, asked, due);
}

enum xr_status
rref_asked(struct xr_rref *h, struct xr_future *asked, int64_t timeout)
{
	struct birth *b = calloc(1, sizeof(*b));
	struct xr_future *created = future_new(NULL, NULL);
	enum xr_status status = XR_E_NOMEM;
	int64_t due;

	if (b != NULL && created != NULL) {
		future_deadline(timeout, &due);
		*b = (struct birth){
			.id = h->id,
			.fork = h->node.id,
			.life = h->life,
			.created = xr_future_ref(created),
		};
		pthread_mutex_lock(&rref.lock);
		h->asked = xr_future_ref(asked);
		h->created = xr_future_ref(created);
		if (h->is_owner && due != INT64_MAX)
			limit_birth(&h->id, asked, due);
		else if (h->state == USER_PENDING)
			h->due = due;
		pthread_mutex_unlock(&rref.lock);
		if (due != INT64_MAX)
			lead_due(due);
		status = xr_future_on_done(asked, call_ended, b);
		if (status != XR_OK)
			xr_future_unref(created);
		else
			b = NULL;
	}
	free(b);
	xr_future_unref(created);
	xr_future_unref(asked);
	return status;
}
