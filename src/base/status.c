/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - names and texts of status codes; errors on the caller's stack. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define TEXT_MAX  sizeof(((struct xr_error *)NULL)->text)
#define WHOLE_MAX 6000 /* a path, and words */
#define CUT_AT    (TEXT_MAX / 2)
#define CUT_REST  (TEXT_MAX - 1 - CUT_AT - 3)

struct row {
	int number;
	bool retry;
	const char *name, *text;
};

/* clang-format off */
static const struct row table[] = {
	{ XR_OK, false, "XR_OK", "success" },
#define S(name, number, retry, text) { -(number), retry, "XR_" #name, text },
	XR_STATUS_TABLE(S)
#undef S
	{ 1, false, "XR_?", "unknown status" },
};
/* clang-format on */

void (*status_on_fail)(enum xr_status status);

/* The row of @status, or the last one, which says so. */
static const struct row *
find(enum xr_status status)
{
	const struct row *row = table;

	while (row->number != (int)status && row->number != 1)
		row++;
	return row;
}

XR_EXPORT const char *
xr_status_name(enum xr_status status)
{
	return find(status)->name;
}

XR_EXPORT const char *
xr_status_text(enum xr_status status)
{
	return find(status)->text;
}

XR_EXPORT bool
xr_status_retryable(enum xr_status status)
{
	return find(status)->retry;
}

/* One line, whatever was quoted in it: no newline, nothing that would steer a
 * terminal. A tab parts what is wrong from what to try. */
static void
make_line(char *text)
{
	for (; *text != '\0'; text++)
		if (((unsigned char)*text < 0x20 && *text != '\t') ||
			*text == 0x7f)
			*text = '?';
}

/* Of a character of UTF-8, any byte but the first. */
static bool
is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* What is wrong stands at the end of a text, and what to try: of one that is
 * too long, with a path in it mostly, the middle goes. Not inlined: few pay for
 * the room. */
static void __attribute__((noinline, format(printf, 2, 0)))
print_ends(struct xr_error *err, const char *fmt, va_list ap)
{
	char whole[WHOLE_MAX];
	int n = vsnprintf(whole, sizeof(whole), fmt, ap);
	size_t len = n < (int)sizeof(whole) ? (size_t)n : sizeof(whole) - 1;
	const char *rest = whole + len - CUT_REST;
	size_t at = CUT_AT;

	while (at > 0 && is_inside(whole[at]))
		at--;
	while (is_inside(*rest))
		rest++;
	snprintf(err->text, sizeof(err->text), "%.*s...%s", (int)at, whole,
		rest);
}

enum xr_status
fail(struct xr_error *err, enum xr_status status, const char *fmt, ...)
{
	void (*hook)(enum xr_status) =
		__atomic_load_n(&status_on_fail, __ATOMIC_RELAXED);
	int saved = errno, n;
	va_list ap;

	if (hook != NULL)
		hook(status);
	if (err == NULL)
		return status;
	err->status = status;
	err->sys = status == XR_E_SYS ? saved : 0;
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(err->text)) {
		va_start(ap, fmt);
		print_ends(err, fmt, ap);
		va_end(ap);
	}
	make_line(err->text);
	errno = saved;
	return status;
}

XR_EXPORT enum xr_status
xr_error_set(struct xr_error *err, enum xr_status status, const char *text)
{
	return fail(err, status, "%s", text);
}

void
assert_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "xrun: bug: %s:%d: %s does not hold\n", file, line,
		what);
	abort();
}

enum xr_status
status_of_name(const char *name)
{
	for (const struct row *row = table; row->number != 1; row++)
		if (row->number < 0 && strcmp(row->name, name) == 0)
			return (enum xr_status)row->number;
	return XR_E_PROTO;
}
