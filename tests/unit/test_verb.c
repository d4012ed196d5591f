/* SPDX-License-Identifier: Apache-2.0 */
/* test_verb.c - verbs of xrun: their words, help, completion and version. */
#include "base/opt.h"
#include "base/signo.h"
#include "base/status.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/terminal.h"
#include "launcher/cmd/verb.h"
#include "launcher/job/options.h"
#include "launcher/job/rank.h"
#include "launcher/keeper/orphan.h"
#include "place/profile.h"
#include "tests/unit/verb_rig.h"

void __wrap_orphan_run_now(void);
int __real_fd_write_all(int fd, const void *data, size_t len);
int __wrap_fd_write_all(int fd, const void *data, size_t len);
int __wrap_isatty(int fd);
bool __wrap_utf8_narrow(int fd);

static bool orphans; /* are told of */
static bool tty, narrow;
static int unwritable;

void
__wrap_orphan_run_now(void)
{
	if (orphans)
		dprintf(STDERR_FILENO, "orphans\n");
}

int
__wrap_fd_write_all(int fd, const void *data, size_t len)
{
	if (fd != STDOUT_FILENO || unwritable == 0)
		return __real_fd_write_all(fd, data, len);
	errno = unwritable;
	return -1;
}

int
__wrap_isatty(int fd)
{
	return fd == STDOUT_FILENO && tty;
}

bool
__wrap_utf8_narrow(int fd)
{
	return fd == STDOUT_FILENO && narrow;
}

TestSuite(verb, .init = verb_rig_make, .fini = folder_remove, .timeout = 60);

static bool
said_has(const char *text)
{
	return strstr(said.out, text) != NULL;
}

#define EXPECT_BEGINS(text) \
	cr_expect_eq(strncmp(said.out, (text), strlen(text)), 0, "%s: %s", \
		text, said.out)
#define EXPECT_OUT(text) cr_expect(said_has(text), "%s: %s", text, said.out)

/* --- verbs ------------------------------------------------------------------ */

Test(verb, those_about_jobs_end_lost_ones_first)
{
	orphans = true;
	CALL("ps");
	EXPECT_SAID(0, "", "orphans\n");
	CALL("version");
	cr_expect_str_eq(said.err, "");
	CALL("ps", "-h");
	cr_expect_str_eq(said.err, "");
	for (const struct verb *v = verbs; v->name != NULL; v++) {
		if (v->run == NULL)
			continue;
		CALL((char *)v->name, "-h", "x");
		cr_expect_str_eq(said.err, "", "%s", v->name);
		cr_expect_eq(v->jobs,
			strstr(v->operands, "JOB") != NULL ||
				strcmp(v->name, "prune") == 0,
			"%s", v->name);
	}
}

Test(verb, each_has_a_help)
{
	CALL("ps", "--help");
	EXPECT_SAID(0,
		"usage: xrun ps [OPTION...] [JOB]\n\n  jobs, or the ranks of one\n\n"
		"  -a, --all                       jobs that have ended, too, as long as they are kept\n"
		"  -q, --quiet                     their ids and nothing else\n"
		"      --json                      as JSON: an array of jobs, or one job with its ranks\n",
		"");
	CALL("version", "-h");
	EXPECT_SAID(0, "usage: xrun version [--json]\n\n  which xrun this is\n",
		"");
	/* Nowhere but behind the verb. */
	CALL("version", "x", "-h");
	cr_expect_eq(said.status, 125);
}

Test(verb, those_that_are_not_built)
{
	cr_assert_eq(mkdir("bin", 0700), 0);
	setenv("PATH", "bin", 1);
	CALL("top");
	EXPECT_SAID(125, "",
		"xrun: top comes with a later version   try: xrun ps\n");
	CALL("node", "-h");
	EXPECT_SAID(125, "", "xrun: node comes with a later version\n");
	folder_write("bin/top", "#!/bin/sh\n", 0755);
	folder_write("bin/node", "#!/bin/sh\n", 0755);
	CALL("top");
	EXPECT_SAID(125, "",
		"xrun: top comes with a later version   try: xrun ps; or xrun -- top, for the program of that name\n");
	CALL("node");
	EXPECT_SAID(125, "",
		"xrun: node comes with a later version   try: xrun -- node, for the program of that name\n");
}

Test(verb, a_word_that_is_nearly_one)
{
	cr_expect_str_eq(verb_suggest("versoin"), "version");
	cr_expect_str_eq(verb_suggest("pss"), "ps");
	cr_expect_null(verb_suggest("train"));
	cr_expect_null(verb_suggest("ndoe"));
}

