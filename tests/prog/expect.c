/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c - see expect.h. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/prog/expect.h"

uint32_t rank, size;
struct xr_error err;

void
give_up(const char *what, int line)
{
	fprintf(stderr, "rank %u: line %d: %s: %s\n", rank, line, what,
		err.text);
	_exit(1);
}

int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * XR_SECONDS(1) + t.tv_nsec;
}
