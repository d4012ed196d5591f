/* SPDX-License-Identifier: Apache-2.0 */
/* test_sink_calls.c - what loop and mover leave for a sink's thread, and when it is woken. */
#include <fcntl.h>
#include <malloc.h>

#include "base/fd.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/sink_rig.h"

/* --- the scene -------------------------------------------------------------- */

static void
expect_told(const char *want)
{
	cr_expect_str_eq(told, want, "'%s', not '%s'", told, want);
	told[0] = '\0';
	told_len = 0;
}

static void
begin(void)
{
	share = raw_share_new(2, 0, 80);
	config = (struct sink_config){ .id = 3,
		.fd = 90,
		.dir = 80,
		.streams = 4,
		.base = 10,
		.shown = shown,
		.notes = &the_notes,
		.share = share };
	is.now_most = 1000;
}

/* Each stays until the test ends: some are in a state that the product does not know. */
static void
open_sink(void)
{
	static struct sink *kept[8];
	static size_t count;

	s = sink_open(&config);
	cr_assert_not_null(s);
	cr_assert_lt(count, sizeof(kept) / sizeof(kept[0]));
	kept[count++] = s;
	told[0] = '\0';
	told_len = 0;
}

TestSuite(sink_calls, .init = begin);

/* As the thread says before it sleeps. */
static void
sleeps(bool settled)
{
	TAILQ_INIT(&s->grown);
	for (int i = 0; i < 4; i++)
		s->feed[i].queued = false;
	s->started = s->asleep = true;
	s->settled = settled;
}

/* --- opened ----------------------------------------------------------------- */

