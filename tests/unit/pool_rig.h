/* SPDX-License-Identifier: Apache-2.0 */
/* pool_rig.h - a pool of threads, and functions that call, as tests have them. */
#ifndef TESTS_UNIT_POOL_RIG_H
#define TESTS_UNIT_POOL_RIG_H

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <xrun/func.h>
#include <xrun/pool.h>

#include "base/clock.h"
#include "tests/unit/forked.h"

#define SOON XR_SECONDS(20)

static struct xr_pool *pool;
static struct xr_error error;
static _Atomic uint32_t wrong, ran;

static inline void
begin(uint32_t workers, uint32_t tasks)
{
	const struct xr_pool_opts opts = {
		.size = sizeof(opts),
		.kind = XR_POOL_THREADS,
		.workers = workers,
		.tasks = tasks,
	};

	NEED(xr_pool_new(&opts, &pool, NULL) == XR_OK);
}

/* Nothing of it is left: no task in the gang, and none that is not spare. */
static inline void
end(void)
{
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, SOON, &error), XR_OK);
	xr_pool_free(pool);
	EXPECT_EQ(wrong, 0);
}

static inline void
known(const char *name, xr_func_fn *fn)
{
	const struct xr_func f = {
		.size = sizeof(f),
		.name = name,
		.fn = fn,
	};

	NEED(xr_fn_register(&f, NULL) == XR_OK);
}

static inline void
check(bool is)
{
	if (!is)
		atomic_fetch_add(&wrong, 1);
}

static inline struct xr_value *
numbers(int64_t first, int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = first; i < first + count; i++)
		check(xr_value_append(list, xr_value_new_i64(i)) == XR_OK);
	return list;
}

static inline int64_t
number(const struct xr_value *v)
{
	int64_t n = -1;

	check(xr_value_get_i64(v, &n) == XR_OK);
	return n;
}

static inline struct xr_future *
post(const char *name, int64_t n)
{
	struct xr_value *args = numbers(n, 1);
	struct xr_pool_task t = { .size = sizeof(t),
		.name = name,
		.args = args };
	struct xr_future *f = NULL;

	if (xr_pool_apply_async(pool, &t, &f, NULL) != XR_OK) {
		atomic_fetch_add(&wrong, 1);
		f = xr_future_new(NULL); /* that fails */
		xr_future_fail_with(f, XR_E_CLOSED, "closed");
	}
	xr_value_unref(args);
	return f;
}

static inline enum xr_status
get(struct xr_future *f, int64_t timeout, int64_t *n)
{
	struct xr_value *v = NULL;
	enum xr_status status = xr_future_wait(f, timeout, &v, &error);

	if (status == XR_OK && n != NULL)
		*n = number(v);
	xr_value_unref(v);
	xr_future_unref(f);
	return status;
}

static inline enum xr_status
twice(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&ran, 1);
	return xr_reply(c, xr_value_new_i64(2 * number(xr_value_at(args, 0))));
}

/* --- in turn -------------------------------------------------------------------------- */

static _Atomic uint32_t stage;

static inline void
await(uint32_t what)
{
	int64_t from = clock_now();

	while (atomic_load(&stage) < what && clock_now() - from < SOON)
		sched_yield();
	check(atomic_load(&stage) >= what);
}

static inline void
get_all(struct xr_future **f, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		check(get(f[i], XR_TIMEOUT_NEVER, NULL) == XR_OK);
}

#endif /* TESTS_UNIT_POOL_RIG_H */
