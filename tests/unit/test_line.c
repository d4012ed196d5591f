/* SPDX-License-Identifier: Apache-2.0 */
/* test_line.c - lines stay whole, however their bytes arrive. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/line.h"

/* What a feed does: bytes that were not used are offered again. */
struct flow {
	struct line_stream line;
	struct line_prefix prefix;
	struct buf pending;
};

static struct buf out;
static struct line_sink sink;
static struct flow a, b;

static void
set_prefix(struct flow *f, const char *text)
{
	f->prefix.len = (uint16_t)strlen(text);
	memcpy(f->prefix.text, text, f->prefix.len);
}

static void
forget(struct flow *f)
{
	buf_fini(&f->pending);
	memset(f, 0, sizeof(*f));
}

static void
begin(void)
{
	buf_clear(&out);
	sink = (struct line_sink){ .out = &out };
	forget(&a);
	forget(&b);
	set_prefix(&a, "[0] ");
	set_prefix(&b, "[1] ");
}

static void
end(void)
{
	forget(&a);
	forget(&b);
	buf_fini(&out);
}

TestSuite(line, .init = begin, .fini = end);

static size_t
offer_bytes(struct flow *f, const char *at, size_t len, enum line_end how)
{
	struct span data;
	size_t used;

	buf_put(&f->pending, at, len);
	data = (struct span){ buf_text(&f->pending), f->pending.len };
	used = line_cut(&sink, &f->line, &f->prefix, data, how);
	cr_assert_leq(used, data.len);
	memmove(f->pending.data, f->pending.data + used, data.len - used);
	f->pending.len -= used;
	return used;
}

static size_t
offer(struct flow *f, const char *text, enum line_end how)
{
	return offer_bytes(f, text, strlen(text), how);
}

static void
expect_out(const char *text)
{
	cr_expect_str_eq(buf_text(&out), text);
	cr_expect_eq(out.len, strlen(text));
}

/* Bytes that programs do write. */
static const struct span samples[] = {
#define SAMPLE(text) { text, sizeof(text) - 1 }
	SAMPLE(""),
	SAMPLE("\n"),
	SAMPLE("one"),
	SAMPLE("one\n"),
	SAMPLE("one\ntwo"),
	SAMPLE("\n\none\n\n\ntwo\n"),
	SAMPLE("crlf\r\nbar 1\rbar 2\rbar 3\n"),
	SAMPLE("a\0b\0\n\0\nc\0"),
	SAMPLE("\xff\xfe\n\xc3\n\xe2\x82\nwhole \xe2\x82\xac\n\x80"),
	SAMPLE("\xef\xbb\xbf"
	       "mark\n\t tab\v\f\a\b\x1b[31mred\x1b[0m\n"),
#undef SAMPLE
};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

/* The same by the plainest means: a prefix before and a newline behind each. */
static void
expected_lines(struct span text, const char *prefix, struct buf *want)
{
	size_t at = 0, next;

	while (at < text.len) {
		for (next = at; next < text.len && text.at[next] != '\n';)
			next++;
		buf_put_text(want, prefix);
		buf_put(want, text.at + at, next - at);
		buf_put_char(want, '\n');
		at = next + 1;
	}
}

static bool
same(const struct buf *want)
{
	return out.len == want->len &&
		memcmp(buf_text(&out), buf_text(want), want->len) == 0;
}

Test(line, every_truncation_ends_in_a_whole_line)
{
	for (size_t s = 0; s < SAMPLES; s++) {
		for (size_t len = 0; len <= samples[s].len; len++) {
			struct span text = { samples[s].at, len };
			struct buf want = { 0 };

			begin();
			cr_expect_eq(offer_bytes(&a, text.at, len, LINE_LAST),
				len);
			expected_lines(text, "[0] ", &want);
			cr_expect(same(&want), "sample %zu cut at %zu", s, len);
			cr_expect_null(sink.holder);
			buf_fini(&want);
		}
	}
}

Test(line, every_split_gives_the_same_lines)
{
	for (size_t s = 0; s < SAMPLES; s++) {
		struct buf want = { 0 };
		size_t n = samples[s].len;
		const char *at = samples[s].at;

		expected_lines(samples[s], "[0] ", &want);
		for (size_t i = 0; i <= n; i++) {
			for (size_t j = i; j <= n; j++) {
				begin();
				offer_bytes(&a, at, i, LINE_MORE);
				offer_bytes(&a, at + i, j - i, LINE_MORE);
				offer_bytes(&a, at + j, n - j, LINE_LAST);
				cr_expect(same(&want), "sample %zu at %zu, %zu",
					s, i, j);
			}
		}
		buf_fini(&want);
	}
}

