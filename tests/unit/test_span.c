/* SPDX-License-Identifier: Apache-2.0 */
/* test_span.c - pieces of text from outside, and globs for them. */
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
