/* SPDX-License-Identifier: Apache-2.0 */
/* test_control.c - messages of control sockets: every row of control.def. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "wire/control.h"

static struct xr_error err;

/* The message, read from a copy of @text; good until the next. */
static enum xr_status
read_text(struct control *m, const char *text, enum control_by by)
{
	static char line[4096];

	snprintf(line, sizeof(line), "%s", text);
	err = (struct xr_error){ 0 };
	return control_read(m, line, strlen(line), by, &err);
}

/* "{"type":"signal","id":7,"signal":"a\"b","ranks":"a\"b"}" of any row: each of
 * its fields with a value that its kind allows; @left: without that one */
static void
put_sample(struct buf *out, const struct control_row *row,
	const struct control_field *left)
{
	static const char *const values[] = {
		[CONTROL_KIND_text] = "\"a\\\"b\u00e9\"",
		[CONTROL_KIND_int] = "-9007199254740992",
		[CONTROL_KIND_real] = "0.25",
		[CONTROL_KIND_flag] = "true",
		[CONTROL_KIND_json] = "{\"x\":[1,null]}",
	};

	buf_fmt(out, "{\"type\":\"%s\",\"id\":7", row->name);
	for (const struct control_field *f = row->fields(); f->name != NULL;
		f++)
		if (f != left)
			buf_fmt(out, ",\"%s\":%s", f->name, values[f->kind]);
	buf_put_text(out, "}");
}

Test(control, each_message_is_read_as_it_was_written)
{
	for (int i = 0; i < CONTROL_TYPES; i++) {
		const struct control_row *row = &control_rows[i];
		struct buf text = { 0 }, again = { 0 }, third = { 0 };
		struct control m;

		put_sample(&text, row, NULL);
		cr_assert_eq(read_text(&m, text.data, row->by), XR_OK, "%s: %s",
			row->name, err.text);
		cr_expect_eq((int)m.type, i);
		cr_expect_eq(m.id, 7);
		control_put(&again, &m);
		cr_assert_eq(again.data[again.len - 1], '\n');
		again.data[again.len - 1] = '\0';
		cr_expect_str_eq(again.data, buf_text(&text));
		cr_assert_eq(read_text(&m, again.data, row->by), XR_OK);
		control_put(&third, &m);
		cr_expect_eq(strncmp(again.data, third.data, again.len - 1), 0,
			"%s\n%s", again.data, third.data);
		buf_fini(&text);
		buf_fini(&again);
		buf_fini(&third);
	}
}

/* @value of field @f of @m, as @got; bare numbers and flags. */
static const void *
place_of(const struct control *m, const struct control_field *f)
{
	return (const char *)m + offsetof(struct control, welcome) + f->offset;
}

static void
expect_unset(const struct control *m, const struct control_field *f)
{
	const void *at = place_of(m, f);

	switch (f->kind) {
	case CONTROL_KIND_text:
		cr_expect_null(*(const char *const *)at);
		break;
	case CONTROL_KIND_int:
		cr_expect_eq(*(const CONTROL_C_int *)at, CONTROL_NONE);
		break;
	case CONTROL_KIND_real:
		cr_expect(isnan(*(const CONTROL_C_real *)at));
		break;
	case CONTROL_KIND_flag:
		cr_expect_not(*(const CONTROL_C_flag *)at);
		break;
	case CONTROL_KIND_json:
		cr_expect_null(((const CONTROL_C_json *)at)->at);
		cr_expect_eq(((const CONTROL_C_json *)at)->len, 0);
		break;
	}
}

Test(control, a_new_message_says_nothing)
{
	for (int i = 0; i < CONTROL_TYPES; i++) {
		struct control m = control_new((enum control_type)i, 5);

		cr_expect_eq((int)m.type, i);
		cr_expect_eq(m.id, 5);
		for (const struct control_field *f = control_rows[i].fields();
			f->name != NULL; f++)
			expect_unset(&m, f);
	}
}

