/* SPDX-License-Identifier: Apache-2.0 */
/* test_feed.c - one stream as a sink sees it: a file at an offset, a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/feed.h"
#include "launcher/log/raw.h"
#include "tests/unit/folder.h"
#include "tests/unit/short_memory.h"

#define BIG (3 * FEED_CHUNK + 100)

static char place[] = "/tmp/xrun-feed-XXXXXX";
static char scratch[FEED_CHUNK + LINE_HOLD], big[BIG];
static struct feed feed;
static struct span data;
static int dir = -1, writer = -1;

static void
begin(void)
{
	cr_assert_not_null(mkdtemp(place));
	dir = open(place, O_DIRECTORY | O_CLOEXEC);
	feed = (struct feed){ .file = -1, .pipe = -1 };
	for (size_t i = 0; i < BIG; i++)
		big[i] = (char)(i * 31 >> 3);
}

static void
end(void)
{
	feed_fini(&feed);
	unlinkat(dir, "rank-0000/stdout", 0);
	unlinkat(dir, "rank-0000", AT_REMOVEDIR);
	fd_close(dir);
	fd_close(writer);
	rmdir(place);
}

TestSuite(feed, .init = begin, .fini = end);

static bool
peek(void)
{
	return feed_peek(&feed, dir, scratch, &data);
}

static void
expect(const char *at, size_t len)
{
	cr_assert_eq(data.len, len);
	cr_expect_eq(memcmp(data.at, at, len), 0);
}

/* --- files --- */

static int
make_file(const char *at, size_t len)
{
	int fd = raw_open(dir, 0);

	cr_assert_neq(fd, -1);
	cr_assert_eq(fd_write_all(fd, at, len), 0);
	feed.end += len;
	return fd;
}

static void
read_all_of_big(void)
{
	uint64_t at = 0;

	while (at < BIG) {
		cr_assert(peek());
		cr_assert_gt(data.len, 0);
		cr_assert_leq(data.len, FEED_CHUNK);
		cr_expect_eq(memcmp(data.at, big + at, data.len), 0);
		cr_assert(feed_took(&feed, data, data.len - data.len / 3));
		at += data.len - data.len / 3;
		cr_assert_eq(feed.at, at);
	}
	cr_assert(peek());
	cr_expect_eq(data.len, 0);
}

Test(feed, a_file_is_read_at_the_offset_of_its_reader)
{
	feed.file = make_file(big, BIG);
	read_all_of_big();
	fd_close(feed.file);
}

Test(feed, a_file_that_is_not_open_is_found_by_name)
{
	int before = make_file(big, BIG), after;

	fd_close(before);
	read_all_of_big();
	after = dup(STDIN_FILENO);
	cr_expect_eq(after, before, "descriptors are left open");
	fd_close(after);
}

Test(feed, bytes_beyond_what_was_announced_are_not_read)
{
	feed.file = make_file("announced and more", 18);
	feed.end = 9;
	cr_assert(peek());
	expect("announced", 9);
	fd_close(feed.file);
}

Test(feed, what_is_left_of_a_file)
{
	feed.end = 9;
	cr_expect_eq(feed_left(&feed), 9);
	feed.at = 8;
	cr_expect_eq(feed_left(&feed), 1);
	feed.at = 9;
	cr_expect_eq(feed_left(&feed), 0);
	feed.at = 10; /* displayed before it was stored */
	cr_expect_eq(feed_left(&feed), 0);
}

Test(feed, a_file_that_is_gone_says_so)
{
	feed.end = 5;
	cr_expect_not(peek());
	cr_expect_eq(errno, ENOENT);
}

Test(feed, for_an_end_without_bytes_no_file_is_needed)
{
	feed.at = feed.end = 5;
	feed.eof = true;
	cr_assert(peek());
	cr_expect_eq(data.len, 0);
}

Test(feed, a_file_that_was_cut_short_says_so)
{
	feed.file = make_file("shorter", 7);
	feed.end = 100;
	feed.at = 7;
	cr_expect_not(peek());
	cr_expect_eq(errno, ENODATA);
	fd_close(feed.file);
}

