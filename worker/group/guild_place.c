/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guild_place.c - who holds a key, as the job's store has it; see guild.h.
 *
 * A value of the store is "id incarnation generation", as decimal text; empty, it
 * is as one that is not there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/store.h>

#include "base/status.h"
#include "base/utf8.h"
#include "worker/group/guild.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/group.h"

#define KEY_SIZE   (sizeof("xr.group//v/") + GUILD_TAG_MAX + XR_GROUP_KEY_MAX)
#define PLACE_SIZE 64

/* What is said of a key, and under which name of the store. */
struct entry {
	char at[KEY_SIZE];
	char place[PLACE_SIZE];
};

static void
name_it(struct entry *e, const struct xr_group *g, enum guild_kind kind,
	const char *key)
{
	snprintf(e->at, sizeof(e->at), "xr.group/%s/%c/%s", g->tag, kind, key);
}

static void
write_it(struct entry *e, const struct guild_place *p)
{
	snprintf(e->place, sizeof(e->place), "%u %" PRIu64 " %" PRIu64, p->id,
		p->incarnation, p->generation);
}

static bool
read_it(const struct entry *e, struct guild_place *p)
{
	return sscanf(e->place, "%u %" SCNu64 " %" SCNu64, &p->id,
		       &p->incarnation, &p->generation) == 3;
}

static void
take(struct entry *e, struct xr_store_value *value)
{
	snprintf(e->place, sizeof(e->place), "%.*s", (int)value->len,
		value->data != NULL ? (const char *)value->data : "");
	xr_store_value_free(value);
}

enum xr_status
guild_key_check(const char *key, struct xr_error *err)
{
	size_t len = key != NULL ? strnlen(key, XR_GROUP_KEY_MAX + 1) : 0;
	size_t at = 0, n = 1;

	for (; at < len && n > 0; at += n)
		n = utf8_step(key + at, len - at);
	if (len == 0 || len > XR_GROUP_KEY_MAX || n == 0)
		return fail(err, XR_E_INVAL, "a key is 1 to %d bytes of UTF-8",
			XR_GROUP_KEY_MAX);
	return XR_OK;
}

/* Is whoever holds it there yet? Of this process its table says so. */
static bool
holds(const struct xr_group *g, enum guild_kind kind, const char *key,
	const struct guild_place *place)
{
	const struct guild_held wanted = { .kind = kind,
		.generation = place->generation };
	const struct peer *p = agent_find_id(place->id);

	if (p == NULL || p->incarnation != place->incarnation ||
		peer_is_gone(p) || atomic_load(&p->state) >= PEER_LOST)
		return false;
	return !p->self || guild_holds(g->tag, &wanted, key, NULL);
}

/* @e's, if it is as @e says, is as @desired says; @e says how it is then. */
static enum xr_status
swap(struct entry *e, const char *desired, struct xr_error *err)
{
	const struct xr_store_swap s = {
		.size = sizeof(s),
		.key = e->at,
		.expected = e->place,
		.expected_len = strlen(e->place),
		.desired = desired,
		.desired_len = strlen(desired),
	};
	struct xr_store_value now = { 0 };
	bool there = false;
	enum xr_status status =
		xr_store_compare_set(group.store, &s, &now, &there, err);

	if (status != XR_OK)
		return status;
	if (there && now.len >= sizeof(e->place)) {
		xr_store_value_free(&now);
		return fail(err, XR_E_PROTO, "key %s of the store is not ours",
			e->at);
	}
	e->place[0] = '\0';
	if (there)
		take(e, &now);
	return XR_OK;
}

enum xr_status
guild_claim(struct xr_group *g, const struct guild_held *held,
	struct xr_error *err)
{
	const struct guild_place own = { agent_self()->id,
		agent_self()->incarnation, held->generation };
	struct guild_place place;
	struct entry mine, e = { 0 };
	enum xr_status status;

	write_it(&mine, &own);
	name_it(&e, g, held->kind, held->key);
	for (;;) {
		status = swap(&e, mine.place, err);
		if (status != XR_OK || strcmp(e.place, mine.place) == 0)
			return status;
		if (read_it(&e, &place) &&
			holds(g, held->kind, held->key, &place))
			return fail(err, XR_E_EXISTS,
				"key '%s' of group %s is held by %s", held->key,
				g->name, agent_find_id(place.id)->name);
	}
}

/* As long as this worker lives, nobody else changes what it claimed. */
enum xr_status
guild_give_up(struct xr_group *g, const struct guild_held *held,
	struct xr_error *err)
{
	struct entry e;

	name_it(&e, g, held->kind, held->key);
	return xr_store_delete(group.store, e.at, NULL, err);
}

void
guild_strike(struct xr_group *g, enum guild_kind kind, const char *key,
	const struct guild_place *place)
{
	struct entry e;

	name_it(&e, g, kind, key);
	write_it(&e, place);
	swap(&e, "", NULL);
}

enum xr_status
guild_look_up(struct xr_group *g, enum guild_kind kind, const char *key,
	struct guild_place *place, struct xr_error *err)
{
	struct xr_store_value value = { 0 };
	enum xr_status status;
	struct entry e;

	name_it(&e, g, kind, key);
	status = xr_store_get(group.store, e.at, 0, &value, err);
	if (status != XR_OK && status != XR_E_NOTFOUND)
		return status;
	take(&e, &value);
	if (read_it(&e, place)) {
		if (holds(g, kind, key, place))
			return XR_OK;
		guild_strike(g, kind, key, place);
	}
	return fail(err, XR_E_NOTFOUND, "nobody in group %s has %s '%s'",
		g->name, kind == GUILD_VALUE ? "paired" : "registered", key);
}
