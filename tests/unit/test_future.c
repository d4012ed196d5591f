/* SPDX-License-Identifier: Apache-2.0 */
/* test_future.c - futures, without an agent: callbacks run where they end. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/future.h>
#include <xrun/tensor.h>

#include "base/clock.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/value_device.h"
#include "worker/rpc/future.h"
#include "tests/unit/future_rig.h"

Test(future, AC_F1_it_ends_once)
{
	struct xr_future *f = xr_future_new(NULL);

	cr_expect_eq(xr_future_set(f, number(1)), XR_OK);
	cr_expect_eq(xr_future_set(f, number(2)), XR_E_STATE);
	cr_expect_eq(xr_future_fail_with(f, XR_E_INVAL, "no"), XR_E_STATE);
	cr_expect_eq(number_of(f), 1);
	xr_future_unref(f);
	f = xr_future_new(NULL);
	cr_expect_eq(xr_future_fail_with(f, XR_E_RANGE, "no"), XR_OK);
	cr_expect_eq(xr_future_set(f, number(2)), XR_E_STATE);
	cr_expect_eq(xr_future_wait(f, 0, NULL, NULL), XR_E_RANGE);
	xr_future_unref(f);
}

Test(future, without_memory_there_is_none)
{
	const struct xr_future_opts opts = { .size = sizeof(opts) };

	until_short = 1;
	cr_expect_null(xr_future_new(&opts));
	until_short = 1;
	cr_expect_null(xr_future_new(NULL));
}

/* Also where there is none for the error that says so. */
Test(future, without_memory_it_ends_with_that)
{
	struct xr_future *f[3];
	struct xr_error err;
	struct xr_value *v;

	for (int i = 0; i < 3; i++) {
		f[i] = xr_future_new(NULL);
		cr_assert_not_null(f[i]);
	}
	for (int i = 0; i < 3; i++) {
		until_short = 1;
		stays_short = i == 0;
		cr_expect_eq(xr_future_fail_with(f[i], XR_E_RANGE, "no"),
			XR_OK);
		until_short = 0;
		err = (struct xr_error){ 0 };
		cr_expect_eq(xr_future_wait(f[i], 0, NULL, &err), XR_E_NOMEM);
		v = xr_future_error(f[i]);
		if (i > 0)
			cr_expect_str_eq(err.text, "out of memory");
		if (i > 0)
			cr_expect_eq(xr_value_kind(v), XR_ERROR);
		xr_value_unref(v);
		xr_future_unref(f[i]);
	}
}

/* In bytes that are asked for. */
Test(future, each_declared_device_has_its_place)
{
	static const struct xr_device_name devices[3] = { { XR_DEVICE_FAKE, 0 },
		{ XR_DEVICE_FAKE, 1 }, { XR_DEVICE_FAKE, 2 } };
	size_t asked[4];

	for (uint32_t i = 0; i <= 3; i++) {
		const struct xr_future_opts opts = { .size = sizeof(opts),
			.devices = devices,
			.device_count = i };

		most_asked = 0;
		xr_future_unref(xr_future_new(&opts));
		asked[i] = most_asked;
	}
	for (uint32_t i = 1; i <= 3; i++)
		cr_expect_eq(asked[i], asked[0] + i * sizeof(devices[0]));
}

Test(future, what_is_no_value_or_error_is_refused)
{
	struct xr_future *f = xr_future_new(NULL);

	cr_expect_eq(xr_future_set(f, NULL), XR_E_INVAL);
	cr_expect_eq(xr_future_fail(f, number(1)), XR_E_INVAL);
	cr_expect_eq(xr_future_fail_with(f, XR_OK, ""), XR_E_INVAL);
	cr_expect_not(xr_future_done(f));
	cr_expect_eq(xr_future_then(f, NULL, NULL, XR_THEN, NULL), XR_E_INVAL);
	cr_expect_eq(xr_future_wait(f, -5, NULL, NULL), XR_E_INVAL);
	xr_future_unref(f);
}

static enum xr_status
add_one(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *v = NULL;
	enum xr_status status = xr_future_value(parent, &v, err);
	int64_t n;

	if (ctx != NULL)
		atomic_fetch_add((_Atomic int *)ctx, 1);
	if (status != XR_OK)
		return status;
	xr_value_get_i64(v, &n);
	xr_value_unref(v);
	*result = xr_value_new_i64(n + 1);
	return XR_OK;
}

