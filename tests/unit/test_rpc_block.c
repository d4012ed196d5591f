/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_block.c - xr_rpc_wait_begin() and xr_rpc_wait_end(): which futures are waited
 * for, and what is told of them. */
#include <criterion/criterion.h>

#include <xrun/error.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "worker/rpc/block.h"
#include "worker/rpc/future.h"

TestSuite(rpc_block, .timeout = 20);

static struct xr_error err;
static unsigned freed;

static void
note_freed(void *ctx)
{
	cr_expect_eq(ctx, &freed);
	freed++;
}

static const struct future_maker maker = { .free = note_freed };

/* A future that the block has a reference to, and the test another. */
static struct xr_future *
add(void)
{
	struct xr_future *f = future_new(&maker, &freed);

	cr_assert_not_null(f);
	block_add(f);
	return f;
}

static void
add_ended(enum xr_status status, const char *text)
{
	struct xr_future *f = add();

	if (status == XR_OK)
		xr_future_set(f, xr_value_new_nil());
	else
		xr_future_fail_with(f, status, text);
	xr_future_unref(f);
}

#define BEGIN() cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK)

static enum xr_status
wait_end(int64_t timeout)
{
	err = (struct xr_error){ 0 };
	return xr_rpc_wait_end(timeout, &err);
}

static void
expect_none(void)
{
	cr_expect_eq(wait_end(0), XR_E_STATE);
	cr_expect_str_eq(err.text, "xr_rpc_wait_begin() comes first");
}

Test(rpc_block, a_block_begins_before_it_ends)
{
	expect_none();
	BEGIN();
	cr_expect_eq(wait_end(0), XR_OK);
	expect_none();
	/* Outside of one there is nothing to keep. */
	xr_future_unref(add());
	cr_expect_eq(freed, 1);
}

Test(rpc_block, all_are_kept_until_its_end)
{
	BEGIN();
	for (int i = 0; i < 70; i++)
		add_ended(XR_OK, NULL);
	cr_expect_eq(freed, 0);
	cr_expect_eq(wait_end(XR_TIMEOUT_DEFAULT), XR_OK);
	cr_expect_eq(freed, 70);
}

Test(rpc_block, the_first_error_is_told)
{
	BEGIN();
	add_ended(XR_OK, NULL);
	add_ended(XR_E_RANGE, "the first");
	add_ended(XR_OK, NULL);
	add_ended(XR_E_REMOTE, "the second");
	cr_expect_eq(wait_end(XR_TIMEOUT_NEVER), XR_E_RANGE);
	cr_expect_str_eq(err.text, "the first");
	cr_expect_eq(freed, 4);
	BEGIN();
	add_ended(XR_E_RANGE, "the first");
	cr_expect_eq(xr_rpc_wait_end(0, NULL), XR_E_RANGE);
	/* Without one nothing is told. */
	BEGIN();
	add_ended(XR_OK, NULL);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_OK);
	cr_expect_str_eq(err.text, "the first");
}

Test(rpc_block, one_that_has_not_ended_is_not_waited_for_longer)
{
	struct xr_future *f;

	BEGIN();
	f = add();
	add_ended(XR_E_RANGE, "later");
	cr_expect_eq(wait_end(0), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "it has not ended");
	cr_expect_eq(freed, 1);
	xr_future_unref(f);
	BEGIN();
	f = add();
	cr_expect_eq(wait_end(XR_SECONDS(1) / 100), XR_E_TIMEOUT);
	cr_expect_eq(strncmp(err.text, "not ended after ", 16), 0, "%s",
		err.text);
	xr_future_unref(f);
}

Test(rpc_block, blocks_nest)
{
	struct xr_future *outer;

	BEGIN();
	outer = add();
	BEGIN();
	add_ended(XR_OK, NULL);
	cr_expect_eq(wait_end(0), XR_OK);
	cr_expect_eq(freed, 1);
	add_ended(XR_E_RANGE, "of the outer one");
	xr_future_set(outer, xr_value_new_nil());
	xr_future_unref(outer);
	cr_expect_eq(freed, 1);
	cr_expect_eq(wait_end(0), XR_E_RANGE);
	cr_expect_str_eq(err.text, "of the outer one");
	cr_expect_eq(freed, 3);
	expect_none();
}

/* It ends all the same. */
Test(rpc_block, a_timeout_that_is_none_is_refused)
{
	BEGIN();
	add_ended(XR_OK, NULL);
	cr_expect_eq(wait_end(-2), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT");
	cr_expect_eq(freed, 1);
	expect_none();
}

Test(rpc_block, one_that_was_not_kept_is_told_of)
{
	until_short = 1;
	cr_expect_eq(xr_rpc_wait_begin(&err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	expect_none();
	for (int count = 0; count <= 16; count += 16) {
		struct xr_future *f = future_new(&maker, &freed);

		BEGIN();
		freed = 0;
		for (int i = 0; i < count; i++)
			add_ended(XR_OK, NULL);
		until_short = 1;
		block_add(f);
		cr_expect_eq(until_short, 0, "%d", count);
		xr_future_unref(f);
		cr_expect_eq(freed, 1);
		/* Others are kept. */
		add_ended(XR_OK, NULL);
		cr_expect_eq(freed, 1);
		cr_expect_eq(wait_end(0), XR_E_NOMEM);
		cr_expect_str_eq(err.text,
			"some calls were not waited for: out of memory");
		cr_expect_eq(freed, (unsigned)count + 2);
	}
	/* An error goes before that. */
	BEGIN();
	add_ended(XR_E_RANGE, "an error");
	cr_expect_eq(wait_end(0), XR_E_RANGE);
}
