/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - the writer, and the gate in front of cJSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/json.h"

#define MIB (1u << 20)

static struct xr_error err;

static enum xr_status
check(const char *text)
{
	err = (struct xr_error){ 0 };
	return json_check("f", text, strlen(text), MIB, &err);
}

/* --- the writer --- */

Test(json, commas_colons_and_nesting_come_by_themselves)
{
	struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_open_object(&j, NULL);
	json_text(&j, "job", "k7m2");
	json_open_array(&j, "ranks");
	json_int(&j, NULL, 0);
	json_int(&j, NULL, -1);
	json_open_object(&j, NULL);
	json_close_object(&j);
	json_close_array(&j);
	json_bool(&j, "ok", true);
	json_bool(&j, "bad", false);
	json_text(&j, "none", NULL);
	json_real(&j, "x", 0.5);
	json_close_object(&j);
	cr_expect_str_eq(buf_text(&b),
		"{\"job\":\"k7m2\",\"ranks\":[0,-1,{}],\"ok\":true,"
		"\"bad\":false,\"none\":null,\"x\":0.5}");
	cr_expect_eq(check(buf_text(&b)), XR_OK, "%s", err.text);
	buf_fini(&b);
}

/* What the writer makes of @len bytes. */
static const char *
written(const char *text, size_t len)
{
	static char out[512];
	struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_bytes(&j, NULL, (struct span){ .at = text, .len = len });
	snprintf(out, sizeof(out), "%s", buf_text(&b));
	buf_fini(&b);
	return out;
}

Test(json, text_is_escaped_and_bad_bytes_are_replaced)
{
#define FFFD "\xef\xbf\xbd"
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} rows[] = {
		{ "", 0, "\"\"" },
		{ "a\"b\\c/", 6, "\"a\\\"b\\\\c/\"" },
		{ "\n\t\r\x01\x1f\x7f", 6,
			"\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"" },
		{ "a\0b", 3, "\"a\\u0000b\"" },
		{ "gr\xc3\xbc\xc3\x9f", 6, "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"" },
		{ "\xff", 1, "\"" FFFD "\"" },
		{ "a\xc3", 2, "\"a" FFFD "\"" },
		{ "\xc0\x80", 2, "\"" FFFD FFFD "\"" },
		{ "\xed\xa0\x80", 3, "\"" FFFD FFFD FFFD "\"" },
		{ "\xf4\x90\x80\x80x", 5, "\"" FFFD FFFD FFFD FFFD "x\"" },
		{ "\xe0\x80\x80", 3, "\"" FFFD FFFD FFFD "\"" },
		{ "\x80ok", 3, "\"" FFFD "ok\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(written(rows[i].in, rows[i].len), rows[i].out);
}

Test(json, any_bytes_become_text_that_is_valid)
{
	unsigned seed = 7;
	char bytes[40];

	for (int round = 0; round < 2000; round++) {
		size_t len = (size_t)rand_r(&seed) % sizeof(bytes);
		const char *out;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)(rand_r(&seed) >> 3 | 1);
		out = written(bytes, len);
		cr_expect_eq(check(out), XR_OK, "%s: %s", out, err.text);
	}
}

Test(json, numbers_are_written_so_that_they_read_back)
{
	static const struct {
		double in;
		const char *out;
	} rows[] = { { 0, "0" }, { 0.1, "0.1" }, { -2.5, "-2.5" },
		{ 1e-7, "1e-07" }, { 1.0 / 3, "0.3333333333333333" },
		{ NAN, "null" }, { INFINITY, "null" }, { -INFINITY, "null" } };
	struct buf b = { 0 };
	struct json j;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&b);
		json_init(&j, &b);
		json_real(&j, NULL, rows[i].in);
		cr_expect_str_eq(buf_text(&b), rows[i].out);
	}
	buf_clear(&b);
	json_init(&j, &b);
	json_int(&j, NULL, INT64_C(1) << 53);
	json_int(&j, NULL, (INT64_C(1) << 53) + 1);
	json_int(&j, NULL, INT64_MIN);
	cr_expect_str_eq(buf_text(&b),
		"9007199254740992,\"9007199254740993\","
		"\"-9223372036854775808\"");
	buf_fini(&b);
}

Test(json, writing_too_deep_fails_the_buf)
{
	struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	for (int i = 0; i < 32; i++)
		json_open_array(&j, NULL);
	cr_expect_eq(b.bad, XR_OK);
	json_open_array(&j, NULL);
	cr_expect_eq(b.bad, XR_E_RANGE);
	for (int i = 0; i < 40; i++)
		json_close_array(&j);
	buf_clear(&b);
	json_init(&j, &b);
	json_close_array(&j);
	cr_expect_eq(b.bad, XR_E_STATE);
	buf_fini(&b);
}

/* --- the gate --- */

static const char whole[] =
	"{\n  \"v\": 1, \"t\": [true, false, null],\n"
	"  \"s\": \"a\\n\\u00e9\\ud83d\\ude00\xc3\xa9\", \"o\": {\"x\": -0.5e+2},\n"
	"  \"e\": [], \"f\": {}, \"z\": 0, \"deep\": [[[1, 2], 3], 4]\n}";

