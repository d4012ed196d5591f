/* SPDX-License-Identifier: Apache-2.0 */
/* test_world.c - what a program sees of its world (worker/world/world.c), with an agent
 * that the test makes up. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <xrun/rpc.h>
#include <xrun/world.h>

#include "base/status.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/inside.h"
#include "worker/world/world.h"

#define MEMBERS 3

static struct xr_error err;
static struct xr_world *world;
static struct peer peers[MEMBERS];
static uint32_t self;
static enum xr_status init_status, shutdown_status;
static enum agent_state state;
static bool is_forked;

/* --- the agent ------------------------------------------------------------- */

struct peer *__wrap_agent_self(void);
struct peer *__wrap_agent_first(void);
struct peer *__wrap_agent_next(const struct peer *p);
struct peer *__wrap_agent_find_id(uint32_t id);
enum agent_state __wrap_agent_state(void);
enum xr_status __wrap_inside_not_forked(struct xr_error *e);
int64_t __wrap_xr_job_rank(void);
enum xr_status __wrap_xr_rpc_init(const char *name, int64_t rank,
	int64_t world_size, const struct xr_rpc_opts *opts, struct xr_error *e);
enum xr_status __wrap_xr_rpc_shutdown(uint32_t flags, int64_t timeout,
	struct xr_error *e);

struct peer *
__wrap_agent_self(void)
{
	return &peers[self];
}

/* The newest first. */
struct peer *
__wrap_agent_first(void)
{
	return &peers[MEMBERS - 1];
}

struct peer *
__wrap_agent_next(const struct peer *p)
{
	return p == peers ? NULL : &peers[p - peers - 1];
}

struct peer *
__wrap_agent_find_id(uint32_t id)
{
	return id < MEMBERS ? &peers[id] : NULL;
}

enum agent_state
__wrap_agent_state(void)
{
	return state;
}

enum xr_status
__wrap_inside_not_forked(struct xr_error *e)
{
	return is_forked ? fail(e, XR_E_STATE, "a child") : XR_OK;
}

int64_t
__wrap_xr_job_rank(void)
{
	return 77;
}

enum xr_status
__wrap_xr_rpc_init(const char *name, int64_t rank, int64_t world_size,
	const struct xr_rpc_opts *opts, struct xr_error *e)
{
	note("init-%s/%lld/%lld%s ", name, (long long)rank,
		(long long)world_size, opts != NULL ? "/opts" : "");
	if (init_status != XR_OK)
		return fail(e, init_status, "not joined");
	return XR_OK;
}

enum xr_status
__wrap_xr_rpc_shutdown(uint32_t flags, int64_t timeout, struct xr_error *e)
{
	note("shutdown-%u/%lld ", flags,
		timeout == XR_TIMEOUT_NEVER ? -1LL : (long long)timeout);
	if (shutdown_status != XR_OK)
		return fail(e, shutdown_status, "not left");
	return XR_OK;
}

/* --- a test ---------------------------------------------------------------- */

static void
begin(void)
{
	static const char *const names[MEMBERS] = { "mid", "zoo", "ant" };

	for (uint32_t i = 0; i < MEMBERS; i++) {
		peers[i].id = i;
		snprintf(peers[i].name, sizeof(peers[i].name), "%s", names[i]);
	}
	unsetenv("XRUN_RANK");
	unsetenv("RANK");
	self = 1;
}

TestSuite(world, .init = begin, .timeout = 60);

static enum xr_status
join(const struct xr_world_opts *opts)
{
	done[0] = '\0';
	err = (struct xr_error){ 0 };
	world = NULL;
	return xr_world_new(opts, &world, &err);
}

static enum xr_status
leave(uint32_t flags, int64_t timeout)
{
	done[0] = '\0';
	err = (struct xr_error){ 0 };
	return xr_world_close(world, flags, timeout, &err);
}

static void
expect_none(void)
{
	cr_expect_null(xr_world_get());
	cr_expect_not(xr_world_ready());
	cr_expect_eq(xr_rank(), -1);
	cr_expect_null(xr_name());
}

/* --- joining --------------------------------------------------------------- */

