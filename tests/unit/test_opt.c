/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt.c - values from words, variables and defaults, and the errors. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/opt.h"
#include "base/opt_print.h"
#include "base/opt_shell.h"

struct settings {
	int64_t count, size, time, maybe;
	bool given, flag, on, help;
	const char *file, *pick;
	int mode, sig;
	struct opt_list list;
};

#define AT(field) offsetof(struct settings, field)

static const char *const modes[] = { "line", "full", "none", NULL };

static bool
has_equals(const char *value)
{
	return strchr(value, '=') != NULL;
}

static const struct opt table[] = {
	{ .name = "ranks",
		.letter = 'n',
		.alias = "np",
		.type = OPT_INT,
		.arg = "N",
		.min = 1,
		.max = 1000000,
		.offset = AT(count),
		.group = "numbers",
		.common = true,
		.help = "how many",
		.text = "Start _N_ ranks, *at most* a_b." },
	{ .name = "cache",
		.type = OPT_SIZE,
		.arg = "SIZE",
		.dflt = "1M",
		.min = 4096,
		.max = 1LL << 40,
		.offset = AT(size),
		.help = "bytes",
		.text = "Bytes." },
	{ .name = "grace",
		.letter = 'g',
		.type = OPT_DURATION,
		.arg = "TIME",
		.dflt = "10s",
		.min = 0,
		.max = 86400000000000,
		.offset = AT(time),
		.help = "patience",
		.text = "Patience." },
	{ .name = "show-env",
		.type = OPT_INT,
		.maybe = true,
		.arg = "RANK",
		.dflt = "0",
		.max = 99,
		.offset = AT(maybe),
		.given = AT(given),
		.help = "print",
		.text = "Print." },
	{ .name = "quiet",
		.letter = 'q',
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(flag),
		.group = "words",
		.help = "say less",
		.text = "Say less." },
	{ .name = "logs",
		.letter = 'l',
		.type = OPT_FLAG,
		.dflt = "yes",
		.offset = AT(on),
		.common = true,
		.help = "keep no files",
		.text = "Keep files." },
	{ .name = "report",
		.type = OPT_TEXT,
		.arg = "FILE",
		.offset = AT(file),
		.help = "write",
		.text = "Write." },
	{ .name = "platform",
		.type = OPT_TEXT,
		.dflt = "auto",
		.choices = (const char *const[]){ "auto", "cpu", NULL },
		.offset = AT(pick),
		.help = "kind",
		.text = "Kind." },
	{ .name = "buffer",
		.type = OPT_CHOICE,
		.dflt = "line",
		.choices = modes,
		.offset = AT(mode),
		.help = "mode",
		.text = "Mode." },
	{ .name = "stop-signal",
		.type = OPT_SIGNAL,
		.arg = "SIGNAL",
		.dflt = "TERM",
		.offset = AT(sig),
		.help = "signal",
		.text = "Signal." },
	{ .name = "env",
		.letter = 'e',
		.type = OPT_LIST,
		.arg = "NAME=VALUE",
		.valid = has_equals,
		.offset = AT(list),
		.help = "set",
		.text = "Set." },
	{ 0 },
};

static const struct opt_later later[] = { { "restarts", 0 }, { "detach", 'd' },
	{ "hosts", 0 }, { 0 } };

static struct settings s;
static struct opts opts;
static struct xr_error err;
static int next;

static void
begin(void)
{
	s = (struct settings){ 0 };
	err = (struct xr_error){ 0 };
	opt_init(&opts, table, &s);
	opts.later = later;
}

/* The command line @line, split at blanks; "''" is an empty word. */
static enum xr_status
argv_of(const char *line)
{
	static char text[512];
	static char *argv[32];
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	argv[0] = "xrun";
	for (char *p = text; *p != '\0'; p++) {
		argv[argc++] = p;
		p += strcspn(p, " ");
		if (strncmp(argv[argc - 1], "''", 2) == 0)
			argv[argc - 1][0] = '\0';
		if (*p == '\0')
			break;
		*p = '\0';
	}
	argv[argc] = NULL;
	return opt_argv(&opts, argc, argv, &next, &err);
}

