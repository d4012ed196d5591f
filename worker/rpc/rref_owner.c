/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref_owner.c - values that stay here, and who has handles of them.
 *
 * A value is in the table from the call that makes it, or from the first word of
 * it, which may come before that call does. It goes when nobody has a handle, its
 * function has answered, and nobody waits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"
#include "worker/rpc/values.h"

/* --- the table -------------------------------------------------------------- */

struct owned *
owned_find(const struct rref_gid *id)
{
	return (struct owned *)gid_find(&rref.owned, id);
}

struct owned *
owned_new(const struct rref_gid *id)
{
	struct owned *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->node.id = *id;
	LIST_INIT(&o->forks);
	TAILQ_INIT(&o->wants);
	gid_add(&rref.owned, &o->node);
	return o;
}

static void
discard(struct owned *o, struct rref_todo *todo)
{
	if (o->asked != NULL)
		rref.births--;
	o->node.next = todo->owned;
	todo->owned = &o->node;
}

void
owned_look(struct owned *o, struct rref_todo *todo)
{
	if (o->handles > 0 || o->fork_count > 0 || o->creating ||
		!TAILQ_EMPTY(&o->wants))
		return;
	if (!o->closed)
		gid_remove(&rref.owned, &o->node);
	discard(o, todo);
}

/* --- forks ------------------------------------------------------------------ */

/* Again is as well as once. */
enum xr_status
owned_fork(struct owned *o, const struct rref_gid *id, struct peer *user)
{
	struct fork *f;

	if (gid_find(&rref.forks, id) != NULL)
		return XR_OK;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return XR_E_NOMEM;
	f->node.id = *id;
	f->of = o;
	f->user = user;
	LIST_INSERT_HEAD(&o->forks, f, list);
	o->fork_count++;
	gid_add(&rref.forks, &f->node);
	return XR_OK;
}

static void
remove_fork(struct fork *f, struct rref_todo *todo)
{
	struct owned *o = f->of;

	LIST_REMOVE(f, list);
	gid_remove(&rref.forks, &f->node);
	o->fork_count--;
	free(f);
	owned_look(o, todo);
	rref_look(todo);
}

/* Whoever waits through a handle that has ended hears of it. */
static void
end_wants(struct owned *o, const struct rref_gid *fork, const struct peer *peer,
	const struct xr_value *why, struct rref_todo *todo)
{
	struct want *w, *next;

	for (w = TAILQ_FIRST(&o->wants); w != NULL; w = next) {
		next = TAILQ_NEXT(w, list);
		if (fork != NULL ? !rref_same(&w->fork, fork) : w->peer != peer)
			continue;
		TAILQ_REMOVE(&o->wants, w, list);
		rref.wanted--;
		w->error = why != NULL ? xr_value_ref((struct xr_value *)why) :
					 NULL;
		TAILQ_INSERT_TAIL(&todo->wants, w, list);
	}
}

void
owned_unfork(const struct rref_gid *id, struct peer *user,
	const struct xr_value *why, struct rref_todo *todo)
{
	struct fork *f = (struct fork *)gid_find(&rref.forks, id);

	if (f == NULL || f->user != user)
		return;
	if (why != NULL)
		end_wants(f->of, id, NULL, why, todo);
	remove_fork(f, todo);
}

/* --- the value -------------------------------------------------------------- */

static void
tell(struct owned *o, struct want *w, struct rref_todo *todo)
{
	if (o->error != NULL)
		w->error = xr_value_ref(o->error);
	else if (o->value != NULL)
		w->value = xr_value_ref(o->value);
	TAILQ_INSERT_TAIL(&todo->wants, w, list);
}

void
owned_set(struct owned *o, struct xr_value *value, bool failed,
	struct rref_todo *todo)
{
	struct want *w;

	o->creating = false;
	if (o->ready) { /* its time was over */
		owned_look(o, todo);
		return;
	}
	o->ready = true;
	if (value == NULL || failed)
		o->error = value != NULL ?
			xr_value_ref(value) :
			failure_new(XR_E_NOMEM, "out of memory");
	else
		o->value = xr_value_ref(value);
	while ((w = TAILQ_FIRST(&o->wants)) != NULL) {
		TAILQ_REMOVE(&o->wants, w, list);
		rref.wanted--;
		tell(o, w, todo);
	}
	owned_look(o, todo);
}

void
owned_want(struct owned *o, struct want *w, struct rref_todo *todo)
{
	if (o->ready) {
		tell(o, w, todo);
		return;
	}
	TAILQ_INSERT_TAIL(&o->wants, w, list);
	rref.wanted++;
}

/* --- those who wait, without the lock --------------------------------------- */