Test(verb, operands_and_options_in_any_order)
{
	CALL("ps", "-q", "--", "-x", "y");
	EXPECT_SAID(125, "",
		"xrun: ps: 'y' is one word too many   try: xrun ps -h\n");
	CALL("ps", "a", "-x");
	cr_expect_eq(said.status, 125);
	cr_expect_str_eq(said.err, "xrun: ps: unknown option -x\n");
	CALL("ps", "--");
	EXPECT_SAID(0, "", "");
	CALL("ps", "--", "-q");
	EXPECT_SAID(125, "", "xrun: there is no job '-q'   try: xrun ps -a\n");
	job_make("k7m2", true, NULL);
	CALL("ps", "k7m2", "-q");
	EXPECT_SAID(125, "", "xrun: ps: -q is for a list of jobs\n");
	CALL("rm", "a", "--dry-run", "b", "--", "-c", "--dry-run");
	EXPECT_SAID(125, "",
		"xrun: there is no job 'a'   try: xrun ps -a\n"
		"xrun: there is no job 'b'   try: xrun ps -a\n"
		"xrun: there is no job '-c'   try: xrun ps -a\n"
		"xrun: there is no job '--dry-run'   try: xrun ps -a\n");
}

/* --- version, and what all verbs print with ------------------------------------ */

Test(verb, version)
{
	CALL("version");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS(
		"xrun " XRUN_VERSION
		"\nthe launcher for distributed jobs; Cadence's simulator is called xrun, too\nbuilt with ");
	EXPECT_OUT(", libevent ");
	EXPECT_OUT(", cjson ");
	cr_expect_not(said_has("compiler"));
	CALL("version", "--json");
	EXPECT_BEGINS("{\"xrun\":\"" XRUN_VERSION "\",\"compiler\":\"");
	EXPECT_OUT("\",\"libevent\":\"");
	EXPECT_OUT("\",\"cjson\":\"");
	cr_expect_str_eq(said.out + strlen(said.out) - 3, "\"}\n");
	CALL("version", "x");
	EXPECT_SAID(125, "", "xrun: version: 'x' is not --json\n");
	CALL("version", "--json", "y");
	EXPECT_SAID(125, "", "xrun: version: 'y' is not --json\n");
	CALL("-V");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS("xrun " XRUN_VERSION "\n");
}

static void
say_without_memory(void)
{
	_exit(say(&(struct buf){ .bad = XR_E_NOMEM }));
}

Test(verb, answers_that_there_is_no_memory_for)
{
	verb_rig_first = say_without_memory;
	CALL("version");
	EXPECT_SAID(125, "", "xrun: out of memory\n");
	verb_rig_first = NULL;
	tty = true;
	CALL("ps");
	EXPECT_SAID(0, "", "");
}

Test(verb, answers_that_cannot_be_written)
{
	unwritable = ENOSPC;
	CALL("version");
	EXPECT_SAID(125, "",
		"xrun: standard output: No space left on device\n");
	unwritable = 0;
	job_make("k\303\244", false, "{\"argv\":[\"\303\244\"]}");
	CALL("ps", "-aq");
	EXPECT_SAID(0, "k\303\244\n", "");
	tty = true;
	CALL("ps", "-aq");
	EXPECT_SAID(0, "k\303\244\n", "");
	narrow = true;
	CALL("ps", "-aq");
	cr_expect_str_neq(said.out, "k?\n");
}

Test(verb, terminals_that_have_colours)
{
	cr_expect_not(terminal_takes_escapes());
	cr_expect_not(terminal_wants_color(COLOR_AUTO, true));
	setenv("TERM", "", 1);
	cr_expect_not(terminal_takes_escapes());
	setenv("TERM", "dumb", 1);
	cr_expect_not(terminal_takes_escapes());
	cr_expect(terminal_wants_color(COLOR_ALWAYS, false));
	setenv("TERM", "x", 1);
	cr_expect(terminal_takes_escapes());
	setenv("TERM", "xterm", 1);
	cr_expect(terminal_takes_escapes());
	cr_expect(terminal_wants_color(COLOR_AUTO, true));
	cr_expect_not(terminal_wants_color(COLOR_AUTO, false));
	cr_expect_not(terminal_wants_color(COLOR_NEVER, true));
	setenv("NO_COLOR", "", 1);
	cr_expect(terminal_wants_color(COLOR_AUTO, true));
	setenv("NO_COLOR", "1", 1);
	cr_expect_not(terminal_wants_color(COLOR_AUTO, true));
	cr_expect(terminal_wants_color(COLOR_ALWAYS, true));
}

/* --- completion ---------------------------------------------------------------- */

