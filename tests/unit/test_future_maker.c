/* SPDX-License-Identifier: Apache-2.0 */
/* test_future_maker.c - what a future has its maker do; see worker/rpc/future.h. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include <xrun/future.h>

#include "base/clock.h"
#include "worker/rpc/crew.h"
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

static int settles_seen[3], done_count;

static void
note_done(struct xr_future *future, void *ctx)
{
	(void)future;
	cr_expect_eq(ctx, &calls);
	settles_seen[done_count++] = calls.settles;
}

/* Who waits for it to be settled finds that all that follows it has run. */
Test(future_maker, it_is_settled_when_all_callbacks_have_run)
{
	static const struct future_maker maker = { .settled = count_settled };
	struct xr_future *f = future_new(&maker, &calls);

	for (int i = 0; i < 3; i++)
		cr_assert_eq(xr_future_on_done(f, note_done, &calls), XR_OK);
	cr_expect_eq(done_count, 0);
	cr_expect_eq(xr_future_set(f, number(1)), XR_OK);
	cr_expect_eq(done_count, 3);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(settles_seen[i], 0);
	cr_expect_eq(calls.settles, 1);
	xr_future_unref(f);
}

/* --- a maker that has threads ------------------------------------------------- */

static struct work *posted;
static bool takes;

static bool
take_work(struct work *work)
{
	posted = work;
	return takes;
}

static const struct future_maker posts = { .post = take_work,
	.settled = count_settled };

static int then_runs;

static enum xr_status
note_then(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)parent;
	(void)err;
	cr_expect_eq(ctx, &then_runs);
	then_runs++;
	*result = number(5);
	return XR_OK;
}

Test(future_maker, what_may_wait_is_posted_to_its_maker)
{
	struct xr_future *f = future_new(&posts, &calls), *child = NULL,
			 *brief = NULL;

	takes = true;
	cr_assert_eq(xr_future_then(f, note_then, &then_runs, XR_SHORT, &brief),
		XR_OK);
	cr_assert_eq(xr_future_then(f, note_then, &then_runs, 0, &child),
		XR_OK);
	xr_future_set(f, number(1));
	/* What is short runs at once. */
	cr_expect_eq(then_runs, 1);
	cr_expect_eq(number_of(brief), 5);
	cr_assert_not_null(posted);
	cr_expect_not(xr_future_done(child));
	cr_expect_eq(calls.settles, 0);
	posted->run(posted);
	cr_expect_eq(then_runs, 2);
	cr_expect_eq(number_of(child), 5);
	cr_expect_eq(calls.settles, 1);
	xr_future_unref(brief);
	xr_future_unref(child);
	xr_future_unref(f);
}

Test(future_maker, what_its_maker_does_not_take_runs_at_once)
{
	struct xr_future *f = future_new(&posts, &calls), *child = NULL;

	cr_assert_eq(xr_future_then(f, note_then, &then_runs, 0, &child),
		XR_OK);
	xr_future_set(f, number(1));
	cr_expect_not_null(posted);
	cr_expect_eq(then_runs, 1);
	cr_expect_eq(number_of(child), 5);
	cr_expect_eq(calls.settles, 1);
	xr_future_unref(child);
	xr_future_unref(f);
}

Test(future_maker, a_callback_that_ends_its_thread_fails)
{
	struct xr_future *f = future_new(&posts, &calls), *child = NULL;
	struct xr_error err = { 0 };

	takes = true;
	cr_assert_eq(xr_future_then(f, note_then, &then_runs, 0, &child),
		XR_OK);
	xr_future_set(f, number(1));
	cr_assert_not_null(posted);
	cr_assert_not_null(posted->ended_thread);
	posted->ended_thread(posted);
	cr_expect_eq(then_runs, 0);
	cr_expect_eq(xr_future_wait(child, 0, NULL, &err), XR_E_STATE);
	cr_expect_str_eq(err.text,
		"a callback has ended its thread (pthread_exit), which is the agent's");
	cr_expect_eq(calls.settles, 1);
	xr_future_unref(child);
	xr_future_unref(f);
}

Test(future_maker, what_is_called_then_has_flags_that_are_known)
{
	struct xr_future *f = xr_future_new(NULL), *child = NULL;

	cr_expect_eq(xr_future_then(f, NULL, NULL, 0, &child), XR_E_INVAL);
	cr_expect_eq(xr_future_then(f, note_then, NULL, XR_SHORT << 1, &child),
		XR_E_INVAL);
	cr_expect_eq(xr_future_on_done(f, NULL, NULL), XR_E_INVAL);
	cr_expect_null(child);
	xr_future_unref(f);
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
