/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_timeout_pool.c - timeouts of pools. */
#include <stdatomic.h>

#include <xrun/event.h>
#include <xrun/func.h>
#include <xrun/pool.h>

#include "tests/unit/timeout_rig.h"

TestSuite(timeout_pool, .timeout = 200);

/* --- pools of threads ------------------------------------------------------------------- */

/* The function of the pool waits for this event. */
static struct xr_event *pool_event;
static struct xr_event *pool_begun; /* the function runs */

static enum xr_status
wait_event(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	xr_event_set(pool_begun);
	return xr_wait_any(&pool_event, 1, XR_TIMEOUT_NEVER, NULL, NULL);
}

/* The hook that takes results, and its first status that is not XR_E_TIMEOUT. Where the
 * pool's own thread only looks, with a timeout of 0, it leaves a result to the thread that
 * awaits one with the timeout that is tested. It may not wait itself: it does nothing else
 * meanwhile. */
static _Atomic int64_t hook_timeout;
static _Atomic enum xr_status hook_status;
static _Atomic bool hook_is_awaited;

static enum xr_status
hook_get(struct xr_pool *pool, int64_t timeout, struct xr_pool_item **item,
	void *ctx, struct xr_error *error)
{
	enum xr_status status, late = XR_E_TIMEOUT;

	(void)ctx;
	if (timeout == 0)
		return hook_is_awaited ?
			XR_E_TIMEOUT :
			xr_pool_outqueue_get(pool, 0, item, error);
	status = xr_pool_outqueue_get(pool,
		hook_timeout != 0 ? hook_timeout : timeout, item, error);
	if (status != XR_E_TIMEOUT)
		atomic_compare_exchange_strong(&hook_status, &late, status);
	return status;
}

static const struct xr_pool_ops pool_ops = { .size = sizeof(pool_ops),
	.outqueue_get = hook_get };

static struct xr_pool *
one_worker(int64_t start_window, enum xr_status *status)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "wait_event",
		.fn = wait_event };
	const struct xr_pool_opts opts = { .size = sizeof(opts),
		.kind = XR_POOL_THREADS,
		.workers = 1,
		.tasks = 1,
		.start_window = start_window,
		.ops = &pool_ops };
	struct xr_pool *pool = NULL;

	xr_fn_register(&func, NULL);
	*status = xr_pool_new(&opts, &pool, &err);
	pool_event = xr_event_new();
	pool_begun = xr_event_new();
	return pool;
}

static void
free_pool(struct xr_pool *pool)
{
	xr_pool_close(pool);
	if (pool != NULL)
		xr_pool_join(pool, XR_SECONDS(50), NULL);
	xr_pool_free(pool);
	xr_event_unref(pool_event);
	xr_event_unref(pool_begun);
}

static struct xr_pool_task pool_task = { .size = sizeof(pool_task),
	.name = "wait_event" };

static struct xr_value *
list_of(struct xr_value *item)
{
	return xr_value_new_list_of(&item, 1);
}

static enum xr_status
pool_apply(enum state state, int64_t timeout)
{
	enum xr_status status;
	struct xr_pool *pool = one_worker(0, &status);
	struct helper h;

	helper_begin(&h, state, set_event, pool_event);
	status = xr_pool_apply(pool, &pool_task, timeout, NULL, &err);
	helper_end(&h, state);
	free_pool(pool);
	/* No result comes without a wait. */
	return state == READY && timeout == 0 && status == XR_E_TIMEOUT ?
		XR_OK :
		status;
}

static enum xr_status
with_map(enum state state, int64_t timeout, bool is_star)
{
	struct xr_pool_task task = pool_task;
	enum xr_status status;
	struct xr_pool *pool = one_worker(0, &status);
	struct helper h;

	task.args = list_of(is_star ? xr_value_new_list() : xr_value_new_nil());
	helper_begin(&h, state, set_event, pool_event);
	status = is_star ? xr_pool_starmap(pool, &task, timeout, NULL, &err) :
			   xr_pool_map(pool, &task, timeout, NULL, &err);
	helper_end(&h, state);
	xr_value_unref(task.args);
	free_pool(pool);
	return state == READY && timeout == 0 && status == XR_E_TIMEOUT ?
		XR_OK :
		status;
}

static enum xr_status
pool_map(enum state state, int64_t timeout)
{
	return with_map(state, timeout, false);
}

static enum xr_status
pool_starmap(enum state state, int64_t timeout)
{
	return with_map(state, timeout, true);
}

/* Two tasks, of which the pool has room for one. */
static enum xr_status
pool_task_timeout(enum state state, int64_t timeout)
{
	struct xr_pool_task task = pool_task;
	struct xr_future *first = NULL, *second = NULL;
	enum xr_status status;
	struct xr_pool *pool = one_worker(0, &status);
	struct helper h;

	cr_assert_eq(xr_pool_apply_async(pool, &task, &first, &err), XR_OK);
	helper_begin(&h, state, set_event, pool_event);
	task.timeout = timeout;
	status = xr_pool_apply_async(pool, &task, &second, &err);
	helper_end(&h, state);
	xr_future_unref(first);
	xr_future_unref(second);
	free_pool(pool);
	return status;
}

static enum xr_status
pool_start_window(enum state state, int64_t timeout)
{
	enum xr_status status;
	struct xr_pool *pool = one_worker(timeout, &status);

	(void)state;
	free_pool(pool);
	return status;
}