static enum xr_status
fresh(const char *line)
{
	begin();
	return argv_of(line);
}

static enum xr_status
env_of(const char *entry)
{
	bool known;

	return opt_env(&opts, entry, &known, &err);
}

TestSuite(opt, .init = begin);

Test(opt, every_default_is_parsed_like_a_word)
{
	cr_expect_eq(s.size, 1 << 20);
	cr_expect_eq(s.time, 10000000000);
	cr_expect_not(s.flag);
	cr_expect(s.on);
	cr_expect_str_eq(s.pick, "auto");
	cr_expect_eq(s.mode, 0);
	cr_expect_eq(s.sig, 15);
	cr_expect_not(s.given);
	cr_expect_null(s.file);
	cr_expect_eq(s.list.n, 0);
	cr_expect_eq(opt_source(&opts, "grace"), OPT_DEFAULT);
}

Test(opt, a_value_may_be_joined_or_follow)
{
	static const char *const lines[] = { "--ranks=8 x", "--ranks 8 x",
		"-n 8 x", "-n8 x", "-np 8 x", "-np8 x", "-np=8 x", "--np 8 x",
		"-qn 8 x", "-qn8 x", "-n 3 -n 8 x" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		cr_expect_eq(fresh(lines[i]), XR_OK, "%s", lines[i]);
		cr_expect_eq(s.count, 8, "%s", lines[i]);
		cr_expect_eq(opt_source(&opts, "ranks"), OPT_ARGV);
	}
}

Test(opt, options_stop_at_the_first_operand)
{
	cr_expect_eq(fresh("-n 2 prog -n 3 --nonsense"), XR_OK);
	cr_expect_eq(next, 3);
	cr_expect_eq(s.count, 2);
	cr_expect_eq(fresh("-q -- -n 3"), XR_OK);
	cr_expect_eq(next, 3);
	cr_expect_eq(s.count, 0);
	cr_expect_eq(fresh("- -n 3"), XR_OK);
	cr_expect_eq(next, 1);
	cr_expect_eq(fresh("-q"), XR_OK);
	cr_expect_eq(next, 2);
	cr_expect_eq(fresh(""), XR_OK);
	cr_expect_eq(next, 1);
	cr_expect_eq(fresh("'' x"), XR_OK);
	cr_expect_eq(next, 1);
}

Test(opt, flags_have_a_no_form_and_words)
{
	cr_expect_eq(fresh("-q --no-logs x"), XR_OK);
	cr_expect(s.flag);
	cr_expect_not(s.on);
	cr_expect_eq(fresh("-ql --quiet=off --logs=0 x"), XR_OK);
	cr_expect_not(s.flag);
	cr_expect_not(s.on);
	cr_expect_eq(fresh("--no-quiet --quiet --no-logs --logs x"), XR_OK);
	cr_expect(s.flag);
	cr_expect(s.on);
	cr_expect_eq(next, 5);
}

Test(opt, a_value_that_may_be_left_out_only_comes_joined)
{
	cr_expect_eq(fresh("--show-env 3"), XR_OK);
	cr_expect(s.given);
	cr_expect_eq(s.maybe, 0);
	cr_expect_eq(next, 2);
	cr_expect_eq(fresh("--show-env=3 x"), XR_OK);
	cr_expect(s.given);
	cr_expect_eq(s.maybe, 3);
	cr_expect_eq(fresh("--show-env=3 --no-show-env x"), XR_OK);
	cr_expect_not(s.given);
}

