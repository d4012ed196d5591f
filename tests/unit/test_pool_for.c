/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_for.c - loops over numbers, by pools of threads. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>
#include <xrun/queue.h>

#include "tests/unit/forked.h"

TestSuite(pool_for, .timeout = 60);

#define COUNT   50000
#define WORKERS 3

static struct xr_pool *pool;
static _Atomic uint8_t seen[COUNT];
static _Atomic uint32_t sitting[WORKERS], wrong, parts;
static struct xr_error error;

static struct xr_pool *
pool_of(enum xr_pool_kind kind)
{
	const struct xr_pool_opts opts = {
		.size = sizeof(opts),
		.kind = kind,
		.workers = WORKERS,
	};
	struct xr_pool *p = NULL;

	NEED(xr_pool_new(&opts, &p, NULL) == XR_OK);
	return p;
}

static void
run_part(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	if (ctx != seen || (worker >= WORKERS && worker != XR_POOL_WORKERS_MAX))
		atomic_fetch_add(&wrong, 1);
	else if (worker < WORKERS && atomic_fetch_add(&sitting[worker], 1) > 0)
		atomic_fetch_add(&wrong, 1);
	for (uint64_t i = begin; i < end; i++)
		atomic_fetch_add(&seen[i], 1);
	atomic_fetch_add(&parts, 1);
	if (worker < WORKERS)
		atomic_fetch_sub(&sitting[worker], 1);
}

static struct xr_pool_loop
loop_of(uint64_t count, uint64_t grain)
{
	return (struct xr_pool_loop){
		.size = sizeof(struct xr_pool_loop),
		.fn = run_part,
		.ctx = (void *)seen,
		.count = count,
		.grain = grain,
	};
}

static void
each_was_seen(uint8_t times)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < COUNT; i++)
		others += seen[i] != times;
	EXPECT_EQ(others, 0);
	EXPECT_EQ(wrong, 0);
}

FORKED_TEST(pool_for, each_number_is_had_once)
{
	struct xr_pool_loop loop = loop_of(COUNT, 0);

	pool = pool_of(XR_POOL_THREADS);
	EXPECT_EQ(xr_pool_for(pool, &loop, NULL), XR_OK);
	each_was_seen(1);
	loop.grain = COUNT;
	parts = 0;
	EXPECT_EQ(xr_pool_for(pool, &loop, NULL), XR_OK);
	EXPECT_EQ(parts, 1);
	each_was_seen(2);
	loop.count = 0;
	EXPECT_EQ(xr_pool_for(pool, &loop, NULL), XR_OK);
	each_was_seen(2);
	xr_pool_free(pool);
}

/* In a function of the pool, in the place of its worker. */
static enum xr_status
nested(struct xr_call *call, struct xr_value *args, void *ctx)
{
	const struct xr_pool_loop loop = loop_of(COUNT, 100);

	(void)args;
	(void)ctx;
	if (xr_pool_for(pool, &loop, NULL) != XR_OK)
		atomic_fetch_add(&wrong, 1);
	return xr_reply(call, xr_value_new_nil());
}

FORKED_TEST(pool_for, functions_of_the_pool_loop_too)
{
	const struct xr_func func = {
		.size = sizeof(func),
		.name = "nested",
		.fn = nested,
	};
	struct xr_pool_task task = { .size = sizeof(task), .name = "nested" };
	struct xr_future *future[10];

	EXPECT_EQ(xr_fn_register(&func, NULL), XR_OK);
	pool = pool_of(XR_POOL_THREADS);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(xr_pool_apply_async(pool, &task, &future[i], NULL),
			XR_OK);
	EXPECT_EQ(xr_future_wait_all(future, 10, XR_SECONDS(20), NULL, NULL),
		XR_OK);
	for (int i = 0; i < 10; i++)
		xr_future_unref(future[i]);
	each_was_seen(10);
	xr_pool_free(pool);
}

static pthread_t caller;
static _Atomic bool ended;

/* Ours ends the pool; others wait until it has, and those behind are not run. */
static void
end_it(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	(void)begin;
	(void)end;
	(void)worker;
	(void)ctx;
	atomic_fetch_add(&parts, 1);
	while (!pthread_equal(pthread_self(), caller) && !atomic_load(&ended))
		sched_yield();
	if (!pthread_equal(pthread_self(), caller))
		return;
	xr_pool_terminate(pool, 0, NULL);
	atomic_store(&ended, true);
}

FORKED_TEST(pool_for, a_pool_that_is_terminated_stops_its_loops)
{
	struct xr_pool_loop loop = loop_of(1000, 1);

	pool = pool_of(XR_POOL_THREADS);
	caller = pthread_self();
	loop.fn = end_it;
	EXPECT_EQ(xr_pool_for(pool, &loop, &error), XR_E_CANCELLED);
	EXPECT(parts <= WORKERS);
	EXPECT_EQ(xr_pool_for(pool, &loop, &error), XR_E_STATE);
	xr_pool_free(pool);
	pool = pool_of(XR_POOL_THREADS);
	xr_pool_close(pool);
	loop = loop_of(COUNT, 1);
	EXPECT_EQ(xr_pool_for(pool, &loop, &error), XR_E_STATE);
	each_was_seen(0);
	xr_pool_free(pool);
}

FORKED_TEST(pool_for, what_is_wrong_is_told)
{
	struct xr_pool_loop loop = loop_of(COUNT, 1);

	pool = pool_of(XR_POOL_THREADS);
	loop.size--;
	EXPECT_EQ(xr_pool_for(pool, &loop, NULL), XR_E_INVAL);
	loop = loop_of(COUNT, 1);
	loop.fn = NULL;
	EXPECT_EQ(xr_pool_for(pool, &loop, &error), XR_E_INVAL);
	EXPECT(strstr(error.text, "xr_pool_loop") != NULL);
	xr_pool_free(pool);
	each_was_seen(0);
}

Test(pool_for, what_is_nothing_is_told)
{
	const struct xr_proc_opts proc = { .size = sizeof(proc) };
	const struct xr_pool_loop loop = loop_of(1, 1);
	struct xr_thread *thread = NULL;
	struct xr_queue *queue = NULL;
	struct xr_proc *started = NULL;
	size_t count = 1;

	cr_expect_eq(xr_pool_for(NULL, &loop, &error), XR_E_INVAL);
	pool = pool_of(XR_POOL_THREADS);
	cr_expect_eq(xr_pool_for(pool, NULL, &error), XR_E_INVAL);
	xr_pool_free(pool);
	xr_pool_close(NULL);
	cr_expect_eq(xr_proc_start(NULL, &started, &error), XR_E_INVAL);
	cr_expect_eq(xr_proc_start(&proc, &started, &error), XR_E_INVAL);
	cr_expect_eq(xr_thread_start(NULL, &thread, &error), XR_E_INVAL);
	cr_expect_eq(xr_queue_put(queue, NULL, 0, &error), XR_E_INVAL);
	cr_expect_eq(xr_queue_put_many(queue, NULL, &count, 0, &error),
		XR_E_INVAL);
	cr_expect_eq(count, 0);
}