static void
answer(struct peer *to, uint64_t corr, struct xr_value *value, bool failed)
{
	struct values_out out = { 0 };
	struct xr_error err = { 0 };
	struct xr_message m = {
		.record = { .kind = failed ? MESSAGE_ERROR : MESSAGE_REPLY,
			.flags = MESSAGE_VALUE,
			.corr = corr },
	};
	enum xr_status status =
		value != NULL ? values_pack(value, to, &out, &err) : XR_E_NOMEM;

	if (status == XR_OK) {
		m.parts = out.parts;
		m.count = out.count;
		if (peer_send(to, &m, NULL, NULL, NULL) != XR_OK)
			refs_out_undo(&out.refs);
		values_out_fini(&out);
	} else if (!failed) {
		value = failure_new(status, "%s",
			err.text[0] != '\0' ? err.text :
					      xr_status_text(status));
		answer(to, corr, value, true);
		xr_value_unref(value);
	} /* else whoever asked hears by his own clock */
}

static void
answer_fetch(struct want *w)
{
	struct xr_value *nil = NULL;

	if (w->error == NULL && w->only_created)
		nil = xr_value_new_nil();
	if (w->error != NULL)
		answer(w->peer, w->corr, w->error, true);
	else
		answer(w->peer, w->corr, w->only_created ? nil : w->value,
			false);
	xr_value_unref(nil);
}

static void
drop_want(struct want *w)
{
	xr_future_unref(w->future);
	xr_value_unref(w->value);
	xr_value_unref(w->error);
	free(w);
}

void
want_told(struct want *w)
{
	if (w->error == NULL && w->value == NULL)
		w->error =
			failure_new(XR_E_CANCELLED, "the reference has ended");
	if (w->fn != NULL) {
		w->fn(w->ctx, w->value, w->error);
		w->value = w->error = NULL;
	} else if (w->future == NULL) {
		answer_fetch(w);
	} else if (w->error != NULL) {
		future_end(w->future, xr_value_ref(w->error), true);
	} else {
		future_end(w->future,
			w->only_created ? xr_value_new_nil() :
					  xr_value_ref(w->value),
			false);
	}
	drop_want(w);
}

/* --- calls that make a value ------------------------------------------------ */

/* The lock is held. */
static enum xr_status
begin(struct owned *o, struct peer *from, const struct rref_wire *birth)
{
	struct rref_gid id = rref_id_of(birth), fork = rref_fork_of(birth);

	if (o == NULL)
		return XR_E_NOMEM;
	if (o->begun)
		return XR_E_EXISTS;
	/* Of a call to oneself there is a handle here. */
	if (!rref_same(&id, &fork) && owned_fork(o, &fork, from) != XR_OK)
		return XR_E_NOMEM;
	o->begun = o->creating = true;
	o->is_late = (birth->flags & RREF_LATE) != 0;
	return XR_OK;
}

