/* SPDX-License-Identifier: Apache-2.0 */
/* test_track.c - the files of a stream and their times, read later: track.h,
 * stamps.h, reader.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/index.h"
#include "launcher/log/piece.h"
#include "launcher/log/reader.h"
#include "tests/unit/big_files.h"
#include "tests/unit/folder.h"

#define T0 (INT64_C(1000000000) * NS_PER_S)
#define MS NS_PER_MS

static int dir;
static struct track track;
static struct reader reader;
static char text[4096];

static void
begin(void)
{
	folder_make();
	cr_assert_eq(mkdir("rank-0000", 0700), 0);
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	track_init(&track, dir, 0);
	reader_init(&reader, dir, 0);
}

static void
end(void)
{
	track_fini(&track);
	reader_fini(&reader);
	fd_close(dir);
	folder_remove();
}

TestSuite(track, .init = begin, .fini = end);

static void
append(const char *name, const void *data, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
		0600);

	cr_assert_neq(fd, -1);
	cr_assert_eq(fd_write_all(fd, data, len), 0);
	fd_close(fd);
}

static void
write_text(const char *name, const char *what)
{
	append(name, what, strlen(what));
}

/* What the file was changed at. */
static void
changed(const char *name, int64_t ns)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
		{ ns / NS_PER_S, ns % NS_PER_S } };

	cr_assert_eq(utimensat(dir, name, t, 0), 0);
}

static void
record(const char *name, uint64_t at, int64_t ns)
{
	const struct index_record r = { at, ns };

	append(name, &r, sizeof(r));
}

static const char *
read_all(uint64_t from)
{
	size_t len = 0;

	while (track_more(&track, &from)) {
		size_t n = track_read(&track, from, text + len,
			sizeof(text) - 1 - len);

		len += n;
		from += n;
	}
	text[len] = '\0';
	return text;
}

Test(track, a_stream_that_said_nothing_has_no_byte)
{
	uint64_t at = 0;

	cr_expect_not(track_more(&track, &at));
	cr_expect_eq(track_end(&track), 0);
	cr_expect_eq(track_first(&track), 0);
	cr_expect_eq(track_since(&track, T0), 0);
	cr_expect_not(reader_next(&reader, true));
}

Test(track, one_file_is_read_as_it_grows)
{
	uint64_t at = 3;

	write_text("rank-0000/stdout", "one");
	cr_expect_str_eq(read_all(0), "one");
	cr_expect_not(track_more(&track, &at));
	write_text("rank-0000/stdout", "two");
	cr_expect(track_more(&track, &at));
	cr_expect_str_eq(read_all(at), "two");
	cr_expect_eq(track_end(&track), 6);
}

Test(track, pieces_are_one_stream)
{
	write_text("rank-0000/stdout.000000000000000", "abcde");
	write_text("rank-0000/stdout.000000000000005", "fgh");
	write_text("rank-0000/stdout", "ij");
	write_text("rank-0000/stderr.000000000000008", "not this");
	write_text("rank-0000/stdout.000000000000005.idx", "nor that");
	cr_expect_str_eq(read_all(0), "abcdefghij");
	cr_expect_str_eq(read_all(6), "ghij");
	cr_expect_str_eq(read_all(2), "cdefghij");
	cr_expect_eq(track_first(&track), 0);
	cr_expect_eq(track_end(&track), 10);
}

Test(track, what_was_rotated_away_is_passed_over)
{
	uint64_t at = 0;

	write_text("rank-0000/stdout.000000000000005", "fgh");
	write_text("rank-0000/stdout", "ij");
	cr_expect_eq(track_first(&track), 5);
	cr_assert(track_more(&track, &at));
	cr_assert_eq(at, 5);
	cr_expect_str_eq(read_all(0), "fghij");
	/* Between two that are there, too. */
	write_text("rank-0000/stdout.000000000000000", "ab");
	track_fini(&track);
	cr_expect_str_eq(read_all(0), "abfghij");
}

