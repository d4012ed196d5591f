/* SPDX-License-Identifier: Apache-2.0 */
/* guild_held.c - what this process holds of a group; see guild.h, xrun/group.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/group/guild.h"
#include "worker/rpc/agent.h"

/* Of this process; 0 is nobody's. */
static _Atomic uint64_t generations = 1;

/* --- the table -------------------------------------------------------------- */

/* The lock is held. */
static struct guild_held *
find(const struct xr_group *g, enum guild_kind kind, const char *key)
{
	struct guild_held *h;

	LIST_FOREACH(h, &g->held, list)
	if (h->kind == kind && strcmp(h->key, key) == 0)
		break;
	return h;
}

bool
guild_holds(const char *tag, const struct guild_held *wanted, const char *key,
	struct guild_held *out)
{
	struct xr_group *g = guild_find(tag);
	struct guild_held *h;
	bool is_there;

	if (g == NULL)
		return false;
	pthread_mutex_lock(&g->lock);
	h = find(g, wanted->kind, key);
	is_there = h != NULL && h->generation == wanted->generation;
	if (is_there && out != NULL) {
		*out = *h;
		xr_value_ref(out->value);
	}
	pthread_mutex_unlock(&g->lock);
	guild_unref(g);
	return is_there;
}

static void
forget(struct xr_group *g, struct guild_held *h)
{
	pthread_mutex_lock(&g->lock);
	LIST_REMOVE(h, list);
	pthread_mutex_unlock(&g->lock);
	xr_value_unref(h->value);
	free(h);
}

/* Those that another thread is about to give up, it does. */
void
guild_release_all(struct xr_group *g, bool is_there)
{
	struct guild_held *h;

	for (;;) {
		pthread_mutex_lock(&g->lock);
		LIST_FOREACH(h, &g->held, list)
		if (!h->changes)
			break;
		if (h != NULL)
			h->changes = true;
		pthread_mutex_unlock(&g->lock);
		if (h == NULL)
			return;
		if (is_there)
			guild_give_up(g, h, NULL);
		forget(g, h);
	}
}

/* --- taking and giving up ---------------------------------------------------- */

static enum xr_status
enter_key(struct xr_group *g, const char *what, const char *key,
	struct xr_error *err)
{
	enum xr_status status = guild_enter_member(g, what, err);

	if (status != XR_OK)
		return status;
	status = guild_key_check(key, err);
	if (status != XR_OK)
		agent_leave();
	return status;
}

/* Of the threads of this process one gets as far as the store. */
static enum xr_status
put_down(struct xr_group *g, const struct guild_held *from, const char *key,
	struct guild_held **held, struct xr_error *err)
{
	struct guild_held *h = calloc(1, sizeof(*h) + strlen(key) + 1);
	bool is_taken;

	if (h == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	*h = *from;
	memcpy(h->key, key, strlen(key) + 1);
	h->changes = true;
	h->generation = atomic_fetch_add(&generations, 1);
	pthread_mutex_lock(&g->lock);
	is_taken = find(g, h->kind, key) != NULL;
	if (!is_taken) {
		xr_value_ref(h->value);
		LIST_INSERT_HEAD(&g->held, h, list);
	}
	pthread_mutex_unlock(&g->lock);
	if (!is_taken) {
		*held = h;
		return XR_OK;
	}
	free(h);
	return fail(err, XR_E_EXISTS, "key '%s' of group %s is held by %s", key,
		g->name, agent_self()->name);
}

/* A group that was closed meanwhile has not seen it: it is given up here. */
static enum xr_status
hold(struct xr_group *g, const struct guild_held *from, const char *key,
	struct xr_error *err)
{
	struct guild_held *h = NULL;
	enum xr_status status = put_down(g, from, key, &h, err);
	bool is_closed;

	if (status != XR_OK)
		return status;
	status = guild_claim(g, h, err);
	if (status != XR_OK) {
		forget(g, h);
		return status;
	}
	pthread_mutex_lock(&g->lock);
	is_closed = atomic_load(&g->is_closed);
	h->changes = is_closed;
	pthread_mutex_unlock(&g->lock);
	if (!is_closed)
		return XR_OK;
	guild_give_up(g, h, NULL);
	forget(g, h);
	return fail(err, XR_E_CLOSED, "group %s was closed", g->name);
}

static enum xr_status
give_up(struct xr_group *g, enum guild_kind kind, const char *key,
	struct xr_error *err)
{
	struct guild_held *h;
	enum xr_status status;

