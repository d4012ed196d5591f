/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_thread.c - pools of threads: tasks inside of tasks, and that end their
 * thread. */
#include <pthread.h>

#include "tests/unit/pool_rig.h"

TestSuite(pool_thread, .timeout = 60);

static _Atomic uint32_t begun;

static struct xr_pool *
pool_of(uint32_t workers, const char *initializer)
{
	const struct xr_pool_opts opts = {
		.size = sizeof(opts),
		.kind = XR_POOL_THREADS,
		.workers = workers,
		.initializer = initializer,
	};
	struct xr_pool *p = NULL;

	NEED(xr_pool_new(&opts, &p, NULL) == XR_OK);
	return p;
}

static int64_t
call(const char *name, int64_t n)
{
	int64_t result = -1;

	EXPECT_EQ(get(post(name, n), SOON, &result), XR_OK);
	return result;
}

/* --- tasks inside of tasks ------------------------------------------------ */

static int64_t
ask(const char *name, int64_t n)
{
	struct xr_value *args = numbers(n, 1), *v = NULL;
	struct xr_pool_task t = { .size = sizeof(t),
		.name = name,
		.args = args };
	int64_t result = -1;

	if (xr_pool_apply(pool, &t, XR_TIMEOUT_NEVER, &v, NULL) == XR_OK)
		result = number(v);
	xr_value_unref(v);
	xr_value_unref(args);
	return result;
}

static enum xr_status
fib(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0));

	(void)ctx;
	if (n > 1)
		n = ask("fib", n - 1) + ask("fib", n - 2);
	return xr_reply(c, xr_value_new_i64(n));
}

/* Of 0 .. n - 1. */
static enum xr_status
twice_but_77(struct xr_call *c, struct xr_value *args, void *ctx)
{
	if (number(xr_value_at(args, 0)) == 77)
		return xr_reply_fail(c, XR_E_RANGE, "77");
	return twice(c, args, ctx);
}

static enum xr_status
maps(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0)), sum = 0;
	struct xr_value *items = numbers(0, n), *out = NULL;
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "twice",
		.args = items };
	enum xr_status status =
		xr_pool_map(pool, &t, XR_TIMEOUT_NEVER, &out, &error);

	(void)ctx;
	if (status != XR_OK)
		return xr_reply_fail(c, status, error.text);
	for (size_t i = 0; i < (size_t)n; i++)
		sum += number(xr_value_at(out, i));
	xr_value_unref(out);
	xr_value_unref(items);
	return xr_reply(c, xr_value_new_i64(sum));
}

FORKED_TEST(pool_thread, functions_map_by_their_pool)
{
	struct xr_future *f[100];
	int64_t n;

	known("twice", twice_but_77);
	known("maps", maps);
	pool = pool_of(2, NULL);
	for (int i = 0; i < 100; i++)
		f[i] = post("maps", 70);
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(get(f[i], SOON, &n), XR_OK);
		EXPECT_EQ(n, 70 * 69);
	}
	EXPECT_EQ(get(post("maps", 80), SOON, NULL), XR_E_RANGE);
	EXPECT(strstr(error.text, "77") != NULL);
	xr_pool_free(pool);
}

/* All workers at a time, and none waits for another. */
FORKED_TEST(pool_thread, functions_call_functions_of_their_pool)
{
	struct xr_future *f[6];
	int64_t n;

	known("fib", fib);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		pool = pool_of(workers, NULL);
		for (int i = 0; i < 6; i++)
			f[i] = post("fib", 12);
		for (int i = 0; i < 6; i++) {
			EXPECT_EQ(get(f[i], SOON, &n), XR_OK);
			EXPECT_EQ(n, 144);
		}
		xr_pool_close(pool);
		EXPECT_EQ(xr_pool_join(pool, SOON, NULL), XR_OK);
		xr_pool_free(pool);
	}
	EXPECT_EQ(wrong, 0);
}

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

static enum xr_status
holds(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_fetch_add(&begun, 1);
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
	return xr_reply(c, xr_value_new_nil());
}

/* Each waits for two that were submitted before: workers take them in that order. */
static struct xr_future *made[300];

static enum xr_status
builds(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0));

	(void)ctx;
	if (n > 2 &&
		(xr_future_wait(made[n / 2], SOON, NULL, NULL) != XR_OK ||
			xr_future_wait(made[n - 1], SOON, NULL, NULL) != XR_OK))
		atomic_fetch_add(&wrong, 1);
	return xr_reply(c, xr_value_new_i64(n));
}