enum xr_status
rref_begin(struct peer *from, const struct rref_wire *birth)
{
	struct rref_gid id = rref_id_of(birth), fork = rref_fork_of(birth);
	struct rref_wire word = rref_wire_of(&id, &fork, 0);
	bool late = (birth->flags & RREF_LATE) != 0;
	enum xr_status status;
	struct rref_todo todo;
	struct owned *o;

	if (rref_seam != NULL && rref_seam->begin != NULL &&
		!rref_seam->begin(from))
		return XR_E_EXISTS;
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	o = owned_find(&id);
	if (o == NULL)
		o = owned_new(&id);
	status = begin(o, from, birth);
	if (o != NULL)
		owned_look(o, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	if (status == XR_OK && !late && !rref_same(&id, &fork))
		rref_tell(MESSAGE_RREF_CONFIRM, from, &word);
	return status;
}

void
rref_made(const struct rref_wire *birth, struct xr_value *value, bool failed)
{
	struct rref_gid id = rref_id_of(birth);
	struct rref_gid fork = rref_fork_of(birth);
	struct rref_wire word = rref_wire_of(&id, &fork, 0);
	struct rref_todo todo;
	struct owned *o;
	struct fork *f;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	o = owned_find(&id);
	if (o != NULL && o->is_late) {
		f = (struct fork *)gid_find(&rref.forks, &fork);
		if (f != NULL)
			rref_later(&todo, MESSAGE_RREF_CONFIRM, f->user, &word);
	}
	if (o != NULL)
		owned_set(o, value, failed, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
}

/* --- messages --------------------------------------------------------------- */

/* It may be the first that is heard of the value. */
void
owner_forked(struct peer *from, const struct rref_wire *wire)
{
	struct rref_gid id = rref_id_of(wire), fork = rref_fork_of(wire);
	struct rref_wire word = rref_wire_of(&id, &fork, 0);
	enum xr_status status = XR_E_NOMEM;
	struct rref_todo todo;
	struct owned *o;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	o = owned_find(&id);
	if (o == NULL)
		o = owned_new(&id);
	if (o != NULL) {
		status = owned_fork(o, &fork, from);
		owned_look(o, &todo);
	}
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	if (status != XR_OK)
		word.flags = RREF_UNMADE;
	rref_tell(MESSAGE_RREF_CONFIRM, from, &word);
}

static struct xr_value *
unmade(const struct peer *from)
{
	return failure_new(XR_E_CANCELLED,
		"the call of %s (%u) that was to make the value failed",
		from->name, from->id);
}

void
owner_deleted(struct peer *from, const struct rref_wire *wire)
{
	struct rref_gid id = rref_id_of(wire), fork = rref_fork_of(wire);
	struct xr_value *why = NULL;
	struct rref_todo todo;
	struct owned *o;

	if ((wire->flags & RREF_UNMADE) != 0)
		why = unmade(from);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	o = owned_find(&id);
	/* Nobody else will make it. */
	if (o != NULL && why != NULL && !o->begun)
		owned_set(o, why, true, &todo);
	owned_unfork(&fork, from, why, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	xr_value_unref(why);
}

/* Of an id of this process that is not in the table nobody will hear again. */
static bool
is_past(const struct rref_gid *id)
{
	const struct peer *self = agent_self();

	return id->worker == self->id && id->incarnation == self->incarnation;
}

/* @w is taken. */
static void
want(const struct rref_gid *id, struct want *w)
{
	int64_t deadline = w->deadline;
	struct rref_todo todo;
	struct owned *o;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	o = owned_find(id);
	if (o == NULL && !is_past(id))
		o = owned_new(id);
	if (o != NULL)
		owned_want(o, w, &todo);
	else
		TAILQ_INSERT_TAIL(&todo.wants, w, list);
	pthread_mutex_unlock(&rref.lock);
	if (o == NULL)
		w->error = failure_new(XR_E_NOTFOUND,
			"%s (%u) has no such reference, any more",
			agent_self()->name, agent_self()->id);
	else if (deadline != INT64_MAX)
		lead_due(deadline);
	rref_do(&todo);
}

void
rref_on_fetch(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct want *w = calloc(1, sizeof(*w));
	struct rref_wire wire;
	struct rref_gid id;

	if (w == NULL || body->len != sizeof(wire)) {
		free(w);
		return; /* he hears by his own clock */
	}
	memcpy(&wire, body->data, sizeof(wire));
	id = rref_id_of(&wire);
	w->peer = peer;
	w->corr = record->corr;
	w->fork = rref_fork_of(&wire);
	w->only_created = (wire.flags & RREF_ONLY_CREATED) != 0;
	w->deadline = INT64_MAX;
	if (wire.timeout < INT64_MAX)
		future_deadline((int64_t)wire.timeout, &w->deadline);
	want(&id, w);
}

/* Its handle may have ended by the time that it is there: the object stays. */
void
rref_object(struct peer *from, const struct rref_wire *target,
	rref_object_fn *fn, void *ctx)
{
	struct rref_gid id = rref_id_of(target), fork = rref_fork_of(target);
	struct want *w = calloc(1, sizeof(*w));
	struct rref_todo todo;

	if (w == NULL) {
		fn(ctx, NULL, failure_new(XR_E_NOMEM, "out of memory"));
	} else {
		w->fn = fn;
		w->ctx = ctx;
		w->peer = from;
		w->deadline = INT64_MAX;
		want(&id, w);
	}
	if (from != agent_self())
		return;
	/* A handle here kept it by a fork until now. */
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	owned_unfork(&fork, from, NULL, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
}

/* --- time, and losses -------------------------------------------------------- */

/* Whoever asked knows by his own clock that it is over; of one here this is his
 * clock. */
static void
expire_wants(struct owned *o, int64_t now, int64_t *next,
	struct rref_todo *todo)
{
	struct want *w, *behind;

	for (w = TAILQ_FIRST(&o->wants); w != NULL; w = behind) {
		behind = TAILQ_NEXT(w, list);
		if (w->deadline > now) {
			*next = w->deadline < *next ? w->deadline : *next;
			continue;
		}
		TAILQ_REMOVE(&o->wants, w, list);
		rref.wanted--;
		w->error =
			failure_new(XR_E_TIMEOUT, "the value is not there yet");
		TAILQ_INSERT_TAIL(&todo->wants, w, list);
	}
}

int64_t
owners_expire(int64_t now, struct rref_todo *todo)
{
	struct gid_node *n, *behind;
	int64_t next = INT64_MAX;

	if (rref.wanted == 0)
		return next;
	for (n = gid_first(&rref.owned); n != NULL; n = behind) {
		behind = gid_next(&rref.owned, n);
		expire_wants((struct owned *)n, now, &next, todo);
		owned_look((struct owned *)n, todo);
	}
	return next;
}

/* Of a peer's fetch. */
static struct want *
find_fetch(struct owned *o, const struct peer *peer, uint64_t corr)
{
	struct want *w;

	TAILQ_FOREACH(w, &o->wants, list)
	if (w->peer == peer && w->fn == NULL && w->corr == corr)
		return w;
	return NULL;
}

void
rref_cancel(const struct peer *peer, uint64_t corr)
{
	struct rref_todo todo;
	struct gid_node *n;
	struct want *w = NULL;

	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	n = rref.wanted > 0 ? gid_first(&rref.owned) : NULL;
	while (n != NULL) {
		w = find_fetch((struct owned *)n, peer, corr);
		if (w != NULL)
			break;
		n = gid_next(&rref.owned, n);
	}
	if (w != NULL) {
		TAILQ_REMOVE(&((struct owned *)n)->wants, w, list);
		rref.wanted--;
		owned_look((struct owned *)n, &todo);
	}
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	free(w);
}

static void
lose_forks(struct owned *o, struct peer *peer, struct rref_todo *todo)
{
	struct fork *f, *next;

	/* @o is not to go before its last. */
	o->handles++;
	for (f = LIST_FIRST(&o->forks); f != NULL; f = next) {
		next = LIST_NEXT(f, list);
		if (f->user == peer)
			remove_fork(f, todo);
	}
	o->handles--;
}

void
owners_lost(struct peer *peer, struct rref_todo *todo)
{
	struct xr_value *why = failure_new(XR_E_PEER_LOST,
		"lost %s (%u), which was to make the value", peer->name,
		peer->id);
	struct gid_node *n, *behind;

	for (n = gid_first(&rref.owned); n != NULL; n = behind) {
		struct owned *o = (struct owned *)n;

		behind = gid_next(&rref.owned, n);
		o->handles++;
		end_wants(o, NULL, peer, why, todo);
		if (!o->begun && n->id.worker == peer->id &&
			n->id.incarnation == peer->incarnation)
			owned_set(o, why, true, todo);
		o->handles--;
		lose_forks(o, peer, todo);
		owned_look(o, todo);
	}
	xr_value_unref(why);
}

/* --- end --------------------------------------------------------------------- */

void
owners_abandon(struct rref_todo *todo)
{
	struct gid_node *n, *behind;
	struct want *w, *next;

	for (n = gid_first(&rref.owned); n != NULL; n = behind) {
		struct owned *o = (struct owned *)n;

		behind = gid_next(&rref.owned, n);
		for (w = TAILQ_FIRST(&o->wants); w != NULL; w = next) {
			next = TAILQ_NEXT(w, list);
			if (w->future == NULL)
				continue;
			TAILQ_REMOVE(&o->wants, w, list);
			rref.wanted--;
			w->error = failure_new(XR_E_CLOSED,
				"the agent was shut down");
			TAILQ_INSERT_TAIL(&todo->wants, w, list);
		}
	}
}

static void
close_one(struct owned *o, struct xr_value *why, struct rref_todo *todo)
{
	struct want *w;
	struct fork *f;

	o->handles++;
	while ((w = TAILQ_FIRST(&o->wants)) != NULL) {
		TAILQ_REMOVE(&o->wants, w, list);
		rref.wanted--;
		w->error = why != NULL ? xr_value_ref(why) : NULL;
		/* No peer is told any more. */
		if (w->future != NULL || w->fn != NULL)
			TAILQ_INSERT_TAIL(&todo->wants, w, list);
		else
			drop_want(w);
	}
	while ((f = LIST_FIRST(&o->forks)) != NULL)
		remove_fork(f, todo);
	o->handles--;
	o->creating = false;
	o->closed = true;
	gid_remove(&rref.owned, &o->node);
	owned_look(o, todo);
}

/* Handles here may stay; the value may lie in a carrier's memory, and goes. */
bool
owners_close(struct rref_todo *todo, struct xr_value **value)
{
	struct gid_node *n = gid_first(&rref.owned);
	struct owned *o = (struct owned *)n;
	struct xr_value *why;

	if (n == NULL)
		return false;
	why = failure_new(XR_E_CLOSED, "the agent was shut down");
	*value = o->value;
	o->value = NULL;
	close_one(o, why, todo);
	xr_value_unref(why);
	return true;
}
