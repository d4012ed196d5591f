/* SPDX-License-Identifier: Apache-2.0 */
/* told.h - what functions of a test, which are called in place of others, were called for: a
 * text, in the order of the calls. */
#ifndef TESTS_UNIT_TOLD_H
#define TESTS_UNIT_TOLD_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#ifndef TOLD_QUIET
#define TOLD_QUIET false /* true: a test says when calls are told of */
#endif
#define TOLD_MOST 300 /* bytes of one call */

static char told[4000];
static size_t told_len;
static bool quiet = TOLD_QUIET; /* nothing is told */

/* tell() - one call. A text that would be too long fails: something is called without end. */
static void __attribute__((format(printf, 1, 2)))
tell(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (quiet)
		return;
	va_start(ap, fmt);
	told_len += (size_t)vsnprintf(told + told_len, sizeof(told) - told_len,
		fmt, ap);
	va_end(ap);
	cr_assert_lt(told_len, sizeof(told) - TOLD_MOST, "without end: %s",
		told);
	errno = saved;
}

#endif /* TESTS_UNIT_TOLD_H */
