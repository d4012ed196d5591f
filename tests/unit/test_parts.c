/* SPDX-License-Identifier: Apache-2.0 */
/* test_parts.c - several programs on one command line. */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "launcher/job/options.h"

static struct run_options o;
static struct options_found found;
static struct xr_error err;

#define ARGV(...) ((char *[]){ "xrun", __VA_ARGS__, NULL })
#define VARS(...) ((char *[]){ __VA_ARGS__, NULL })

static void
end(void)
{
	options_fini(&found);
}

TestSuite(parts, .fini = end);

static enum xr_status
read_all(char **argv, char *const *vars)
{
	struct options_in in = { .argv = argv, .vars = vars };

	while (argv[in.argc] != NULL)
		in.argc++;
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	options_fini(&found);
	err = (struct xr_error){ 0 };
	return options_read(&in, &o, &found, &err);
}

Test(parts, each_program_has_its_own_ranks_directory_and_variables)
{
	char **argv = ARGV("-n", "2", "--env", "A=1", "a", "x", ":", "--chdir",
		"/d", "--env", "B=2", "--buffer", "full", "b", ":", "c", "y");

	cr_assert_eq(read_all(argv, NULL), XR_OK, "%s", err.text);
	cr_assert_eq(found.more_count, 2);
	cr_expect_eq(o.ranks, 2);
	cr_expect_str_eq(o.env.items[0], "A=1");
	cr_expect_str_eq(found.argv[0], "a");
	cr_expect_null(found.argv[2]);
	cr_expect_str_eq(argv[7], ":");
	cr_expect_eq(found.more[0].opt.ranks, 0);
	cr_expect_str_eq(found.more[0].opt.chdir, "/d");
	cr_expect_eq(found.more[0].opt.buffer, BUFFER_FULL);
	cr_expect_eq(found.more[0].opt.env.n, 1);
	cr_expect_str_eq(found.more[0].opt.env.items[0], "B=2");
	cr_expect_str_eq(found.more[0].argv[0], "b");
	cr_expect_null(found.more[0].argv[1]);
	cr_expect_eq(found.more[1].opt.env.n, 0);
	cr_expect_null(found.more[1].opt.chdir);
	cr_expect_eq(found.more[1].opt.buffer, BUFFER_LINE);
	cr_expect_str_eq(found.more[1].argv[1], "y");
}

Test(parts, the_environment_holds_for_each_program_that_says_nothing_else)
{
	cr_assert_eq(read_all(ARGV("--env", "B=2", "-n1", "a", ":", "-n1",
				      "--chdir", "/e", "b", ":", "-n1", "c"),
			     VARS("XRUN_ENV=A=1\nC=3", "XRUN_CHDIR=/d",
				     "XRUN_RANKS=7")),
		XR_OK, "%s", err.text);
	cr_expect_eq(o.env.n, 1);
	cr_expect_str_eq(o.env.items[0], "B=2");
	cr_expect_str_eq(o.chdir, "/d");
	cr_expect_str_eq(found.more[0].opt.chdir, "/e");
	cr_assert_eq(found.more[0].opt.env.n, 2);
	cr_expect_str_eq(found.more[0].opt.env.items[0], "A=1");
	cr_expect_str_eq(found.more[0].opt.env.items[1], "C=3");
	cr_expect_str_eq(found.more[1].opt.chdir, "/d");
	cr_assert_eq(found.more[1].opt.env.n, 2);
}

Test(parts, what_stands_nowhere_is_missing_and_what_cannot_be_meant_is_said)
{
	static const struct {
		const char *words[4], *var, *error;
	} rows[] = {
		{ { ":", "b" }, NULL,
			"program 1 is missing: nothing stands before the first "
			"':'\txrun -n 1 ./server : -n 7 ./worker" },
		{ { "-n", "2", ":", "b" }, NULL,
			"program 1 is missing: nothing stands before the first "
			"':'\txrun -n 1 ./server : -n 7 ./worker" },
		{ { "a", ":" }, NULL,
			"program 2 is missing: nothing stands behind the last "
			"':'\t-- before the first program, to pass ':' on to "
			"it" },
		{ { "a", ":", "-n", "2" }, NULL,
			"program 2 is missing: behind the last ':' are "
			"options, beginning with '-n', and no program\tthe "
			"program behind them" },
		{ { "a", ":", ":", "b" }, NULL,
			"program 2 is missing: nothing stands behind a ':'\t-- "
			"before the first program, to pass ':' on to it" },
		{ { "a", ":", "-q", "b" }, NULL,
			"--quiet is for the whole job, and stands before 'b', "
			"which is not the first program\tgive it before the "
			"first program" },
		{ { "a", ":", "--rnaks", "b" }, NULL,
			"unknown option --rnaks (did you mean --ranks?)" },
		{ { "a", ":", "b" }, "XRUN_RANKS=3",
			"XRUN_RANKS does not say how many ranks are of which "
			"program, and program 1 has no -n\t-n N before each "
			"program" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *argv[6] = { "xrun" };

		for (int w = 0; w < 4; w++)
			argv[w + 1] = (char *)rows[i].words[w];
		cr_expect_lt(read_all(argv, VARS((char *)rows[i].var)), 0, "%s",
			rows[i].error);
		cr_expect_str_eq(err.text, rows[i].error);
	}
}

Test(parts, behind_two_dashes_nothing_splits)
{
	cr_expect_eq(read_all(ARGV("a", ":", "-n", "2", "--", "b", ":", "c"),
			     NULL),
		XR_OK);
	cr_assert_eq(found.more_count, 1);
	cr_expect_str_eq(found.more[0].argv[1], ":");
	cr_expect_eq(read_all(ARGV("--", "a", ":", "b"), NULL), XR_OK);
	cr_expect_eq(found.more_count, 0);
	cr_expect_eq(read_all(ARGV("a", "--", ":"), NULL), XR_OK);
	cr_expect_eq(found.more_count, 0);
	cr_expect_eq(read_all(ARGV("-h", ":"), NULL), XR_OK);
}
