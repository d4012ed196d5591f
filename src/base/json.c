/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - see json.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

/* 2^53: beyond it a double, which is what readers make of a number, skips. */
#define EXACT_MAX (INT64_C(1) << 53)

void
json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
}

static void
put_string(struct buf *out, struct span text)
{
	const char *end = text.at + text.len, *plain = text.at;
	size_t step;

	buf_put_char(out, '"');
	for (const char *p = text.at; p < end; p += step) {
		step = utf8_step(p, (size_t)(end - p));
		if (step != 0 && (unsigned char)*p >= 0x20 && *p != '"' &&
			*p != '\\' && *p != 0x7f)
			continue;
		buf_put(out, plain, (size_t)(p - plain));
		if (step == 0)
			buf_put_text(out, "\xef\xbf\xbd"); /* U+FFFD */
		else if (*p == '"' || *p == '\\')
			buf_fmt(out, "\\%c", *p);
		else if (*p == '\n')
			buf_put_text(out, "\\n");
		else if (*p == '\t')
			buf_put_text(out, "\\t");
		else
			buf_fmt(out, "\\u%04x", (unsigned)*p);
		step += step == 0;
		plain = p + step;
	}
	buf_put(out, plain, (size_t)(end - plain));
	buf_put_char(out, '"');
}

/* The comma before a value and its key, if it has one. */
static void
begin(struct json *j, const char *key)
{
	if (j->some[j->depth])
		buf_put_char(j->out, ',');
	j->some[j->depth] = true;
	if (key == NULL)
		return;
	put_string(j->out, span_of(key));
	buf_put_char(j->out, ':');
}

static void
open_value(struct json *j, const char *key, char bracket)
{
	if (j->depth == JSON_DEPTH_MAX && j->out->bad == XR_OK)
		j->out->bad = XR_E_RANGE;
	if (j->out->bad != XR_OK)
		return;
	begin(j, key);
	buf_put_char(j->out, bracket);
	j->some[++j->depth] = false;
}

static void
close_value(struct json *j, char bracket)
{
	if (j->depth == 0 && j->out->bad == XR_OK)
		j->out->bad = XR_E_STATE;
	if (j->out->bad != XR_OK)
		return;
	buf_put_char(j->out, bracket);
	j->depth--;
}

void
json_open_object(struct json *j, const char *key)
{
	open_value(j, key, '{');
}

void
json_open_array(struct json *j, const char *key)
{
	open_value(j, key, '[');
}

void
json_close_object(struct json *j)
{
	close_value(j, '}');
}

void
json_close_array(struct json *j)
{
	close_value(j, ']');
}

void
json_text(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	if (value == NULL)
		buf_put_text(j->out, "null");
	else
		put_string(j->out, span_of(value));
}

void
json_bytes(struct json *j, const char *key, struct span value)
{
	begin(j, key);
	put_string(j->out, value);
}

void
json_items(struct json *j, char *const *texts)
{
	for (; *texts != NULL; texts++)
		json_bytes(j, NULL, (struct span){ *texts, strlen(*texts) });
}

void
json_int(struct json *j, const char *key, int64_t value)
{
	bool exact = value >= -EXACT_MAX && value <= EXACT_MAX;

	begin(j, key);
	buf_fmt(j->out, exact ? "%" PRId64 : "\"%" PRId64 "\"", value);
}

void
json_real(struct json *j, const char *key, double value)
{
	char text[40], *comma;

	begin(j, key);
	if (!isfinite(value)) {
		buf_put_text(j->out, "null");
		return;
	}
	/* The fewest digits that read back as the same number. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	comma = strchr(text, ','); /* the decimal sign of some locales */
	if (comma != NULL)
		*comma = '.';
	buf_put_text(j->out, text);
	/* Readers take digits alone for a whole number, and not each for one
	 * that a double can hold. */
	if (fabs(value) > (double)EXACT_MAX && strpbrk(text, ".e") == NULL)
		buf_put_text(j->out, ".0");
}

void
json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	buf_put_text(j->out, value ? "true" : "false");
}

void
json_raw(struct json *j, const char *key, struct span value)
{
	char *at, *end;

	begin(j, key);
	buf_put(j->out, value.at, value.len);
	if (j->out->bad != XR_OK || value.len == 0)
		return;
	/* Between its parts there may be any blank; what we write is a line. */
	end = j->out->data + j->out->len;
	at = end - value.len;
	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL)
		*at++ = ' ';
}
