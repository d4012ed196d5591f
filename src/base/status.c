/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - names and texts of status codes; errors on the caller's stack. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

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

enum xr_status
fail(struct xr_error *err, enum xr_status status, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (status_on_fail != NULL)
		status_on_fail(status);
	if (err == NULL)
		return status;
	err->status = status;
	err->sys = status == XR_E_SYS ? saved : 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
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