Test(line, two_streams_that_are_split_anywhere_never_mix)
{
	const char *one = "aa\na\naaa", *two = "b\nbbb\nbb\n";
	size_t na = strlen(one), nb = strlen(two);

	for (size_t i = 0; i <= na; i++) {
		for (size_t j = 0; j <= nb; j++) {
			begin();
			offer_bytes(&a, one, i, LINE_MORE);
			offer_bytes(&b, two, j, LINE_MORE);
			offer_bytes(&a, one + i, na - i, LINE_LAST);
			offer_bytes(&b, two + j, nb - j, LINE_LAST);
			for (const char *p = buf_text(&out); *p != '\0';
				p = strchr(p, '\n') + 1) {
				size_t len = strcspn(p, "\n");
				char no = p[1] == '0' ? 'b' : 'a';

				cr_expect_null(memchr(p + 4, no, len - 4),
					"%zu, %zu: %.*s", i, j, (int)len, p);
			}
			cr_expect_eq(out.len, na + 1 + nb + 6 * 4);
		}
	}
}

Test(line, nothing_is_put_before_its_newline)
{
	cr_expect_eq(offer(&a, "par", LINE_MORE), 0);
	cr_expect_eq(offer(&b, "whole\n", LINE_MORE), 6);
	cr_expect_eq(offer(&a, "tial\nnext", LINE_MORE), 8);
	expect_out("[1] whole\n[0] partial\n");
}

Test(line, without_a_prefix_lines_go_out_as_they_are)
{
	set_prefix(&a, "");
	offer(&a, "one\n\ntwo\nthr", LINE_MORE);
	expect_out("one\n\ntwo\n");
}

Test(line, room_or_none_gives_the_same_bytes)
{
	struct buf want = { 0 };
	char text[300];

	for (size_t len = 1; len < sizeof(text); len++) {
		memset(text, 'x', len);
		text[len - 1] = '\n';
		buf_clear(&want);
		expected_lines((struct span){ text, len }, "[0] ", &want);
		for (size_t room = 0; room < 2; room++) {
			buf_fini(&out);
			out = (struct buf){ 0 };
			if (room == 1)
				buf_room(&out, 1000);
			buf_clear(&out);
			offer_bytes(&a, text, len, LINE_MORE);
			cr_expect(same(&want), "%zu bytes", len);
			cr_expect_eq(out.data[out.len], '\0');
		}
	}
	buf_fini(&want);
}

/* --- holds --- */

/* @len bytes without a newline that tell their own place. */
static char *
long_text(size_t len)
{
	char *text = malloc(len + 1);

	cr_assert_not_null(text);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 23);
	text[len] = '\0';
	return text;
}

Test(line, a_line_below_the_hold_waits_for_its_newline)
{
	char *text = long_text(LINE_HOLD - 1);

	cr_expect_eq(offer(&a, text, LINE_MORE), 0);
	cr_expect_eq(out.len, 0);
	cr_expect_null(sink.holder);
	cr_expect_eq(offer(&b, "other\n", LINE_MORE), 6);
	expect_out("[1] other\n");
	free(text);
}

Test(line, a_longer_one_takes_hold_of_the_sink)
{
	char *text = long_text(LINE_HOLD);

	cr_expect_eq(offer(&a, text, LINE_MORE), LINE_HOLD);
	cr_expect_eq(sink.holder, &a.line);
	cr_expect_eq(out.len, 4 + LINE_HOLD);
	cr_expect_eq(offer(&b, "waits\n", LINE_MORE), 0);
	cr_expect_eq(offer(&b, "", LINE_IDLE), 0);
	cr_expect_eq(offer(&a, "more", LINE_MORE), 4);
	cr_expect_eq(offer(&a, "end\nnext\nrest", LINE_MORE), 9);
	cr_expect_null(sink.holder);
	cr_expect_str_eq(out.data + 4 + LINE_HOLD, "moreend\n[0] next\n");
	cr_expect_eq(offer(&b, "", LINE_MORE), 6);
	free(text);
}

/* A line of any length, in pieces of any length, is the line. */
Test(line, a_held_line_is_whole)
{
	const size_t len = 3 * LINE_HOLD + 17;
	char *text = long_text(len);

	for (size_t piece = 1; piece < 3 * LINE_HOLD; piece = piece * 3 + 1) {
		begin();
		for (size_t at = 0; at < len; at += piece) {
			offer_bytes(&a, text + at,
				at + piece > len ? len - at : piece, LINE_MORE);
			cr_expect_lt(a.pending.len, LINE_HOLD);
		}
		offer(&a, "\n", LINE_MORE);
		cr_expect_eq(out.len, 4 + len + 1);
		cr_expect_eq(memcmp(out.data, "[0] ", 4), 0);
		cr_expect_eq(memcmp(out.data + 4, text, len), 0);
		cr_expect_eq(out.data[4 + len], '\n');
		cr_expect_null(sink.holder);
	}
	free(text);
}

