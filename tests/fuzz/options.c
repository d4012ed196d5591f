/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - fuzz target: what xrun was told by environment, command line,
 * and files.
 *
 * Input: lines of the environment up to an empty one, then a line a word; or,
 * if it begins with a brace, a file of settings.
 *
 * Claims: a refusal has words; an accepted value is what its row allows; a job
 * is the same when each value is said again, printed, on a command line of its
 * own; a variable and its option agree on what a text means.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/opt_print.h"
#include "base/signo.h"
#include "launcher/job/options.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 64

/* Files are another target's; of two in environ the first counts. */
static char no_files[] = "XRUN_CONFIG=none";

static bool
is_verb(const char *word)
{
	return strcmp(word, "version") == 0;
}

/* Environment and words of an input; argv[0] is not among the lines. */
struct said {
	struct fuzz_lines lines;
	char *vars[LINES_MAX + 2];
	char *argv[LINES_MAX + 2];
	struct options_in in;
};

static void
take_apart(struct said *s, const uint8_t *data, size_t size)
{
	size_t i = 0, n = 0;

	s->lines = fuzz_lines(data, size, LINES_MAX);
	s->vars[0] = no_files;
	for (; i < s->lines.n && *s->lines.at[i] != '\0'; i++)
		s->vars[i + 1] = s->lines.at[i];
	s->argv[n++] = (char *)"xrun";
	while (i + 1 < s->lines.n)
		s->argv[n++] = s->lines.at[++i];
	s->in = (struct options_in){ .argc = (int)n,
		.argv = s->argv,
		.vars = s->vars,
		.is_verb = is_verb };
}

static const void *
value_at(const struct opt *o, const struct run_options *opt)
{
	return (const char *)opt + o->offset;
}

static int64_t
number_of(const struct opt *o, const struct run_options *opt)
{
	int64_t v;

	memcpy(&v, value_at(o, opt), sizeof(v));
	return v;
}

static int
small_of(const struct opt *o, const struct run_options *opt)
{
	int v;

	memcpy(&v, value_at(o, opt), sizeof(v));
	return v;
}

static const char *
text_of(const struct opt *o, const struct run_options *opt)
{
	const char *v;

	memcpy(&v, value_at(o, opt), sizeof(v));
	return v;
}

static bool
flag_of(size_t offset, const struct run_options *opt)
{
	unsigned char byte;

	memcpy(&byte, (const char *)opt + offset, 1);
	HOLDS(byte <= 1);
	return byte;
}

static int
count_choices(const struct opt *o)
{
	int n = 0;

	while (o->choices[n] != NULL)
		n++;
	return n;
}

static void
check_text(const struct opt *o, const char *text)
{
	int n = o->choices == NULL ? 0 : count_choices(o);

	HOLDS(text[0] != '\0');
	HOLDS(o->valid == NULL || o->valid(text));
	while (n > 0 && strcmp(o->choices[n - 1], text) != 0)
		n--;
	HOLDS(o->choices == NULL || n > 0);
}

/* Is what the row holds something that the row allows? */
static void
check_value(const struct opt *o, const struct run_options *opt, bool set)
{
	const struct opt_list *list;
	char name[16];

	switch (o->type) {
	case OPT_FLAG:
		flag_of(o->offset, opt);
		break;
	case OPT_INT:
	case OPT_SIZE:
	case OPT_DURATION:
		HOLDS(!set || number_of(o, opt) >= o->min);
		HOLDS(number_of(o, opt) <= o->max);
		break;
	case OPT_TEXT:
		if (text_of(o, opt) != NULL)
			check_text(o, text_of(o, opt));
		HOLDS(!set || text_of(o, opt) != NULL);
		break;
	case OPT_CHOICE:
		HOLDS(small_of(o, opt) >= 0);
		HOLDS(small_of(o, opt) < count_choices(o));
		break;
	case OPT_SIGNAL:
		HOLDS(signo_parse(signo_short(small_of(o, opt), name,
			      sizeof(name))) == small_of(o, opt) ||
			strncmp(name, "signal ", 7) == 0);
		HOLDS(small_of(o, opt) > 0 && small_of(o, opt) <= 64);
		break;
	case OPT_LIST:
		list = value_at(o, opt);
		for (size_t i = 0; i < list->n; i++)
			check_text(o, list->items[i]);
		break;
	}
}