Test(world, a_world_has_the_members_that_the_agent_has)
{
	const char *names[MEMBERS + 1] = { NULL };

	expect_none();
	cr_assert_eq(join(NULL), XR_OK, "%s", err.text);
	cr_expect_str_eq(done, "init-rank77/-1/-1 ");
	cr_expect_eq(xr_world_get(), world);
	cr_expect(xr_world_ready());
	cr_expect_eq(xr_rank(), 1);
	cr_expect_str_eq(xr_name(), "zoo");
	cr_expect_eq(xr_world_size(world), MEMBERS);
	cr_expect_str_eq(xr_world_member(world, 0), "mid");
	cr_expect_str_eq(xr_world_member(world, 2), "ant");
	cr_expect_null(xr_world_member(world, 3));
	cr_expect_null(xr_world_member(world, -1));
	cr_expect_eq(xr_world_members(world, names, MEMBERS + 1), MEMBERS);
	cr_expect_str_eq(names[0], "ant");
	cr_expect_str_eq(names[1], "mid");
	cr_expect_str_eq(names[2], "zoo");
	cr_expect_null(names[3]);
	/* As many as there is room for, and how many there are. */
	names[1] = NULL;
	cr_expect_eq(xr_world_members(world, names, 1), MEMBERS);
	cr_expect_null(names[1]);
	cr_expect_eq(xr_world_members(world, NULL, 0), MEMBERS);
	cr_expect_eq(world_timeout(world), 60 * INT64_C(1000000000));
	cr_expect_eq(join(NULL), XR_E_STATE);
	cr_expect_str_eq(err.text, "this process is in a world already");
	cr_expect_str_eq(done, "");
}

Test(world, what_is_said_is_what_is_joined_with)
{
	const struct xr_rpc_opts rpc = { 0 };
	struct xr_world_opts o = XR_WORLD_OPTS;

	o.name = "me";
	o.rank = 4;
	o.world_size = 9;
	o.rpc = &rpc;
	o.timeout = 5;
	cr_assert_eq(join(&o), XR_OK, "%s", err.text);
	cr_expect_str_eq(done, "init-me/4/9/opts ");
	cr_expect_eq(world_timeout(world), 5);
	cr_expect_eq(leave(0, XR_TIMEOUT_DEFAULT), XR_OK);
	cr_expect_str_eq(done, "shutdown-0/5 ");
	xr_world_free(world);
	o = (struct xr_world_opts)XR_WORLD_OPTS;
	o.rank = 0;
	o.world_size = 1;
	o.timeout = 0;
	cr_assert_eq(join(&o), XR_OK, "%s", err.text);
	cr_expect_str_eq(done, "init-rank0/0/1 ");
	cr_expect_eq(world_timeout(world), 60 * INT64_C(1000000000));
}

/* Its own rank, then that of another launcher, then that of xrun. */
Test(world, a_name_is_made_of_the_rank_that_is_known)
{
	static const struct {
		const char *xrun, *other, *name;
	} rows[] = {
		{ NULL, NULL, "init-rank77/-1/-1 " },
		{ NULL, "5", "init-rank5/-1/-1 " },
		{ NULL, "0", "init-rank0/-1/-1 " },
		{ NULL, "2147483647", "init-rank2147483647/-1/-1 " },
		{ NULL, "2147483648", "init-rank77/-1/-1 " },
		{ NULL, "five", "init-rank77/-1/-1 " },
		{ NULL, "", "init-rank77/-1/-1 " },
		{ "3", "5", "init-rank77/-1/-1 " },
	};

	init_status = XR_E_TIMEOUT;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsetenv("XRUN_RANK");
		unsetenv("RANK");
		if (rows[i].xrun != NULL)
			setenv("XRUN_RANK", rows[i].xrun, 1);
		if (rows[i].other != NULL)
			setenv("RANK", rows[i].other, 1);
		cr_expect_eq(join(NULL), XR_E_TIMEOUT);
		cr_expect_str_eq(err.text, "not joined");
		cr_expect_str_eq(done, rows[i].name);
		cr_expect_null(world);
		expect_none();
	}
}

