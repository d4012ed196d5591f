/* SPDX-License-Identifier: Apache-2.0 */
/* test_gate.c - the gate in front of every reader of JSON, and ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/gate.h"

#define MIB (1u << 20)

static struct xr_error err;

static enum xr_status
check(const char *text)
{
	err = (struct xr_error){ 0 };
	return gate_check("f", text, strlen(text), MIB, &err);
}

static const char whole[] =
	"{\n  \"v\": 1, \"t\": [true, false, null],\n"
	"  \"s\": \"a\\n\\u00e9\\ud83d\\ude00\xc3\xa9\", \"o\": {\"x\": -0.5e+2},\n"
	"  \"e\": [], \"f\": {}, \"z\": 0, \"deep\": [[[1, 2], 3], 4]\n}";

Test(gate, strict_json_passes)
{
	static const char *const rows[] = { whole, "{}", "[]", "0", "-0", "1e2",
		"1E-2", "0.0", "\"\"", "true", "false", "null", " \t\r\n[ ]\n",
		"9007199254740992", "-9007199254740992", "9007199254740992.5",
		"1E22", "123e45", "1.7976931348623157e308",
		"17976931348623157e292", "0e999999999999999999999",
		"1e-999999999999999999999", "9.007199254740992e15",
		"0.00000000000000000000000000000000000000000000000000000001",
		"{\"a\":{\"a\":1},\"b\":{\"a\":1}}", "[{\"a\":1},{\"a\":1}]",
		"{\"A\":1,\"a\":2}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(check(rows[i]), XR_OK, "%s: %s", rows[i],
			err.text);
}

Test(gate, every_truncation_of_a_document_is_refused)
{
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *cut = malloc(n + 1); /* exact, for the sanitizer */
		char *bare = malloc(n == 0 ? 1 : n);

		memcpy(cut, whole, n);
		cut[n] = '\0';
		memcpy(bare, whole, n);
		cr_expect_eq(check(cut), XR_E_DECODE, "%s", cut);
		cr_expect_eq(gate_check("f", bare, n, MIB, &err), XR_E_DECODE);
		free(cut);
		free(bare);
	}
}

