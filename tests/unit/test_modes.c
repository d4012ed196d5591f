/* SPDX-License-Identifier: Apache-2.0 */
/* test_modes.c - what is left on in a terminal, and how it is put back. */
#include <stdio.h>
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

Test(modes, each_mode_is_put_back_alone)
{
	static const char *const modes[][2] = {
		{ "?2026h", "?2026l" },
		{ "?1049h", "?1049l" },
		{ "?1047h", "?1047l" },
		{ "?47h", "?47l" },
		{ "?1h", "?1l" },
		{ "?5h", "?5l" },
		{ "?6h", "?6l" },
		{ "?7l", "?7h" },
		{ "?25l", "?25h" },
		{ "?9h", "?9l" },
		{ "?1000h", "?1000l" },
		{ "?1001h", "?1001l" },
		{ "?1002h", "?1002l" },
		{ "?1003h", "?1003l" },
		{ "?1004h", "?1004l" },
		{ "?1005h", "?1005l" },
		{ "?1006h", "?1006l" },
		{ "?1015h", "?1015l" },
		{ "?1016h", "?1016l" },
		{ "?2004h", "?2004l" },
		{ "4h", "4l" },
		{ "20h", "20l" },
	};
	char on[32], off[16];

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		snprintf(on, sizeof(on), "\033[%s", modes[i][0]);
		snprintf(off, sizeof(off), "\033[%s", modes[i][1]);
		expect_end(on, off);
		snprintf(on, sizeof(on), "\033[%s\033[%s", modes[i][0],
			modes[i][1]);
		expect_end(on, "");
	}
	expect_end("\033[?66h", "\033>");
	expect_end("\033[?66h\033[?66l", "");
}

Test(modes, pushed_keyboards_are_counted)
{
	char text[100 * 5 + 1] = "";

	expect_end("\033[>1u\033[>u\033[>5u\033[<0u", "\033[<02u");
	expect_end("\033[>u\033[>u\033[>u\033[<2u", "\033[<01u");
	expect_end("\033[>u\033[>u\033[<2u", "");
	expect_end("\033[>u\033[>u\033[<3u", "");
	expect_end("\033[<u\033[=1u\033[?u\033[u", "");
	for (int i = 0; i < 100; i++)
		memcpy(text + i * 5, "\033[>1u", 5);
	expect_end(text, "\033[<99u");
	text[99 * 5] = '\0';
	expect_end(text, "\033[<99u");
	text[98 * 5] = '\0';
	expect_end(text, "\033[<98u");
}

Test(modes, keys_and_charsets_are_put_back)
{
	expect_end("\033[>4;2m\033[>4m", "");
	expect_end("\033[>4;2m\033[>4;0m", "");
	expect_end("\033[>4;2m\033[>1;0m\033[?4m", "\033[>4m");
	expect_end("\033[>1;2m\033[?4;2m", "");
	expect_end("\033)0", "\033)B");
	expect_end("\033)0\033(0\033)B", "\033(B");
	expect_end("\033)0\033(0\033(B", "\033)B");
}

Test(modes, a_soft_reset_keeps_the_screen_the_mouse_and_the_paste)
{
	expect_end("\033[?1049;1047;47;5;9;1000;1001;1002h"
		   "\033[?1003;1004;1005;1006;1015;1016;2004;2026h\033[!p",
		"\033[?2026l\033[?1049l\033[?1047l\033[?47l\033[?5l\033[?9l"
		"\033[?1000l\033[?1001l\033[?1002l\033[?1003l\033[?1004l"
		"\033[?1005l\033[?1006l\033[?1015l\033[?1016l\033[?2004l");
	expect_end("\033[?1;6;66h\033[?7;25l\033[4;20h\033(0\033)0\016"
		   "\033[1;2r\033[3 q\033[>4;2m\033[31m\033=\033[!p",
		"");
	expect_end("\033[?25l\033[!q", "\033[?25h");
}

Test(modes, plain_is_0_alone)
{
	expect_end("\033[31m\033[0m", "");
	expect_end("\033[31m\033[m", "");
	expect_end("\033[0;0m", "\033[0m");
	expect_end("\033[31m\033[1m", "\033[0m");
}

Test(modes, other_sequences_switch_nothing)
{
	expect_end("\033[?25/l\033[?25 l\033[?25.l", "");
	/* with an intermediate byte, or a private one */
	expect_end("\033[?25$l\033[4 h\033[4!h\033[31 m\033[1$r", "");
	expect_end("\033[?5;10r\033[?4h\033[25l\033[>25l", "");
	expect_end("\0337\0338\033D\033M\033#8\033\033", "\030");
	/* in strings */
	expect_end("\033X\016[?25l\033\\", "");
	expect_end("\033^\016[?25l\033\\", "");
	expect_end("\033_\016[?25l\033\\", "");
}

Test(modes, a_sequence_goes_on_or_ends_as_in_a_terminal)
{
	/* Control characters stand in a sequence without ending it. */
	expect_end("\033[?2\r5\177\xc3l", "\033[?25h");
	/* A new one ends it. */
	expect_end("\033[?25\033[?1049h", "\033[?1049l");
	expect_end("\033\033[?1049h", "\033[?1049l");
	expect_end("\033]0;title\033[?1049h", "\033[?1049l");
	/* CAN and SUB cancel it. */
	expect_end("\033[?25\030l", "");
	expect_end("\033[?25\032l", "");
	expect_end("\033]0;title\030\033[?1049h", "\033[?1049l");
	expect_end("\033(\0300\033\030[?25l", "");
}

/* As many as there are. */
Test(modes, all_of_them_fit)
{
	char out[MODES_END_MAX + 1];
	struct modes m = { .on = UINT32_MAX >> 1, .state = 3, .keyboards = 99 };

	out[modes_end(&m, out)] = '\0';
	cr_expect_str_eq(out + strlen(out) - 4, "\033[0m");
}
