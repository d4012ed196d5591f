/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_limit.c - when remote calls to oneself that have a limit are over. */
#include <criterion/criterion.h>

#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"

TestSuite(rref_limit, .timeout = 60);

#define COUNT 4

static struct owned all[COUNT];
static struct xr_future *future[COUNT];

/* Value @i of this process, of a call with a limit. */
static void
add(int i, int64_t due)
{
	all[i].node.id = (struct rref_gid){ .worker = (uint32_t)i };
	gid_add(&rref.owned, &all[i].node);
	future[i] = xr_future_new(NULL);
	owned_limit(&all[i], future[i], due);
	cr_expect_eq(all[i].asked, future[i]);
	cr_expect_eq(all[i].due, due);
	cr_expect_eq(rref.births, (uint32_t)i + 1);
}

static void
end(void)
{
	struct gid_node *n;

	while ((n = gid_first(&rref.owned)) != NULL)
		gid_remove(&rref.owned, n);
	for (int i = 0; i < COUNT; i++) {
		xr_future_unref(all[i].asked);
		xr_future_unref(future[i]);
	}
	gid_free(&rref.owned);
}

/* The first @count of futures have ended, because they are late. */
static void
expect_late(int count)
{
	struct xr_error err = { 0 };

	for (int i = 0; i < COUNT; i++) {
		cr_expect_eq(xr_future_wait(future[i], 0, NULL, &err),
			XR_E_TIMEOUT);
		if (i < count)
			cr_expect_str_eq(err.text,
				"a remote call to oneself has not begun in time");
		cr_expect_eq(xr_future_done(future[i]), i < count, "%d", i);
		cr_expect_eq(all[i].asked == NULL, i < count, "%d", i);
	}
	cr_expect_eq(rref.births, (uint32_t)(COUNT - count));
}

Test(rref_limit, a_call_is_late_when_it_is_due_and_the_next_one_is_told,
	.fini = end)
{
	cr_expect_eq(births_expire(1000), INT64_MAX);
	add(0, 100);
	add(1, 200);
	add(2, 300);
	add(3, 300);
	cr_expect_eq(births_expire(99), 100);
	expect_late(0);
	cr_expect_eq(births_expire(100), 200);
	expect_late(1);
	cr_expect_eq(births_expire(200), 300);
	expect_late(2);
	cr_expect_eq(births_expire(299), 300);
	expect_late(2);
	cr_expect_eq(births_expire(300), INT64_MAX);
	expect_late(4);
}

Test(rref_limit, a_call_that_has_begun_or_ended_needs_no_limit, .fini = end)
{
	for (int i = 0; i < COUNT; i++)
		add(i, 100);
	all[0].ready = true;
	all[1].begun = true;
	all[2].begun = all[2].is_late = true;
	cr_expect_eq(births_expire(50), 100);
	cr_expect(all[0].asked == NULL && all[1].asked == NULL);
	cr_expect_eq(all[2].asked, future[2]);
	cr_expect_eq(all[3].asked, future[3]);
	cr_expect_eq(rref.births, 2);
	/* Neither has ended by it, and neither gets another limit. */
	for (int i = 0; i < 2; i++) {
		cr_expect_not(xr_future_done(future[i]));
		owned_limit(&all[i], future[i], 70);
		cr_expect_null(all[i].asked);
	}
	owned_limit(&all[2], future[2], 70);
	cr_expect_eq(all[2].due, 100);
	cr_expect_eq(rref.births, 2);
	cr_expect_eq(births_expire(100), INT64_MAX);
	cr_expect(xr_future_done(future[2]) && xr_future_done(future[3]));
}
