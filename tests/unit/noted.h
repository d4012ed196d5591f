/* SPDX-License-Identifier: Apache-2.0 */
/* noted.h - what functions that a test replaces were called to do, in order. */
#ifndef TESTS_UNIT_NOTED_H
#define TESTS_UNIT_NOTED_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char
	done[2000]; /* one word for each action, each with a space behind it */

static inline void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	size_t len = strlen(done);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(done + len, sizeof(done) - len, fmt, ap);
	va_end(ap);
}

#endif /* TESTS_UNIT_NOTED_H */