/* Values of JSON, and the kinds of fields that take them. */
static const struct {
	const char *json;
	bool text, integer, real, flag;
} kinds[] = {
	{ "\"x\"", true, false, false, false },
	{ "7", false, true, true, false },
	{ "0", false, true, true, false },
	{ "-0.5", false, false, true, false },
	{ "9007199254740992", false, true, true, false },
	{ "-9007199254740992", false, true, true, false },
	{ "1e300", false, false, true, false },
	{ "-1e300", false, false, true, false },
	{ "true", false, false, false, true },
	{ "false", false, false, false, true },
	{ "{}", false, false, false, false },
	{ "[1]", false, false, false, false },
};

static bool
takes(size_t i, enum control_kind kind)
{
	switch (kind) {
	case CONTROL_KIND_text:
		return kinds[i].text;
	case CONTROL_KIND_int:
		return kinds[i].integer;
	case CONTROL_KIND_real:
		return kinds[i].real;
	case CONTROL_KIND_flag:
		return kinds[i].flag;
	case CONTROL_KIND_json:
		break;
	}
	return true;
}

static void
expect_value(const struct control *m, const struct control_field *f, size_t i)
{
	const char *json = kinds[i].json;
	const void *at = place_of(m, f);

	switch (f->kind) {
	case CONTROL_KIND_text:
		cr_expect_str_eq(*(const char *const *)at, "x");
		break;
	case CONTROL_KIND_int:
		cr_expect_eq(*(const CONTROL_C_int *)at,
			strtoll(json, NULL, 10));
		break;
	case CONTROL_KIND_real:
		cr_expect_eq(*(const CONTROL_C_real *)at, strtod(json, NULL));
		break;
	case CONTROL_KIND_flag:
		cr_expect_eq(*(const CONTROL_C_flag *)at, json[0] == 't');
		break;
	case CONTROL_KIND_json:
		cr_expect(span_is(*(const CONTROL_C_json *)at, json));
		break;
	}
}

static void
expect_kinds(const struct control_row *row, const struct control_field *f)
{
	static const char *const names[] = {
		[CONTROL_KIND_text] = "a text",
		[CONTROL_KIND_int] = "a whole number",
		[CONTROL_KIND_real] = "a number",
		[CONTROL_KIND_flag] = "true or false",
	};
	char text[200], words[200];
	struct control m;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(text, sizeof(text),
			"{\"id\":3,\"%s\":%s,\"type\":\"%s\"}", f->name,
			kinds[i].json, row->name);
		read_text(&m, text, row->by);
		cr_expect_eq(m.id, 3);
		snprintf(words, sizeof(words), "%s: %s is not ", row->name,
			f->name);
		if (takes(i, f->kind)) {
			cr_expect_null(strstr(err.text, "is not"), "%s", text);
			expect_value(&m, f, i);
			continue;
		}
		cr_expect_eq(err.status, XR_E_PROTO);
		strncat(words, names[f->kind],
			sizeof(words) - strlen(words) - 1);
		cr_expect_str_eq(err.text, words, "%s", text);
	}
}

Test(control, each_kind_takes_its_own_values)
{
	for (int i = 0; i < CONTROL_TYPES; i++)
		for (const struct control_field *f = control_rows[i].fields();
			f->name != NULL; f++)
			expect_kinds(&control_rows[i], f);
}

Test(control, escapes_are_taken_apart)
{
	struct control m;

	cr_expect_eq(read_text(&m,
			     "{\"type\":\"signal\",\"signal\":\"a\\u00e9\\n\"}",
			     CONTROL_BY_CLIENT),
		XR_OK);
	cr_expect_str_eq(m.signal.signal, "a\u00e9\n");
}

