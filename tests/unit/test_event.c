/* SPDX-License-Identifier: Apache-2.0 */
/* test_event.c - events, and threads that wait for them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/event.h>
#include <xrun/proc.h>

#include "base/clock.h"
#include "base/fd.h"

static struct xr_event *e[4];
static struct xr_error err;

static void
make(void)
{
	for (int i = 0; i < 4; i++)
		e[i] = xr_event_new();
}

static void
drop(void)
{
	for (int i = 0; i < 4; i++)
		xr_event_unref(e[i]);
}

TestSuite(event, .init = make, .fini = drop, .timeout = 60);

Test(event, AC_H7_a_wait_for_what_holds_returns_at_once)
{
	size_t which = 9;

	xr_event_set(e[2]);
	cr_assert_eq(xr_wait_any(e, 4, 0, &which, &err), XR_OK);
	cr_assert_eq(which, 2);
	cr_assert_eq(xr_wait_all(e, 4, 0, &err), XR_E_TIMEOUT);
	for (int i = 0; i < 4; i++)
		xr_event_set(e[i]);
	cr_assert_eq(xr_wait_all(e, 4, 0, &err), XR_OK);
	xr_event_clear(e[2]);
	cr_assert_not(xr_event_is_set(e[2]));
	cr_assert_eq(xr_wait_all(e, 4, 0, &err), XR_E_TIMEOUT);
	cr_assert_eq(xr_wait_all(e, 0, 0, &err), XR_OK);
}

/* The timed waits of the kernel that an event asks for. */
static struct {
	bool is_watched;
	int calls;
	bool is_over;        /* one of them has ended by its deadline */
	int after;           /* calls since then */
	int64_t least, most; /* deadlines, as ns of the clock */
	int64_t left_ns;     /* the longest time to a deadline at a call */
} asked;

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *at);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *at);

/* The first one that is watched ends before its time, as POSIX allows. */
int
__wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *at)
{
	int64_t due = at->tv_sec * NS_PER_S + at->tv_nsec;
	int64_t left = due - clock_now();
	int sys = 0;

	if (!asked.is_watched)
		return __real_pthread_cond_timedwait(cond, lock, at);
	asked.after += asked.is_over;
	if (asked.calls == 0 || due < asked.least)
		asked.least = due;
	if (asked.calls == 0 || due > asked.most)
		asked.most = due;
	if (left > asked.left_ns)
		asked.left_ns = left;
	if (asked.calls++ > 0)
		sys = __real_pthread_cond_timedwait(cond, lock, at);
	asked.is_over = sys == ETIMEDOUT;
	return sys;
}

/*
 * A wait of 50 ms that began at @begun has ended.
 *
 * A loaded machine runs a thread late by more than the bound of 10 ms. So the test checks
 * what the wait asks of the kernel: the one deadline is not after the limit, and the wait
 * sleeps no more when it is over.
 */
static void
expect_in_time(int64_t begun)
{
	const int64_t limit = XR_SECONDS(0.05);

	cr_assert_geq(clock_now() - begun, limit);
	cr_expect_geq(asked.calls, 2);
	cr_expect_eq(asked.after, 0);
	cr_expect_eq(asked.least, asked.most, "the limit began anew");
	cr_expect_geq(asked.least, begun + limit);
	cr_expect_leq(asked.left_ns, limit, "%lld ns",
		(long long)asked.left_ns);
	memset(&asked, 0, sizeof(asked));
}

Test(event, AC_H8_a_timed_wait_ends_in_time)
{
	int64_t begun = clock_now();

	asked.is_watched = true;
	cr_assert_eq(xr_wait_any(e, 4, XR_SECONDS(0.05), NULL, &err),
		XR_E_TIMEOUT);
	expect_in_time(begun);
	/* One that is set, and not enough, does not make it longer. */
	xr_event_set(e[0]);
	asked.is_watched = true;
	begun = clock_now();
	cr_assert_eq(xr_wait_all(e, 2, XR_SECONDS(0.05), &err), XR_E_TIMEOUT);
	expect_in_time(begun);
}

