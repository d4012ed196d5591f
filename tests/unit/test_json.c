/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - the writer; what it writes passes the gate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/gate.h"
#include "base/json.h"

#define MIB (1u << 20)

static struct xr_error err;

static enum xr_status
check(const char *text)
{
	err = (struct xr_error){ 0 };
	return gate_check("f", text, strlen(text), MIB, &err);
}

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
		{ 10666666666663332.0, "10666666666663332.0" }, { NAN, "null" },
		{ INFINITY, "null" }, { -INFINITY, "null" } };
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

Test(json, a_value_of_somebody_elses_stays_on_its_line)
{
	static const char value[] = "{\n\"a\" :\n[ 1,\n\n\"b\\n\" ]\n}\n";
	struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_open_object(&j, NULL);
	json_raw(&j, "x", (struct span){ value, sizeof(value) - 1 });
	json_close_object(&j);
	cr_expect_str_eq(buf_text(&b), "{\"x\":{ \"a\" : [ 1,  \"b\\n\" ] } }");
	buf_fini(&b);
}
