/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see clock.h. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

static int64_t
read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t
clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t
clock_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

double
clock_seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

const char *
clock_text(int64_t ns, char *out, size_t cap)
{
	long long s = ns / NS_PER_S;

	if (ns < 100 * NS_PER_MS)
		snprintf(out, cap, "%lld ms", (long long)(ns / NS_PER_MS));
	else if (s < 100)
		snprintf(out, cap, "%.1f s", (double)ns / NS_PER_S);
	else if (s < 3600)
		snprintf(out, cap, "%lld min %lld s", s / 60, s % 60);
	else
		snprintf(out, cap, "%lld h %lld min", s / 3600, s / 60 % 60);
	return out;
}

const char *
clock_rough(int64_t ns, char *out, size_t cap)
{
	static const struct {
		const char *unit;
		long long seconds, most;
	} units[] = {
		{ "s", 1, 60 },
		{ "min", 60, 3600 },
		{ "h", 3600, 48 * 3600 },
		{ "days", 24 * 3600, INT64_MAX },
	};
	long long s = ns > 0 ? ns / NS_PER_S : 0;
	unsigned i = 0;

	while (s >= units[i].most)
		i++;
	snprintf(out, cap, "%lld %s", s / units[i].seconds, units[i].unit);
	return out;
}

const char *
clock_stamp(int64_t wall_ns, char *out, size_t cap)
{
	time_t s = wall_ns / NS_PER_S;
	struct tm tm;
	char date[24];

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, cap, "%s.%06lldZ", date,
		(long long)(wall_ns % NS_PER_S / NS_PER_US));
	return out;
}
