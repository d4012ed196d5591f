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
