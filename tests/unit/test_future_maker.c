/* SPDX-License-Identifier: Apache-2.0 */
/* test_future_maker.c - what a future has its maker do; see worker/rpc/future.h. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include <xrun/future.h>

#include "base/clock.h"
#include "worker/rpc/future.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/waiter.h"
#include "tests/unit/future_rig.h"

TestSuite(future_maker, .timeout = 60);

static struct {
	int cancels, settles, frees;
} calls;
static bool cancel_ends;

static bool
count_cancel(struct xr_future *future, void *ctx)
{
	cr_expect_eq(ctx, &calls);
	calls.cancels++;
	future_fail(future, XR_E_CANCELLED, "by its maker");
	return cancel_ends;
}

static void
count_settled(void *ctx)
{
	cr_expect_eq(ctx, &calls);
	calls.settles++;
}

static void
count_free(void *ctx)
{
	cr_expect_eq(ctx, &calls);
	calls.frees++;
}

Test(future_maker, a_maker_without_functions_is_asked_nothing)
{
	static const struct future_maker none = { 0 };
	struct xr_future *f = future_new(&none, &calls);
	struct xr_error err = { 0 };

	future_help(f);
	cr_expect_eq(xr_future_wait(f, 0, NULL, NULL), XR_E_TIMEOUT);
	cr_expect_eq(xr_future_cancel(f), XR_OK);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CANCELLED);
	cr_expect_str_eq(err.text, "canceled");
	xr_future_unref(f);
}

static unsigned callbacks;

static void
count_callback(struct xr_future *future, void *ctx)
{
	cr_expect_eq(ctx, &callbacks);
	cr_expect(xr_future_done(future));
	cr_expect_eq(calls.settles, 0);
	callbacks++;
}

Test(future_maker, a_maker_hears_when_all_callbacks_have_run)
{
	static const struct future_maker maker = { .settled = count_settled };

	for (unsigned count = 0; count <= 3; count++) {
		struct xr_future *f = future_new(&maker, &calls);

		calls.settles = 0;
		callbacks = 0;
		for (unsigned i = 0; i < count; i++)
			cr_assert_eq(xr_future_on_done(f, count_callback,
					     &callbacks),
				XR_OK);
		cr_expect_eq(calls.settles, 0);
		cr_expect_eq(xr_future_set(f, number(1)), XR_OK);
		cr_expect_eq(callbacks, count);
		cr_expect_eq(calls.settles, 1, "%u", count);
		xr_future_unref(f);
	}
}

Test(future_maker, a_future_that_goes_on_is_not_cancelled)
{
	static const struct future_maker maker = { .goes_on = true,
		.cancel = count_cancel };
	struct xr_future *f = future_new(&maker, &calls);

	cr_expect_eq(xr_future_cancel(f), XR_E_STATE);
	cr_expect_not(xr_future_done(f));
	cr_expect_eq(calls.cancels, 0);
	cr_expect_eq(xr_future_set(f, number(1)), XR_OK);
	cr_expect_eq(number_of(f), 1);
	xr_future_unref(f);
}

Test(future_maker, a_maker_cancels_and_hears_of_the_end_once)
{
	static const struct future_maker maker = { .cancel = count_cancel,
		.settled = count_settled,
		.free = count_free };

	for (int i = 0; i < 2; i++) {
		struct xr_future *f = future_new(&maker, NULL);

		memset(&calls, 0, sizeof(calls));
		future_bind(f, &calls);
		cancel_ends = i == 0;
		cr_expect_eq(calls.settles, 0);
		cr_expect_eq(xr_future_cancel(f), i == 0 ? XR_OK : XR_E_STATE);
		cr_expect_eq(calls.cancels, 1);
		cr_expect_eq(calls.settles, 1);
		cr_expect_eq(xr_future_cancel(f), XR_E_STATE);
		cr_expect_eq(xr_future_set(f, number(1)), XR_E_STATE);
		cr_expect_eq(calls.cancels, 1);
		cr_expect_eq(calls.settles, 1);
		xr_future_ref(f);
		xr_future_unref(f);
		cr_expect_eq(calls.frees, 0);
		xr_future_unref(f);
		cr_expect_eq(calls.frees, 1);
	}
}

/* --- a maker that waits ------------------------------------------------------ */

