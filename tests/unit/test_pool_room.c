/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_room.c - pools of threads with more to do than they have tasks. */
#include "worker/pool/pool.h"

#include "tests/unit/pool_rig.h"

TestSuite(pool_room, .timeout = 60);

#define TASKS 4
#define CALLS 100

static enum xr_status
holds(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	await(1);
	return xr_reply(c, xr_value_new_nil());
}

static struct xr_future *
post_map(const char *name, int64_t count)
{
	struct xr_value *items = numbers(0, count);
	struct xr_pool_task t = { .size = sizeof(t),
		.name = name,
		.args = items };
	struct xr_future *f = NULL;

	check(xr_pool_map_async(pool, &t, &f, NULL) == XR_OK);
	xr_value_unref(items);
	return f;
}

/* All tasks are calls' when it is submitted. */
FORKED_TEST(pool_room, a_map_begins_behind_calls)
{
	struct xr_future *f[TASKS], *map;

	known("twice", twice);
	known("holds", holds);
	for (uint32_t workers = 1; workers <= 2; workers++) {
		begin(workers, TASKS);
		atomic_store(&stage, 0);
		for (int i = 0; i < TASKS; i++)
			f[i] = post("holds", i);
		map = post_map("twice", 10);
		atomic_store(&stage, 1);
		for (int i = 0; i < TASKS; i++)
			EXPECT_EQ(get(f[i], SOON, NULL), XR_OK);
		EXPECT_EQ(get(map, SOON, NULL), XR_OK);
		end();
	}
}

static enum xr_status
holds_counted(struct xr_call *c, struct xr_value *args, void *ctx)
{
	atomic_fetch_add(&ran, 1);
	return holds(c, args, ctx);
}

/* --- how many are waited for ------------------------------------------------------------- */

#define MOST_TASKS 12

static _Atomic bool is_noting;
static uint32_t needs[2], waits;

bool __real_take_await_in(struct xr_pool *p, struct room_list *list,
	struct room *r, int64_t deadline);
bool __wrap_take_await_in(struct xr_pool *p, struct room_list *list,
	struct room *r, int64_t deadline);

/* The calls end as soon as one spare task is enough. */
bool
__wrap_take_await_in(struct xr_pool *p, struct room_list *list, struct room *r,
	int64_t deadline)
{
	if (atomic_load(&is_noting)) {
		check(list == &p->rooms && !r->puts);
		if (waits < 2)
			needs[waits] = r->need;
		waits++;
		check(r->need > 1 || deadline == INT64_MAX);
		atomic_store(&stage, r->need == 1);
	}
	return __real_take_await_in(p, list, r, deadline);
}

/* At first for a fourth of all, if that is more than one; and then for one. */
FORKED_TEST(pool_room, who_has_no_room_waits_for_a_fourth_of_all_at_first)
{
	const struct {
		uint32_t tasks, needs[2], waits;
	} row[] = {
		{ 4, { 1 }, 1 },
		{ 7, { 1 }, 1 },
		{ 8, { 2, 1 }, 2 },
		{ 11, { 2, 1 }, 2 },
		{ 12, { 3, 1 }, 2 },
	};
	struct xr_future *f[MOST_TASKS + 1];

	known("holds", holds);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(1, row[i].tasks);
		atomic_store(&stage, 0);
		for (uint32_t k = 0; k < row[i].tasks; k++)
			f[k] = post("holds", k);
		waits = 0;
		atomic_store(&is_noting, true);
		f[row[i].tasks] = post("holds", 0);
		atomic_store(&is_noting, false);
		EXPECT_EQ(waits, row[i].waits);
		for (uint32_t k = 0; k < waits && k < 2; k++)
			EXPECT_EQ(needs[k], row[i].needs[k]);
		get_all(f, row[i].tasks + 1);
		end();
	}
}

FORKED_TEST(pool_room, an_iterator_that_is_freed_cancels_the_rest_of_its_items)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "holds-counted",
		.flags = XR_POOL_CHUNK,
		.chunk = 1 };
	struct xr_pool_iter *iter = NULL;
	int64_t from = clock_now();

	known("holds-counted", holds_counted);
	begin(1, TASKS);
	t.args = numbers(0, CALLS);
	EXPECT_EQ(xr_pool_imap(pool, &t, &iter, NULL), XR_OK);
	while (atomic_load(&ran) == 0 && clock_now() - from < SOON)
		sched_yield();
	xr_pool_iter_free(iter);
	atomic_store(&stage, 1);
	xr_value_unref(t.args);
	end();
	EXPECT_EQ(ran, 1);
}

/* --- of functions of the pool ------------------------------------------------------------ */

static _Atomic uint32_t told;

static enum xr_status
hear(struct xr_value *result, void *ctx)
{
	(void)result;
	(void)ctx;
	atomic_fetch_add(&told, 1);
	return XR_OK;
}

