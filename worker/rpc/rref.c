/* SPDX-License-Identifier: Apache-2.0 */
/* rref.c - see xrun/rref.h and rref.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/rref.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"
#include "worker/rpc/values.h"

/* --- handles ------------------------------------------------------------------ */

XR_EXPORT enum xr_status
xr_rref_from_value(struct xr_value *value, struct xr_rref **out,
	struct xr_error *err)
{
	enum xr_status status = value == NULL ?
		fail(err, XR_E_INVAL, "no value") :
		agent_enter(err);
	struct xr_rref *h = NULL;
	struct rref_todo todo;
	struct rref_gid id;
	struct owned *o;

	if (status != XR_OK) {
		xr_value_unref(value);
		return status;
	}
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	id = rref_new_gid();
	o = owned_new(&id);
	if (o != NULL)
		h = handle_of_owned(o);
	if (h != NULL) {
		o->begun = true;
		owned_set(o, value, false, &todo);
	} else if (o != NULL) {
		owned_look(o, &todo);
	}
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	agent_leave();
	xr_value_unref(value);
	if (h == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	*out = h;
	return XR_OK;
}

XR_EXPORT bool
xr_rref_is_owner(const struct xr_rref *h)
{
	return h->is_owner;
}

XR_EXPORT enum xr_status
xr_rref_owner(const struct xr_rref *h, struct xr_worker *worker)
{
	if (worker == NULL || worker->size < sizeof(*worker))
		return XR_E_INVAL;
	worker->id = h->owner_id;
	memcpy(worker->name, h->owner_name, sizeof(worker->name));
	return XR_OK;
}

XR_EXPORT bool
xr_rref_confirmed(const struct xr_rref *h)
{
	bool confirmed;

	pthread_mutex_lock(&rref.lock);
	confirmed = h->state == USER_CONFIRMED;
	pthread_mutex_unlock(&rref.lock);
	return confirmed;
}

static struct xr_rref_id
public_id(const struct rref_gid *id)
{
	return (struct xr_rref_id){ .worker = id->worker, .local = id->local };
}

XR_EXPORT void
xr_rref_id(const struct xr_rref *h, struct xr_rref_id *id,
	struct xr_rref_id *fork)
{
	if (id != NULL)
		*id = public_id(&h->id);
	if (fork != NULL)
		*fork = public_id(&h->node.id);
}

XR_EXPORT size_t
xr_rref_text(const struct xr_rref *h, char *text, size_t cap)
{
	char id[80], fork[80];
	int len;

	snprintf(id, sizeof(id),
		"GloballyUniqueId(created_on=%u, local_id=%" PRIu64 ")",
		h->id.worker, h->id.local);
	snprintf(fork, sizeof(fork),
		"GloballyUniqueId(created_on=%u, local_id=%" PRIu64 ")",
		h->node.id.worker, h->node.id.local);
	if (h->is_owner)
		len = snprintf(text, cap, "OwnerRRef(%s)", id);
	else
		len = snprintf(text, cap, "UserRRef(RRefId = %s, ForkId = %s)",
			id, fork);
	return len > 0 ? (size_t)len : 0;
}

/* --- the value ------------------------------------------------------------------ */

/* Under the lock. Of an owner: a future of it. */
static enum xr_status
want_here(struct xr_rref *h, bool only_created, int64_t timeout,
	struct xr_future **future, struct rref_todo *todo)
{
	struct want *w = calloc(1, sizeof(*w));
	struct xr_future *f = w != NULL ? future_new(NULL, NULL) : NULL;

	if (f == NULL) {
		free(w);
		return XR_E_NOMEM;
	}
	w->future = xr_future_ref(f);
	w->only_created = only_created;
	future_deadline(timeout, &w->deadline);
	owned_want(h->owned, w, todo);
	*future = f;
	return XR_OK;
}

static struct xr_value *
read_value(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *err)
{
	struct xr_value *v = NULL;

	if ((record->flags & MESSAGE_VALUE) == 0) {
		fail(err, XR_E_PROTO, "%s (%u) answered with bytes", from->name,
			from->id);
		return NULL;
	}
	return values_unpack(body, from, &v, err) == XR_OK ? v : NULL;
}

/* A fetch of another's value. */
struct fetch {
	struct rref_wire wire;
	struct xr_part part;
	struct question q;
};

static void
prepare(struct fetch *f, struct xr_rref *h, uint32_t flags, int64_t timeout)
{
	f->wire = rref_wire_of(&h->id, &h->node.id, flags);
	f->wire.timeout = (uint64_t)timeout;
	f->part = (struct xr_part){ &f->wire, sizeof(f->wire) };
	f->q = (struct question){
		.to = h->owner,
		.kind = MESSAGE_RREF_FETCH,
		.parts = &f->part,
		.count = 1,
		.timeout = timeout,
		.call = true,
	};
}

/* A handle that failed meanwhile says why. */
static enum xr_status
ended(struct xr_rref *h, enum xr_status status, struct xr_error *err)
{
	struct xr_error why = { 0 };

	pthread_mutex_lock(&rref.lock);
	if (user_usable(h, &why) != XR_OK)
		status = fail(err, why.status, "%s", why.text);
	pthread_mutex_unlock(&rref.lock);
	return status;
}

static enum xr_status
fetch(struct xr_rref *h, int64_t timeout, struct xr_value **value,
	struct xr_error *err)
{
	struct ask_sync a = { .read = read_value };
	enum xr_status status;
	struct fetch f;

