/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_wait.c - pools of threads: functions that wait for tasks of their own pool. */
#include "tests/unit/pool_rig.h"

TestSuite(pool_wait, .timeout = 60);

/* --- calls ---------------------------------------------------------------------------- */

/* More of them than the pool has tasks. It waits for both at once, or for one after the other, the last one first. */
static enum xr_status
fib(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0)), a = 0, b = 0;
	struct xr_future *f[2];

	(void)ctx;
	if (n > 1) {
		f[0] = post("fib", n - 1);
		f[1] = post("fib", n - 2);
		if (n % 2 == 0)
			check(xr_future_wait_all(f, 2, XR_TIMEOUT_NEVER, NULL,
				      NULL) == XR_OK);
		check(get(f[1], XR_TIMEOUT_NEVER, &a) == XR_OK);
		check(get(f[0], XR_TIMEOUT_NEVER, &b) == XR_OK);
		n = a + b;
	}
	return xr_reply(c, xr_value_new_i64(n));
}

FORKED_TEST(pool_wait, functions_wait_for_calls_of_their_pool)
{
	struct xr_future *f[6];
	int64_t n = 0;

	known("fib", fib);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		begin(workers, 0);
		for (int i = 0; i < 6; i++)
			f[i] = post("fib", 15);
		for (int i = 0; i < 6; i++) {
			EXPECT_EQ(get(f[i], SOON, &n), XR_OK);
			EXPECT_EQ(n, 610);
		}
		end();
	}
}

/* Those that were done so are spare again, though the gang has them for longer. */
static enum xr_status
posts(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *f[50];
	int64_t n = 0;

	(void)args;
	(void)ctx;
	for (int i = 0; i < 50; i++)
		f[i] = post("twice", i);
	for (int i = 49; i >= 0; i--)
		check(get(f[i], XR_TIMEOUT_NEVER, &n) == XR_OK && n == 2 * i);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait, tasks_that_were_done_so_are_spare_again)
{
	known("twice", twice);
	known("posts", posts);
	for (uint32_t workers = 1; workers <= 2; workers++) {
		begin(workers, 64 * workers);
		ran = 0;
		for (int i = 0; i < 200; i++) {
			struct xr_future *f = post("posts", 0);

			if (workers == 2)
				EXPECT_EQ(get(post("posts", 0), SOON, NULL),
					XR_OK);
			EXPECT_EQ(get(f, SOON, NULL), XR_OK);
		}
		EXPECT_EQ(ran, 200 * 50 * workers);
		end();
	}
}

/* It does some, until nobody waits for room any more. */
static enum xr_status
does_some(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t from = clock_now();

	(void)args;
	(void)ctx;
	atomic_store(&stage, 1);
	await(2);
	while (atomic_load(&stage) < 3 && clock_now() - from < SOON)
		check(get(post("twice", 1), XR_TIMEOUT_NEVER, NULL) == XR_OK);
	check(atomic_load(&stage) == 3);
	return xr_reply(c, xr_value_new_nil());
}

/* It has done its own, and its seat has them yet, while it sleeps for the other one. */
static enum xr_status
leaves_some(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *other = post("does-some", 0), *f[49];

	(void)args;
	(void)ctx;
	await(1);
	for (int i = 0; i < 49; i++)
		f[i] = post("twice", i);
	get_all(f, 49);
	atomic_store(&stage, 2);
	check(get(other, XR_TIMEOUT_NEVER, NULL) == XR_OK);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait, one_worker_finds_the_tasks_that_another_has_done_so)
{
	struct xr_future *f[40], *first;

	known("twice", twice);
	known("does-some", does_some);
	known("leaves-some", leaves_some);
	begin(2, 64);
	first = post("leaves-some", 0);
	await(2);
	for (int i = 0; i < 40; i++)
		f[i] = post("twice", i);
	atomic_store(&stage, 3);
	EXPECT_EQ(get(first, SOON, NULL), XR_OK);
	get_all(f, 40);
	end();
}

