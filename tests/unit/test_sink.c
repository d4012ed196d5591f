/* SPDX-License-Identifier: Apache-2.0 */
/* test_sink.c - a sink that cannot read what it is to show. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/burst.h"
#include "launcher/log/raw.h"
#include "launcher/log/route.h"
#include "launcher/log/sink.h"
#include "tests/unit/folder.h"
#include "tests/unit/seccomp.h"

#define STREAMS 4

static struct line_prefix prefix[STREAMS];
static bool shown[STREAMS] = { true, true, true, true };
static struct notes notes;
static struct sink *sink;
static int dir = -1, screen = -1;
static int64_t idle_ns = LINE_IDLE_TTY_NS;
static struct route
	route; /* of ranks whose equal lines are one; or not compiled */

static void
begin(void)
{
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	cr_assert_neq(dir, -1);
	cr_assert_eq(notes_init(&notes), 0);
}

TestSuite(sink, .init = begin, .fini = folder_remove);

static void
open_sink(int files)
{
	struct sink_config config = {
		.id = 7,
		.lines = true,
		.idle_ns = idle_ns,
		.dir = files,
		.streams = STREAMS,
		.prefix = prefix,
		.shown = shown,
		.notes = &notes,
	};
	int fd[2];

	if (route.prefix != NULL) {
		config.prefix = route.prefix;
		config.view = &route;
		config.collapse = true;
	}

	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	screen = fd[0];
	config.fd = fd[1];
	sink = sink_open(&config);
	cr_assert_not_null(sink);
}

