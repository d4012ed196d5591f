/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_submit.c - calls of pools that wait: what they refuse, and how long they wait. */
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

/* --- the rest ------------------------------------------------------------------------- */

FORKED_TEST(pool_submit, an_iterator_says_that_the_next_is_not_there_yet)
{
	struct xr_pool *pool = pool_of_one_task();
	struct xr_value *list = xr_value_new_list(), *value = list;
	struct xr_pool_task t = { .size = sizeof(t), .name = "hold" };
	struct xr_pool_iter *iter = NULL;

	known("hold", hold);
	NEED(xr_value_append(list, xr_value_new_nil()) == XR_OK);
	t.args = list;
	NEED(xr_pool_imap(pool, &t, &iter, &error) == XR_OK);
	expect(0, xr_pool_iter_next(iter, -2, &value, &error), XR_E_INVAL,
		NEGATIVE);
	EXPECT(value == NULL);
	for (int64_t timeout = 0; timeout <= 1; timeout++)
		expect(1, xr_pool_iter_next(iter, timeout, NULL, &error),
			XR_E_TIMEOUT, "the next one is not there yet");
	atomic_store(&may_end, true);
	EXPECT_EQ(xr_pool_iter_next(iter, XR_TIMEOUT_DEFAULT, NULL, &error),
		XR_OK);
	xr_pool_iter_free(iter);
	xr_pool_free(pool);
	xr_value_unref(list);
}

FORKED_TEST(pool_submit, a_pool_is_joined_when_it_is_closed)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };
	struct xr_pool *pool = pool_of_one_task();
	struct xr_future *f = NULL;

	known("nothing", nothing);
	expect(0, xr_pool_join(pool, -2, &error), XR_E_INVAL, NEGATIVE);
	expect(1, xr_pool_terminate(pool, -2, &error), XR_E_INVAL, NEGATIVE);
	expect(2, xr_pool_join(pool, 0, &error), XR_E_STATE,
		"a pool is closed, or terminated, and then joined");
	EXPECT_EQ(xr_pool_state(pool), XR_POOL_RUNNING);
	EXPECT_EQ(xr_pool_apply(pool, &t, XR_TIMEOUT_NEVER, NULL, &error),
		XR_OK);
	xr_pool_close(pool);
	expect(3, xr_pool_apply_async(pool, &t, &f, &error), XR_E_STATE,
		"the pool was closed");
	expect(4, xr_pool_join(pool, -2, &error), XR_E_INVAL, NEGATIVE);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_DEFAULT, &error), XR_OK);
	EXPECT_EQ(xr_pool_terminate(pool, XR_TIMEOUT_DEFAULT, &error), XR_OK);
	expect(5, xr_pool_apply_async(pool, &t, &f, &error), XR_E_STATE,
		"the pool was terminated");
	EXPECT(f == NULL);
	xr_pool_free(pool);
}

static void
count(uint64_t from, uint64_t to, uint32_t worker, void *ctx)
{
	_Atomic uint64_t *sum = ctx;

	(void)worker;
	atomic_fetch_add(sum, to - from);
}

#define LOOP "struct xr_pool_loop: its size, and a function"

FORKED_TEST(pool_submit, a_loop_has_its_size_and_a_function)
{
	_Atomic uint64_t sum = 0;
	const struct xr_pool_loop good = { .size = sizeof(good),
		.count = 10,
		.fn = count,
		.ctx = &sum };
	struct xr_pool_loop loop = good;
	struct xr_pool *pool = pool_of_one_task();

	loop.size--;
	expect(0, xr_pool_for(pool, &loop, &error), XR_E_INVAL, LOOP);
	loop = good;
	loop.fn = NULL;
	expect(1, xr_pool_for(pool, &loop, &error), XR_E_INVAL, LOOP);
	expect(2, xr_pool_for(pool, NULL, &error), XR_E_INVAL, LOOP);
	expect(3, xr_pool_for(NULL, &good, &error), XR_E_INVAL, "no pool");
	EXPECT_EQ(sum, 0);
	loop = good;
	loop.size++;
	EXPECT_EQ(xr_pool_for(pool, &loop, &error), XR_OK);
	EXPECT_EQ(sum, 10);
	xr_pool_close(pool);
	expect(4, xr_pool_for(pool, &good, &error), XR_E_STATE,
		"the pool was closed");
	EXPECT_EQ(sum, 10);
	xr_pool_free(pool);
}

/* --- what it asks for ------------------------------------------------------------------- */

static _Atomic unsigned begun, asked;
static int64_t asked_for[4];

void __real_take_begun(struct xr_pool *pool);
void __wrap_take_begun(struct xr_pool *pool);
bool __real_future_deadline(int64_t timeout, int64_t *deadline);
bool __wrap_future_deadline(int64_t timeout, int64_t *deadline);

void
__wrap_take_begun(struct xr_pool *pool)
{
	atomic_fetch_add(&begun, 1);
	__real_take_begun(pool);
}

bool
__wrap_future_deadline(int64_t timeout, int64_t *deadline)
{
	unsigned i = atomic_fetch_add(&asked, 1);

	if (i < COUNT(asked_for))
		asked_for[i] = timeout;
	return __real_future_deadline(timeout, deadline);
}