Test(opt, units_are_what_people_write)
{
	static const struct {
		const char *line;
		int64_t size, time;
	} rows[] = { { "--grace 250ms", 1 << 20, 250000000 },
		{ "--grace 1.5s", 1 << 20, 1500000000 },
		{ "--grace 1h30m", 1 << 20, 5400000000000 },
		{ "--grace 2m0.5s", 1 << 20, 120500000000 },
		{ "--grace 1s5ms", 1 << 20, 1005000000 },
		{ "--grace 0000", 1 << 20, 0 },
		{ "--grace 10m", 1 << 20, 600000000000 },
		{ "--grace 1h", 1 << 20, 3600000000000 },
		{ "--grace 24h", 1 << 20, 86400000000000 },
		{ "--grace 0", 1 << 20, 0 }, { "--grace 0s", 1 << 20, 0 },
		{ "--grace 0.0001s", 1 << 20, 100000 },
		{ "--cache 64k", 64 << 10, 10000000000 },
		{ "--cache 64K", 64 << 10, 10000000000 },
		{ "--cache 10M", 10 << 20, 10000000000 },
		{ "--cache 1G", 1 << 30, 10000000000 },
		{ "--cache 1.5G", 3 << 29, 10000000000 },
		{ "--cache 1T", 1LL << 40, 10000000000 },
		{ "--cache 5000", 5000, 10000000000 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(fresh(rows[i].line), XR_OK, "%s: %s", rows[i].line,
			err.text);
		cr_expect_eq(s.size, rows[i].size, "%s", rows[i].line);
		cr_expect_eq(s.time, rows[i].time, "%s", rows[i].line);
	}
}

/* Reliability row 65: each names what was written, and the allowed range. */
Test(opt, a_bad_number_of_ranks_is_told_the_range)
{
	static const struct {
		const char *line, *error;
	} rows[] = {
		{ "-n 8x", "-n: '8x' is not a number; 1 to 1000000" },
		{ "-n 0", "-n: '0' is too small; 1 to 1000000" },
		{ "-n -1", "-n: '-1' is too small; 1 to 1000000" },
		{ "-n 1e9", "-n: '1e9' is not a number; 1 to 1000000" },
		{ "-n 2147483648",
			"-n: '2147483648' is too large; 1 to 1000000" },
		{ "-n 99999999999999999999",
			"-n: '99999999999999999999' is too large; 1 to 1000000" },
		{ "-n -99999999999999999999",
			"-n: '-99999999999999999999' is too small; 1 to 1000000" },
		{ "-n 1000001", "-n: '1000001' is too large; 1 to 1000000" },
		{ "-n ''", "-n: '' is not a number; 1 to 1000000" },
		{ "--ranks=", "--ranks: '' is not a number; 1 to 1000000" },
		{ "--ranks=8x", "--ranks: '8x' is not a number; 1 to 1000000" },
		{ "-np 8x", "-np: '8x' is not a number; 1 to 1000000" },
		{ "-n8x", "-n: '8x' is not a number; 1 to 1000000" },
		{ "-n +8", "-n: '+8' is not a number; 1 to 1000000" },
		{ "-n 8.0", "-n: '8.0' is not a number; 1 to 1000000" },
		{ "-n 0x8", "-n: '0x8' is not a number; 1 to 1000000" },
		{ "-n -", "-n: '-' is not a number; 1 to 1000000" },
		{ "-n ./train", "-n: './train' is not a number; 1 to 1000000" },
		{ "-n", "-n needs a number; 1 to 1000000" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_lt(fresh(rows[i].line), 0);
		cr_expect_str_eq(err.text, rows[i].error);
		cr_expect_eq(s.count, 0);
	}
}

Test(opt, other_bad_values_are_told_what_would_be_right)
{
#define TIMES "a time such as 250ms, 30s, 10m or 1h30m"
#define SIZES "a size such as 64k, 10M or 1G"
#define WORDS "one of 1|true|yes|on|0|false|no|off"
	static const struct {
		const char *line, *error;
	} rows[] = {
		{ "--grace 30",
			"--grace: '30' has no unit, such as 30s, 30m or 30h" },
		{ "--grace 1.5",
			"--grace: '1.5' has no unit, such as 1.5s, 1.5m or "
			"1.5h" },
		{ "--grace 1h30", "--grace: '1h30' is not " TIMES },
		{ "--grace 30m1h", "--grace: '30m1h' is not " TIMES },
		{ "--grace 1m1m", "--grace: '1m1m' is not " TIMES },
		{ "--grace 1mms", "--grace: '1mms' is not " TIMES },
		{ "--grace 9999999999999h9999999999m",
			"--grace: '9999999999999h9999999999m' is too large; 0 "
			"to 24h" },
		{ "-g 30x", "-g: '30x' is not " TIMES },
		{ "--grace -5s", "--grace: '-5s' is not " TIMES },
		{ "--grace 1.s", "--grace: '1.s' is not " TIMES },
		{ "--grace .5s", "--grace: '.5s' is not " TIMES },
		{ "--grace 1.5.5s", "--grace: '1.5.5s' is not " TIMES },
		{ "--grace s", "--grace: 's' is not " TIMES },
		{ "--grace 25h", "--grace: '25h' is too large; 0 to 24h" },
		{ "--grace 9999999999999h",
			"--grace: '9999999999999h' is too large; 0 to 24h" },
		{ "--grace", "--grace needs " TIMES },
		{ "--cache 4x", "--cache: '4x' is not " SIZES },
		{ "--cache 4kb", "--cache: '4kb' is not " SIZES },
		{ "--cache 1", "--cache: '1' is too small; 4k to 1T" },
		{ "--cache 9999999999T",
			"--cache: '9999999999T' is too large; 4k to 1T" },
		{ "--buffer all",
			"--buffer: 'all' is not one of line|full|none" },
		{ "--buffer", "--buffer needs one of line|full|none" },
		{ "--platform tpu",
			"--platform: 'tpu' is not one of auto|cpu" },
		{ "--stop-signal FOO",
			"--stop-signal: 'FOO' is not a signal such as TERM, INT or 15" },
		{ "--stop-signal 0",
			"--stop-signal: '0' is not a signal such as TERM, INT or 15" },
		{ "--report=",
			"--report: '' is empty, where FILE should stand" },
		{ "--report", "--report needs a FILE" },
		{ "--env FOO", "--env: 'FOO' is not a NAME=VALUE" },
		{ "--quiet=maybe", "--quiet: 'maybe' is not " WORDS },
		{ "--quiet=", "--quiet: '' is not " WORDS },
		{ "--no-logs=1", "--no-logs takes no value" },
		{ "--show-env=x", "--show-env: 'x' is not a number; 0 to 99" },
		{ "--show-env=100", "--show-env: '100' is too large; 0 to 99" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_lt(fresh(rows[i].line), 0);
		cr_expect_str_eq(err.text, rows[i].error);
	}
}

Test(opt, an_unknown_option_is_named_with_its_neighbour)
{
	static const struct {
		const char *line, *error;
	} rows[] = {
		{ "--rank 3", "unknown option --rank (did you mean --ranks?)" },
		{ "--rnaks=3",
			"unknown option --rnaks (did you mean --ranks?)" },
		{ "--no-log",
			"unknown option --no-log (did you mean --no-logs?)" },
		{ "--no-ranks", "unknown option --no-ranks" },
		{ "--show",
			"unknown option --show (did you mean --show-env?)" },
		{ "-ranks 8", "unknown option -ranks (did you mean --ranks?)" },
		{ "--xyzzy", "unknown option --xyzzy" },
		{ "-x", "unknown option -x" },
		{ "-qx", "unknown option -qx" },
		{ "--=3", "unknown option --" },
		{ "--\x1b[2J", "unknown option --?[2J" },
		{ "--restarts 3", "--restarts comes with a later version" },
		{ "--restarts=3", "--restarts comes with a later version" },
		{ "--no-detach", "--no-detach comes with a later version" },
		{ "-d x", "-d comes with a later version" },
		{ "-qd x", "-d comes with a later version" },
		{ "-hosts x", "--hosts comes with a later version" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(fresh(rows[i].line), XR_E_NOTFOUND, "%s",
			rows[i].line);
		cr_expect_str_eq(err.text, rows[i].error);
		cr_expect_eq(next, 1);
	}
}

Test(opt, a_long_value_leaves_room_for_the_advice)
{
	char line[400] = "-n ";

	memset(line + 3, '7', 300);
	memcpy(line + 40, "\x1b\n\xff\xc3\xa9", 5);
	cr_expect_lt(fresh(line), 0);
	cr_expect_str_eq(err.text,
		"-n: '7777777777777777777777777777777777777???\xc3\xa9"
		"77777777777777...' is not a number; 1 to 1000000");
	memset(line, '-', 2);
	memset(line + 2, 'a', 300);
	cr_expect_lt(fresh(line), 0);
	cr_expect_lt(strlen(err.text), 70);
}

Test(opt, every_truncation_of_a_line_is_taken_or_refused)
{
	static const char line[] = "--grace=1.5s -qn 8 --env A=b --show-env=3 "
				   "--no-logs --buffer full -- prog";

	for (size_t n = 0; n < sizeof(line); n++) {
		char *cut = strndup(line, n);
		char *argv[] = { "xrun", cut, NULL };

		begin();
		cr_expect((opt_argv(&opts, 2, argv, &next, &err) == XR_OK) ==
			(next == 2 || n == 0 || n == 1));
		fresh(cut);
		opt_fini(&opts);
		free(cut);
	}
}

Test(opt, the_environment_is_read_by_the_same_rules)
{
	cr_expect_eq(env_of("XRUN_RANKS=8"), XR_OK);
	cr_expect_eq(env_of("XRUN_STOP_SIGNAL=INT"), XR_OK);
	cr_expect_eq(env_of("XRUN_QUIET=On"), XR_OK);
	cr_expect_eq(env_of("XRUN_NO_LOGS=1"), XR_OK);
	cr_expect_eq(env_of("XRUN_REPORT=a=b"), XR_OK);
	cr_expect_eq(env_of("XRUN_SHOW_ENV=1"), XR_OK);
	cr_expect_eq(s.count, 8);
	cr_expect_eq(s.sig, 2);
	cr_expect(s.flag);
	cr_expect_not(s.on);
	cr_expect_str_eq(s.file, "a=b");
	cr_expect(s.given);
	cr_expect_eq(s.maybe, 1);
	cr_expect_eq(opt_source(&opts, "logs"), OPT_ENV);
	begin();
	cr_expect_eq(env_of("XRUN_SHOW_ENV=yes"), XR_OK);
	cr_expect(s.given);
	cr_expect_eq(env_of("XRUN_NO_LOGS=0"), XR_OK);
	cr_expect(s.on);
}

Test(opt, booleans_have_eight_words_and_no_more)
{
	static const char *const yes[] = { "1", "true", "yes", "on", "YES",
		"True" };
	static const char *const no[] = { "0", "false", "no", "off", "Off" };
	static const char *const bad[] = { "2", "y", "n", "tru", "01", " 1",
		"-1", "enabled" };
	char entry[64], want[160];

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		begin();
		snprintf(entry, sizeof(entry), "XRUN_QUIET=%s", yes[i]);
		cr_expect_eq(env_of(entry), XR_OK);
		cr_expect(s.flag, "%s", entry);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		begin();
		snprintf(entry, sizeof(entry), "XRUN_LOGS=%s", no[i]);
		cr_expect_eq(env_of(entry), XR_OK);
		cr_expect_not(s.on, "%s", entry);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin();
		snprintf(entry, sizeof(entry), "XRUN_NO_QUIET=%s", bad[i]);
		cr_expect_eq(env_of(entry), XR_E_INVAL);
		snprintf(want, sizeof(want), "XRUN_NO_QUIET: '%s' is not %s",
			bad[i], WORDS);
		cr_expect_str_eq(err.text, want);
	}
}

Test(opt, an_empty_variable_is_as_if_it_were_not_there)
{
	cr_expect_eq(env_of("XRUN_RANKS="), XR_OK);
	cr_expect_eq(env_of("XRUN_LOGS="), XR_OK);
	cr_expect_eq(env_of("XRUN_RESTARTS="), XR_OK);
	cr_expect_eq(env_of("XRUN_REPORT="), XR_OK);
	cr_expect(s.on);
	cr_expect_null(s.file);
	cr_expect_eq(opt_source(&opts, "logs"), OPT_DEFAULT);
}

Test(opt, a_bad_variable_is_named)
{
	cr_expect_eq(env_of("XRUN_RANKS=8x"), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"XRUN_RANKS: '8x' is not a number; 1 to 1000000");
	cr_expect_eq(env_of("XRUN_GRACE=99h"), XR_E_RANGE);
	cr_expect_str_eq(err.text, "XRUN_GRACE: '99h' is too large; 0 to 24h");
	cr_expect_eq(env_of("XRUN_ENV=FOO"), XR_E_INVAL);
	cr_expect_str_eq(err.text, "XRUN_ENV: 'FOO' is not a NAME=VALUE");
	cr_expect_eq(env_of("XRUN_RESTARTS=3"), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "XRUN_RESTARTS comes with a later version");
	cr_expect_eq(env_of("XRUN_LOGS=1"), XR_OK);
	cr_expect_eq(env_of("XRUN_NO_LOGS=1"), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"XRUN_LOGS and XRUN_NO_LOGS contradict each other");
	opt_fini(&opts);
}

Test(opt, only_names_of_rows_are_known)
{
	static const struct {
		const char *entry;
		bool known;
	} rows[] = { { "XRUN_RANKS=1", true }, { "XRUN_RANKS", true },
		{ "XRUN_NO_QUIET=1", true }, { "XRUN_HOSTS=", true },
		{ "XRUN_RANK=1", false }, { "XRUN_NP=1", false },
		{ "XRUN_NO_RANKS=1", false }, { "XRUN_=1", false },
		{ "XRUN_ranks=1", false }, { "XRUN_STOP-SIGNAL=1", false },
		{ "RANKS=1", false }, { "", false }, { "XRUN_", false },
		{ "XRUN_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=1",
			false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct span name = { rows[i].entry,
			strcspn(rows[i].entry, "=") };
		bool known;

		begin();
		cr_expect_eq(opt_env(&opts, rows[i].entry, &known, &err),
			XR_OK);
		cr_expect_eq(known, rows[i].known, "%s", rows[i].entry);
		cr_expect_eq(opt_env_is(&opts, name), rows[i].known, "%s",
			rows[i].entry);
	}
}

Test(opt, the_command_line_wins_over_the_environment)
{
	cr_expect_eq(env_of("XRUN_RANKS=4"), XR_OK);
	cr_expect_eq(env_of("XRUN_QUIET=1"), XR_OK);
	cr_expect_eq(env_of("XRUN_GRACE=1s"), XR_OK);
	cr_expect_eq(argv_of("-n 8 --no-quiet x"), XR_OK);
	cr_expect_eq(s.count, 8);
	cr_expect_not(s.flag);
	cr_expect_eq(s.time, 1000000000);
	cr_expect_eq(opt_source(&opts, "ranks"), OPT_ARGV);
	cr_expect_eq(opt_source(&opts, "quiet"), OPT_ARGV);
	cr_expect_eq(opt_source(&opts, "grace"), OPT_ENV);
	cr_expect_eq(opt_source(&opts, "cache"), OPT_DEFAULT);
}

Test(opt, of_a_variable_that_stands_twice_the_first_counts)
{
	cr_expect_eq(env_of("XRUN_RANKS=4"), XR_OK);
	cr_expect_eq(env_of("XRUN_RANKS=5"), XR_OK);
	cr_expect_eq(s.count, 4);
	cr_expect_eq(env_of("XRUN_ENV=A=1"), XR_OK);
	cr_expect_eq(env_of("XRUN_ENV=B=1"), XR_OK);
	cr_expect_eq(s.list.n, 1);
	opt_fini(&opts);
}

Test(opt, a_list_grows_in_one_source_and_the_stronger_one_replaces)
{
	cr_expect_eq(fresh("-e A=1 --env=B= -e C==x x"), XR_OK);
	cr_expect_eq(s.list.n, 3);
	cr_expect_str_eq(s.list.items[0], "A=1");
	cr_expect_str_eq(s.list.items[1], "B=");
	cr_expect_str_eq(s.list.items[2], "C==x");
	opt_fini(&opts);
	begin();
	cr_expect_eq(env_of("XRUN_ENV=A=1\nB=two words\n\nC=3\n"), XR_OK);
	cr_expect_eq(s.list.n, 3);
	cr_expect_str_eq(s.list.items[1], "B=two words");
	cr_expect_str_eq(s.list.items[2], "C=3");
	cr_expect_eq(argv_of("--env D=4 x"), XR_OK);
	cr_expect_eq(s.list.n, 1);
	cr_expect_str_eq(s.list.items[0], "D=4");
	opt_fini(&opts);
	cr_expect_null(s.list.items);
}

Test(opt, a_variable_gets_its_nearest_name)
{
	char near[64];

	opt_suggest_env(table, (struct span){ "XRUN_RNAKS", 10 }, near,
		sizeof(near));
	cr_expect_str_eq(near, "XRUN_RANKS");
	opt_suggest_env(table, (struct span){ "XRUN_NO_LOG", 11 }, near,
		sizeof(near));
	cr_expect_str_eq(near, "XRUN_NO_LOGS");
	opt_suggest_env(table, (struct span){ "XRUN_NP", 7 }, near,
		sizeof(near));
	cr_expect_str_eq(near, "XRUN_RANKS");
	opt_suggest_env(table, (struct span){ "XRUN_N", 6 }, near,
		sizeof(near));
	cr_expect_str_eq(near, "XRUN_RANKS");
	opt_suggest_env(table, (struct span){ "XRUN_Q", 6 }, near,
		sizeof(near));
	cr_expect_str_eq(near, "XRUN_QUIET");
	opt_suggest_env(table, (struct span){ "XRUN_QX", 7 }, near,
		sizeof(near));
	cr_expect_str_neq(near, "XRUN_QUIET");
	opt_suggest_env(table, (struct span){ "XRUN_FOOBAR", 11 }, near,
		sizeof(near));
	cr_expect_str_eq(near, "");
}

Test(opt, the_help_comes_from_the_rows)
{
	struct buf b = { 0 };

	opt_print_short(table, &b);
	cr_expect_str_eq(buf_text(&b),
		"  -n, --ranks=N                   how many\n"
		"  -l, --no-logs                   keep no files\n");
	buf_clear(&b);
	opt_print_row(&table[0], &b);
	cr_expect_str_eq(buf_text(&b),
		"  -n, -np, --ranks=N                                     "
		"             XRUN_RANKS\n"
		"      Start N ranks, at most a_b.\n");
	buf_clear(&b);
	opt_print_man(table, &b);
	cr_expect(strstr(b.data,
		"## numbers\n\n*-n* _N_, *-np* _N_, *--ranks*=_N_\n\tStart _N_ "
		"ranks, *at most* a_b. Environment: *XRUN_RANKS*.\n\n"));
	cr_expect(strstr(b.data,
		"*-g* _TIME_, *--grace*=_TIME_\n\tPatience. Default: 10s. "
		"Environment: *XRUN_GRACE*.\n"));
	cr_expect(strstr(b.data, "*-l*, *--no-logs*\n"));
	cr_expect(strstr(b.data, "*--show-env*[=_RANK_]\n"));
	buf_clear(&b);
	opt_shell_bash(table, &b);
	cr_expect(strstr(b.data, "--stop-signal) echo 'HUP INT"));
	cr_expect(strstr(b.data, "--buffer) echo 'line full none' ;;"));
	cr_expect(strstr(b.data, "--report) echo '@file' ;;"));
	cr_expect_null(strstr(b.data, "restarts"));
	buf_fini(&b);
}

Test(opt, a_list_of_the_environment_ends_at_its_first_error)
{
	begin();
	cr_expect_eq(env_of("XRUN_ENV=A=1\n\nbad\nB=2"), XR_E_INVAL);
	cr_expect_str_eq(err.text, "XRUN_ENV: 'bad' is not a NAME=VALUE");
	cr_expect_eq(s.list.n, 1);
	opt_fini(&opts);
	begin();
	cr_expect_eq(env_of("XRUN_ENV=A=1\n\nB=2\n"), XR_OK);
	cr_assert_eq(s.list.n, 2);
	cr_expect_str_eq(s.list.items[0], "A=1");
	cr_expect_str_eq(s.list.items[1], "B=2");
	opt_fini(&opts);
}