#define VERBS \
	"ps logs events attach signal stop restart wait stacks rm prune doctor help version completion config"

Test(verb, completion_of_bash_and_zsh)
{
	for (int zsh = 0; zsh < 2; zsh++) {
		CALL("completion", zsh ? (char *)"zsh" : (char *)"bash");
		cr_expect_eq(said.status, 0);
		EXPECT_OUT(
			"\n_xrun_verbs()\n{\n\techo '" VERBS
			"'\n}\n_xrun_operands()\n{\n\tcase $1 in\n\tps) echo '' ;;\n");
		EXPECT_OUT("\tcompletion) echo 'bash zsh fish' ;;\n");
		EXPECT_OUT("\tversion) echo '--json' ;;\n");
		EXPECT_OUT(
			"\tconfig) echo 'show check schema' ;;\n\tesac\n}\n");
		EXPECT_OUT(
			"\thelp) echo 'options keys environ exit metrics protocol states ranks chdir ");
		EXPECT_OUT(
			"\n_xrun_asks()\n{\n\tcase $1 in\n\tps) echo 'yes' ;;\n");
		EXPECT_OUT("\tdoctor) echo 'yes' ;;\n\tesac\n}\n");
		cr_expect_not(said_has("\thelp) echo 'yes'"));
	}
	EXPECT_OUT(
		"#compdef xrun\n# zsh completion of xrun, from its tables: xrun completion zsh\n");
	EXPECT_OUT("}\n_xrun_set_options()\n{\n");
	EXPECT_OUT("}\n_xrun_set_part_options()\n{\n");
}

Test(verb, completion_of_fish)
{
	CALL("completion", "fish");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS(
		"# fish completion of xrun, from its tables: xrun completion fish\n"
		"function __xrun_verbs\n\tstring split -- ' ' '" VERBS
		"'\nend\nfunction __xrun_operands\n\tswitch $argv[1]\n\t\tcase ps\n\t\t\tstring split -- ' ' ''\n");
	EXPECT_OUT(
		"\t\tcase config\n\t\t\tstring split -- ' ' 'show check schema'\n\tend\nend\nfunction __xrun_asks\n");
	EXPECT_OUT(
		"\t\tcase doctor\n\t\t\tstring split -- ' ' 'yes'\n\tend\nend\n");
	EXPECT_OUT("complete -c xrun");
}

Test(verb, completion_of_other_words)
{
	CALL("completion");
	EXPECT_SAID(125, "",
		"xrun: completion: the shell is missing: bash, zsh or fish\n");
	CALL("completion", "ksh");
	EXPECT_SAID(125, "",
		"xrun: completion: 'ksh' is not one of bash|zsh|fish\n");
	CALL("completion", "bash", "x");
	EXPECT_SAID(125, "",
		"xrun: completion: 'x' is not one of bash|zsh|fish\n");
	CALL("completion", "words");
	EXPECT_SAID(125, "",
		"xrun: completion: 'words' is not one of bash|zsh|fish\n");
}

Test(verb, words_of_now)
{
	char want[1024] = "--rank\n-r\n--all\n--no-all\n--json\n--no-json\n",
	     name[16];

	job_make("runs", true, NULL);
	job_make("ended", false, NULL);
	CALL("completion", "words", "x");
	EXPECT_SAID(0, "", "");
	CALL("completion", "words", "help");
	EXPECT_SAID(0, "", "");
	CALL("completion", "words", "logs", "--color");
	EXPECT_SAID(0, "auto\nalways\nnever\n", "");
	CALL("completion", "words", "stop");
	EXPECT_SAID(0, "--all\n--no-all\n--json\n--no-json\nruns\n", "");
	CALL("completion", "words", "signal", "USR1");
	EXPECT_SAID(0, "--rank\n-r\n--all\n--no-all\n--json\n--no-json\nruns\n",
		"");
	CALL("completion", "words", "prune");
	cr_expect_not(said_has("runs"));
	CALL("completion", "words", "wait");
	cr_expect(said_has("runs\n") && said_has("ended\n"));
	CALL("completion", "words", "signal");
	for (int sig = 1; sig < 32; sig++)
		snprintf(want + strlen(want), sizeof(want) - strlen(want),
			"%s\n", signo_short(sig, name, sizeof(name)));
	strncat(want, "runs\n", sizeof(want) - strlen(want) - 1);
	EXPECT_SAID(0, want, "");
}

/* --- help ------------------------------------------------------------------------ */

