/* SPDX-License-Identifier: Apache-2.0 */
/* test_brace.c - texts with names in braces. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/brace.h"

static const char *const names[] = { "job", "host", NULL };
static struct xr_error err;

/* In memory of just that size, so that a byte too far is seen. The pieces
 * between bars, names by their number; NULL: refused. */
static const char *
pieces(const char *text, size_t len)
{
	static char out[200];
	char *copy = malloc(len == 0 ? 1 : len);
	struct brace b = brace_of((struct span){ copy, len }, names);
	struct brace_piece piece = { 0 };
	enum xr_status status;
	size_t n = 0;

	cr_assert_not_null(copy);
	memcpy(copy, text, len);
	err = (struct xr_error){ 0 };
	while ((status = brace_next(&b, &piece, &err)) == XR_OK &&
		piece.name != BRACE_END) {
		out[n++] = '|';
		if (piece.name == BRACE_TEXT)
			memcpy(out + n, piece.text.at, piece.text.len);
		else
			out[n] = (char)('0' + piece.name);
		n += piece.name == BRACE_TEXT ? piece.text.len : 1;
	}
	out[n] = '\0';
	if (status == XR_OK) /* and so it stays */
		cr_expect(brace_next(&b, &piece, &err) == XR_OK &&
			piece.name == BRACE_END);
	free(copy);
	cr_expect_eq(brace_check((struct span){ text, len }, names, NULL),
		status);
	return status == XR_OK ? out : NULL;
}

static void
expect(const char *text, const char *want)
{
	const char *got = pieces(text, strlen(text));

	cr_assert_not_null(got, "%s: %s", text, err.text);
	cr_expect_str_eq(got, want);
}

static void
expect_wrong(const char *text, const char *words)
{
	cr_expect_null(pieces(text, strlen(text)), "%s", text);
	cr_expect_str_eq(err.text, words);
}

Test(brace, names_and_text_come_one_after_the_other)
{
	expect("", "");
	expect("plain", "|plain");
	expect("/a/{host}/run-{job}", "|/a/|1|/run-|0");
	expect("{job}{job}", "|0|0");
}

Test(brace, a_doubled_brace_is_one_of_the_text)
{
	expect("{{job}}", "|{|job|}");
	expect("{{{job}}}", "|{|0|}");
	expect("}}{{", "|}|{");
}

Test(brace, what_is_wrong_is_told_with_its_byte)
{
	expect_wrong("a{hsot}",
		"byte 1: '{hsot}' is not one of {job} {host} (did you mean {host}?)");
	expect_wrong("{}",
		"byte 0: '{}' is not one of {job} {host}; a brace of the text is doubled");
	expect_wrong("ab}", "byte 2: a '}' alone; one of the text is }}");
	expect_wrong("{job}}", "byte 5: a '}' alone; one of the text is }}");
	expect_wrong("{{{job",
		"byte 2: '{' without its '}'; one of the text is {{");
}

Test(brace, every_truncation_is_taken_or_refused)
{
	static const char text[] = "a{{b}}{job}{host}";
	static const char good[] = "yynyynynnnnynnnnny";

	for (size_t len = 0; len < sizeof(text); len++)
		cr_expect_eq(pieces(text, len) != NULL, good[len] == 'y',
			"%zu bytes", len);
}

Test(brace, a_name_is_found_where_it_is_one)
{
	static const struct {
		const char *text;
		bool has;
	} rows[] = { { "x{job}", true }, { "{{job}}", false },
		{ "{host}", false }, { "", false }, { "{{{job}", true } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(brace_has((struct span){ rows[i].text,
					       strlen(rows[i].text) },
				     names, 0),
			rows[i].has, "%s", rows[i].text);
}
