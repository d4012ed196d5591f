/* SPDX-License-Identifier: Apache-2.0 */
/* zalloc.h - zeroed memory for what is made and let go of a million times a second.
 *
 * calloc() of glibc 2.36 goes past the cache that malloc() has in each thread, into
 * the arena and its lock (malloc.c, __libc_calloc). */
#ifndef BASE_ZALLOC_H
#define BASE_ZALLOC_H

#include <stdlib.h>
#include <string.h>

/* zalloc() - NULL: out of memory. The caller's, for free(). */
static inline void *
zalloc(size_t size)
{
	void *p = malloc(size);

	/* Or gcc makes a calloc() of the two. */
	__asm__ volatile("" : "+r"(p));
	return p != NULL ? memset(p, 0, size) : NULL;
}

#endif /* BASE_ZALLOC_H */
