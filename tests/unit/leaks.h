/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaks.h - memory that a test, or what it calls, has not given back.
 *
 * For programs that are linked with watched_memory (meson.build): the linker gives them,
 * and what they are linked to, these in place of libc's (--wrap). leaks_none() is called
 * at the end of a test, when its .fini has released what it holds. Memory that libc itself
 * allocates, as vasprintf() does, is not counted.
 */
#ifndef TESTS_UNIT_LEAKS_H
#define TESTS_UNIT_LEAKS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stock.h"

#define LEAKS_MOST 20000

static struct {
	const void *at[LEAKS_MOST];
	size_t size[LEAKS_MOST];
	unsigned count;
} leaks; /* what is allocated */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *p);

/* Before anything is made: what is small is asked for as all else is. */
__attribute__((constructor(101))) static void
leaks_ask_for_all(void)
{
	stock_off();
}

static void *
leaks_add(void *p, size_t size)
{
	if (p != NULL && leaks.count < LEAKS_MOST) {
		leaks.at[leaks.count] = p;
		leaks.size[leaks.count++] = size;
	}
	return p;
}

static void
leaks_drop(const void *p)
{
	for (unsigned i = leaks.count; p != NULL && i-- > 0;) {
		if (leaks.at[i] != p)
			continue;
		leaks.count--;
		leaks.at[i] = leaks.at[leaks.count];
		leaks.size[i] = leaks.size[leaks.count];
		return;
	}
}

void *
__wrap_malloc(size_t size)
{
	return leaks_add(__real_malloc(size), size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return leaks_add(__real_calloc(n, size), n * size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	void *now = __real_realloc(p, size);

	if (now != NULL || size == 0)
		leaks_drop(p);
	return leaks_add(now, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *now = __real_reallocarray(p, n, size);

	if (now != NULL || n * size == 0)
		leaks_drop(p);
	return leaks_add(now, n * size);
}

char *
__wrap_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = __wrap_malloc(size);

	return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void
__wrap_free(void *p)
{
	leaks_drop(p);
	__real_free(p);
}

/* All that was allocated was freed. Criterion does not count what fails in a .fini, but
 * for a crash. */
static inline void
leaks_none(void)
{
	if (leaks.count == 0)
		return;
	fprintf(stderr, "%u blocks are left, the first of %zu bytes\n",
		leaks.count, leaks.size[0]);
	abort();
}

#endif /* TESTS_UNIT_LEAKS_H */