Test(future, AC_F2_of_one_that_ended_it_runs_before_then_returns)
{
	struct xr_future *f = xr_future_new(NULL), *child = NULL;
	_Atomic int calls = 0;

	xr_future_set(f, number(1));
	cr_assert_eq(xr_future_then(f, add_one, &calls, XR_THEN, &child),
		XR_OK);
	cr_expect_eq(calls, 1);
	cr_expect(xr_future_done(child));
	cr_expect_eq(number_of(child), 2);
	xr_future_unref(child);
	xr_future_unref(f);
}

Test(future, AC_F3_a_chain_of_20_adds_20)
{
	struct xr_future *first = xr_future_new(NULL),
			 *f = xr_future_ref(first);

	for (int i = 0; i < 20; i++) {
		struct xr_future *next = NULL;

		cr_assert_eq(xr_future_then(f, add_one, NULL,
				     i % 2 == 0 ? XR_SHORT : XR_THEN, &next),
			XR_OK);
		xr_future_unref(f);
		f = next;
	}
	xr_future_set(first, number(5));
	cr_expect_eq(number_of(f), 25);
	xr_future_unref(f);
	xr_future_unref(first);
}

Test(future, AC_F4_ten_callbacks_run_once_each)
{
	struct xr_future *f = xr_future_new(NULL);
	_Atomic int calls = 0;

	for (int i = 0; i < 10; i++)
		cr_assert_eq(xr_future_then(f, add_one, &calls,
				     i % 2 == 0 ? XR_SHORT : XR_THEN, NULL),
			XR_OK);
	cr_expect_eq(calls, 0);
	xr_future_set(f, number(1));
	cr_expect_eq(calls, 10);
	xr_future_unref(f);
}

static enum xr_status
fail_always(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)parent;
	(void)ctx;
	(void)result;
	return xr_error_set(err, XR_E_RANGE, "on purpose");
}

Test(future, AC_F5_an_error_in_a_callback_is_the_childs)
{
	struct xr_future *f = xr_future_new(NULL), *child = NULL;
	struct xr_error err = { 0 };

	xr_future_then(f, fail_always, NULL, XR_SHORT, &child);
	xr_future_set(f, number(1));
	cr_expect_eq(number_of(f), 1);
	cr_expect_eq(xr_future_wait(child, 0, NULL, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "on purpose");
	cr_expect_eq(xr_future_wait(child, 0, NULL, &err), XR_E_RANGE,
		"as often as one asks");
	xr_future_unref(child);
	xr_future_unref(f);
}

static enum xr_status
say_seven(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)parent;
	(void)ctx;
	(void)err;
	*result = xr_value_new_i64(7);
	return XR_OK;
}

Test(future, AC_F6_who_ignores_the_parents_error_has_a_child_that_succeeds)
{
	struct xr_future *f = xr_future_new(NULL), *child = NULL, *heir = NULL;
	struct xr_error err = { 0 };

	xr_future_then(f, say_seven, NULL, XR_SHORT, &child);
	xr_future_then(f, add_one, NULL, XR_SHORT, &heir);
	xr_future_fail_with(f, XR_E_NODEV, "broken");
	cr_expect_eq(number_of(child), 7);
	cr_expect_eq(xr_future_wait(heir, 0, NULL, &err), XR_E_NODEV);
	cr_expect_str_eq(err.text, "broken", "the parent's own error");
	xr_future_unref(heir);
	xr_future_unref(child);
	xr_future_unref(f);
}

Test(future, AC_F7_wait_all_gives_the_first_error_at_once)
{
	struct xr_future *f[] = { xr_future_new(NULL), xr_future_new(NULL) };
	int64_t begin = clock_now();

	xr_future_fail_with(f[1], XR_E_SCHEMA, "no");
	cr_expect_eq(xr_future_wait_all(f, 2, XR_SECONDS(60), NULL, NULL),
		XR_E_SCHEMA);
	cr_expect_lt(clock_now() - begin, XR_SECONDS(10));
	cr_expect_not(xr_future_done(f[0]));
	xr_future_unref(f[0]);
	xr_future_unref(f[1]);
}

