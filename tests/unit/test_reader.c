/* SPDX-License-Identifier: Apache-2.0 */
/* test_reader.c - lines of a stream whose bytes, times and pieces are the test's. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/reader.h"

#define CHUNK      (64 * 1024)
#define CHUNK_BACK (16 * 1024)

/* The stream: bytes from @lo up to @hi are there, in pieces that begin at @piece and before. */
static char bytes[1 << 20];
static uint64_t lo, hi, piece, hole;
static size_t most; /* a read gives no more */
static struct buf told;
static unsigned closed;

/* Parts: bytes before @end came at @ns; those behind all of them at @rest. */
static struct part {
	uint64_t end;
	int64_t ns;
} parts[8];
static int64_t rest_ns;

static struct reader reader;
static struct back back;
static struct track track;

void __wrap_track_init(struct track *t, int dir, uint32_t named);
void __wrap_track_fini(struct track *t);
bool __wrap_track_more(struct track *t, uint64_t *offset);
uint64_t __wrap_track_first(struct track *t);
size_t __wrap_track_read(struct track *t, uint64_t offset, char *out,
	size_t cap);
int64_t __wrap_stamps_when(struct stamps *s, uint64_t offset, uint64_t *end);

void
__wrap_track_init(struct track *t, int dir, uint32_t named)
{
	t->dir = dir;
	t->named = named;
}

void
__wrap_track_fini(struct track *t)
{
	cr_expect_eq(t, &reader.track);
	closed++;
}

bool
__wrap_track_more(struct track *t, uint64_t *offset)
{
	if (*offset < lo)
		*offset = lo;
	t->start = *offset >= piece && piece > lo ? piece : lo;
	return *offset < hi;
}

uint64_t
__wrap_track_first(struct track *t)
{
	cr_expect_eq(t, &track);
	return lo;
}

size_t
__wrap_track_read(struct track *t, uint64_t offset, char *out, size_t cap)
{
	uint64_t end = offset < piece ? piece : hi;

	buf_fmt(&told, "%llu+%zu ", (unsigned long long)offset, cap);
	cr_assert_geq(offset, t->start);
	if (hole > 0 && offset < piece)
		end = hole;
	if (offset >= end)
		return 0;
	if (cap > end - offset)
		cap = (size_t)(end - offset);
	if (cap > most)
		cap = most;
	memcpy(out, bytes + offset, cap);
	return cap;
}

int64_t
__wrap_stamps_when(struct stamps *s, uint64_t offset, uint64_t *end)
{
	cr_expect(s == &reader.track.stamps || s == &track.stamps);
	for (struct part *p = parts; p->end != 0; p++)
		if (offset < p->end) {
			*end = p->end;
			return p->ns;
		}
	*end = UINT64_MAX;
	return rest_ns;
}

static void
stream(const char *text)
{
	hi = strlen(text);
	memcpy(bytes, text, hi);
}

static void
begin(void)
{
	memset(bytes, 'x', sizeof(bytes));
	most = SIZE_MAX;
	rest_ns = 100;
	reader_init(&reader, 5, 6);
}

static void
end(void)
{
	reader_fini(&reader);
	back_fini(&back);
	buf_fini(&told);
}

TestSuite(reader, .init = begin, .fini = end);

static void
expect_told(const char *want)
{
	cr_expect_str_eq(buf_text(&told), want, "'%s', not '%s'",
		buf_text(&told), want);
	buf_clear(&told);
}

static void
expect_span(struct span is, const char *want)
{
	cr_expect_eq(is.len, strlen(want), "'%.*s', not '%s'", (int)is.len,
		is.at, want);
	cr_expect_eq(memcmp(is.at, want, is.len), 0, "'%.*s', not '%s'",
		(int)is.len, is.at, want);
}

static void
expect_run(const char *want, int64_t when)
{
	cr_assert(reader_next(&reader, false), "no '%s'", want);
	expect_span(reader.run, want);
	cr_expect_eq(reader.when, when);
	reader_took(&reader);
	cr_expect_eq(reader.run.len, 0);
}

/* --- forward -------------------------------------------------------------- */

