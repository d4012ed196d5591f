/* SPDX-License-Identifier: Apache-2.0 */
/* test_options.c - the rows of the main form, and what is made from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include "base/fd.h"
#include "base/opt_print.h"
#include "launcher/cmd/completion.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/verb.h"
#include "launcher/cmd/version.h"
#include "launcher/job/foreign.h"
#include "launcher/job/options.h"
#include "place/profile.h"

static struct run_options o;
static struct options_found found;
static struct xr_error err;

#define ARGV(...) ((char *[]){ "xrun", __VA_ARGS__, NULL })
#define VARS(...) ((char *[]){ __VA_ARGS__, NULL })

static bool
is_verb(const char *word)
{
	return verb_find(word) != NULL;
}

static enum xr_status
read_all(char **argv, char *const *vars)
{
	struct options_in in = { .argv = argv,
		.vars = vars,
		.is_verb = is_verb };

	while (argv[in.argc] != NULL)
		in.argc++;
	options_fini(&found);
	err = (struct xr_error){ 0 };
	return options_read(&in, &o, &found, &err);
}

static void
end(void)
{
	options_fini(&found);
}

/* Nobody's settings reach the tests. */
static void
begin(void)
{
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

TestSuite(options, .init = begin, .fini = end);

/* --- the table --- */

Test(options, the_defaults_are_those_of_the_design)
{
	cr_expect_eq(read_all(ARGV("./train"), NULL), XR_OK);
	cr_expect_eq(o.ranks, 0);
	cr_expect_null(o.chdir);
	cr_expect_str_eq(o.devices, "auto");
	cr_expect_str_eq(o.platform, "auto");
	cr_expect_not(o.any_ranks);
	cr_expect_eq(o.env.n, 0);
	cr_expect_str_eq(o.env_profile, "auto");
	cr_expect_eq(o.port_hold, PORT_HOLD_AUTO);
	cr_expect_null(o.log_dir);
	cr_expect(o.logs);
	cr_expect_str_eq(o.show, "auto");
	cr_expect_str_eq(o.prefix, "auto");
	cr_expect_eq(o.buffer, BUFFER_LINE);
	cr_expect_eq(o.color, COLOR_AUTO);
	cr_expect_not(o.quiet || o.verbose);
	cr_expect_eq(o.timeout, 0);
	cr_expect_eq(o.grace, 10000000000);
	cr_expect_eq(o.stop_signal, 15);
	cr_expect_eq(o.interrupt, INTERRUPT_STOP);
	cr_expect_eq(o.on_failure, ON_FAILURE_STOP);
	cr_expect_eq(o.on_stdout_close, STDOUT_CLOSE_STOP);
	cr_expect_eq(o.exit_code, EXIT_FIRST);
	cr_expect_null(o.report);
	cr_expect_null(o.events);
	cr_expect_not(o.dry_run || o.show_env || o.json || o.help);
	cr_expect_eq(o.show_env_rank, 0);
	cr_expect_eq(found.first, 1);
	cr_expect_not(found.dashes);
}

Test(options, every_choice_is_its_enumerator)
{
	cr_expect_eq(read_all(ARGV("--port-hold=always", "--buffer=full",
				      "--color=always", "--interrupt=ask",
				      "--on-failure=continue",
				      "--on-stdout-close=continue",
				      "--exit-code=max"),
			     NULL),
		XR_OK);
	cr_expect_eq(o.port_hold, PORT_HOLD_ALWAYS);
	cr_expect_eq(o.buffer, BUFFER_FULL);
	cr_expect_eq(o.color, COLOR_ALWAYS);
	cr_expect_eq(o.interrupt, INTERRUPT_ASK);
	cr_expect_eq(o.on_failure, ON_FAILURE_CONTINUE);
	cr_expect_eq(o.on_stdout_close, STDOUT_CLOSE_CONTINUE);
	cr_expect_eq(o.exit_code, EXIT_MAX);
	cr_expect_eq(read_all(ARGV("--port-hold=never", "--buffer=none",
				      "--color=never", "--exit-code=rank0"),
			     NULL),
		XR_OK);
	cr_expect_eq(o.port_hold, PORT_HOLD_NEVER);
	cr_expect_eq(o.buffer, BUFFER_NONE);
	cr_expect_eq(o.color, COLOR_NEVER);
	cr_expect_eq(o.exit_code, EXIT_RANK0);
}

Test(options, every_row_is_fit_to_be_printed)
{
	int rows = 0;

	for (const struct opt *r = run_options; r->name != NULL; r++, rows++) {
		cr_expect(r->help != NULL && r->text != NULL, "%s", r->name);
		cr_expect_leq(strlen(r->help), 48, "%s", r->name);
		cr_expect_neq(r->help[strlen(r->help) - 1], '.', "%s", r->name);
		cr_expect_eq(r->text[strlen(r->text) - 1], '.', "%s", r->name);
		cr_expect_lt(strlen(r->name), 24, "%s", r->name);
		if (r->type == OPT_INT || r->type == OPT_SIZE ||
			r->type == OPT_DURATION)
			cr_expect_lt(r->min, r->max, "%s", r->name);
		if (r->type != OPT_FLAG && r->choices == NULL)
			cr_expect_not_null(r->arg, "%s", r->name);
		if (r->type == OPT_FLAG)
			cr_expect_not_null(r->dflt, "%s", r->name);
	}
	cr_expect_leq(rows, OPT_ROWS_MAX);
	cr_expect_not_null(run_options[0].group);
}

Test(options, no_name_or_letter_stands_twice)
{
	for (const struct opt *r = run_options; r->name != NULL; r++) {
		for (const struct opt *q = r + 1; q->name != NULL; q++) {
			cr_expect_str_neq(r->name, q->name);
			cr_expect(r->letter == 0 || r->letter != q->letter);
		}
		for (const struct opt_later *l = run_options_later;
			l->name != NULL; l++) {
			cr_expect_str_neq(r->name, l->name);
			cr_expect(r->letter == 0 || r->letter != l->letter);
		}
	}
}

Test(options, no_option_bears_the_name_of_a_variable_of_ranks)
{
	char name[64];

	for (const struct opt *r = run_options; r->name != NULL; r++) {
		opt_env_name(r->name, name, sizeof(name));
		for (int i = 0; env_output_names[i] != NULL; i++)
			if (!r->no_variable)
				cr_expect_str_neq(env_output_names[i], name);
	}
}

Test(options, the_name_of_a_job_has_no_variable)
{
	const struct opts opts = { .table = run_options };

	cr_expect_not(opt_env_is(&opts, (struct span){ "XRUN_JOB", 8 }));
	cr_expect(opt_env_is(&opts, (struct span){ "XRUN_RANKS", 10 }));
}

/* --- sources and warnings --- */

Test(options, the_stronger_source_wins_and_is_remembered)
{
	cr_expect_eq(read_all(ARGV("-np", "8", "--env", "A=1", "x", "-n", "2"),
			     VARS("HOME=/", "XRUN_RANKS=4", "XRUN_GRACE=1s",
				     "XRUN_ENV=B=2", "XRUN_NO_LOGS=yes")),
		XR_OK);
	cr_expect_eq(o.ranks, 8);
	cr_expect_eq(o.grace, 1000000000);
	cr_expect_not(o.logs);
	cr_expect_eq(o.env.n, 1);
	cr_expect_str_eq(o.env.items[0], "A=1");
	cr_expect_eq(opt_source(&found.opts, "ranks"), OPT_ARGV);
	cr_expect_eq(opt_source(&found.opts, "grace"), OPT_ENV);
	cr_expect_eq(opt_source(&found.opts, "show"), OPT_DEFAULT);
	cr_expect_eq(found.first, 5);
	cr_expect_eq(found.warnings.len, 0);
}

Test(options, an_unknown_variable_is_a_warning_with_its_neighbour)
{
	cr_expect_eq(read_all(ARGV("x"),
			     VARS("XRUN_RNAKS=4", "XRUNX=1", "XRUN_XYZZY=",
				     "XRUN_DEBUG=1", "XRUN_LOG_FILE=/x")),
		XR_OK);
	cr_expect_str_eq(buf_text(&found.warnings),
		"unknown variable XRUN_RNAKS (did you mean XRUN_RANKS?)\n"
		"unknown variable XRUN_XYZZY\n"
		"XRUN_DEBUG comes with a later version\n"
		"XRUN_LOG_FILE comes with a later version\n");
}

Test(options, xrun_rank_is_no_way_to_say_the_number_of_ranks)
{
	cr_expect_eq(read_all(ARGV("x"), VARS("XRUN_RANK=4")), XR_OK);
	cr_expect_eq(o.ranks, 0);
	cr_expect_str_eq(buf_text(&found.warnings),
		"XRUN_RANK is what xrun tells its ranks; the number of ranks "
		"is XRUN_RANKS or -n\n");
}

Test(options, inside_of_a_job_the_variables_of_ranks_are_in_order)
{
	cr_expect_eq(read_all(ARGV("x"),
			     VARS("XRUN_RANK=1", "XRUN_SIZE=2", "XRUN_JOB=k7m2",
				     "XRUN_ATTEMPT=0", "XRUN_LOCAL_RANK=1",
				     "XRUN_LOCAL_SIZE=2", "XRUN_NODE=0",
				     "XRUN_NODES=1", "XRUN_HOST=h",
				     "XRUN_PART=0", "XRUN_PART_RANK=0",
				     "XRUN_PART_SIZE=1", "XRUN_DEVICE=cpu",
				     "XRUN_STORE=control:",
				     "XRUN_CONTROL_FD=97:1",
				     "XRUN_SEGMENT_FD=98:1",
				     "XRUN_BELL_FD=99:1", "XRUN_STDIO=1:2",
				     "XRUN_NO_MPI=2")),
		XR_OK);
	cr_expect_str_eq(buf_text(&found.warnings), "");
}

Test(options, what_ranks_are_not_to_see_is_told)
{
	static const struct {
		const char *name;
		bool is;
	} rows[] = { { "XRUN_RANKS", true }, { "XRUN_NO_LOGS", true },
		{ "XRUN_RESTARTS", true }, { "XRUN_RANK", false },
		{ "XRUN_JOB", false }, { "XRUN_DEBUG", false },
		{ "XRUN_MINE", false }, { "RANKS", false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(options_env_is(NULL,
				     (struct span){ rows[i].name,
					     strlen(rows[i].name) }),
			rows[i].is, "%s", rows[i].name);
}

/* --- errors --- */

Test(options, errors_read_as_the_design_says)
{
	static const struct {
		const char *words[4], *var, *error;
	} rows[] = {
		{ { "--rank", "3" }, NULL,
			"unknown option --rank (did you mean --ranks?)" },
		{ { "-n", "8x" }, NULL,
			"-n: '8x' is not a number; 1 to 1000000" },
		{ { "-n", "0", "x" }, NULL,
			"-n: '0' is too small; 1 to 1000000" },
		{ { "x" }, "XRUN_RANKS=1e9",
			"XRUN_RANKS: '1e9' is not a number; 1 to 1000000" },
		{ { "x" }, "XRUN_LOGS=maybe",
			"XRUN_LOGS: 'maybe' is not one of "
			"1|true|yes|on|0|false|no|off" },
		{ { "x" }, "XRUN_HOSTFILE=f",
			"XRUN_HOSTFILE comes with a later version" },
		{ { "--hosts", "a" }, NULL,
			"--hosts comes with a later version" },
		{ { "--hosts", "x" }, NULL,
			"--hosts comes with a later version" },
		{ { "--on-failure", "panic" }, NULL,
			"--on-failure: 'panic' is not one of stop|continue" },
		{ { "--doctor" }, NULL,
			"unknown option --doctor (did you mean xrun doctor?)" },
		{ { "--platform", "gpu" }, NULL,
			"--platform: 'gpu' is not one of auto|cpu|cuda|tpu" },
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

Test(options, options_of_other_launchers_are_told_what_to_write_instead)
{
	cr_expect_eq(read_all(ARGV("--nproc_per_node=8", "x"), NULL),
		XR_E_NOTFOUND);
	cr_expect_str_eq(err.text,
		"unknown option --nproc_per_node, as of torchrun\t-n N");
	cr_expect_eq(read_all(ARGV("-genv", "A", "1", "x"), NULL),
		XR_E_NOTFOUND);
	cr_expect_str_eq(err.text,
		"unknown option -genv, as of mpiexec\t--env NAME=VALUE; ranks "
		"inherit what xrun was started with");
	for (const struct foreign *f = foreign_options; f->name != NULL; f++) {
		char word[64];

		snprintf(word, sizeof(word), "%s%s",
			f->name[1] == '\0' ? "-" : "--", f->name);
		cr_expect_eq(foreign_find(word), f, "%s stands twice", word);
		cr_expect_eq(read_all(ARGV(word, "x"), NULL), XR_E_NOTFOUND);
		cr_expect_not_null(strchr(err.text, '\t'),
			"%s is an option by now", word);
	}
}

Test(options, AC_L18_env_without_a_value_is_refused)
{
	cr_expect_eq(read_all(ARGV("--env", "FOO", "x"), NULL), XR_E_INVAL);
	cr_expect_str_eq(err.text, "--env: 'FOO' is not a NAME=VALUE");
	cr_expect_eq(read_all(ARGV("--env", "=1", "x"), NULL), XR_E_INVAL);
	cr_expect_str_eq(err.text, "--env: '=1' is not a NAME=VALUE");
	cr_expect_eq(read_all(ARGV("--env", "A=\n\xff=", "x"), NULL), XR_OK);
	cr_expect_str_eq(o.env.items[0], "A=\n\xff=");
}

Test(options, the_command_line_is_heard_before_the_environment)
{
	cr_expect_eq(read_all(ARGV("--xyzzy"), VARS("XRUN_RANKS=x")),
		XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "unknown option --xyzzy");
	cr_expect_eq(read_all(ARGV("-h"), VARS("XRUN_RANKS=x")), XR_OK);
	cr_expect(o.help);
	cr_expect_eq(read_all(ARGV("x"), VARS("XRUN_RANKS=x", "XRUN_LOGS=y")),
		XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"XRUN_RANKS: 'x' is not a number; 1 to 1000000");
}

Test(options, behind_two_dashes_a_colon_is_a_word)
{
	cr_expect_eq(read_all(ARGV("--", "a", ":", "b"), NULL), XR_OK);
	cr_expect(found.dashes);
	cr_expect_eq(found.first, 2);
	cr_expect_eq(read_all(ARGV("a", "--", ":"), NULL), XR_OK);
	cr_expect_not(found.dashes);
}

/* --- what is printed --- */

static const char *
screen(void (*put)(FILE *), char *text, size_t cap)
{
	FILE *out = fmemopen(text, cap, "w");

	put(out);
	fclose(out);
	return text;
}

static void
expect_width(const char *text, size_t lines_max)
{
	size_t lines = 0, len;

	for (; *text != '\0'; text += len + 1, lines++) {
		len = strcspn(text, "\n");
		cr_expect_leq(len, 80, "%.*s", (int)len, text);
	}
	cr_expect_leq(lines, lines_max);
}

Test(options, the_short_help_fits_on_a_screen)
{
	char text[4096];

	screen(help_short, text, sizeof(text));
	expect_width(text, 24);
	cr_expect(strstr(text, "  xrun -n 8 ./train  "));
	cr_expect(strstr(text, "\n  -n, --ranks=N  "));
}

Test(options, xrun_alone_shows_what_works_today)
{
	struct buf b = { 0 };

	help_alone(&b,
		&(struct help_here){ 2, "cuda:0-1", 1,
			"k7m2 (8 ranks, 3 min)" });
	cr_expect_str_eq(buf_text(&b),
		"xrun: no program given\n"
		"\n"
		"  xrun -n 8 ./train                      8 ranks on this "
		"machine\n"
		"  xrun -n 4 python3 train.py             PyTorch: nothing to "
		"change\n"
		"  xrun -n 1 ./server : -n 7 ./worker     different programs "
		"in one job\n"
		"  XRUN_RANKS=8 xrun ./train              most options are "
		"variables, too\n"
		"  xrun --dry-run -n 8 ./train            who would run where, "
		"with what\n"
		"  xrun -d -n 8 ./train                   leave it running\n"
		"\n"
		"  xrun ps|logs|stop        running jobs      xrun doctor   is "
		"this machine ready?\n"
		"  xrun -h  short help      xrun help         all of it\n"
		"\n"
		"2 accelerators here (cuda:0-1). 1 job running: k7m2 (8 "
		"ranks, 3 min).\n");
	buf_clear(&b);
	help_alone(&b, &(struct help_here){ 0 });
	cr_expect(strstr(b.data, "\n\nNo accelerator here.\n"));
	buf_clear(&b);
	help_alone(&b, &(struct help_here){ .accelerators = 1, .running = "" });
	cr_expect(strstr(b.data, "\n1 accelerator here. No job running.\n"));
	buf_fini(&b);
}

/* What a verb prints; its exit status goes to @status. */
static const char *
output_of(const char *verb, const char *first, const char *second, int *status)
{
	static char text[65536];
	char *argv[] = { (char *)verb, (char *)first, (char *)second, NULL };
	FILE *out;
	size_t n;

	cr_redirect_stdout();
	*status = verb_run(verb_find(verb),
		1 + (first != NULL) + (second != NULL), argv);
	out = cr_get_redirected_stdout();
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	return text;
}

/* "--name" as a word of its own. */
static bool
mentions(const char *text, const char *name)
{
	char option[64];
	size_t len = (size_t)snprintf(option, sizeof(option), "--%s", name);

	while ((text = strstr(text, option)) != NULL) {
		text += len;
		if (strchr("abcdefghijklmnopqrstuvwxyz-", *text) == NULL)
			return true;
	}
	return false;
}

static void
expect_no_later(const char *text)
{
	for (const struct opt_later *l = run_options_later; l->name; l++)
		cr_expect_not(mentions(text, l->name), "%s", l->name);
}

Test(options, the_whole_help_has_every_option_and_none_that_is_not_built)
{
	int status;
	const char *text = output_of("help", NULL, NULL, &status);
	char env[64], var[80];

	cr_expect_eq(status, 0);
	expect_width(text, 400);
	expect_no_later(text);
	for (const struct opt *r = run_options; r->name != NULL; r++) {
		bool no = r->type == OPT_FLAG && strcmp(r->dflt, "yes") == 0;

		snprintf(env, sizeof(env), "%s%s", no ? "no-" : "", r->name);
		cr_expect(mentions(text, env), "%s", env);
		opt_env_name(env, var, sizeof(var));
		cr_expect(r->no_variable || strstr(text, var), "%s", var);
	}
}

Test(options, the_manual_has_every_option)
{
	int status;
	const char *text = output_of("help", "--man", NULL, &status);

	cr_expect_eq(status, 0);
	expect_no_later(text);
	cr_expect(strstr(text, "*-n* _N_, *-np* _N_, *--ranks*=_N_\n\t"));
	cr_expect(strstr(text, "## Reports\n"));
}

Test(options, one_option_or_one_topic_can_be_asked_for)
{
	int status;

	cr_expect(strstr(output_of("help", "grace", NULL, &status),
		"--grace=TIME"));
	cr_expect_eq(status, 0);
}

Test(options, help_knows_a_letter)
{
	int status;

	cr_expect(strstr(output_of("help", "-n", NULL, &status), "--ranks=N"));
	cr_expect_eq(status, 0);
}

Test(options, help_has_the_exit_statuses_for_the_manual)
{
	int status;

	cr_expect(strstr(output_of("help", "exit", "--man", &status),
		"128 + _n_\n\t"));
	cr_expect_eq(status, 0);
}

Test(options, what_help_does_not_have_is_said)
{
	static const struct {
		const char *words[2], *error;
	} rows[] = {
		{ { "garce" },
			"xrun: help: nothing is called 'garce' (did you mean "
			"grace?)\n" },
		{ { "xyzzy" }, "xrun: help: nothing is called 'xyzzy'\n" },
		{ { "exit", "--dot" },
			"xrun: help: exit cannot be shown that way\n" },
		{ { "exit", "grace" },
			"xrun: help: one topic at a time, not 'grace'\n" },
	};
	char want[1024] = "";

	cr_redirect_stderr();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *argv[] = { "help", (char *)rows[i].words[0],
			(char *)rows[i].words[1], NULL };

		snprintf(want + strlen(want), 128, "%s", rows[i].error);
		cr_expect_eq(cmd_help(argv[2] == NULL ? 2 : 3, argv), 125);
	}
	fflush(stderr);
	cr_assert_stderr_eq_str(want);
}

Test(options, version_tells_which_xrun_it_is)
{
	int status;
	const char *text = output_of("version", NULL, NULL, &status);

	cr_expect_eq(status, 0);
	expect_width(text, 3);
	cr_expect_eq(strncmp(text, "xrun 0.1.0\n", 11), 0);
	cr_expect(strstr(text, "the launcher for distributed jobs"));
	cr_expect(strstr(text, "libevent 2."));
}

/* --- verbs --- */

Test(options, a_verb_that_is_not_built_says_so)
{
	char want[2048] = "";

	setenv("PATH", "/nonexistent", 1);
	cr_redirect_stderr();
	for (const struct verb *v = verbs; v->name != NULL; v++) {
		char *argv[] = { (char *)v->name, NULL };

		if (v->run != NULL)
			continue;
		cr_expect_eq(verb_run(v, 1, argv), 125);
		snprintf(want + strlen(want), 128,
			"xrun: %s comes with a later version%s%s\n", v->name,
			v->help == NULL ? "" : "   try: ",
			v->help == NULL ? "" : v->help);
	}
	cr_assert_stderr_eq_str(want);
}

Test(options, a_misspelt_verb_is_known_again)
{
	cr_expect_str_eq(verb_suggest("hlep"), "help");
	cr_expect_str_eq(verb_suggest("versoin"), "version");
	cr_expect_null(verb_suggest("train"));
	cr_expect_str_eq(verb_suggest("pss"), "ps");
	cr_expect_str_eq(verb_suggest("attahc"), "attach");
	cr_expect_null(verb_suggest("ndoe"));
	cr_expect_null(verb_find("hlep"));
	cr_expect_null(verb_find(""));
}

/* --- completion --- */

/* A bash that runs what is written to @in. */
static pid_t
start_bash(int *in)
{
	int ends[2];
	pid_t pid;

	cr_assert_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[1]);
		execlp("bash", "bash", "--norc", "-s", (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	*in = ends[1];
	return pid;
}

/* Does @check hold in a bash that has the completion? `at` completes words. */
static bool
bash_says(const char *check)
{
	static const char at[] =
		"at() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
		"COMPREPLY=(); _xrun; got=\"${COMPREPLY[*]}\"; }\n";
	struct buf b = { 0 };
	int in, status = -1;
	pid_t pid = start_bash(&in);

	completion_bash(&b);
	buf_fmt(&b, "%s%s\n", at, check);
	cr_assert_eq(fd_write_all(in, b.data, b.len), 0);
	close(in);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	buf_fini(&b);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Test(options, the_shell_completes_from_the_rows)
{
	static const char *const rows[] = {
		"at xrun --buf; [[ $got == --buffer= ]]",
		"at xrun --buffer ''; [[ $got == 'line full none' ]]",
		"at xrun --buffer =; [[ $got == 'line full none' ]]",
		"at xrun --buffer = fu; [[ $got == full ]]",
		"at xrun --buffer=fu; [[ $got == --buffer=full ]]",
		"at xrun -n ''; [[ $got == '' ]]",
		"at xrun -n 8 --on-f; [[ $got == --on-failure= ]]",
		"at xrun --no-lo; [[ $got == --no-logs ]]",
		"at xrun --show-env = 3 --json ''; [[ $got != '' ]]",
		"at xrun --chdir /us; [[ $got == /usr ]]",
		"at xrun --report = /etc/passw; [[ $got == */etc/passwd* ]]",
		"at xrun vers; [[ \" $got \" == *' version '* ]]",
		"at xrun -q vers; [[ \" $got \" != *' version '* ]]",
		"at xrun help grac; [[ $got == grace ]]",
		"at xrun completion ''; [[ $got == 'bash zsh fish' ]]",
		"at xrun ls --x; [[ $got == '' ]]",
		"at xrun --hostfil; [[ $got == '' ]]",
		"at xrun --show ''; [[ $got == 'auto all first none' ]]",
		"at xrun ls : --buf; [[ $got == --buffer= ]]",
		"at xrun ls : --buffer = fu; [[ $got == full ]]",
		"at xrun ls : --time; [[ $got == '' ]]",
		"at xrun -n 2 ls x : -n 1 ls : --ch; [[ $got == --chdir= ]]",
		"at xrun ls : vers; [[ \" $got \" != *' version '* ]]",
		"COMP_LINE='xrun scp host:-'; "
		"at xrun scp host : -; [[ $got == '' ]]",
		"COMP_LINE='xrun  scp \"a b\"  :  --buf'; "
		"at xrun scp '\"a b\"' : --buf; [[ $got == --buffer= ]]",
		"at xrun -- ls : --buf; [[ $got == '' ]]",
		"at xrun ls -- : --buf; [[ $got == '' ]]",
		"at xrun config show ''; [[ $got == '--origin --json' ]]",
		"at xrun config show --ori; [[ $got == --origin ]]",
		"at xrun config show --timeo; [[ $got == --timeout= ]]",
		"at xrun config show --show ''; [[ $got == auto* ]]",
		"at xrun config check /etc/passw; [[ $got == */etc/passwd* ]]",
		"_command_offset() { got2=$1; }; "
		"at xrun -q ls : -n 1 ls --x; [[ $got2 == 6 ]]",
		"_command_offset() { got2=$1; }; "
		"at xrun -n 8 -q ls --x; [[ $got2 == 4 ]]",
		"_command_offset() { got2=$1; }; "
		"at xrun -q -- ls x; [[ $got2 == 3 ]]",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect(bash_says(rows[i]), "%s", rows[i]);
	cr_expect_not(bash_says("at xrun --buf; [[ $got == '' ]]"));
}

Test(options, completion_has_no_option_that_is_not_built)
{
	int status;

	expect_no_later(output_of("completion", "bash", NULL, &status));
	cr_expect_eq(status, 0);
}