Test(track, a_piece_that_is_cut_while_it_is_open_is_followed)
{
	uint64_t at = 3;

	write_text("rank-0000/stdout", "one");
	cr_expect_str_eq(read_all(0), "one");
	write_text("rank-0000/stdout", "rest");
	cr_assert_eq(rename("rank-0000/stdout",
			     "rank-0000/stdout.000000000000000"),
		0);
	write_text("rank-0000/stdout", "next");
	cr_expect(track_more(&track, &at));
	cr_expect_str_eq(read_all(3), "restnext");
	/* Open for us though it is removed. */
	cr_assert_eq(unlink("rank-0000/stdout"), 0);
	at = 7;
	cr_expect(track_more(&track, &at));
}

Test(track, a_cut_that_a_kill_left_half_done_loses_nothing)
{
	write_text("rank-0000/stdout.000000000000000", "abc");
	write_text("rank-0000/stdout.new", "");
	cr_expect_str_eq(read_all(0), "abc");
	cr_expect_eq(track_end(&track), 3);
}

Test(track, nothing_but_a_regular_file_is_opened)
{
	uint64_t at = 0;

	cr_assert_eq(mkfifo("rank-0000/stdout", 0600), 0);
	cr_expect_not(track_more(&track, &at));
	unlink("rank-0000/stdout");
	write_text("elsewhere", "secret");
	cr_assert_eq(symlink("../elsewhere", "rank-0000/stdout"), 0);
	cr_expect_not(track_more(&track, &at));
}

Test(track, what_is_not_open_cannot_be_read)
{
	uint64_t at = 0;

	memset(text, 0, sizeof(text));
	cr_expect_eq(track_read(&track, 0, text, 1), 0, "no file");
	write_text("rank-0000/stdout.000000000000000", "abcde");
	write_text("rank-0000/stdout", "fgh");
	cr_assert(track_more(&track, &at));
	cr_expect_eq(track_read(&track, 5, text, 1), 0, "beyond its end");
	cr_expect_eq(track_read(&track, 4, text, 9), 1);
	cr_expect_str_eq(text, "e");
	at = 5;
	cr_assert(track_more(&track, &at));
	cr_expect_eq(track_read(&track, 4, text, 1), 0, "before its start");
	cr_expect_eq(track_read(&track, 5, text, 1), 1);
	cr_expect_str_eq(text, "f");
	cr_expect_eq(track.bytes, 2);
	/* It was cut short meanwhile. */
	cr_assert_eq(truncate("rank-0000/stdout", 0), 0);
	cr_expect_eq(track_read(&track, 5, text, 1), 0);
	cr_expect_eq(track.bytes, 2);
}

/* --- times ---------------------------------------------------------------- */

Test(track, without_an_index_the_file_tells_the_time)
{
	uint64_t at = 0, last;

	write_text("rank-0000/stdout", "one\n");
	changed("rank-0000/stdout", T0);
	cr_assert(track_more(&track, &at));
	cr_expect_eq(stamps_when(&track.stamps, 0, &last), T0);
	cr_expect_eq(last, UINT64_MAX);
	cr_expect_eq(track_since(&track, T0), 0);
	cr_expect_eq(track_since(&track, T0 + 1), 4);
}

/* 1000 parts of 4 bytes, 10 ms each, and one that no record tells of. */
static void
many_parts(void)
{
	for (int i = 0; i < 1000; i++) {
		write_text("rank-0000/stdout", "abc\n");
		record("rank-0000/stdout.idx", 4 * ((uint64_t)i + 1),
			T0 + i * 10 * MS);
	}
	write_text("rank-0000/stdout", "end\n");
	changed("rank-0000/stdout", T0 + 20000 * MS);
}

Test(track, each_byte_has_the_time_of_its_part_in_any_order)
{
	uint64_t at = 0, last;
	int64_t want;

	many_parts();
	cr_assert(track_more(&track, &at));
	for (uint64_t i = 0; i < 4004; i++) {
		/* Forward, backward, and here and there. */
		uint64_t tries[] = { i, 4003 - i, i * 1999 % 4004 };

		for (int k = 0; k < 3; k++) {
			at = tries[k];
			want = at < 4000 ? T0 + (int64_t)(at / 4) * 10 * MS :
					   T0 + 20000 * MS;
			cr_assert_eq(stamps_when(&track.stamps, at, &last),
				want, "byte %llu", (unsigned long long)at);
			cr_assert_eq(last,
				at < 4000 ? at / 4 * 4 + 4 : UINT64_MAX);
		}
	}
}

