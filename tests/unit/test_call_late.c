/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_late.c - calls that are answered after their function returned: with a
 * future, or by whoever deferred them; and what becomes of those that are not. */
#include <xrun/call.h>
#include <xrun/rref.h>
#include <xrun/tensor.h>

#include "base/clock.h"
#include "tests/unit/agent_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/serve.h"

TestSuite(call_late, .timeout = 120);

/* --- tensors --------------------------------------------------------------- */

/* Two floats. */
static struct xr_value *
pair_of(float both)
{
	struct xr_tensor_desc desc = {
		.size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.shape = { 2 },
	};
	struct xr_value *tensor = NULL;
	float *data;

	cr_assert_eq(xr_tensor_new(&desc, &tensor, NULL), XR_OK);
	data = xr_tensor_data(tensor, NULL);
	data[0] = data[1] = both;
	return tensor;
}

static float
first_of(const struct xr_value *tensor)
{
	const float *data = xr_tensor_data(tensor, NULL);
	struct xr_tensor_desc desc = { .size = sizeof(desc) };

	cr_assert_eq(xr_tensor_desc(tensor, &desc), XR_OK);
	cr_expect(desc.ndim == 1 && desc.shape[0] == 2);
	data += desc.offset / sizeof(*data);
	cr_expect_eq(data[0], data[desc.strides[0]]);
	return data[0];
}

static struct xr_value *
tensor_and_ints(float both, size_t count, const int64_t *ints)
{
	struct xr_value *list = xr_value_new_list();

	xr_value_append(list, pair_of(both));
	for (size_t i = 0; i < count; i++)
		xr_value_append(list, xr_value_new_i64(ints[i]));
	return list;
}

/* --- what is called -------------------------------------------------------- */

static enum xr_status
add_to(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call,
		pair_of(first_of(xr_value_at(args, 0)) +
			(float)int_at(args, 1)));
}

static enum xr_status
add_z(struct xr_future *sum, void *z, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_value(sum, &value, err);

	if (status == XR_OK)
		*result = pair_of(first_of(value) + (float)(intptr_t)z);
	xr_value_unref(value);
	return status;
}

static struct xr_future *
begin_add(struct xr_value *args)
{
	return begin("add.to",
		tensor_and_ints(first_of(xr_value_at(args, 0)), 1,
			(int64_t[]){ int_at(args, 1) }));
}

/* x + y elsewhere, and z to that in a callback. */
static enum xr_status
add_by_then(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *sum = begin_add(args), *child = NULL;

	cr_assert_eq(xr_future_then(sum, add_z,
			     (void *)(intptr_t)int_at(args, 2),
			     ctx != NULL ? XR_SHORT : XR_THEN, &child),
		XR_OK);
	xr_future_unref(sum);
	return xr_reply_future(call, child);
}

struct fresh {
	struct xr_future *future;
	float z;
};

static void
set_fresh(struct xr_future *sum, void *ctx)
{
	struct fresh *f = ctx;
	struct xr_value *value = NULL;

	cr_assert_eq(xr_future_value(sum, &value, NULL), XR_OK);
	xr_future_set(f->future, pair_of(first_of(value) + f->z));
	xr_value_unref(value);
	xr_future_unref(f->future);
	free(f);
}

/* The same, and a future of our own. */
static enum xr_status
add_by_fresh(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *sum = begin_add(args), *fresh = xr_future_new(NULL);
	struct fresh *f = malloc(sizeof(*f));

	(void)ctx;
	*f = (struct fresh){ xr_future_ref(fresh), (float)int_at(args, 2) };
	cr_assert_eq(xr_future_on_done(sum, set_fresh, f), XR_OK);
	xr_future_unref(sum);
	return xr_reply_future(call, fresh);
}

static enum xr_status
add_by_inner(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply_future(call, begin_add(args));
}

static enum xr_status
fail_first(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	return XR_E_RANGE;
}

static enum xr_status answered_with;

static enum xr_status
answer_plain(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	answered_with = xr_reply(call, xr_value_new_text("plain", 5));
	return XR_OK;
}

static enum xr_status
answer_nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	return XR_OK;
}

/* @ctx: how the future is when it is answered with. */
enum how { FAILED, DONE };

static enum xr_status
answer_ended(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *f = xr_future_new(NULL);

	(void)args;
	if ((enum how)(intptr_t)ctx == FAILED)
		xr_future_fail_with(f, XR_E_NODEV, "on its way");
	else
		xr_future_set(f, xr_value_new_i64(11));
	return xr_reply_future(call, f);
}