Test(sink_calls, how_it_begins)
{
	static struct sink *second; /* as in open_sink() */

	config.filter = config.narrow = config.times = true;
	open_sink();
	cr_expect_eq(s->lines.out, &s->out);
	cr_expect(s->lines.filter);
	cr_expect(s->lines.narrow);
	cr_expect(s->lines.clocked);
	cr_expect_not(s->lines.rows);
	cr_expect_null(s->lines.view);
	cr_expect_eq(s->swept, SINK_SWEPT_ALL);
	cr_expect_eq(fcntl(s->epoll, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(fcntl(s->wake, F_GETFD), FD_CLOEXEC);
	for (uint32_t i = 0; i < 4; i++) {
		const struct feed *f = &s->feed[i];

		cr_expect_eq(f->stream, i);
		cr_expect_eq(f->line.number, i);
		cr_expect_eq(f->named, 10 + i);
		cr_expect_eq(f->share, share);
		cr_expect_eq(f->piece.border, PIECE_NONE);
		cr_expect_eq(f->file, -1);
		cr_expect_eq(f->new_file, -1);
		cr_expect_eq(f->pipe, -1);
	}
	cr_expect(TAILQ_EMPTY(&s->grown));
	cr_expect(TAILQ_EMPTY(&s->ready));
	cr_expect(TAILQ_EMPTY(&s->parked));
	cr_expect(TAILQ_EMPTY(&s->waiting));
	config.filter = false;
	second = sink_open(&config);
	cr_expect_not_null(second);
	expect_told("watch 80000001 as -1 ");
}

Test(sink_calls, a_view_has_what_the_sink_has)
{
	static struct route route;

	config.view = &route;
	config.filter = config.narrow = true;
	open_sink();
	cr_expect_eq(view_config.out, &s->out);
	cr_expect_eq(view_config.route, &route);
	cr_expect_eq(view_config.fd, 90);
	cr_expect(view_config.tty);
	cr_expect(view_config.narrow);
	cr_expect_not(view_config.screen);
	cr_expect_not(view_config.collapse);
	cr_expect_not(view_config.stored);
	cr_expect_eq((void *)s->lines.view, (void *)&a_view);
	config.filter = config.narrow = false;
	config.screen = config.collapse = true;
	open_sink();
	cr_expect_not(view_config.tty);
	cr_expect_not(view_config.narrow);
	cr_expect(view_config.screen);
	cr_expect(view_config.collapse);
}

Test(sink_calls, why_it_cannot_be_opened)
{
	static struct route route;
	size_t before = 0;
	int next = dup(STDOUT_FILENO);

	fd_close(next);
	config.view = &route;
	for (int i = 0; i < 60; i++) {
		is.sys_epoll = i % 6 == 0 ? EMFILE : 0;
		is.sys_wake = i % 6 == 1 ? EMFILE : 0;
		is.sys_watch = i % 6 == 2 ? ENOSPC : 0;
		is.no_view = i % 6 == 3;
		until_short = i % 6 == 4 ? 1 : i % 6 == 5 ? 2 : 0;
		cr_expect_null(sink_open(&config), "%d", i);
		if (i == 5)
			expect_told(
				"free none free none watch 80000001 as -1 free none "
				"watch 80000001 as -1 free none free none ");
		if (i == 41)
			before = mallinfo2().uordblks;
		if (i > 5) {
			told[0] = '\0';
			told_len = 0;
		}
	}
	cr_expect_eq(mallinfo2().uordblks, before);
	cr_expect_eq(dup(STDOUT_FILENO), next);
}

/* --- the thread ---------------------------------------------------------------- */

Test(sink_calls, a_thread_is_made_once_with_what_it_needs)
{
	open_sink();
	cr_expect_eq(sink_start(s), 0);
	cr_expect_eq(sink_start(s), 0);
	expect_told("thread ");
	cr_expect(s->started);
	cr_expect_eq(s->refused, 0);
	cr_expect_eq(malloc_usable_size(s->scratch) >= FEED_CHUNK + LINE_HOLD,
		true);
	cr_expect_geq(s->out.cap, SINK_OUT_FIRST);
	cr_expect_eq(s->out.len, 0);
	cr_expect_not(sink_retry(s));
}

Test(sink_calls, a_thread_that_was_refused_is_tried_again)
{
	open_sink();
	cr_expect_not(sink_retry(s), "nobody asked for one");
	expect_told("");
	is.sys_thread = EAGAIN;
	cr_expect_eq(sink_start(s), EAGAIN);
	cr_expect_not(s->started);
	cr_expect_eq(s->refused, EAGAIN);
	cr_expect(sink_retry(s));
	expect_told("thread thread ");
	is.sys_thread = 0;
	cr_expect_not(sink_retry(s));
	cr_expect_not(sink_retry(s));
	expect_told("thread ");
	cr_expect_eq(s->refused, 0);
	s->refused = EAGAIN; /* another thread has made it meanwhile */
	cr_expect_not(sink_retry(s));
	expect_told("");
}

Test(sink_calls, without_memory_for_it_there_is_no_thread)
{
	open_sink();
	for (unsigned i = 1; i <= 2; i++) {
		until_short = i;
		cr_expect_eq(sink_start(s), ENOMEM, "%u", i);
		cr_expect_not(s->started);
		cr_expect_eq(s->refused, ENOMEM);
		cr_expect_eq(until_short, 0);
		if (i == 1)
			cr_expect_null(s->scratch);
	}
	expect_told("");
	most_asked = 0;
	cr_expect_eq(sink_start(s), 0);
	cr_expect_geq(most_asked, SINK_OUT_FIRST);
}

/* --- bytes in files --------------------------------------------------------------- */

Test(sink_calls, what_grew_is_queued_once_and_wakes_who_sleeps)
{
	struct feed *f;

	open_sink();
	f = &s->feed[1];
	sink_round(s, 44);
	sink_grew(s, 1, 31, 5, false);
	expect_told("thread ");
	cr_expect_eq(f->new_file, 31);
	cr_expect_eq(f->new_end, 5);
	cr_expect_not(f->new_eof);
	cr_expect_eq(f->new_came, 44);
	cr_expect(f->queued);
	cr_expect_eq(TAILQ_FIRST(&s->grown), f);
	cr_expect_eq(s->announced, 5);
	sink_grew(s, 1, 32, 9, true);
	expect_told("");
	cr_expect_eq(f->new_file, 32);
	cr_expect(f->new_eof);
	cr_expect_eq(s->announced, 9);
	sink_grew(s, 0, 30, 1, false);
	cr_expect_eq(TAILQ_NEXT(f, queue), &s->feed[0]);
	cr_expect_null(TAILQ_NEXT(&s->feed[0], queue));
	sleeps(false);
	sink_grew(s, 1, 32, 10, false);
	expect_told("wake ");
	cr_expect_not(s->asleep);
	sink_grew(s, 1, 32, 11, false);
	expect_told("");
	cr_expect_eq(sink_backlog(s), 12);
	s->delivered = 2;
	cr_expect_eq(sink_backlog(s), 10);
	s->config.dir = -1;
	cr_expect_eq(sink_backlog(s), 0);
}

Test(sink_calls, what_nobody_sees_wakes_nobody)
{
	open_sink();
	sink_grew(s, 2, 31, 5, true);
	sink_grew(s, 1, 31, 0, true);
	expect_told("");
	cr_expect(TAILQ_EMPTY(&s->grown));
	cr_expect_eq(s->announced, 0);
	s->feed[1].unstored = &an_unstored;
	sink_grew(s, 1, 31, 0, true);
	expect_told("thread ");
	cr_expect(s->feed[1].new_eof);
}

/* Its lines are all shown: its end is taken with what comes next. */
Test(sink_calls, an_end_without_news_wakes_nobody)
{
	open_sink();
	s->feed[1].new_end = 5;
	sleeps(true);
	sink_grew(s, 1, 31, 5, true);
	expect_told("");
	cr_expect(s->feed[1].new_eof);
	cr_expect(s->feed[1].queued);
	cr_expect(s->asleep);
	sleeps(false);
	sink_grew(s, 1, 31, 5, true);
	expect_told("wake ");
	sleeps(true);
	sink_grew(s, 1, 31, 6, true);
	expect_told("wake ");
	sleeps(true);
	s->asleep = false;
	sink_grew(s, 1, 31, 6, true);
	expect_told("");
	cr_expect_not(s->asleep);
}

Test(sink_calls, times_are_marked_if_lines_bear_them)
{
	config.times = true;
	open_sink();
	sink_grew(s, 1, 31, 5, false);
	expect_told("mark 1 5 77 thread ");
}

Test(sink_calls, what_found_no_room_was_announced)
{
	open_sink();
	is.added = 7;
	sink_round(s, 44);
	sink_unstored(s, 1, 100, (struct span){ "abc", 3 }, true);
	expect_told("new add 100 3 dropped thread ");
	cr_expect_eq(s->announced, 7);
	cr_expect_eq(s->feed[1].new_came, 44);
	cr_expect_eq(s->feed[1].unstored, &an_unstored);
	cr_expect(s->feed[1].queued);
	sleeps(true);
	is.added = 0;
	sink_unstored(s, 1, 100, (struct span){ "abc", 3 }, false);
	expect_told("add 100 3 ");
	cr_expect(TAILQ_EMPTY(&s->grown));
	is.added = 1;
	sink_unstored(s, 1, 100, (struct span){ "abc", 3 }, false);
	expect_told("add 100 3 wake ");
	cr_expect_eq(s->announced, 8);
	sink_unstored(s, 2, 100, (struct span){ "abc", 3 }, false);
	expect_told("");
	is.no_unstored = true;
	sink_unstored(s, 3, 100, (struct span){ "abc", 3 }, false);
	expect_told("new ");
	/* What is stored up to there was announced, too. */
	an_unstored.pending = 20;
	s->announced = 0;
	s->feed[1].new_end = 10;
	sink_grew(s, 1, 31, 20, false);
	cr_expect_eq(s->announced, 0);
	sink_grew(s, 1, 31, 21, false);
	cr_expect_eq(s->announced, 1);
	sink_grew(s, 1, 31, 24, false);
	cr_expect_eq(s->announced, 4);
}

Test(sink_calls, who_asks_is_woken_by_the_next_sweep)
{
	open_sink();
	sleeps(true);
	sink_swept(s, 5);
	cr_expect_eq(s->swept, 5);
	expect_told("");
	s->asks = true;
	sink_swept(s, 6);
	cr_expect_eq(s->swept, 6);
	cr_expect_not(s->asks);
	expect_told("wake ");
	sink_swept(s, 7);
	expect_told("");
}

/* --- pipes --------------------------------------------------------------------------- */

Test(sink_calls, a_pipe_is_read_without_waiting)
{
	int fd[2];

	open_sink();
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_expect(sink_add(s, 1, fd[0]));
	expect_told("watch 1 as 1 ");
	cr_expect_eq(s->feed[1].pipe, fd[0]);
	cr_expect_neq(fcntl(fd[0], F_GETFL) & O_NONBLOCK, 0);
	cr_expect_not(sink_add(s, 1, fd[0]), "it is watched already");
	cr_expect_eq(s->feed[1].pipe, -1);
	cr_expect_not(sink_add(s, 0, -1));
	cr_expect_eq(s->feed[0].pipe, -1);
	s->feed[1].end = 12;
	s->feed[1].tail = (char *)"abc";
	s->feed[1].tail_len = 3;
	cr_expect_eq(sink_bytes(s, 1), 12);
	cr_expect_eq(sink_tail(s, 1).len, 3);
	cr_expect_eq(sink_tail(s, 1).at[0], 'a');
}

Test(sink_calls, a_pipe_is_dropped_by_the_thread)
{
	uint32_t streams[2];

	open_sink();
	cr_expect_eq(sink_drop(s, 3), DROP_LATER);
	cr_expect_eq(sink_drop(s, 1), DROP_LATER);
	expect_told("thread wake wake ");
	cr_assert_eq(s->drops.len, 8);
	memcpy(streams, s->drops.data, 8);
	cr_expect_eq(streams[0], 3);
	cr_expect_eq(streams[1], 1);
}

Test(sink_calls, without_a_thread_a_pipe_is_closed_unread)
{
	int fd[2], next;

	open_sink();
	is.sys_thread = EAGAIN;
	is.writer = true;
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert(sink_add(s, 1, fd[0]));
	cr_assert_eq(write(fd[1], "a", 1), 1);
	next = fd[0];
	told[0] = '\0';
	told_len = 0;
	cr_expect_eq(sink_drop(s, 1), DROP_LEFT_OPEN);
	expect_told("thread deaf ");
	cr_expect_eq(sink_left(s), 1);
	cr_expect_eq(s->feed[1].pipe, -1);
	cr_expect(s->feed[1].over);
	cr_expect_eq(fcntl(next, F_GETFD), -1);
	cr_expect_eq(sink_drop(s, 1), DROP_LATER);
	expect_told("thread ");
	is.writer = false;
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert_eq(dup2(fd[0], STDIN_FILENO), STDIN_FILENO);
	cr_assert(sink_add(s, 3, STDIN_FILENO));
	cr_expect_eq(sink_drop(s, 3), DROP_OVER);
	cr_expect_eq(sink_left(s), 1);
	cr_expect_eq(fcntl(STDIN_FILENO, F_GETFD), -1);
}

/* --- words ------------------------------------------------------------------------------ */

Test(sink_calls, words_wait_for_the_thread)
{
	open_sink();
	sink_say(s, "abc", 3);
	sink_last(s, "de", 2);
	sink_hint(s, "f", 1);
	expect_told("thread wake wake ");
	cr_expect_str_eq(buf_text(&s->words), "abc");
	cr_expect_str_eq(buf_text(&s->last), "de");
	cr_expect_str_eq(buf_text(&s->hint), "f");
	sink_note(s, NOTE_UNREAD, 5, 6);
	expect_told("note 8 5 6 ");
}

Test(sink_calls, a_view_looks_again)
{
	static struct route route;

	open_sink();
	s->started = true;
	sink_look(s, true);
	cr_expect_not(s->lost);
	expect_told("");
	config.view = &route;
	open_sink();
	sink_look(s, true);
	cr_expect_not(s->lost);
	expect_told("");
	s->started = true;
	sink_look(s, false);
	cr_expect_not(s->lost);
	sink_look(s, true);
	cr_expect(s->lost);
	sink_look(s, false);
	cr_expect(s->lost);
	expect_told("wake wake wake ");
}

/* --- the finish ---------------------------------------------------------------------------- */

Test(sink_calls, a_sink_that_was_never_needed_is_over)
{
	int sys = 1;

	open_sink();
	cr_expect_eq(sink_finish(s, &sys), SINK_OVER);
	cr_expect_eq(sys, 0);
	expect_told("");
	cr_expect_not(s->finishing);
}

Test(sink_calls, its_thread_tells_when_it_is_over)
{
	int sys = 1;

	open_sink();
	s->started = true;
	cr_expect_eq(sink_finish(s, &sys), SINK_LATER);
	cr_expect_eq(sys, 0);
	cr_expect(s->finishing);
	expect_told("wake ");
}

Test(sink_calls, a_thread_is_tried_once_more_for_what_waits)
{
	int sys;

	open_sink();
	is.sys_thread = EAGAIN;
	sink_last(s, "words", 5);
	is.sys_thread = 0;
	cr_expect_eq(sink_finish(s, &sys), SINK_LATER);
	expect_told("thread thread ");
}

Test(sink_calls, without_a_thread_the_words_are_said_as_far_as_they_go)
{
	int sys = 1;

	open_sink();
	is.sys_thread = EAGAIN;
	sink_say(s, "words", 5);
	sink_last(s, "last", 4);
	is.now_most = 2;
	told[0] = '\0';
	told_len = 0;
	cr_expect_eq(sink_finish(s, &sys), SINK_AGAIN);
	expect_told("thread say[words] ");
	cr_expect_eq(s->words.len, 3);
	is.now_most = 4;
	cr_expect_eq(sink_finish(s, &sys), SINK_OVER);
	expect_told("thread say[rds] say[last] ");
	cr_expect_eq(sys, 0);
	cr_expect_eq(s->words.len, 0);
	cr_expect_eq(s->last.len, 0);
	sink_say(s, "lost", 4);
	sink_grew(s, 1, 31, 5, true);
	is.now_fails = true;
	told[0] = '\0';
	told_len = 0;
	cr_expect_eq(sink_finish(s, &sys), SINK_OVER);
	expect_told("thread say[lost] ");
	cr_expect_eq(sys, EAGAIN);
	cr_expect_eq(s->words.len, 0);
	sys = 0;
	cr_expect_eq(sink_finish(s, &sys), SINK_OVER, "output is left");
	expect_told("thread ");
	cr_expect_eq(sys, EAGAIN);
}
