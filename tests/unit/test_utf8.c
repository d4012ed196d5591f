/* SPDX-License-Identifier: Apache-2.0 */
/* test_utf8.c - names that would steer a terminal. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/utf8.h"

static const char *
tame(const char *text)
{
	static char copy[128];

	snprintf(copy, sizeof(copy), "%s", text);
	utf8_tame(copy, false);
	return copy;
}

static const char *
tame_narrow(const char *text)
{
	static char copy[128];

	snprintf(copy, sizeof(copy), "%s", text);
	utf8_tame(copy, true);
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
	cr_expect_str_eq(tame("a\xe2\x80\xae"
			      "b\xe2\x81\xa6\xe2\x80\xa6"),
		"a???b???\xe2\x80\xa6");
}

Test(utf8, controls_of_8_bits_pass_only_as_parts_of_letters)
{
	cr_expect_str_eq(tame("a\x9b"
			      "31mb\x9d\xa0"),
		"a?31mb?\xa0");
	cr_expect_str_eq(tame("\xe0\x82\x9b|\xc1\x9b|\xf0\x80\x82\x9b"),
		"\xe0??|\xc1?|\xf0???");
	cr_expect_str_eq(tame("Ü世\xf0\x9f\x98\x80"), "Ü世\xf0\x9f\x98\x80");
	cr_expect_str_eq(tame_narrow("a\xdc\xc3\x9b"
				     "b\xc2\x9b"),
		"a\xdc\xc3?b\xc2?");
}

Test(utf8, the_locale_says_whether_it_is_spoken)
{
	setenv("LANG", "de_DE.UTF-8", 1);
	unsetenv("LC_CTYPE");
	setenv("LC_ALL", "", 1);
	cr_expect(utf8_spoken());
	setenv("LC_ALL", "C", 1);
	cr_expect_not(utf8_spoken());
	unsetenv("LC_ALL");
	unsetenv("LANG");
	cr_expect_not(utf8_spoken());
}

Test(utf8, a_terminal_is_narrow_where_the_locale_names_another_charset)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), pipe[2];
	struct termios mode;

	cr_assert_neq(master, -1);
	cr_assert_eq(pipe2(pipe, O_CLOEXEC), 0);
	setenv("LC_ALL", "de_DE.ISO-8859-1", 1);
	cr_expect_not(utf8_narrow(pipe[1]));
	cr_assert_eq(tcgetattr(master, &mode), 0);
	mode.c_iflag &= ~(tcflag_t)IUTF8;
	tcsetattr(master, TCSANOW, &mode);
	cr_expect(utf8_narrow(master));
	mode.c_iflag |= IUTF8;
	tcsetattr(master, TCSANOW, &mode);
	cr_expect_not(utf8_narrow(master));
	mode.c_iflag &= ~(tcflag_t)IUTF8;
	tcsetattr(master, TCSANOW, &mode);
	setenv("LC_ALL", "C.UTF-8", 1);
	cr_expect_not(utf8_narrow(master));
	setenv("LC_ALL", "C", 1);
	cr_expect_not(utf8_narrow(master));
	close(master);
	close(pipe[0]);
	close(pipe[1]);
}

Test(utf8, every_truncation_is_tamed)
{
	static const char text[] = "é\033\xc2\x9d\xe4\xb8\x96\x01";
	char cut[sizeof(text)];

	for (size_t len = 0; len < sizeof(text); len++) {
		memcpy(cut, text, len);
		cut[len] = '\0';
		utf8_tame(cut, false);
		cr_expect_eq(strlen(cut), len);
		cr_expect_null(strpbrk(cut, "\033\001"));
		cr_expect_null(strstr(cut, "\xc2\x9d"));
	}
}

/* The first and the last of each length, and of what is none. */
static const struct {
	const char *bytes;
	size_t len; /* of the character; 0: it is none */
	uint32_t code;
} characters[] = {
	{ "\x01", 1, 1 },
	{ "\x7f", 1, 0x7f },
	{ "\x80", 0, 0 },
	{ "\xc1\xbf", 0, 0 },
	{ "\xc2\x80", 2, 0x80 },
	{ "\xdf\xbf", 2, 0x7ff },
	{ "\xc2\x7f", 0, 0 },
	{ "\xc2\xc0", 0, 0 },
	{ "\xe0\x9f\xbf", 0, 0 },
	{ "\xe0\xa0\x80", 3, 0x800 },
	{ "\xe2\x82\xac", 3, 0x20ac },
	{ "\xed\x9f\xbf", 3, 0xd7ff },
	{ "\xed\xa0\x80", 0, 0 },
	{ "\xed\xbf\xbf", 0, 0 },
	{ "\xee\x80\x80", 3, 0xe000 },
	{ "\xef\xbf\xbf", 3, 0xffff },
	{ "\xe2\x28\xa1", 0, 0 },
	{ "\xe2\x82\x28", 0, 0 },
	{ "\xf0\x8f\xbf\xbf", 0, 0 },
	{ "\xf0\x90\x80\x80", 4, 0x10000 },
	{ "\xf0\x9f\x98\x80", 4, 0x1f600 },
	{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
	{ "\xf4\x90\x80\x80", 0, 0 },
	{ "\xf5\x80\x80\x80", 0, 0 },
};

Test(utf8, each_length_has_its_first_and_last_character)
{
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]);
		i++) {
		const char *bytes = characters[i].bytes;
		size_t len = characters[i].len;
		char out[4] = "...";

		cr_expect_eq(utf8_step(bytes, strlen(bytes)), len, "%zu", i);
		if (len == 0)
			continue;
		cr_expect_eq(utf8_step(bytes, len), len, "%zu", i);
		for (size_t cut = 1; cut < len; cut++)
			cr_expect_eq(utf8_step(bytes, cut), 0, "%zu", i);
		cr_expect_eq(utf8_put(characters[i].code, out), len, "%zu", i);
		cr_expect_eq(memcmp(out, bytes, len), 0, "%zu", i);
	}
}
