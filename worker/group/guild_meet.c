/* SPDX-License-Identifier: Apache-2.0 */
/* guild_meet.c - barriers of a group, and a group as a value; see xrun/group.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/group/guild.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/meet.h"

/* --- barriers -------------------------------------------------------------------- */

/* The meeting counts rounds: what a thread reports is its ticket. */
static enum xr_status
enter_round(struct xr_group *g, int64_t timeout, struct xr_error *err)
{
	const struct meet_label label = { MEET_GROUP, g->tag, &g->barriers };
	const struct xr_rpc_meeting all_of_them = {
		.size = sizeof(all_of_them),
		.names = (const char *const *)g->member,
		.count = g->count,
		.timeout = timeout,
	};
	struct xr_value *nil = xr_value_new_nil();
	struct xr_error why = { 0 };
	enum xr_status status = nil == NULL ?
		fail(&why, XR_E_NOMEM, "out of memory") :
		meet_as(&label, &all_of_them, nil, NULL, &why);

	xr_value_unref(nil);
	return status == XR_OK ? XR_OK :
				 fail(err, status, "a barrier of group %s: %s",
					 g->name, why.text);
}

XR_EXPORT enum xr_status
xr_group_barrier(struct xr_group *group, int64_t timeout, struct xr_error *err)
{
	enum xr_status status = timeout_check(timeout, err);

	if (status != XR_OK)
		return status;
	status = guild_enter_member(group, "enter a barrier", err);
	if (status != XR_OK)
		return status;
	timeout_argument(&timeout, group->timeout, NULL);
	status = enter_round(group, timeout, err);
	agent_leave();
	return status;
}

/* --- as a value ---------------------------------------------------------------------- */

static struct xr_value *
text_of(const char *text)
{
	return xr_value_new_text(text, strlen(text));
}

/* A DICT of group, tag, and a LIST of members. */
XR_EXPORT struct xr_value *
xr_group_value(const struct xr_group *group)
{
	struct xr_value *v = xr_value_new_dict(), *list = xr_value_new_list();
	enum xr_status status = v != NULL && list != NULL ? XR_OK : XR_E_NOMEM;

	for (uint32_t i = 0; i < group->count && status == XR_OK; i++)
		status = xr_value_append(list, text_of(group->member[i]));
	if (status == XR_OK)
		status = xr_value_put(v, "group", 5, text_of(group->name));
	if (status == XR_OK)
		status = xr_value_put(v, "tag", 3, text_of(group->tag));
	if (status == XR_OK) {
		status = xr_value_put(v, "members", 7, list);
		list = NULL;
	}
	xr_value_unref(list);
	if (status == XR_OK)
		return v;
	xr_value_unref(v);
	return NULL;
}

static const char *
text_in(const struct xr_value *dict, const char *key)
{
	const struct xr_value *v = xr_value_find(dict, key, strlen(key));
	size_t len;

	return xr_value_kind(v) == XR_TEXT ? xr_value_data(v, &len) : NULL;
}

/* Sorted, each once. */
static bool
are_members(const struct xr_value *list)
{
	const char *name, *last = "";
	size_t len;

	if (xr_value_kind(list) != XR_LIST || xr_value_count(list) == 0)
		return false;
	for (size_t i = 0; i < xr_value_count(list); i++) {
		if (xr_value_kind(xr_value_at(list, i)) != XR_TEXT)
			return false;
		name = xr_value_data(xr_value_at(list, i), &len);
		if (len > XR_WORKER_NAME_MAX || strcmp(last, name) >= 0)
			return false;
		last = name;
	}
	return true;
}

static struct xr_group *
group_of(const char *name, const char *tag, const struct xr_value *list)
{
	size_t count = xr_value_count(list), len;
	const char **names = calloc(count, sizeof(*names));
	struct xr_group *g = NULL;

	for (size_t i = 0; i < count && names != NULL; i++)
		names[i] = xr_value_data(xr_value_at(list, i), &len);
	if (names != NULL)
		g = guild_alloc(name, names, count);
	free(names);
	if (g == NULL)
		return NULL;
	snprintf(g->tag, sizeof(g->tag), "%s", tag);
	g->is_received = true;
	g->world = agent_self()->incarnation;
	return g;
}

XR_EXPORT enum xr_status
xr_group_of_value(const struct xr_value *value, struct xr_group **group,
	struct xr_error *err)
{
	const char *name = text_in(value, "group"),
		   *tag = text_in(value, "tag");
	const struct xr_value *members = xr_value_find(value, "members", 7);
	size_t len = name != NULL ? strlen(name) : 0;
	enum xr_status status;

	if (!guild_name_is(name) || tag == NULL || !are_members(members) ||
		strlen(tag) > GUILD_TAG_MAX || strncmp(tag, name, len) != 0 ||
		tag[len] != '/')
		return fail(err, XR_E_SCHEMA, "that value is no group");
	status = agent_enter(err);
	if (status != XR_OK)
		return status;
	*group = group_of(name, tag, members);
	agent_leave();
	return *group != NULL ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}
