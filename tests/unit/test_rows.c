/* SPDX-License-Identifier: Apache-2.0 */
/* test_rows.c - how high a line is, or that nobody knows. */
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/rows.h"

static uint32_t
rows(const char *text, uint32_t cols)
{
	return rows_of((struct span){ text, strlen(text) }, cols);
}

static size_t
clip(const char *text, uint32_t cols)
{
	return rows_clip((struct span){ text, strlen(text) }, cols);
}

Test(rows, a_line_wraps_behind_its_last_column)
{
	cr_expect_eq(rows("", 10), 1);
	cr_expect_eq(rows("123456789", 10), 1);
	cr_expect_eq(rows("1234567890", 10), 1);
	cr_expect_eq(rows("1234567890a", 10), 2);
	cr_expect_eq(rows("1234567890123456789012345", 10), 3);
}

Test(rows, colours_take_no_room)
{
	cr_expect_eq(rows("\033[1;31m1234567890\033[0m", 10), 1);
	cr_expect_eq(rows("\033[38:2::1:2:3m1234567890a", 10), 2);
}

Test(rows, letters_count_as_they_are_wide)
{
	cr_expect_eq(rows("3│ Grüße…", 9), 1);
	cr_expect_eq(rows("3│ Grüße…", 8), 2);
	cr_expect_eq(rows("世界世界", 8), 1);
	/* A wide one does not fit into the last column. */
	cr_expect_eq(rows("x世界世界", 9), 1);
	cr_expect_eq(rows("x世界世界", 8), 2);
	cr_expect_eq(rows("世世", 3), 2);
}

Test(rows, tabs_are_plain_until_the_end_of_a_row)
{
	cr_expect_eq(rows("a\tb", 20), 1);
	cr_expect_eq(rows("a\t\tb", 17), 1);
	cr_expect_eq(rows("a\t\tb", 16), 0);
}

Test(rows, what_terminals_do_not_agree_about_is_unknown)
{
	static const char *const texts[] = { "e\xcc\x81", "\xf0\x9f\x98\x80",
		"\xe2\x80\x8b", "\xff", "\xe2\x82", "a\bb", "\033[2J", "\033[",
		"\033", "soft\xc2\xadhyphen", "\r" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_eq(rows(texts[i], 40), 0, "%zu", i);
}

Test(rows, every_truncation_has_an_answer)
{
	static const char text[] = "\033[31m3│ 世\t…x\033[0m";

	for (size_t len = 0; len < sizeof(text); len++) {
		struct span cut = { text, len };

		cr_expect_leq(rows_of(cut, 20), 1);
		cr_expect_leq(rows_clip(cut, 3), len);
	}
}

Test(rows, a_clip_counts_characters_and_no_sequences)
{
	cr_expect_eq(clip("12345", 3), 3);
	cr_expect_eq(clip("12345", 9), 5);
	cr_expect_eq(clip("│││x", 2), 6);
	cr_expect_eq(clip("\033[31mab\033[0mcd", 3), 5 + 2 + 4 + 1);
	cr_expect_eq(clip("\xff\xff\xff", 2), 2);
	cr_expect_eq(clip("ab\033[0m", 2), 6);
}

/* Rows of five such letters on 8 columns: 1 if they are narrow, 2 if wide. */
static uint32_t
rows_of_five(uint32_t code)
{
	char line[20];
	size_t n = 0;

	for (int i = 0; i < 5; i++) {
		if (code < 0x800) {
			line[n++] = (char)(0xc0 | code >> 6);
		} else {
			line[n++] = (char)(0xe0 | code >> 12);
			line[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		}
		line[n++] = (char)(0x80 | (code & 0x3f));
	}
	return rows_of((struct span){ line, n }, 8);
}

Test(rows, where_blocks_of_letters_begin_and_end)
{
	static const uint32_t blocks[][3] = {
		{ 0xa1, 0xac, 1 },
		{ 0xae, 0x2ff, 1 },
		{ 0x370, 0x482, 1 },
		{ 0x48a, 0x52f, 1 },
		{ 0x2010, 0x2027, 1 },
		{ 0x2030, 0x205e, 1 },
		{ 0x20a0, 0x20bf, 1 },
		{ 0x2190, 0x2199, 1 },
		{ 0x2200, 0x22ff, 1 },
		{ 0x2500, 0x25a0, 1 },
		{ 0x3041, 0x3096, 2 },
		{ 0x30a1, 0x30fa, 2 },
		{ 0x4e00, 0x9fff, 2 },
		{ 0xac00, 0xd7a3, 2 },
		{ 0xff01, 0xff60, 2 },
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		cr_expect_eq(rows_of_five(blocks[i][0] - 1), 0, "%zu", i);
		cr_expect_eq(rows_of_five(blocks[i][0]), blocks[i][2]);
		cr_expect_eq(rows_of_five(blocks[i][1]), blocks[i][2]);
		cr_expect_eq(rows_of_five(blocks[i][1] + 1), 0, "%zu", i);
	}
}

Test(rows, tabs_go_to_the_next_eighth_column)
{
	cr_expect_eq(rows("\tab", 10), 1);
	cr_expect_eq(rows("\tabc", 10), 2);
	cr_expect_eq(rows("1234567\tab", 10), 1);
	cr_expect_eq(rows("1234567\tabc", 10), 2);
	cr_expect_eq(rows("12345678\tab", 18), 1);
	cr_expect_eq(rows("12345678\tabc", 18), 2);
	cr_expect_eq(rows("\t", 8), 0);
	cr_expect_eq(rows("\t", 9), 1);
	cr_expect_eq(rows("12345678\t", 16), 0);
	cr_expect_eq(rows("12345678\t", 17), 1);
}

Test(rows, what_is_a_whole_colour)
{
	cr_expect_eq(rows("\033[m", 1), 1);
	cr_expect_eq(rows("\033[0;1:2m", 1), 1);
	cr_expect_eq(rows("\033[<m", 9), 0);
	cr_expect_eq(rows("\033[/m", 9), 0);
	cr_expect_eq(rows("\033m", 9), 0);
	cr_expect_eq(rows("\033[1", 9), 0);
	cr_expect_eq(rows(" ~", 1), 2);
	cr_expect_eq(rows("\x7f", 9), 0);
	cr_expect_eq(rows("\x1f", 9), 0);
	cr_expect_eq(rows("世", 1), 0);
	cr_expect_eq(rows("世", 2), 1);
	cr_expect_eq(clip("\033[1", 9), 3);
	cr_expect_eq(clip("\033[1", 2), 2);
	cr_expect_eq(clip("\033[ma", 0), 3);
}
