/* SPDX-License-Identifier: Apache-2.0 */
/* test_loop.c - watches and timers, closed wherever one may close them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/loop.h"
#include "tests/unit/folder.h"
#include "tests/unit/seccomp.h"

#define MS NS_PER_MS

static struct loop *loop;
static struct timer *belt; /* ends a loop that nobody stops */
static bool belted;

static void
give_up(void *ctx)
{
	(void)ctx;
	belted = true;
	loop_stop(loop);
}

static void
prepare(void)
{
	loop = loop_new();
	cr_assert_not_null(loop);
	belt = timer_open(loop, give_up, NULL);
	cr_assert_not_null(belt);
	timer_arm(belt, 20 * NS_PER_S);
}

static void
finish(void)
{
	timer_close(belt);
	loop_free(loop);
}

TestSuite(loop, .init = prepare, .fini = finish);

static void
run(void)
{
	loop_run(loop);
	cr_assert_not(belted, "nobody stopped the loop");
}

/* The loop runs until all that is due now was done, and stops. */
static void
stop_it(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

static void
settle(void)
{
	struct timer *t = timer_open(loop, stop_it, NULL);

	timer_arm(t, 5 * MS);
	run();
	timer_close(t);
}

/* A pipe, a watch of it, and what happened to it. */
struct end {
	int fd[2];
	struct watch *watch, *other;
	int calls;
};

static void
open_pipe(struct end *e)
{
	cr_assert_eq(pipe2(e->fd, O_CLOEXEC | O_NONBLOCK), 0);
}

static void
close_pipe(struct end *e)
{
	close(e->fd[0]);
	close(e->fd[1]);
}

static void
put(struct end *e)
{
	cr_assert_eq(write(e->fd[1], ".", 1), 1);
}

static void
take_one(int fd, void *ctx)
{
	struct end *e = ctx;
	char c;

	cr_assert_eq(read(fd, &c, 1), 1);
	e->calls++;
}

Test(loop, a_watch_is_called_while_there_is_something_to_read)
{
	struct end e = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, take_one, &e);
	settle();
	cr_expect_eq(e.calls, 0);
	put(&e);
	put(&e);
	put(&e);
	settle();
	cr_expect_eq(e.calls, 3, "one a turn, and again");
	watch_close(e.watch);
	close_pipe(&e);
}

static void
fill_up(int fd, void *ctx)
{
	struct end *e = ctx;
	char text[4096] = "";

	e->calls++;
	if (write(fd, text, sizeof(text)) == -1)
		watch_pause(e->watch);
}

Test(loop, a_watch_of_writing_is_called_while_there_is_room)
{
	struct end e = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[1], true, fill_up, &e);
	settle();
	cr_expect_eq(e.calls, 16, "64 KiB: %d", e.calls);
	watch_close(e.watch);
	close_pipe(&e);
}

static void
see_end(int fd, void *ctx)
{
	struct end *e = ctx;
	char c;

	cr_expect_eq(read(fd, &c, 1), 0);
	e->calls++;
	loop_stop(loop);
}

Test(loop, the_end_of_a_pipe_wakes_its_watch)
{
	struct end e = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, see_end, &e);
	close(e.fd[1]);
	run();
	cr_expect_eq(e.calls, 1);
	watch_close(e.watch);
	close(e.fd[0]);
}

Test(loop, a_paused_watch_is_silent_until_it_is_resumed)
{
	struct end e = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, take_one, &e);
	watch_pause(e.watch);
	watch_pause(e.watch);
	put(&e);
	settle();
	cr_expect_eq(e.calls, 0);
	watch_resume(e.watch);
	watch_resume(e.watch);
	settle();
	cr_expect_eq(e.calls, 1);
	watch_close(e.watch);
	close_pipe(&e);
}

static void
take_and_pause(int fd, void *ctx)
{
	struct end *e = ctx;

	take_one(fd, ctx);
	watch_pause(e->watch);
}

Test(loop, a_watch_may_pause_itself)
{
	struct end e = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, take_and_pause, &e);
	put(&e);
	put(&e);
	settle();
	cr_expect_eq(e.calls, 1);
	watch_resume(e.watch);
	settle();
	cr_expect_eq(e.calls, 2);
	watch_close(e.watch);
	close_pipe(&e);
}

