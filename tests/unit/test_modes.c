/* SPDX-License-Identifier: Apache-2.0 */
/* test_modes.c - what is left on in a terminal, and how it is put back. */
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/modes.h"

/* What puts back what @text has switched; and again after each of its halves,
 * for it may come in pieces. */
static void
expect_end(const char *text, const char *want)
{
	char out[MODES_END_MAX + 1];
	size_t len = strlen(text);

	for (size_t cut = 0; cut <= len; cut++) {
		struct modes m = { 0 };

		modes_follow(&m, (struct span){ text, cut });
		modes_follow(&m, (struct span){ text + cut, len - cut });
		out[modes_end(&m, out)] = '\0';
		cr_expect_str_eq(out, want, "'%s', cut at %zu", text + 1, cut);
		cr_expect_eq(modes_end(&m, out), 0, "once");
	}
}

Test(modes, nothing_was_switched_on_and_nothing_is_put_back)
{
	expect_end("", "");
	expect_end("text\r\n\tmore \xc3\x9b?1049h", "");
	expect_end("\033[31mred\033[0m \033[1mbold\033[m", "");
	expect_end("\033[?25l\033[?25h\033[?1049h\033[?1049l", "");
	expect_end("\033[H\033[2J\033[10;20H\033[?7h\033[?12h", "");
	expect_end("\033]0;[?1049h\a\033P(0\016\033\\text", "");
	expect_end("\033[1;24r\033[r\033(0lqk\033(B\016x\017\033=\033>", "");
	expect_end("\033[?1049h\033[?25l\033[31m\033c", "");
}

Test(modes, what_is_on_is_put_back)
{
	expect_end("\033[?1049h\033[?25l\033[?1h\033=",
		"\033[?1049l\033[?1l\033[?25h\033>");
	expect_end("\033[?1000;1006;2004h",
		"\033[?1000l\033[?1006l\033[?2004l");
	expect_end("\033[?1000;1006h\033[?1006l", "\033[?1000l");
	expect_end("\033(0\016", "\033(B\017");
	expect_end("\033[4h\033[?7l\033[?2026h", "\033[?2026l\033[?7h\033[4l");
	expect_end("\033[5;10r\033[3 q", "\0337\033[r\0338\033[0 q");
	expect_end("\033[>4;2m\033[>1u\033[>5u\033[<u", "\033[<01u\033[>4m");
	expect_end("\033[1;31mred", "\033[0m");
	expect_end("\033[m\033[38;5;0m", "\033[0m");
	expect_end("\033[38:5:1mred\033[0;1m", "\033[0m");
	expect_end("\033[?1049h\033[?25l\033[!p", "\033[?1049l");
}

Test(modes, half_a_sequence_is_ended)
{
	expect_end("text\033", "\030");
	expect_end("\033[?104", "\030");
	expect_end("\033]0;title", "\033\\");
	expect_end("\033]0;title\033", "\033\\");
	expect_end("\033[999999999999999999h\033[;;;;;;;;;;;;;;;;;;;;;;;;4h",
		"");
}

/* As many as there are. */
Test(modes, all_of_them_fit)
{
	char out[MODES_END_MAX + 1];
	struct modes m = { .on = UINT32_MAX >> 1, .state = 3, .keyboards = 99 };

	out[modes_end(&m, out)] = '\0';
	cr_expect_str_eq(out + strlen(out) - 4, "\033[0m");
}