Test(json, strict_json_passes)
{
	static const char *const rows[] = { whole, "{}", "[]", "0", "-0", "1e2",
		"1E-2", "0.0", "\"\"", "true", "false", "null", " \t\r\n[ ]\n",
		"9007199254740992", "-9007199254740992", "9007199254740991.999",
		"0e999999999999999999999", "1e-999999999999999999999",
		"9.007199254740992e15",
		"0.00000000000000000000000000000000000000000000000000000001",
		"{\"a\":{\"a\":1},\"b\":{\"a\":1}}", "[{\"a\":1},{\"a\":1}]",
		"{\"A\":1,\"a\":2}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(check(rows[i]), XR_OK, "%s: %s", rows[i],
			err.text);
}

Test(json, every_truncation_of_a_document_is_refused)
{
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *cut = malloc(n + 1); /* exact, for the sanitizer */
		char *bare = malloc(n == 0 ? 1 : n);

		memcpy(cut, whole, n);
		cut[n] = '\0';
		memcpy(bare, whole, n);
		cr_expect_eq(check(cut), XR_E_DECODE, "%s", cut);
		cr_expect_eq(json_check("f", bare, n, MIB, &err), XR_E_DECODE);
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
	{ "// x", "f:1:1: expected a value" },
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
	{ "[1e999]", "f:1:2: a number beyond 2^53" },
	{ "9007199254740993", "f:1:1: a number beyond 2^53" },
	{ "-9007199254740993", "f:1:1: a number beyond 2^53" },
	{ "9007199254740992.5", "f:1:1: a number beyond 2^53" },
	{ "18446744073709551617", "f:1:1: a number beyond 2^53" },
	{ "1e16", "f:1:1: a number beyond 2^53" },
	{ "[\"\\u0000\"]", "f:1:3: not an escape that can be used" },
	{ "\"\\ud800\"", "f:1:2: not an escape that can be used" },
	{ "\"\\udc00\"", "f:1:2: not an escape that can be used" },
	{ "\"\\ud800\\u0041\"", "f:1:2: not an escape that can be used" },
	{ "\"\\x\"", "f:1:2: not an escape that can be used" },
	{ "\"\\u12g4\"", "f:1:2: not an escape that can be used" },
	{ "\"a\nb\"", "f:1:3: a control character in a string" },
	{ "\"a\x01\"", "f:1:3: a control character in a string" },
	{ "\"\xff\"", "f:1:2: not UTF-8" },
	{ "\"\xc3\xa9\xc3\"", "f:1:3: not UTF-8" },
	{ "\"\xc0\x80\"", "f:1:2: not UTF-8" },
	{ "\"\xed\xa0\x80\"", "f:1:2: not UTF-8" },
	{ "[\xc3\xa9]", "f:1:2: expected a value" },
	{ "\xef\xbb\xbf{}", "f:1:1: a byte order mark" },
	{ "{\"a\":1,\n \"a\":2}", "f:2:2: a key that was there" },
	{ "{\"a\":1,\"\\u0061\":2}", "f:1:8: a key that was there" },
	{ "{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}",
		"f:1:19: a key that was there" },
	{ "{\"b\":1,\"c\":1,\"c\":1,\"b\":1}", "f:1:14: a key that was there" },
	{ "{\"c\":1,\"b\":1,\"b\":1,\"c\":1}", "f:1:14: a key that was there" },
	{ "[{\"x\":{\"k\":1,\"k\":1}}]", "f:1:14: a key that was there" },
};

Test(json, each_class_of_error_is_named_with_its_place)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(check(wrong[i].text), XR_E_DECODE, "%s",
			wrong[i].text);
		cr_expect_str_eq(err.text, wrong[i].error);
	}
}

Test(json, a_nul_in_the_text_is_no_end)
{
	cr_expect_eq(json_check("f", "{}\0", 3, MIB, &err), XR_E_DECODE);
	cr_expect_eq(json_check("f", "\"a\0\"", 4, MIB, &err), XR_E_DECODE);
	cr_expect_eq(json_check("f", "[\0]", 3, MIB, &err), XR_E_DECODE);
}

Test(json, depth_32_passes_and_33_does_not)
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

Test(json, a_million_brackets_and_a_large_text_are_refused)
{
	size_t len = 1000000;
	char *text = malloc(len);

	memset(text, '[', len);
	cr_expect_eq(json_check("f", text, len, MIB, &err), XR_E_RANGE);
	memset(text, ' ', len);
	cr_expect_eq(json_check("f", text, len, len - 1, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "f: larger than 999999 bytes");
	free(text);
}

Test(json, doubles_are_found_among_many_keys)
{
	struct buf b = { 0 };

	buf_put_text(&b, "{");
	for (int i = 0; i < 20000; i++)
		buf_fmt(&b, "%s\"key%d\":%d", i == 0 ? "" : ",", i, i);
	buf_put_text(&b, "}");
	cr_expect_eq(json_check("f", b.data, b.len, MIB, &err), XR_OK);
	b.len--;
	buf_put_text(&b, ",\"key777\":0}");
	cr_expect_eq(json_check("f", b.data, b.len, MIB, &err), XR_E_DECODE);
	cr_expect(strstr(err.text, "a key that was there") != NULL);
	buf_fini(&b);
}

Test(json, no_byte_that_changes_makes_the_gate_read_outside)
{
	char *text = malloc(sizeof(whole) - 1);

	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		for (int byte = 0; byte < 256; byte += 3) {
			memcpy(text, whole, sizeof(whole) - 1);
			text[i] = (char)byte;
			json_check("f", text, sizeof(whole) - 1, MIB, NULL);
		}
	}
	free(text);
}