	prepare(&f, h, 0, timeout);
	status = ask_wait(&f.q, &a, err);
	xr_value_unref(a.error);
	if (status != XR_OK) {
		xr_value_unref(a.value);
		return ended(h, status, err);
	}
	*value = a.value;
	return XR_OK;
}

/* Enters the agent; of one that is gone it says so. */
static enum xr_status
enter(struct xr_rref *h, int64_t *timeout, struct xr_error *err)
{
	enum xr_status status = agent_enter(NULL);

	if (status != XR_OK)
		return fail(err, XR_E_CLOSED,
			"the reference ended when the agent was shut down");
	pthread_mutex_lock(&rref.lock);
	status = user_usable(h, err);
	pthread_mutex_unlock(&rref.lock);
	if (status == XR_OK)
		status = agent_timeout(*timeout, timeout, err);
	if (status != XR_OK)
		agent_leave();
	return status;
}

static enum xr_status
begin_want(struct xr_rref *h, bool only_created, int64_t timeout,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status;
	struct rref_todo todo;
	struct fetch f;
	int64_t due;

	if (!h->is_owner) {
		prepare(&f, h, only_created ? RREF_ONLY_CREATED : 0, timeout);
		return ask_future(&f.q, read_value, future, err);
	}
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	status = want_here(h, only_created, timeout, future, &todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	future_deadline(timeout, &due);
	lead_due(due);
	return status == XR_OK ? XR_OK : fail(err, status, "out of memory");
}

/* What is there needs no future. */
static enum xr_status
get_local(struct xr_rref *h, int64_t timeout, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_value *v = NULL, *error = NULL;
	struct xr_future *f = NULL;
	enum xr_status status;

	pthread_mutex_lock(&rref.lock);
	if (h->owned->error != NULL)
		error = xr_value_ref(h->owned->error);
	else if (h->owned->value != NULL)
		v = xr_value_ref(h->owned->value);
	pthread_mutex_unlock(&rref.lock);
	if (error != NULL) {
		status = failure_status(error, err);
		xr_value_unref(error);
		return status;
	}
	if (v != NULL) {
		*value = v;
		return XR_OK;
	}
	if (timeout == 0)
		return fail(err, XR_E_TIMEOUT, "the value does not exist yet");
	status = begin_want(h, false, timeout, &f, err);
	if (status == XR_OK)
		status = xr_future_wait(f, XR_TIMEOUT_NEVER, value, err);
	xr_future_unref(f);
	return status;
}

XR_EXPORT enum xr_status
xr_rref_fetch(struct xr_rref *h, int64_t timeout, struct xr_value **value,
	struct xr_error *err)
{
	enum xr_status status = enter(h, &timeout, err);

	if (status != XR_OK)
		return status;
	status = h->is_owner ? get_local(h, timeout, value, err) :
			       fetch(h, timeout, value, err);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_rref_fetch_async(struct xr_rref *h, int64_t timeout,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = enter(h, &timeout, err);

	if (status != XR_OK)
		return status;
	status = begin_want(h, false, timeout, future, err);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_rref_local(struct xr_rref *h, int64_t timeout, struct xr_value **value,
	struct xr_error *err)
{
	enum xr_status status;

	if (!h->is_owner)
		return fail(err, XR_E_INVAL,
			"%s (%u) has a handle of a value that %s (%u) owns: fetch it",
			agent_state() != AGENT_NONE ? agent_self()->name : "?",
			agent_state() != AGENT_NONE ? agent_self()->id : 0,
			h->owner_name, h->owner_id);
	status = enter(h, &timeout, err);
	if (status != XR_OK)
		return status;
	status = get_local(h, timeout, value, err);
	agent_leave();
	return status;
}

/* Of one that this process makes it is known; of others its owner is asked. */
XR_EXPORT enum xr_status
xr_rref_created(struct xr_rref *h, struct xr_future **future)
{
	int64_t timeout = XR_TIMEOUT_NEVER;
	enum xr_status status = XR_OK;

	pthread_mutex_lock(&rref.lock);
	*future = h->created != NULL ? xr_future_ref(h->created) : NULL;
	pthread_mutex_unlock(&rref.lock);
	if (*future != NULL)
		return XR_OK;
	status = enter(h, &timeout, NULL);
	if (status != XR_OK)
		return status;
	status = begin_want(h, true, timeout, future, NULL);
	agent_leave();
	return status;
}
