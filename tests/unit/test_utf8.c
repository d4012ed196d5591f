/* SPDX-License-Identifier: Apache-2.0 */
/* test_utf8.c - names that would steer a terminal. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/utf8.h"

static const char *
tame(const char *text)
{
	static char copy[128];

	snprintf(copy, sizeof(copy), "%s", text);
	utf8_tame(copy);
	return copy;
}

Test(utf8, words_of_ours_steer_no_terminal)
{
	cr_expect_str_eq(tame(""), "");
	cr_expect_str_eq(tame("Grüße, 世界\tx\n"), "Grüße, 世界\tx\n");
	cr_expect_str_eq(tame("a\033]0;x\ab\r\x7f"), "a?]0;x?b??");
	cr_expect_str_eq(tame("\xc2\x9b"
			      "2J\xc2\xa0\xc2"),
		"??2J\xc2\xa0\xc2");
}

Test(utf8, every_truncation_is_tamed)
{
	static const char text[] = "é\033\xc2\x9d\xe4\xb8\x96\x01";
	char cut[sizeof(text)];

	for (size_t len = 0; len < sizeof(text); len++) {
		memcpy(cut, text, len);
		cut[len] = '\0';
		utf8_tame(cut);
		cr_expect_eq(strlen(cut), len);
		cr_expect_null(strpbrk(cut, "\033\001"));
		cr_expect_null(strstr(cut, "\xc2\x9d"));
	}
}