static struct xr_future *
post_told(const char *name, int64_t n)
{
	struct xr_value *args = numbers(n, 1);
	struct xr_pool_task t = { .size = sizeof(t),
		.name = name,
		.args = args,
		.callback = hear };
	struct xr_future *f = NULL;

	check(xr_pool_apply_async(pool, &t, &f, NULL) == XR_OK);
	xr_value_unref(args);
	return f;
}

/* It submits far more than there may be; a few times with callbacks. */
static enum xr_status
fans_out(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t depth = number(xr_value_at(args, 0)), n = 0;
	struct xr_future *f[CALLS];

	(void)ctx;
	for (int i = 0; i < CALLS; i++)
		f[i] = i % 10 == 3               ? post_told("twice", i) :
			depth > 0 && i % 50 == 7 ? post("fans-out", depth - 1) :
						   post("twice", i);
	for (int i = 0; i < CALLS; i++) {
		check(get(f[i], XR_TIMEOUT_NEVER, &n) == XR_OK);
		check(n == ((depth > 0 && i % 50 == 7) ? 0 : 2 * i));
	}
	return xr_reply(c, xr_value_new_i64(0));
}

FORKED_TEST(pool_room, functions_submit_more_than_there_are_tasks)
{
	struct xr_future *f[3];

	known("twice", twice);
	known("fans-out", fans_out);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		begin(workers, TASKS);
		ran = told = 0;
		for (int i = 0; i < 3; i++)
			f[i] = post("fans-out", 2);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(get(f[i], SOON, NULL), XR_OK);
		EXPECT_EQ(told, 3 * 7 * CALLS / 10);
		EXPECT_EQ(ran, 3 * (7 * CALLS - 6));
		end();
	}
}

/* Nobody waits for them, and the pool is closed meanwhile. */
static enum xr_status
leaves(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	for (int i = 0; i < CALLS; i++)
		xr_future_unref(post("twice", i));
	xr_pool_close(pool);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_room, what_is_kept_runs_after_its_submitter)
{
	known("twice", twice);
	known("leaves", leaves);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		begin(workers, TASKS);
		ran = 0;
		EXPECT_EQ(get(post("leaves", 0), SOON, NULL), XR_OK);
		end();
		EXPECT_EQ(ran, CALLS);
	}
}

/* Kept calls in the order of their submission, and before the rest of a map. */
static _Atomic int64_t last;

static enum xr_status
in_order(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0));

	(void)ctx;
	check(n == atomic_load(&last) + 1);
	atomic_store(&last, n);
	return xr_reply(c, xr_value_new_nil());
}

static enum xr_status
counts(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	check(atomic_load(&last) == CALLS - 1 || atomic_fetch_add(&ran, 1) < 8);
	return xr_reply(c, xr_value_new_nil());
}

static struct xr_future *behind;

static enum xr_status
orders(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_store(&last, -1);
	behind = post_map("counts", 1000);
	for (int i = 0; i < CALLS; i++)
		xr_future_unref(post("in-order", i));
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_room, kept_calls_run_in_order_and_before_maps)
{
	known("in-order", in_order);
	known("counts", counts);
	known("orders", orders);
	begin(1, TASKS);
	EXPECT_EQ(get(post("orders", 0), SOON, NULL), XR_OK);
	EXPECT_EQ(get(behind, SOON, NULL), XR_OK);
	EXPECT_EQ(last, CALLS - 1);
	end();
}

/* Every third of those that are kept is cancelled; and then, if @args says so, the pool ends. */
static enum xr_status
cancels(struct xr_call *c, struct xr_value *args, void *ctx)
{
	bool ends = number(xr_value_at(args, 0)) != 0;
	struct xr_future *f[CALLS];

	(void)ctx;
	for (int i = 0; i < CALLS; i++)
		f[i] = post("twice", i);
	for (int i = 10; i < CALLS; i += 3)
		check(xr_future_cancel(f[i]) == XR_OK);
	if (ends)
		xr_pool_terminate(pool, 0, NULL);
	for (int i = 0; i < CALLS; i++) {
		bool gone = ends || (i >= 10 && i % 3 == 1);

		check(get(f[i], XR_TIMEOUT_NEVER, NULL) ==
			(gone ? XR_E_CANCELLED : XR_OK));
	}
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_room, what_is_kept_is_cancelled)
{
	known("twice", twice);
	known("cancels", cancels);
	for (int ends = 0; ends <= 1; ends++) {
		begin(1, TASKS);
		ran = 0;
		EXPECT_EQ(get(post("cancels", ends), SOON, NULL),
			ends ? XR_E_CANCELLED : XR_OK);
		end();
		EXPECT_EQ(ran, ends ? 0 : CALLS - 30);
	}
}
