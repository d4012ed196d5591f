/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guild_call.c - calls of members, of values and of services; see guild.h.
 *
 * Where a service was found is kept; it is asked there with the generation that it
 * had. A holder that has another, or none, refuses with XR_E_NOTFOUND, and has not
 * called anything: then that is struck off, and all is done once more, by the store.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/group/guild.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/block.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rpc_inner.h"

/* --- members ------------------------------------------------------------------ */

static enum xr_status
check_target(struct xr_group *g, const struct xr_rpc_call *call,
	struct xr_error *err)
{
	enum xr_status status = guild_enter(g, err);
	struct peer *p = NULL;
	const char *to;

	if (status != XR_OK)
		return status;
	if (call == NULL || call->size < sizeof(*call)) {
		agent_leave();
		return fail(err, XR_E_INVAL,
			"struct xr_rpc_call: its size is %u",
			call != NULL ? call->size : 0);
	}
	to = call->to;
	if (to == NULL) {
		status = agent_peer(NULL, call->id, &p, err);
		to = p != NULL ? p->name : "";
	}
	if (status == XR_OK && !guild_has(g, to))
		status = fail(err, XR_E_NOTMEMBER,
			"%s is no member of group %s, and is not called by it",
			to, g->name);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_group_sync(struct xr_group *group, const struct xr_rpc_call *call,
	struct xr_value **value, struct xr_error *err)
{
	enum xr_status status = check_target(group, call, err);

	return status == XR_OK ?
		XR_KEEP_FRAME(rpc_sync(call, NULL, value, err)) :
		status;
}

XR_EXPORT enum xr_status
xr_group_async(struct xr_group *group, const struct xr_rpc_call *call,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = check_target(group, call, err);

	return status == XR_OK ?
		XR_KEEP_FRAME(rpc_async(call, NULL, future, err)) :
		status;
}

XR_EXPORT enum xr_status
xr_group_remote(struct xr_group *group, const struct xr_rpc_call *call,
	struct xr_rref **rref, struct xr_error *err)
{
	enum xr_status status = check_target(group, call, err);

	return status == XR_OK ?
		XR_KEEP_FRAME(rpc_remote(call, NULL, rref, err)) :
		status;
}

/* --- what was found -------------------------------------------------------------- */

/* The lock is held. */
static struct guild_known *
find(struct xr_group *g, const char *key)
{
	struct guild_known *k;

	LIST_FOREACH(k, &g->known, list)
	if (strcmp(k->key, key) == 0)
		break;
	return k;
}

static bool
recall(struct xr_group *g, const char *key, struct guild_place *place)
{
	struct guild_known *k;

	pthread_mutex_lock(&g->lock);
	k = find(g, key);
	if (k != NULL)
		*place = k->place;
	pthread_mutex_unlock(&g->lock);
	return k != NULL;
}

/* Without memory it is looked up the next time, too. */
static void
remember(struct xr_group *g, const char *key, const struct guild_place *place)
{
	struct guild_known *k, *fresh = calloc(1, sizeof(*k) + strlen(key) + 1);

	pthread_mutex_lock(&g->lock);
	k = find(g, key);
	if (k == NULL && fresh != NULL) {
		k = fresh;
		fresh = NULL;
		memcpy(k->key, key, strlen(key) + 1);
		LIST_INSERT_HEAD(&g->known, k, list);
	}
	if (k != NULL)
		k->place = *place;
	pthread_mutex_unlock(&g->lock);
	free(fresh);
}

static void
forget(struct xr_group *g, const char *key, const struct guild_place *place)
{
	struct guild_known *k;

	pthread_mutex_lock(&g->lock);
	k = find(g, key);
	if (k != NULL && k->place.generation == place->generation &&
		k->place.incarnation == place->incarnation)
		LIST_REMOVE(k, list);
	else
		k = NULL;
	pthread_mutex_unlock(&g->lock);
	free(k);
}

/* --- asking a holder -------------------------------------------------------------- */

/* A call of a key: where it goes, and when its time is over. */
struct errand {
	struct xr_group *g;
	enum guild_kind kind;
	const char *key;
	struct xr_value *args, *named; /* borrowed; NULL */
	int64_t timeout, deadline; /* as it was given, and when that is over */
	struct guild_place place;
	bool was_known;
};

static enum xr_status
find_holder(struct errand *e, bool anew, struct xr_error *err)
{
	enum xr_status status;

	e->was_known = !anew && recall(e->g, e->key, &e->place);
	if (e->was_known)
		return XR_OK;
	status = guild_look_up(e->g, e->kind, e->key, &e->place, err);
	if (status == XR_OK && e->kind == GUILD_SERVICE)
		remember(e->g, e->key, &e->place);
	return status;
}

static struct xr_value *
text_of(const char *text)
{
	return xr_value_new_text(text, strlen(text));
}

/* To whoever holds the key, as is known or, @anew, by the store. @call's args are to be
 * released. */
static enum xr_status
address(struct errand *e, bool anew, struct xr_rpc_call *call,
	struct xr_error *err)
{
	const bool is_call = e->kind == GUILD_SERVICE;
	enum xr_status status = find_holder(e, anew, err);
	struct xr_value *items[4] = { NULL };