Test(reader, at_first_it_reads_all_there_is)
{
	cr_expect_eq(reader.track.dir, 5);
	cr_expect_eq(reader.track.named, 6);
	cr_expect_eq(reader.stream, 6);
	cr_expect_eq(reader.limit, UINT64_MAX);
	cr_expect_eq(reader.since, INT64_MIN);
	cr_expect_eq(reader.until, INT64_MAX);
	cr_expect_eq(reader.when, INT64_MIN);
	cr_expect_not(reader_next(&reader, true));
	cr_expect_null(reader.data);
	expect_told("");
}

static size_t
in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

Test(reader, its_end_gives_all_back)
{
	size_t before = 0;

	stream("one\n");
	buf_room(&told, 10000);
	for (unsigned i = 0; i < 20; i++) {
		reader_init(&reader, 5, 6);
		cr_assert(reader_next(&reader, false));
		reader_fini(&reader);
		cr_expect_eq(closed, i + 1);
		cr_expect_null(reader.data);
		back_init(&back, &track, hi, true);
		cr_assert(back_line(&back));
		back_fini(&back);
		cr_expect_null(back.data);
		if (i == 10)
			before = in_use();
	}
	cr_expect_eq(in_use(), before);
}

Test(reader, a_read_is_64_KiB_and_a_longer_line_makes_room)
{
	hi = 300000;
	cr_expect_not(reader_next(&reader, false));
	expect_told("0+65536 65536+65536 131072+131072 262144+262144 ");
	cr_expect_eq(reader.cap, 8 * CHUNK);
	cr_expect_eq(reader.len, 300000);
	cr_expect_eq(reader.searched, 300000);
	bytes[300000] = '\n';
	bytes[300003] = '\n';
	hi = 300006;
	cr_assert(reader_next(&reader, false));
	expect_told("300000+224288 ");
	cr_expect_eq(reader.run.len, 300004);
	reader_took(&reader);
	cr_expect_eq(reader.at, 300004);
	cr_expect_eq(reader.offset, 300004);
	cr_expect_eq(reader.searched, 0);
	bytes[300006] = '\n';
	hi = 300007;
	expect_run("xx\n", 100);
	expect_told("300006+524286 ");
	cr_expect_eq(reader.cap, 8 * CHUNK);
}

Test(reader, room_is_made_when_less_than_a_read_is_left)
{
	hi = CHUNK;
	bytes[1] = '\n';
	expect_run("x\n", 100);
	cr_expect_eq(reader.cap, CHUNK);
	hi = CHUNK + 2;
	cr_expect_not(reader_next(&reader, false));
	cr_expect_eq(reader.cap, 2 * CHUNK);
	expect_told("0+65536 65536+65538 ");
}

Test(reader, nothing_is_read_from_the_limit_on)
{
	stream("one\ntwo\nthree\n");
	reader.limit = 8;
	expect_run("one\ntwo\n", 100);
	cr_expect_not(reader_next(&reader, true));
	expect_told("0+8 ");
	reader.limit = 9;
	cr_expect_not(reader_next(&reader, false));
	expect_told("8+1 ");
	reader.limit = 10;
	cr_assert(reader_next(&reader, true));
	expect_span(reader.run, "th");
	expect_told("9+1 ");
	/* The first byte that is there is beyond it. */
	reader_go(&reader, 2);
	lo = 10;
	cr_expect_not(reader_next(&reader, true));
	expect_told("");
	lo = 9;
	reader_go(&reader, 2);
	cr_assert(reader_next(&reader, true));
	expect_span(reader.run, "h");
	expect_told("9+1 ");
}

Test(reader, what_was_removed_is_counted_and_tears_a_line)
{
	stream("one\ntwo\nthree\nfour\n");
	most = 6;
	expect_run("one\n", 100);
	lo = 10;
	cr_expect_eq(reader.gone, 0);
	expect_run("tw", 100);
	cr_expect_eq(reader.gone, 0);
	cr_expect_eq(reader.offset, 6);
	expect_run("ree\n", 100);
	cr_expect_eq(reader.gone, 4);
	cr_expect_eq(reader.offset, 14);
}

