/* SPDX-License-Identifier: Apache-2.0 */
/* test_block_tally.c - who waits for the calls of a block, and until there are none of
 * something. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <criterion/criterion.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "worker/rpc/block.h"
#include "worker/rpc/future.h"
#include "worker/rpc/tally.h"
#include "worker/rpc/waiter.h"

TestSuite(block, .timeout = 20);
TestSuite(tally, .timeout = 20);

static struct xr_error err;

/* --- blocks ------------------------------------------------------------------------ */

#define MANY 40 /* beyond two sizes of the list */

static struct xr_future *f[MANY];

static void
add(int count)
{
	for (int i = 0; i < count; i++) {
		f[i] = xr_future_new(NULL);
		block_add(f[i]);
		cr_assert_not_null(f[i]);
	}
}

static void
let_go(int count)
{
	for (int i = 0; i < count; i++)
		xr_future_unref(f[i]);
}

Test(block, it_begins_before_it_ends)
{
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "xr_rpc_wait_begin() comes first");
	add(1); /* of none */
	future_fail(f[0], XR_E_REMOTE, "on purpose");
	cr_expect_eq(xr_rpc_wait_begin(&err), XR_OK);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_OK);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_STATE);
	let_go(1);
	until_short = 1;
	cr_expect_eq(xr_rpc_wait_begin(&err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_STATE);
}

Test(block, the_first_error_of_all_is_told)
{
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	add(MANY);
	for (int i = 0; i < MANY; i++)
		if (i == 30)
			future_fail(f[i], XR_E_REMOTE, "of the first");
		else if (i == MANY - 1)
			future_fail(f[i], XR_E_NOMEM, "of the last");
		else
			xr_future_set(f[i], xr_value_new_i64(i));
	cr_expect_eq(xr_rpc_wait_end(XR_TIMEOUT_DEFAULT, &err), XR_E_REMOTE);
	cr_expect_str_eq(err.text, "of the first");
	let_go(MANY);
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	add(1);
	future_fail(f[0], XR_E_REMOTE, "on purpose");
	cr_expect_eq(xr_rpc_wait_end(0, NULL), XR_E_REMOTE);
	let_go(1);
}

Test(block, each_has_its_own)
{
	struct xr_future *outer;

	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	add(1);
	outer = f[0];
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	add(1);
	xr_future_set(f[0], xr_value_new_nil());
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_OK);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_TIMEOUT);
	xr_future_set(outer, xr_value_new_nil());
	xr_future_unref(outer);
	let_go(1);
}

Test(block, a_wrong_time_ends_it_no_less)
{
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	cr_expect_eq(xr_rpc_wait_end(-7, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_STATE);
}

/* What was not noted cannot be waited for. */
Test(block, without_memory_it_is_incomplete)
{
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	f[0] = xr_future_new(NULL);
	until_short = 1;
	block_add(f[0]);
	cr_expect_eq(until_short, 0);
	block_add(f[0]);
	xr_future_set(f[0], xr_value_new_nil());
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text,
		"some calls were not waited for: out of memory");
	let_go(1);
	/* What failed is told rather. */
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	f[0] = xr_future_new(NULL);
	until_short = 1;
	block_add(f[0]);
	block_add(f[0]);
	future_fail(f[0], XR_E_REMOTE, "on purpose");
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_REMOTE);
	let_go(1);
}

/* --- tallies --------------------------------------------------------------------------- */

static struct tally t;

Test(tally, it_counts_those_that_are_and_those_that_were)
{
	cr_expect_eq(tally_count(&t), 0);
	for (unsigned i = 1; i <= 3; i++) {
		tally_up(&t);
		cr_expect_eq(tally_count(&t), i);
	}
	tally_down(&t);
	cr_expect_eq(tally_count(&t), 2);
	cr_expect_eq(tally_ever(&t), 3);
	tally_down(&t);
	tally_down(&t);
	cr_expect_eq(tally_count(&t), 0);
	cr_expect_eq(tally_ever(&t), 3);
}

Test(tally, nobody_waits_for_none)
{
	cr_expect(tally_await(&t, clock_now()));
	cr_expect_null(atomic_load(&t.idle));
	tally_up(&t);
	cr_expect_not(tally_await(&t, clock_now()));
	cr_expect_null(atomic_load(&t.idle));
	tally_down(&t);
	cr_expect(tally_await(&t, INT64_MAX));
}

static void *
end_both(void *unused)
{
	struct waiter *w;

	(void)unused;
	while ((w = atomic_load(&t.idle)) == NULL)
		sched_yield();
	tally_down(&t);
	/* One is left. */
	cr_expect_eq(atomic_load(&t.idle), w);
	tally_down(&t);
	return NULL;
}

Test(tally, the_last_one_ends_the_wait)
{
	pthread_t thread;

	tally_up(&t);
	tally_up(&t);
	cr_assert_eq(pthread_create(&thread, NULL, end_both, NULL), 0);
	cr_expect(tally_await(&t, INT64_MAX));
	cr_expect_null(atomic_load(&t.idle));
	cr_expect_eq(tally_count(&t), 0);
	pthread_join(thread, NULL);
}