Test(track, the_first_byte_since_a_time_is_found)
{
	many_parts();
	cr_expect_eq(track_since(&track, T0), 0);
	cr_expect_eq(track_since(&track, T0 + 1), 4);
	cr_expect_eq(track_since(&track, T0 + 5000 * MS), 2000);
	cr_expect_eq(track_since(&track, T0 + 9990 * MS + 1), 4000);
	cr_expect_eq(track_since(&track, T0 + 20000 * MS), 4000);
	cr_expect_eq(track_since(&track, T0 + 20000 * MS + 1), 4004);
}

Test(track, a_time_is_found_in_the_right_piece)
{
	write_text("rank-0000/stdout.000000000000000", "a\nb\n");
	record("rank-0000/stdout.000000000000000.idx", 2, T0);
	record("rank-0000/stdout.000000000000000.idx", 4, T0 + 100 * MS);
	changed("rank-0000/stdout.000000000000000", T0 + 100 * MS);
	write_text("rank-0000/stdout", "c\nd\n");
	record("rank-0000/stdout.idx", 6, T0 + 200 * MS);
	record("rank-0000/stdout.idx", 8, T0 + 300 * MS);
	changed("rank-0000/stdout", T0 + 300 * MS);
	cr_expect_eq(track_since(&track, T0 + 100 * MS), 2);
	cr_expect_eq(track_since(&track, T0 + 101 * MS), 4);
	cr_expect_eq(track_since(&track, T0 + 250 * MS), 6);
	cr_expect_eq(track_since(&track, T0 + 301 * MS), 8);
	cr_expect_eq(track_since(&track, 0), 0);
}

Test(track, a_damaged_index_gives_wrong_times_and_no_wrong_bytes)
{
	write_text("rank-0000/stdout", "one\ntwo\nthree\n");
	record("rank-0000/stdout.idx", UINT64_MAX, -1);
	record("rank-0000/stdout.idx", 0, INT64_MAX);
	record("rank-0000/stdout.idx", 5, 7);
	record("rank-0000/stdout.idx", UINT64_MAX, INT64_MIN);
	append("rank-0000/stdout.idx", "half", 4);
	text[0] = '\0';
	while (reader_next(&reader, true)) {
		strncat(text, reader.run.at, reader.run.len);
		reader_took(&reader);
	}
	cr_expect_str_eq(text, "one\ntwo\nthree\n");
}

Test(track, an_index_that_is_emptied_tells_no_time)
{
	uint64_t at = 0, last;

	write_text("rank-0000/stdout", "one\n");
	record("rank-0000/stdout.idx", 4, T0);
	changed("rank-0000/stdout", T0 + MS);
	cr_assert(track_more(&track, &at));
	cr_expect_eq(stamps_when(&track.stamps, 0, &last), T0);
	cr_assert_eq(truncate("rank-0000/stdout.idx", 0), 0);
	write_text("rank-0000/stdout", "two\n");
	changed("rank-0000/stdout", T0 + 2 * MS);
	at = 4;
	cr_assert(track_more(&track, &at));
	cr_expect_eq(stamps_when(&track.stamps, 0, &last), T0 + 2 * MS);
	cr_expect_eq(last, UINT64_MAX);
}

Test(track, an_index_that_is_a_link_or_a_folder_is_not_used)
{
	uint64_t at = 0, last;

	write_text("rank-0000/stdout", "one\n");
	record("elsewhere", 4, T0);
	cr_assert_eq(symlink("../elsewhere", "rank-0000/stdout.idx"), 0);
	changed("rank-0000/stdout", T0 + MS);
	cr_assert(track_more(&track, &at));
	cr_expect_eq(stamps_when(&track.stamps, 0, &last), T0 + MS);
	cr_expect_eq(track.sys, 0, "%d", track.sys);
	track_fini(&track);
	cr_assert_eq(unlink("rank-0000/stdout.idx"), 0);
	cr_assert_eq(mkdir("rank-0000/stdout.idx", 0700), 0);
	cr_assert(track_more(&track, &at));
	cr_expect_eq(stamps_when(&track.stamps, 0, &last), T0 + MS);
	cr_expect_eq(track.sys, 0, "%d", track.sys);
}

