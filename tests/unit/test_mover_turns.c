/* SPDX-License-Identifier: Apache-2.0 */
/* test_mover_turns.c - the mover's thread turn by turn, and what the loop asks of it. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/mover_inner.h"
#include "launcher/log/sink.h"
#include "launcher/log/thread.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/told.h"

#define DROPS  UINT64_MAX
#define ALL    SINK_SWEPT_ALL
#define A_TURN 64 /* streams that epoll gives at once */

/* What the next waits give: @n events of @from and the streams behind it. */
static struct {
	int n, sys;
	uint64_t from;
	uint32_t events;
	unsigned stalls; /* so many streams have no room from then on */
	int64_t passes;  /* time while it waits */
} waits[16];

static struct {
	unsigned waits; /* that came */
	int64_t now, tick;
	int sys_thread, threads;
	bool retry[2], writer, leaves, deaf;
} is;

static struct raw_share *share;
static struct mover *m;
static struct mover_config config;
static struct notes the_notes = { 98, 99 };
static char the_sink[2];
static void *(*thread)(void *);
static void *thread_arg;
static jmp_buf at_wait;

int __wrap_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);
int __wrap_epoll_wait(int epoll, struct epoll_event *e, int most, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int64_t __wrap_clock_now(void);
void __wrap_move_serve(struct mover *of, uint32_t stream, uint32_t events);
void __wrap_move_retry(struct mover *of);
void __wrap_move_reclaimed(struct mover *of, bool freed);
void __wrap_move_drop(struct mover *of, uint32_t stream);
void __wrap_move_close(struct mover *of, uint32_t stream);
bool __wrap_move_listen(struct mover *of, uint32_t stream);
void __wrap_move_deaf(struct mover *of, uint32_t stream);
bool __wrap_move_has_writer(const struct mover *of, uint32_t stream);
void __wrap_notes_flush(const struct notes *notes, struct notes_held *held);
void __wrap_sink_swept(struct sink *sink, int64_t when);
void __wrap_sink_round(struct sink *sink, int64_t when);
bool __wrap_sink_retry(struct sink *sink);
bool __wrap_raw_leave(struct raw_share *of, uint32_t stream);

int
__wrap_thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	cr_assert_not_null(t);
	tell("thread ");
	is.threads++;
	thread = fn;
	thread_arg = arg;
	return is.sys_thread;
}

int
__wrap_epoll_wait(int epoll, struct epoll_event *e, int most, int ms)
{
	unsigned i = is.waits++;
	int n = waits[i].n;

	cr_assert_eq(epoll, mover_fd(m));
	cr_assert_eq(most, A_TURN);
	tell("wait %d ", ms);
	if (n == 0 && ms != 0)
		longjmp(at_wait, 1);
	is.now += waits[i].passes;
	if (waits[i].stalls > 0)
		m->stalled = waits[i].stalls;
	errno = waits[i].sys;
	for (int k = 0; k < n; k++) {
		e[k].events = waits[i].events;
		e[k].data.u64 = waits[i].from == DROPS ?
			DROPS :
			waits[i].from + (uint64_t)k;
	}
	return n;
}

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	cr_assert_null(p);
	tell("pause %d %d ", (int)n, ms);
	return 0;
}

int64_t
__wrap_clock_now(void)
{
	is.now += is.tick;
	return is.now;
}

void
__wrap_move_serve(struct mover *of, uint32_t stream, uint32_t events)
{
	cr_assert_eq(of, m);
	if (stream < 4)
		tell("serve %u %x ", stream, events);
}

void
__wrap_move_retry(struct mover *of)
{
	cr_assert_eq(of, m);
	tell("retry at %lld ", (long long)is.now);
}

void
__wrap_move_reclaimed(struct mover *of, bool freed)
{
	cr_assert_eq(of, m);
	tell("reclaimed %d ", freed);
}

void
__wrap_move_drop(struct mover *of, uint32_t stream)
{
	cr_assert_eq(of, m);
	tell("drop %u ", stream);
}

void
__wrap_move_close(struct mover *of, uint32_t stream)
{
	cr_assert_eq(of, m);
	tell("close %u ", stream);
}

bool
__wrap_move_listen(struct mover *of, uint32_t stream)
{
	const struct raw_slot *slot = &of->config.share->slot[stream];

	tell("listen %u: %d %d ", stream, slot->pipe, slot->tty);
	return !is.deaf;
}

void
__wrap_move_deaf(struct mover *of, uint32_t stream)
{
	cr_assert_eq(of, m);
	tell("deaf %u ", stream);
}

bool
__wrap_move_has_writer(const struct mover *of, uint32_t stream)
{
	cr_assert_eq(of, m);
	tell("writer %u? ", stream);
	return is.writer;
}