/* Stream @named of the mover, which keeps no file open. */
static void
moved(uint32_t named, const char *text)
{
	int fd = raw_open(dir, named);

	cr_assert_eq(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(fd);
}

static struct note
next_note(void)
{
	struct pollfd p = { .fd = notes.rd, .events = POLLIN };
	struct note note = { 0 };

	cr_assert_eq(poll(&p, 1, 20000), 1, "no note came");
	cr_assert_eq(notes_take(&notes, &note, 1), 1);
	return note;
}

static void
expect_note(enum note_kind kind, uint32_t value, int sys)
{
	struct note note = next_note();

	cr_expect_eq(note.kind, kind, "got %d, not %d", note.kind, kind);
	cr_expect_eq(note.value, value);
	cr_expect_eq(note.sys, sys, "%s", strerror(note.sys));
}

static void
expect_screen(const char *want)
{
	char text[256] = "";
	struct pollfd p = { .fd = screen, .events = POLLIN };
	size_t len = 0;

	while (len < strlen(want)) {
		cr_assert_eq(poll(&p, 1, 20000), 1, "only '%s'", text);
		len += (size_t)read(screen, text + len, 255 - len);
		text[len] = '\0';
	}
	cr_expect_str_eq(text, want);
	cr_expect_eq(poll(&p, 1, 0), 0);
}

/* A thread was made, or nothing was to be done. */
static void
finish(void)
{
	int sys = 0;
	enum sink_end end = sink_finish(sink, &sys);

	cr_expect_neq(end, SINK_AGAIN);
	if (end == SINK_OVER)
		notes_send(&notes, NOTE_SINK_DONE, 7, sys);
}

Test(sink, a_pipe_that_cannot_be_watched_stays_its_callers)
{
	int file = open("plain", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	open_sink(-1);
	cr_expect_not(sink_add(sink, 0, file)); /* epoll takes no files */
	fd_close(file);
	sink_drop(sink, 0);
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
}

/* The loop has no time for a reader; words go as far as he takes them. */
Test(sink, without_a_thread_the_loop_waits_for_no_reader)
{
	static char words[32 * 1024], got[sizeof(words)];
	int fd[2], empty[2], sys = -1, again = 0;
	size_t len = 0;

	open_sink(-1);
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert_eq(seccomp_refuse(SYS_clone3, ENOSYS), 0);
	cr_assert_eq(seccomp_refuse_flag(SYS_clone, CLONE_THREAD, EPERM), 0);
	cr_expect(sink_add(sink, 1, fd[0]));
	cr_expect_eq(sink_start(sink), EPERM);
	cr_assert_eq(fd_write_all(fd[1], "whole\nhalf", 10), 0);
	cr_expect_eq(sink_drop(sink, 1), DROP_LEFT_OPEN);
	cr_expect_eq(sink_drop(sink, 1), DROP_LATER, "once");
	cr_expect_eq(sink_left(sink), 1);
	cr_assert_eq(pipe2(empty, O_CLOEXEC), 0);
	cr_expect(sink_add(sink, 2, empty[0]));
	fd_close(empty[1]);
	cr_expect_eq(sink_drop(sink, 2), DROP_OVER);
	cr_expect_eq(sink_left(sink), 1);
	memset(words, 'w', sizeof(words));
	sink_say(sink, words, sizeof(words));
	for (size_t n = sizeof(words); n < 3 * 64 * 1024; n += sizeof(words))
		sink_last(sink, words, sizeof(words));
	while (sink_finish(sink, &sys) == SINK_AGAIN) {
		again++;
		len += (size_t)read(screen, got, sizeof(got));
	}
	cr_expect_gt(again, 0);
	cr_expect_eq(sys, 0);
	cr_assert_eq(fcntl(screen, F_SETFL, O_NONBLOCK), 0);
	for (ssize_t n; (n = read(screen, got, sizeof(got))) > 0;)
		len += (size_t)n;
	cr_expect_eq(len, 3 * 64 * 1024);
	fd_close(fd[1]);
}

Test(sink, without_a_thread_no_file_is_read)
{
	int sys = 0;

	open_sink(dir);
	moved(0, "line\n");
	cr_assert_eq(seccomp_refuse(SYS_clone3, ENOSYS), 0);
	cr_assert_eq(seccomp_refuse_flag(SYS_clone, CLONE_THREAD, EPERM), 0);
	sink_grew(sink, 0, -1, 5, true);
	cr_expect(sink_retry(sink), "the thread is refused again");
	cr_expect_eq(sink_finish(sink, &sys), SINK_OVER);
	cr_expect_eq(sys, EPERM);
	cr_expect_eq(sink_backlog(sink), 5);
}

Test(sink, a_retry_starts_a_thread_that_was_refused)
{
	struct pollfd p = { .events = POLLIN };

	open_sink(dir);
	p.fd = screen;
	moved(0, "line\n");
	cr_expect_not(sink_retry(sink), "no thread was refused");
	cr_assert_eq(fault_arm("thread.start:fail=EAGAIN;nth=1", NULL), XR_OK);
	sink_grew(sink, 0, -1, 5, false);
	cr_expect_eq(poll(&p, 1, 0), 0);
	cr_expect_not(sink_retry(sink), "the thread runs");
	expect_screen("line\n");
	cr_expect_not(sink_retry(sink));
	sink_grew(sink, 0, -1, 5, true);
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
}

Test(sink, a_file_that_is_gone_is_told_and_the_others_go_on)
{
	open_sink(dir);
	moved(2, "of another\n");
	sink_grew(sink, 0, -1, 5, false);
	expect_note(NOTE_UNREAD, 0, ENOENT);
	sink_grew(sink, 2, -1, 11, true);
	expect_screen("of another\n");
	sink_grew(sink, 0, -1, 8, true);
	finish();
	expect_note(NOTE_SINK_DONE, 7, ENOENT);
	cr_expect_eq(sink_backlog(sink), 8);
}

/* Its long line holds the sink: nothing else could come out. */
Test(sink, a_file_that_is_cut_short_gives_the_sink_back)
{
	static char big[LINE_HOLD + 1];
	char got[4096];
	size_t len = 0;

	memset(big, 'x', LINE_HOLD);
	open_sink(dir);
	moved(0, big);
	moved(2, "of another\n");
	sink_grew(sink, 0, -1, LINE_HOLD, false);
	while (len < LINE_HOLD)
		len += (size_t)read(screen, got, sizeof(got));
	cr_assert_eq(truncate("rank-0000/stdout", 0), 0);
	sink_grew(sink, 0, -1, LINE_HOLD + 4, true);
	expect_note(NOTE_UNREAD, 0, ENODATA);
	sink_grew(sink, 2, -1, 11, true);
	expect_screen("\nof another\n");
	finish();
	expect_note(NOTE_SINK_DONE, 7, ENODATA);
	cr_expect_eq(sink_backlog(sink), 4);
}

static int
heard_within(int ms)
{
	struct pollfd p = { .fd = screen, .events = POLLIN };

	return poll(&p, 1, ms);
}

/* No bytes are known of for 200 ms, but some may be on their way. */
Test(sink, a_line_waits_until_all_is_told)
{
	int64_t began = clock_now();

	open_sink(dir);
	sink_swept(sink, began);
	moved(0, "half");
	sink_grew(sink, 0, -1, 4, false);
	cr_expect_eq(heard_within(500), 0, "not while the mover has not told");
	sink_swept(sink, began + NS_PER_MS);
	cr_expect_eq(heard_within(300), 0, "nor of what came before that");
	sink_swept(sink, clock_now());
	expect_screen("half\n");
	moved(0, " a line");
	sink_grew(sink, 0, -1, 11, false);
	cr_expect_eq(heard_within(500), 0, "the next as well");
	moved(0, ", whole\n");
	sink_grew(sink, 0, -1, 19, false);
	sink_swept(sink, SINK_SWEPT_ALL);
	expect_screen("\xe2\x80\xa6 a line, whole\n");
	sink_grew(sink, 0, -1, 19, true);
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
}

/* Feeds that wait for different times: the retry of a file that could not be
 * read comes before the end of another stream's silence. */
Test(sink, a_retry_does_not_wait_for_the_silence_of_a_line)
{
	idle_ns = LINE_IDLE_NS;
	open_sink(dir);
	moved(0, "half");
	sink_grew(sink, 0, -1, 4, false);
	cr_expect_eq(heard_within(1000), 0, "the line is cut after 5 s");
	cr_assert_eq(fault_arm("sink.read:fail=EMFILE;rank=1;nth=1", NULL),
		XR_OK);
	moved(2, "whole\n");
	sink_grew(sink, 2, -1, 6, false);
	expect_screen("whole\n");
	moved(0, " a line\n");
	sink_grew(sink, 0, -1, 12, true);
	expect_screen("half a line\n");
	sink_grew(sink, 2, -1, 6, true);
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
}

Test(sink, for_want_of_descriptors_it_waits)
{
	struct pollfd p = { .fd = notes.rd, .events = POLLIN };
	struct rlimit files, none;
	int gave_up;

	open_sink(dir);
	moved(0, "whole line\nhalf");
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = files;
	none.rlim_cur = 1; /* poll(2) may watch that many */
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	sink_grew(sink, 0, -1, 15, true);
	finish();
	gave_up = poll(&p, 1, 300);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	cr_expect_eq(gave_up, 0);
	expect_screen("whole line\nhalf\n");
	expect_note(NOTE_SINK_DONE, 7, 0);
	cr_expect_eq(sink_backlog(sink), 0);
}

/* A line of two LINE_HOLD without its end, and the write end of its pipe. */
static int
add_endless(uint32_t stream)
{
	static char text[2 * LINE_HOLD];
	int fd[2];

	memset(text, 'a', sizeof(text));
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert(sink_add(sink, stream, fd[0]));
	cr_assert_eq(fd_write_all(fd[1], text, sizeof(text)), 0);
	return fd[1];
}

/* Reads @len bytes of the screen, of which the last are @last. */
static void
expect_last(size_t len, const char *last)
{
	static char got[4 * LINE_HOLD];
	struct pollfd p = { .fd = screen, .events = POLLIN };
	size_t have = 0;

	while (have < len) {
		cr_assert_eq(poll(&p, 1, 20000), 1, "only %zu bytes", have);
		have += (size_t)read(screen, got + have, len - have);
	}
	cr_expect_eq(memcmp(got + len - strlen(last), last, strlen(last)), 0);
	cr_expect_eq(poll(&p, 1, 0), 0);
}

/* Stream 0 holds the sink with its long line. The pipe of 1 still has a writer, that of 2
 * has none; both are given up while their bytes wait. */
Test(sink, of_streams_that_wait_for_a_line_only_one_with_a_writer_is_left_open)
{
	int held, fd[2][2];

	idle_ns = 60 * NS_PER_S;
	open_sink(-1);
	held = add_endless(0);
	cr_assert_eq(sink_start(sink), 0);
	cr_assert_eq(heard_within(20000), 1);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(pipe2(fd[i], O_CLOEXEC), 0);
		cr_assert_eq(fd_write_all(fd[i][1], "one\ntwo\n", 8), 0);
		cr_assert(sink_add(sink, 1 + i, fd[i][0]));
	}
	fd_close(fd[1][1]);
	cr_expect_eq(sink_drop(sink, 2), DROP_LATER);
	cr_expect_eq(sink_drop(sink, 1), DROP_LATER);
	expect_note(NOTE_LEFT_OPEN, 1, 0);
	cr_assert_eq(fd_write_all(fd[0][1], "more\n", 5), 0);
	cr_assert_eq(fd_write_all(held, "\n", 1), 0);
	fd_close(held);
	expect_last(2 * LINE_HOLD + 1 + 16, "\none\ntwo\none\ntwo\n");
	for (uint32_t ended = 0; ended != 7;) {
		struct note note = next_note();

		cr_assert_eq(note.kind, NOTE_EOF);
		ended |= 1u << note.value;
	}
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
	fd_close(fd[0][1]);
}

Test(sink, a_closed_reader_ends_an_unfinished_line_and_all_streams_end)
{
	int end[2];

	cr_assert_eq(sigaction(SIGPIPE,
			     &(struct sigaction){ .sa_handler = SIG_IGN },
			     NULL),
		0);
	open_sink(-1);
	end[0] = add_endless(0); /* holds the sink; the other one waits */
	end[1] = add_endless(2);
	fd_close(screen);
	cr_assert_eq(sink_start(sink), 0);
	expect_note(NOTE_SINK_CLOSED, 7, EPIPE);
	fd_close(end[0]);
	expect_note(NOTE_EOF, 0, 0);
	fd_close(end[1]);
	expect_note(NOTE_EOF, 2, 0);
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
}

/* --- equal lines --- */

static void
collapse_lines(void)
{
	struct route_config config = {
		.ranks = STREAMS / RAW_STREAMS,
		.size = STREAMS / RAW_STREAMS,
		.show = "all",
		.prefix = "auto",
		.collapse = true,
		.everywhere = true,
	};

	cr_assert_eq(route_compile(&route, &config, NULL), XR_OK);
}

/* The stdout of @rank gets a line in the round of the mover that began at @round, and the
 * thread takes it. */
static void
line_of_round(int64_t round, uint32_t rank)
{
	uint32_t number = rank * RAW_STREAMS;

	sink_swept(sink, round);
	sink_round(sink, round);
	moved(number, "all\n");
	sink_grew(sink, number, -1, 4, true);
	while (sink_backlog(sink) > 0)
		poll(NULL, 0, 1);
}

Test(sink, equal_lines_of_one_round_are_one_however_late_they_are_taken)
{
	int64_t round = clock_now();

	collapse_lines();
	open_sink(dir);
	line_of_round(round, 0);
	poll(NULL, 0, 2 * BURST_NS / NS_PER_MS);
	line_of_round(round, 1);
	sink_swept(sink, SINK_SWEPT_ALL);
	finish();
	expect_screen("[0-1] all\n");
	expect_note(NOTE_SINK_DONE, 7, 0);
}

Test(sink, equal_lines_of_rounds_far_apart_are_two_however_late_they_are_taken)
{
	int64_t round = clock_now() - 2 * BURST_NS;

	collapse_lines();
	open_sink(dir);
	line_of_round(round, 0);
	line_of_round(round + BURST_NS, 1);
	sink_swept(sink, SINK_SWEPT_ALL);
	finish();
	expect_screen("[0] all\n[1] all\n");
	expect_note(NOTE_SINK_DONE, 7, 0);
}

/* No rank prints more: a line is shown once the mover has told that nothing else came with
 * it. @late: longer after the line than equal ones are waited for. */
static void
alone(bool late)
{
	collapse_lines();
	open_sink(dir);
	sink_swept(sink, 0);
	sink_round(sink, clock_now());
	moved(0, "all\n");
	sink_grew(sink, 0, -1, 4, false);
	while (sink_backlog(sink) > 0)
		poll(NULL, 0, 1);
	if (late)
		poll(NULL, 0, 2 * BURST_NS / NS_PER_MS);
	sink_swept(sink, SINK_SWEPT_ALL);
	expect_screen("[0] all\n");
	sink_grew(sink, 0, -1, 4, true);
	finish();
	expect_note(NOTE_SINK_DONE, 7, 0);
}

Test(sink, a_line_that_waited_for_equal_ones_is_shown_without_more_output)
{
	alone(false);
}

Test(sink, a_line_that_waited_too_long_for_equal_ones_is_shown)
{
	alone(true);
}