static void
close_itself(int fd, void *ctx)
{
	struct end *e = ctx;

	(void)fd;
	watch_close(e->watch);
	e->watch = NULL;
	e->calls++;
}

Test(loop, a_watch_may_close_itself)
{
	struct end e = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, close_itself, &e);
	put(&e);
	settle();
	cr_expect_eq(e.calls, 1, "what is unread does not call again");
	close_pipe(&e);
}

static void
close_the_other(int fd, void *ctx)
{
	struct end *e = ctx;

	(void)fd;
	e->calls++;
	watch_pause(e->watch);
	watch_close(e->other);
	e->other = NULL;
}

/* Both are ready in one turn; whichever comes first closes the other, whose
 * call is then not due any more. */
Test(loop, a_watch_that_another_closed_is_not_called)
{
	struct end a = { 0 }, b = { 0 };

	for (int i = 0; i < 20; i++) {
		open_pipe(&a);
		open_pipe(&b);
		a.calls = b.calls = 0;
		a.watch = b.other =
			watch_open(loop, a.fd[0], false, close_the_other, &a);
		b.watch = a.other =
			watch_open(loop, b.fd[0], false, close_the_other, &b);
		put(&a);
		put(&b);
		settle();
		cr_expect_eq(a.calls + b.calls, 1);
		watch_close(a.calls == 1 ? a.watch : b.watch);
		close_pipe(&a);
		close_pipe(&b);
	}
}

static struct end again;

/* A number is free as soon as it is closed, and the next to be opened gets
 * it. */
static void
close_and_open_again(int fd, void *ctx)
{
	char c;

	(void)ctx;
	cr_assert_eq(read(fd, &c, 1), 1);
	watch_close(again.watch);
	close_pipe(&again);
	if (++again.calls == 50) {
		loop_stop(loop);
		return;
	}
	open_pipe(&again);
	cr_assert_eq(again.fd[0], fd, "the same number");
	again.watch = watch_open(loop, fd, false, close_and_open_again, NULL);
	put(&again);
}

Test(loop, a_number_that_is_used_again_belongs_to_the_new_watch)
{
	open_pipe(&again);
	again.watch = watch_open(loop, again.fd[0], false, close_and_open_again,
		NULL);
	put(&again);
	run();
	cr_expect_eq(again.calls, 50);
}

Test(loop, what_cannot_be_watched_is_refused)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	cr_expect_null(watch_open(loop, fd, false, take_one, NULL));
	watch_close(NULL);
	timer_close(NULL);
	settle();
}

/* What a timer did, and when. */
struct alarm {
	struct timer *timer, *other;
	int64_t due, fired;
	int calls, again;
};

static void
note(void *ctx)
{
	struct alarm *a = ctx;

	a->calls++;
	a->fired = clock_now();
	cr_expect_not(timer_armed(a->timer), "it is over when it is told");
	if (a->again > 0) {
		a->again--;
		timer_arm(a->timer, MS);
	}
}

static struct alarm
open_alarm(timer_fn *fn, struct alarm *where)
{
	struct alarm a = { .timer = timer_open(loop, fn, where) };

	cr_assert_not_null(a.timer);
	return a;
}

static void
arm(struct alarm *a, int64_t ns)
{
	a->due = clock_now() + ns;
	timer_arm(a->timer, ns);
}

Test(loop, a_timer_fires_once_and_never_early)
{
	static const int64_t spans[] = { 0, 1, MS, 3 * MS, 17 * MS };
	struct alarm a[5];

	for (int i = 0; i < 5; i++) {
		a[i] = open_alarm(note, &a[i]);
		cr_expect_not(timer_armed(a[i].timer));
		cr_expect_eq(timer_left(a[i].timer), 0);
		arm(&a[i], spans[i]);
		cr_expect(timer_armed(a[i].timer));
	}
	for (int i = 0; i < 10; i++)
		settle();
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(a[i].calls, 1);
		cr_expect_geq(a[i].fired, a[i].due, "%d: %lld us early", i,
			(long long)(a[i].due - a[i].fired) / 1000);
		cr_expect_not(timer_armed(a[i].timer));
		timer_close(a[i].timer);
	}
}

