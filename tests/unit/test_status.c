/* SPDX-License-Identifier: Apache-2.0 */
/* test_status.c - the one table of statuses. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/status.h"

Test(status, every_row_has_a_name_and_a_text_of_its_own){
#define S(name, number, retry, text) \
	cr_assert_str_eq(xr_status_name(XR_##name), "XR_" #name); \
	cr_assert_str_eq(xr_status_text(XR_##name), text); \
	cr_assert_eq(xr_status_retryable(XR_##name), retry); \
	cr_assert_eq(XR_##name, -(number));
	XR_STATUS_TABLE(S)
#undef S
}

Test(status, a_number_of_no_row_is_said_to_be_unknown)
{
	cr_assert_str_eq(xr_status_name((enum xr_status) - 999), "XR_?");
	cr_assert_str_eq(xr_status_name(XR_OK), "XR_OK");
}

Test(status, failing_fills_the_error_and_keeps_errno)
{
	struct xr_error err = { 0 };

	errno = ENOSPC;
	cr_assert_eq(fail(&err, XR_E_SYS, "open %s", "x"), XR_E_SYS);
	cr_assert_eq(errno, ENOSPC);
	cr_assert_eq(err.sys, ENOSPC);
	cr_assert_str_eq(err.text, "open x");
	cr_assert_eq(fail(NULL, XR_E_INVAL, "nobody listens"), XR_E_INVAL);
}

Test(status, what_is_quoted_cannot_break_the_line_or_steer_a_terminal)
{
	struct xr_error err = { 0 };

	fail(&err, XR_E_INVAL, "'%s' is no name", "a\nb\033[2J\x7f");
	cr_assert_str_eq(err.text, "'a?b?[2J?' is no name");
	fail(&err, XR_E_INVAL, "'%s' is no name\ttry this", "a\nb");
	cr_assert_str_eq(err.text, "'a?b' is no name\ttry this");
}

Test(status, a_long_text_is_cut_and_terminated)
{
	struct xr_error err;
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	xr_error_set(&err, XR_E_INVAL, text);
	cr_assert_eq(strlen(err.text), sizeof(err.text) - 1);
}

Test(status, of_a_long_text_the_middle_is_left_out)
{
	struct xr_error err;
	char path[7000];

	for (size_t len = 150; len < sizeof(path); len += 97) {
		memset(path, 'x', len);
		path[len] = '\0';
		fail(&err, XR_E_SYS, "--chdir: %s: %s\t%s", path,
			"File name too long", "another");
		cr_assert_eq(strncmp(err.text, "--chdir: xxx", 12), 0);
		cr_expect_lt(strlen(err.text), sizeof(err.text));
		if (len < 5900) /* more than a path can have */
			cr_expect_not_null(strstr(err.text,
				"x: File name too long\tanother"));
		if (len > 210)
			cr_expect_not_null(strstr(err.text, "xxx...xxx"));
	}
}

Test(status, no_character_is_cut_in_two)
{
	struct xr_error err;
	char text[1001] = "";

	for (int shift = 0; shift < 4; shift++) {
		memset(text, 'x', (size_t)shift);
		for (size_t i = (size_t)shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x94\x82", 4);
		fail(&err, XR_E_INVAL, "%s", text);
		cr_assert_not_null(strstr(err.text,
			"\xe2\x94\x82...\xe2\x94\x82"));
		cr_expect_eq(strlen(err.text) % 3, (size_t)shift % 3);
	}
}
