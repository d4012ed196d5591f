/* SPDX-License-Identifier: Apache-2.0 */
/* test_loop_memory.c - a loop, its watches, timers and children without memory, of
 * libevent's, too, and without descriptors. */
#include <stdlib.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/syscall.h>

#include <event2/event.h>

#include "base/clock.h"
#include "event/child.h"
#include "event/loop.h"
#include "event/work.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"

static struct loop *loop;
static int calls, ends[2];

/* libevent asks us, too. */
static void
begin(void)
{
	event_set_mem_functions(__wrap_malloc, __wrap_realloc, free);
	cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	calls = 0;
}

static void
end(void)
{
	loop_free(loop);
	loop = NULL;
	close(ends[0]);
	close(ends[1]);
}

TestSuite(loop_memory, .init = begin, .fini = end, .timeout = 60);

static void
stop(int fd, void *ctx)
{
	char byte;

	(void)ctx;
	calls++;
	cr_assert_eq(read(fd, &byte, 1), 1);
	loop_stop(loop);
}

static void
stop_late(void *ctx)
{
	(void)ctx;
	calls++;
	loop_stop(loop);
}

/* Calls @make until no allocation of it fails; each of them once does. Returns how many
 * there are. */
static unsigned
each_allocation(bool (*make)(void))
{
	unsigned n = 0;
	bool made;

	do {
		was_short = false;
		until_short = ++n;
		made = make();
		until_short = 0;
		cr_expect_eq(made, !was_short, "allocation %u", n);
	} while (was_short);
	return n - 1;
}

static bool
make_loop(void)
{
	loop = loop_new();
	return loop != NULL;
}

static void
expect_to_run(void)
{
	struct watch *w = watch_open(loop, ends[0], false, stop, NULL);

	cr_assert_not_null(w);
	cr_assert_eq(write(ends[1], ".", 1), 1);
	calls = 0;
	loop_run(loop);
	cr_expect_eq(calls, 1);
	watch_close(w);
}

/* Without memory for epoll, libevent takes poll(). */
Test(loop_memory, a_loop_is_made_with_all_it_needs_or_not_at_all)
{
	unsigned n = 0, none = 0;

	do {
		was_short = false;
		until_short = ++n;
		make_loop();
		until_short = 0;
		cr_expect(was_short || loop != NULL, "allocation %u", n);
		none += loop == NULL;
		if (loop != NULL)
			expect_to_run();
		loop_free(loop);
		loop = NULL;
	} while (was_short);
	/* Ours, libevent's base and its configuration, the two events. */
	cr_expect_geq(none, 5);
}

static struct watch *watch;
static struct timer *timer;
static struct children *children;

static bool
make_watch(void)
{
	watch = watch_open(loop, ends[0], false, stop, NULL);
	return watch != NULL;
}

static bool
make_timer(void)
{
	timer = timer_open(loop, stop_late, NULL);
	return timer != NULL;
}

static void
on_death(uint32_t id, void *ctx)
{
	(void)id;
	(void)ctx;
}

static bool
make_children(void)
{
	children = children_open(loop, on_death, stop_late, NULL);
	return children != NULL;
}

Test(loop_memory, what_a_loop_watches_is_made_or_not_at_all)
{
	cr_assert(make_loop());
	cr_expect_geq(each_allocation(make_watch), 2);
	cr_expect_eq(each_allocation(make_timer), 1);
	cr_expect_geq(each_allocation(make_children), 2);
	timer_arm(timer, 0);
	calls = 0;
	loop_run(loop);
	cr_expect_eq(calls, 1);
	children_close(children);
	timer_close(timer);
	watch_close(watch);
	expect_to_run();
}

static struct work *work;

static bool
make_work(void)
{
	work = work_new();
	return work != NULL;
}

static void
count(void *ctx)
{
	(void)ctx;
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

static bool
post_work(void)
{
	return work_post(work, count, NULL);
}

Test(loop_memory, work_without_memory_is_not_taken)
{
	cr_expect_eq(each_allocation(make_work), 1);
	cr_expect_eq(each_allocation(post_work), 1);
	cr_expect(work_wait(work, 20 * NS_PER_S));
	cr_expect_eq(__atomic_load_n(&calls, __ATOMIC_RELAXED), 1);
}

/* What watches children has a descriptor of its own. */
FORKED_TEST(loop_memory, without_descriptors_nothing_is_left_open)
{
	struct rlimit rl = { 0 };
	int fd, before = folder_entries("/proc/self/fd");

	NEED(make_loop());
	fd = dup(ends[0]);
	NEED(fd != -1);
	close(fd);
	rl.rlim_cur = rl.rlim_max = (rlim_t)fd;
	NEED(setrlimit(RLIMIT_NOFILE, &rl) == 0);
	EXPECT(!make_children());
	EXPECT(make_watch());
	watch_close(watch);
	loop_free(loop);
	EXPECT_EQ(folder_entries("/proc/self/fd"), before);
}

/* Without what sanitizers do at the end: they would wait for a descriptor. */
static void
end_at_once(int status, void *arg)
{
	(void)arg;
	_exit(status);
}

/* libevent ends the program, which says why. */
FORKED_TEST(loop_memory, a_loop_without_descriptors_ends_the_program)
{
	struct rlimit rl = { 0 };
	char text[256] = "";
	int status;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		NEED(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
		NEED(on_exit(end_at_once, NULL) == 0);
		rl.rlim_cur = rl.rlim_max = 3;
		NEED(setrlimit(RLIMIT_NOFILE, &rl) == 0);
		_exit(loop_new() == NULL ? 99 : 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	(void)!read(ends[0], text, sizeof(text) - 1);
	EXPECT(WEXITSTATUS(status) == 99 ||
		strncmp(text, "libevent: ", 10) == 0);
}

/* Two watches that the kernel has no memory for, and one that is given up. They are
 * tried again; one that is paused, or closed, is not. */
FORKED_TEST(loop_memory, a_watch_that_is_refused_again_is_tried_again)
{
	struct watch *other;

	NEED(make_loop() && make_watch() && make_timer());
	other = watch_open(loop, ends[1], true, stop, NULL);
	NEED(other != NULL);
	watch_pause(other);
	watch_pause(watch);
	NEED(write(ends[1], ".", 1) == 1);
	NEED(seccomp_refuse(SYS_epoll_ctl, ENOMEM) == 0);
	watch_resume(watch);
	watch_resume(watch);
	watch_resume(other);
	watch_pause(other);
	watch_resume(other);
	timer_arm(timer, 50 * NS_PER_MS); /* after some tries */
	calls = 0;
	loop_run(loop);
	EXPECT_EQ(calls, 1);
	watch_close(other);
	watch_close(watch);
	timer_close(timer);
	loop_free(loop);
}

/* A callback that stops the loop is the last of its turn. */
Test(loop_memory, timers_that_are_due_after_a_stop_wait_for_the_next_turn)
{
	struct timer *second;

	cr_assert(make_loop());
	cr_assert(make_timer());
	second = timer_open(loop, stop_late, NULL);
	timer_arm(timer, 0);
	timer_arm(second, 0);
	loop_run(loop);
	cr_expect_eq(calls, 1);
	cr_expect_not(timer_armed(timer));
	cr_expect(timer_armed(second));
	loop_run(loop);
	cr_expect_eq(calls, 2);
	timer_close(timer);
	timer_close(second);
}