Test(verb, help_has_all_of_it)
{
	CALL("help");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS(
		"usage: xrun [options] [--] PROGRAM [ARG...] [: [options] PROGRAM [ARG...]]...\n"
		"       xrun VERB [ARG...]\n\nStart PROGRAM as several ranks");
	EXPECT_OUT(
		"\n  xrun -n 8 ./train                      8 ranks on this machine\n");
	EXPECT_OUT(
		"\n  xrun --dry-run -n 8 ./train            who would run where, with what\n");
	EXPECT_OUT("\nExit status\n\n  0       All ranks ended with 0.\n");
	EXPECT_OUT(
		"\nVerbs, each with -h\n\n  xrun ps         [JOB]                jobs, or the ranks of one\n");
	EXPECT_OUT(
		"\n  xrun config     show|check|schema    what settings are, and errors in files\n\n"
		"Topics of xrun help, besides verbs and options:\n"
		"  options keys environ exit metrics protocol states\n");
	cr_expect_not(said_has("  xrun top"));
	CALL("-h");
	cr_expect_eq(said.status, 0);
	cr_expect_not(said_has("xrun --dry-run -n 8"));
	EXPECT_OUT(
		"\n\n  xrun help  all of it      xrun help OPTION  one of them\n");
}

Test(verb, help_of_the_exit_status)
{
	CALL("help", "exit");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS(
		"  0       All ranks ended with 0.\n"
		"  N       The status of the first rank that failed, see --exit-code.\n"
		"  128 + n The first rank that failed was ended by signal n.\n");
	CALL("help", "exit", "--man");
	EXPECT_BEGINS("0\n\tAll ranks ended with 0.\n\n_N_\n\tThe");
	CALL("help", "exit", "--dot");
	EXPECT_SAID(125, "", "xrun: help: exit cannot be shown that way\n");
	CALL("help", "--dot", "states", "x");
	EXPECT_SAID(125, "", "xrun: help: one topic at a time, not 'x'\n");
	CALL("help", "exit", "--text");
	EXPECT_BEGINS("  0       All");
}

/* Those that the machine of ranks has. */
static unsigned
steps(bool moves)
{
	enum rank_state to;
	unsigned act, n = 0;

	for (int s = 0; s < RANK_STATE_COUNT; s++)
		for (int e = 0; e < RANK_EVENT_COUNT; e++)
			n += rank_next((enum rank_state)s, (enum rank_event)e,
				     &to, &act) &&
				(!moves || (int)to != s);
	return n;
}

static unsigned
lines(void)
{
	unsigned n = 0;

	for (const char *p = said.out; *p != '\0'; p++)
		n += *p == '\n';
	return n;
}

Test(verb, help_of_states)
{
	CALL("help", "states");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(lines(), steps(false) + 2);
	EXPECT_BEGINS(
		"  state     event        leads to, and what is done on the way\n\n"
		"  new       execed       running\n"
		"  new       exec-failed  done, count it\n");
	EXPECT_OUT(", stop signal\n");
	EXPECT_OUT(", SIGKILL\n");
	EXPECT_OUT(", wait for its pipes\n");
	EXPECT_OUT(", give its pipes up, count it\n");
	CALL("help", "states", "--dot");
	cr_expect_eq(lines(), steps(true) + 2);
	EXPECT_BEGINS("digraph rank {\n\tnew -> running [label=\"execed\"];\n"
		      "\tnew -> done [label=\"exec-failed\\ncount it\"];\n");
	EXPECT_OUT("\\ngive its pipes up, count it\"];\n");
	cr_expect_str_eq(said.out + strlen(said.out) - 6, "\"];\n}\n");
}

static void
expect_pair(const char *name, const char *text, const char *more)
{
	char line[300];

	snprintf(line, sizeof(line), "\n  %-31s %s%s%s\n", name, text,
		more[0] == '\0' ? "" : "  ", more);
	EXPECT_OUT(line);
}

static void
expect_no_variable(const char *option)
{
	char name[80], line[100];

	opt_env_name(option, name, sizeof(name));
	snprintf(line, sizeof(line), "\n  %s ", name);
	cr_expect_not(said_has(line), "%s", name);
}

