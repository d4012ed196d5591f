/* SPDX-License-Identifier: Apache-2.0 */
/* init_rig.h - what joining is made of, played by the test: the store, the other members
 * and the agent. Each step is noted, and may fail. */
#ifndef TESTS_UNIT_INIT_RIG_H
#define TESTS_UNIT_INIT_RIG_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/error.h>
#include <xrun/rpc.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/future.h"
#include "worker/rpc/group.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/join.h"
#include "worker/rpc/member.h"
#include "worker/rpc/roster.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/way.h"
#include "worker/store/reach.h"

#define STORE ((struct xr_store *)&the_store)

static struct xr_error err;
static int the_store;

/* --- steps -------------------------------------------------------------------------------- */

/* Their names, in the order in which they were called. */
static char steps[512];
/* The one that fails, so. */
static const char *fails;
static enum xr_status fails_with;

static inline enum xr_status
step(const char *name, struct xr_error *e)
{
	size_t n = strlen(steps);

	snprintf(steps + n, sizeof(steps) - n, "%s%s", n > 0 ? " " : "", name);
	return fails != NULL && strcmp(fails, name) == 0 ?
		fail(e, fails_with, "%s failed", name) :
		XR_OK;
}

static inline void
expect_steps(const char *text)
{
	cr_expect_str_eq(steps, text);
	steps[0] = '\0';
}

/* --- the store ----------------------------------------------------------------------------- */

static int64_t store_says_rank, store_says_size;
static bool is_open;
static char opened_at[100];
static struct xr_store_options opened_with;

enum xr_status __wrap_xr_store_open(const char *address,
	const struct xr_store_options *o, struct xr_store **store,
	struct xr_error *e);
void __wrap_xr_store_free(struct xr_store *store);
int64_t __wrap_xr_store_rank(const struct xr_store *store);
int64_t __wrap_xr_store_size(const struct xr_store *store);
bool __wrap_store_is_open(const struct xr_store *store);
const char *__wrap_store_host(const struct xr_store *store);

enum xr_status
__wrap_xr_store_open(const char *address, const struct xr_store_options *o,
	struct xr_store **store, struct xr_error *e)
{
	snprintf(opened_at, sizeof(opened_at), "%s", address);
	opened_with = *o;
	*store = STORE;
	return step("open", e);
}

void
__wrap_xr_store_free(struct xr_store *store)
{
	if (store != NULL)
		step("free", NULL);
}

int64_t
__wrap_xr_store_rank(const struct xr_store *store)
{
	cr_expect_eq(store, STORE);
	return store_says_rank;
}

int64_t
__wrap_xr_store_size(const struct xr_store *store)
{
	cr_expect_eq(store, STORE);
	return store_says_size;
}

bool
__wrap_store_is_open(const struct xr_store *store)
{
	cr_expect_eq(store, STORE);
	return is_open;
}

const char *
__wrap_store_host(const struct xr_store *store)
{
	cr_expect_eq(store, STORE);
	return "there";
}

/* --- coming together -------------------------------------------------------------------------- */

static const struct xr_rpc_opts defaults = { .size = sizeof(defaults) };
static bool by_roster;
static struct join met;
static struct xr_value *told; /* what this process tells; a reference */
/* What the others are: one of the size said, of the backend, and whether one is none. */
static int64_t other_size;
static bool other_is_none;
static const struct xr_rpc_opts *other_opts = &defaults;

bool __wrap_roster_can(const struct join *j);
enum xr_status __wrap_roster_decline(const struct join *j, struct xr_error *e);
void __wrap_roster_secret(const struct join *j, uint8_t out[JOIN_SECRET]);
enum xr_status __wrap_roster_meet(const struct join *j, struct xr_value *info,
	join_judge_fn *judge, struct xr_value **infos, struct xr_error *e);
enum xr_status __wrap_roster_ready(const struct join *j, struct xr_error *e);
enum xr_status __wrap_join_kind(struct xr_store *store, bool is_static,
	struct xr_error *e);
