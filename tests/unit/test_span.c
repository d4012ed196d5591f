/* SPDX-License-Identifier: Apache-2.0 */
/* test_span.c - pieces of text from outside, and globs for them. */
#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/span.h"

Test(span, a_glob_is_the_whole_name)
{
	static const struct {
		const char *pattern, *text;
		bool fits;
	} rows[] = {
		{ "", "", true },
		{ "*", "", true },
		{ "**", "abc", true },
		{ "a*", "abc", true },
		{ "*c", "abc", true },
		{ "a*b*c", "aXbYbZc", true },
		{ "a?c", "abc", true },
		{ "a?c", "ac", false },
		{ "?", "", false },
		{ "abc", "ab", false },
		{ "ab", "abc", false },
		{ "*ab", "aab", true },
		{ "*aab*b", "aaaabxb", true },
		{ "*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			false },
		{ "[a]", "a", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(span_fits(span_of(rows[i].pattern),
				     span_of(rows[i].text)),
			rows[i].fits, "%s %s", rows[i].pattern, rows[i].text);
}

Test(span, a_span_is_the_whole_text_or_it_is_not)
{
	struct span s = { .at = "rank", .len = 4 };

	cr_assert(span_is(s, "rank"));
	cr_assert_not(span_is(s, "ran"));
	cr_assert_not(span_is(s, "ranks"));
}

Test(span, pieces_are_cut_off_one_by_one)
{
	static const struct {
		const char *text;
		size_t count;
		const char *pieces[5];
	} rows[] = {
		{ "", 1, { "" } },
		{ "a", 1, { "a" } },
		{ "a,bc", 2, { "a", "bc" } },
		{ ",", 2, { "", "" } },
		{ ",a", 2, { "", "a" } },
		{ "a,", 2, { "a", "" } },
		{ "a,,bcd,e", 4, { "a", "", "bcd", "e" } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct span rest = span_of(rows[i].text);
		size_t n = 0;

		cr_expect_eq(span_count(rest, ','), rows[i].count, "'%s'",
			rows[i].text);
		while (rest.at != NULL) {
			struct span piece;

			cr_assert_lt(n, rows[i].count);
			/* It ends with the text, to the byte. */
			cr_expect_eq(rest.at + rest.len,
				rows[i].text + strlen(rows[i].text));
			piece = span_next(&rest, ',');
			cr_expect(span_is(piece, rows[i].pieces[n]),
				"%zu of %s", n, rows[i].text);
			n++;
		}
		cr_expect_eq(n, rows[i].count);
		cr_expect_eq(rest.len, 0);
	}
}

/* What is behind the end of a span does not count. */
Test(span, a_piece_of_a_text_has_its_own_end)
{
	struct span rest = { "a,b,c", 3 };

	cr_expect_eq(span_count(rest, ','), 2);
	cr_expect(span_is(span_next(&rest, ','), "a"));
	cr_expect_eq(rest.len, 1);
	cr_expect(span_is(span_next(&rest, ','), "b"));
	cr_expect_null(rest.at);
	cr_expect_eq(span_of(NULL).len, 0);
	cr_expect_null(span_of(NULL).at);
	cr_expect(span_fits((struct span){ "a*b", 2 },
		(struct span){ "axyz", 3 }));
	cr_expect_not(span_fits((struct span){ "ab", 1 },
		(struct span){ "ab", 2 }));
}

Test(span, a_number_is_digits_up_to_a_limit)
{
	static const struct {
		const char *text;
		uint32_t max, number;
		bool is;
	} rows[] = {
		{ "0", 0, 0, true },
		{ "1", 0, 77, false },
		{ "007", 7, 7, true },
		{ "42", 42, 42, true },
		{ "43", 42, 77, false },
		{ "4294967295", UINT32_MAX, UINT32_MAX, true },
		{ "4294967296", UINT32_MAX, 77, false },
		{ "18446744073709551617", UINT32_MAX, 77, false },
		{ "1234567890", UINT32_MAX, 1234567890, true },
		{ "", 9, 77, false },
		{ "-1", 9, 77, false },
		{ "+1", 9, 77, false },
		{ " 1", 9, 77, false },
		{ "1 ", 9, 77, false },
		{ "1/", 99, 77, false },
		{ "1:", 99, 77, false },
		{ "x", 99, 77, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t number = 77;

		cr_expect_eq(number_parse(span_of(rows[i].text), rows[i].max,
				     &number),
			rows[i].is, "'%s'", rows[i].text);
		cr_expect_eq(number, rows[i].number, "'%s'", rows[i].text);
	}
}
