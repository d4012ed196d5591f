/* SPDX-License-Identifier: Apache-2.0 */
/* guild.c - groups of names: making and closing them; see guild.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/group/guild.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/meet.h"
#include "worker/world/world.h"

LIST_HEAD(guild_list, xr_group);

/* Those that this process made, and has not closed. */
static struct {
	pthread_mutex_t lock;
	struct guild_list all;
	_Atomic uint64_t made; /* for tags */
} guilds = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- life ----------------------------------------------------------------- */

struct xr_group *
guild_alloc(const char *name, const char *const *members, size_t count)
{
	struct xr_group *g =
		calloc(1, sizeof(*g) + count * sizeof(g->member[0]));

	if (g == NULL)
		return NULL;
	atomic_init(&g->refs, 1);
	pthread_mutex_init(&g->lock, NULL);
	snprintf(g->name, sizeof(g->name), "%s", name);
	g->count = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		g->member[i] = strdup(members[i]);
		if (g->member[i] == NULL) {
			guild_unref(g);
			return NULL;
		}
	}
	return g;
}

void
guild_unref(struct xr_group *g)
{
	struct guild_known *k;
	struct guild_held *h;

	if (g == NULL || atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	while ((h = LIST_FIRST(&g->held)) != NULL) {
		LIST_REMOVE(h, list);
		xr_value_unref(h->value);
		free(h);
	}
	while ((k = LIST_FIRST(&g->known)) != NULL) {
		LIST_REMOVE(k, list);
		free(k);
	}
	for (uint32_t i = 0; i < g->count; i++)
		free(g->member[i]);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

bool
guild_name_is(const char *name)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
	size_t len = name != NULL ? strlen(name) : 0;

	return len > 0 && len <= XR_GROUP_NAME_MAX && strspn(name, fine) == len;
}

bool
guild_has(const struct xr_group *g, const char *worker)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (strcmp(g->member[i], worker) == 0)
			return true;
	return false;
}

/* --- coming in -------------------------------------------------------------- */

enum xr_status
guild_enter(const struct xr_group *g, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	if (g->world != agent_self()->incarnation)
		status = fail(err, XR_E_STATE,
			"group %s is of a world that was closed", g->name);
	else if (atomic_load(&g->is_closed))
		status = fail(err, XR_E_CLOSED, "group %s was closed", g->name);
	if (status != XR_OK)
		agent_leave();
	return status;
}

enum xr_status
guild_enter_member(const struct xr_group *g, const char *what,
	struct xr_error *err)
{
	enum xr_status status = guild_enter(g, err);
	const char *self;

	if (status != XR_OK)
		return status;
	self = agent_self()->name;
	if (!guild_has(g, self))
		status = fail(err, XR_E_NOTMEMBER,
			"%s is no member of group %s, and cannot %s", self,
			g->name, what);
	else if (g->is_received)
		status = fail(err, XR_E_NOTMEMBER,
			"%s received group %s, and cannot %s by that: by the one it made",
			self, g->name, what);
	if (status != XR_OK)
		agent_leave();
	return status;
}

struct xr_group *
guild_find(const char *tag)
{
	struct xr_group *g;

	pthread_mutex_lock(&guilds.lock);
	LIST_FOREACH(g, &guilds.all, list)
	if (strcmp(g->tag, tag) == 0)
		break;
	if (g != NULL)
		atomic_fetch_add(&g->refs, 1);
	pthread_mutex_unlock(&guilds.lock);
	return g;
}

/* --- making ----------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One of a world that was closed is in nobody's way. */
static enum xr_status
enlist(struct xr_group *g, struct xr_error *err)
{
	struct xr_group *other;

	pthread_mutex_lock(&guilds.lock);
	LIST_FOREACH(other, &guilds.all, list)
	if (other->world == g->world && strcmp(other->name, g->name) == 0)
		break;
	if (other == NULL) {
		atomic_fetch_add(&g->refs, 1);
		LIST_INSERT_HEAD(&guilds.all, g, list);
	}
	pthread_mutex_unlock(&guilds.lock);
	return other == NULL ?
		XR_OK :
		fail(err, XR_E_EXISTS, "%s has a group %s already",
			agent_self()->name, g->name);
}

/* False: it is not among them any more. */
static bool
unlist(struct xr_group *g)
{
	struct xr_group *other;

	pthread_mutex_lock(&guilds.lock);
	LIST_FOREACH(other, &guilds.all, list)
	if (other == g)
		break;
	if (other != NULL)
		LIST_REMOVE(g, list);
	pthread_mutex_unlock(&guilds.lock);
	return other != NULL;
}

static enum xr_status
check_members(const struct xr_group *g, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct peer *p;

	if (!guild_has(g, agent_self()->name))
		return fail(err, XR_E_NOTMEMBER, "%s is no member of group %s",
			agent_self()->name, g->name);
	for (uint32_t i = 0; i < g->count && status == XR_OK; i++) {
		if (i > 0 && strcmp(g->member[i], g->member[i - 1]) == 0)
			return fail(err, XR_E_INVAL,
				"%s is a member of group %s twice",
				g->member[i], g->name);
		status = agent_peer(g->member[i], 0, &p, err);
	}
	return status;
}

