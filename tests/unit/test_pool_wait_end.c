/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_wait_end.c - the same (test_pool_wait.c) that is cancelled, or ends its
 * thread; and forks. */
#include <pthread.h>
#include <signal.h>

#include "tests/unit/pool_rig.h"

TestSuite(pool_wait_end, .timeout = 60);

/* --- ending --------------------------------------------------------------------------- */

static struct xr_future *_Atomic inner;

static enum xr_status
ends(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)c;
	(void)args;
	(void)ctx;
	if (atomic_load(&stage) == 1)
		await(2);
	pthread_exit(NULL);
}

/* It is the last one that it does. */
static enum xr_status
calls(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *f = post("ends", 0);

	(void)args;
	(void)ctx;
	atomic_store(&inner, xr_future_ref(f));
	atomic_store(&stage, 1);
	get(f, XR_TIMEOUT_NEVER, NULL);
	check(false);
	return xr_reply(c, xr_value_new_nil());
}

/* Both have failed, and who waits for either hears of it. */
FORKED_TEST(pool_wait_end,
	one_that_ends_its_thread_takes_along_who_waits_for_it)
{
	struct xr_future *f;

	known("ends", ends);
	known("calls", calls);
	known("twice", twice);
	begin(1, 0);
	for (uint32_t i = 0; i < 20; i++) {
		atomic_store(&stage, 0);
		f = post("calls", 0);
		await(1);
		atomic_store(&stage, 2);
		EXPECT_EQ(get(inner, SOON, NULL), XR_E_STATE);
		EXPECT(strstr(error.text, "has ended its thread") != NULL);
		EXPECT_EQ(get(f, SOON, NULL), XR_E_STATE);
		EXPECT(strstr(error.text, "has ended its thread") != NULL);
		/* What it held of the future is gone with it. */
		xr_future_unref(inner);
		EXPECT_EQ(get(post("twice", 1), SOON, NULL), XR_OK);
	}
	end();
}

/* Until it hears that it was cancelled. */
static enum xr_status
lasts(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t from = clock_now();

	(void)args;
	(void)ctx;
	atomic_store(&stage, 2);
	while (!xr_call_cancelled(c) && clock_now() - from < SOON)
		sched_yield();
	check(xr_call_cancelled(c));
	return xr_reply(c, xr_value_new_nil());
}

/* What it calls in its place hears it, too. */
static enum xr_status
hands_on(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "lasts" };

	(void)args;
	(void)ctx;
	check(xr_pool_apply(pool, &t, XR_TIMEOUT_NEVER, NULL, NULL) == XR_OK);
	return xr_reply(c, xr_value_new_nil());
}

/* As a call, and as a map, of which the second item has no task. */
static enum xr_status
relies(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_value *items = numbers(0, 200);
	struct xr_pool_task t = { .size = sizeof(t),
		.flags = XR_POOL_CHUNK,
		.name = "lasts",
		.args = items,
		.chunk = 1 };
	int64_t how = number(xr_value_at(args, 0));
	struct xr_future *f = NULL;

	(void)ctx;
	if (how == 2)
		check(xr_pool_map_async(pool, &t, &f, NULL) == XR_OK);
	else
		f = post(how == 1 ? "hands-on" : "lasts", 0);
	atomic_store(&inner, xr_future_ref(f));
	atomic_store(&stage, 1);
	check(get(f, XR_TIMEOUT_NEVER, NULL) == XR_E_CANCELLED);
	xr_value_unref(items);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait_end, what_is_done_so_can_be_cancelled)
{
	struct xr_future *f;

	known("lasts", lasts);
	known("hands-on", hands_on);
	known("relies", relies);
	begin(1, 0);
	for (uint32_t i = 0; i < 30; i++) {
		atomic_store(&stage, 0);
		f = post("relies", i % 3);
		await(2);
		EXPECT_EQ(xr_future_cancel(inner), XR_OK);
		EXPECT_EQ(get(inner, SOON, NULL), XR_E_CANCELLED);
		EXPECT_EQ(get(f, SOON, NULL), XR_OK);
	}
	end();
}

/* It holds the only worker until the first map has its tasks, and is cancelled. */
static enum xr_status
holds(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_store(&stage, 1);
	await(2);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait_end, a_map_goes_on_when_another_was_cancelled)
{
	struct xr_value *items = numbers(0, 400), *out = NULL;
	struct xr_pool_task t = { .size = sizeof(t),
		.flags = XR_POOL_CHUNK,
		.name = "twice",
		.args = items,
		.chunk = 1 };
	struct xr_future *f[2], *holder;

	known("twice", twice);
	known("holds", holds);
	begin(1, 0);
	holder = post("holds", 0);
	await(1);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(xr_pool_map_async(pool, &t, &f[i], NULL), XR_OK);
	EXPECT_EQ(xr_future_cancel(f[0]), XR_OK);
	atomic_store(&stage, 2);
	EXPECT_EQ(get(holder, SOON, NULL), XR_OK);
	EXPECT_EQ(xr_future_wait(f[1], SOON, &out, &error), XR_OK);
	EXPECT_EQ(ran, 400);
	xr_value_unref(out);
	xr_future_unref(f[0]);
	xr_future_unref(f[1]);
	xr_value_unref(items);
	end();
}

/* A child of fork() does nothing for its parent. */
static enum xr_status
forks(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *f = post("twice", 1);
	sigset_t none;
	int status = -1;
	pid_t pid;

	(void)args;
	(void)ctx;
	pid = fork();
	if (pid == 0) {
		sigemptyset(&none);
		pthread_sigmask(SIG_SETMASK, &none, NULL);
		alarm(1);
		xr_future_wait(f, XR_TIMEOUT_NEVER, NULL, NULL);
		_exit(atomic_load(&ran) == 0 ? 0 : 7);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid);
	check(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	check(get(f, XR_TIMEOUT_NEVER, NULL) == XR_OK);
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_wait_end, a_child_of_fork_does_nothing_of_it)
{
	known("twice", twice);
	known("forks", forks);
	begin(1, 0);
	EXPECT_EQ(get(post("forks", 0), SOON, NULL), XR_OK);
	EXPECT_EQ(ran, 1);
	end();
}
