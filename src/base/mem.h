/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - memory that is there or ends xrun; launcher only, and only before
 * the first rank. Afterwards malloc(3) and a look at the result.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *xcalloc(size_t n, size_t size) __attribute__((malloc));
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *text) __attribute__((malloc));
char *xasprintf(const char *fmt, ...)
	__attribute__((malloc, format(printf, 1, 2)));

/* leave() - ends the process at once: the kernel takes back all it had, and
 * cheaper than free(3) and destructors could. Returns where a sanitizer wants to
 * see it given back. Nothing of stdio is flushed. */
void leave(int status);

#endif /* BASE_MEM_H */