Test(event, those_that_are_made_of_others_are_set_as_those_are)
{
	struct xr_event *any = xr_event_new_any(e, 2);
	struct xr_event *both[] = { any, e[3] };
	struct xr_event *all = xr_event_new_all(both, 2);
	size_t which;

	xr_event_set(all); /* nothing happens */
	cr_assert_not(xr_event_is_set(all));
	xr_event_set(e[3]);
	cr_assert_not(xr_event_is_set(all));
	xr_event_set(e[1]);
	cr_assert(xr_event_is_set(all));
	xr_event_clear(all);
	cr_assert_eq(xr_wait_any(&all, 1, 0, &which, &err), XR_OK);
	xr_event_clear(e[1]);
	cr_assert_eq(xr_wait_any(&all, 1, 0, &which, &err), XR_E_TIMEOUT);
	xr_event_unref(all);
	xr_event_unref(any);
}

Test(event, a_part_lives_as_long_as_what_is_made_of_it)
{
	struct xr_event *part = xr_event_new(), *all, *any;

	cr_assert_not_null(part);
	mallopt(M_PERTURB, 0x55); /* what is free is no event */
	all = xr_event_new_all(&part, 1);
	any = xr_event_new_any(&all, 1);
	xr_event_set(part);
	xr_event_unref(part);
	xr_event_unref(all);
	cr_expect(xr_event_is_set(any));
	cr_expect_eq(xr_wait_all(&any, 1, 0, &err), XR_OK);
	xr_event_clear(part);
	cr_expect_not(xr_event_is_set(any));
	cr_expect_eq(xr_wait_any(&any, 1, 0, NULL, &err), XR_E_TIMEOUT);
	xr_event_unref(any);
}

/* Each part has room for a link. */
Test(event, so_many_parts_can_be_waited_for)
{
	static struct xr_event *many[XR_EVENT_PARTS_MAX];

	for (size_t i = 0; i < XR_EVENT_PARTS_MAX; i++)
		many[i] = xr_event_new();
	cr_expect_eq(xr_wait_all(many, XR_EVENT_PARTS_MAX, 1, &err),
		XR_E_TIMEOUT);
	for (size_t i = 0; i < XR_EVENT_PARTS_MAX; i++)
		xr_event_unref(many[i]);
}

Test(event, what_cannot_be_waited_for_is_refused)
{
	struct xr_event *none = NULL;

	cr_assert_eq(xr_wait_any(NULL, 0, 0, NULL, &err), XR_E_INVAL);
	cr_assert_eq(xr_wait_any(&none, 1, 0, NULL, &err), XR_E_INVAL);
	cr_assert_eq(xr_wait_any(e, 1, -2, NULL, &err), XR_E_INVAL);
	cr_assert_eq(xr_wait_any(NULL, 1, 0, NULL, &err), XR_E_INVAL);
	cr_assert_null(xr_event_new_any(&none, 1));
	cr_assert_null(xr_event_new_any(NULL, 1));
	cr_assert_null(xr_event_new_all(e, XR_EVENT_PARTS_MAX + 1));
}

/* --- with others ----------------------------------------------------------- */

#define ROUNDS 100000

static _Atomic long seen;

/* Waits for each of the instants that the other makes. */
static void *
meet(void *arg)
{
	struct xr_event *both = xr_event_new_all(e, 2);
	struct xr_event *parts[] = { both, e[2] };

	for (long i = 0; i < ROUNDS; i++) {
		if (xr_wait_any(parts, 2, XR_TIMEOUT_NEVER, NULL, NULL) !=
			XR_OK)
			break;
		xr_event_clear(e[0]);
		xr_event_clear(e[1]);
		xr_event_clear(e[2]);
		atomic_fetch_add(&seen, 1);
		xr_event_set(e[3]);
	}
	xr_event_unref(both);
	return NULL;
}