Test(line, the_end_of_the_stream_ends_a_hold)
{
	char *text = long_text(LINE_HOLD);

	offer(&a, text, LINE_MORE);
	offer(&a, "end", LINE_LAST);
	cr_expect_null(sink.holder);
	cr_expect_str_eq(out.data + 4 + LINE_HOLD, "end\n");
	free(text);
}

Test(line, a_held_line_that_ended_at_its_newline_gets_no_second_one)
{
	char *text = long_text(LINE_HOLD);

	offer(&a, text, LINE_MORE);
	offer(&a, "end\n", LINE_LAST);
	cr_expect_null(sink.holder);
	cr_expect_str_eq(out.data + 4 + LINE_HOLD, "end\n");
	free(text);
}

/* --- giving up --- */

Test(line, an_idle_line_is_put_and_its_continuation_marked)
{
	cr_expect_eq(offer(&a, "wait", LINE_MORE), 0);
	cr_expect_eq(offer(&a, "", LINE_IDLE), 4);
	cr_expect_null(sink.holder);
	expect_out("[0] wait\n");
	offer(&b, "other\n", LINE_MORE);
	offer(&a, "ing\nnew\n", LINE_MORE);
	expect_out("[0] wait\n[1] other\n[0] …ing\n[0] new\n");
}

Test(line, a_line_may_be_given_up_more_than_once)
{
	offer(&a, "1", LINE_IDLE);
	offer(&a, "2", LINE_IDLE);
	offer(&a, "3", LINE_LAST);
	expect_out("[0] 1\n[0] …2\n[0] …3\n");
}

Test(line, idle_without_an_unfinished_line_puts_nothing)
{
	offer(&a, "whole\n", LINE_IDLE);
	offer(&a, "", LINE_IDLE);
	offer(&a, "next\n", LINE_MORE);
	expect_out("[0] whole\n[0] next\n");
}

Test(line, an_idle_hold_lets_the_others_speak)
{
	char *text = long_text(LINE_HOLD);

	offer(&a, text, LINE_MORE);
	offer(&b, "waited\n", LINE_MORE);
	cr_expect_eq(offer(&a, "", LINE_IDLE), 0);
	cr_expect_null(sink.holder);
	cr_expect_eq(offer(&b, "", LINE_MORE), 7);
	offer(&a, "rest\n", LINE_MORE);
	cr_expect_str_eq(out.data + 4 + LINE_HOLD, "\n[1] waited\n[0] …rest\n");
	free(text);
}

Test(line, words_between_make_the_holder_give_up)
{
	char *text = long_text(LINE_HOLD);

	line_give_up(&sink);
	cr_expect_eq(out.len, 0);
	offer(&a, text, LINE_MORE);
	line_give_up(&sink);
	line_give_up(&sink);
	buf_put_text(&out, "xrun: words\n");
	offer(&a, "rest\n", LINE_MORE);
	cr_expect_str_eq(out.data + 4 + LINE_HOLD,
		"\nxrun: words\n[0] …rest\n");
	free(text);
}

Test(line, the_mark_stands_before_the_next_piece_only)
{
	offer(&a, "x", LINE_IDLE);
	offer(&a, "", LINE_LAST);
	expect_out("[0] x\n");
}

/* --- the filter of terminals --- */

Test(line, a_colour_that_runs_on_ends_with_its_line)
{
	sink.filter = true;
	offer(&a, "\033[31mred\nplain\n", LINE_MORE);
	expect_out("[0] \033[31mred\033[0m\n[0] plain\n");
}

Test(line, an_unfinished_sequence_ends_with_its_line)
{
	sink.filter = true;
	offer(&a, "\033]0;title\nshown\n", LINE_MORE);
	offer(&a, "x\033[", LINE_IDLE);
	offer(&a, "31m\n", LINE_MORE);
	expect_out("[0] \n[0] shown\n[0] x\n[0] …31m\n");
}

/* A held line is cut anywhere, in the middle of sequences, too. */
Test(line, sequences_split_anywhere_in_a_held_line_do_not_reach_a_terminal)
{
	static const char tail[] =
		"A\033]52;c;cm0=\aB\033[2JC\033P+q\033\\D\033cE\033(BF\aG";
	char *text = long_text(LINE_HOLD);
	size_t n = sizeof(tail) - 1;

	for (size_t i = 0; i <= n; i++) {
		for (size_t j = i; j <= n; j++) {
			begin();
			sink.filter = true;
			offer(&a, text, LINE_MORE);
			offer_bytes(&a, tail, i, LINE_MORE);
			offer_bytes(&a, tail + i, j - i, LINE_MORE);
			offer_bytes(&a, tail + j, n - j, LINE_MORE);
			cr_expect_str_eq(out.data + 4 + LINE_HOLD, "ABCDEFG",
				"split at %zu, %zu", i, j);
		}
	}
	free(text);
}

