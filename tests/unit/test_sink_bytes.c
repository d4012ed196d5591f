/* SPDX-License-Identifier: Apache-2.0 */
/* test_sink_bytes.c - bytes as they are, words between them, the times of lines and the
 * numbers that a sink keeps (launcher/log/sink.c, deliver.c). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/modes.h"
#include "launcher/log/prefix.h"
#include "launcher/log/raw.h"
#include "launcher/log/sink.h"
#include "launcher/log/sink_inner.h"
#include "tests/unit/folder.h"

#define STREAMS 3
#define NEVER   (INT64_C(3600) * NS_PER_S)

static struct line_prefix prefix[STREAMS];
static bool shown[STREAMS] = { true, true, false };
static struct notes notes;
static struct modes modes;
static struct sink *sink;
static int screen = -1;
static struct sink_config config;

static void
begin(void)
{
	int fd[2];

	folder_make();
	cr_assert_eq(notes_init(&notes), 0);
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	screen = fd[0];
	config = (struct sink_config){
		.id = 7,
		.fd = fd[1],
		.idle_ns = NEVER,
		.dir = open(".", O_DIRECTORY | O_CLOEXEC),
		.streams = STREAMS,
		.prefix = prefix,
		.shown = shown,
		.notes = &notes,
	};
}

TestSuite(sink_bytes, .init = begin, .fini = folder_remove);

static void
open_sink(void)
{
	sink = sink_open(&config);
	cr_assert_not_null(sink);
	if (config.dir >= 0)
		sink_swept(sink, SINK_SWEPT_ALL);
}

/* Stream @number writes @text, and the mover tells of it. */
static void
moved(uint32_t number, const char *text)
{
	int fd = raw_open(config.dir, number);
	off_t end;

	cr_assert_eq(fd_write_all(fd, text, strlen(text)), 0);
	end = lseek(fd, 0, SEEK_END);
	fd_close(fd);
	sink_grew(sink, number, -1, (uint64_t)end, false);
}

static void
expect_screen(const char *want)
{
	char text[512] = "";
	struct pollfd p = { .fd = screen, .events = POLLIN };
	size_t len = 0;

	while (len < strlen(want)) {
		cr_assert_eq(poll(&p, 1, 20000), 1, "only '%s'", text);
		len += (size_t)read(screen, text + len, 511 - len);
		text[len] = '\0';
	}
	cr_expect_str_eq(text, want);
}