/* Time passes in a callback, too. */
static void
work_then_arm(int fd, void *ctx)
{
	int64_t until = clock_now() + 30 * MS;
	char c;

	cr_assert_eq(read(fd, &c, 1), 1);
	while (clock_now() < until)
		continue;
	arm(ctx, 10 * MS);
}

Test(loop, a_span_begins_when_the_timer_is_armed)
{
	struct alarm a = { 0 };
	struct end e = { 0 };

	open_pipe(&e);
	a = open_alarm(note, &a);
	e.watch = watch_open(loop, e.fd[0], false, work_then_arm, &a);
	put(&e);
	for (int i = 0; i < 5; i++)
		settle();
	while (a.calls == 0)
		settle();
	cr_expect_geq(a.fired, a.due, "%lld us early",
		(long long)(a.due - a.fired) / 1000);
	timer_close(a.timer);
	watch_close(e.watch);
	close_pipe(&e);
}

Test(loop, arming_again_replaces)
{
	struct alarm a = { 0 };
	int64_t left;

	a = open_alarm(note, &a);
	timer_arm(a.timer, NS_PER_S * 1000);
	left = timer_left(a.timer);
	cr_expect(left > 990 * NS_PER_S && left <= 1000 * NS_PER_S);
	timer_arm(a.timer, MS);
	cr_expect_leq(timer_left(a.timer), MS);
	settle();
	settle();
	cr_expect_eq(a.calls, 1);
	timer_arm(a.timer, MS);
	timer_arm(a.timer, NS_PER_S * 1000);
	settle();
	cr_expect_eq(a.calls, 1);
	cr_expect(timer_armed(a.timer));
	timer_close(a.timer);
}

Test(loop, a_timer_may_arm_itself)
{
	struct alarm a = { 0 };

	a = open_alarm(note, &a);
	a.again = 9;
	timer_arm(a.timer, 0);
	while (a.calls < 10)
		settle();
	settle();
	cr_expect_eq(a.calls, 10);
	timer_close(a.timer);
}

Test(loop, a_disarmed_timer_does_not_fire)
{
	struct alarm a = { 0 };

	a = open_alarm(note, &a);
	timer_disarm(a.timer);
	timer_arm(a.timer, 0);
	timer_disarm(a.timer);
	cr_expect_not(timer_armed(a.timer));
	cr_expect_eq(timer_left(a.timer), 0);
	settle();
	cr_expect_eq(a.calls, 0);
	timer_arm(a.timer, 0);
	settle();
	cr_expect_eq(a.calls, 1);
	timer_close(a.timer);
}

static void
close_own_timer(void *ctx)
{
	struct alarm *a = ctx;

	a->calls++;
	timer_arm(a->timer, 0);
	timer_close(a->timer);
	a->timer = NULL;
}

Test(loop, a_timer_may_close_itself)
{
	struct alarm a = { 0 };

	a = open_alarm(close_own_timer, &a);
	timer_arm(a.timer, 0);
	settle();
	cr_expect_eq(a.calls, 1);
}

static void
close_other_timer(void *ctx)
{
	struct alarm *a = ctx;

	a->calls++;
	timer_close(a->other);
}

Test(loop, a_timer_that_another_closed_does_not_fire)
{
	struct alarm a = { 0 }, b = { 0 };

	a = open_alarm(close_other_timer, &a);
	b = open_alarm(close_other_timer, &b);
	a.other = b.timer;
	b.other = a.timer;
	timer_arm(a.timer, MS);
	timer_arm(b.timer, MS);
	settle();
	settle();
	cr_expect_eq(a.calls + b.calls, 1);
	timer_close(a.calls == 1 ? a.timer : b.timer);
}

/* A watch that is always ready leaves room for timers, and the other way. */
static void
hear(int fd, void *ctx)
{
	struct end *e = ctx;

	(void)fd;
	e->calls++;
}

/* Begun anywhere between two ticks of the kernel, and looked at all the time:
 * the loop has always something to do. */