Test(reader, it_goes_where_it_is_told)
{
	stream("one\ntwo\nthr");
	cr_assert(reader_next(&reader, false));
	reader_took(&reader);
	cr_expect_not(reader_next(&reader, false));
	cr_expect_eq(reader.searched, 3);
	reader_go(&reader, 4);
	cr_expect_eq(reader.at, 0);
	cr_expect_eq(reader.len, 0);
	cr_expect_eq(reader.searched, 0);
	expect_run("two\n", 100);
}

Test(reader, a_run_is_the_lines_of_one_part)
{
	stream("a\nb\nc\nd\ne");
	parts[0] = (struct part){ 3, 10 };
	parts[1] = (struct part){ 6, 20 };
	parts[2] = (struct part){ 7, 15 };
	expect_run("a\n", 10);
	expect_run("b\nc\n", 20);
	expect_run("d\n", 100);
	cr_expect_not(reader_next(&reader, false));
	rest_ns = 99;
	cr_assert(reader_next(&reader, true));
	expect_span(reader.run, "e");
	cr_expect_eq(reader.when, 100, "no earlier than the line before");
}

Test(reader, a_run_ends_at_the_part_of_its_first_line)
{
	stream("a\nb\nc\n");
	parts[0] = (struct part){ 2, 10 };
	parts[1] = (struct part){ 5, 20 };
	expect_run("a\n", 10);
	expect_run("b\n", 20);
	expect_run("c\n", 100);
}

Test(reader, lines_of_the_times_that_are_asked_for)
{
	stream("a\nb\nc\nd\ne\n");
	for (int i = 0; i < 5; i++)
		parts[i] = (struct part){ (uint64_t)(2 * i + 2), 10 * i };
	reader.since = 10;
	reader.until = 20;
	expect_run("b\n", 10);
	expect_run("c\n", 20);
	cr_expect_not(reader_next(&reader, true));
	cr_expect(reader.over);
	cr_expect_eq(reader.offset, 8);
	reader_go(&reader, 0);
	cr_expect_not(reader_next(&reader, true), "it is over");
}

Test(reader, the_rest_is_what_no_run_holds)
{
	int64_t when = 1;

	stream("one\ntw");
	parts[0] = (struct part){ 5, 40 };
	parts[1] = (struct part){ 6, 50 };
	cr_expect_eq(reader_rest(&reader, &when).len, 0);
	cr_assert(reader_next(&reader, false));
	cr_expect_eq(reader_rest(&reader, &when).len, 0);
	cr_expect_eq(when, 1);
	reader_took(&reader);
	cr_expect_not(reader_next(&reader, false));
	expect_span(reader_rest(&reader, &when), "tw");
	cr_expect_eq(when, 50);
	reader.over = true;
	cr_expect_eq(reader_rest(&reader, &when).len, 0);
	reader.over = false;
	cr_expect_eq(reader.searched, 2);
	reader_skip(&reader, 1);
	cr_expect_eq(reader.searched, 1);
	cr_expect_eq(reader.offset, 5);
	expect_span(reader_rest(&reader, &when), "w");
	reader.searched = 0;
	reader_skip(&reader, 1);
	cr_expect_eq(reader.searched, 0);
	when = 1;
	cr_expect_eq(reader_rest(&reader, &when).len, 0);
	cr_expect_eq(when, 1);
}

/* --- back ----------------------------------------------------------------- */

static void
expect_line(const char *want, uint64_t at, int64_t when)
{
	cr_assert(back_line(&back), "no '%s'", want);
	expect_span(back.line, want);
	cr_expect_eq(back.at, at);
	cr_expect_eq(back.when, when);
}

Test(reader, back_goes_line_by_line_to_the_first)
{
	stream("zz\na\nbb\n\nend");
	lo = 3;
	parts[0] = (struct part){ 5, 10 };
	parts[1] = (struct part){ 8, 30 };
	parts[2] = (struct part){ 9, 20 };
	back_init(&back, &track, 12, true);
	cr_expect_eq(back.first, 3);
	cr_expect_eq(back.offset, 12);
	cr_expect_eq(back.at, 12);
	cr_expect_eq(back.when, INT64_MAX);
	expect_line("end", 9, 100);
	expect_line("\n", 8, 20);
	expect_line("bb\n", 5, 20);
	expect_line("a\n", 3, 10);
	cr_expect_not(back_line(&back));
	cr_expect_eq(back.at, 3);
	expect_told("3+9 ");
	back_fini(&back);
	cr_expect_null(back.data);
}

