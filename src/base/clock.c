/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see clock.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* libc's gmtime_r() reads the file of the local time zone first. Source: days
 * to dates, Howard Hinnant, chrono-compatible low-level date algorithms. */
static void
date_of(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t of_era = z - era * 146097;
	int64_t y =
		(of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) /
		365;
	int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
	int64_t m = (5 * of_year + 2) / 153; /* from March */

	*day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = (int)(y + era * 400 + (*month <= 2));
}

const char *
clock_stamp(int64_t wall_ns, char *out, size_t cap)
{
	int64_t s = wall_ns / NS_PER_S, ns = wall_ns % NS_PER_S;
	int64_t day_s, days;
	int year, month, day;

	if (ns < 0) {
		ns += NS_PER_S;
		s--;
	}
	days = s / 86400 - (s % 86400 < 0);
	day_s = s - days * 86400;
	date_of(days, &year, &month, &day);
	snprintf(out, cap, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", year, month,
		day, (int)(day_s / 3600), (int)(day_s / 60 % 60),
		(int)(day_s % 60), (int)(ns / NS_PER_US));
	return out;
}

int64_t
clock_parse(const char *stamp)
{
	struct tm tm = { 0 };
	const char *rest = stamp == NULL ?
		NULL :
		strptime(stamp, "%Y-%m-%dT%H:%M:%S", &tm);
	double part = 0;
	char *end = (char *)rest;

	if (rest != NULL && *rest == '.')
		part = strtod(rest, &end);
	if (rest == NULL || strcmp(end, "Z") != 0)
		return -1;
	return (int64_t)timegm(&tm) * NS_PER_S + (int64_t)(part * NS_PER_S);
}