void
__wrap_notes_flush(const struct notes *notes, struct notes_held *held)
{
	cr_assert_eq(notes, &the_notes);
	cr_assert_eq(held, &m->ended);
	tell("flush ");
}

void
__wrap_sink_swept(struct sink *sink, int64_t when)
{
	int n = (void *)sink == (void *)&the_sink[1];

	if (when == ALL)
		tell("all%d ", n);
	else
		tell("swept%d %lld ", n, (long long)when);
}

void
__wrap_sink_round(struct sink *sink, int64_t when)
{
	tell("round%d %lld ", (void *)sink == (void *)&the_sink[1],
		(long long)when);
}

bool
__wrap_sink_retry(struct sink *sink)
{
	return is.retry[(void *)sink == (void *)&the_sink[1]];
}

bool
__wrap_raw_leave(struct raw_share *of, uint32_t stream)
{
	cr_assert_eq(of, share);
	tell("leave %u ", stream);
	return is.leaves;
}

/* --- the scene -------------------------------------------------------------- */

/* Each stays until the test ends: its thread is none. */
static void
open_mover(uint32_t ranks)
{
	static void *kept[8];
	static size_t count;

	share = raw_share_new(ranks, 0, 80);
	cr_assert_not_null(share);
	share->reserve = 44;
	share->before = 55;
	config = (struct mover_config){ .share = share,
		.notes = &the_notes,
		.sink = { (struct sink *)&the_sink[0], NULL } };
	m = mover_open(&config);
	cr_assert_not_null(m);
	cr_assert_leq(count + 2, sizeof(kept) / sizeof(kept[0]));
	kept[count++] = m;
	kept[count++] = share;
}

static void
begin(void)
{
	alarm(20); /* where a loop has no end */
	is.now = 1000;
	open_mover(2);
}

TestSuite(mover_turns, .init = begin);

static void
expect_told(const char *want)
{
	cr_expect_str_eq(told, want, "'%s', not '%s'", told, want);
	told[0] = '\0';
	told_len = 0;
}

/* The thread, until it waits for something that does not come. */
static void
run(void)
{
	is.waits = 0;
	if (thread == NULL)
		cr_assert_eq(mover_start(m), 0);
	told[0] = '\0';
	told_len = 0;
	if (setjmp(at_wait) == 0)
		thread(thread_arg);
}

/* --- the thread ------------------------------------------------------------- */

Test(mover_turns, a_mover_begins_with_what_the_share_knows)
{
	cr_expect_eq(m->reserve.size, 44);
	cr_expect_eq(m->written, 55);
	cr_expect_eq(m->large, MOVER_LARGE);
	cr_expect_eq(m->config.share, share);
	share->large = 7;
	m = mover_open(&config);
	cr_expect_eq(m->large, 7);
	cr_expect_eq(fcntl(m->drops, F_GETFD), FD_CLOEXEC);
	cr_expect_neq(fcntl(m->drops, F_GETFL) & O_NONBLOCK, 0);
	cr_expect_eq(fcntl(m->epoll, F_GETFD), FD_CLOEXEC);
}

Test(mover_turns, without_events_all_is_told_and_it_waits)
{
	run();
	expect_told("wait 0 all0 wait -1 ");
	is.retry[0] = true;
	run();
	expect_told("wait 0 all0 wait 100 ");
	m->stalled = 1;
	run();
	expect_told("wait 0 all0 wait 100 ");
	is.retry[0] = false;
	run();
	expect_told("wait 0 all0 wait 1000 ");
	m->config.sink[0] = NULL;
	run();
	expect_told("wait 0 wait 1000 ");
	m->config.sink[1] = (struct sink *)&the_sink[1];
	m->stalled = 0;
	is.retry[1] = true;
	run();
	expect_told("wait 0 all1 wait 100 ");
}

Test(mover_turns, a_turn_after_a_wait_begins_a_round)
{
	waits[1].n = 2;
	waits[1].from = 1;
	waits[1].events = EPOLLIN | EPOLLHUP;
	waits[1].passes = 50;
	run();
	expect_told("wait 0 all0 wait -1 round0 1050 swept0 1050 round0 1050 "
		    "serve 1 11 serve 2 11 flush wait 0 all0 wait -1 ");
	cr_expect_eq(m->round, 1050);
	cr_expect_eq(m->owed, 0);
}

Test(mover_turns, a_turn_without_a_wait_is_the_next_round)
{
	m->round = 900;
	waits[0].n = 1;
	waits[0].from = 3;
	waits[0].events = EPOLLIN;
	waits[1].n = 1;
	run();
	expect_told("wait 0 swept0 900 round0 1000 serve 3 1 flush "
		    "wait 0 swept0 1000 round0 1000 serve 0 0 flush "
		    "wait 0 all0 wait -1 ");
}