#define LONG XR_SECONDS(3600)

/* Of both: for its result, and for room; 0: there is no end of that. */
FORKED_TEST(pool_submit, a_call_asks_for_its_time_and_that_of_its_room)
{
	const struct {
		int64_t own, timeout, room;
	} row[] = {
		{ 0, 0, 1 },
		{ XR_TIMEOUT_DEFAULT, 0, 1 },
		{ 0, LONG, LONG },
		{ XR_TIMEOUT_DEFAULT, LONG + 1, LONG + 1 },
		{ LONG + 2, LONG + 3, LONG + 2 },
		{ 0, XR_TIMEOUT_NEVER, 0 },
		{ LONG, XR_TIMEOUT_NEVER, LONG },
		{ XR_TIMEOUT_NEVER, LONG, XR_TIMEOUT_NEVER },
	};
	struct xr_pool *pool = pool_of_one_task();
	struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };

	known("nothing", nothing);
	for (size_t i = 0; i < COUNT(row); i++) {
		t.timeout = row[i].own;
		atomic_store(&asked, 0);
		submit_and_wait(pool, SYNC_APPLY, &t, row[i].timeout);
		EXPECT_EQ(asked, row[i].room == 0 ? 1 : 2);
		EXPECT_EQ(asked_for[0], row[i].timeout);
		if (row[i].room != 0)
			EXPECT_EQ(asked_for[1], row[i].room);
	}
	xr_pool_free(pool);
}

/* Who waits looks for results itself, for as long as it waits. */
FORKED_TEST(pool_submit, what_nobody_waits_for_is_looked_for)
{
	struct xr_pool *pool = pool_of_one_task();
	struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };
	struct xr_pool_iter *iter;
	struct xr_future *f;

	known("nothing", nothing);
	known("hold", hold);
	EXPECT_EQ(submit_and_wait(pool, SYNC_APPLY, &t, LONG), XR_OK);
	EXPECT_EQ(begun, 0);
	EXPECT_EQ(xr_pool_apply_async(pool, &t, &f, &error), XR_OK);
	EXPECT_EQ(begun, 1);
	EXPECT_EQ(xr_future_wait(f, LONG, NULL, &error), XR_OK);
	xr_future_unref(f);
	t.args = xr_value_new_list();
	EXPECT_EQ(xr_pool_imap(pool, &t, &iter, &error), XR_OK);
	EXPECT_EQ(begun, 2);
	xr_pool_iter_free(iter);
	xr_value_unref(t.args);
	t.args = NULL;
	t.name = "unknown";
	f = NULL;
	expect(0, xr_pool_apply_async(pool, &t, &f, &error), XR_E_NO_FUNCTION,
		"unknown is not registered, or takes bytes");
	EXPECT(f == NULL);
	EXPECT_EQ(begun, 2);
	t.name = "hold";
	EXPECT_EQ(submit_and_wait(pool, SYNC_APPLY, &t, 1), XR_E_TIMEOUT);
	EXPECT_EQ(begun, 3);
	atomic_store(&may_end, true);
	xr_pool_free(pool);
}

/* --- in a function of the pool ------------------------------------------------------------ */

static struct xr_pool *whose;
static _Atomic uint32_t wrong;

static void
check(bool is)
{
	if (!is)
		atomic_fetch_add(&wrong, 1);
}

static bool
is_refused(const struct xr_pool_task *t, enum xr_status want, const char *text)
{
	struct xr_error err = { 0 };
	struct xr_value *value = NULL;
	enum xr_status status =
		xr_pool_apply(whose, t, XR_TIMEOUT_NEVER, &value, &err);

	return status == want && strcmp(err.text, text) == 0 && value == NULL;
}

static enum xr_status
calls_what_is_wrong(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "unknown" };
	struct xr_value *value = NULL;

	(void)args;
	(void)ctx;
	check(is_refused(&t, XR_E_NO_FUNCTION,
		"unknown is not registered, or takes bytes"));
	check(is_refused(NULL, XR_E_INVAL, "the task is NULL"));
	t.timeout = -2;
	check(is_refused(&t, XR_E_INVAL, NEGATIVE));
	t.timeout = 0;
	t.name = "nothing";
	check(xr_pool_apply(whose, &t, XR_TIMEOUT_NEVER, &value, NULL) ==
		XR_OK);
	check(xr_value_kind(value) == XR_NIL);
	xr_value_unref(value);
	xr_pool_close(whose);
	check(is_refused(&t, XR_E_STATE, "the pool was closed"));
	return xr_reply(call, xr_value_new_nil());
}

FORKED_TEST(pool_submit, a_call_in_a_function_is_refused_as_any_other)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "calls" };

	whose = pool_of_one_task();
	known("nothing", nothing);
	known("calls", calls_what_is_wrong);
	EXPECT_EQ(submit_and_wait(whose, SYNC_APPLY, &t, LONG), XR_OK);
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(xr_pool_join(whose, LONG, &error), XR_OK);
	xr_pool_free(whose);
}