Test(verb, help_of_variables)
{
	CALL("help", "environ");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS(
		"What ranks are told; xrun --show-env=RANK PROGRAM shows the values\n\n"
		"  profile xrun, always\n  XRUN_JOB                        {job}\n");
	EXPECT_OUT("\n\n  profile torch, unless --env-profile leaves it out\n");
	EXPECT_OUT("\n\n  profile xrt, under a TPU worker list\n");
	EXPECT_OUT("\n\n  profile pjrt, on a TPU without a worker list\n");
	EXPECT_OUT("\n\nWhat ranks are not told\n\n");
	EXPECT_OUT(
		"\n\nOptions as variables\n\n  XRUN_RANKS                      how many ranks to start\n");
	for (const struct env_row *r = env_rows; r->name != NULL; r++) {
		static const char *const whens[] = {
			[ENV_ALWAYS] = "",
			[ENV_UNSET] = "if unset",
			[ENV_EMPTY] = "if unset or empty",
			[ENV_CROWD] = "if unset, with several ranks",
			[ENV_LINES] = "if unset, but not with --buffer full",
		};

		expect_pair(r->name, r->value, whens[r->when]);
	}
	for (const struct env_scrub *s = env_scrub_rules; s->pattern; s++)
		expect_pair(s->pattern, s->why, "");
	EXPECT_OUT("\n  XRUN_NO_LOGS  ");
	EXPECT_OUT("\n  XRUN_QUIET  ");
	cr_expect_not(said_has("XRUN_LOGS "));
	cr_expect_not(said_has("XRUN_DEBUG_FAULTS"));
	for (const struct opt *o = run_options; o->name != NULL; o++)
		/* XRUN_JOB is a rank's. */
		if (o->no_variable && strcmp(o->name, "job") != 0)
			expect_no_variable(o->name);
	CALL("help", "environ", "--man");
	EXPECT_BEGINS("## Profile xrun, always\n\n```\n  XRUN_JOB  ");
	EXPECT_OUT(
		"\n```\n\n## Profile torch, unless --env-profile leaves it out\n\n```\n  RANK  ");
	EXPECT_OUT(
		"\n```\n\n# WHAT RANKS ARE NOT TOLD\n\nWhat another launcher said");
	EXPECT_OUT("a lie\nto its ranks:\n\n```\n  ");
	EXPECT_OUT("\n```\n\n# OPTIONS AS VARIABLES\n\n");
	EXPECT_OUT("or\nwithout the NO.\n\n```\n  XRUN_RANKS  ");
	cr_expect_str_eq(said.out + strlen(said.out) - 6, "\n```\n\n");
}

Test(verb, help_of_one_option_variable_or_verb)
{
	static const char *const words[] = { "ranks", "--ranks", "-n", "n",
		"XRUN_RANKS" };
	static char first[sizeof(said.out)];

	CALL("help", "ranks");
	snprintf(first, sizeof(first), "%s", said.out);
	EXPECT_BEGINS("  -n, -np, --ranks=N");
	for (int i = 0; i < 5; i++) {
		CALL("help", (char *)words[i]);
		EXPECT_SAID(0, first, "");
	}
	CALL("help", "logs");
	snprintf(first, sizeof(first), "%s", said.out);
	EXPECT_OUT(
		"\n  xrun logs [JOB]\n      what the ranks of a job wrote\n");
	CALL("help", "no-logs");
	cr_expect_eq(strncmp(said.out, first, 20), 0, "%s", said.out);
	cr_expect_not(said_has("xrun logs [JOB]"));
	CALL("help", "XRUN_NO_LOGS");
	cr_expect_eq(strncmp(said.out, first, 20), 0, "%s", said.out);
	CALL("help", "XRUN_LOGS");
	cr_expect_eq(strncmp(said.out, first, 20), 0, "%s", said.out);
	CALL("help", "WORLD_SIZE");
	EXPECT_SAID(0,
		"  WORLD_SIZE is what xrun tells a rank, and no option. What it is there:\n"
		"      xrun -n N --show-env=RANK PROGRAM; see xrun(1), ENVIRONMENT.\n",
		"");
	CALL("help", "wait");
	EXPECT_BEGINS("usage: xrun wait [OPTION...] [JOB...]\n");
	CALL("help", "stattes");
	EXPECT_SAID(125, "",
		"xrun: help: nothing is called 'stattes' (did you mean states?)\n");
	CALL("help", "timeot");
	EXPECT_SAID(125, "",
		"xrun: help: nothing is called 'timeot' (did you mean timeout?)\n");
	CALL("help", "XRUN_NOTHING");
	cr_expect_eq(said.status, 125);
	CALL("help", "qwertz");
	EXPECT_SAID(125, "", "xrun: help: nothing is called 'qwertz'\n");
}

Test(verb, help_for_the_manual)
{
	CALL("help", "--man", "wait");
	cr_expect_eq(said.status, 0);
	EXPECT_OUT("*--all*");
	CALL("help", "--man", "version");
	cr_expect_eq(said.status, 0);
	EXPECT_BEGINS("  -V, --version");
	CALL("help", "--bash");
	EXPECT_BEGINS("# bash completion of xrun");
	CALL("help", "--man");
	EXPECT_OUT("*--ranks*");
}