Test(future, wait_all_gives_values_in_the_order_asked)
{
	struct xr_future *f[3];
	struct xr_value *all = NULL;
	int64_t n;

	for (int i = 0; i < 3; i++)
		f[i] = xr_future_new(NULL);
	for (int i = 2; i >= 0; i--)
		xr_future_set(f[i], number(10 + i));
	cr_assert_eq(xr_future_wait_all(f, 3, 0, &all, NULL), XR_OK);
	for (int i = 0; i < 3; i++) {
		xr_value_get_i64(xr_value_at(all, (size_t)i), &n);
		cr_expect_eq(n, 10 + i);
		xr_future_unref(f[i]);
	}
	xr_value_unref(all);
}

Test(future, AC_F8_all_of_none_has_ended)
{
	struct xr_future *all = NULL, *none = NULL;
	struct xr_value *v = NULL;

	cr_expect_eq(xr_future_all(&none, 1, &all), XR_E_INVAL);
	cr_expect_eq(xr_future_wait_all(NULL, 2, 0, NULL, NULL), XR_E_INVAL);
	cr_assert_eq(xr_future_all(NULL, 0, &all), XR_OK);
	cr_expect(xr_future_done(all));
	cr_assert_eq(xr_future_value(all, &v, NULL), XR_OK);
	cr_expect_eq(xr_value_count(v), 0);
	xr_value_unref(v);
	xr_future_unref(all);
}

Test(future, AC_F9_a_wait_that_is_over_leaves_it_pending)
{
	struct xr_future *f = xr_future_new(NULL);
	int64_t begin = clock_now();

	cr_expect_eq(xr_future_wait(f, XR_SECONDS(0.1), NULL, NULL),
		XR_E_TIMEOUT);
	cr_expect_geq(clock_now() - begin, XR_SECONDS(0.1));
	cr_expect_eq(xr_future_value(f, NULL, NULL), XR_E_AGAIN);
	cr_expect_not(xr_future_done(f));
	xr_future_set(f, number(3));
	cr_expect_eq(number_of(f), 3);
	xr_future_unref(f);
}

static void
release(struct xr_future *future, void *ctx)
{
	*(int *)ctx += 1;
	xr_future_unref(future);
}

Test(future, AC_F10_the_last_handle_may_go_in_its_own_callback)
{
	struct xr_future *f = xr_future_new(NULL);
	int calls = 0;

	cr_assert_eq(xr_future_on_done(f, release, &calls), XR_OK);
	xr_future_set(f, number(1));
	cr_expect_eq(calls, 1);
}

Test(future, a_future_that_is_dropped_ends_its_children)
{
	struct xr_future *f = xr_future_new(NULL), *child = NULL;

	xr_future_then(f, add_one, NULL, XR_SHORT, &child);
	xr_future_unref(f);
	cr_expect_eq(xr_future_wait(child, 0, NULL, NULL), XR_E_CANCELLED);
	xr_future_unref(child);
}

Test(future, canceling_ends_it)
{
	struct xr_future *f = xr_future_new(NULL);

	cr_expect_eq(xr_future_cancel(f), XR_OK);
	cr_expect_eq(xr_future_cancel(f), XR_E_STATE);
	cr_expect_eq(xr_future_wait(f, 0, NULL, NULL), XR_E_CANCELLED);
	xr_future_unref(f);
}

static void *
set_soon(void *future)
{
	xr_future_set(future, xr_value_new_i64(9));
	return NULL;
}

Test(future, whoever_waits_is_woken_by_another_thread)
{
	for (int i = 0; i < 200; i++) {
		struct xr_future *f = xr_future_new(NULL);
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, set_soon, f), 0);
		cr_assert_eq(number_of(f), 9);
		pthread_join(thread, NULL);
		xr_future_unref(f);
	}
}

static void *
wait_for_it(void *future)
{
	cr_expect_eq(number_of(future), 4);
	return NULL;
}

Test(future, several_threads_wait_for_one)
{
	struct xr_future *f = xr_future_new(NULL);
	pthread_t thread[6];

	for (int i = 0; i < 6; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, wait_for_it, f),
			0);
	xr_future_set(f, number(4));
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	xr_future_unref(f);
}

/* --- many threads at once; tests/thread/rpc.c does more, and looks closer ---- */

#define CROWD 8

static struct xr_future *_Atomic crowd[200];
static _Atomic int set_once, chained;

static enum xr_status
count_one(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)ctx;
	atomic_fetch_add(&chained, 1);
	return xr_future_value(parent, result, err);
}