Test(track, a_time_is_found_behind_pieces_that_are_away)
{
	write_text("rank-0000/stdout.000000000000000", "a\n");
	changed("rank-0000/stdout.000000000000000", T0);
	write_text("rank-0000/stdout.000000000000002", "b\n");
	changed("rank-0000/stdout.000000000000002", T0 + 10000 * MS);
	write_text("rank-0000/stdout", "c\n");
	changed("rank-0000/stdout", T0 + 20000 * MS);
	cr_expect_eq(track_since(&track, T0 + 9000 * MS), 2);
	cr_expect_eq(track_since(&track, T0 + 15000 * MS), 4);
}

/* --- lines ---------------------------------------------------------------- */

static void
expect_run(const char *want, int64_t when)
{
	cr_assert(reader_next(&reader, false), "no '%s'", want);
	cr_expect_eq(reader.run.len, strlen(want), "'%.*s' for '%s'",
		(int)reader.run.len, reader.run.at, want);
	cr_expect_eq(memcmp(reader.run.at, want, reader.run.len), 0);
	cr_expect_eq(reader.when, when);
	reader_took(&reader);
}

Test(track, lines_that_came_together_are_one_run)
{
	write_text("rank-0000/stdout", "a\nb\nc\nd");
	record("rank-0000/stdout.idx", 4, T0);
	record("rank-0000/stdout.idx", 7, T0 + 10 * MS);
	changed("rank-0000/stdout", T0 + 10 * MS);
	expect_run("a\nb\n", T0);
	expect_run("c\n", T0 + 10 * MS);
	cr_expect_not(reader_next(&reader, false));
	write_text("rank-0000/stdout", "d\ne");
	changed("rank-0000/stdout", T0 + 20 * MS);
	expect_run("dd\n", T0 + 20 * MS);
	cr_expect_not(reader_next(&reader, false));
	cr_assert(reader_next(&reader, true));
	cr_expect_eq(reader.run.len, 1);
}

Test(track, a_line_has_the_time_of_its_last_byte)
{
	write_text("rank-0000/stdout", "abcdef\n");
	record("rank-0000/stdout.idx", 3, T0);
	record("rank-0000/stdout.idx", 6, T0 + 10 * MS);
	record("rank-0000/stdout.idx", 7, T0 + 50 * MS);
	changed("rank-0000/stdout", T0 + 50 * MS);
	expect_run("abcdef\n", T0 + 50 * MS);
}

Test(track, a_line_goes_over_the_border_of_pieces)
{
	write_text("rank-0000/stdout.000000000000000", "one\nt");
	changed("rank-0000/stdout.000000000000000", T0);
	write_text("rank-0000/stdout", "wo\n");
	changed("rank-0000/stdout", T0 + 10 * MS);
	expect_run("one\n", T0);
	expect_run("two\n", T0 + 10 * MS);
}

Test(track, a_line_whose_end_was_removed_is_shown_as_it_is)
{
	write_text("rank-0000/stdout.000000000000000", "one\nt");
	write_text("rank-0000/stdout.000000000000009", "x\n");
	write_text("rank-0000/stdout", "y\n");
	cr_assert(reader_next(&reader, false));
	reader_took(&reader);
	cr_assert(reader_next(&reader, false));
	cr_expect_eq(reader.run.len, 1);
	cr_expect_eq(reader.run.at[0], 't');
	reader_took(&reader);
	cr_assert(reader_next(&reader, false));
	cr_expect_eq(reader.run.at[0], 'x');
	cr_expect_eq(reader.gone, 4);
}