Test(world, options_that_are_wrong_are_refused)
{
	struct xr_world_opts o = XR_WORLD_OPTS;

	o.size--;
	cr_expect_eq(join(&o), XR_E_INVAL);
	cr_expect_str_eq(err.text, "struct xr_world_opts: its size is 47");
	o = (struct xr_world_opts)XR_WORLD_OPTS;
	o.size++; /* of a newer version */
	o.timeout = -2;
	cr_expect_eq(join(&o), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT");
	o.timeout = 1;
	o.world_size = 0;
	cr_expect_eq(join(&o), XR_E_INVAL);
	cr_expect_str_eq(err.text, "a world of 0 ranks");
	o.world_size = 1;
	is_forked = true;
	cr_expect_eq(join(&o), XR_E_STATE);
	cr_expect_str_eq(err.text, "a child");
	cr_expect_str_eq(done, "");
	is_forked = false;
	cr_expect_eq(join(&o), XR_OK);
	is_forked = true;
	expect_none();
	cr_expect_eq(leave(0, 0), XR_E_STATE);
	cr_expect_str_eq(done, "");
}

Test(world, without_memory_it_is_left_at_once)
{
	enum xr_status status;
	unsigned n = 0;

	do {
		was_short = false;
		until_short = ++n;
		status = join(NULL);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		if (!was_short)
			break;
		cr_expect_str_eq(err.text, "out of memory");
		cr_expect_str_eq(done, "init-rank77/-1/-1 shutdown-1/0 ");
		expect_none();
	} while (n < 20);
	cr_expect_eq(n, 1 + 2 + MEMBERS + 1);
}

/* --- leaving --------------------------------------------------------------- */

Test(world, a_world_that_was_closed_has_nobody)
{
	cr_assert_eq(join(NULL), XR_OK);
	cr_expect_eq(leave(XR_SHUTDOWN_IMMEDIATE, 7), XR_OK);
	cr_expect_str_eq(done, "shutdown-1/7 ");
	expect_none();
	cr_expect_eq(xr_world_size(world), 0);
	cr_expect_str_eq(xr_world_member(world, 0), "mid");
	cr_expect_eq(leave(0, 7), XR_E_STATE);
	cr_expect_str_eq(err.text, "the world was closed");
	cr_expect_str_eq(done, "");
	xr_world_free(world);
	cr_expect_str_eq(done, "");
	cr_expect_eq(xr_world_close(NULL, 0, 0, &err), XR_E_STATE);
	xr_world_free(NULL);
	cr_assert_eq(join(NULL), XR_OK, "another may be made");
	done[0] = '\0';
	xr_world_free(world);
	cr_expect_str_eq(done, "shutdown-1/0 ");
	expect_none();
}

/* What is wrong, or asked from a function of it, closes nothing; what is late does. */
Test(world, what_is_refused_leaves_the_world_as_it_is)
{
	static const struct {
		enum xr_status status;
		enum agent_state state;
		bool closes;
	} rows[] = {
		{ XR_E_INVAL, AGENT_RUNS, false },
		{ XR_E_INVAL, AGENT_NONE, false },
		{ XR_E_STATE, AGENT_RUNS, false },
		{ XR_E_TIMEOUT, AGENT_RUNS, true },
		{ XR_E_STATE, AGENT_NONE, true },
		{ XR_OK, AGENT_NONE, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		init_status = shutdown_status = XR_OK;
		cr_assert_eq(join(NULL), XR_OK, "%zu", i);
		shutdown_status = rows[i].status;
		state = rows[i].state;
		cr_expect_eq(leave(0, XR_TIMEOUT_NEVER), rows[i].status);
		cr_expect_str_eq(done, "shutdown-0/-1 ");
		cr_expect_eq(xr_world_get() == NULL, rows[i].closes, "%zu", i);
		cr_expect_eq(xr_world_size(world),
			rows[i].closes ? 0 : MEMBERS);
		if (!rows[i].closes) {
			/* Nor is it freed. */
			xr_world_free(world);
			cr_expect_eq(xr_world_get(), world);
			cr_expect_str_eq(xr_name(), "zoo");
			shutdown_status = XR_OK;
		}
		xr_world_free(world);
		expect_none();
	}
}
