/* SPDX-License-Identifier: Apache-2.0 */
/* cpus.c - see cpus.h. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/span.h"
#include "worker/shm/cpus.h"

#define ALL UINT32_MAX

uint32_t
cpus_ask(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (uint32_t)cpu + 1;
}

/* "100000 50000", of period and quota; "max" is none. */
static uint32_t
cpus_of(const char *quota, const char *period)
{
	double q = strtod(quota, NULL), p = strtod(period, NULL), n;

	if (q <= 0 || p <= 0)
		return ALL;
	n = q / p;
	if (n <= 1)
		return 1;
	return n >= ALL ? ALL : (uint32_t)(n + 0.999);
}

/* The files of one group: version 2 has one, version 1 two. */
static uint32_t
limit_of(const char *dir)
{
	char path[PATH_MAX + 32], text[64], period[64], *space;

	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	if (fd_read_small(path, text, sizeof(text)) > 0) {
		space = strchr(text, ' ');
		return space == NULL ? ALL : cpus_of(text, space + 1);
	}
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
	fd_read_small(path, text, sizeof(text));
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	fd_read_small(path, period, sizeof(period));
	return cpus_of(text, period);
}

/* The least of the group and those above it, up to the mount. */
static uint32_t
least_of(const char *mount, struct span path)
{
	char dir[PATH_MAX];
	uint32_t least = ALL, one;
	size_t at = strlen(mount);
	char *slash;

	if (snprintf(dir, sizeof(dir), "%s%.*s", mount, (int)path.len,
		    path.at) >= (int)sizeof(dir))
		return ALL;
	for (;;) {
		one = limit_of(dir);
		least = one < least ? one : least;
		slash = strrchr(dir + at, '/');
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

/* Is "cpu" among "cpu,cpuacct"? */
static bool
names_cpu(struct span list)
{
	while (list.at != NULL)
		if (span_is(span_next(&list, ','), "cpu"))
			return true;
	return false;
}

/* A line "4:cpu,cpuacct:/a/b" of version 1, "0::/a/b" of version 2. */
static uint32_t
limit_by(const char *root, struct span line)
{
	struct span number = span_next(&line, ':'), list = { NULL, 0 };
	char mount[PATH_MAX];

	if (line.at != NULL)
		list = span_next(&line, ':');
	if (line.at == NULL)
		return ALL;
	if (list.len == 0 && span_is(number, "0")) {
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
		return least_of(mount, line);
	}
	if (!names_cpu(list))
		return ALL;
	snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%.*s", root,
		(int)list.len, list.at);
	return least_of(mount, line);
}

uint32_t
cpus_quota(const char *root)
{
	char path[PATH_MAX], text[4096];
	uint32_t least = ALL, one;
	struct span rest;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	fd_read_small(path, text, sizeof(text));
	rest = span_of(text);
	while (rest.at != NULL) {
		one = limit_by(root, span_next(&rest, '\n'));
		least = one < least ? one : least;
	}
	return least;
}

/* --- of all processes of a segment ---------------------------------------- */

void
cpus_add(struct segment_shared *shared)
{
	int saved = errno;
	cpu_set_t set;
	uint64_t some;

	_Static_assert(sizeof(set) * 8 >= SEGMENT_CPUS,
		"as many as the kernel has");
	if (atomic_load(&shared->quota) == 0)
		atomic_store(&shared->quota, cpus_quota(""));
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	errno = saved;
	for (unsigned i = 0; i < SEGMENT_CPUS / 64; i++) {
		memcpy(&some, (char *)&set + i * sizeof(some), sizeof(some));
		if (some != 0)
			atomic_fetch_or(&shared->cpus[i], some);
	}
}

uint32_t
cpus_count(const struct segment_shared *shared)
{
	uint32_t quota =
		atomic_load_explicit(&shared->quota, memory_order_relaxed);
	uint32_t count = 0;

	for (unsigned i = 0; i < SEGMENT_CPUS / 64; i++)
		count += (uint32_t)
			__builtin_popcountll(atomic_load_explicit(&shared->cpus
									  [i],
				memory_order_relaxed));
	if (count == 0)
		return 1;
	return quota > 0 && quota < count ? quota : count;
}
