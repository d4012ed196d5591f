/* SPDX-License-Identifier: Apache-2.0 */
/* test_merge.c - lines of several streams in the order of their times. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/index.h"
#include "launcher/log/merge.h"
#include "launcher/log/raw.h"
#include "tests/unit/big_files.h"
#include "tests/unit/folder.h"

#define T0      (INT64_C(1000000000) * NS_PER_S)
#define STEP    (20 * NS_PER_MS)
#define STREAMS 6
#define PARTS   200

static int dir;
static struct reader reader[STREAMS];
static struct buf whole, got;

static void
begin(void)
{
	folder_make();
	for (int r = 0; r < STREAMS / 2; r++) {
		char name[32];

		snprintf(name, sizeof(name), "rank-%04d", r);
		cr_assert_eq(mkdir(name, 0700), 0);
	}
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; i < STREAMS; i++)
		reader_init(&reader[i], dir, i);
}

static void
end(void)
{
	for (uint32_t i = 0; i < STREAMS; i++)
		reader_fini(&reader[i]);
	buf_fini(&whole);
	buf_fini(&got);
	fd_close(dir);
	folder_remove();
}

TestSuite(merge, .init = begin, .fini = end);

static void
append(uint32_t stream, const char *end, const void *data, size_t len)
{
	char name[64], file[80];
	int fd;

	snprintf(file, sizeof(file), "%s%s", raw_name(stream, name, 64), end);
	fd = openat(dir, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_neq(fd, -1);
	cr_assert_eq(fd_write_all(fd, data, len), 0);
	fd_close(fd);
}

/* A part of some stream every 20 ms, of one to three lines; what all of them are
 * in order is in `whole`. */
static void
write_parts(void)
{
	uint64_t len[STREAMS] = { 0 };
	uint32_t seed = 7;

	for (int part = 0; part < PARTS; part++) {
		uint32_t stream = (seed = seed * 1103515245 + 12345) >> 16;
		struct index_record r;
		struct buf lines = { 0 };

		stream %= STREAMS;
		for (uint32_t i = 0; i <= seed % 3; i++)
			buf_fmt(&lines, "%u part %d line %u\n", stream, part,
				i);
		append(stream, "", lines.data, lines.len);
		buf_put(&whole, lines.data, lines.len);
		len[stream] += lines.len;
		r = (struct index_record){ len[stream], T0 + part * STEP };
		append(stream, ".idx", &r, sizeof(r));
		buf_fini(&lines);
	}
}

static const char *
read_merged(bool last)
{
	struct merge m = { 0 };

	buf_clear(&got);
	for (uint32_t i = 0; i < STREAMS; i++)
		merge_add(&m, &reader[i], last);
	while (merge_first(&m) != NULL) {
		struct span run = merge_first(&m)->run;

		buf_put(&got, run.at, run.len);
		merge_took(&m, last);
	}
	merge_fini(&m);
	cr_expect_null(m.reader);
	cr_expect_eq(m.cap, 0);
	return buf_text(&got);
}

/* What begins behind the last @lines newlines but one. */
static const char *
last_lines(uint64_t lines)
{
	const char *p = whole.data + whole.len;

	for (p--; lines > 0 && p > whole.data; lines--)
		for (p--; p > whole.data && p[0] != '\n'; p--)
			;
	return p > whole.data ? p + 1 : p;
}

static bool
tail(uint64_t lines, int64_t since)
{
	const struct merge_tail t = { .lines = lines,
		.since = since,
		.last = true };

	for (uint32_t i = 0; i < STREAMS; i++)
		reader[i].when = INT64_MIN;
	return merge_tail(reader, STREAMS, &t);
}

Test(merge, parts_come_in_the_order_of_their_times)
{
	write_parts();
	cr_expect_str_eq(read_merged(true), whole.data);
}

Test(merge, lines_of_one_time_are_in_the_order_of_streams)
{
	struct index_record r = { 4, T0 };

	for (uint32_t i = STREAMS; i-- > 0;) {
		char line[] = "0..\n";

		line[0] = (char)('0' + i);
		append(i, "", line, 4);
		append(i, ".idx", &r, sizeof(r));
	}
	cr_expect_str_eq(read_merged(true), "0..\n1..\n2..\n3..\n4..\n5..\n");
}