/* One word of a command line that says what the row holds, as xrun config show
 * prints it. */
static char *
say_value(const struct opt *o, const struct run_options *opt)
{
	struct buf text = { 0 };
	char *word;

	if (o->type == OPT_FLAG)
		return xasprintf("--%s%s", flag_of(o->offset, opt) ? "" : "no-",
			o->name);
	opt_print_value(o, opt, &text);
	word = xasprintf("--%s=%s", o->name, buf_text(&text));
	buf_fini(&text);
	return word;
}

static bool
same_value(const struct opt *o, const struct run_options *a,
	const struct run_options *b)
{
	switch (o->type) {
	case OPT_FLAG:
		return flag_of(o->offset, a) == flag_of(o->offset, b);
	case OPT_INT:
	case OPT_SIZE:
	case OPT_DURATION:
		return number_of(o, a) == number_of(o, b);
	case OPT_TEXT:
		return strcmp(text_of(o, a), text_of(o, b)) == 0;
	case OPT_CHOICE:
	case OPT_SIGNAL:
		return small_of(o, a) == small_of(o, b);
	case OPT_LIST:
		break;
	}
	return true;
}

/* Printed and read again, the value is the same. */
static void
check_again(const struct opt *o, const struct run_options *opt)
{
	char *argv[] = { (char *)"xrun", say_value(o, opt), NULL };
	char *vars[] = { no_files, NULL };
	struct options_in in = { .argc = 2, .argv = argv, .vars = vars };
	struct options_found found;
	struct run_options again;
	struct xr_error err = { 0 };

	HOLDS(options_read(&in, &again, &found, &err) == XR_OK);
	HOLDS(found.first == 2);
	HOLDS(opt_source(&found.opts, o->name) == OPT_ARGV);
	HOLDS(same_value(o, opt, &again));
	options_fini(&found);
	free(argv[1]);
}

static void
check_values(const struct run_options *opt, const struct options_found *found)
{
	for (const struct opt *o = run_options; o->name != NULL; o++) {
		bool set = opt_source(&found->opts, o->name) != OPT_DEFAULT &&
			(!o->maybe || number_of(o, opt) != 0);

		check_value(o, opt, set);
		if (o->maybe)
			flag_of(o->given, opt);
		if (set && o->type != OPT_LIST)
			check_again(o, opt);
	}
}

/* XRUN_NAME=TEXT and --name=TEXT mean the same, or nothing. */
static void
check_twins(char *entry)
{
	size_t len = strcspn(entry, "=");
	char *vars[] = { no_files, entry, NULL }, *none[] = { no_files, NULL };
	char *argv[] = { (char *)"xrun", NULL, NULL };
	struct options_in from_env = { .argc = 1, .argv = argv, .vars = vars };
	struct options_in from_argv = { .argc = 2, .argv = argv, .vars = none };
	struct options_found found;
	struct run_options one, other;
	char name[64];

	for (const struct opt *o = run_options; o->name != NULL; o++) {
		opt_env_name(o->name, name, sizeof(name));
		if (strlen(name) != len || strncmp(name, entry, len) != 0)
			continue;
		if (entry[len] != '=' || entry[len + 1] == '\0' || o->maybe ||
			o->no_variable || o->type == OPT_FLAG ||
			o->type == OPT_LIST || strcmp(o->name, "config") == 0)
			continue;
		argv[1] = xasprintf("--%s=%s", o->name, entry + len + 1);
		enum xr_status status =
			options_read(&from_env, &one, &found, NULL);

		HOLDS(status != XR_OK ||
			opt_source(&found.opts, o->name) == OPT_ENV);
		options_fini(&found);
		HOLDS(options_read(&from_argv, &other, &found, NULL) == status);
		options_fini(&found);
		HOLDS(status != XR_OK || same_value(o, &one, &other));
		free(argv[1]);
	}
}