/* --- deferred -------------------------------------------------------------- */

#define KEPT_MAX 256
static struct xr_call *kept[KEPT_MAX];
static _Atomic unsigned kept_begun, kept_count;

static enum xr_status
keep(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_call *token = xr_call_defer(call);

	(void)args;
	(void)ctx;
	/* Two threads may keep at a time. */
	kept[atomic_fetch_add(&kept_begun, 1)] = token;
	atomic_fetch_add(&kept_count, 1);
	return XR_OK;
}

static void
await_kept(unsigned count)
{
	while (atomic_load(&kept_count) < count)
		sched_yield();
}

static enum xr_status
give(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(xr_value_at(args, 0)));
}

static enum xr_status
give_bytes(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

static enum xr_status
keep_bytes(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	return keep(call, NULL, ctx);
}

/* --- many parts ------------------------------------------------------------ */

struct fan {
	struct xr_future *future;
	pthread_mutex_t lock;
	int64_t sum;
	int left;
};

static void
one_part(struct xr_future *part, void *ctx)
{
	struct fan *fan = ctx;
	struct xr_value *value = NULL;
	bool last;

	cr_assert_eq(xr_future_value(part, &value, NULL), XR_OK);
	pthread_mutex_lock(&fan->lock);
	fan->sum += int_of(value);
	last = --fan->left == 0;
	pthread_mutex_unlock(&fan->lock);
	if (!last)
		return;
	xr_future_set(fan->future, xr_value_new_i64(fan->sum));
	xr_future_unref(fan->future);
	free(fan);
}

static enum xr_status
fan_out(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *all = xr_future_new(NULL), *part;
	struct fan *fan = calloc(1, sizeof(*fan));

	(void)args;
	(void)ctx;
	fan->future = xr_future_ref(all);
	fan->left = 20;
	pthread_mutex_init(&fan->lock, NULL);
	for (int i = 0; i < 20; i++) {
		part = begin("give", INTS(i));
		cr_assert_eq(xr_future_on_done(part, one_part, fan), XR_OK);
		xr_future_unref(part);
	}
	return xr_reply_future(call, all);
}

/* Another one that is marked as this one is. */
static enum xr_status
nest(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t depth = int_at(args, 0);

	(void)ctx;
	return xr_reply_future(call,
		depth == 0 ? begin("give", INTS(99)) :
			     begin("nest", INTS(depth - 1)));
}

static int is_short = 1;

static const struct xr_func functions[] = {
	FUNC("add.to", "ti", add_to, 0),
	FUNC("by.then", "tii", add_by_then, XR_FN_ASYNC),
	{ .size = sizeof(struct xr_func),
		.name = "by.short.then",
		.schema = "tii",
		.flags = XR_FN_ASYNC,
		.fn = add_by_then,
		.ctx = &is_short },
	FUNC("by.fresh", "tii", add_by_fresh, XR_FN_ASYNC),
	FUNC("by.inner", "ti", add_by_inner, XR_FN_ASYNC),
	FUNC("fail.first", NULL, fail_first, XR_FN_ASYNC),
	FUNC("plain", NULL, answer_plain, XR_FN_ASYNC),
	FUNC("nothing", NULL, answer_nothing, XR_FN_ASYNC),
	FUNC("unmarked", NULL, answer_ended, 0),
	{ .size = sizeof(struct xr_func),
		.name = "failed",
		.flags = XR_FN_ASYNC,
		.fn = answer_ended,
		.ctx = (void *)(intptr_t)FAILED },
	{ .size = sizeof(struct xr_func),
		.name = "done",
		.flags = XR_FN_ASYNC,
		.fn = answer_ended,
		.ctx = (void *)(intptr_t)DONE },
	FUNC("keep", NULL, keep, 0),
	FUNC("keep.short", NULL, keep, XR_FN_SHORT),
	FUNC("keep.marked", NULL, keep, XR_FN_ASYNC),
	FUNC("give", "?", give, 0),
	FUNC("fan", NULL, fan_out, XR_FN_ASYNC),
	FUNC("nest", "i", nest, XR_FN_ASYNC),
	{ .size = sizeof(struct xr_func), .name = "bytes", .raw = give_bytes },
	{ .size = sizeof(struct xr_func),
		.name = "keep.bytes",
		.raw = keep_bytes },
};

static void
begin_with(uint32_t threads)
{
	offer(functions, sizeof(functions) / sizeof(functions[0]));
	join(threads);
}

/* --- a future as the answer ------------------------------------------------ */

static void
expect_pair(const char *func, bool waits, int64_t z, float both)
{
	const int64_t ints[] = { 1, z };
	struct xr_value *args = tensor_and_ints(1, 2, ints), *value = NULL;
	struct xr_error err = { 0 };

	if (waits)
		cr_assert_eq(ask(func, args, &value, &err), XR_OK, "%s",
			err.text);
	else
		cr_assert_eq(end_of(begin(func, args), &value, &err), XR_OK,
			"%s", err.text);
	cr_expect_eq(first_of(value), both);
	xr_value_unref(value);
}

Test(call_late, AC_A1_waiting_for_what_a_callback_makes)
{
	begin_with(0);
	expect_pair("by.then", true, 1, 3);
	expect_pair("by.then", true, 2, 4);
	expect_pair("by.short.then", true, 2, 4);
	leave();
}

Test(call_late, AC_A3_a_future_of_what_a_callback_makes)
{
	begin_with(0);
	expect_pair("by.then", false, 1, 3);
	expect_pair("by.then", false, 2, 4);
	leave();
}

Test(call_late, AC_A2_waiting_for_a_future_that_is_set_later)
{
	begin_with(0);
	expect_pair("by.fresh", true, 1, 3);
	expect_pair("by.fresh", true, 2, 4);
	leave();
}

Test(call_late, AC_A4_a_future_of_one_that_is_set_later)
{
	begin_with(0);
	expect_pair("by.fresh", false, 1, 3);
	expect_pair("by.fresh", false, 2, 4);
	leave();
}

Test(call_late, AC_A21_the_inner_calls_own_future_is_the_answer)
{
	struct xr_value *value = NULL;

	begin_with(1);
	cr_assert_eq(ask("by.inner", tensor_and_ints(1, 1, (int64_t[]){ 1 }),
			     &value, NULL),
		XR_OK);
	cr_expect_eq(first_of(value), 2);
	xr_value_unref(value);
	leave();
}

Test(call_late, AC_A8_a_function_that_fails_before_it_has_a_future)
{
	struct xr_error err = { 0 };

	begin_with(0);
	cr_expect_eq(ask("fail.first", NULL, NULL, &err), XR_E_REMOTE);
	cr_expect(strstr(err.text, "XR_E_RANGE"), "%s", err.text);
	leave();
}

Test(call_late, AC_A9_what_is_no_future_is_named)
{
	struct xr_error err = { 0 };

	begin_with(0);
	cr_expect_eq(ask("plain", NULL, NULL, &err), XR_E_REMOTE);
	cr_expect(strstr(err.text, "must answer with a future") &&
			strstr(err.text, "text"),
		"%s", err.text);
	cr_expect_eq(ask("nothing", NULL, NULL, &err), XR_E_REMOTE);
	cr_expect(strstr(err.text, "nil"), "%s", err.text);
	leave();
	cr_expect_eq(answered_with, XR_E_INVAL);
}

Test(call_late, AC_A9_a_function_without_the_mark_may_not_answer_with_one)
{
	struct xr_error err = { 0 };

	begin_with(0);
	cr_expect_eq(ask("unmarked", NULL, NULL, &err), XR_E_REMOTE);
	cr_expect(strstr(err.text, "a future"), "%s", err.text);
	leave();
}

Test(call_late, AC_A10_a_future_that_ends_with_an_error)
{
	struct xr_error err = { 0 };

	begin_with(0);
	cr_expect_eq(ask("failed", NULL, NULL, &err), XR_E_REMOTE);
	cr_expect(strstr(err.text, "failed on self (0)") &&
			strstr(err.text, "on its way"),
		"%s", err.text);
	leave();
}

Test(call_late, AC_A11_a_future_that_had_ended_before)
{
	struct xr_value *value = NULL;

	begin_with(0);
	cr_assert_eq(ask("done", NULL, &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 11);
	leave();
}

Test(call_late, AC_A14_twenty_parts_and_the_last_ends_it)
{
	struct xr_value *value = NULL;

	begin_with(0);
	cr_assert_eq(ask("fan", NULL, &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 190);
	leave();
}

Test(call_late, AC_A15_marked_ones_nest_on_one_thread)
{
	struct xr_value *value = NULL;

	begin_with(1);
	cr_assert_eq(ask("nest", INTS(20), &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 99);
	leave();
}

/* --- methods --------------------------------------------------------------- */

static enum xr_status
add_static(struct xr_call *call, void *self, struct xr_value *args, void *ctx)
{
	cr_expect_null(self);
	return add_by_then(call, args, ctx);
}

/* Of an object: its z is what is added last. */
static enum xr_status
add_bound(struct xr_call *call, void *self, struct xr_value *args, void *ctx)
{
	const int64_t z[] = { int_at(args, 1), *(int64_t *)self };
	struct xr_value *all =
		tensor_and_ints(first_of(xr_value_at(args, 0)), 2, z);
	enum xr_status status = add_by_then(call, all, ctx);

	xr_value_unref(all);
	return status;
}

static const struct xr_method methods[] = {
	{ .size = sizeof(struct xr_method),
		.name = "static",
		.schema = "tii",
		.flags = XR_FN_ASYNC,
		.is_static = true,
		.fn = add_static },
	{ .size = sizeof(struct xr_method),
		.name = "bound",
		.schema = "ti",
		.flags = XR_FN_ASYNC,
		.fn = add_bound },
};

/* [4, 4], however it is called. */
static void
expect_fours(struct xr_rref *rref, const char *method, struct xr_value *args)
{
	const struct xr_rref_call call = { .size = sizeof(call),
		.rref = rref,
		.method = method,
		.args = args,
		.timeout = XR_SECONDS(60) };
	struct xr_value *value[3] = { NULL };
	struct xr_future *future = NULL;
	struct xr_rref *there = NULL;
	struct xr_error err = { 0 };

	cr_expect_eq(xr_rref_call_sync(&call, &value[0], &err), XR_OK, "%s",
		err.text);
	cr_assert_eq(xr_rref_call_async(&call, &future, &err), XR_OK);
	cr_expect_eq(end_of(future, &value[1], &err), XR_OK, "%s", err.text);
	cr_assert_eq(xr_rref_call_remote(&call, &there, &err), XR_OK);
	cr_expect_eq(xr_rref_fetch(there, XR_SECONDS(60), &value[2], &err),
		XR_OK, "%s", err.text);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(first_of(value[i]), 4);
		xr_value_unref(value[i]);
	}
	xr_rref_unref(there);
	xr_value_unref(args);
}

Test(call_late, AC_A22_methods_with_and_without_an_object)
{
	const struct xr_type type = {
		.size = sizeof(type),
		.name = "adder",
		.methods = methods,
		.method_count = 2,
	};
	struct xr_rref *rref = NULL;
	struct xr_error err = { 0 };
	int64_t z = 2;

	begin_with(2);
	cr_assert_eq(xr_type_register(&type, NULL), XR_OK);
	cr_assert_eq(xr_rref_from_value(xr_value_new_opaque("adder", &z), &rref,
			     &err),
		XR_OK, "%s", err.text);
	expect_fours(rref, "static",
		tensor_and_ints(1, 2, (int64_t[]){ 1, 2 }));
	expect_fours(rref, "bound", tensor_and_ints(1, 1, (int64_t[]){ 1 }));
	xr_rref_unref(rref);
	leave();
}

/* --- deferred -------------------------------------------------------------- */

Test(call_late, AC_A7_a_hundred_that_are_pending_need_no_thread)
{
	struct xr_future *future[100];
	struct xr_value *value = NULL;

	begin_with(1);
	for (int i = 0; i < 100; i++)
		future[i] = begin("keep.marked", NULL);
	await_kept(100);
	cr_assert_eq(ask("give", INTS(101), &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 101);
	for (int i = 0; i < 100; i++) {
		cr_expect_eq(xr_reply(kept[i], xr_value_new_i64(i)), XR_OK);
		xr_call_drop(kept[i]);
	}
	for (int i = 0; i < 100; i++)
		cr_expect_eq(end_of(future[i], NULL, NULL), XR_OK);
	leave();
}

Test(call_late, AC_A17_who_is_pending_is_counted)
{
	struct xr_future *future[10];

	begin_with(0);
	cr_expect_eq(serve_count(true), 0);
	for (int i = 0; i < 10; i++)
		future[i] =
			begin(i % 2 == 0 ? "keep.marked" : "keep.short", NULL);
	await_kept(10);
	while (serve_count(true) != 10)
		sched_yield();
	cr_expect_eq(serve_count(false), 10);
	cr_expect_eq(ask_active(), 10);
	for (unsigned i = 0; i < 10; i++) {
		cr_expect_eq(xr_reply(kept[i], xr_value_new_nil()), XR_OK);
		cr_expect_eq(serve_count(true), 9 - i);
		xr_call_drop(kept[i]);
	}
	for (int i = 0; i < 10; i++)
		cr_expect_eq(end_of(future[i], NULL, NULL), XR_OK);
	while (ask_active() != 0)
		sched_yield();
	cr_expect_eq(serve_count(false), 0);
	leave();
}

Test(call_late, AC_A12_a_call_that_is_dropped_is_answered_for)
{
	const char *const funcs[] = { "keep", "keep.short", "keep.marked" };
	struct xr_future *future;
	struct xr_error err = { 0 };

	begin_with(0);
	for (unsigned i = 0; i < 3; i++) {
		future = begin_within(funcs[i], NULL, XR_TIMEOUT_NEVER);
		await_kept(i + 1);
		cr_expect_not(xr_future_done(future));
		xr_call_drop(kept[i]);
		cr_expect_eq(end_of(future, NULL, &err), XR_E_CANCELLED);
		cr_expect(strstr(err.text, "dropped"), "%s", err.text);
	}
	leave();
}

Test(call_late, AC_A13_a_second_answer_is_refused)
{
	struct xr_value *value = NULL, *error;
	struct xr_failure f = { .size = sizeof(f), .status = XR_E_RANGE };
	struct xr_future *future;

	begin_with(0);
	future = begin("keep", NULL);
	await_kept(1);
	cr_expect_eq(xr_reply(kept[0], xr_value_new_i64(1)), XR_OK);
	cr_expect_eq(xr_reply(kept[0], xr_value_new_i64(2)), XR_E_STATE);
	cr_expect_eq(xr_reply_bytes(kept[0], "x", 1), XR_E_STATE);
	cr_expect_eq(xr_reply_fail(kept[0], XR_E_RANGE, "no"), XR_E_STATE);
	error = xr_value_new_error(&f);
	cr_expect_eq(xr_reply_error(kept[0], error), XR_E_STATE);
	xr_call_drop(kept[0]);
	cr_assert_eq(end_of(future, &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 1);
	leave();
}

static void *
answer_too(void *call)
{
	return xr_reply(call, xr_value_new_nil()) == XR_OK ? call : NULL;
}

Test(call_late, of_many_answers_at_once_one_counts)
{
	struct xr_future *future;
	pthread_t thread[4];
	void *won;
	int wins;

	begin_with(0);
	for (unsigned i = 0; i < 100; i++) {
		future = begin(i % 2 == 0 ? "keep" : "keep.short", NULL);
		await_kept(i + 1);
		wins = 0;
		for (int t = 0; t < 4; t++)
			pthread_create(&thread[t], NULL, answer_too, kept[i]);
		for (int t = 0; t < 4; t++) {
			pthread_join(thread[t], &won);
			wins += won != NULL;
		}
		cr_expect_eq(wins, 1);
		xr_call_drop(kept[i]);
		cr_expect_eq(end_of(future, NULL, NULL), XR_OK);
	}
	leave();
}

static struct xr_future *
begin_raw(const char *func, const void *data, size_t len)
{
	struct xr_raw_call call = { .size = sizeof(call),
		.data = data,
		.len = len,
		.timeout = XR_TIMEOUT_DEFAULT };
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };

	cr_assert_eq(xr_peer_find("self", 0, &call.to, NULL), XR_OK);
	cr_assert_eq(xr_method_find(func, &call.method, NULL), XR_OK);
	cr_assert_eq(xr_call_async(&call, &future, &err), XR_OK, "%s",
		err.text);
	return future;
}

Test(call_late, bytes_are_answered_with_bytes)
{
	struct xr_value *value = NULL;
	struct xr_future *future;
	struct xr_error err = { 0 };

	begin_with(0);
	cr_assert_eq(end_of(begin_raw("bytes", "abc", 3), &value, NULL), XR_OK);
	cr_expect_eq(memcmp(xr_value_data(value, NULL), "abc", 3), 0);
	xr_value_unref(value);
	cr_expect_eq(end_of(begin_raw("give", "abc", 3), NULL, &err),
		XR_E_SCHEMA);
	cr_expect_eq(ask("bytes", NULL, NULL, &err), XR_E_SCHEMA);
	future = begin_raw("keep.bytes", NULL, 0);
	await_kept(1);
	cr_expect_eq(xr_reply(kept[0], xr_value_new_i64(5)), XR_E_ENCODE,
		"a number is not bytes");
	xr_call_drop(kept[0]);
	cr_expect_eq(end_of(future, NULL, &err), XR_E_ENCODE);
	leave();
}

/* --- shutting down --------------------------------------------------------- */

Test(call_late, AC_F11_what_is_pending_ends_with_the_agent)
{
	struct xr_future *future[50];
	struct xr_error err = { 0 };

	begin_with(0);
	for (int i = 0; i < 50; i++)
		future[i] = begin_within(i % 2 == 0 ? "keep" : "keep.short",
			NULL, 0);
	await_kept(50);
	cr_expect_eq(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, XR_SECONDS(60),
			     NULL),
		XR_OK);
	for (int i = 0; i < 50; i++) {
		cr_expect(xr_future_done(future[i]));
		cr_expect_eq(end_of(future[i], NULL, &err), XR_E_CLOSED);
	}
	/* Those who would have answered find nobody, and do no harm. */
	for (int i = 0; i < 50; i++) {
		cr_expect(xr_call_cancelled(kept[i]));
		cr_expect_str_eq(xr_call_caller(kept[i], NULL), "");
		if (i % 3 == 0)
			cr_expect_eq(xr_reply(kept[i], xr_value_new_nil()),
				XR_OK);
		if (i % 3 == 1)
			cr_expect_eq(xr_reply_fail(kept[i], XR_E_RANGE, "no"),
				XR_OK);
	}
	/* Nor beside the next agent. */
	join(0);
	for (int i = 0; i < 50; i++)
		xr_call_drop(kept[i]);
	cr_expect_eq(serve_count(false), 0);
	leave();
}

static _Atomic bool has_left;

static void *
leave_gracefully(void *unused)
{
	(void)unused;
	leave();
	atomic_store(&has_left, true);
	return NULL;
}

Test(call_late, AC_A18_a_graceful_shutdown_waits_for_who_is_pending)
{
	struct xr_value *value = NULL;
	struct xr_future *future;
	pthread_t thread;

	begin_with(0);
	future = begin("keep.marked", NULL);
	await_kept(1);
	cr_assert_eq(pthread_create(&thread, NULL, leave_gracefully, NULL), 0);
	/* Time in which it would be over, did it not wait. */
	for (int64_t end = clock_now() + XR_SECONDS(0.1); clock_now() < end;)
		sched_yield();
	cr_expect_not(has_left);
	cr_expect_eq(xr_reply(kept[0], xr_value_new_i64(3)), XR_OK);
	xr_call_drop(kept[0]);
	pthread_join(thread, NULL);
	cr_assert_eq(xr_future_value(future, &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 3);
	xr_future_unref(future);
}

static void
count(struct xr_future *future, void *n)
{
	(void)future;
	*(int *)n += 1;
}

Test(call_late, callbacks_that_come_late_end_a_call_once)
{
	struct xr_future *future;
	int n = 0;

	begin_with(0);
	future = begin("give", INTS(1));
	cr_assert_eq(xr_future_wait(future, XR_SECONDS(60), NULL, NULL), XR_OK);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(xr_future_on_done(future, count, &n), XR_OK);
	cr_expect_eq(n, 3);
	while (ask_active() != 0)
		sched_yield();
	xr_future_unref(future);
	leave();
}

static void
shut_down_here(struct xr_future *future, void *status)
{
	(void)future;
	*(enum xr_status *)status = xr_rpc_shutdown(0, XR_SECONDS(1), NULL);
}

Test(call_late, a_short_callback_may_not_wait)
{
	enum xr_status status = XR_OK;
	struct xr_future *future;

	begin_with(1);
	future = begin("keep", NULL);
	await_kept(1);
	cr_assert_eq(xr_future_on_done(future, shut_down_here, &status), XR_OK);
	xr_reply(kept[0], xr_value_new_nil());
	xr_call_drop(kept[0]);
	cr_expect_eq(end_of(future, NULL, NULL), XR_OK);
	leave();
	cr_expect_eq(status, XR_E_STATE);
}
