/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.c - fuzz target: what --prefix puts before a line.
 *
 * Input: first line, the parameters of a colour, or none; second, the values
 * of all names; then the format.
 *
 * Claims: a refusal has words; an accepted format, made, is what a slow and
 * plain reading of it gives, and fits; a format made of its pieces is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/log/prefix.h"
#include "tests/fuzz/fuzz.h"

#define CLOCK "00:00:00.000"

static const char *const names[PREFIX_NAMES] = { "", "{rank}", "{local_rank}",
	"{size}", "{host}", "{job}", "{part}", "{stream}", "{time}" };

/* Is a name of the format here? Its length; 0 if not. */
static size_t
name_at(const char *p, enum prefix_name *name)
{
	for (int i = 1; i < PREFIX_NAMES; i++) {
		*name = (enum prefix_name)i;
		if (strncmp(p, names[i], strlen(names[i])) == 0)
			return strlen(names[i]);
	}
	return 0;
}

/* What the format means, one character after the other. */
static void
expand(const char *format, const char *value, struct buf *out)
{
	enum prefix_name name;

	while (*format != '\0') {
		size_t len = *format == '{' && format[1] != '{' ?
			name_at(format, &name) :
			0;

		if (len != 0) {
			buf_put_text(out, name == PREFIX_CLOCK ? CLOCK : value);
			format += len;
			continue;
		}
		HOLDS((*format != '{' && *format != '}') ||
			format[1] == *format);
		format += *format == '{' || *format == '}';
		buf_put_char(out, *format++);
	}
}

/* The format that the pieces are of. */
static char *
reassemble(const struct prefix *p)
{
	struct buf out = { 0 };

	for (uint32_t i = 0; i < p->count; i++) {
		struct span text = p->piece[i].text;

		if (p->piece[i].name != PREFIX_TEXT) {
			buf_put_text(&out, names[p->piece[i].name]);
			continue;
		}
		for (size_t k = 0; k < text.len; k++) {
			if (text.at[k] == '{' || text.at[k] == '}')
				buf_put_char(&out, text.at[k]);
			buf_put_char(&out, text.at[k]);
		}
	}
	return out.data == NULL ? xstrdup("") : out.data;
}

static void
check_made(const struct line_prefix *made, const struct buf *want,
	const char *color)
{
	char *all = xasprintf("%s%s%s%s%s", color == NULL ? "" : "\033[",
		color == NULL ? "" : color, color == NULL ? "" : "m",
		buf_text(want), color == NULL ? "" : "\033[0m");

	HOLDS(made->len <= PREFIX_MAX && made->time <= made->len);
	if (want->len == 0) {
		HOLDS(made->len == 0);
	} else {
		HOLDS(made->len == strlen(all));
		HOLDS(memcmp(made->text, all, made->len) == 0);
	}
	if (made->time != 0)
		HOLDS(memcmp(made->text + made->time - PREFIX_TIME, CLOCK,
			      PREFIX_TIME) == 0);
	free(all);
}

static void
check_format(const char *format, const char *value, const char *color)
{
	const char *values[PREFIX_NAMES];
	struct span all = { .at = format, .len = strlen(format) };
	struct prefix prefix = { 0 };
	struct line_prefix made = { 0 };
	struct xr_error err = { 0 };
	struct buf want = { 0 };
	enum xr_status status = prefix_parse(&prefix, all, &err);

	fuzz_error(status, &err);
	if (status != XR_OK)
		return;
	for (int i = 0; i < PREFIX_NAMES; i++)
		values[i] = value;
	HOLDS(prefix.count <= PREFIX_PIECES);
	status = prefix_make(&prefix, values, color, &made, &err);
	fuzz_error(status, &err);
	expand(format, value, &want);
	if (status == XR_OK)
		check_made(&made, &want, color);
	HOLDS((status == XR_OK) == (want.len <= PREFIX_MAX - 16));
	buf_fini(&want);
}

/* Taken apart and put together it is the same format. */
static void
check_again(const char *format)
{
	struct prefix first = { 0 }, second = { 0 };
	struct span all = { .at = format, .len = strlen(format) };
	char *one, *two;

	if (prefix_parse(&first, all, NULL) != XR_OK)
		return;
	one = reassemble(&first);
	HOLDS(strcmp(one, format) == 0);
	all = (struct span){ .at = one, .len = strlen(one) };
	HOLDS(prefix_parse(&second, all, NULL) == XR_OK);
	two = reassemble(&second);
	HOLDS(strcmp(one, two) == 0 && first.names == second.names);
	free(one);
	free(two);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines lines = fuzz_lines(data, size, 3);
	struct prefix_clock clock = { 0 };
	const char *color = lines.n > 0 ? lines.at[0] : "";
	const char *value = lines.n > 1 ? lines.at[1] : "";

	/* A colour is ours, and short. */
	if (strlen(color) > 5 || color[strspn(color, "0123456789;")] != '\0')
		color = "1;36";
	if (lines.n == 3) {
		check_format(lines.at[2], value, *color == '\0' ? NULL : color);
		check_again(lines.at[2]);
	}
	HOLDS(strlen(prefix_clock(&clock, (int64_t)size * 997000000)) ==
		PREFIX_TIME);
	fuzz_lines_free(&lines);
	return 0;
}