Test(mover_turns, a_round_is_over_when_each_stream_had_its_turn)
{
	open_mover(70);
	thread = NULL;
	m->round = 900;
	is.tick = 1;
	for (int i = 0; i < 4; i++) {
		waits[i].n = i == 3 ? A_TURN - 1 : A_TURN;
		waits[i].from = 10;
	}
	run();
	/* 140 streams: three times 64. */
	expect_told(
		"wait 0 swept0 900 round0 1001 flush wait 0 flush wait 0 flush "
		"wait 0 swept0 1001 round0 1002 flush wait 0 all0 wait -1 ");
}

Test(mover_turns, a_short_turn_ends_a_round)
{
	open_mover(70);
	thread = NULL;
	m->round = 900;
	is.tick = 1;
	waits[0].n = A_TURN;
	waits[1].n = A_TURN - 1;
	waits[2].n = 1;
	waits[0].from = waits[1].from = waits[2].from = 10;
	run();
	expect_told(
		"wait 0 swept0 900 round0 1001 flush wait 0 flush "
		"wait 0 swept0 1001 round0 1002 flush wait 0 all0 wait -1 ");
}

Test(mover_turns, a_wait_that_is_refused_makes_a_pause)
{
	waits[0].n = -1;
	waits[0].sys = EBADF;
	waits[1].n = -1;
	waits[1].sys = EINTR;
	run();
	expect_told(
		"wait 0 pause 0 1 swept0 0 round0 1000 flush "
		"wait 0 swept0 1000 round0 1000 flush wait 0 all0 wait -1 ");
}

Test(mover_turns, streams_without_room_are_tried_once_a_second)
{
	is.now = 0;
	for (int i = 0; i < 5; i++) {
		waits[i].n = 1;
		waits[i].from = 3;
		waits[i].passes = i == 0 ? 5 :
			i == 1           ? NS_PER_S - 1 :
			i == 2           ? 1 :
					   0;
		waits[i].stalls = 2;
	}
	m->config.sink[0] = NULL;
	run();
	expect_told("wait 0 serve 3 0 retry at 5 flush "
		    "wait 0 serve 3 0 flush "
		    "wait 0 serve 3 0 retry at 1000000005 flush "
		    "wait 0 serve 3 0 flush wait 0 serve 3 0 flush "
		    "wait 0 wait 1000 ");
	m->stalled = 0;
	memset(waits, 0, sizeof(waits));
	waits[0].n = 1;
	waits[0].from = 3;
	run();
	expect_told("wait 0 serve 3 0 flush wait 0 wait -1 ");
}