/* A pool that executes one task, and @fn with it. */
static enum xr_status
with_task(enum state state, int64_t timeout, bool closes,
	enum xr_status (*fn)(struct xr_pool *, int64_t))
{
	struct xr_future *future = NULL;
	enum xr_status status;
	struct xr_pool *pool = one_worker(0, &status);
	struct helper h;

	cr_assert_eq(xr_pool_apply_async(pool, &pool_task, &future, &err),
		XR_OK);
	xr_wait_any(&pool_begun, 1, XR_SECONDS(50), NULL, NULL);
	if (closes)
		xr_pool_close(pool);
	helper_begin(&h, state, set_event, pool_event);
	if (state == READY)
		xr_future_wait(future, XR_SECONDS(50), NULL, NULL);
	if (state == READY && closes)
		xr_pool_join(pool, XR_SECONDS(50), NULL);
	status = fn(pool, timeout);
	helper_end(&h, state);
	xr_future_unref(future);
	free_pool(pool);
	return status;
}

static enum xr_status
join(struct xr_pool *pool, int64_t timeout)
{
	return xr_pool_join(pool, timeout, &err);
}

static enum xr_status
pool_join(enum state state, int64_t timeout)
{
	return with_task(state, timeout, true, join);
}

static enum xr_status
join_workers(struct xr_pool *pool, int64_t timeout)
{
	return xr_pool_join_workers(pool, timeout, &err);
}

static enum xr_status
pool_join_workers(enum state state, int64_t timeout)
{
	return with_task(state, timeout, true, join_workers);
}

static enum xr_status
terminate(struct xr_pool *pool, int64_t grace)
{
	return xr_pool_terminate(pool, grace, &err);
}

static enum xr_status
pool_terminate(enum state state, int64_t timeout)
{
	return with_task(state, timeout, true, terminate);
}

/* It asks the workers to end and does not wait, so only the checks are seen. */
static enum xr_status
terminate_workers(struct xr_pool *pool, int64_t grace)
{
	return xr_pool_terminate_workers(pool, grace, &err);
}

static enum xr_status
pool_terminate_workers(enum state state, int64_t timeout)
{
	enum xr_status status =
		with_task(state, timeout, true, terminate_workers);

	return status == XR_OK && state == ABSENT ? XR_E_TIMEOUT : status;
}

static enum xr_status
pool_iter_next(enum state state, int64_t timeout)
{
	struct xr_pool_task task = pool_task;
	struct xr_pool_iter *iter = NULL;
	struct xr_value *v = NULL;
	enum xr_status status;
	struct xr_pool *pool = one_worker(0, &status);
	struct helper h;

	task.args = list_of(xr_value_new_nil());
	cr_assert_eq(xr_pool_imap(pool, &task, &iter, &err), XR_OK);
	helper_begin(&h, state, set_event, pool_event);
	do
		status = xr_pool_iter_next(iter, timeout, &v, &err);
	while (state == READY && timeout == 0 && status == XR_E_TIMEOUT);
	helper_end(&h, state);
	xr_value_unref(v);
	xr_value_unref(task.args);
	xr_pool_iter_free(iter);
	free_pool(pool);
	return status;
}

static enum xr_status
pool_outqueue_get(enum state state, int64_t timeout)
{
	struct xr_future *future = NULL;
	enum xr_status status;
	struct xr_pool *pool;
	struct helper h;

	hook_timeout = timeout;
	hook_status = XR_E_TIMEOUT;
	hook_is_awaited = state != ABSENT;
	pool = one_worker(0, &status);
	cr_assert_eq(xr_pool_apply_async(pool, &pool_task, &future, &err),
		XR_OK);
	helper_begin(&h, state, set_event, pool_event);
	if (state == ABSENT) {
		struct xr_pool_item *item = NULL;

		hook_status = xr_pool_outqueue_get(pool, timeout, &item, &err);
	} else {
		xr_future_wait(future, XR_SECONDS(20), NULL, NULL);
		hook_is_awaited = false;
	}
	status = hook_status;
	hook_timeout = 0;
	helper_end(&h, state);
	xr_future_unref(future);
	free_pool(pool);
	return status;
}

static const struct row arguments[] = {
	{ "xr_pool_apply", pool_apply, XR_E_TIMEOUT, false },
	{ "xr_pool_map", pool_map, XR_E_TIMEOUT, false },
	{ "xr_pool_starmap", pool_starmap, XR_E_TIMEOUT, false },
	{ "xr_pool_iter_next", pool_iter_next, XR_E_TIMEOUT, false },
	{ "xr_pool_join", pool_join, XR_E_TIMEOUT, false },
	{ "xr_pool_join_workers", pool_join_workers, XR_E_TIMEOUT, false },
	{ "xr_pool_terminate", pool_terminate, XR_E_TIMEOUT, false },
	{ "xr_pool_terminate_workers", pool_terminate_workers, XR_E_TIMEOUT,
		false },
	{ "xr_pool_outqueue_get", pool_outqueue_get, XR_E_TIMEOUT, false },
};

static const struct row fields[] = {
	{ "struct xr_pool_opts start_window", pool_start_window, XR_OK, false },
	{ "struct xr_pool_task", pool_task_timeout, XR_OK, false },
};

Test(timeout_pool, an_argument_of_0_does_not_wait)
{
	expect_arguments(arguments, ROWS(arguments));
}

Test(timeout_pool, a_field_of_0_selects_the_default)
{
	expect_fields(fields, ROWS(fields));
}