static struct {
	struct xr_future *future;
	int64_t deadline;
	bool ends; /* it ends while it is waited for */
	int waits, helps;
	int parts; /* that help() can still do; 0: the next ends it */
} await;

static bool
wait_once(struct waiter *w, int64_t deadline, void *ctx)
{
	cr_expect_eq(ctx, &await);
	cr_expect_eq(atomic_load(&w->state), WAITER_PENDING);
	cr_expect_not(w->follows);
	await.deadline = deadline;
	await.waits++;
	if (await.ends)
		xr_future_set(await.future, number(3));
	cr_expect_eq(waiter_is_done(w), await.ends);
	return waiter_is_done(w);
}

static bool
help_once(const struct xr_future *future, void *ctx)
{
	cr_expect_eq(ctx, &await);
	cr_expect_eq(future, await.future);
	await.helps++;
	if (await.parts == 0)
		xr_future_set(await.future, number(3));
	return await.parts-- != 1 && await.helps < 10;
}

static const struct future_maker waits = { .wait = wait_once,
	.help = help_once };

/* Who no longer waits is told nothing. It helps only where nobody has a limit. */
Test(future_maker, a_maker_waits_for_one_that_is_pending_and_is_told_of_its_end)
{
	struct xr_error err = { 0 };
	int64_t before;

	await.future = future_new(&waits, &await);
	cr_expect_eq(xr_future_wait(await.future, 0, NULL, NULL), XR_E_TIMEOUT);
	cr_expect_eq(await.waits, 0);
	before = clock_now();
	cr_expect_eq(xr_future_wait(await.future, XR_SECONDS(3600), NULL, &err),
		XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "not ended after 3600000 ms");
	cr_expect_eq(await.waits, 1);
	cr_expect_eq(await.helps, 0);
	cr_expect_geq(await.deadline, before + XR_SECONDS(3600));
	cr_expect_leq(await.deadline, clock_now() + XR_SECONDS(3600));
	await.ends = true;
	await.parts = 3;
	cr_expect_eq(xr_future_wait(await.future, XR_TIMEOUT_NEVER, NULL, NULL),
		XR_OK);
	cr_expect_eq(await.waits, 2);
	cr_expect_eq(await.helps, 3);
	cr_expect_eq(await.deadline, INT64_MAX);
	cr_expect_eq(number_of(await.future), 3);
	cr_expect_eq(await.waits, 2);
	xr_future_unref(await.future);
}

Test(future_maker, help_that_ends_it_is_not_asked_again)
{
	await.future = future_new(&waits, &await);
	cr_expect_eq(xr_future_wait(await.future, XR_TIMEOUT_NEVER, NULL, NULL),
		XR_OK);
	cr_expect_eq(await.helps, 1);
	cr_expect_eq(await.waits, 0);
	future_help(await.future);
	cr_expect_eq(await.helps, 1);
	xr_future_unref(await.future);
}

Test(future_maker, who_delivers_neither_helps_nor_waits)
{
	struct xr_error err = { 0 };

	await.future = future_new(&waits, &await);
	lead_deliver_begin();
	cr_expect_eq(xr_future_wait(await.future, XR_TIMEOUT_NEVER, NULL, &err),
		XR_E_STATE);
	cr_expect_str_eq(err.text, "a short function or callback may not wait");
	cr_expect_eq(xr_future_wait(await.future, 0, NULL, NULL), XR_E_TIMEOUT);
	future_help(await.future);
	cr_expect_not(future_may_help());
	cr_expect_eq(await.helps, 0);
	cr_expect_eq(await.waits, 0);
	lead_deliver_end();
	cr_expect(future_may_help());
	future_help(await.future);
	cr_expect_eq(await.helps, 1);
	cr_expect_eq(number_of(await.future), 3);
	xr_future_unref(await.future);
}