static _Atomic uint32_t posted;

/* So does who is no worker, whether it waits before or after: of 64 one is the holder's, 60 are
 * those that it does, and with the fourth of others it waits, for good after 1 ms. */
static enum xr_status
holds_on(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *f[60];
	bool first = number(xr_value_at(args, 0)) != 0;

	(void)ctx;
	for (int i = 0; i < 60; i++)
		f[i] = post("twice", i);
	if (first) {
		int64_t until;

		atomic_store(&stage, 1);
		while (atomic_load(&posted) < 4)
			sched_yield();
		until = clock_now() + XR_SECONDS(0.005);
		while (clock_now() < until)
			sched_yield();
	}
	get_all(f, 60);
	if (!first)
		atomic_store(&stage, 1);
	await(2);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait, others_find_the_tasks_that_were_done_so)
{
	struct xr_future *f[40], *holder;

	known("twice", twice);
	known("holds-on", holds_on);
	begin(1, 64);
	for (int round = 0; round < 40; round++) {
		atomic_store(&stage, 0);
		atomic_store(&posted, 0);
		holder = post("holds-on", round % 2);
		await(1);
		for (int i = 0; i < 40; i++) {
			atomic_fetch_add(&posted, 1);
			f[i] = post("twice", i);
		}
		atomic_store(&stage, 2);
		EXPECT_EQ(get(holder, SOON, NULL), XR_OK);
		get_all(f, 40);
	}
	end();
}

/* With a time it waits for another worker. */
static enum xr_status
waits(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	check(get(post("twice", 1), XR_SECONDS(0.02), NULL) == XR_E_TIMEOUT);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait, a_timeout_is_kept)
{
	known("twice", twice);
	known("waits", waits);
	begin(1, 0);
	EXPECT_EQ(get(post("waits", 0), SOON, NULL), XR_OK);
	EXPECT_EQ(get(post("twice", 0), SOON, NULL), XR_OK);
	EXPECT_EQ(ran, 2);
	end();
}

/* --- maps ----------------------------------------------------------------------------- */

static _Atomic uint32_t told;

static enum xr_status
seen(struct xr_value *result, void *ctx)
{
	(void)result;
	(void)ctx;
	atomic_fetch_add(&told, 1);
	return XR_OK;
}

/* Far more tasks than the pool feeds at a time, one item each. */
static enum xr_status
maps(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0)), sum = 0;
	struct xr_value *items = numbers(0, n), *out = NULL;
	struct xr_pool_task t = { .size = sizeof(t),
		.flags = XR_POOL_CHUNK,
		.name = "twice",
		.args = items,
		.chunk = 1,
		.callback = n % 2 == 0 ? seen : NULL };
	struct xr_future *f = NULL;

	(void)ctx;
	if (xr_pool_map_async(pool, &t, &f, NULL) != XR_OK ||
		xr_future_wait(f, XR_TIMEOUT_NEVER, &out, NULL) != XR_OK) {
		xr_future_unref(f);
		xr_value_unref(items);
		atomic_fetch_add(&wrong, 1);
		return xr_reply_fail(c, XR_E_CANCELLED, "ended");
	}
	for (size_t i = 0; i < (size_t)n; i++)
		sum += number(xr_value_at(out, i));
	xr_future_unref(f);
	xr_value_unref(out);
	xr_value_unref(items);
	return xr_reply(c, xr_value_new_i64(sum));
}

FORKED_TEST(pool_wait, functions_wait_for_maps_of_their_pool)
{
	struct xr_future *f[8];
	int64_t n = 0;

	known("twice", twice);
	known("maps", maps);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		begin(workers, workers == 1 ? 2 : 0);
		told = 0;
		ran = 0;
		for (int i = 0; i < 8; i++)
			f[i] = post("maps", 400 + i);
		for (int i = 0; i < 8; i++) {
			EXPECT_EQ(get(f[i], SOON, &n), XR_OK);
			EXPECT_EQ(n, (400 + i) * (399 + i));
		}
		EXPECT_EQ(told, 4);
		EXPECT_EQ(ran, 8 * 400 + 28);
		end();
	}
}

