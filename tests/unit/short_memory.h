/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_memory.h - memory that is short when a test says so.
 *
 * For programs that are linked with short_memory (meson.build): the linker gives
 * what they are linked to, and themselves, these in place of libc's (--wrap).
 * With SHORT_MEMORY_THREAD only the thread that sets @until_short is short of memory.
 * With counted_memory in place of short_memory, @blocks are those that were allocated and
 * not freed.
 */
#ifndef TESTS_UNIT_SHORT_MEMORY_H
#define TESTS_UNIT_SHORT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/stock.h"

#ifdef SHORT_MEMORY_THREAD
#define SHORT_MEMORY_OF __thread
#else
#define SHORT_MEMORY_OF
#endif

static SHORT_MEMORY_OF unsigned
	until_short; /* allocations; 0: there is enough */
static SHORT_MEMORY_OF bool was_short;
static SHORT_MEMORY_OF bool stays_short;  /* those that follow fail, too */
static SHORT_MEMORY_OF size_t most_asked; /* bytes, at once */
static bool zero_is_null;                 /* malloc(0) is NULL, as C allows */

#ifdef SHORT_MEMORY_COUNTS
static long blocks;

void __real_free(void *p);
void __wrap_free(void *p);

void
__wrap_free(void *p)
{
	__atomic_fetch_sub(&blocks, p != NULL, __ATOMIC_RELAXED);
	__real_free(p);
}
#endif

/* Returns the number of blocks that were allocated and not freed; 0 without counted_memory. */
static inline long
short_memory_blocks(void)
{
#ifdef SHORT_MEMORY_COUNTS
	return blocks;
#else
	return 0;
#endif
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

/* Before anything is made: what is small is asked for as all else is. */
__attribute__((constructor(101))) static void
ask_for_all(void)
{
	stock_off();
}

static bool
is_short(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = (size_t)-1;
	if (bytes > most_asked)
		most_asked = bytes;
	if (until_short == 0 || --until_short > 0)
		return false;
	if (stays_short)
		until_short = 1;
	was_short = true;
	return true;
}

/* @more: it takes the place of none. */
static void *
count_block(void *p, bool more)
{
#ifdef SHORT_MEMORY_COUNTS
	__atomic_fetch_add(&blocks, more && p != NULL, __ATOMIC_RELAXED);
#endif
	(void)more;
	return p;
}

void *
__wrap_malloc(size_t size)
{
	if (is_short(1, size) || (zero_is_null && size == 0))
		return NULL;
	return count_block(__real_malloc(size), true);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return is_short(n, size) ? NULL :
				   count_block(__real_calloc(n, size), true);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return is_short(1, size) ?
		NULL :
		count_block(__real_realloc(p, size), p == NULL);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return is_short(n, size) ?
		NULL :
		count_block(__real_reallocarray(p, n, size), p == NULL);
}

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return is_short(1, size) ?
		NULL :
		count_block(__real_aligned_alloc(align, size), true);
}

/* libc's own calls of malloc() are not replaced. */
char *
__wrap_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = __wrap_malloc(size);

	return copy != NULL ? memcpy(copy, text, size) : NULL;
}

char *
__wrap_strndup(const char *text, size_t len)
{
	size_t size = strnlen(text, len);
	char *copy = __wrap_malloc(size + 1);

	if (copy == NULL)
		return NULL;
	copy[size] = '\0';
	return memcpy(copy, text, size);
}

#endif /* TESTS_UNIT_SHORT_MEMORY_H */
