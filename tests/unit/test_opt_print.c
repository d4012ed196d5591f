/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_print.c - help and manual pages, which are made of rows of options. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/opt.h"
#include "base/opt_print.h"

#define COLUMNS_ 80u /* of a line of help */

Test(opt_print, paragraphs_are_filled_to_80_columns)
{
	struct buf b = { 0 };

	opt_print_fill("one two three four five six seven eight nine ten "
		       "eleven twelve thirteen fourteen fifteen",
		6, &b);
	cr_expect_str_eq(buf_text(&b),
		"      one two three four five six seven eight nine ten eleven "
		"twelve thirteen\n      fourteen fifteen\n");
	buf_clear(&b);
	opt_print_fill("_N_ of *XRUN_\\**, XRUN_A_B_, a_b _x_y_, (_z_)", 0, &b);
	cr_expect_str_eq(buf_text(&b),
		"N of XRUN_*, XRUN_A_B_, a_b x_y, (z)\n");
	buf_fini(&b);
}

/* Each word is as long as said; 0: the end. */
static void
expect_filled(const unsigned lens[4], unsigned indent, const char *breaks)
{
	struct buf text = { 0 }, want = { 0 }, got = { 0 };

	buf_fmt(&want, "%*s", (int)indent, "");
	for (int i = 0; lens[i] > 0; i++) {
		if (i > 0)
			buf_put_char(&text, ' ');
		if (i > 0 && breaks[i - 1] == 'n')
			buf_fmt(&want, "\n%*s", (int)indent, "");
		else if (i > 0)
			buf_put_char(&want, ' ');
		for (unsigned k = 0; k < lens[i]; k++) {
			buf_put_char(&text, (char)('a' + k % 26));
			buf_put_char(&want, (char)('a' + k % 26));
		}
	}
	buf_put_char(&want, '\n');
	opt_print_fill(buf_text(&text), indent, &got);
	cr_expect_str_eq(buf_text(&got), buf_text(&want));
	buf_fini(&text);
	buf_fini(&want);
	buf_fini(&got);
}

Test(opt_print, a_line_is_broken_before_a_word_that_would_be_beyond_its_end)
{
	expect_filled((const unsigned[]){ 40, COLUMNS_ - 41, 5, 0 }, 0, "-n");
	expect_filled((const unsigned[]){ 40, COLUMNS_ - 40, 5, 0 }, 0, "n-");
	expect_filled((const unsigned[]){ 40, COLUMNS_ - 47, 5, 0 }, 6, "-n");
	expect_filled((const unsigned[]){ 40, COLUMNS_ - 46, 5, 0 }, 6, "n-");
	expect_filled((const unsigned[]){ COLUMNS_ - 1, 1, 1, 0 }, 0, "n-");
}

Test(opt_print, all_rows_stand_below_their_groups)
{
	static const struct opt some[] = {
		{ .name = "quiet",
			.type = OPT_FLAG,
			.dflt = "no",
			.group = "words",
			.help = "say less",
			.text = "Say less." },
		{ .name = "loud",
			.type = OPT_FLAG,
			.dflt = "no",
			.help = "say more",
			.no_variable = true,
			.text = "Say more." },
		{ .name = "ranks",
			.letter = 'n',
			.type = OPT_INT,
			.arg = "N",
			.dflt = "1",
			.group = "numbers",
			.help = "how many" },
		{ 0 },
	};
	struct opt only[2] = { some[1] };
	struct buf b = { 0 }, want = { 0 };

	opt_print_all(only, &b);
	cr_expect_str_eq(buf_text(&b), "  --loud\n      Say more.\n");
	buf_clear(&b);
	only[0] = some[0];
	only[0].group = NULL;
	opt_print_all(only, &b);
	cr_expect_str_eq(buf_text(&b) + strspn(buf_text(&b), " "),
		strstr(buf_text(&b), "--quiet"));
	buf_put_text(&want, "words\n\n");
	opt_print_row(&some[0], &want);
	opt_print_row(&some[1], &want);
	buf_clear(&b);
	only[0] = some[0];
	opt_print_all(only, &b);
	cr_expect(strncmp(buf_text(&b), buf_text(&want), b.len) == 0, "%s",
		buf_text(&b));
	cr_expect_eq(strncmp(buf_text(&b), "words\n\n  --quiet ", 17), 0);
	buf_clear(&b);
	opt_print_man(some, &b);
	cr_expect_str_eq(buf_text(&b),
		"## words\n\n*--quiet*\n\tSay less. Environment: *XRUN_QUIET*.\n\n"
		"*--loud*\n\tSay more.\n\n"
		"## numbers\n\n*-n* _N_, *--ranks*=_N_\n\tHow many. Default: 1. "
		"Environment: *XRUN_RANKS*.\n\n");
	buf_fini(&b);
	buf_fini(&want);
}
