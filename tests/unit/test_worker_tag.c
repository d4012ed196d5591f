/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_tag.c - the value of XRUN_STDIO. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/stdio_tag.h"

static const struct stdio_tag largest = {
	.out = { UINT64_MAX, UINT64_MAX },
	.err = { UINT64_MAX, UINT64_MAX - 1 },
	.mode = STDIO_FULL,
};

static bool
is_same(const struct stdio_tag *a, const struct stdio_tag *b)
{
	return a->out.dev == b->out.dev && a->out.ino == b->out.ino &&
		a->err.dev == b->err.dev && a->err.ino == b->err.ino &&
		a->mode == b->mode;
}

Test(tag, what_is_written_is_read_back)
{
	static const struct stdio_tag tags[] = {
		{ { 0, 0 }, { 0, 1 }, STDIO_LINE },
		{ { 15, 4026531840 }, { 15, 4026531841 }, STDIO_NONE },
	};
	struct stdio_tag back;
	char text[STDIO_TAG_MAX];
	size_t i;

	for (i = 0; i < 2; i++) {
		stdio_tag_format(&tags[i], text);
		cr_assert(stdio_tag_parse(text, &back));
		cr_assert(is_same(&back, &tags[i]));
	}
	stdio_tag_format(&tags[1], text);
	cr_assert_str_eq(text, "15:4026531840,15:4026531841;none");
}

Test(tag, the_largest_numbers_fit)
{
	struct stdio_tag back;
	char text[STDIO_TAG_MAX];

	stdio_tag_format(&largest, text);
	cr_assert_lt(strlen(text), (size_t)STDIO_TAG_MAX);
	cr_assert(stdio_tag_parse(text, &back));
	cr_assert(is_same(&back, &largest));
}

Test(tag, one_pipe_stands_for_both)
{
	struct stdio_tag tag;

	cr_assert(stdio_tag_parse("3:4;line", &tag));
	cr_assert_eq(tag.err.dev, 3u);
	cr_assert_eq(tag.err.ino, 4u);
}

Test(tag, every_truncation_is_refused)
{
	struct stdio_tag tag = { .mode = STDIO_NONE };
	char text[STDIO_TAG_MAX], cut[STDIO_TAG_MAX];
	size_t len;

	stdio_tag_format(&largest, text);
	for (len = 0; len < strlen(text); len++) {
		memcpy(cut, text, len);
		cut[len] = '\0';
		cr_assert_not(stdio_tag_parse(cut, &tag), "%s", cut);
	}
	cr_assert_eq(tag.mode, STDIO_NONE);
	cr_assert_eq(tag.out.dev, 0u);
}

Test(tag, what_is_not_quite_a_tag_is_refused)
{
	static const char *const bad[] = { "1:2;line ", " 1:2;line", "1:2;LINE",
		"1:2;lines", "1:2,;line", "1:2,3;line", "1:2,3:4,5:6;line",
		"-1:2;line", "1:+2;line", "1;line", ":;line", "1:2line",
		"18446744073709551616:0;line", "1:2,3:4" };
	struct stdio_tag tag;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(stdio_tag_parse(bad[i], &tag), "%s", bad[i]);
}