/* Names of types and fields are whole, and an id is a whole number. */
Test(control, an_envelope_has_a_type_and_perhaps_an_id)
{
	static const struct {
		const char *text;
		enum xr_status status;
		int64_t id;
		const char *words;
	} rows[] = {
		{ "{\"type\":\"stop\"}", XR_OK, CONTROL_NONE, "" },
		{ "{\"id\":0,\"type\":\"stop\"}", XR_OK, 0, "" },
		{ "{\"type\":\"stop\",\"id\":\"7\"}", XR_OK, CONTROL_NONE, "" },
		{ "{\"type\":\"stop\",\"id\":7.5}", XR_OK, CONTROL_NONE, "" },
		{ "{\"type\":\"stop\",\"ID\":7,\"i\":8,\"idd\":9}", XR_OK,
			CONTROL_NONE, "" },
		{ "{\"type\":\"sto\",\"id\":4}", XR_E_NOTFOUND, 4,
			"message: there is no type \"sto\" here" },
		{ "{\"type\":\"stopp\"}", XR_E_NOTFOUND, CONTROL_NONE,
			"message: there is no type \"stopp\" here" },
		{ "{\"type\":\"a23456789b123456789c123456789d1234567\"}",
			XR_E_NOTFOUND, CONTROL_NONE,
			"message: there is no type \"a23456789b123456789c123456789d1234567\" here" },
		{ "{\"type\":\"a23456789b123456789c123456789d123456789\"}",
			XR_E_NOTFOUND, CONTROL_NONE,
			"message: there is no type \"a23456789b123456789c123456789d123456789 here" },
		{ "{\"typ\":\"stop\",\"typee\":\"stop\",\"tape\":\"stop\",\"id\":1}",
			XR_E_PROTO, 1, "message: type is missing" },
		{ "{\"type\":7,\"id\":1}", XR_E_PROTO, 1,
			"message: type is missing" },
		{ "[]", XR_E_PROTO, CONTROL_NONE, "message: not an object" },
	};
	struct control m;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&m, 0x55, sizeof(m));
		cr_expect_eq(read_text(&m, rows[i].text, CONTROL_BY_CLIENT),
			rows[i].status, "%s: %s", rows[i].text, err.text);
		cr_expect_eq(m.id, rows[i].id, "%s", rows[i].text);
		cr_expect_eq((int)m.type,
			rows[i].status == XR_OK ? CONTROL_STOP : CONTROL_TYPES,
			"%s", rows[i].text);
		cr_expect_str_eq(err.text, rows[i].words);
	}
	memset(&m, 0x55, sizeof(m));
	cr_expect_neq(read_text(&m, "{", CONTROL_BY_CLIENT), XR_OK);
	cr_expect_eq(m.id, CONTROL_NONE);
	cr_expect_eq((int)m.type, CONTROL_TYPES);
	/* One that is there, but not for everybody. */
	cr_expect_eq(read_text(&m, "{\"type\":\"stop\"}", CONTROL_BY_JOB),
		XR_E_NOTFOUND);
	cr_expect_eq((int)m.type, CONTROL_STOP);
}

/* Answers may be longer than what is asked. */
Test(control, a_line_has_a_limit)
{
	static const char *const texts[] = { "{\"type\":\"stop\"}",
		"{\"type\":\"done\"}" };
	static const enum control_by by[] = { CONTROL_BY_CLIENT,
		CONTROL_BY_JOB };
	static const size_t most[] = { CONTROL_LINE_MAX, CONTROL_ANSWER_MAX };
	struct control m;

	for (int i = 0; i < 2; i++) {
		char *line = malloc(most[i] + 2);

		for (int more = 0; more < 2; more++) {
			memset(line, ' ', most[i] + 1);
			memcpy(line, texts[i], strlen(texts[i]));
			line[most[i] + more] = '\0';
			cr_expect_eq(control_read(&m, line, most[i] + more,
					     by[i], NULL) == XR_OK,
				more == 0, "%d, %d", i, more);
		}
		free(line);
	}
}

/* Also where the next field is set. */
Test(control, a_flag_that_is_false_is_not_written)
{
	for (int i = 0; i < CONTROL_TYPES; i++) {
		const struct control_row *row = &control_rows[i];
		const struct control_field *f = row->fields();
		struct buf text = { 0 }, again = { 0 };
		struct control m;

		while (f->name != NULL && f->kind != CONTROL_KIND_flag)
			f++;
		if (f->name == NULL)
			continue;
		put_sample(&text, row, f);
		cr_assert_eq(read_text(&m, text.data, row->by), XR_OK);
		control_put(&again, &m);
		buf_put_char(&text, '\n');
		cr_expect_str_eq(buf_text(&again), buf_text(&text));
		buf_fini(&text);
		buf_fini(&again);
	}
}