static void *
end_and_chain(void *ctx)
{
	int64_t me = (int64_t)(intptr_t)ctx;

	for (int i = 0; i < 200; i++) {
		struct xr_future *child = NULL;

		if (xr_future_then(crowd[i], count_one, NULL,
			    i % 2 == 0 ? XR_SHORT : XR_THEN, &child) != XR_OK)
			continue;
		if (xr_future_set(crowd[i], xr_value_new_i64(me)) == XR_OK)
			atomic_fetch_add(&set_once, 1);
		if (number_of(crowd[i]) != number_of(child))
			atomic_fetch_add(&set_once, 1000);
		xr_future_unref(child);
	}
	return NULL;
}

Test(future, AC_F12_eight_threads_end_and_chain)
{
	pthread_t thread[CROWD];

	for (int i = 0; i < 200; i++)
		crowd[i] = xr_future_new(NULL);
	for (intptr_t t = 0; t < CROWD; t++)
		cr_assert_eq(pthread_create(&thread[t], NULL, end_and_chain,
				     (void *)t),
			0);
	for (int t = 0; t < CROWD; t++)
		pthread_join(thread[t], NULL);
	cr_expect_eq(set_once, 200);
	cr_expect_eq(chained, 200 * CROWD);
	for (int i = 0; i < 200; i++)
		xr_future_unref(crowd[i]);
}

Test(future, a_chain_of_any_length_needs_no_stack)
{
	struct xr_future *first = xr_future_new(NULL),
			 *f = xr_future_ref(first);

	for (int i = 0; i < 300000; i++) {
		struct xr_future *next = NULL;

		cr_assert_eq(xr_future_then(f, add_one, NULL, XR_SHORT, &next),
			XR_OK);
		xr_future_unref(f);
		f = next;
	}
	xr_future_set(first, number(0));
	cr_expect_eq(number_of(f), 300000);
	xr_future_unref(f);
	xr_future_unref(first);
}

/* --- devices -------------------------------------------------------------- */

static struct xr_value *
tensor_on(enum xr_device_kind kind, int32_t index)
{
	const struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = XR_DT_F32,
		.device_kind = kind,
		.device_index = index,
	};
	struct xr_value *v = NULL;
	struct xr_error err = { 0 };

	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK, "%s", err.text);
	return v;
}

static struct xr_value *
list_of(struct xr_value *a, struct xr_value *b)
{
	struct xr_value *list = xr_value_new_list();

	cr_assert_eq(xr_value_append(list, a), XR_OK);
	cr_assert_eq(xr_value_append(list, b), XR_OK);
	return list;
}

static const struct xr_device_name some_devices[] = {
	{ XR_DEVICE_CUDA, 0 },
	{ XR_DEVICE_FAKE, 1 },
};

/* What becomes of a future with the first @count of some_devices when it is set to
 * @v: the message; "" if the value was taken. */
static const char *
set_to(struct xr_value *v, uint32_t count)
{
	const struct xr_future_opts opts = {
		.size = sizeof(opts),
		.devices = some_devices,
		.device_count = count,
	};
	static struct xr_error err;
	struct xr_future *f = xr_future_new(&opts);
	struct xr_value *got = NULL;
	enum xr_status set, status;

	cr_assert_not_null(f);
	set = xr_future_set(f, v);
	err = (struct xr_error){ 0 };
	status = xr_future_wait(f, 0, &got, &err);
	cr_expect_eq(set, status);
	cr_expect(status == XR_OK || status == XR_E_DEVICE);
	cr_expect_eq(status == XR_OK, got == v);
	xr_value_unref(got);
	xr_future_unref(f);
	return status == XR_OK ? "" : err.text;
}

#define CPU0  tensor_on(XR_DEVICE_CPU, 0)
#define FAKE0 tensor_on(XR_DEVICE_FAKE, 0)
#define FAKE1 tensor_on(XR_DEVICE_FAKE, 1)