/* A colour that is cut is left out as a whole: half of one never shows. */
Test(line, a_colour_split_anywhere_is_whole_or_not_there)
{
	static const char tail[] = "A\033[1;31mB";
	char *text = long_text(LINE_HOLD);
	size_t n = sizeof(tail) - 1;

	for (size_t i = 0; i <= n; i++) {
		begin();
		sink.filter = true;
		offer(&a, text, LINE_MORE);
		offer_bytes(&a, tail, i, LINE_MORE);
		offer_bytes(&a, tail + i, n - i, LINE_MORE);
		offer(&a, "\n", LINE_MORE);
		cr_expect(strcmp(out.data + 4 + LINE_HOLD,
				  "A\033[1;31mB\033[0m\n") == 0 ||
				strcmp(out.data + 4 + LINE_HOLD, "AB\n") == 0,
			"split at %zu", i);
	}
	free(text);
}

/* In UTF-8 c2 begins a letter, or a control character. */
Test(line, a_byte_held_back_by_the_filter_is_not_lost_at_the_end)
{
	sink.filter = true;
	offer(&a, "x\xc2\ny\xc2", LINE_LAST);
	expect_out("[0] x\xc2\n[0] y\xc2\n");
}

Test(line, each_stream_has_a_filter_of_its_own)
{
	sink.filter = true;
	offer(&a, "x\033]0;", LINE_IDLE);
	offer(&b, "shown\n", LINE_MORE);
	expect_out("[0] x\n[1] shown\n");
}

/* --- progress in a pipe --- */

Test(line, the_last_state_of_a_row_is_a_line_once_a_second)
{
	sink.rows = true;
	sink.now = 1;
	offer(&a, "\r10%", LINE_MORE);
	offer(&a, "\r20%", LINE_MORE);
	expect_out("");
	cr_expect(a.line.row_waits);
	cr_expect_eq(a.line.row_ns, 1 + LINE_ROW_NS);
	sink.now = a.line.row_ns;
	offer(&a, "", LINE_MORE);
	expect_out("[0] 20%\n");
	cr_expect_not(a.line.row_waits);
	offer(&b, "other\n", LINE_MORE);
	offer(&a, "\r30%\r40%", LINE_MORE);
	expect_out("[0] 20%\n[1] other\n");
	offer(&a, "\r100%\n", LINE_MORE);
	expect_out("[0] 20%\n[1] other\n[0] 100%\n");
	cr_expect_not(a.line.row_waits);
}

Test(line, a_row_that_was_printed_is_not_printed_again_at_its_end)
{
	sink.rows = true;
	offer(&a, "10%\r", LINE_MORE);
	sink.now = a.line.row_ns;
	offer(&a, "", LINE_MORE);
	expect_out("[0] 10%\n");
	offer(&a, "\n", LINE_MORE);
	offer(&a, "next\n", LINE_MORE);
	expect_out("[0] 10%\n[0] next\n");
}

Test(line, a_row_that_goes_on_without_a_return_has_the_mark)
{
	sink.rows = true;
	offer(&a, "\r10%", LINE_MORE);
	sink.now = a.line.row_ns;
	offer(&a, "", LINE_MORE);
	offer(&a, " done\n", LINE_MORE);
	expect_out("[0] 10%\n[0] … done\n");
}

Test(line, a_row_of_any_cut_ends_in_its_last_state)
{
	static const char text[] = "one\r\n\r1%\r22%\r333%\nsix\r5\r\nend";
	const size_t len = sizeof(text) - 1;

	for (size_t cut = 0; cut <= len; cut++) {
		begin();
		sink.rows = true;
		offer_bytes(&a, text, cut, LINE_MORE);
		offer_bytes(&a, text + cut, len - cut, LINE_LAST);
		expect_out("[0] one\r\n[0] 333%\n[0] 5\n[0] end\n");
	}
}

Test(line, many_returns_and_states_without_end_are_not_kept)
{
	char *many = malloc(2 * LINE_HOLD);

	sink.rows = true;
	for (size_t i = 0; i < 2 * LINE_HOLD; i++)
		many[i] = i % 8 == 0 ? '\r' : 'x';
	offer_bytes(&a, many, 2 * LINE_HOLD, LINE_MORE);
	cr_expect_leq(a.pending.len, 8);
	memset(many, '\r', 2 * LINE_HOLD);
	offer_bytes(&a, many, 2 * LINE_HOLD, LINE_MORE);
	cr_expect_lt(a.pending.len, LINE_HOLD);
	free(many);
}