/* Members that come to one meeting make one group: the first says its number. */
static enum xr_status
come_together(struct xr_group *g, struct xr_error *err)
{
	const struct meet_label label = { MEET_GROUP, g->name, NULL };
	const struct xr_rpc_meeting all_of_them = {
		.size = sizeof(all_of_them),
		.names = (const char *const *)g->member,
		.count = g->count,
		.timeout = g->timeout,
	};
	struct xr_value *own =
		xr_value_new_u64(atomic_fetch_add(&guilds.made, 1));
	struct xr_error why = { 0 };
	struct xr_value *all = NULL, *first;
	uint64_t number = 0;
	enum xr_status status = own == NULL ?
		fail(&why, XR_E_NOMEM, "out of memory") :
		meet_as(&label, &all_of_them, own, &all, &why);

	xr_value_unref(own);
	if (status != XR_OK)
		return fail(err, status, "group %s: %s", g->name, why.text);
	first = xr_value_find(all, g->member[0], strlen(g->member[0]));
	if (first == NULL || xr_value_get_u64(first, &number) != XR_OK)
		status = fail(err, XR_E_PROTO, "group %s: %s said no number",
			g->name, g->member[0]);
	pthread_mutex_lock(&guilds.lock);
	snprintf(g->tag, sizeof(g->tag), "%s/%" PRIx64 "-%" PRIx64, g->name,
		agent_find(g->member[0])->incarnation, number);
	pthread_mutex_unlock(&guilds.lock);
	xr_value_unref(all);
	return status;
}

static enum xr_status
check(struct xr_world *world, const struct xr_group_opts *opts,
	struct xr_error *err)
{
	if (world == NULL || world != xr_world_get())
		return fail(err, XR_E_STATE,
			"that is not this process's world");
	if (opts == NULL || opts->size < sizeof(*opts))
		return fail(err, XR_E_INVAL, "struct xr_group_opts: size %u",
			opts != NULL ? opts->size : 0);
	if (timeout_check(opts->timeout, err) != XR_OK)
		return XR_E_INVAL;
	if (!guild_name_is(opts->name))
		return fail(err, XR_E_INVAL,
			"a group's name is 1 to 127 of A-Z a-z 0-9 _ . : -");
	if (opts->members != NULL && opts->count == 0)
		return fail(err, XR_E_INVAL, "group %s of nobody", opts->name);
	for (size_t i = 0; opts->members != NULL && i < opts->count; i++)
		if (opts->members[i] == NULL)
			return fail(err, XR_E_INVAL,
				"member %zu of group %s is NULL", i,
				opts->name);
	return XR_OK;
}

static struct xr_group *
of_opts(struct xr_world *world, const struct xr_group_opts *opts)
{
	size_t count =
		opts->members != NULL ? opts->count : xr_world_size(world);
	const char **names = calloc(count, sizeof(*names));
	struct xr_group *g = NULL;

	if (names == NULL)
		return NULL;
	if (opts->members == NULL)
		xr_world_members(world, names, count);
	else
		memcpy(names, opts->members, count * sizeof(*names));
	qsort(names, count, sizeof(*names), compare);
	g = guild_alloc(opts->name, names, count);
	free(names);
	if (g == NULL)
		return NULL;
	g->world = agent_self()->incarnation;
	g->timeout = opts->timeout;
	timeout_field(&g->timeout, world_timeout(world), NULL);
	return g;
}

static enum xr_status
make(struct xr_group *g, struct xr_error *err)
{
	enum xr_status status = check_members(g, err);

	if (status == XR_OK)
		status = guild_serve(err);
	if (status == XR_OK)
		status = enlist(g, err);
	if (status != XR_OK)
		return status;
	status = come_together(g, err);
	if (status != XR_OK)
		xr_group_close(g);
	return status;
}

XR_EXPORT enum xr_status
xr_group_new(struct xr_world *world, const struct xr_group_opts *opts,
	struct xr_group **group, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct xr_group *g = NULL;

	if (status != XR_OK)
		return status;
	status = check(world, opts, err);
	if (status == XR_OK) {
		g = of_opts(world, opts);
		status = g != NULL ? make(g, err) :
				     fail(err, XR_E_NOMEM, "out of memory");
	}
	agent_leave();
	if (status == XR_OK)
		*group = g;
	else
		guild_unref(g);
	return status;
}

XR_EXPORT void
xr_group_close(struct xr_group *group)
{
	bool is_there;

	if (atomic_exchange(&group->is_closed, true) ||
		inside_not_forked(NULL) != XR_OK)
		return;
	is_there = agent_enter(NULL) == XR_OK;
	guild_release_all(group,
		is_there && group->world == agent_self()->incarnation);
	if (unlist(group))
		guild_unref(group);
	if (is_there)
		agent_leave();
}

XR_EXPORT void
xr_group_free(struct xr_group *group)
{
	if (group == NULL)
		return;
	xr_group_close(group);
	guild_unref(group);
}

/* --- asking ----------------------------------------------------------------- */

XR_EXPORT const char *
xr_group_name(const struct xr_group *group)
{
	return group->name;
}

XR_EXPORT uint32_t
xr_group_size(const struct xr_group *group)
{
	return group->count;
}

XR_EXPORT bool
xr_group_is_member(const struct xr_group *group, const char *name)
{
	if (name == NULL)
		name = xr_name();
	return name != NULL && guild_has(group, name);
}

XR_EXPORT size_t
xr_group_members(const struct xr_group *group, const char **names, size_t cap)
{
	for (uint32_t i = 0; i < group->count && i < cap; i++)
		names[i] = group->member[i];
	return group->count;
}
