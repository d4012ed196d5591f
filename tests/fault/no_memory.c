/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_memory.c - preloaded: after NO_MEMORY_AFTER allocations the supervisor
 * of xrun gets no memory any more, or, with NO_MEMORY_ONCE, not the next time;
 * whoever else loads it gets what there is.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sys/prctl.h>

/* glibc's own names, for whoever stands before them. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static bool once;
static long left = -1; /* that it gets; -1: it is not the supervisor, so far */

static bool
is_supervisor(void)
{
	char name[17] = "";
	const char *most;

	if (left >= 0)
		return true;
	prctl(PR_GET_NAME, name);
	most = getenv("NO_MEMORY_AFTER");
	if (strcmp(name, "xrun-super") != 0 || most == NULL)
		return false;
	once = getenv("NO_MEMORY_ONCE") != NULL &&
		*getenv("NO_MEMORY_ONCE") != '\0';
	left = strtol(most, NULL, 10);
	return true;
}

/* Threads come here at once. */
static bool
is_refused(void)
{
	long n;

	if (!is_supervisor())
		return false;
	n = __atomic_load_n(&left, __ATOMIC_SEQ_CST);
	while (n > 0 &&
		!__atomic_compare_exchange_n(&left, &n, n - 1, false,
			__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	if (n > 0)
		return false;
	if (once)
		__atomic_store_n(&left, LONG_MAX, __ATOMIC_SEQ_CST);
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(old, size);
}