FORKED_TEST(pool_thread, functions_wait_for_what_was_submitted_before)
{
	known("builds", builds);
	for (uint32_t workers = 1; workers <= 4; workers++) {
		pool = pool_of(workers, NULL);
		for (int i = 0; i < 300; i++)
			made[i] = post("builds", i);
		EXPECT_EQ(xr_future_wait_all(made, 300, SOON, NULL, &error),
			XR_OK);
		for (int i = 0; i < 300; i++)
			xr_future_unref(made[i]);
		xr_pool_free(pool);
	}
	EXPECT_EQ(wrong, 0);
}

/* --- tasks that end their thread ------------------------------------------ */

static enum xr_status
ends(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)ctx;
	if (number(xr_value_at(args, 0)) % 3 == 1)
		pthread_exit(NULL);
	return xr_reply(c, xr_value_ref(xr_value_at(args, 0)));
}

static bool
is_told(void)
{
	return strstr(error.text, "has ended its thread") != NULL;
}

/* Each of so many workers is there: they all hold something at a time. */
static void
all_work(uint32_t workers)
{
	struct xr_future *f[4];
	int64_t from = clock_now();

	begun = 0;
	pthread_mutex_lock(&door);
	for (uint32_t i = 0; i < workers; i++)
		f[i] = post("holds", 0);
	while (atomic_load(&begun) < workers && clock_now() - from < SOON)
		sched_yield();
	EXPECT_EQ(begun, workers);
	pthread_mutex_unlock(&door);
	for (uint32_t i = 0; i < workers; i++)
		EXPECT_EQ(get(f[i], SOON, NULL), XR_OK);
}

FORKED_TEST(pool_thread, a_function_that_ends_its_thread_has_failed)
{
	known("ends", ends);
	known("holds", holds);
	for (uint32_t workers = 1; workers <= 3; workers++) {
		pool = pool_of(workers, NULL);
		for (int i = 0; i < 50; i++) {
			EXPECT_EQ(get(post("ends", 1), SOON, NULL), XR_E_STATE);
			EXPECT(is_told());
			EXPECT_EQ(call("ends", 3), 3);
		}
		all_work(workers);
		xr_pool_close(pool);
		EXPECT_EQ(xr_pool_join(pool, SOON, NULL), XR_OK);
		xr_pool_free(pool);
	}
	/* While it ends. */
	for (int i = 0; i < 100; i++) {
		struct xr_future *f;

		pool = pool_of(2, NULL);
		f = post("ends", 1);
		if (i % 2 == 0)
			xr_pool_close(pool);
		xr_pool_free(pool);
		EXPECT(get(f, SOON, NULL) != XR_OK);
	}
}

/* Of a chunk the others are not run; of a map all has failed. */
FORKED_TEST(pool_thread, a_chunk_ends_with_its_thread)
{
	struct xr_value *items = numbers(0, 30), *v;
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "ends",
		.args = items,
		.flags = XR_POOL_CHUNK,
		.chunk = 3 };
	struct xr_pool_iter *iter = NULL;

	known("ends", ends);
	known("holds", holds);
	pool = pool_of(2, NULL);
	EXPECT_EQ(xr_pool_map(pool, &t, SOON, NULL, &error), XR_E_STATE);
	EXPECT(is_told());
	EXPECT_EQ(xr_pool_imap(pool, &t, &iter, NULL), XR_OK);
	for (int64_t i = 0; i < 30; i++) {
		enum xr_status status =
			xr_pool_iter_next(iter, SOON, &v, &error);

		EXPECT_EQ(status, i % 3 == 0 ? XR_OK : XR_E_STATE);
		EXPECT(i % 3 == 0 ? number(v) == i : is_told());
		xr_value_unref(v);
	}
	xr_pool_iter_free(iter);
	xr_value_unref(items);
	all_work(2);
	xr_pool_free(pool);
	EXPECT_EQ(wrong, 0);
}

/* The one that calls it, on the same thread, ends with it. */
static enum xr_status
calls_the_end(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = number(xr_value_at(args, 0));

	(void)ctx;
	return xr_reply(c, xr_value_new_i64(ask("ends", n)));
}