/* One of each class, with what is said of it. */
static const struct {
	const char *text, *error;
} wrong[] = {
	{ "", "f:1:1: the text ends too early" },
	{ "{", "f:1:2: the text ends too early" },
	{ "{\"a\":", "f:1:6: the text ends too early" },
	{ "[1", "f:1:3: the text ends too early" },
	{ "\"abc", "f:1:5: the text ends too early" },
	{ "-", "f:1:2: the text ends too early" },
	{ "{}x", "f:1:3: more text after the value" },
	{ "1 2", "f:1:3: more text after the value" },
	{ "{\n  \"a\" 1}", "f:2:7: expected ':'" },
	{ "{a:1}", "f:1:2: expected a key in double quotes" },
	{ "{\"a\":1,}", "f:1:8: expected a key in double quotes" },
	{ "{'a':1}", "f:1:2: expected a key in double quotes" },
	{ "[1,]", "f:1:4: expected a value" },
	{ "[,1]", "f:1:2: expected a value" },
	{ "[1 2]", "f:1:4: expected ',' or ']'" },
	{ "[1}", "f:1:3: expected ',' or ']'" },
	{ "{\"a\":1]", "f:1:7: expected ',' or '}'" },
	{ "// x", "f:1:1: a comment, which this JSON may not have" },
	{ "[1 /* x */]", "f:1:4: a comment, which this JSON may not have" },
	{ "[1 / 2]", "f:1:4: expected ',' or ']'" },
	{ "True", "f:1:1: expected a value" },
	{ "nul", "f:1:1: expected a value" },
	{ "NaN", "f:1:1: expected a value" },
	{ "+1", "f:1:1: expected a value" },
	{ ".5", "f:1:1: expected a value" },
	{ "[012]", "f:1:2: a number with a leading 0" },
	{ "-012", "f:1:1: a number with a leading 0" },
	{ "-x", "f:1:2: expected a digit" },
	{ "[1.]", "f:1:4: expected a digit after the point" },
	{ "[1e]", "f:1:4: expected a digit in the exponent" },
	{ "[1e+]", "f:1:5: expected a digit in the exponent" },
	{ "0x10", "f:1:2: more text after the value" },
	{ "[1e999]", "f:1:2: a number beyond 1.8e308" },
	{ "1e309", "f:1:1: a number beyond 1.8e308" },
	{ "-1.7976931348623159e308", "f:1:1: a number beyond 1.8e308" },
	{ "1.797693134862316e308", "f:1:1: a number beyond 1.8e308" },
	{ "0.001e99999999999999999999", "f:1:1: a number beyond 1.8e308" },
	{ "9007199254740993", "f:1:1: an integer beyond 2^53" },
	{ "-9007199254740993", "f:1:1: an integer beyond 2^53" },
	{ "18446744073709551617", "f:1:1: an integer beyond 2^53" },
	{ "90071992547409920", "f:1:1: an integer beyond 2^53" },
	{ "[\"\\u0000\"]",
		"f:1:3: an escape that means nothing, or no character" },
	{ "\"\\ud800\"",
		"f:1:2: an escape that means nothing, or no character" },
	{ "\"\\udc00\"",
		"f:1:2: an escape that means nothing, or no character" },
	{ "\"\\ud800\\u0041\"",
		"f:1:2: an escape that means nothing, or no character" },
	{ "\"\\x\"", "f:1:2: an escape that means nothing, or no character" },
	{ "\"\\u12g4\"",
		"f:1:2: an escape that means nothing, or no character" },
	{ "\"a\nb\"", "f:1:3: a control character in a string" },
	{ "\"a\x01\"", "f:1:3: a control character in a string" },
	{ "\"\xff\"", "f:1:2: not UTF-8" },
	{ "\"\xc3\xa9\xc3\"", "f:1:3: not UTF-8" },
	{ "\"\xc0\x80\"", "f:1:2: not UTF-8" },
	{ "\"\xed\xa0\x80\"", "f:1:2: not UTF-8" },
	{ "[\xc3\xa9]", "f:1:2: expected a value" },
	{ "\xef\xbb\xbf{}", "f:1:1: a byte order mark" },
	{ "{\"a\":1,\n \"a\":2}", "f:2:2: the key \"a\" again" },
	{ "{\"a\":1,\"\\u0061\":2}", "f:1:8: the key \"\\u0061\" again" },
	{ "{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}",
		"f:1:19: the key \"\xf0\x9f\x98\x80\" again" },
	{ "{\"b\":1,\"c\":1,\"c\":1,\"b\":1}", "f:1:14: the key \"c\" again" },
	{ "{\"c\":1,\"b\":1,\"b\":1,\"c\":1}", "f:1:14: the key \"b\" again" },
	{ "[{\"x\":{\"k\":1,\"k\":1}}]", "f:1:14: the key \"k\" again" },
};

Test(gate, each_class_of_error_is_named_with_its_place)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(check(wrong[i].text), XR_E_DECODE, "%s",
			wrong[i].text);
		cr_expect_str_eq(err.text, wrong[i].error);
	}
}

Test(gate, a_nul_in_the_text_is_no_end)
{
	cr_expect_eq(gate_check("f", "{}\0", 3, MIB, &err), XR_E_DECODE);
	cr_expect_eq(gate_check("f", "\"a\0\"", 4, MIB, &err), XR_E_DECODE);
	cr_expect_eq(gate_check("f", "[\0]", 3, MIB, &err), XR_E_DECODE);
}

Test(gate, depth_32_passes_and_33_does_not)
{
	char text[2 * 33 + 1];

	for (int depth = 32; depth <= 33; depth++) {
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		text[2 * depth] = '\0';
		cr_expect_eq(check(text), depth == 32 ? XR_OK : XR_E_RANGE);
	}
	cr_expect_str_eq(err.text, "f:1:33: nested deeper than 32");
}

