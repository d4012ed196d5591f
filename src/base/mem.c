/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - see mem.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static void *
need(void *p)
{
	static const char text[] = "xrun: out of memory; nothing was started\n";

	if (p == NULL) {
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			_exit(125);
		_exit(125);
	}
	return p;
}

void *
xcalloc(size_t n, size_t size)
{
	return need(calloc(n == 0 ? 1 : n, size));
}

void *
xrealloc(void *p, size_t size)
{
	return need(realloc(p, size));
}

char *
xstrdup(const char *text)
{
	return need(strdup(text));
}

char *
xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return need(text);
}

void
leave(int status)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	_exit(status);
#endif
	(void)status;
}