/* --- pipes --- */

static void
make_pipe(void)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	feed.pipe = fd[0];
	writer = fd[1];
}

static void
say(const char *text)
{
	cr_assert_eq(fd_write_all(writer, text, strlen(text)), 0);
}

Test(feed, a_pipe_that_is_empty_is_not_at_its_end)
{
	make_pipe();
	cr_assert(peek());
	cr_expect_eq(data.len, 0);
	cr_expect_not(feed.eof);
}

Test(feed, what_was_not_taken_from_a_pipe_comes_again)
{
	make_pipe();
	say("one\ntw");
	cr_assert(peek());
	expect("one\ntw", 6);
	cr_assert(feed_took(&feed, data, 4));
	cr_assert(peek());
	expect("tw", 2);
	cr_assert(feed_took(&feed, data, 0));
	say("o\n");
	cr_assert(peek());
	expect("two\n", 4);
	cr_assert(feed_took(&feed, data, 4));
	cr_expect_eq(feed.held_len, 0);
	cr_expect_eq(feed.end, 8);
	cr_expect_eq(feed.at, 8);
}

Test(feed, a_pipe_whose_lines_are_whole_holds_no_memory)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	feed.pipe = fd[0];
	writer = fd[1];
	cr_assert_eq(write(writer, "one\n", 4), 4);
	cr_assert(peek());
	cr_assert(feed_took(&feed, data, 4));
	cr_expect_null(feed.held);
	cr_expect_eq(feed.held_len, 0);
	cr_assert_eq(write(writer, "two", 3), 3);
	cr_assert(peek());
	cr_assert(feed_took(&feed, data, 2));
	cr_expect_not_null(feed.held);
	cr_expect_eq(feed.held_len, 1);
}

Test(feed, a_closed_pipe_ends_with_what_was_held)
{
	make_pipe();
	say("last");
	cr_assert(peek());
	cr_assert(feed_took(&feed, data, 0));
	cr_expect_not(feed.eof);
	fd_close(writer);
	writer = -1;
	cr_assert(peek());
	cr_expect(feed.eof);
	expect("last", 4);
	cr_assert(feed_took(&feed, data, 4));
	cr_assert(peek());
	cr_expect_eq(data.len, 0);
}

Test(feed, a_dropped_pipe_ends_when_it_is_empty)
{
	make_pipe();
	say("rest");
	cr_expect(feed_drop(&feed));
	cr_expect_not(feed_drop(&feed), "once");
	cr_assert(peek());
	expect("rest", 4);
	cr_expect_not(feed.eof);
	cr_assert(feed_took(&feed, data, 4));
	cr_assert(peek());
	cr_expect(feed.eof);
	cr_expect_eq(data.len, 0);
}

Test(feed, a_dropped_pipe_without_a_writer_is_read_to_its_end)
{
	make_pipe();
	say("rest");
	fd_close(writer);
	writer = -1;
	cr_expect_not(feed_drop(&feed));
	cr_expect_not(feed.dropped);
	cr_assert(peek());
	expect("rest", 4);
	cr_assert(feed_took(&feed, data, 4));
	cr_assert(peek());
	cr_expect(feed.eof);
	cr_expect_eq(data.len, 0);
}