	call->args = NULL;
	if (status != XR_OK)
		return status;
	items[0] = text_of(e->g->tag);
	items[1] = text_of(e->key);
	items[2] = xr_value_new_u64(e->place.generation);
	if (is_call)
		items[3] = e->args != NULL ? xr_value_ref(e->args) :
					     xr_value_new_list();
	*call = (struct xr_rpc_call){
		.size = sizeof(*call),
		.id = e->place.id,
		.func = is_call ? GUILD_FUNC_CALL : GUILD_FUNC_VALUE,
		.args = xr_value_new_list_of(items, is_call ? 4 : 3),
		.named = e->named,
		.timeout = e->timeout,
	};
	return call->args != NULL ? XR_OK :
				    fail(err, XR_E_NOMEM, "out of memory");
}

/* What a call that came to nothing says of where its key was. True: it is to be tried
 * once more, if it @may, with what time the first try has left. */
static bool
learn(struct errand *e, enum xr_status status, bool may)
{
	int64_t left;

	if (status != XR_E_NOTFOUND && status != XR_E_PEER_LOST)
		return false;
	forget(e->g, e->key, &e->place);
	if (status == XR_E_PEER_LOST)
		return false;
	guild_strike(e->g, e->kind, e->key, &e->place);
	left = future_left(e->deadline);
	if (e->deadline != INT64_MAX)
		e->timeout = left > 0 ? left : 1;
	return may;
}

static enum xr_status
ask(struct errand *e, bool anew, struct xr_value **value, struct xr_error *err)
{
	struct xr_error why = { 0 };
	struct xr_rpc_call call;
	enum xr_status status = address(e, anew, &call, err);

	if (status != XR_OK)
		return status;
	status = rpc_sync(&call, NULL, value, &why);
	xr_value_unref(call.args);
	if (status == XR_OK)
		return XR_OK;
	if (learn(e, status, !anew))
		return ask(e, true, value, err);
	return fail(err, status, "'%.60s' of group %s: %s", e->key, e->g->name,
		why.text);
}

static enum xr_status
begin(struct errand *e, struct xr_group *g, const struct xr_group_call *call,
	struct xr_error *err)
{
	enum xr_status status;
	int64_t ns;