Test(loop, no_tick_makes_a_timer_early)
{
	struct alarm a = { 0 };
	struct end e = { 0 };
	int64_t until;

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, hear, &e);
	put(&e);
	a = open_alarm(note, &a);
	for (int i = 0; i < 30; i++) {
		until = clock_now() + i * 317 * NS_PER_US;
		while (clock_now() < until)
			continue;
		arm(&a, 2 * MS);
		while (a.calls <= i)
			settle();
		cr_expect_geq(a.fired, a.due, "%lld us early",
			(long long)(a.due - a.fired) / 1000);
	}
	timer_close(a.timer);
	watch_close(e.watch);
	close_pipe(&e);
}

Test(loop, what_is_always_ready_starves_nobody)
{
	struct end e = { 0 };
	struct alarm a = { 0 };

	open_pipe(&e);
	e.watch = watch_open(loop, e.fd[0], false, hear, &e);
	a = open_alarm(note, &a);
	a.again = 3;
	put(&e);
	timer_arm(a.timer, MS);
	while (a.calls < 4)
		settle();
	cr_expect_gt(e.calls, 4);
	timer_close(a.timer);
	watch_close(e.watch);
	close_pipe(&e);
}

Test(loop, a_stop_before_the_run_is_no_stop)
{
	struct alarm a = { 0 };

	a = open_alarm(note, &a);
	timer_arm(a.timer, 0);
	settle();
	cr_expect_eq(a.calls, 1, "the loop can be run again");
	timer_close(a.timer);
}

/* Closed between turns, never run: the memory goes with the loop. */
Test(loop, a_loop_may_be_freed_with_what_was_closed_last)
{
	struct loop *l = loop_new();
	int before = folder_entries("/proc/self/fd");
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	watch_close(watch_open(l, p[0], false, hear, NULL));
	timer_close(timer_open(l, stop_it, NULL));
	loop_free(l);
	close(p[0]);
	close(p[1]);
	cr_expect_lt(folder_entries("/proc/self/fd"), before);
	loop_free(NULL);
}

Test(loop, its_descriptors_are_closed_at_exec)
{
	bool there[64];
	struct loop *l;
	int added = 0;

	for (int fd = 0; fd < 64; fd++)
		there[fd] = fcntl(fd, F_GETFD) != -1;
	l = loop_new();
	for (int fd = 0; fd < 64; fd++) {
		if (there[fd] || fcntl(fd, F_GETFD) == -1)
			continue;
		cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC, "%d", fd);
		added++;
	}
	cr_expect_gt(added, 0);
	loop_free(l);
}

static void
hear_and_stop(int fd, void *ctx)
{
	(void)fd;
	*(bool *)ctx = true;
	loop_stop(loop);
}

static struct {
	int kept, number;
} refused;

static void
put_back(void *ctx)
{
	(void)ctx;
	cr_assert_eq(dup2(refused.kept, refused.number), refused.number);
}

/* A number without a file stands for a kernel without memory. It has one again when the
 * watch was tried several times. */
Test(loop, a_watch_that_cannot_be_resumed_is_tried_until_it_can)
{
	struct timer *late = timer_open(loop, put_back, NULL);
	bool heard = false;
	struct watch *w;
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(write(p[1], "x", 1), 1);
	w = watch_open(loop, p[0], false, hear_and_stop, &heard);
	watch_pause(w);
	refused.number = p[0];
	refused.kept = fcntl(p[0], F_DUPFD_CLOEXEC, 0);
	close(p[0]);
	watch_resume(w);
	timer_arm(late, NS_PER_S / 4);
	run();
	cr_expect(heard);
	watch_pause(w);
	close(p[0]);
	watch_resume(w);
	watch_close(w);
	timer_close(late);
	close(refused.kept);
	close(p[1]);
}

/* A process of its own: the filter stays. */
Test(loop, a_kernel_that_does_not_let_it_wait_ends_it)
{
	struct loop *l = loop_new();
	int64_t begun = clock_now();

#ifdef SYS_epoll_wait
	cr_assert_eq(seccomp_refuse(SYS_epoll_wait, EPERM), 0);
#else
	cr_assert_eq(seccomp_refuse(SYS_epoll_pwait, EPERM), 0);
#endif
	loop_run(l);
	cr_expect_geq(clock_now() - begun, NS_PER_S / 2);
	cr_expect_lt(clock_now() - begun, 20 * NS_PER_S);
	loop_free(l);
}