Test(merge, the_last_lines_are_those_of_the_whole)
{
	static const uint64_t counts[] = { 1, 2, 3, 7, 50, 300 };

	write_parts();
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		cr_expect_not(tail(counts[i], INT64_MIN));
		cr_expect_str_eq(read_merged(true), last_lines(counts[i]),
			"%llu lines", (unsigned long long)counts[i]);
	}
	cr_expect_not(tail(0, INT64_MIN));
	cr_expect_str_eq(read_merged(true), "");
	cr_expect(tail(100000, INT64_MIN), "fewer than that");
	cr_expect_str_eq(read_merged(true), whole.data);
}

Test(merge, the_last_lines_end_at_a_time_and_begin_at_one)
{
	const char *from, *to;

	write_parts();
	for (uint32_t i = 0; i < STREAMS; i++)
		reader[i].until = T0 + 150 * STEP;
	cr_expect(tail(100000, T0 + 100 * STEP));
	from = strstr(whole.data, " part 100 ") - 1;
	to = strstr(whole.data, " part 151 ") - 1;
	read_merged(true);
	cr_expect_eq(got.len, (size_t)(to - from));
	cr_expect_eq(strncmp(got.data, from, got.len), 0);
	/* A reader that met the end of the times is asked again. */
	for (uint32_t i = 0; i < STREAMS; i++)
		reader[i].over = false;
	cr_expect_not(tail(1, INT64_MIN));
	read_merged(true);
	cr_assert_gt(got.len, 0);
	cr_expect_eq(strncmp(to - got.len, got.data, got.len), 0);
	cr_expect_eq(memchr(got.data, '\n', got.len), got.data + got.len - 1);
}

static bool
has_two(void *ctx, struct span line)
{
	(void)ctx;
	return memmem(line.at, line.len, "line 2", 6) != NULL;
}

Test(merge, only_lines_that_are_wanted_count)
{
	struct merge_tail t = { .lines = 3,
		.since = INT64_MIN,
		.last = true,
		.wanted = has_two };
	const char *p;

	write_parts();
	cr_expect_not(merge_tail(reader, STREAMS, &t));
	p = read_merged(true);
	for (int i = 0; i < 3; i++) {
		p = strstr(p, "line 2");
		cr_assert_not_null(p);
		p++;
	}
	cr_expect_null(strstr(p, "line 2"));
}

Test(merge, an_unfinished_line_is_one_when_nobody_writes_any_more)
{
	struct merge_tail t = { .lines = 1, .since = INT64_MIN };

	append(0, "", "one\ntwo", 7);
	cr_expect_not(merge_tail(reader, STREAMS, &t));
	cr_expect_str_eq(read_merged(false), "one\n");
	cr_expect_str_eq(read_merged(true), "two");
	t.last = true;
	cr_expect_not(merge_tail(reader, STREAMS, &t));
	cr_expect_str_eq(read_merged(true), "two");
}

/* 128 streams of 10 GiB: what is read is a little of each end. */
Test(merge, the_end_of_many_long_streams_costs_their_ends)
{
	struct merge_tail t = { .lines = 100,
		.since = INT64_MIN,
		.last = true };
	uint64_t bytes = 0;

	cr_assert(allow_big_files());
	for (uint32_t i = 0; i < STREAMS; i++) {
		char name[64];

		append(i, "", "", 0);
		cr_assert_eq(truncate(raw_name(i, name, 64), (off_t)10 << 30),
			0);
		for (int k = 0; k < 1000; k++)
			append(i, "", "some words of a line\n", 21);
	}
	cr_expect_not(merge_tail(reader, STREAMS, &t));
	read_merged(true);
	for (uint32_t i = 0; i < STREAMS; i++)
		bytes += reader[i].track.bytes;
	cr_expect_leq(bytes, STREAMS * 64 * 1024);
	cr_expect_eq(got.len, 100 * 21);
}
