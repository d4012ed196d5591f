/* SPDX-License-Identifier: Apache-2.0 */
/* test_options_pair.c - two options that cannot be had together. */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "launcher/job/options_pair.h"

static struct run_options o;
static struct options_found found;
static struct xr_error err;

#define ARGV(...) ((char *[]){ "xrun", __VA_ARGS__, "true", NULL })
#define NONE      ((char *[]){ NULL })

static void
begin(void)
{
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

static void
end(void)
{
	options_fini(&found);
}

TestSuite(options_pair, .init = begin, .fini = end);

/* Names of variables are told from the environment, so they stand there, too. */
static enum xr_status
pairs_of(char **argv, char *const *vars)
{
	struct options_in in = { .argv = argv, .vars = vars };

	while (argv[in.argc] != NULL)
		in.argc++;
	for (char *const *v = vars; *v != NULL; v++)
		putenv(*v);
	options_fini(&found);
	err = (struct xr_error){ 0 };
	cr_assert_eq(options_read(&in, &o, &found, &err), XR_OK, "%s",
		err.text);
	return options_pairs(&o, &found, &err);
}

static void
expect_words(char **argv, char *const *vars, const char *words)
{
	cr_expect_eq(pairs_of(argv, vars), XR_OK, "%s", err.text);
	cr_expect_str_eq(buf_text(&found.warnings), words);
}

static void
expect_refusal(char **argv, char *const *vars, const char *words)
{
	cr_expect_eq(pairs_of(argv, vars), XR_E_INVAL);
	cr_expect_str_eq(err.text, words);
	cr_expect_eq(found.warnings.len, 0);
}

Test(options_pair, what_does_nothing_is_said_with_its_reason)
{
	static const struct {
		char *one, *two;
		const char *words;
	} rows[] = {
		{ "--no-logs", "--log-dir=d",
			"--log-dir does nothing with --no-logs: no files are kept\n" },
		{ "--no-logs", "--log-rotate=64k",
			"--log-rotate does nothing with --no-logs: no files are kept\n" },
		{ "--log-full=drop", "--no-logs",
			"--log-full does nothing with --no-logs: no files are kept\n" },
		{ "--pty", "--merge-stderr",
			"--merge-stderr does nothing with --pty: both streams of a rank are its terminal\n" },
		{ "--report=r", "--dry-run",
			"--report does nothing with --dry-run: nothing is started\n" },
		{ "--dry-run", "--events=e",
			"--events does nothing with --dry-run: nothing is started\n" },
		{ "--show-env", "--report=r",
			"--report does nothing with --show-env: nothing is started\n" },
		{ "--show-env=0", "--events=e",
			"--events does nothing with --show-env: nothing is started\n" },
		{ "--show-env", "--dry-run",
			"--dry-run does nothing with --show-env: only variables are shown\n" },
		{ "-d", "--show=all",
			"--show does nothing with --detach: nothing is shown\n" },
		{ "-d", "--prefix={rank}",
			"--prefix does nothing with --detach: nothing is shown\n" },
		{ "-d", "--timestamps",
			"--timestamps does nothing with --detach: nothing is shown\n" },
		{ "-d", "--interrupt=ask",
			"--interrupt does nothing with --detach: Ctrl-C does not reach the job\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_words(ARGV(rows[i].one, rows[i].two), NONE,
			rows[i].words);
		expect_words(ARGV(rows[i].one), NONE, "");
		expect_words(ARGV(rows[i].two), NONE, "");
	}
}

Test(options_pair, nothing_that_was_asked_for_does_nothing)
{
	expect_words(ARGV("-d", "--show=none", "--no-prefix"), NONE, "");
	expect_words(ARGV("--pty", "--no-merge-stderr"), NONE, "");
	expect_words(ARGV("--show-env", "--no-dry-run"), NONE, "");
	expect_words(ARGV("--logs", "--log-dir=d"), NONE, "");
	expect_words(ARGV("-d", "--stdin=none"), NONE, "");
}

Test(options_pair, what_the_command_line_takes_back_is_no_noise)
{
	char *profile[] = { "XRUN_LOG_DIR=d", "XRUN_LOG_FULL=drop",
		"XRUN_REPORT=r", "XRUN_MERGE_STDERR=1", "XRUN_STDIN=0",
		"XRUN_SHOW=all", NULL };

	expect_words(ARGV("--no-logs"), profile, "");
	expect_words(ARGV("--dry-run"), profile, "");
	expect_words(ARGV("--pty"), profile, "");
	expect_words(ARGV("-d"), profile, "");
}

Test(options_pair, a_variable_that_undoes_the_command_line_is_named)
{
	char *off[] = { "XRUN_NO_LOGS=1", NULL };
	char *both[] = { "XRUN_PTY=1", "XRUN_MERGE_STDERR=yes", NULL };

	expect_words(ARGV("--log-dir", "d"), off,
		"--log-dir does nothing with XRUN_NO_LOGS: no files are kept\n");
	unsetenv("XRUN_NO_LOGS");
	expect_words(ARGV("-n1"), both,
		"XRUN_MERGE_STDERR does nothing with XRUN_PTY: both streams of a rank are its terminal\n");
}

Test(options_pair, of_quiet_and_verbose_the_stronger_counts)
{
	char *quiet[] = { "XRUN_QUIET=1", NULL };
	char *verbose[] = { "XRUN_VERBOSE=1", NULL };

	expect_words(ARGV("-v"), quiet, "");
	cr_expect(o.verbose && !o.quiet);
	unsetenv("XRUN_QUIET");
	expect_words(ARGV("-q"), verbose, "");
	cr_expect(o.quiet && !o.verbose);
	expect_words(ARGV("-q", "--no-verbose"), verbose, "");
	unsetenv("XRUN_VERBOSE");
	expect_words(ARGV("-v", "-q"), NONE,
		"--verbose does nothing with --quiet: xrun prints errors and warnings only\n");
	cr_expect(o.quiet && !o.verbose);
}

Test(options_pair, quiet_and_verbose_in_the_environment_are_a_warning)
{
	char *both[] = { "XRUN_QUIET=1", "XRUN_VERBOSE=1", NULL };

	expect_words(ARGV("-n", "1"), both,
		"XRUN_VERBOSE does nothing with XRUN_QUIET: xrun prints errors and warnings only\n");
	cr_expect(o.quiet && !o.verbose);
	unsetenv("XRUN_QUIET");
	unsetenv("XRUN_VERBOSE");
}

Test(options_pair, a_contradiction_is_refused)
{
	char *off[] = { "XRUN_NO_LOGS=1", NULL };
	char *detach[] = { "XRUN_DETACH=1", NULL };

	expect_refusal(ARGV("-d", "--no-logs"), NONE,
		"--detach: with --no-logs nothing would be left of the output\t--log-dir DIR");
	expect_refusal(ARGV("-d", "--stdin", "0"), NONE,
		"--stdin: with --detach no rank has standard input\t--stdin none");
	expect_refusal(ARGV("-d"), off,
		"--detach: with XRUN_NO_LOGS nothing would be left of the output\t--log-dir DIR");
	unsetenv("XRUN_NO_LOGS");
	expect_refusal(ARGV("--no-logs"), detach,
		"XRUN_DETACH: with --no-logs nothing would be left of the output\t--log-dir DIR");
}