Test(mover_turns, without_memory_there_is_none)
{
	size_t before = 0;

	for (int i = 0; i < 40; i++) {
		until_short = i % 2 == 0 ? 1 : 2;
		cr_expect_null(mover_open(&config));
		cr_expect_eq(until_short, 0);
		if (i == 20)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}

/* --- what the loop has for it ------------------------------------------------- */

Test(mover_turns, what_the_loop_drops_is_dropped_as_often)
{
	cr_expect_eq(mover_drop(m, 2), DROP_LATER);
	cr_expect_eq(mover_drop(m, 2), DROP_LATER);
	cr_expect_eq(mover_drop(m, 2), DROP_LATER);
	cr_expect_eq(mover_drop(m, 0), DROP_LATER);
	expect_told("thread ");
	cr_expect_eq(m->stream[2].drops, 2);
	m->config.sink[0] = NULL;
	waits[0].n = 1;
	waits[0].from = DROPS;
	run();
	expect_told("wait 0 drop 0 drop 2 drop 2 flush wait 0 wait -1 ");
	cr_expect_eq(m->stream[2].drops, 0);
	cr_expect_eq(m->stream[0].drops, 0);
	/* The event is read: without another call there is nothing. */
	m->stream[1].drops = 1;
	run();
	expect_told("wait 0 flush wait 0 wait -1 ");
}

Test(mover_turns, what_was_reclaimed_is_told_once)
{
	m->config.sink[0] = NULL;
	waits[0].n = 1;
	waits[0].from = DROPS;
	mover_reclaimed(m, true);
	run();
	expect_told("wait 0 reclaimed 1 flush wait 0 wait -1 ");
	mover_reclaimed(m, false);
	run();
	expect_told("wait 0 reclaimed 0 flush wait 0 wait -1 ");
	cr_expect_eq(mover_drop(m, 1), DROP_LATER);
	run();
	expect_told("wait 0 drop 1 flush wait 0 wait -1 ");
}

Test(mover_turns, one_thread_is_made)
{
	is.sys_thread = EAGAIN;
	cr_expect_eq(mover_start(m), EAGAIN);
	cr_expect_not(m->started);
	is.sys_thread = 0;
	cr_expect_eq(mover_start(m), 0);
	cr_expect(m->started);
	cr_expect_eq(mover_start(m), 0);
	expect_told("thread thread ");
	cr_expect_eq(thread_arg, m);
}

/* --- without a thread ----------------------------------------------------------- */

Test(mover_turns, without_a_thread_the_pipe_is_left)
{
	is.sys_thread = EAGAIN;
	for (int i = 0; i < 4; i++)
		share->slot[i].pipe = i;
	is.writer = is.leaves = true;
	cr_expect_eq(mover_drop(m, 0), DROP_LEFT_OPEN);
	expect_told("thread writer 0? deaf 0 leave 0 ");
	cr_expect_eq(mover_drop(m, 0), DROP_LATER);
	expect_told("");
	is.leaves = is.writer = false;
	cr_expect_eq(mover_drop(m, 1), DROP_OVER);
	expect_told("thread writer 1? deaf 1 leave 1 close 1 ");
	share->slot[2].pipe = -1;
	cr_expect_eq(mover_drop(m, 2), DROP_LATER);
	expect_told("thread ");
	cr_expect_not(m->stream[2].left);
}

Test(mover_turns, the_loop_ends_what_hung_up)
{
	uint32_t ended[MOVER_PEEK], n = 9;

	waits[0].n = 2;
	waits[0].from = 1;
	waits[0].events = EPOLLHUP;
	cr_expect_not(mover_peek(m, ended, &n));
	cr_expect_eq(n, 2);
	cr_expect_eq(ended[0], 1);
	cr_expect_eq(ended[1], 2);
	expect_told("wait 0 close 1 close 2 ");
	is.waits = 0;
	share->slot[1].tty = 0; /* may have bytes still */
	cr_expect(mover_peek(m, ended, &n));
	cr_expect_eq(n, 1);
	cr_expect_eq(ended[0], 2);
	expect_told("wait 0 close 2 ");
	is.waits = 0;
	waits[0].from = 2;
	waits[0].events = EPOLLIN | EPOLLHUP;
	cr_expect(mover_peek(m, ended, &n));
	cr_expect_eq(n, 0);
	expect_told("wait 0 ");
	is.waits = 0;
	waits[0].n = -1;
	cr_expect_not(mover_peek(m, ended, &n));
	cr_expect_eq(n, 0);
	m->started = true;
	told[0] = '\0';
	told_len = 0;
	cr_expect(mover_peek(m, ended, &n));
	expect_told("");
}

/* --- streams ---------------------------------------------------------------------- */

Test(mover_turns, a_stream_is_added_before_it_is_heard)
{
	cr_expect(mover_add(m, 1, 33));
	expect_told("listen 1: 33 -1 ");
	cr_expect_eq(share->slot[1].pipe, 33);
	is.deaf = true;
	cr_expect_not(mover_add(m, 1, 34));
	cr_expect_eq(share->slot[1].pipe, -1);
}

/* The two descriptors that are given next. */
static void
free_descriptors(int fd[2])
{
	fd[0] = dup(STDOUT_FILENO);
	fd[1] = dup(STDOUT_FILENO);
	fd_close(fd[0]);
	fd_close(fd[1]);
}

Test(mover_turns, a_terminal_has_a_pipe_behind_it)
{
	int next[2], after[2];

	free_descriptors(next);
	cr_expect(mover_add_tty(m, 1, 0));
	cr_expect_eq(share->slot[1].pipe, next[0]);
	cr_expect_eq(share->slot[1].fill, next[1]);
	cr_expect_eq(share->slot[1].tty, 0);
	cr_expect_eq(fcntl(next[0], F_GETFD), FD_CLOEXEC);
	free_descriptors(next);
	is.deaf = true;
	cr_expect_not(mover_add_tty(m, 2, 0));
	cr_expect_eq(share->slot[2].pipe, -1);
	cr_expect_eq(share->slot[2].fill, -1);
	cr_expect_eq(share->slot[2].tty, -1);
	free_descriptors(after);
	cr_expect_eq(after[0], next[0]);
	cr_expect_eq(after[1], next[1]);
}

Test(mover_turns, what_is_asked_of_it)
{
	share->slot[2].moved = 12;
	m->stream[2].last_ns = 13;
	cr_expect_eq(mover_bytes(m, 2), 12);
	cr_expect_eq(mover_last(m, 2), 13);
	cr_expect_not(m->tell_first);
	mover_tell_first(m);
	cr_expect(m->tell_first);
	cr_expect_eq(mover_fd(m), m->epoll);
}