/* A line of warning each, for a variable each, and one more for all. */
static void
check_warnings(const struct buf *warnings, size_t vars)
{
	size_t lines = 0;

	HOLDS(warnings->bad == XR_OK);
	for (size_t i = 0; i < warnings->len; i++) {
		unsigned char c = (unsigned char)warnings->data[i];

		lines += c == '\n';
		HOLDS(c >= 0x20 || c == '\n');
	}
	HOLDS(lines <= vars + 1);
}

/* An error that is found later about a value of each row names its place. */
static void
check_blame(const struct options_found *found)
{
	for (const struct opt *o = run_options; o->name != NULL; o++) {
		struct xr_error err;

		fail(&err, XR_E_RANGE, "--%s: no", o->name);
		options_blame(found, &err);
		fuzz_error(XR_E_RANGE, &err);
		HOLDS(strncmp(err.text, "--", 2) == 0 ||
			strncmp(err.text, "XRUN_", 5) == 0);
		HOLDS(opt_source(&found->opts, o->name) != OPT_DEFAULT ||
			strncmp(err.text, "--", 2) == 0);
	}
}

/* All that was accepted: the first program's and those of the others. */
static void
check_accepted(const struct run_options *opt, const struct options_found *found)
{
	struct options_found part = { 0 };

	check_values(opt, found);
	check_blame(found);
	for (uint32_t i = 0; i < found->more_count; i++) {
		HOLDS(found->more[i].argv != NULL);
		HOLDS(found->more[i].argv[0] != NULL);
		part.opts = found->more[i].opts;
		check_values(&found->more[i].opt, &part);
	}
}

/* A file of settings says what the same options would. */
static void
run_file(const uint8_t *data, size_t size)
{
	struct run_options opt = { 0 };
	struct options_found found = { 0 };
	struct buf errors = { 0 };
	struct opt_file file = { .name = "f",
		.who = OPT_FILE,
		.text = fuzz_text(data, size),
		.errors = &errors };
	struct xr_error err = { 0 };
	enum xr_status status;

	file.len = strlen(file.text);
	opt_init(&found.opts, run_options, &opt);
	found.opts.later = run_options_later;
	status = opt_file(&found.opts, &file, &err);
	fuzz_error(status, &err);
	HOLDS((status == XR_OK) == (errors.len == 0));
	if (status == XR_OK)
		check_values(&opt, &found);
	opt_fini(&found.opts);
	buf_fini(&errors);
	free(file.values);
	free(file.text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct said said = { 0 };
	struct options_found found;
	struct run_options opt;
	struct xr_error err = { 0 };
	enum xr_status status;
	size_t vars = 0;

	if (size > 0 && data[0] == '{') {
		run_file(data, size);
		return 0;
	}
	take_apart(&said, data, size);
	for (int i = 1; i < said.in.argc; i++)
		if (strncmp(said.argv[i], "--config", 8) == 0)
			said.in.argc = i; /* it would be opened */
	status = options_read(&said.in, &opt, &found, &err);
	fuzz_error(status, &err);
	HOLDS(found.first >= 1 && found.first <= said.in.argc);
	for (vars = 1; said.vars[vars] != NULL; vars++)
		check_twins(said.vars[vars]);
	check_warnings(&found.warnings, vars);
	if (status == XR_OK && !opt.help)
		check_accepted(&opt, &found);
	for (char **var = said.vars; *var != NULL; var++)
		options_env_is(NULL, (struct span){ *var, strcspn(*var, "=") });
	options_fini(&found);
	fuzz_lines_free(&said.lines);
	return 0;
}