Test(event, AC_H6_D_H4_no_wake_up_is_lost)
{
	unsigned seed = 4711;
	pthread_t id;

	cr_assert_eq(pthread_create(&id, NULL, meet, NULL), 0);
	for (long i = 0; i < ROUNDS; i++) {
		int how = rand_r(&seed) % 4;

		xr_event_set(e[how == 0 ? 2 : how % 2]);
		if (how != 0)
			xr_event_set(e[1 - how % 2]);
		cr_assert_eq(xr_wait_any(&e[3], 1, XR_SECONDS(20), NULL, &err),
			XR_OK, "round %ld: lost", i);
		xr_event_clear(e[3]);
	}
	pthread_join(id, NULL);
	cr_assert_eq(atomic_load(&seen), ROUNDS);
}

static _Atomic pid_t waiting;

/* Does the thread sleep? It has nothing to sleep for but the event. */
static bool
sleeps(pid_t tid)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd_read_small(path, text, sizeof(text));
	return strstr(text, ") S ") != NULL;
}

static void *
wait_for_both(void *arg)
{
	enum xr_status *status = arg;

	atomic_store(&waiting, gettid());
	*status = xr_wait_all(e, 2, XR_SECONDS(20), NULL);
	return NULL;
}

Test(event, AC_H6_an_instant_in_which_it_held_is_enough)
{
	enum xr_status status = XR_E_STATE;
	pthread_t id;

	cr_assert_eq(pthread_create(&id, NULL, wait_for_both, &status), 0);
	while (atomic_load(&waiting) == 0 || !sleeps(atomic_load(&waiting)))
		sched_yield();
	xr_event_set(e[0]);
	xr_event_set(e[1]);
	xr_event_clear(e[0]);
	xr_event_clear(e[1]);
	pthread_join(id, NULL);
	cr_assert_eq(status, XR_OK);
}

/* --- threads --------------------------------------------------------------- */

static enum xr_status
break_down(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	int64_t n = 0;

	xr_value_get_i64(arg, &n);
	return n == 7 && ordinal == 3 ? xr_error_set(why, XR_E_RANGE, ctx) :
					XR_OK;
}

static enum xr_status
clean_badly(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	return xr_error_set(why, XR_E_STATE, "the folder is not empty");
}

Test(event, AC_H2_a_thread_keeps_what_function_and_cleaner_failed_of)
{
	struct xr_thread_opts o = {
		.size = sizeof(o),
		.ordinal = 3,
		.fn = break_down,
		.cleaner = clean_badly,
		.ctx = "sample 1797",
		.name = "loader",
		.arg = xr_value_new_i64(7),
	};
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_thread *t = NULL;

	cr_assert_eq(xr_thread_start(&o, &t, &err), XR_OK);
	xr_value_unref(o.arg);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(xr_thread_watch(t, XR_SECONDS(20), &err),
			XR_E_RANGE);
		cr_assert_str_eq(err.text, "sample 1797");
	}
	cr_assert_eq(xr_value_failure(xr_thread_report(t, 1), &f), XR_OK);
	cr_assert_eq(f.status, XR_E_STATE);
	cr_assert_str_eq(f.text, "the folder is not empty");
	cr_assert_eq(strncmp(f.worker, "loader, process ", 16), 0);
	cr_assert_null(xr_thread_report(t, 2));
	xr_thread_free(t);
}

static enum xr_status
wait_for_event(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *why)
{
	return xr_wait_any(&e[0], 1, XR_SECONDS(20), NULL, why);
}

Test(event, a_thread_that_runs_is_not_waited_for_longer_than_asked)
{
	struct xr_thread_opts o = { .size = sizeof(o), .fn = wait_for_event };
	struct xr_thread *t = NULL;

	cr_assert_eq(xr_thread_start(&o, &t, &err), XR_OK);
	cr_assert_eq(xr_thread_watch(t, XR_SECONDS(0.01), &err), XR_E_TIMEOUT);
	cr_assert_null(xr_thread_report(t, 0));
	xr_event_set(e[0]);
	cr_assert_eq(xr_thread_watch(t, XR_TIMEOUT_NEVER, &err), XR_OK);
	xr_thread_free(t);
	o.fn = NULL;
	cr_assert_eq(xr_thread_start(&o, &t, &err), XR_E_INVAL);
}
