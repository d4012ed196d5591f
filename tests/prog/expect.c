/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c - see expect.h. */
#include <signal.h>
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

enum xr_status
die(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	kill(getpid(), SIGKILL);
	return XR_OK;
}

int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * XR_SECONDS(1) + t.tv_nsec;
}
