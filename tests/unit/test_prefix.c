/* SPDX-License-Identifier: Apache-2.0 */
/* test_prefix.c - a FORMAT, taken apart and made into text. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/log/prefix.h"

static struct prefix prefix;
static struct line_prefix line;
static struct xr_error err;

static const char *const values[PREFIX_NAMES] = {
	[PREFIX_RANK] = " 3",
	[PREFIX_LOCAL_RANK] = "1",
	[PREFIX_SIZE] = "16",
	[PREFIX_HOST] = "tpu3",
	[PREFIX_JOB] = "k7m2",
	[PREFIX_PART] = "2",
	[PREFIX_STREAM] = "stderr",
};

static void
begin(void)
{
	prefix = (struct prefix){ 0 };
	line = (struct line_prefix){ 0 };
	err = (struct xr_error){ 0 };
}

TestSuite(prefix, .init = begin);

/* In memory of just that size, so that a byte too far is seen. */
static enum xr_status
parse_bytes(const char *at, size_t len)
{
	char *copy = malloc(len == 0 ? 1 : len);
	enum xr_status status;

	cr_assert_not_null(copy);
	memcpy(copy, at, len);
	status = prefix_parse(&prefix, (struct span){ copy, len }, &err);
	if (status == XR_OK)
		status = prefix_make(&prefix, values, NULL, &line, &err);
	free(copy);
	return status;
}

static void
expect(const char *format, const char *want)
{
	begin();
	cr_assert_eq(parse_bytes(format, strlen(format)), XR_OK, "%s: %s",
		format, err.text);
	cr_expect_eq(line.len, strlen(want), "%s", format);
	cr_expect_eq(memcmp(line.text, want, line.len), 0, "%s: '%.*s'", format,
		line.len, line.text);
}

static void
expect_wrong(const char *format, const char *words)
{
	begin();
	cr_expect_eq(parse_bytes(format, strlen(format)), XR_E_INVAL, "%s",
		format);
	cr_expect_not_null(strstr(err.text, words), "%s: %s", format, err.text);
}

Test(prefix, names_are_replaced_and_text_stays)
{
	expect("", "");
	expect("text ", "text ");
	expect("{rank}> ", " 3> ");
	expect("{host}:{rank}/{size} {stream}|", "tpu3: 3/16 stderr|");
	expect("{job}.{local_rank}.{part}.{part}", "k7m2.1.2.2");
	expect("Grüße│\t", "Grüße│\t");
}

Test(prefix, a_doubled_brace_is_one)
{
	expect("{{rank}}", "{rank}");
	expect("{{{rank}}}", "{ 3}");
	expect("}}{{", "}{");
}

Test(prefix, what_is_wrong_is_named_with_its_byte)
{
	expect_wrong("ab{rnak}", "byte 2: '{rnak}' is not one of {rank}");
	expect_wrong("{rnak}", "{stream} {time} (did you mean {rank}?)");
	expect_wrong("{}", "byte 0: '{}' is not one of");
	expect_wrong("{}", "{time}; a brace of the text is doubled");
	expect_wrong("x{rank", "byte 1: '{' without its '}'");
	expect_wrong("a}b", "byte 1: a '}' alone");
	expect_wrong("{rank}}", "byte 6: a '}' alone");
	expect_wrong("{time} {time}", "byte 7: {time} is there already");
	expect_wrong("a\nb", "byte 1: a control character");
	expect_wrong("\033[31m{rank}", "byte 0: a control character");
}

Test(prefix, every_truncation_is_taken_or_named)
{
	static const char text[] = "a{{b}}{time}{rank}: ";
	/* Good where no brace lacks its other half. */
	static const char good[] = "yynyynynnnnnynnnnnyyy";

	for (size_t len = 0; len < sizeof(text); len++) {
		begin();
		cr_expect_eq(parse_bytes(text, len) == XR_OK, good[len] == 'y',
			"%zu bytes", len);
		cr_expect_eq(err.text[0] == '\0', good[len] == 'y');
	}
}

Test(prefix, the_clock_has_its_place)
{
	expect("a {time} b", "a 00:00:00.000 b");
	cr_expect_eq(line.time, 2 + PREFIX_TIME);
	cr_expect(prefix_has(&prefix, PREFIX_CLOCK));
	expect("{rank}", " 3");
	cr_expect_eq(line.time, 0);
	prefix.time_first = true;
	cr_expect_eq(prefix_make(&prefix, values, "1;36", &line, &err), XR_OK);
	cr_expect_eq(line.len, strlen("\033[1;36m00:00:00.000  3\033[0m"));
	cr_expect_eq(memcmp(line.text, "\033[1;36m00:00:00.000  3\033[0m",
			     line.len),
		0);
	cr_expect_eq(line.time, 7 + PREFIX_TIME);
}

Test(prefix, nothing_has_no_colour)
{
	expect("", "");
	cr_expect_eq(prefix_make(&prefix, values, "36", &line, &err), XR_OK);
	cr_expect_eq(line.len, 0);
}

Test(prefix, what_does_not_fit_is_refused_with_its_length)
{
	char text[400];

	for (size_t len = 1; len < sizeof(text); len++) {
		enum xr_status status;

		begin();
		memset(text, 'x', len);
		status = parse_bytes(text, len);
		cr_expect_eq(status, len <= 64 ? XR_OK : XR_E_RANGE, "%zu",
			len);
	}
	cr_expect_str_eq(err.text, "399 bytes before each line; 64 at most");
	for (size_t at = 0; at < 200; at += 2)
		memcpy(text + at, "{{", 2);
	begin();
	cr_expect_eq(parse_bytes(text, 200), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "byte 48: too many"));
}

Test(prefix, the_clock_is_local_time_with_milliseconds)
{
	struct prefix_clock clock = { 0 };

	setenv("TZ", "XXX-1:30", 1);
	tzset();
	cr_expect_str_eq(prefix_clock(&clock, 0), "01:30:00.000");
	cr_expect_str_eq(prefix_clock(&clock, 45296 * NS_PER_S + 7 * NS_PER_MS),
		"14:04:56.007");
	cr_expect_str_eq(prefix_clock(&clock, 45296 * NS_PER_S + 999999999),
		"14:04:56.999");
}