Test(track, an_unfinished_line_is_read_as_it_grows)
{
	int64_t when = 0;
	struct span rest;

	write_text("rank-0000/stdout", "one\n10%\r20%");
	record("rank-0000/stdout.idx", 4, T0);
	record("rank-0000/stdout.idx", 11, T0 + 7 * MS);
	cr_assert(reader_next(&reader, false));
	cr_expect_eq(reader_rest(&reader, &when).len, 0);
	reader_took(&reader);
	cr_assert_not(reader_next(&reader, false));
	rest = reader_rest(&reader, &when);
	cr_assert_eq(rest.len, 7);
	cr_expect_eq(memcmp(rest.at, "10%\r20%", 7), 0);
	cr_expect_eq(when, T0 + 7 * MS);
	reader_skip(&reader, 4);
	write_text("rank-0000/stdout", "!\ntwo");
	cr_assert(reader_next(&reader, false));
	cr_assert_eq(reader.run.len, 5);
	cr_expect_eq(memcmp(reader.run.at, "20%!\n", 5), 0);
	reader_took(&reader);
	cr_assert_not(reader_next(&reader, false));
	cr_expect_eq(reader_rest(&reader, &when).len, 3);
	reader_skip(&reader, 3);
	cr_expect_eq(reader_rest(&reader, &when).len, 0);
	cr_expect_not(reader_next(&reader, true));
}

Test(track, lines_outside_of_the_times_are_left_out)
{
	many_parts();
	reader.since = T0 + 20 * MS;
	reader.until = T0 + 30 * MS;
	expect_run("abc\n", T0 + 20 * MS);
	expect_run("abc\n", T0 + 30 * MS);
	cr_expect_not(reader_next(&reader, true));
}

Test(track, a_line_of_a_megabyte_is_whole_both_ways)
{
	static char big[1 << 20];
	struct back back;

	memset(big, 'x', sizeof(big));
	write_text("rank-0000/stdout", "first\n");
	append("rank-0000/stdout", big, sizeof(big));
	write_text("rank-0000/stdout", "\nlast\n");
	cr_assert(reader_next(&reader, false));
	cr_expect_eq(reader.run.len, 6);
	reader_took(&reader);
	cr_assert(reader_next(&reader, false));
	cr_expect_geq(reader.run.len, sizeof(big) + 1);
	back_init(&back, &track, track_end(&track), true);
	cr_assert(back_line(&back));
	cr_expect_eq(back.line.len, 5);
	cr_assert(back_line(&back));
	cr_expect_eq(back.line.len, sizeof(big) + 1);
	cr_expect_eq(back.at, 6);
	cr_assert(back_line(&back));
	cr_expect_eq(memcmp(back.line.at, "first\n", 6), 0);
	cr_expect_not(back_line(&back));
	cr_expect_eq(back.at, 0);
	back_fini(&back);
}

/* --- back ----------------------------------------------------------------- */

Test(track, lines_are_read_back_over_pieces_and_empty_ones)
{
	static const char *const want[] = { "e", "d\n", "\n", "c\n", "bb\n" };
	struct back back;

	write_text("rank-0000/stdout.000000000000004", "bb\nc\n\n");
	write_text("rank-0000/stdout", "d\ne");
	back_init(&back, &track, track_end(&track), true);
	for (int i = 0; i < 5; i++) {
		cr_assert(back_line(&back), "%d", i);
		cr_expect_eq(back.line.len, strlen(want[i]), "%d", i);
		cr_expect_eq(memcmp(back.line.at, want[i], back.line.len), 0);
	}
	cr_expect_eq(back.at, 4);
	cr_expect_not(back_line(&back));
	back_fini(&back);
}

Test(track, back_from_any_byte_is_the_beginning_of_its_line)
{
	const char *data = "one\ntwo\n\nthree";
	struct back back;

	write_text("rank-0000/stdout", data);
	for (size_t i = 0; i <= strlen(data); i++) {
		size_t at = i;

		while (at > 0 && data[at - 1] != '\n')
			at--;
		back_init(&back, &track, i, false);
		cr_expect_eq(back.at, at, "byte %zu", i);
		back_fini(&back);
	}
}

Test(track, the_end_of_much_output_costs_its_end)
{
	uint64_t size = UINT64_C(10) << 30;
	struct back back;

	append("rank-0000/stdout", "", 0);
	cr_assert(allow_big_files());
	cr_assert_eq(truncate("rank-0000/stdout", (off_t)size), 0);
	for (int i = 0; i < 1000; i++)
		write_text("rank-0000/stdout", "0123456789 0123456789\n");
	back_init(&back, &track, track_end(&track), true);
	for (int i = 0; i < 100; i++)
		cr_assert(back_line(&back));
	cr_expect_eq(back.at, size + 900 * 22);
	cr_expect_leq(track.bytes, 64 * 1024);
	back_fini(&back);
}