enum xr_status __wrap_join_secret(const struct join *j,
	uint8_t out[JOIN_SECRET], struct xr_error *e);
enum xr_status __wrap_join_tell(const struct join *j, struct xr_value *info,
	struct xr_error *e);
enum xr_status __wrap_join_meet(const struct join *j, join_judge_fn *judge,
	void *ctx, struct xr_value **infos, struct xr_error *e);
void __wrap_join_give_up(const struct join *j, enum xr_status status,
	const struct xr_error *e);
enum xr_status __wrap_join_ready(const struct join *j, struct xr_error *e);

bool
__wrap_roster_can(const struct join *j)
{
	cr_expect_eq(j->store, STORE);
	return by_roster;
}

enum xr_status
__wrap_roster_decline(const struct join *j, struct xr_error *e)
{
	met = *j;
	return step("decline", e);
}

void
__wrap_roster_secret(const struct join *j, uint8_t out[JOIN_SECRET])
{
	met = *j;
	memset(out, 'r', JOIN_SECRET);
}

/* The others of @j, and this process as it has told. */
static inline struct xr_value *
all_infos(const struct join *j)
{
	struct xr_value *list = xr_value_new_list(), *v;
	char name[16];

	for (uint32_t i = 0; i < j->size; i++) {
		snprintf(name, sizeof(name), "rank.%u", i);
		v = i == j->rank ?
			xr_value_ref(told) :
			other_is_none ?
			xr_value_new_nil() :
			member_new(&(const struct member){ .name = name,
					   .id = i,
					   .incarnation = 90 + i,
					   .said_size = other_size > 0 ?
						   other_size :
						   j->size,
					   .addresses = "x:1" },
				other_opts);
		cr_assert_eq(xr_value_append(list, v), XR_OK);
	}
	return list;
}

static inline enum xr_status
meet(const struct join *j, join_judge_fn *judge, void *ctx,
	struct xr_value **infos, struct xr_error *e)
{
	enum xr_status status;

	cr_expect_eq(xr_value_kind(told), XR_BYTES);
	*infos = all_infos(j);
	status = judge(*infos, ctx, e);
	if (status == XR_OK)
		return XR_OK;
	xr_value_unref(*infos);
	*infos = NULL;
	return status;
}

enum xr_status
__wrap_roster_meet(const struct join *j, struct xr_value *info,
	join_judge_fn *judge, struct xr_value **infos, struct xr_error *e)
{
	enum xr_status status = step("meet.here", e);

	xr_value_unref(told);
	told = xr_value_ref(info);
	return status == XR_OK ? meet(j, judge, (void *)j, infos, e) : status;
}

enum xr_status
__wrap_roster_ready(const struct join *j, struct xr_error *e)
{
	(void)j;
	return step("ready.here", e);
}

enum xr_status
__wrap_join_kind(struct xr_store *store, bool is_static, struct xr_error *e)
{
	cr_expect_eq(store, STORE);
	return step(is_static ? "static" : "dynamic", e);
}

enum xr_status
__wrap_join_secret(const struct join *j, uint8_t out[JOIN_SECRET],
	struct xr_error *e)
{
	(void)j;
	memset(out, 's', JOIN_SECRET);
	return step("secret", e);
}

enum xr_status
__wrap_join_tell(const struct join *j, struct xr_value *info,
	struct xr_error *e)
{
	(void)j;
	xr_value_unref(told);
	told = xr_value_ref(info);
	return step("tell", e);
}

enum xr_status
__wrap_join_meet(const struct join *j, join_judge_fn *judge, void *ctx,
	struct xr_value **infos, struct xr_error *e)
{
	enum xr_status status = step("meet", e);

	return status == XR_OK ? meet(j, judge, ctx, infos, e) : status;
}

static enum xr_status gave_up;