static void
finish(void)
{
	struct pollfd p = { .fd = notes.rd, .events = POLLIN };
	struct note note = { 0 };
	int sys = -1;

	cr_assert_eq(sink_finish(sink, &sys), SINK_LATER);
	cr_expect_eq(sys, 0);
	do
		cr_assert_eq(poll(&p, 1, 20000), 1);
	while (notes_take(&notes, &note, 1) == 1 &&
		note.kind != NOTE_SINK_DONE);
	cr_expect_eq(note.value, 7);
	cr_expect_eq(note.sys, 0);
	cr_assert_eq(fcntl(screen, F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(read(screen, &(char){ 0 }, 1), -1, "more was put");
}

static void
no_thread(void)
{
	cr_assert_eq(fault_arm("thread.start:fail=EAGAIN", NULL), XR_OK);
}

/* --- bytes as they are --- */

Test(sink_bytes, words_begin_a_line_of_their_own)
{
	open_sink();
	moved(0, "ab");
	expect_screen("ab");
	sink_say(sink, "xrun: 1\n", 8);
	expect_screen("\nxrun: 1\n");
	sink_say(sink, "xrun: 2\n", 8);
	expect_screen("xrun: 2\n");
	moved(1, "c\n");
	expect_screen("c\n");
	finish();
}

Test(sink_bytes, the_last_words_come_after_all_output)
{
	open_sink();
	sink_last(sink, "xrun: last\n", 11);
	moved(2, "not shown\n");
	moved(0, "ab");
	expect_screen("ab");
	cr_expect_eq(sink_finish(sink, &(int){ 0 }), SINK_LATER);
	expect_screen("\nxrun: last\n");
}

Test(sink_bytes, a_hint_is_erased_by_the_next_output_once)
{
	open_sink();
	sink_hint(sink, "hint", 4);
	expect_screen("hint");
	moved(0, "one\n");
	expect_screen("\r\033[Kone\n");
	moved(0, "two\n");
	expect_screen("two\n");
	sink_hint(sink, "again", 5);
	expect_screen("again");
	sink_say(sink, "xrun: 1\n", 8);
	expect_screen("\r\033[Kxrun: 1\n");
	finish();
}

Test(sink_bytes, a_hint_comes_after_the_words_before_it)
{
	open_sink();
	no_thread();
	sink_say(sink, "xrun: 1\n", 8);
	sink_hint(sink, "hint", 4);
	fault_armed = false;
	cr_expect_not(sink_retry(sink));
	expect_screen("xrun: 1\nhint");
	finish();
}

Test(sink_bytes, what_a_rank_switched_on_in_the_terminal_is_put_back)
{
	char off[MODES_END_MAX + 1] = "";
	struct modes same = { 0 };

	config.modes = &modes;
	open_sink();
	moved(0, "\033[?25l");
	expect_screen("\033[?25l");
	modes_follow(&same, (struct span){ "\033[?25l", 6 });
	off[modes_end(&same, off)] = '\0';
	cr_expect_neq(off[0], '\0');
	cr_expect_eq(sink_finish(sink, &(int){ 0 }), SINK_LATER);
	expect_screen(off);
}

/* --- a stream whose unfinished line ends --- */

static bool
is_asleep(void)
{
	bool asleep;

	pthread_mutex_lock(&sink->grow_lock);
	asleep = sink->asleep;
	pthread_mutex_unlock(&sink->grow_lock);
	return asleep;
}

/* Nobody waits for its silence, which lasts an hour. */
Test(sink_bytes, the_end_of_a_stream_ends_its_line_at_once)
{
	config.lines = true;
	open_sink();
	moved(0, "half");
	while (!is_asleep())
		poll(NULL, 0, 1);
	sink_grew(sink, 0, -1, 4, true);
	expect_screen("half\n");
}

/* --- numbers --- */

Test(sink_bytes, each_byte_is_announced_once)
{
	open_sink();
	no_thread();
	sink_grew(sink, 0, -1, 5, false);
	cr_expect_eq(sink_backlog(sink), 5);
	sink_grew(sink, 0, -1, 5, false);
	cr_expect_eq(sink_backlog(sink), 5);
	sink_unstored(sink, 0, 5, (struct span){ "abc", 3 }, false);
	cr_expect_eq(sink_backlog(sink), 8);
	sink_unstored(sink, 0, 5, (struct span){ "abc", 3 }, false);
	cr_expect_eq(sink_backlog(sink), 8, "they are known");
	sink_grew(sink, 0, -1, 7, false);
	cr_expect_eq(sink_backlog(sink), 8);
	sink_grew(sink, 0, -1, 9, false);
	cr_expect_eq(sink_backlog(sink), 9);
	sink_grew(sink, 2, -1, 100, false);
	sink_unstored(sink, 2, 0, (struct span){ "abc", 3 }, false);
	cr_expect_eq(sink_backlog(sink), 9, "that stream is not shown");
	sink_unstored(sink, 1, 0, (struct span){ "x", 1 }, true);
	cr_expect_eq(sink_backlog(sink), 10);
}

Test(sink_bytes, what_found_no_room_is_shown_where_it_belongs)
{
	open_sink();
	moved(0, "ab");
	expect_screen("ab");
	while (!is_asleep())
		poll(NULL, 0, 1);
	sink_unstored(sink, 0, 2, (struct span){ "cd", 2 }, false);
	expect_screen("cd");
	moved(0, "cdef");
	expect_screen("ef");
	while (!is_asleep())
		poll(NULL, 0, 1);
	sink_unstored(sink, 0, 6, (struct span){ "lost", 4 }, true);
	expect_screen("lost");
	moved(0, "g");
	expect_screen("g");
	finish();
	cr_expect_eq(sink_backlog(sink), 0);
}

Test(sink_bytes, of_pipes_the_bytes_are_counted_and_the_last_kept)
{
	static char text[FEED_TAIL + 100];
	char got[sizeof(text)];
	struct span tail;
	int fd[2];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 23);
	config.dir = -1;
	open_sink();
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_expect(sink_add(sink, 1, fd[0]));
	cr_assert_eq(sink_start(sink), 0);
	cr_assert_eq(fd_write_all(fd[1], text, sizeof(text)), 0);
	fd_close(fd[1]);
	for (size_t len = 0; len < sizeof(text);)
		len += (size_t)read(screen, got + len, sizeof(got) - len);
	cr_expect_eq(memcmp(got, text, sizeof(text)), 0);
	finish();
	cr_expect_eq(sink_bytes(sink, 1), sizeof(text));
	cr_expect_eq(sink_bytes(sink, 0), 0);
	tail = sink_tail(sink, 1);
	cr_assert_eq(tail.len, FEED_TAIL);
	cr_expect_eq(memcmp(tail.at, text + 100, FEED_TAIL), 0);
	cr_expect_eq(sink_tail(sink, 0).len, 0);
	cr_expect_eq(sink_backlog(sink), 0, "nothing is announced of a pipe");
}

/* --- the times of lines --- */

static void
text_of_time(int64_t wall, char out[PREFIX_TIME + 1])
{
	struct prefix_clock clock = { 0 };

	memcpy(out, prefix_clock(&clock, wall), PREFIX_TIME);
	out[PREFIX_TIME] = '\0';
}

/* Stream 0 writes @text; returns its time, after which it is not that millisecond any
 * more. */
static int64_t
moved_alone(const char *text)
{
	int64_t before = clock_wall() / NS_PER_MS, now;

	do
		now = clock_wall() / NS_PER_MS;
	while (now == before);
	moved(0, text);
	return now * NS_PER_MS;
}

/* The first line of @text bears a time from @from to @to. */
static void
expect_time(const char *text, int64_t from, int64_t to)
{
	char first[PREFIX_TIME + 1], last[PREFIX_TIME + 1];

	text_of_time(from, first);
	text_of_time(to, last);
	if (strcmp(first, last) > 0)
		return; /* midnight */
	cr_expect(strncmp(text, first, PREFIX_TIME) >= 0 &&
			strncmp(text, last, PREFIX_TIME) <= 0,
		"%.12s is not from %s to %s", text, first, last);
}

/* All three are there before the thread takes the first. */
Test(sink_bytes, lines_bear_the_time_when_they_came)
{
	static const char zero[] = "00:00:00.000 ";
	char got[256] = "";
	size_t size = PREFIX_TIME + 3, len = 0;
	int64_t when[4];

	memcpy(prefix[0].text, zero, sizeof(zero) - 1);
	prefix[0].len = sizeof(zero) - 1;
	prefix[0].time = PREFIX_TIME;
	config.lines = config.times = true;
	open_sink();
	no_thread();
	when[0] = moved_alone("a\n");
	when[1] = moved_alone("b\nc");
	when[2] = moved_alone("\nd\n");
	when[3] = moved_alone("");
	sink_grew(sink, 0, -1, 7, true);
	fault_armed = false;
	cr_expect_not(sink_retry(sink));
	while (len < 4 * size)
		len += (size_t)read(screen, got + len, sizeof(got) - 1 - len);
	cr_assert_eq(len, 4 * size);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(memcmp(got + (size_t)i * size + PREFIX_TIME,
				     (char[]){ ' ', (char)('a' + i), '\n' }, 3),
			0, "%s", got);
	expect_time(got, when[0], when[1]);
	expect_time(got + size, when[1], when[2]);
	expect_time(got + 2 * size, when[2], when[3]);
	expect_time(got + 3 * size, when[2], when[3]);
	cr_expect(memcmp(got + size, got, PREFIX_TIME) != 0);
	cr_expect(memcmp(got + 3 * size, got + size, PREFIX_TIME) != 0);
}

/* --- without a thread --- */

Test(sink_bytes, a_reader_that_is_gone_does_not_keep_the_words)
{
	int sys = -1;

	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	open_sink();
	no_thread();
	fd_close(screen);
	sink_say(sink, "xrun: 1\n", 8);
	sink_last(sink, "xrun: 2\n", 8);
	cr_expect_eq(sink_finish(sink, &sys), SINK_OVER);
	cr_expect_eq(sys, 0);
}

Test(sink_bytes, without_anything_to_show_no_thread_is_made)
{
	int sys = -1;

	open_sink();
	sink_grew(sink, 0, -1, 0, true);
	sink_look(sink, true);
	cr_expect_eq(sink_finish(sink, &sys), SINK_OVER);
	cr_expect_eq(sys, 0);
	cr_expect_not(sink->started);
}