/* FIONREAD counts less than a terminal holds. */
static void
read_dropped_tty(bool open)
{
	struct termios modes;
	size_t len = 0;

	cr_assert_eq(openpty(&feed.pipe, &writer, NULL, NULL, NULL), 0);
	cr_assert_eq(tcgetattr(writer, &modes), 0);
	cfmakeraw(&modes);
	cr_assert_eq(tcsetattr(writer, TCSANOW, &modes), 0);
	cr_assert_eq(fcntl(feed.pipe, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(fd_write_all(writer, big, 6000), 0);
	if (!open) {
		fd_close(writer);
		writer = -1;
	}
	cr_expect_eq(feed_drop(&feed), open);
	while (!feed.eof) {
		cr_assert(peek());
		expect(big + len, data.len);
		len += data.len;
		cr_assert(feed_took(&feed, data, data.len));
	}
	cr_expect_eq(len, 6000);
}

Test(feed, a_dropped_terminal_gives_all_that_it_holds)
{
	read_dropped_tty(true);
}

Test(feed, a_dropped_terminal_without_a_writer_is_read_to_its_end)
{
	read_dropped_tty(false);
}

/* Somebody who goes on writing would otherwise keep it open for ever. */
Test(feed, a_dropped_pipe_ends_under_a_writer)
{
	make_pipe();
	say("rest");
	feed_drop(&feed);
	say(" and more");
	cr_assert(peek());
	expect("rest", 4);
	cr_assert(feed_took(&feed, data, 4));
	cr_assert(peek());
	cr_expect(feed.eof);
	cr_expect_eq(data.len, 0);
}

Test(feed, what_has_no_pipe_is_not_dropped)
{
	feed_drop(&feed);
	cr_expect_not(feed.dropped);
}

Test(feed, more_than_the_hold_is_not_kept)
{
	make_pipe();
	cr_assert_eq(fd_write_all(writer, big, LINE_HOLD), 0);
	cr_assert(peek());
	cr_expect(feed_took(&feed, data, 0));
	cr_expect_eq(feed.held_len, LINE_HOLD);
	say("x");
	cr_assert(peek());
	cr_assert_eq(data.len, LINE_HOLD + 1);
	cr_expect_not(feed_took(&feed, data, 0));
}

/* Whatever the pieces, the account has the last FEED_TAIL bytes. */
Test(feed, the_tail_of_a_pipe_is_its_last_bytes)
{
	for (size_t piece = 1; piece <= 9000; piece = piece * 2 + 1) {
		size_t at = 0, want;

		make_pipe();
		while (at < 12000) {
			size_t len = at + piece > 12000 ? 12000 - at : piece;

			cr_assert_eq(fd_write_all(writer, big + at, len), 0);
			at += len;
			cr_assert(peek());
			cr_assert_eq(data.len, len);
			cr_assert(feed_took(&feed, data, data.len));
			want = at < FEED_TAIL ? at : FEED_TAIL;
			cr_assert_eq(feed.tail_len, want);
			cr_assert_eq(memcmp(feed.tail, big + at - want, want),
				0, "pieces of %zu", piece);
		}
		feed_fini(&feed);
		fd_close(writer);
		writer = -1;
		feed = (struct feed){ .file = -1, .pipe = -1 };
	}
}

/* --- when --- */

static int64_t
when(uint64_t at)
{
	struct feed_mark mark = { 0 };

	return feed_when(&feed, at, &mark) ? mark.wall / NS_PER_MS : -1;
}

Test(feed, a_byte_came_with_the_move_that_brought_it)
{
	cr_expect_eq(when(0), -1);
	feed_mark(&feed, 10, 5 * NS_PER_MS);
	feed_mark(&feed, 20, 7 * NS_PER_MS);
	feed_mark(&feed, 30, 7 * NS_PER_MS + 1000); /* as good as at once */
	feed_mark(&feed, 30, 9 * NS_PER_MS);        /* only its end */
	cr_expect_eq(when(0), 5);
	cr_expect_eq(when(9), 5);
	cr_expect_eq(when(10), 7);
	cr_expect_eq(when(29), 7);
	cr_expect_eq(when(30), -1);
	feed.at = 10;
	cr_expect_eq(when(15), 7);
	cr_expect_eq(feed.marks, 1);
}

Test(feed, a_reader_far_behind_finds_later_times_never_earlier_ones)
{
	for (int64_t i = 1; i <= 1000; i++)
		feed_mark(&feed, (uint64_t)i, i * NS_PER_MS);
	cr_expect_leq(feed.marks, FEED_MARKS);
	for (uint64_t i = 0; i < 1000; i++) {
		int64_t ms = when(i);

		cr_expect_geq(ms, (int64_t)i + 1);
		cr_expect_leq(ms, (int64_t)i + 1000 / 8);
	}
	cr_expect_eq(when(999), 1000);
}

/* --- without memory --- */

Test(feed, without_memory_an_unfinished_line_is_not_held)
{
	make_pipe();
	say("one\ntw");
	until_short = 1;
	cr_assert(peek());
	cr_expect_null(feed.tail);
	cr_expect_eq(feed.tail_len, 0);
	expect("one\ntw", 6);
	until_short = 1;
	cr_expect_not(feed_took(&feed, data, 4));
	cr_expect_eq(feed.held_len, 0);
	/* All of it needs none. */
	until_short = 1;
	say("three");
	cr_assert(peek());
	cr_expect_null(feed.tail);
	cr_expect(feed_took(&feed, data, 5));
	say("four");
	cr_assert(peek());
	cr_expect_eq(feed.tail_len, 4);
	cr_expect(feed_took(&feed, data, 0));
}

Test(feed, without_memory_no_time_is_known)
{
	until_short = 1;
	feed_mark(&feed, 10, 5 * NS_PER_MS);
	cr_expect_eq(when(0), -1);
	feed_mark(&feed, 20, 7 * NS_PER_MS);
	cr_expect_eq(when(0), 7);
}

Test(feed, a_pipe_that_cannot_be_read_says_so)
{
	feed.pipe = open(".", O_DIRECTORY | O_CLOEXEC);
	cr_expect_not(peek());
	cr_expect_eq(errno, EISDIR);
}

/* --- pieces --- */

static struct raw_share *share;
static uint64_t total;

static void
begin_pieces(void)
{
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	share = raw_share_new(1, 0, dir);
	cr_assert_not_null(share);
	share->slot[0].file = raw_open(dir, 0);
	for (int i = 0; i < 30; i++) {
		if (i == 10 || i == 20)
			cr_assert_eq(piece_cut(share, 0, share->slot[0].file),
				0);
		big[i] = (char)('a' + i);
		cr_assert_eq(fd_write_all(share->slot[0].file, &big[i], 1), 0);
		share->slot[0].moved++;
	}
	feed = (struct feed){ .file = -1, .pipe = -1, .share = share };
	feed.piece.start = PIECE_NONE;
	feed.end = 30;
}

static void
end_pieces(void)
{
	feed_fini(&feed);
	fd_close(share->slot[0].file);
	fd_close(dir);
	folder_remove();
}

TestSuite(feed_pieces, .init = begin_pieces, .fini = end_pieces);

/* The piece from offset 10 to 20 is away. */
static void
forget(void)
{
	cr_assert_eq(unlink("rank-0000/stdout.000000000000010"), 0);
}

/* The next bytes are those of the stream from @from up to @to. */
static void
expect_part(uint64_t from, uint64_t to)
{
	cr_assert(peek());
	cr_expect_eq(feed.at, from, "%llu", (unsigned long long)feed.at);
	expect(big + from, to - from);
	cr_assert(feed_took(&feed, data, data.len));
}

Test(feed_pieces, removed_bytes_are_skipped_and_counted)
{
	forget();
	expect_part(0, 10);
	cr_expect_eq(feed.skipped, 0);
	expect_part(20, 30);
	cr_expect_eq(feed.skipped, 10);
	cr_assert(peek());
	cr_expect_eq(data.len, 0);
}

Test(feed_pieces, removed_bytes_at_the_end_are_skipped)
{
	forget();
	feed.at = 10;
	feed.piece.start = 10;
	feed.end = 20;
	cr_assert(peek());
	cr_expect_eq(data.len, 0);
	cr_expect_eq(feed.at, 20);
	cr_expect_eq(feed.skipped, 10);
}

Test(feed_pieces, bytes_without_a_piece_behind_them_cannot_be_read)
{
	forget();
	feed.at = 12;
	feed.piece.start = 10;
	feed.end = 19;
	cr_expect_not(peek());
	cr_expect_eq(errno, ENOENT);
	cr_expect_eq(feed.at, 12);
	cr_expect_eq(feed.skipped, 0);
}

Test(feed_pieces, a_piece_that_cannot_be_read_is_not_skipped)
{
	forget();
	cr_assert_eq(symlink("stdout", "rank-0000/stdout.000000000000010"), 0);
	feed.at = 10;
	cr_expect_not(peek());
	cr_expect_eq(errno, ELOOP);
	cr_expect_eq(feed.at, 10);
}

Test(feed_pieces, a_newest_piece_that_was_cut_short_says_so)
{
	feed.at = 25;
	cr_assert_eq(ftruncate(share->slot[0].file, 5), 0);
	cr_expect_not(peek());
	cr_expect_eq(errno, ENODATA);
}

static void
add_unstored(bool dropped)
{
	memcpy(big + 30, "12345", 5);
	feed.unstored = unstored_new(&total);
	cr_assert_eq(unstored_add(feed.unstored, 30,
			     (struct span){ big + 30, 5 }, dropped),
		5);
	unstored_take(feed.unstored);
}

Test(feed_pieces, pending_bytes_follow_all_pieces)
{
	add_unstored(false);
	cr_expect_eq(feed_left(&feed), 35);
	expect_part(0, 35);
	cr_expect_eq(total, 0);
}

Test(feed_pieces, a_pending_byte_counts_once_also_if_the_file_has_it_by_now)
{
	add_unstored(false);
	for (feed.end = 30; feed.end <= 37; feed.end++)
		cr_expect_eq(feed_left(&feed), feed.end < 35 ? 35 : feed.end);
	feed.at = 37;
	feed.end = 36;
	cr_expect_eq(feed_left(&feed), 0);
	feed.unstored->dropped = true;
	cr_expect_eq(feed_left(&feed), 5);
}

Test(feed_pieces, before_unstored_bytes_removed_bytes_are_skipped)
{
	for (int dropped = 0; dropped < 2; dropped++) {
		add_unstored(dropped);
		if (dropped == 0)
			forget();
		feed.at = feed.skipped = 0;
		expect_part(0, 10);
		expect_part(20, 35);
		cr_expect_eq(feed.skipped, 10);
		cr_expect_eq(total, 0);
		cr_assert(peek());
		cr_expect_eq(data.len, 0);
		unstored_free(feed.unstored);
		feed.unstored = NULL;
	}
}

Test(feed_pieces, before_unstored_bytes_a_piece_may_be_unreadable)
{
	add_unstored(false);
	forget();
	cr_assert_eq(symlink("stdout", "rank-0000/stdout.000000000000010"), 0);
	expect_part(0, 10);
	cr_expect_not(peek());
	cr_expect_eq(errno, ELOOP);
	cr_expect_eq(data.len, 0);
	cr_expect_eq(feed.at, 10);
}

Test(feed_pieces, before_unstored_bytes_the_file_may_be_cut_short)
{
	add_unstored(false);
	feed.at = 20;
	cr_assert_eq(ftruncate(share->slot[0].file, 5), 0);
	expect_part(20, 25);
	cr_expect_not(peek());
	cr_expect_eq(errno, ENODATA);
	/* without pieces, too */
	feed.share = NULL;
	feed.file = share->slot[0].file;
	feed.at = 5;
	cr_expect_not(peek());
	cr_expect_eq(errno, ENODATA);
	cr_expect_eq(feed.at, 5);
}

Test(feed_pieces, before_unstored_bytes_nothing_may_be_there)
{
	add_unstored(true);
	forget();
	feed.at = 12;
	feed.end = 19;
	cr_expect_not(peek());
	cr_expect_eq(feed.at, 12);
	cr_expect_eq(feed.skipped, 0);
	feed.unstored->dropped = false;
	cr_expect_eq(feed_left(&feed), 23);
}

Test(feed_pieces, bytes_of_memory_beyond_a_gap_are_not_next)
{
	add_unstored(false);
	feed.end = 28;
	expect_part(0, 28);
}