	pthread_mutex_lock(&g->lock);
	h = find(g, kind, key);
	if (h != NULL && h->changes)
		h = NULL;
	if (h != NULL)
		h->changes = true;
	pthread_mutex_unlock(&g->lock);
	if (h == NULL)
		return fail(err, XR_E_NOTFOUND,
			"%s does not hold key '%s' of group %s",
			agent_self()->name, key, g->name);
	status = guild_give_up(g, h, err);
	if (status == XR_OK) {
		forget(g, h);
		return XR_OK;
	}
	pthread_mutex_lock(&g->lock);
	h->changes = false;
	pthread_mutex_unlock(&g->lock);
	return status;
}

static enum xr_status
is_held(struct xr_group *g, enum guild_kind kind, const char *key, bool *is,
	struct xr_error *err)
{
	enum xr_status status = guild_enter(g, err);
	struct guild_place place;
	struct xr_error why = { 0 };

	if (status != XR_OK)
		return status;
	status = guild_key_check(key, err);
	if (status == XR_OK) {
		status = guild_look_up(g, kind, key, &place, &why);
		if (status == XR_OK || status == XR_E_NOTFOUND) {
			*is = status == XR_OK;
			status = XR_OK;
		} else {
			fail(err, status, "%s", why.text);
		}
	}
	agent_leave();
	return status;
}

/* --- values -------------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_group_pair(struct xr_group *group, const char *key, struct xr_value *value,
	struct xr_error *err)
{
	const struct guild_held h = { .kind = GUILD_VALUE, .value = value };
	enum xr_status status = enter_key(group, "pair", key, err);

	if (status != XR_OK)
		return status;
	status = value != NULL ?
		hold(group, &h, key, err) :
		fail(err, XR_E_INVAL, "key '%s' without a value", key);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_group_unpair(struct xr_group *group, const char *key, struct xr_error *err)
{
	enum xr_status status = enter_key(group, "unpair", key, err);

	if (status != XR_OK)
		return status;
	status = give_up(group, GUILD_VALUE, key, err);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_group_is_paired(struct xr_group *group, const char *key, bool *is_paired,
	struct xr_error *err)
{
	return XR_KEEP_FRAME(is_held(group, GUILD_VALUE, key, is_paired, err));
}

/* --- services -------------------------------------------------------------------- */

/* Whether one is short is asked before its key is known. */
static enum xr_status
check_service(const struct xr_group_service *s, struct xr_error *err)
{
	const uint32_t known = XR_FN_ASYNC | XR_FN_SHARE;

	if (s == NULL || s->size < sizeof(*s) || s->fn == NULL)
		return fail(err, XR_E_INVAL,
			"struct xr_group_service: its size is %u, or it has no function",
			s != NULL ? s->size : 0);
	if ((s->flags & ~known) != 0)
		return fail(err, XR_E_INVAL,
			"struct xr_group_service: a service has no flags 0x%x",
			s->flags & ~known);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_group_register(struct xr_group *group,
	const struct xr_group_service *service, struct xr_error *err)
{
	struct guild_held h = { .kind = GUILD_SERVICE };
	enum xr_status status = check_service(service, err);

	if (status != XR_OK)
		return status;
	status = enter_key(group, "register", service->key, err);
	if (status != XR_OK)
		return status;
	h.fn = service->fn;
	h.ctx = service->ctx;
	h.flags = service->flags;
	status = hold(group, &h, service->key, err);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_group_deregister(struct xr_group *group, const char *key,
	struct xr_error *err)
{
	enum xr_status status = enter_key(group, "deregister", key, err);

	if (status != XR_OK)
		return status;
	status = give_up(group, GUILD_SERVICE, key, err);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_group_is_registered(struct xr_group *group, const char *key,
	bool *is_registered, struct xr_error *err)
{
	return XR_KEEP_FRAME(is_held(group, GUILD_SERVICE, key, is_registered,
		err));
}
