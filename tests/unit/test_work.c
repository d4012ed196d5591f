/* SPDX-License-Identifier: Apache-2.0 */
/* test_work.c - the helper thread: in order, and never waited for too long. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/work.h"
#include "proc/descend.h"
#include "tests/unit/folder.h"

#define LONG_NS (20 * NS_PER_S)

static struct work *work;

static void
prepare(void)
{
	work = work_new();
	cr_assert_not_null(work);
}

TestSuite(work, .init = prepare);

#define MANY 5000

static uint32_t seen[MANY], count;
static pid_t thread;

static void
see(void *ctx)
{
	seen[count++] = (uint32_t)(uintptr_t)ctx;
	thread = (pid_t)syscall(SYS_gettid);
}

Test(work, jobs_run_in_the_order_they_were_posted)
{
	for (uintptr_t i = 0; i < MANY; i++)
		cr_assert(work_post(work, see, (void *)i));
	cr_assert(work_wait(work, LONG_NS));
	cr_assert_eq(count, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert_eq(seen[i], i);
}

Test(work, jobs_run_on_a_thread_of_their_own)
{
	cr_assert(work_post(work, see, NULL));
	cr_assert(work_wait(work, LONG_NS));
	cr_expect_neq(thread, 0);
	cr_expect_neq(thread, (pid_t)syscall(SYS_gettid));
}

static int
threads(void)
{
	return folder_entries("/proc/self/task");
}

Test(work, the_thread_starts_with_the_first_job_and_is_the_only_one)
{
	int before = threads();

	for (int i = 0; i < 10; i++) {
		cr_assert(work_post(work, see, NULL));
		cr_assert(work_wait(work, LONG_NS));
		cr_expect_eq(threads(), before + 1);
	}
}

Test(work, nothing_to_do_is_done_at_once)
{
	int64_t begun = clock_now();

	cr_expect(work_wait(work, LONG_NS));
	cr_expect(work_wait(work, 0));
	cr_expect_lt(clock_now() - begun, LONG_NS / 2);
}

static int gate[2];

static void
block(void *ctx)
{
	char c;

	(void)ctx;
	cr_assert_eq(read(gate[0], &c, 1), 1);
}

static void
let_go(void)
{
	cr_assert_eq(write(gate[1], ".", 1), 1);
}

Test(work, a_wait_has_a_limit)
{
	int64_t begun;

	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	cr_assert(work_post(work, block, NULL));
	cr_assert(work_post(work, see, NULL));
	begun = clock_now();
	cr_expect_not(work_wait(work, 50 * NS_PER_MS));
	cr_expect_geq(clock_now() - begun, 50 * NS_PER_MS);
	cr_expect_lt(clock_now() - begun, 10 * NS_PER_S);
	cr_expect_not(work_wait(work, 0));
	cr_expect_eq(count, 0, "one after the other");
	let_go();
	cr_expect(work_wait(work, LONG_NS));
	cr_expect_eq(count, 1);
}

Test(work, it_is_idle_only_when_all_is_done)
{
	cr_expect(work_idle(work));
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	cr_assert(work_post(work, block, NULL));
	work_push(work);
	cr_expect_not(work_idle(work), "and a push does not wait");
	let_go();
	cr_expect(work_wait(work, LONG_NS));
	cr_expect(work_idle(work));
}

/* When the main thread sleeps in its wait. */
static void *
let_go_later(void *arg)
{
	struct proc_stat st;

	(void)arg;
	do {
		cr_assert(proc_stat_read(getpid(), &st));
	} while (st.state != 'S');
	let_go();
	return NULL;
}

Test(work, a_wait_ends_with_the_work)
{
	int64_t begun = clock_now();
	pthread_t other;

	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	cr_assert(work_post(work, block, NULL));
	cr_assert_eq(pthread_create(&other, NULL, let_go_later, NULL), 0);
	cr_expect(work_wait(work, LONG_NS));
	cr_expect_lt(clock_now() - begun, LONG_NS / 2);
	cr_assert_eq(pthread_join(other, NULL), 0);
}

static void
post_more(void *ctx)
{
	uintptr_t left = (uintptr_t)ctx;

	see(ctx);
	if (left > 0)
		cr_assert(work_post(work, post_more, (void *)(left - 1)));
}

Test(work, a_job_may_post_another_and_is_waited_for_with_it)
{
	cr_assert(work_post(work, post_more, (void *)(uintptr_t)100));
	cr_assert(work_wait(work, LONG_NS));
	cr_expect_eq(count, 101);
	for (uint32_t i = 0; i <= 100; i++)
		cr_expect_eq(seen[i], 100 - i);
}

/* No thread can have a stack like that. */
static void
want_stacks_of(size_t bytes)
{
	pthread_attr_t attr;

	cr_assert_eq(pthread_attr_init(&attr), 0);
	cr_assert_eq(pthread_attr_setstacksize(&attr, bytes), 0);
	cr_assert_eq(pthread_setattr_default_np(&attr), 0);
	cr_assert_eq(pthread_attr_destroy(&attr), 0);
}

Test(work, a_thread_that_cannot_be_made_is_tried_again)
{
	want_stacks_of((size_t)1 << 50);
	cr_expect(work_post(work, see, (void *)1));
	cr_expect(work_post(work, see, (void *)2));
	cr_expect_eq(count, 0);
	want_stacks_of(1 << 20);
	cr_expect(work_post(work, see, (void *)3));
	cr_expect(work_wait(work, LONG_NS));
	cr_expect_eq(count, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(seen[i], i + 1);
}

Test(work, what_no_thread_took_is_done_by_the_last_wait)
{
	want_stacks_of((size_t)1 << 50);
	cr_expect(work_post(work, see, (void *)1));
	cr_expect(work_post(work, see, (void *)2));
	cr_expect_eq(count, 0);
	cr_expect(work_wait(work, NS_PER_MS));
	cr_expect_eq(count, 2);
}

Test(work, the_last_wait_tries_it_again)
{
	want_stacks_of((size_t)1 << 50);
	cr_expect(work_post(work, see, NULL));
	cr_expect_eq(count, 0);
	want_stacks_of(1 << 20);
	cr_expect(work_wait(work, LONG_NS));
	cr_expect_eq(count, 1);
}

static void
free_it(void *ctx)
{
	free(ctx);
	count++;
}

Test(work, what_a_job_is_given_is_its_own)
{
	for (int i = 0; i < 100; i++)
		cr_assert(work_post(work, free_it, strdup("mine")));
	cr_assert(work_wait(work, LONG_NS));
	cr_expect_eq(count, 100);
}

/* Many threads could post; the loop does, and the jobs. */
static void *
post_some(void *arg)
{
	for (int i = 0; i < 1000; i++)
		cr_assert(work_post(work, free_it, NULL));
	return arg;
}

Test(work, jobs_may_be_posted_by_several_threads)
{
	pthread_t other[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&other[i], NULL, post_some, NULL),
			0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_join(other[i], NULL), 0);
	cr_assert(work_wait(work, LONG_NS));
	cr_expect_eq(count, 4000);
}