Test(reader, back_passes_over_what_is_no_line)
{
	stream("zz\na\nbb");
	lo = 3;
	back_init(&back, &track, 7, false);
	cr_expect_eq(back.at, 5);
	expect_line("a\n", 3, 100);
	back_fini(&back);
	back_init(&back, &track, 5, false);
	cr_expect_eq(back.at, 5);
	back_fini(&back);
	buf_clear(&told);
	back_init(&back, &track, 4, false);
	cr_expect_eq(back.at, 3);
	cr_expect_not(back_line(&back));
	back_fini(&back);
	buf_clear(&told);
	back_init(&back, &track, 3, false);
	cr_expect_eq(back.at, 3);
	expect_told("");
}

Test(reader, back_reads_16_KiB_and_makes_room_for_long_lines)
{
	hi = 70000;
	bytes[2] = '\n';
	back_init(&back, &track, 70000, true);
	cr_assert(back_line(&back));
	cr_expect_eq(back.at, 3);
	cr_expect_eq(back.line.len, 69997);
	for (size_t i = 0; i < 69997; i++)
		cr_assert_eq(back.line.at[i], 'x');
	expect_told("53616+16384 37232+16384 20848+16384 4464+16384 0+4464 ");
	cr_expect_eq(back.cap, 6 * CHUNK_BACK, "%zu", back.cap);
	expect_line("xx\n", 0, 100);
	cr_expect_not(back_line(&back));
}

/* What is held moves to the end of the room, which is used again. */
Test(reader, back_uses_its_room_again)
{
	hi = 200000;
	for (size_t i = 999; i < hi; i += 1000) {
		bytes[i - 1] = (char)('a' + i / 1000 % 26);
		bytes[i] = '\n';
	}
	back_init(&back, &track, 200000, true);
	for (size_t i = 200; i > 0; i--) {
		cr_assert(back_line(&back));
		cr_assert_eq(back.at, (i - 1) * 1000);
		cr_assert_eq(back.line.len, 1000);
		cr_assert_eq(back.line.at[0], 'x');
		cr_assert_eq(back.line.at[998], 'a' + (int)((i - 1) % 26));
		cr_assert_eq(back.line.at[999], '\n');
	}
	cr_expect_eq(back.cap, 2 * (840 + CHUNK_BACK), "%zu", back.cap);
	cr_expect_not(back_line(&back));
}

Test(reader, back_goes_on_in_the_piece_before)
{
	stream("one\ntwo\nthree\n");
	piece = 6;
	most = 3;
	back_init(&back, &track, 14, true);
	expect_line("three\n", 8, 100);
	expect_told("6+8 9+5 12+2 ");
	expect_line("two\n", 4, 100);
	expect_told("0+6 3+3 ");
	expect_line("one\n", 0, 100);
}

Test(reader, back_ends_where_bytes_are_away)
{
	stream("one\ntwo\nthree\n");
	piece = 6;
	hole = 4; /* the first piece was cut short */
	back_init(&back, &track, 14, true);
	expect_line("three\n", 8, 100);
	expect_line("o\n", 6, 100);
	cr_expect_eq(back.first, 6);
	cr_expect_not(back_line(&back));
	cr_expect_eq(back.at, 6);
}

Test(reader, back_ends_where_the_stream_was_removed)
{
	stream("one\ntwo\nthree\n");
	back_init(&back, &track, 14, true);
	lo = 14;
	cr_expect_not(back_line(&back));
	cr_expect_eq(back.at, 14);
	cr_expect_eq(back.when, INT64_MAX);
	lo = 0;
	hi = 13;
	cr_expect_not(back_line(&back), "its last byte is not there");
	hi = 14;
	piece = 8;
	expect_line("three\n", 8, 100);
	lo = 8;
	back_fini(&back);
	lo = 0;
	back_init(&back, &track, 11, false);
	cr_expect_eq(back.at, 8);
	lo = 8;
	cr_expect_not(back_line(&back));
	lo = 5;
	expect_line("two\n", 4, 100);
}
