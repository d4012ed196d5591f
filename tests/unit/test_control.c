/* SPDX-License-Identifier: Apache-2.0 */
/* test_control.c - messages of control sockets: every row of control.def. */
#include <math.h>
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
		[CONTROL_KIND_text] = "\"a\\\"b\\u00e9\"",
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
		cr_assert_eq(read_text(&m, again.data, row->by), XR_OK);
		control_put(&third, &m);
		cr_expect_eq(strncmp(again.data, third.data, again.len - 1), 0,
			"%s\n%s", again.data, third.data);
		buf_fini(&text);
		buf_fini(&again);
		buf_fini(&third);
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
