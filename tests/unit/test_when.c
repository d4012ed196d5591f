/* SPDX-License-Identifier: Apache-2.0 */
/* test_when.c - times as people type them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/cmd/when.h"

#define HOUR (3600 * NS_PER_S)
#define DAY  (24 * HOUR)
/* 2026-11-21T12:00:00Z */
#define NOON (INT64_C(1795262400) * NS_PER_S)

static void
in_utc(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
}

TestSuite(when, .init = in_utc);

static struct when
parse(const char *text, int64_t start, int64_t end)
{
	const struct when_facts facts = {
		.now = NOON + 3 * DAY,
		.start = start,
		.end = end,
	};
	struct when w = { 0 };
	struct xr_error err = { 0 };

	cr_assert_eq(when_parse(text, &facts, &w, &err), XR_OK, "'%s': %s",
		text, err.text);
	return w;
}

Test(when, an_amount_is_back_from_now)
{
	struct when w = parse("1h30m", NOON, NOON);

	cr_expect_eq(w.ns, NOON + 3 * DAY - HOUR - HOUR / 2);
	cr_expect_eq(w.last, w.ns);
	cr_expect_eq(parse("0", NOON, NOON).ns, NOON + 3 * DAY);
	cr_expect_eq(parse("9999999h", NOON, NOON).ns, 0);
}

Test(when, a_date_is_a_day_and_with_a_clock_as_long_as_was_typed)
{
	struct when w = parse("2026-11-21", NOON, NOON);

	cr_expect_eq(w.ns, NOON - 12 * HOUR);
	cr_expect_eq(w.last, NOON + 12 * HOUR - 1);
	w = parse("2026-11-21 12:00", NOON, NOON);
	cr_expect_eq(w.ns, NOON);
	cr_expect_eq(w.last, NOON + 60 * NS_PER_S - 1);
	w = parse("2026-11-21T12:00:01", NOON, NOON);
	cr_expect_eq(w.ns, NOON + NS_PER_S);
	cr_expect_eq(w.last, NOON + 2 * NS_PER_S - 1);
	w = parse("2026-11-21T12:00:00.123456Z", NOON, NOON);
	cr_expect_eq(w.ns, NOON + 123456 * NS_PER_US);
	cr_expect_eq(w.last, w.ns + NS_PER_US - 1);
}

Test(when, a_stamp_of_a_line_holds_that_line)
{
	struct when w = parse("12:00:00.123", NOON - HOUR, NOON + HOUR);

	cr_expect_eq(w.ns, NOON + 123 * NS_PER_MS);
	cr_expect_eq(w.last, NOON + 124 * NS_PER_MS - 1);
}

Test(when, a_time_of_day_is_of_the_job)
{
	/* It ran from 10:00 to 12:00. */
	int64_t start = NOON - 2 * HOUR;

	cr_expect_eq(parse("11:00", start, NOON).ns, NOON - HOUR);
	cr_expect_eq(parse("09:00", start, NOON).ns, NOON - 3 * HOUR);
	cr_expect_eq(parse("12:30", start, NOON).ns, NOON + HOUR / 2);
	/* From 22:00 to 02:00. */
	start = NOON + 10 * HOUR;
	cr_expect_eq(parse("23:00", start, start + 4 * HOUR).ns,
		NOON + 11 * HOUR);
	cr_expect_eq(parse("01:00", start, start + 4 * HOUR).ns,
		NOON + 13 * HOUR);
	cr_expect_eq(parse("03:00", start, start + 4 * HOUR).ns,
		NOON + 15 * HOUR);
	/* For three days: the last of them. */
	cr_expect_eq(parse("12:00", NOON - DAY, NOON + DAY).ns, NOON + DAY);
}

/* Nearest to the job, at its beginning and its end no less. */
Test(when, a_time_of_day_beside_the_job_is_of_the_nearest_day)
{
	int64_t start = NOON - HOUR;

	cr_expect_eq(parse("11:00", start, NOON).ns, start);
	cr_expect_eq(parse("12:00", start, NOON).ns, NOON);
	/* 00:00 is 11 hours before, 12 hours behind. */
	cr_expect_eq(parse("00:00", start, NOON).ns, NOON - 12 * HOUR);
	/* 23:00 of the day before is as far away as that of the same day. */
	cr_expect_eq(parse("23:00", NOON - HOUR, NOON - HOUR).ns,
		NOON + 11 * HOUR);
	cr_expect_eq(parse("23:00", NOON - 2 * HOUR, NOON - HOUR).ns,
		NOON - 13 * HOUR);
	/* From 00:30 to 01:00: yesterday is nearer. */
	cr_expect_eq(parse("23:59", NOON - 23 * HOUR / 2, NOON - 11 * HOUR).ns,
		NOON - 12 * HOUR - 60 * NS_PER_S);
	/* From 23:00 to 23:30: tomorrow is. */
	cr_expect_eq(parse("00:10", NOON + 11 * HOUR, NOON + 23 * HOUR / 2).ns,
		NOON + 12 * HOUR + 600 * NS_PER_S);
}

/* The clock of a machine may begin with 1970. */
Test(when, a_time_of_day_may_be_before_1970)
{
	cr_expect_eq(parse("23:00", HOUR, HOUR).ns, -HOUR);
	cr_expect_eq(parse("00:30", HOUR, HOUR).ns, HOUR / 2);
}

