/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_no.c - a text that may be refused with its --no- form, and which values a shell
 * completes. */
#include <stdio.h>

#include <criterion/criterion.h>

#include "base/opt.h"
#include "base/opt_shell.h"

static struct opts opts;
static struct xr_error err;
static int next;

struct beginning {
	const char *text;
};

static const struct opt beginnings[] = {
	{ .name = "prefix",
		.type = OPT_TEXT,
		.arg = "FORMAT",
		.no = "none",
		.dflt = "auto",
		.offset = offsetof(struct beginning, text) },
	{ 0 },
};

/* What @one and @two, each NULL or an entry of the environment, and @word of
 * the command line make of it; NULL: refused. */
static const char *
begin_with(const char *one, const char *two, const char *word)
{
	static struct beginning b;
	char first[] = "xrun", second[64] = "";
	char *argv[] = { first, second, NULL };
	enum xr_status status = XR_OK;
	bool known;

	err = (struct xr_error){ 0 };
	opt_init(&opts, beginnings, &b);
	if (one != NULL)
		status = opt_env(&opts, one, &known, &err);
	if (status == XR_OK && two != NULL)
		status = opt_env(&opts, two, &known, &err);
	snprintf(second, sizeof(second), "%s", word == NULL ? "" : word);
	if (status == XR_OK)
		status = opt_argv(&opts, word == NULL ? 1 : 2, argv, &next,
			&err);
	return status == XR_OK ? b.text : NULL;
}

Test(opt, a_text_may_have_a_no_form)
{
	cr_expect_str_eq(begin_with(NULL, NULL, NULL), "auto");
	cr_expect_str_eq(begin_with(NULL, NULL, "--no-prefix"), "none");
	cr_expect_str_eq(begin_with("XRUN_NO_PREFIX=1", NULL, NULL), "none");
	cr_expect_str_eq(begin_with("XRUN_NO_PREFIX=0", NULL, NULL), "auto");
	cr_expect_str_eq(begin_with("XRUN_PREFIX=a", NULL, "--no-prefix"),
		"none");
}

Test(opt, a_text_and_its_no_form_must_agree)
{
	cr_expect_null(begin_with("XRUN_NO_PREFIX=1", "XRUN_PREFIX=a", NULL));
	cr_expect_str_eq(err.text,
		"XRUN_PREFIX and XRUN_NO_PREFIX contradict each other");
	cr_expect_null(begin_with("XRUN_PREFIX=a", "XRUN_NO_PREFIX=1", NULL));
	cr_expect_not_null(begin_with("XRUN_PREFIX=none", "XRUN_NO_PREFIX=1",
		NULL));
	cr_expect_not_null(begin_with("XRUN_PREFIX=a", "XRUN_NO_PREFIX=0",
		NULL));
	cr_expect_null(begin_with(NULL, NULL, "--no-prefix=1"));
	cr_expect_null(begin_with(NULL, NULL, "--prefix"));
	cr_expect_str_eq(err.text, "--prefix needs a FORMAT");
}

static const char *const modes[] = { "line", "full", "none", NULL };

static const struct opt shown[] = {
	{ .name = "buffer",
		.letter = 'b',
		.type = OPT_CHOICE,
		.choices = modes },
	{ .name = "prefix", .letter = 'p', .type = OPT_TEXT, .arg = "FORMAT" },
	{ .name = "report", .type = OPT_TEXT, .arg = "FILE" },
	{ .name = "quiet", .letter = 'q', .type = OPT_FLAG },
	{ .name = "show", .type = OPT_TEXT, .arg = "RANK", .maybe = true },
	{ 0 },
};

Test(opt, a_shell_completes_the_value_of_an_option_that_takes_one)
{
	/* "-" has no letter, and neither has --report. */
	static const char *const none[] = { "-q", "--quiet", "--show",
		"--nothing", "-\0", "p", "xb", "-bx" };
	struct buf b = { 0 };

	cr_expect(opt_shell_values(shown, "--buffer", &b));
	cr_expect(opt_shell_values(shown, "-b", &b));
	cr_expect_str_eq(buf_text(&b), "line\nfull\nnone\nline\nfull\nnone\n");
	buf_clear(&b);
	cr_expect(opt_shell_values(shown, "-p", &b));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_expect_not(opt_shell_values(shown, none[i], &b), "%s",
			none[i]);
	cr_expect_str_eq(buf_text(&b), "");
	buf_fini(&b);
}
