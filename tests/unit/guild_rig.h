/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guild_rig.h - groups of names whose other members are played by the test.
 *
 * The world has self, one, two and three; see wire_rig.h. What members say when they
 * meet is the test's. The store is a file's.
 */
#ifndef TESTS_UNIT_GUILD_RIG_H
#define TESTS_UNIT_GUILD_RIG_H

#include <inttypes.h>

#include <xrun/group.h>
#include <xrun/store.h>
#include <xrun/world.h>

#include "base/status.h"
#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/file_store.h"
#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"
#include "worker/group/guild.h"
#include "worker/rpc/func.h"
#include "worker/rpc/group.h"
#include "worker/rpc/meet.h"
#include "worker/world/world.h"

#define WORLD_TIMEOUT XR_SECONDS(77)

struct xr_world *__wrap_xr_world_get(void);
uint32_t __wrap_xr_world_size(const struct xr_world *world);
size_t __wrap_xr_world_members(const struct xr_world *world, const char **names,
	size_t cap);
int64_t __wrap_world_timeout(const struct xr_world *world);
enum xr_status __wrap_meet_as(const struct meet_label *label,
	const struct xr_rpc_meeting *meeting, struct xr_value *value,
	struct xr_value **all, struct xr_error *err);

static char the_world;
static struct xr_error err;

struct xr_world *
__wrap_xr_world_get(void)
{
	return (struct xr_world *)&the_world;
}

uint32_t
__wrap_xr_world_size(const struct xr_world *world)
{
	cr_expect_eq(world, (struct xr_world *)&the_world);
	return 4;
}

size_t
__wrap_xr_world_members(const struct xr_world *world, const char **names,
	size_t cap)
{
	static const char *const all[] = { "two", "self", "one", "three" };

	cr_expect_eq(world, (struct xr_world *)&the_world);
	cr_expect_eq(cap, 4);
	memcpy(names, all, sizeof(all));
	return 4;
}

int64_t
__wrap_world_timeout(const struct xr_world *world)
{
	cr_expect_eq(world, (struct xr_world *)&the_world);
	return WORLD_TIMEOUT;
}

/* The last meeting, and what comes of it. */
static struct {
	unsigned count;
	struct meet_label label;
	char salt[GUILD_TAG_MAX + 1];
	char names[64];
	int64_t timeout;
	uint64_t number; /* that was brought; UINT64_MAX: nil */
	enum xr_status status;
	struct xr_value *all; /* given to who asks */
} met;

enum xr_status
__wrap_meet_as(const struct meet_label *label,
	const struct xr_rpc_meeting *meeting, struct xr_value *value,
	struct xr_value **all, struct xr_error *why)
{
	size_t len = 0;

	met.count++;
	met.label = *label;
	snprintf(met.salt, sizeof(met.salt), "%s", label->salt);
	met.names[0] = '\0';
	for (size_t i = 0; i < meeting->count; i++)
		len += (size_t)snprintf(met.names + len,
			sizeof(met.names) - len, "%s ", meeting->names[i]);
	met.timeout = meeting->timeout;
	met.number = UINT64_MAX;
	xr_value_get_u64(value, &met.number);
	if (met.status != XR_OK)
		return fail(why, met.status, "one did not come");
	if (all != NULL)
		*all = xr_value_ref(met.all);
	return XR_OK;
}

/* says() - of the first member: its number. */
static inline void
first_says(const char *name, struct xr_value *number)
{
	xr_value_unref(met.all);
	met.all = xr_value_new_dict();
	xr_value_put(met.all, name, strlen(name), number);
}

/* --- a group ------------------------------------------------------------------------- */

static struct xr_group *g;
static const char *tag; /* of it */

static inline enum xr_status
try_group(const char *name, const char *const *members, size_t count,
	struct xr_group **out)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = name,
		.members = members,
		.count = count };

	return xr_group_new((struct xr_world *)&the_world, &opts, out, &err);
}

static inline void
guild_begin(void)
{
	group.store = file_store_open();
	wire_begin();
	first_says("one", xr_value_new_u64(0xabc));
	cr_assert_eq(try_group("g", NULL, 0, &g), XR_OK, "%s", err.text);
	tag = g->tag;
}

static inline void
guild_end(void)
{
	xr_group_free(g);
	xr_value_unref(met.all);
	wire_end();
	file_store_close(group.store);
	group.store = NULL;
}

/* --- the store ------------------------------------------------------------------------ */

static inline const char *
entry_of(enum guild_kind kind, const char *key)
{
	static char at[512];

	snprintf(at, sizeof(at), "xr.group/%s/%c/%s", tag, kind, key);
	return at;
}

static inline void
put_entry(enum guild_kind kind, const char *key, const char *text)
{
	cr_assert_eq(xr_store_set(group.store, entry_of(kind, key), text,
			     strlen(text), &err),
		XR_OK, "%s", err.text);
}

/* put_holder() - peer @id holds it. */
static inline void
put_holder(enum guild_kind kind, const char *key, uint32_t id,
	uint64_t generation)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u %" PRIu64, id, WIRE_PEER_AGE + id,
		generation);
	put_entry(kind, key, text);
}

/* entry() - what the store says; "-": nothing. */
static inline const char *
entry(enum guild_kind kind, const char *key)
{
	static char text[128];
	struct xr_store_value v = { 0 };

	snprintf(text, sizeof(text), "-");
	if (xr_store_get(group.store, entry_of(kind, key), 0, &v, NULL) ==
		XR_OK)
		snprintf(text, sizeof(text), "%.*s", (int)v.len,
			(const char *)v.data);
	xr_store_value_free(&v);
	return text;
}

#endif /* TESTS_UNIT_GUILD_RIG_H */