Test(control, what_must_be_there_is_asked_for_by_name)
{
	for (int i = 0; i < CONTROL_TYPES; i++) {
		const struct control_row *row = &control_rows[i];

		for (const struct control_field *f = row->fields();
			f->name != NULL; f++) {
			struct buf text = { 0 };
			struct control m;
			char words[200];

			put_sample(&text, row, f);
			snprintf(words, sizeof(words), "%s: %s is missing",
				row->name, f->name);
			cr_expect_eq(read_text(&m, text.data, row->by),
				f->must ? XR_E_PROTO : XR_OK);
			cr_expect_str_eq(err.text, f->must ? words : "");
			cr_expect_eq(m.id, 7);
			buf_fini(&text);
		}
	}
}

Test(control, a_field_of_another_kind_is_refused_by_name)
{
	struct control m;

	cr_expect_eq(read_text(&m,
			     "{\"type\":\"signal\",\"signal\":15,\"id\":2}",
			     CONTROL_BY_CLIENT),
		XR_E_PROTO);
	cr_expect_str_eq(err.text, "signal: signal is not a text");
	cr_expect_eq(m.id, 2);
	cr_expect_eq(read_text(&m, "{\"type\":\"done\",\"count\":1.5}",
			     CONTROL_BY_JOB),
		XR_E_PROTO);
	cr_expect_str_eq(err.text, "done: count is not a whole number");
}

Test(control, null_is_as_if_it_were_not_there)
{
	struct control m;

	cr_expect_eq(read_text(&m, "{\"type\":\"done\",\"count\":null}",
			     CONTROL_BY_JOB),
		XR_OK);
	cr_expect_eq(m.done.count, CONTROL_NONE);
	cr_expect_eq(m.id, CONTROL_NONE);
}

Test(control, a_newer_sender_may_say_more)
{
	struct control m;

	cr_expect_eq(
		read_text(&m,
			"{\"when\":{\"a\":[]},\"type\":\"stop\",\"how\":1}",
			CONTROL_BY_CLIENT),
		XR_OK);
	cr_expect_eq((int)m.type, CONTROL_STOP);
}

Test(control, nobody_speaks_for_another)
{
	struct control m;

	cr_expect_eq(read_text(&m, "{\"type\":\"stop\"}", CONTROL_BY_JOB),
		XR_E_NOTFOUND);
	cr_expect_eq(read_text(&m, "{\"type\":\"done\",\"id\":9}",
			     CONTROL_BY_CLIENT),
		XR_E_NOTFOUND);
	cr_expect_eq(m.id, 9);
	cr_expect_eq(read_text(&m, "{\"type\":\"nonsense\"}",
			     CONTROL_BY_CLIENT),
		XR_E_NOTFOUND);
	cr_expect_str_eq(err.text,
		"message: there is no type \"nonsense\" here");
}

Test(control, what_is_no_message_is_refused)
{
	static const char *const texts[] = { "", " ", "null", "[]", "{}",
		"\"stop\"", "{\"type\":1}", "{\"type\":null}", "{\"id\":1}",
		"{\"type\":\"stop\"}x", "{\"type\":\"stop\",\"type\":\"stop\"}",
		"{\"type\":\"signal\",\"signal\":\"\\u0000\"}" };
	struct control m;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_neq(read_text(&m, texts[i], CONTROL_BY_CLIENT), XR_OK,
			"%s", texts[i]);
}

Test(control, every_truncation_is_refused)
{
	for (int i = 0; i < CONTROL_TYPES; i++) {
		const struct control_row *row = &control_rows[i];
		struct buf text = { 0 };
		struct control m;

		put_sample(&text, row, NULL);
		for (size_t len = 0; len < text.len; len++) {
			char *line = strndup(text.data, len);

			cr_expect_neq(control_read(&m, line, len, row->by,
					      NULL),
				XR_OK, "%s", line);
			free(line);
		}
		buf_fini(&text);
	}
}
