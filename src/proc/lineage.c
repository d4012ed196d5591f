/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.c - see lineage.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proc/lineage.h"

/* Between 2^62 and 2^63 microseconds: 146,000 years of real-time scheduling
 * without a system call, and positive for programs that read a signed number. */
#define LINEAGE_BASE (UINT64_C(1) << 62)
#define LINEAGE_BITS (LINEAGE_BASE - 1)

static uint64_t
lineage_of_limit(uint64_t soft)
{
	return (soft & ~LINEAGE_BITS) == LINEAGE_BASE ? soft & LINEAGE_BITS :
							LINEAGE_NONE;
}

uint64_t
lineage_new(void)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)clock_now() * 0x9E3779B97F4A7C15u ^
			(uint64_t)getpid();
	random &= LINEAGE_BITS;
	return random != LINEAGE_NONE ? random : 1;
}

/* The second is used if the first cannot be: Linux has not enforced it since
 * 2.4.25. */
static const struct {
	__rlimit_resource_t resource;
	const char *name; /* of its line in /proc/PID/limits */
} lineage_limits[] = {
	{ RLIMIT_RTTIME, "\nMax realtime timeout" },
	{ RLIMIT_LOCKS, "\nMax file locks" },
};

#define LINEAGE_LIMITS (sizeof(lineage_limits) / sizeof(lineage_limits[0]))

/* A soft limit that was set by another program stays. */
static bool
lineage_set_limit(__rlimit_resource_t resource, uint64_t lineage)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) == -1 ||
		limit.rlim_max != RLIM_INFINITY ||
		(limit.rlim_cur != RLIM_INFINITY &&
			lineage_of_limit(limit.rlim_cur) == LINEAGE_NONE))
		return false;
	limit.rlim_cur = LINEAGE_BASE | lineage;
	return setrlimit(resource, &limit) == 0;
}

bool
lineage_set(uint64_t lineage)
{
	bool set = false;

	for (size_t i = 0;
		lineage != LINEAGE_NONE && !set && i < LINEAGE_LIMITS; i++)
		set = lineage_set_limit(lineage_limits[i].resource, lineage);
	return set;
}

/* For a process whose group was changed, which prlimit(2) refuses. */
static uint64_t
lineage_read(pid_t pid)
{
	uint64_t lineage = LINEAGE_NONE;
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	fd_read_small(path, text, sizeof(text));
	for (size_t i = 0; lineage == LINEAGE_NONE && i < LINEAGE_LIMITS; i++) {
		at = strstr(text, lineage_limits[i].name);
		if (at != NULL)
			lineage = lineage_of_limit(strtoull(at +
					strlen(lineage_limits[i].name),
				NULL, 10));
	}
	return lineage;
}

uint64_t
lineage_of(pid_t pid)
{
	uint64_t lineage = LINEAGE_NONE;
	struct rlimit limit;

	for (size_t i = 0; lineage == LINEAGE_NONE && i < LINEAGE_LIMITS; i++) {
		if (prlimit(pid, lineage_limits[i].resource, NULL, &limit) == 0)
			lineage = lineage_of_limit(limit.rlim_cur);
		else if (errno == EPERM || errno == ENOSYS)
			return lineage_read(pid);
		else
			return LINEAGE_NONE;
	}
	return lineage;
}

uint64_t
lineage_ticks(void)
{
	struct timespec up;

	if (clock_gettime(CLOCK_BOOTTIME, &up) == -1)
		return 0;
	return (uint64_t)(up.tv_sec * NS_PER_S + up.tv_nsec) /
		(uint64_t)(NS_PER_S / sysconf(_SC_CLK_TCK));
}

uint64_t
lineage_ticks_of(pid_t pid)
{
	char path[64], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd_read_small(path, text, sizeof(text));
	at = strrchr(text, ')'); /* field 22 is the 20th after it */
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at == NULL ? 0 : strtoull(at, NULL, 10);
}
