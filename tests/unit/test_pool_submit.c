/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_submit.c - calls of pools that wait for their results: what they refuse, and how
 * long they wait. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <xrun/func.h>
#include <xrun/pool.h>

#include "tests/unit/forked.h"

TestSuite(pool_submit, .timeout = 60);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NEGATIVE "timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT"
#define FULL     "1 tasks are waiting or in hand, and that is all there may be"

static struct xr_error error;

/* The status, and the text of one that is not XR_OK. */
static void
expect(size_t row, enum xr_status status, enum xr_status want, const char *text)
{
	if (status != want || (want != XR_OK && strcmp(error.text, text) != 0))
		forked_note(__LINE__, "row %zu: %s: %s", row,
			xr_status_name(status), error.text);
}

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

static _Atomic bool may_end;

static enum xr_status
hold(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	while (!atomic_load(&may_end))
		sched_yield();
	return xr_reply(call, xr_value_new_nil());
}

static void
known(const char *name, xr_func_fn *fn)
{
	const struct xr_func f = { .size = sizeof(f), .name = name, .fn = fn };

	NEED(xr_fn_register(&f, NULL) == XR_OK);
}

enum sync_way {
	SYNC_APPLY,
	SYNC_MAP,
	SYNC_STARMAP,
	SYNC_WAYS,
};

static enum xr_status
submit_and_wait(struct xr_pool *pool, enum sync_way way,
	const struct xr_pool_task *t, int64_t timeout)
{
	enum xr_status status = XR_E_SYS;
	struct xr_value *value = NULL;

	memset(&error, 0, sizeof(error));
	switch (way) {
	case SYNC_APPLY:
		status = xr_pool_apply(pool, t, timeout, &value, &error);
		break;
	case SYNC_MAP:
		status = xr_pool_map(pool, t, timeout, &value, &error);
		break;
	case SYNC_STARMAP:
		status = xr_pool_starmap(pool, t, timeout, &value, &error);
		break;
	case SYNC_WAYS:
		break;
	}
	EXPECT_EQ(value != NULL, status == XR_OK);
	xr_value_unref(value);
	return status;
}

static struct xr_pool *
pool_of_one_task(void)
{
	const struct xr_pool_opts o = { .size = sizeof(o),
		.kind = XR_POOL_THREADS,
		.workers = 1,
		.tasks = 1 };
	struct xr_pool *pool;

	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
	return pool;
}

/* The time of the task is looked at although there is one to wait. */
FORKED_TEST(pool_submit, a_call_that_waits_checks_its_time_and_that_of_the_task)
{
	static const int64_t times[] = { 0, 1, XR_SECONDS(3600),
		XR_TIMEOUT_DEFAULT, XR_TIMEOUT_NEVER };
	struct xr_pool *pool = pool_of_one_task();
	struct xr_value *list = xr_value_new_list();
	const struct xr_pool_task good = { .size = sizeof(good),
		.name = "nothing",
		.args = list };
	struct xr_pool_task bad = good;

	known("nothing", nothing);
	NEED(xr_value_append(list, xr_value_new_list()) == XR_OK);
	bad.timeout = -2;
	for (enum sync_way way = SYNC_APPLY; way < SYNC_WAYS; way++) {
		expect(way, submit_and_wait(pool, way, &good, -2), XR_E_INVAL,
			NEGATIVE);
		for (size_t i = 0; i < COUNT(times); i++) {
			expect(i, submit_and_wait(pool, way, &bad, times[i]),
				XR_E_INVAL, NEGATIVE);
			expect(i, submit_and_wait(pool, way, NULL, times[i]),
				XR_E_INVAL, "the task is NULL");
			expect(i, submit_and_wait(NULL, way, &good, times[i]),
				XR_E_INVAL, "no pool");
		}
	}
	for (enum sync_way way = SYNC_APPLY; way < SYNC_WAYS; way++)
		for (size_t i = 2; i < COUNT(times); i++)
			expect(i, submit_and_wait(pool, way, &good, times[i]),
				XR_OK, NULL);
	xr_pool_free(pool);
	xr_value_unref(list);
}

/* A task that has a time of its own waits for room as long as that. */
FORKED_TEST(pool_submit, who_waits_for_a_call_waits_for_room_no_longer)
{
	const struct {
		int64_t own, timeout;
	} row[] = { { 0, 0 }, { 0, 1 }, { XR_TIMEOUT_DEFAULT, 0 },
		{ XR_TIMEOUT_DEFAULT, 1 }, { 1, XR_SECONDS(3600) },
		{ 1, XR_TIMEOUT_NEVER } };
	struct xr_pool *pool = pool_of_one_task();
	struct xr_pool_task t = { .size = sizeof(t), .name = "hold" };
	struct xr_future *held = NULL;

	known("hold", hold);
	NEED(xr_pool_apply_async(pool, &t, &held, NULL) == XR_OK);
	for (size_t i = 0; i < COUNT(row); i++) {
		t.timeout = row[i].own;
		expect(i, submit_and_wait(pool, SYNC_APPLY, &t, row[i].timeout),
			XR_E_TIMEOUT, FULL);
	}
	atomic_store(&may_end, true);
	EXPECT_EQ(xr_future_wait(held, XR_TIMEOUT_NEVER, NULL, NULL), XR_OK);
	xr_future_unref(held);
	xr_pool_free(pool);
}
