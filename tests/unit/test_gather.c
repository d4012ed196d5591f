/* SPDX-License-Identifier: Apache-2.0 */
/* test_gather.c - who meets for how long, when a program says so, or does not. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/wire_rig.h"
#include "worker/rpc/gather.h"
#include "worker/rpc/meet.h"

static struct xr_error err;

/* What meet() was given, in place of which this is called. */
static struct {
	unsigned count;
	size_t names;
	char name[8][16];
	int64_t timeout;
	enum xr_kind kind;
	struct xr_value **all;
} met;
static enum xr_status meet_status;

enum xr_status __wrap_meet(const struct xr_rpc_meeting *meeting,
	enum meet_for what, struct xr_value *value, struct xr_value **all,
	struct xr_error *e);

enum xr_status
__wrap_meet(const struct xr_rpc_meeting *meeting, enum meet_for what,
	struct xr_value *value, struct xr_value **all, struct xr_error *e)
{
	(void)e;
	cr_expect_eq(what, MEET_PROGRAM);
	cr_assert_leq(meeting->count, 8);
	met.count++;
	met.names = meeting->count;
	for (size_t i = 0; i < meeting->count; i++)
		snprintf(met.name[i], sizeof(met.name[i]), "%s",
			meeting->names[i]);
	met.timeout = meeting->timeout;
	met.kind = xr_value_kind(value);
	met.all = all;
	return meet_status;
}

static bool
meets(const char *name)
{
	for (size_t i = 0; i < met.names; i++)
		if (strcmp(met.name[i], name) == 0)
			return true;
	return false;
}

TestSuite(gather, .timeout = 60, .init = wire_begin, .fini = wire_end);

Test(gather, all_members_meet_if_none_are_named)
{
	struct xr_rpc_meeting m = { .size = sizeof(m) };
	struct xr_value *v = xr_value_new_i64(7), *all = NULL;

	cr_expect_eq(xr_rpc_allgather(NULL, v, &all, &err), XR_OK);
	cr_expect_eq(met.names, 4);
	cr_expect(meets("self") && meets("one") && meets("two") &&
		meets("three"));
	cr_expect_eq(met.timeout, INT64_MAX);
	cr_expect_eq(met.kind, XR_I64);
	cr_expect_eq(met.all, &all);
	/* But not those who have left. */
	peer_gone(wire_peer[2], false);
	m.timeout = 5;
	m.count = 9; /* of no names */
	cr_expect_eq(xr_rpc_allgather(&m, v, &all, &err), XR_OK);
	cr_expect_eq(met.names, 3);
	cr_expect(meets("self") && meets("one") && meets("three"));
	cr_expect_eq(met.timeout, 5);
	cr_expect_eq(met.count, 2);
	xr_value_unref(v);
}

Test(gather, who_is_named_meets)
{
	const char *names[] = { "two", "self", NULL };
	struct xr_rpc_meeting m = {
		.size = sizeof(m),
		.names = names,
		.count = 2,
	};

	meet_status = XR_E_TIMEOUT;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_E_TIMEOUT);
	cr_expect_eq(met.names, 2);
	cr_expect_str_eq(met.name[0], "two");
	cr_expect_str_eq(met.name[1], "self");
	cr_expect_eq(met.timeout, INT64_MAX);
	cr_expect_eq(met.kind, XR_NIL);
	cr_expect_null(met.all);
	m.timeout = XR_TIMEOUT_DEFAULT;
	meet_status = XR_OK;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_OK);
	cr_expect_eq(met.timeout, INT64_MAX);
	cr_expect_eq(met.count, 2);
	m.count = 3;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "name 2 of a meeting is NULL");
	m.names = &names[2];
	m.count = 1;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "name 0 of a meeting is NULL");
	m.count = 0;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_OK);
	cr_expect_eq(met.names, 0);
	cr_expect_eq(met.count, 3);
}

Test(gather, what_is_no_meeting_is_refused)
{
	struct xr_rpc_meeting m = { .size = sizeof(m) - 1 };
	char text[64];

	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_E_INVAL);
	snprintf(text, sizeof(text), "a meeting's size is %zu, and %zu here",
		sizeof(m) - 1, sizeof(m));
	cr_expect_str_eq(err.text, text);
	m.size = sizeof(m) + 1;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_OK);
	cr_expect_eq(met.count, 1);
	m.timeout = -2;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_E_INVAL);
	cr_expect_eq(met.count, 1);
}

Test(gather, without_memory_nobody_meets)
{
	unsigned at = 0, failed = 0;
	enum xr_status status;

	do {
		err.text[0] = '\0';
		met.count = 0;
		until_short = ++at;
		was_short = false;
		status = xr_rpc_barrier(NULL, &err);
		until_short = 0;
		failed += status == XR_E_NOMEM;
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		cr_expect_str_eq(err.text,
			status == XR_OK ? "" : "out of memory");
		cr_expect_eq(met.count, status == XR_OK ? 1u : 0u);
	} while (was_short && at < 20);
	cr_expect_eq(status, XR_OK);
	cr_expect_geq(failed, 1);
	cr_expect_lt(at, 20);
}

TestSuite(gather_end, .timeout = 60);

/* Nobody is inside the agent afterwards, whatever came of it: it could not end. */
Test(gather_end, who_has_met_has_left_the_agent)
{
	struct xr_rpc_meeting m = { .size = 1 };

	cr_expect_eq(xr_rpc_barrier(NULL, &err), XR_E_STATE);
	wire_begin();
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_barrier(NULL, &err), XR_OK);
	wire_end();
	cr_expect_eq(xr_rpc_barrier(NULL, &err), XR_E_STATE);
	cr_expect_eq(met.count, 1);
}