void
__wrap_join_give_up(const struct join *j, enum xr_status status,
	const struct xr_error *e)
{
	cr_expect_eq(j->rank, 0);
	cr_expect_neq(e->text[0], '\0');
	gave_up = status;
	step("give.up", NULL);
}

enum xr_status
__wrap_join_ready(const struct join *j, struct xr_error *e)
{
	(void)j;
	return step("ready", e);
}

/* --- the agent ------------------------------------------------------------------------------------ */

static struct member me; /* as member_open() or dynamic_join() got it */
static char my_name[32];
static struct member_begin begun;
static uint8_t begun_with; /* the first byte of the secret */
static bool begun_is_same; /* all of them are that */
static int64_t begun_until;
static char added[128]; /* members */

enum xr_status __wrap_member_open(const struct member *m,
	const struct xr_rpc_opts *opts, const struct member_begin *how,
	struct xr_error *e);
struct peer *__wrap_member_add(const struct member *m,
	const struct member *self);
size_t __wrap_agent_addresses(char *text, size_t cap);
void __wrap_agent_begin(void);
void __wrap_agent_close(void (*look)(void *ctx), void *ctx);
enum agent_state __wrap_agent_state(void);
enum xr_status __wrap_way_open(uint32_t rank, uint32_t size,
	struct xr_error *e);
enum xr_status __wrap_dynamic_join(struct xr_store *store,
	const struct member *m, const struct xr_rpc_opts *opts,
	int64_t deadline, struct xr_error *e);
void __wrap_rref_set_flags(uint32_t flags);
enum xr_status __wrap_fault_open(const struct xr_rpc_opts *opts,
	struct xr_error *e);

enum xr_status
__wrap_member_open(const struct member *m, const struct xr_rpc_opts *opts,
	const struct member_begin *how, struct xr_error *e)
{
	(void)opts;
	me = *m;
	snprintf(my_name, sizeof(my_name), "%s", m->name);
	begun = *how;
	begun_with = how->secret[0];
	begun_is_same = true;
	for (size_t i = 0; i < JOIN_SECRET; i++)
		begun_is_same = begun_is_same && how->secret[i] == begun_with;
	return step("member", e);
}

struct peer *
__wrap_member_add(const struct member *m, const struct member *self)
{
	size_t n = strlen(added);

	cr_expect_str_eq(self->name, my_name);
	snprintf(added + n, sizeof(added) - n, "%s ", m->name);
	return fails != NULL && strcmp(fails, "add") == 0 ? NULL : (void *)&me;
}

size_t
__wrap_agent_addresses(char *text, size_t cap)
{
	return (size_t)snprintf(text, cap, "shm:1 tcp:2");
}

void
__wrap_agent_begin(void)
{
	step("begin", NULL);
}

void
__wrap_agent_close(void (*look)(void *ctx), void *ctx)
{
	cr_expect(look == NULL && ctx == NULL);
	step("close", NULL);
}

static enum agent_state state;

enum agent_state
__wrap_agent_state(void)
{
	return state;
}

static uint32_t way_rank, way_size;

enum xr_status
__wrap_way_open(uint32_t rank, uint32_t size, struct xr_error *e)
{
	way_rank = rank;
	way_size = size;
	return step("way", e);
}

enum xr_status
__wrap_dynamic_join(struct xr_store *store, const struct member *m,
	const struct xr_rpc_opts *opts, int64_t deadline, struct xr_error *e)
{
	cr_expect_eq(store, STORE);
	(void)opts;
	me = *m;
	snprintf(my_name, sizeof(my_name), "%s", m->name);
	begun_until = deadline;
	return step("join", e);
}

static uint32_t rref_flags = 77;

void
__wrap_rref_set_flags(uint32_t flags)
{
	rref_flags = flags;
}

enum xr_status
__wrap_fault_open(const struct xr_rpc_opts *opts, struct xr_error *e)
{
	cr_expect_eq(opts->size, sizeof(*opts));
	return step("fault", e);
}

#endif /* TESTS_UNIT_INIT_RIG_H */
