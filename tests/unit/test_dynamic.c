/* SPDX-License-Identifier: Apache-2.0 */
/* test_dynamic.c - how a member leaves a group that changes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <xrun/rpc.h>

#include "worker/rpc/dynamic.h"
#include "worker/rpc/dynamic_inner.h"
#include "tests/unit/file_store.h"

#define SELF     7
#define LEAVE_NS (2 * NS_PER_S) /* as in dynamic.c */

static struct xr_error err;

static int waits;            /* for the others */
static int64_t until;        /* the last one of them */
static struct epoch awaited; /* without its lists */

enum xr_status __wrap_acks_await(const struct epoch *mine, int64_t deadline,
	struct xr_error *e);

enum xr_status
__wrap_acks_await(const struct epoch *mine, int64_t deadline,
	struct xr_error *e)
{
	(void)e;
	waits++;
	until = deadline;
	awaited.number = mine->number;
	awaited.asks = mine->asks;
	cr_expect_eq(xr_value_count(mine->members), 1);
	cr_expect(dynamic.leaving);
	return XR_OK;
}

static void
add(struct xr_value *members, uint32_t id)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts) };
	const struct member m = {
		.name = "one",
		.addresses = "",
		.id = id,
		.incarnation = 100 + id,
	};

	cr_assert_eq(xr_value_append(members, member_new(&m, &opts)), XR_OK);
}

static enum xr_status
put_two(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *e)
{
	(void)ctx;
	(void)e;
	if (now->number != 0)
		return XR_E_AGAIN;
	next->members = xr_value_new_list();
	next->lost = xr_value_new_list();
	add(next->members, SELF);
	add(next->members, SELF + 1);
	return XR_OK;
}

static void
begin(void)
{
	struct epoch now = { 0 };

	dynamic.store = file_store_open();
	cr_assert_eq(epoch_change(dynamic.store,
			     &(struct epoch_change){ put_two, NULL }, &now,
			     NULL, &err),
		XR_OK, "%s", err.text);
	cr_assert_eq(now.number, 1);
	epoch_fini(&now);
	dynamic.self.id = SELF;
	dynamic.self.incarnation = 100 + SELF;
}

static void
end(void)
{
	file_store_close(dynamic.store);
}

TestSuite(dynamic, .timeout = 60, .init = begin, .fini = end);

/* The newest record has that number and that many members. */
static void
expect_record(uint64_t number, size_t members, bool asks)
{
	struct epoch e = { 0 };

	cr_assert_eq(epoch_newest(dynamic.store, &e, &err), XR_OK, "%s",
		err.text);
	cr_expect_eq(e.number, number);
	cr_expect_eq(xr_value_count(e.members), members);
	cr_expect_eq(xr_value_count(e.lost), 0);
	cr_expect_eq(e.asks, asks);
	cr_expect_eq(roll_place(e.members, SELF, 100 + SELF), -1);
	epoch_fini(&e);
}

Test(dynamic, who_leaves_waits_for_the_others_until_its_deadline)
{
	int64_t deadline = clock_now() + NS_PER_S;

	dynamic_leave(true, deadline);
	cr_expect_eq(waits, 1);
	cr_expect_eq(until, deadline);
	cr_expect_eq(awaited.number, 2);
	cr_expect(awaited.asks);
	expect_record(2, 1, true);
}

Test(dynamic, who_leaves_waits_for_the_others_no_longer_than_a_moment)
{
	int64_t before = clock_now();

	dynamic_leave(true, INT64_MAX);
	cr_expect_eq(waits, 1);
	cr_expect_geq(until, before + LEAVE_NS);
	cr_expect_leq(until, clock_now() + LEAVE_NS);
}

Test(dynamic, who_does_not_wait_asks_nobody)
{
	dynamic_leave(false, INT64_MAX);
	cr_expect_eq(waits, 0);
	cr_expect(dynamic.leaving);
	expect_record(2, 1, false);
}

Test(dynamic, who_is_off_the_list_waits_for_nobody)
{
	dynamic_leave(false, INT64_MAX);
	dynamic_leave(true, INT64_MAX);
	cr_expect_eq(waits, 0);
	expect_record(2, 1, false);
}

Test(dynamic, without_the_store_nobody_is_waited_for)
{
	xr_store_close(dynamic.store);
	dynamic_leave(true, INT64_MAX);
	cr_expect_eq(waits, 0);
}