/* 2026-10-25 has 25 hours there, 2026-03-29 has 23. */
Test(when, a_time_of_day_is_found_where_a_day_has_23_or_25_hours)
{
	/* 2026-10-24 23:00 to 2026-10-25 23:30 */
	int64_t start = INT64_C(1792875600) * NS_PER_S;
	int64_t end = INT64_C(1792967400) * NS_PER_S;

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	cr_expect_eq(parse("2026-10-24 23:00", NOON, NOON).ns, start);
	cr_expect_eq(parse("2026-10-25 23:30", NOON, NOON).ns, end);
	cr_expect_eq(parse("23:45", start, end).ns, start + 3 * HOUR / 4);
	/* 2026-03-29 12:00 to 2026-03-30 00:10 */
	start = INT64_C(1774778400) * NS_PER_S;
	end = INT64_C(1774822200) * NS_PER_S;
	cr_expect_eq(parse("2026-03-29 12:00", NOON, NOON).ns, start);
	cr_expect_eq(parse("2026-03-30 00:10", NOON, NOON).ns, end);
	cr_expect_eq(parse("13:00", start, end).ns, start + HOUR);
}

Test(when, each_number_has_its_bounds)
{
	static const char *const good[] = { "00:00", "23:59", "12:34:60",
		"0000-01-01", "9999-12-31", "2026-01-31T23:59:60.9Z",
		"12:00:00.123456789012" };
	static const char *const bad[] = { "24:00", "12:60", "12:34:61",
		"2026-13-01", "2026-00-01", "2026-11-32", "2026-11-00",
		"2026-11-21 24:00", "2026-11-21T12:60", "2026-11-21x12:00",
		"2026/11/21", "2026-11/21", "12:34:56,7", "12:34:5", "a2:34" };

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_eq(when_check(good[i], NULL), XR_OK, "'%s'", good[i]);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(when_check(bad[i], NULL), XR_E_INVAL, "'%s'",
			bad[i]);
}

Test(when, a_time_that_does_not_fit_is_the_first_or_the_last_one)
{
	struct when w = parse("0000-01-01 00:00", NOON, NOON);

	cr_expect_eq(w.ns, INT64_MIN / NS_PER_S * NS_PER_S);
	w = parse("9999-12-31", NOON, NOON);
	cr_expect_eq(w.ns, (INT64_MAX / NS_PER_S - 24 * 60 * 60) * NS_PER_S);
	cr_expect_eq(w.last, w.ns + 24 * 60 * 60 * NS_PER_S - 1);
	w = parse("2262-04-10T00:00:00Z", NOON, NOON);
	cr_expect_eq(w.ns, INT64_C(9223200000) * NS_PER_S);
}

/* A line's stamp has six digits at most; what is finer than a ns is dropped. */
Test(when, parts_of_a_second_are_as_fine_as_they_were_typed)
{
	struct when w = parse("2026-11-21T12:00:00.9Z", NOON, NOON);

	cr_expect_eq(w.ns, NOON + 900 * NS_PER_MS);
	cr_expect_eq(w.last, NOON + NS_PER_S - 1);
	w = parse("2026-11-21T12:00:00.123456789Z", NOON, NOON);
	cr_expect_eq(w.ns, NOON + 123456789);
	cr_expect_eq(w.last, w.ns);
	w = parse("2026-11-21T12:00:00.1234567891Z", NOON, NOON);
	cr_expect_eq(w.ns, NOON + 123456789);
	cr_expect_eq(w.last, w.ns);
}

Test(when, local_time_is_meant_but_behind_a_z)
{
	setenv("TZ", "XXX-2", 1);
	tzset();
	cr_expect_eq(parse("2026-11-21 14:00", NOON, NOON).ns, NOON);
	cr_expect_eq(parse("14:00", NOON, NOON).ns, NOON);
	cr_expect_eq(parse("2026-11-21T12:00Z", NOON, NOON).ns, NOON);
}

Test(when, what_is_no_time_is_refused)
{
	static const char *const bad[] = { "", "x", "10", "1x", "12:", "12:60",
		"12::30", "12:60:30", "24:00", "1:00", "12:00Z", "12:00:61",
		"12:00:00.", "12:00:00x", "2026", "2026-13-01", "2026-00-01",
		"2026-11-32", "2026-11-00", "2026-11-21 ", "2026-11-21T",
		"2026-11-21T1", "2026-11-21Z", "2026-11-21 12:00 ", "-1h" };
	struct xr_error err;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		cr_expect_eq(when_check(bad[i], &err), XR_E_INVAL, "'%s'",
			bad[i]);
		cr_expect(strstr(err.text, "12:34:56") != NULL);
	}
}

Test(when, a_stamp_is_read_at_every_truncation)
{
	char text[] = "2026-11-21T12:34:56.789Z";
	bool good;

	for (size_t len = strlen(text); len-- > 0;) {
		text[len] = '\0';
		good = len == 10 || len == 16 || len == 19 || len > 20;
		cr_expect_eq(when_check(text, NULL) == XR_OK, good, "'%s'",
			text);
	}
}