FORKED_TEST(pool_thread, a_task_ends_with_the_one_that_it_calls)
{
	struct xr_future *f[9];
	int64_t n;

	known("ends", ends);
	known("holds", holds);
	known("calls_the_end", calls_the_end);
	for (uint32_t workers = 1; workers <= 2; workers++) {
		pool = pool_of(workers, NULL);
		for (int i = 0; i < 9; i++)
			f[i] = post("calls_the_end", i);
		for (int i = 0; i < 9; i++) {
			enum xr_status status = get(f[i], SOON, &n);

			EXPECT_EQ(status, i % 3 == 1 ? XR_E_STATE : XR_OK);
			EXPECT(status == XR_OK ? n == i : is_told());
		}
		all_work(workers);
		xr_pool_free(pool);
	}
	EXPECT_EQ(wrong, 0);
}

static void
part_ends(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	(void)end;
	(void)ctx;
	atomic_fetch_add(&begun, 1);
	if (worker == 1 || begin == 99)
		pthread_exit(NULL);
	while (atomic_load(&begun) < 2)
		sched_yield();
}

FORKED_TEST(pool_thread, a_part_of_a_loop_that_ends_its_thread_is_told)
{
	const struct xr_pool_loop loop = { .size = sizeof(loop),
		.fn = part_ends,
		.count = 50,
		.grain = 1 };

	known("holds", holds);
	pool = pool_of(2, NULL);
	EXPECT_EQ(xr_pool_for(pool, &loop, &error), XR_E_STATE);
	EXPECT(is_told());
	all_work(2);
	xr_pool_free(pool);
}

static void
last_ends(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	(void)begin;
	(void)end;
	(void)worker;
	if (ctx != NULL)
		pthread_exit(NULL);
}

/* A thread of the program ends in what it runs itself; its seat is free again. */
static void *
ends_in(void *how)
{
	struct xr_value *args = numbers(1, 1);
	const struct xr_pool_task t = { .size = sizeof(t),
		.name = "ends",
		.args = args };
	const struct xr_pool_loop loop = { .size = sizeof(loop),
		.fn = last_ends,
		.count = 1,
		.ctx = &begun };

	if (how != NULL)
		xr_pool_for(pool, &loop, NULL);
	else
		xr_pool_apply(pool, &t, XR_TIMEOUT_NEVER, NULL, &error);
	xr_value_unref(args);
	return pool;
}

FORKED_TEST(pool_thread, a_thread_of_the_program_leaves_its_seat)
{
	known("ends", ends);
	known("holds", holds);
	pool = pool_of(2, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		NEED(pthread_create(&thread, NULL, ends_in,
			     i % 2 == 0 ? NULL : pool) == 0);
		pthread_join(thread, NULL);
	}
	all_work(2);
	xr_pool_free(pool);
}

/* --- what workers begin with ---------------------------------------------- */

static __thread int64_t secret;

static enum xr_status
learns(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	secret = 42;
	return xr_reply(c, xr_value_new_nil());
}

static enum xr_status
tells(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(c, xr_value_new_i64(secret));
}

/* Each runs where the initializer has: on no thread of the program, and on those that take
 * the place of others, too. */
FORKED_TEST(pool_thread, functions_run_where_the_initializer_did)
{
	struct xr_value *args = numbers(0, 1), *v = NULL;
	const struct xr_pool_task t = { .size = sizeof(t),
		.name = "tells",
		.args = args };

	known("learns", learns);
	known("tells", tells);
	known("ends", ends);
	pool = pool_of(2, "learns");
	for (int i = 0; i < 40; i++) {
		EXPECT_EQ(xr_pool_apply(pool, &t, XR_TIMEOUT_NEVER, &v, &error),
			XR_OK);
		EXPECT_EQ(number(v), 42);
		xr_value_unref(v);
		if (i % 4 == 3)
			EXPECT_EQ(get(post("ends", 1), SOON, NULL), XR_E_STATE);
	}
	xr_pool_free(pool);
	xr_value_unref(args);
}

static enum xr_status
never_begins(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)c;
	(void)args;
	(void)ctx;
	pthread_exit(NULL);
}

FORKED_TEST(pool_thread, an_initializer_that_ends_its_thread_ends_the_pool)
{
	known("never_begins", never_begins);
	known("holds", holds);
	for (int i = 0; i < 20; i++) {
		struct xr_value *args = numbers(1, 1);
		const struct xr_pool_task t = { .size = sizeof(t),
			.name = "holds",
			.args = args };

		pool = pool_of(2, "never_begins");
		EXPECT_EQ(xr_pool_apply(pool, &t, SOON, NULL, &error),
			XR_E_STATE);
		EXPECT(strstr(error.text, "initializer") != NULL);
		xr_pool_free(pool);
		xr_value_unref(args);
	}
}