Test(future, tensors_are_on_declared_devices_or_it_fails)
{
	cr_assert_eq(device_set_ops(XR_DEVICE_FAKE, &device_ops), XR_OK);
	cr_expect_str_eq(set_to(FAKE1, 2), "");
	cr_expect_str_eq(set_to(CPU0, 2), "");
	cr_expect_str_eq(set_to(list_of(CPU0, FAKE1), 2), "");
	cr_expect_str_eq(set_to(list_of(number(1), number(2)), 2), "");
	cr_expect_str_eq(set_to(FAKE0, 0), "");
	cr_expect_str_eq(set_to(FAKE0, 2),
		"a tensor is on fake:0, and declared were cpu, cuda:0, fake:1");
	cr_expect_str_eq(set_to(FAKE1, 1),
		"a tensor is on fake:1, and declared were cpu, cuda:0");
	cr_expect_str_eq(set_to(list_of(FAKE0, CPU0), 1),
		"a tensor is on fake:0, and declared were cpu, cuda:0");
	cr_expect_str_eq(set_to(list_of(FAKE1, list_of(CPU0, FAKE0)), 2),
		"a tensor is on fake:0, and declared were cpu, cuda:0, fake:1");
	cr_expect_eq(device_blocks, 0);
}

Test(future, a_stray_tensor_comes_too_late_for_one_that_has_ended)
{
	const struct xr_future_opts opts = {
		.size = sizeof(opts),
		.devices = some_devices,
		.device_count = 2,
	};
	struct xr_future *f = xr_future_new(&opts);

	cr_assert_eq(device_set_ops(XR_DEVICE_FAKE, &device_ops), XR_OK);
	cr_expect_eq(xr_future_set(f, number(3)), XR_OK);
	cr_expect_eq(xr_future_set(f, FAKE0), XR_E_STATE);
	cr_expect_eq(number_of(f), 3);
	xr_future_unref(f);
	cr_expect_eq(device_blocks, 0);
}

Test(future, a_long_list_of_declared_devices_is_cut)
{
	struct xr_device_name many[40];
	const struct xr_future_opts opts = {
		.size = sizeof(opts),
		.devices = many,
		.device_count = 40,
	};
	struct xr_future *f;
	const char *end;
	struct xr_error err = { 0 };

	for (int i = 0; i < 40; i++)
		many[i] = (struct xr_device_name){ XR_DEVICE_CUDA, 10 + i };
	cr_assert_eq(device_set_ops(XR_DEVICE_FAKE, &device_ops), XR_OK);
	f = xr_future_new(&opts);
	cr_expect_eq(xr_future_set(f, FAKE0), XR_E_DEVICE);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_DEVICE);
	/* "cpu" and 21 times 9 bytes, then 7 of the next one. */
	end = strstr(err.text, ", cuda:30");
	cr_assert_not_null(end);
	cr_expect_str_eq(end, ", cuda:30, cuda:");
	xr_future_unref(f);
}

Test(future, all_without_memory_are_none_and_each_ends_by_itself)
{
	struct xr_future *f[2], *all = NULL;
	struct xr_error err = { 0 };
	struct xr_value *one;

	for (unsigned n = 1; n <= 4; n++) {
		f[0] = xr_future_new(NULL);
		f[1] = xr_future_new(NULL);
		was_short = false;
		until_short = n;
		cr_expect_eq(xr_future_wait_all(f, 2, 0, NULL, &err),
			XR_E_NOMEM, "allocation %u", n);
		cr_expect(was_short);
		cr_expect_str_eq(err.text, "out of memory");
		for (int64_t i = 0; i < 2; i++) {
			cr_expect_eq(xr_future_set(f[i], number(i)), XR_OK);
			cr_expect_eq(number_of(f[i]), i);
			xr_future_unref(f[i]);
		}
	}
	f[0] = xr_future_new(NULL);
	cr_assert_eq(xr_future_all(f, 1, &all), XR_OK);
	one = number(1);
	/* There is none for the list. */
	until_short = 1;
	cr_expect_eq(xr_future_set(f[0], one), XR_OK);
	until_short = 0;
	cr_expect_eq(xr_future_wait(all, 0, NULL, NULL), XR_E_NOMEM);
	xr_future_unref(f[0]);
	xr_future_unref(all);
}

Test(future, wait_all_says_what_is_wrong)
{
	struct xr_future *f[2] = { xr_future_new(NULL), NULL };
	struct xr_error err = { 0 };

	cr_expect_eq(xr_future_wait_all(f, 2, 0, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "a future that is NULL");
	cr_expect_eq(xr_future_wait_all(f, 1, -5, NULL, &err), XR_E_INVAL);
	cr_expect_eq(xr_future_wait_all(f, 1, 0, NULL, &err), XR_E_TIMEOUT);
	xr_future_unref(f[0]);
}