Test(gate, a_million_brackets_and_a_large_text_are_refused)
{
	size_t len = 1000000;
	char *text = malloc(len);

	memset(text, '[', len);
	cr_expect_eq(gate_check("f", text, len, MIB, &err), XR_E_RANGE);
	memset(text, ' ', len);
	cr_expect_eq(gate_check("f", text, len, len - 1, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "f: larger than 999999 bytes");
	free(text);
}

Test(gate, a_text_of_the_largest_size_is_read)
{
	cr_expect_eq(gate_check("f", "[1] ", 4, 4, &err), XR_OK);
	cr_expect_eq(gate_check("f", "[1] ", 4, 3, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "f: larger than 3 bytes");
	cr_expect_eq(gate_check("f", "[9007199254740992]", 18, 18, &err),
		XR_OK);
	cr_expect_eq(gate_check("f", "[9007199254740993]", 18, 18, &err),
		XR_E_DECODE);
	cr_expect_eq(gate_check("f", "[90071992547409920]", 19, 19, &err),
		XR_E_DECODE);
	cr_expect_str_eq(err.text, "f:1:2: an integer beyond 2^53");
}

Test(gate, sixty_bytes_of_a_key_are_shown)
{
	char key[62], text[200], want[200];

	for (int len = 59; len <= 61; len++) {
		memset(key, 'k', (size_t)len);
		key[len] = '\0';
		snprintf(text, sizeof(text), "{\"%s\":1,\"%s\":2}", key, key);
		cr_expect_eq(check(text), XR_E_DECODE);
		snprintf(want, sizeof(want),
			"f:1:%d: the key \"%.60s%s\" again", len + 7, key,
			len > 60 ? "..." : "");
		cr_expect_str_eq(err.text, want);
	}
}

Test(gate, doubles_are_found_among_many_keys)
{
	struct buf b = { 0 };

	buf_put_text(&b, "{");
	for (int i = 0; i < 20000; i++)
		buf_fmt(&b, "%s\"key%d\":%d", i == 0 ? "" : ",", i, i);
	buf_put_text(&b, "}");
	cr_expect_eq(gate_check("f", b.data, b.len, MIB, &err), XR_OK);
	b.len--;
	buf_put_text(&b, ",\"key777\":0}");
	cr_expect_eq(gate_check("f", b.data, b.len, MIB, &err), XR_E_DECODE);
	cr_expect(strstr(err.text, "the key \"key777\" again") != NULL);
	buf_fini(&b);
}

Test(gate, no_byte_that_changes_makes_the_gate_read_outside)
{
	char *text = malloc(sizeof(whole) - 1);

	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		for (int byte = 0; byte < 256; byte += 3) {
			memcpy(text, whole, sizeof(whole) - 1);
			text[i] = (char)byte;
			gate_check("f", text, sizeof(whole) - 1, MIB, NULL);
		}
	}
	free(text);
}

/* --- with comments --- */

/* What the gate leaves of @text, or the error. */
static const char *
left_of(const char *text)
{
	static char out[512];

	snprintf(out, sizeof(out), "%s", text);
	err = (struct xr_error){ 0 };
	if (gate_check_commented("f", out, strlen(out), MIB, &err) == XR_OK)
		return out;
	cr_expect_str_eq(out, text, "changed though it was refused");
	return err.text;
}

Test(gate, comments_and_last_commas_become_blanks)
{
	static const char *const rows[][2] = {
		{ "{ }", "{ }" },
		{ "// x\n1", "    \n1" },
		{ "1 // x", "1     " },
		{ "1//", "1  " },
		{ "[1,/**/]", "[1     ]" },
		{ "/* a\n b */ [1, 2, ]", "    \n      [1, 2  ]" },
		{ "{\"a\":[1,],}", "{\"a\":[1 ] }" },
		{ "{\"a\":1, // b, }\n}", "{\"a\":1         \n}" },
		{ "[\"//\", \"/* \\\" */,]\"]", "[\"//\", \"/* \\\" */,]\"]" },
		{ "/* \xc3\xa9\xe2\x82\xac */1", "    \r \r\r   1" },
		{ "[1, /* , */ 2]", "[1,         2]" },
		{ "[/* * / **/]", "[          ]" },
		{ "1 // \r\n", "1    \r\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_str_eq(left_of(rows[i][0]), rows[i][1]);
		cr_expect_eq(check(rows[i][1]), XR_OK, "%s", err.text);
	}
}

Test(gate, what_only_looks_like_a_comment_or_last_comma_is_refused)
{
#define BROKEN "a comment that does not end, or is not plain UTF-8"
	static const char *const rows[][2] = {
		{ "[,]", "f:1:2: expected a value" },
		{ "{,}", "f:1:2: expected a key in double quotes" },
		{ "[1,,]", "f:1:4: expected a value" },
		{ "[1],", "f:1:4: more text after the value" },
		{ "1 /", "f:1:3: more text after the value" },
		{ "/* 1", "f:1:1: " BROKEN },
		{ "1 /*/", "f:1:3: " BROKEN },
		{ "1 // \xff", "f:1:3: " BROKEN },
		{ "1 /* \x01 */", "f:1:3: " BROKEN },
		{ "# x\n1", "f:1:1: expected a value" },
		{ "// only", "f:1:8: the text ends too early" },
		{ "{\"a\": /* \xc3\xa9 */ x}", "f:1:15: expected a value" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(left_of(rows[i][0]), rows[i][1]);
	cr_expect_eq(gate_check_commented("f", (char[]){ "1//\0" }, 4, MIB,
			     NULL),
		XR_E_DECODE);
}

static const char commented[] =
	"/* \xc3\xa9 */ {\n  \"a\": [1, 2, /* 3 */ ], // b\n"
	"  \"c\": \"//\", \"d\": {\"e\": -0.5e+2,},\n}// end";

Test(gate, every_truncation_with_comments_is_refused_or_strict_afterwards)
{
	for (size_t n = 0; n < sizeof(commented); n++) {
		char *cut = malloc(n == 0 ? 1 : n);

		memcpy(cut, commented, n);
		if (gate_check_commented("f", cut, n, MIB, &err) == XR_OK)
			cr_expect_eq(gate_check("f", cut, n, MIB, &err), XR_OK,
				"%s", err.text);
		else
			cr_expect_eq(memcmp(cut, commented, n), 0);
		free(cut);
	}
}

Test(gate, a_byte_that_changes_leaves_comments_refused_or_strict)
{
	size_t len = sizeof(commented) - 1;
	char *text = malloc(len);

	for (size_t i = 0; i < len; i++) {
		for (int byte = 0; byte < 256; byte++) {
			memcpy(text, commented, len);
			text[i] = (char)byte;
			if (gate_check_commented("f", text, len, MIB, NULL) ==
				XR_OK)
				cr_expect_eq(gate_check("f", text, len, MIB,
						     &err),
					XR_OK, "%zu %d %s", i, byte, err.text);
		}
	}
	free(text);
}

/* --- reading --- */

static struct span
whole_span(const char *text)
{
	return gate_root(text, strlen(text));
}

/* Every value below @value, in order, as key=value; */
static void
put_all(struct buf *out, struct span value)
{
	struct gate_walk walk = gate_walk(value);
	struct gate_item item;
	char text[64];

	while (gate_next(&walk, &item)) {
		if (item.key.at != NULL) {
			gate_unescape(item.key, text);
			buf_fmt(out, "%s=", text);
		}
		if (gate_kind(item.value) == GATE_OBJECT ||
			gate_kind(item.value) == GATE_ARRAY) {
			buf_put_char(out, *item.value.at);
			put_all(out, item.value);
			buf_put_char(out, item.value.at[item.value.len - 1]);
			continue;
		}
		buf_fmt(out, "%.*s;", (int)item.value.len, item.value.at);
	}
}

Test(gate, a_reader_sees_every_value_once_and_whole)
{
	static const char *const rows[][2] = {
		{ "{}", "" },
		{ " [ ] ", "" },
		{ "12", "" },
		{ "\"[1]\"", "" },
		{ "[1,2 , -3.5e1]", "1;2;-3.5e1;" },
		{ "{\"a\":1,\"b\" : [true,{\"c\":null}], \"d\":\"x,]}\\\"\"}",
			"a=1;b=[true;{c=null;}]d=\"x,]}\\\"\";" },
		{ "[[],{},[[]],\"\"]", "[]{}[[]]\"\";" },
		{ "{\"\\u00e9\\ud83d\\ude00\\n\":0}",
			"\xc3\xa9\xf0\x9f\x98\x80\n=0;" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf b = { 0 };

		cr_expect_eq(check(rows[i][0]), XR_OK, "%s", err.text);
		put_all(&b, whole_span(rows[i][0]));
		cr_expect_str_eq(buf_text(&b), rows[i][1]);
		buf_fini(&b);
	}
}

Test(gate, a_root_has_no_blanks_around_it)
{
	static const char *const rows[][2] = { { " 1 ", "1" },
		{ "true", "true" }, { "\n\"a b\"\n", "\"a b\"" },
		{ " { } ", "{ }" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect(span_is(whole_span(rows[i][0]), rows[i][1]), "%s",
			rows[i][0]);
}

Test(gate, kinds_are_told_by_the_first_character)
{
	cr_expect_eq(gate_kind(whole_span("-1")), GATE_NUMBER);
	cr_expect_eq(gate_kind(whole_span("9")), GATE_NUMBER);
	cr_expect_eq(gate_kind(whole_span("0")), GATE_NUMBER);
	cr_expect_eq(gate_kind(whole_span("true")), GATE_TRUE);
	cr_expect_eq(gate_kind(whole_span("false")), GATE_FALSE);
	cr_expect_eq(gate_kind(whole_span("null")), GATE_NULL);
	cr_expect_eq(gate_kind(whole_span("\"\"")), GATE_TEXT);
	cr_expect_eq(gate_kind(whole_span("[]")), GATE_ARRAY);
	cr_expect_eq(gate_kind(whole_span("{}")), GATE_OBJECT);
}

Test(gate, places_count_characters)
{
	const char *text = "a\xc3\xa9z\r\nb";
	struct gate_place p = gate_place(text, strchr(text, 'z'));

	cr_expect_eq(p.line, 1);
	cr_expect_eq(p.column, 3);
	p = gate_place(text, strchr(text, 'b'));
	cr_expect_eq(p.line, 2);
	cr_expect_eq(p.column, 1);
}

Test(gate, a_comment_may_be_the_end_of_a_text)
{
	static const struct {
		const char *text;
		bool whole;
	} rows[] = {
		{ "{}/**/", true },
		{ "{}/***/", true },
		{ "{}//", true },
		{ "{}// x", true },
		{ "{}//\n", true },
		{ "{}/* x *//**/", true },
		{ "/**/{}", true },
		{ "{}/", false },
		{ "{}/x", false },
		{ "{}/x\n", false },
		{ "/x {}", false },
		{ "{}/*", false },
		{ "{}/*/", false },
		{ "{}/* x *", false },
		{ "{}/* x * /", false },
	};
	char text[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].text);
		char *copy = malloc(len);

		memcpy(copy, rows[i].text, len);
		snprintf(text, sizeof(text), "%s", rows[i].text);
		cr_expect_eq(gate_check_commented("f", copy, len, MIB, &err) ==
				XR_OK,
			rows[i].whole, "%s", text);
		free(copy);
	}
}
