/* SPDX-License-Identifier: Apache-2.0 */
/* slow_owner.c - see slow_owner.h. */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "tests/kit/slow_owner.h"
#include "worker/rpc/lead.h"

static enum {
	OWNER_RUNS,
	OWNER_IS_TO_STOP,
	OWNER_STOPS,
} _Atomic owner;

static long caller;

static void
sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static uint32_t
stop_reading(void *unused, uint32_t budget)
{
	(void)unused;
	(void)budget;
	if (owner == OWNER_RUNS || syscall(SYS_gettid) == caller)
		return 0;
	owner = OWNER_STOPS;
	while (owner == OWNER_STOPS)
		sleep_ms(1);
	return 0;
}

void
slow_owner_stop(void)
{
	caller = syscall(SYS_gettid);
	lead_add((struct lead_source){ stop_reading, NULL });
	owner = OWNER_IS_TO_STOP;
	lead_bell();
	while (owner != OWNER_STOPS)
		sleep_ms(1);
}

void
slow_owner_continue(void)
{
	owner = OWNER_RUNS;
}