	if (call == NULL || call->size < sizeof(*call))
		return fail(err, XR_E_INVAL,
			"struct xr_group_call: its size is %u",
			call != NULL ? call->size : 0);
	if (call->args != NULL && xr_value_kind(call->args) != XR_LIST)
		return fail(err, XR_E_INVAL, "args are of kind %s, not list",
			xr_kind_name(xr_value_kind(call->args)));
	status = guild_key_check(call->key, err);
	if (status == XR_OK)
		status = agent_timeout_field(call->timeout, &ns, err);
	if (status != XR_OK)
		return status;
	*e = (struct errand){
		.g = g,
		.kind = GUILD_SERVICE,
		.key = call->key,
		.args = call->args,
		.named = call->named,
		.timeout = call->timeout,
	};
	future_deadline(ns, &e->deadline);
	return XR_OK;
}

/* --- services ---------------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_group_call_sync(struct xr_group *group, const struct xr_group_call *call,
	struct xr_value **value, struct xr_error *err)
{
	enum xr_status status = guild_enter(group, err);
	struct errand e;

	if (status != XR_OK)
		return status;
	status = begin(&e, group, call, err);
	if (status == XR_OK)
		status = ask(&e, false, value, err);
	agent_leave();
	return status;
}

/* What an errand needs when its caller has gone on. */
struct later {
	struct errand e;
	struct xr_future *answer;
	char key[];
};

static void
later_free(struct later *l)
{
	guild_unref(l->e.g);
	xr_value_unref(l->e.args);
	xr_value_unref(l->e.named);
	xr_future_unref(l->answer);
	free(l);
}

static struct later *
later_new(const struct errand *e)
{
	struct later *l = calloc(1, sizeof(*l) + strlen(e->key) + 1);

	if (l == NULL)
		return NULL;
	memcpy(l->key, e->key, strlen(e->key) + 1);
	l->e = *e;
	l->e.key = l->key;
	atomic_fetch_add(&l->e.g->refs, 1);
	if (e->args != NULL)
		xr_value_ref(e->args);
	if (e->named != NULL)
		xr_value_ref(e->named);
	l->answer = xr_future_new(NULL);
	if (l->answer != NULL)
		return l;
	later_free(l);
	return NULL;
}

static enum xr_status hand_on(struct xr_future *parent, void *ctx,
	struct xr_value **result, struct xr_error *err);

/* hand_on() has @l from here on, unless this fails. */
static enum xr_status
ask_later(struct later *l, bool anew, struct xr_error *err)
{
	struct xr_future *asked = NULL;
	struct xr_rpc_call call;
	enum xr_status status = address(&l->e, anew, &call, err);

	if (status == XR_OK)
		status = rpc_ask(&call, NULL, &asked, err);
	xr_value_unref(call.args);
	if (status != XR_OK)
		return status;
	status = xr_future_then(asked, hand_on, l, XR_THEN, NULL);
	xr_future_unref(asked);
	return status == XR_OK ? XR_OK : fail(err, status, "out of memory");
}

/* False: it goes on with another holder, or has ended otherwise. */
static bool
is_answer(struct later *l, enum xr_status status)
{
	struct xr_error why = { 0 };

	if ((status != XR_E_NOTFOUND && status != XR_E_PEER_LOST) ||
		guild_enter(l->e.g, NULL) != XR_OK)
		return true;
	if (!learn(&l->e, status, l->e.was_known)) {
		agent_leave();
		return true;
	}
	status = ask_later(l, true, &why);
	agent_leave();
	if (status != XR_OK) {
		xr_future_fail_with(l->answer, status, why.text);
		later_free(l);
	}
	return false;
}

/* By an executor, which may wait for the store. */
static enum xr_status
hand_on(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_value(parent, &value, err);
	struct later *l = ctx;

	(void)result;
	if (!is_answer(l, status))
		return XR_OK;
	if (status == XR_OK)
		xr_future_set(l->answer, value);
	else
		xr_future_fail(l->answer, xr_future_error(parent));
	later_free(l);
	return XR_OK;
}

/* The answer may have come, and @l be gone, when it was asked. */
static enum xr_status
begin_later(const struct errand *e, struct xr_future **future,
	struct xr_error *err)
{
	struct later *l = later_new(e);
	struct xr_future *answer;
	enum xr_status status;

	if (l == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	answer = xr_future_ref(l->answer);
	status = ask_later(l, false, err);
	if (status == XR_OK) {
		*future = answer;
		return XR_OK;
	}
	xr_future_unref(answer);
	later_free(l);
	return status;
}

XR_EXPORT enum xr_status
xr_group_call_async(struct xr_group *group, const struct xr_group_call *call,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = guild_enter(group, err);
	struct errand e;

	if (status != XR_OK)
		return status;
	status = begin(&e, group, call, err);
	if (status == XR_OK)
		status = begin_later(&e, future, err);
	agent_leave();
	if (status == XR_OK)
		block_add(*future);
	return status;
}

static enum xr_status
make_remote(struct errand *e, struct xr_rref **rref, struct xr_error *err)
{
	struct xr_rpc_call call;
	enum xr_status status = address(e, true, &call, err);

	if (status == XR_OK)
		status = rpc_remote(&call, NULL, rref, err);
	xr_value_unref(call.args);
	return status;
}

XR_EXPORT enum xr_status
xr_group_call_remote(struct xr_group *group, const struct xr_group_call *call,
	struct xr_rref **rref, struct xr_error *err)
{
	enum xr_status status = guild_enter(group, err);
	struct errand e;

	if (status != XR_OK)
		return status;
	status = begin(&e, group, call, err);
	if (status == XR_OK)
		status = make_remote(&e, rref, err);
	agent_leave();
	return status;
}

/* --- values -------------------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_group_get_paired(struct xr_group *group, const char *key,
	struct xr_rref **rref, struct xr_error *err)
{
	const struct xr_group_call call = { .size = sizeof(call),
		.key = key,
		.timeout = XR_TIMEOUT_DEFAULT };
	enum xr_status status = guild_enter(group, err);
	struct errand e;

	if (status != XR_OK)
		return status;
	status = begin(&e, group, &call, err);
	e.kind = GUILD_VALUE;
	if (status == XR_OK)
		status = make_remote(&e, rref, err);
	agent_leave();
	return status;
}
