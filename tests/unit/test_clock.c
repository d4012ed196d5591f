/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - time, and how a person reads it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "base/clock.h"

Test(clock, now_never_goes_back)
{
	int64_t last = clock_now(), now;

	for (int i = 0; i < 100000; i++) {
		now = clock_now();
		cr_assert_geq(now, last);
		last = now;
	}
}

Test(clock, the_two_clocks_are_those_of_the_system)
{
	struct timespec t;
	int64_t before = clock_now(), wall = clock_wall();

	clock_gettime(CLOCK_MONOTONIC, &t);
	cr_expect_geq(t.tv_sec * NS_PER_S + t.tv_nsec, before);
	cr_expect_lt(t.tv_sec * NS_PER_S + t.tv_nsec - before, 60 * NS_PER_S);
	clock_gettime(CLOCK_REALTIME, &t);
	cr_expect_lt(t.tv_sec * NS_PER_S + t.tv_nsec - wall, 60 * NS_PER_S);
}

Test(clock, spans_are_read_by_people)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{ 0, "0 ms" },
		{ 999999, "0 ms" },
		{ NS_PER_MS, "1 ms" },
		{ 12 * NS_PER_MS, "12 ms" },
		{ 100 * NS_PER_MS - 1, "99 ms" },
		{ 100 * NS_PER_MS, "0.1 s" },
		{ 1800 * NS_PER_MS, "1.8 s" },
		{ 99900 * NS_PER_MS, "99.9 s" },
		{ 100 * NS_PER_S, "1 min 40 s" },
		{ 200 * NS_PER_S, "3 min 20 s" },
		{ 3599 * NS_PER_S, "59 min 59 s" },
		{ 3600 * NS_PER_S, "1 h 0 min" },
		{ 7500 * NS_PER_S, "2 h 5 min" },
		{ INT64_MAX, "2562047 h 47 min" },
	};
	char out[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(clock_text(rows[i].ns, out, sizeof(out)),
			rows[i].text, "%s", out);
}

Test(clock, stamps_are_UTC_to_the_microsecond)
{
	char out[32];

	cr_expect_str_eq(clock_stamp(0, out, sizeof(out)),
		"1970-01-01T00:00:00.000000Z");
	cr_expect_str_eq(clock_stamp(1795227261123456789, out, sizeof(out)),
		"2026-11-21T02:14:21.123456Z");
	cr_expect_str_eq(clock_stamp(NS_PER_S - 1, out, sizeof(out)),
		"1970-01-01T00:00:00.999999Z");
	/* The end of February of years that leap, and do not. */
	cr_expect_str_eq(clock_stamp(951782400 * NS_PER_S, out, sizeof(out)),
		"2000-02-29T00:00:00.000000Z");
	cr_expect_str_eq(clock_stamp(4107542399 * NS_PER_S, out, sizeof(out)),
		"2100-02-28T23:59:59.000000Z");
	cr_expect_str_eq(clock_stamp(4107542400 * NS_PER_S, out, sizeof(out)),
		"2100-03-01T00:00:00.000000Z");
	cr_expect_str_eq(clock_stamp(-1, out, sizeof(out)),
		"1969-12-31T23:59:59.999999Z");
	cr_expect_str_eq(clock_stamp(INT64_MAX, out, sizeof(out)),
		"2262-04-11T23:47:16.854775Z");
}

Test(clock, the_zone_of_the_machine_changes_no_stamp)
{
	char out[32];

	setenv("TZ", "Asia/Kathmandu", 1);
	tzset();
	cr_expect_str_eq(clock_stamp(0, out, sizeof(out)),
		"1970-01-01T00:00:00.000000Z");
}

Test(clock, a_text_is_cut_where_its_room_ends)
{
	char out[8];

	memset(out, 'x', sizeof(out));
	clock_text(7500 * NS_PER_S, out, 4);
	cr_expect_str_eq(out, "2 h");
	cr_expect_eq(out[4], 'x');
	clock_stamp(0, out, 5);
	cr_expect_str_eq(out, "1970");
	cr_expect_eq(out[5], 'x');
}

Test(clock, a_rough_time_has_one_unit)
{
	static const struct {
		int64_t s;
		const char *text;
	} rows[] = {
		{ -5, "0 s" },
		{ 0, "0 s" },
		{ 59, "59 s" },
		{ 60, "1 min" },
		{ 239, "3 min" },
		{ 3599, "59 min" },
		{ 3600, "1 h" },
		{ 48 * 3600 - 1, "47 h" },
		{ 48 * 3600, "2 days" },
		{ 9000000000, "104166 days" },
	};
	char out[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(clock_rough(rows[i].s * NS_PER_S, out,
					 sizeof(out)),
			rows[i].text);
}

Test(clock, a_stamp_is_read_back)
{
	static const struct {
		const char *stamp;
		int64_t ns;
	} rows[] = {
		{ NULL, -1 },
		{ "", -1 },
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01T00:00:00.000000Z", 0 },
		{ "1970-01-01T00:00:01.5Z", 1500 * NS_PER_MS },
		{ "1970-01-02T03:04:05.000250Z",
			97445 * NS_PER_S + 250 * NS_PER_US },
		{ "1969-12-31T23:59:58Z", -2 * NS_PER_S },
		{ "2026-11-21T02:14:21Z", 1795227261 * NS_PER_S },
		{ "2026-11-21T02:14:21", -1 },
		{ "2026-11-21T02:14:21.5", -1 },
		{ "2026-11-21T02:14:21Zx", -1 },
		{ "2026-11-21T02:14:21.Z", -1 },
		{ "2026-11-21T02:14:21+01:00", -1 },
		{ "2026-11-21 02:14:21Z", -1 },
		{ "2026-13-21T02:14:21Z", -1 },
		{ "yesterday", -1 },
	};
	char text[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(clock_parse(rows[i].stamp), rows[i].ns, "%s: %lld",
			rows[i].stamp, (long long)clock_parse(rows[i].stamp));
	clock_stamp(1795227261 * NS_PER_S + NS_PER_S / 4, text, sizeof(text));
	cr_expect_eq(clock_parse(text), 1795227261 * NS_PER_S + NS_PER_S / 4);
}