/* In order, or as they come; each once. */
static enum xr_status
iterates(struct xr_call *c, struct xr_value *args, void *ctx)
{
	bool any = number(xr_value_at(args, 0)) != 0;
	struct xr_value *items = numbers(0, 300), *v = NULL;
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "twice",
		.args = items };
	struct xr_pool_iter *it = NULL;
	int64_t sum = 0, at = 0;

	(void)ctx;
	check((any ? xr_pool_imap_unordered : xr_pool_imap)(pool, &t, &it,
		      NULL) == XR_OK);
	while (xr_pool_iter_next(it, XR_TIMEOUT_NEVER, &v, NULL) == XR_OK) {
		check(any || number(v) == 2 * at);
		sum += number(v);
		at++;
		xr_value_unref(v);
	}
	check(at == 300);
	xr_pool_iter_free(it);
	xr_value_unref(items);
	return xr_reply(c, xr_value_new_i64(sum));
}

FORKED_TEST(pool_wait, functions_take_results_of_their_pool_one_by_one)
{
	struct xr_future *f[6];
	int64_t n = 0;

	known("twice", twice);
	known("iterates", iterates);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		begin(workers, 0);
		for (int i = 0; i < 6; i++)
			f[i] = post("iterates", i % 2);
		for (int i = 0; i < 6; i++) {
			EXPECT_EQ(get(f[i], SOON, &n), XR_OK);
			EXPECT_EQ(n, 300 * 299);
		}
		end();
	}
}

/* Each waits for what is done with the result of the one before it. */
static enum xr_status
in_turn(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0));

	(void)ctx;
	await((uint32_t)n);
	return xr_reply(c, xr_value_new_i64(n));
}

static enum xr_status
takes_in_turn(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_value *items = numbers(0, 100), *v = NULL;
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "in-turn",
		.args = items };
	struct xr_pool_iter *it = NULL;

	(void)args;
	(void)ctx;
	check(xr_pool_imap(pool, &t, &it, NULL) == XR_OK);
	for (uint32_t i = 0; i < 100; i++) {
		check(xr_pool_iter_next(it, XR_TIMEOUT_NEVER, &v, NULL) ==
			XR_OK);
		check(number(v) == i);
		xr_value_unref(v);
		atomic_store(&stage, i + 1);
	}
	xr_pool_iter_free(it);
	xr_value_unref(items);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait, who_takes_in_order_begins_no_other_than_the_next)
{
	known("in-turn", in_turn);
	known("takes-in-turn", takes_in_turn);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		begin(workers, 0);
		atomic_store(&stage, 0);
		EXPECT_EQ(get(post("takes-in-turn", 0), SOON, NULL), XR_OK);
		end();
	}
}

/* --- ending --------------------------------------------------------------------------- */

/* In the middle of it; the pool is to be gone, whoever has what. */
FORKED_TEST(pool_wait, a_pool_ends_with_functions_that_wait)
{
	struct xr_future *f[4];

	known("twice", twice);
	known("maps", maps);
	known("fib", fib);
	for (uint32_t i = 0; i < 200; i++) {
		begin(i % 3 + 1, 0);
		wrong = ran = 0;
		for (int k = 0; k < 4; k++)
			f[k] = post(k % 2 == 0 ? "maps" : "fib", 12);
		while (i % 4 > 0 && atomic_load(&ran) == 0)
			sched_yield();
		xr_pool_terminate(pool, 0, NULL);
		EXPECT_EQ(xr_pool_join(pool, SOON, NULL), XR_OK);
		for (int k = 0; k < 4; k++)
			get(f[k], SOON, NULL);
		xr_pool_free(pool);
	}
}
