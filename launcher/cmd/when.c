/* SPDX-License-Identifier: Apache-2.0 */
/* when.c - see when.h. */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/status.h"
#include "launcher/cmd/when.h"

struct typed {
	struct tm tm;
	int64_t part;  /* ns of a second */
	int64_t width; /* ns for which it is true */
	bool day;      /* with a date */
	bool utc;
};

/* Just @digits of them, up to @most; -1. */
static int
number(const char **p, int digits, int most)
{
	int n = 0;

	for (int i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)**p))
			return -1;
		n = 10 * n + (*(*p)++ - '0');
	}
	return n > most ? -1 : n;
}

static bool
skip(const char **p, char c)
{
	if (**p != c)
		return false;
	++*p;
	return true;
}

/* Behind the point. */
static bool
read_part(const char **p, struct typed *t)
{
	int64_t unit = NS_PER_S;

	while (isdigit((unsigned char)**p)) {
		unit /= 10;
		t->part += unit * (*(*p)++ - '0');
	}
	t->width = unit > 0 ? unit : 1;
	return unit < NS_PER_S;
}

/* "12:34", "12:34:56.789" */
static bool
read_clock(const char **p, struct typed *t)
{
	t->tm.tm_hour = number(p, 2, 23);
	if (t->tm.tm_hour == -1 || !skip(p, ':'))
		return false;
	t->tm.tm_min = number(p, 2, 59);
	t->width = 60 * NS_PER_S;
	if (t->tm.tm_min == -1 || !skip(p, ':'))
		return t->tm.tm_min != -1;
	t->tm.tm_sec = number(p, 2, 60);
	t->width = NS_PER_S;
	if (t->tm.tm_sec == -1 || !skip(p, '.'))
		return t->tm.tm_sec != -1;
	return read_part(p, t);
}

static bool
read_date(const char **p, struct typed *t)
{
	int year = number(p, 4, 9999), month, day;

	if (year == -1 || !skip(p, '-'))
		return false;
	month = number(p, 2, 12);
	if (month < 1 || !skip(p, '-'))
		return false;
	day = number(p, 2, 31);
	t->tm.tm_year = year - 1900;
	t->tm.tm_mon = month - 1;
	t->tm.tm_mday = day;
	t->day = true;
	t->width = 24 * 3600 * NS_PER_S;
	return day >= 1;
}

static bool
read_all(const char *text, struct typed *t)
{
	const char *p = text;

	*t = (struct typed){ .tm.tm_isdst = -1 };
	if (text[0] != '\0' && text[1] != '\0' && text[2] == ':')
		return read_clock(&p, t) && *p == '\0';
	if (!read_date(&p, t))
		return false;
	if (*p == '\0')
		return true;
	if (!skip(&p, ' ') && !skip(&p, 'T'))
		return false;
	if (!read_clock(&p, t))
		return false;
	t->utc = skip(&p, 'Z');
	return *p == '\0';
}

/* A day may follow. */
#define LAST_S (INT64_MAX / NS_PER_S - 24 * 60 * 60)

/* A time before 1678 or after 2262 is the first or last one that fits. */
static int64_t
ns_of(const struct typed *t, const struct tm *day)
{
	struct tm tm = t->tm;
	int64_t s;

	if (day != NULL) {
		tm.tm_year = day->tm_year;
		tm.tm_mon = day->tm_mon;
		tm.tm_mday = day->tm_mday;
	}
	s = t->utc ? timegm(&tm) : mktime(&tm);
	if (s <= INT64_MIN / NS_PER_S)
		return INT64_MIN / NS_PER_S * NS_PER_S;
	if (s >= LAST_S)
		return LAST_S * NS_PER_S;
	return s * NS_PER_S + t->part;
}

static int64_t
away(int64_t ns, const struct when_facts *f)
{
	if (ns < f->start)
		return f->start - ns;
	return ns > f->end ? ns - f->end : 0;
}

/* On the last day on which the job ran then, or else nearly did. */
static int64_t
of_the_job(const struct typed *t, const struct when_facts *f)
{
	int64_t best = 0, ns;
	time_t end = (time_t)(f->end / NS_PER_S);
	struct tm day, last;

	localtime_r(&end, &last);
	for (int back = 1; back >= -1; back--) {
		/* Not 24 hours each: a day may have 23 or 25. */
		day = last;
		day.tm_mday -= back;
		ns = ns_of(t, &day);
		if (back == 1 || away(ns, f) <= away(best, f))
			best = ns;
	}
	return best;
}

enum xr_status
when_parse(const char *text, const struct when_facts *f, struct when *out,
	struct xr_error *err)
{
	struct typed t;
	int64_t back;

	if (opt_time(text, &back)) {
		out->ns = back > f->now ? 0 : f->now - back;
		out->last = out->ns;
		return XR_OK;
	}
	if (!read_all(text, &t))
		return fail(err, XR_E_INVAL,
			"'%.40s' is no time, such as 10m, 12:34:56 or '2026-11-21 12:34'",
			text);
	out->ns = t.day ? ns_of(&t, NULL) : of_the_job(&t, f);
	out->last = out->ns + t.width - 1;
	return XR_OK;
}

enum xr_status
when_check(const char *text, struct xr_error *err)
{
	const struct when_facts none = { 0 };
	struct when ignored;

	return when_parse(text, &none, &ignored, err);
}
