/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. The table stands in options_table.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/auxv.h>

#include "base/mem.h"
#include "base/span.h"
#include "base/status.h"
#include "launcher/host/platform.h"
#include "launcher/job/foreign.h"
#include "launcher/job/options.h"
#include "place/mask.h"
#include "place/profile.h"

/* Names that are decided and do nothing yet. */
static const char *const later[] = { "XRUN_DEBUG", "XRUN_LOG_FILE", NULL };

#define EVENT "XRUN_EVENT"
/* Not for ranks: a fault of this xrun is none of theirs. */
#define FAULT "XRUN_FAULT"

static const struct opts rows = {
	.table = run_options,
	.later = run_options_later,
};

static bool
is_among(const char *const *names, struct span name)
{
	for (; *names != NULL; names++)
		if (span_is(name, *names))
			return true;
	return false;
}

/* What a command of --exec-on is told by: nobody's setting. */
static bool
is_of_event(struct span name)
{
	return span_is(name, EVENT) ||
		(name.len > sizeof(EVENT) &&
			memcmp(name.at, EVENT "_", sizeof(EVENT)) == 0);
}

bool
options_env_is(const void *unused, struct span name)
{
	return (opt_env_is(&rows, name) || span_is(name, FAULT) ||
		       is_of_event(name)) &&
		!is_among(env_output_names, name);
}

/* What the pass over the environment has seen. */
struct seen {
	bool job;  /* XRUN_JOB: we are inside of one */
	bool rank; /* XRUN_RANK */
};

static void
warn_unknown(struct options_found *found, struct span name)
{
	char near[64], shown[61];
	size_t len = name.len < 60 ? name.len : 60;

	for (size_t i = 0; i < len; i++)
		shown[i] = (unsigned char)name.at[i] < 0x20 ? '?' : name.at[i];
	opt_suggest_env(run_options, name, near, sizeof(near));
	buf_fmt(&found->warnings, "unknown variable %.*s", (int)len, shown);
	if (near[0] != '\0')
		buf_fmt(&found->warnings, " (did you mean %s?)", near);
	buf_put_char(&found->warnings, '\n');
}

/* One XRUN_ variable. */
static enum xr_status
read_var(struct options_found *found, const char *entry, struct seen *seen,
	struct xr_error *err)
{
	struct span name = { .at = entry, .len = strcspn(entry, "=") };
	enum xr_status status;
	bool known;

	if (is_among(env_output_names, name)) {
		seen->job = seen->job || span_is(name, "XRUN_JOB");
		seen->rank = seen->rank || span_is(name, "XRUN_RANK");
		return XR_OK;
	}
	if (platform_is_setting(name) || is_of_event(name))
		return XR_OK;
	if (span_is(name, FAULT)) {
		found->fault = entry + sizeof(FAULT);
		return XR_OK;
	}
	if (is_among(later, name)) {
		buf_fmt(&found->warnings, "%.*s comes with a later version\n",
			(int)name.len, name.at);
		return XR_OK;
	}
	status = opt_env(&found->opts, entry, &known, err);
	if (!known)
		warn_unknown(found, name);
	return status;
}

/* One pass, whatever the number of options; the first failure stays. */
static enum xr_status
read_vars(struct options_found *found, char *const *vars, struct xr_error *err)
{
	enum xr_status first = XR_OK, status;
	struct seen seen = { 0 };

	for (; vars != NULL && *vars != NULL; vars++) {
		if (strncmp(*vars, "XRUN_", 5) != 0)
			continue;
		status = read_var(found, *vars, &seen,
			first == XR_OK ? err : NULL);
		if (first == XR_OK)
			first = status;
	}
	if (seen.rank && !seen.job)
		buf_put_text(&found->warnings,
			"XRUN_RANK is what xrun tells its ranks; the number of ranks is XRUN_RANKS or -n\n");
	return first;
}

/* Faults are for who types the word, never for who inherits a variable; and
 * what the variable says is for no program that runs with another's rights. */
static void
keep_faults(struct options_found *found, struct run_options *out)
{
	bool typed = opt_source(&found->opts, "debug-faults") == OPT_ARGV;

	if (out->debug_faults && !typed)
		buf_put_text(&found->warnings,
			"--debug-faults counts on the command line only\n");
	else if (out->debug_faults && getauxval(AT_SECURE) != 0)
		buf_put_text(&found->warnings,
			"--debug-faults does nothing in a program with the rights of another\n");
	else if (found->fault != NULL && !out->debug_faults)
		buf_put_text(&found->warnings,
			FAULT " does nothing without --debug-faults\n");
	if (!out->debug_faults || !typed || getauxval(AT_SECURE) != 0) {
		out->debug_faults = false;
		found->fault = NULL;
	}
}

/* An unknown option may be another launcher's, or a verb, as in --version. */
static enum xr_status
explain(const struct options_in *in, enum xr_status status, const char *word,
	struct xr_error *err)
{
	const struct foreign *foreign;

	if (status != XR_E_NOTFOUND)
		return status;
	foreign = foreign_find(word);
	if (foreign != NULL)
		return fail(err, status, "unknown option %.*s, as of %s\t%s",
			(int)strcspn(word, "="), word, foreign->whose,
			foreign->instead);
	if (strncmp(word, "--", 2) == 0 && in->is_verb != NULL &&
		in->is_verb(word + 2))
		return fail(err, status,
			"unknown option %s (did you mean xrun %s?)", word,
			word + 2);
	return status;
}

/* The next lone ':' from argv[@at] on, where one splits; else argc. */
static int
next_colon(const struct options_in *in, int at)
{
	for (; at < in->argc; at++) {
		if (strcmp(in->argv[at], "--") == 0)
			return in->argc;
		if (strcmp(in->argv[at], ":") == 0)
			return at;
	}
	return at;
}

static uint32_t
count_colons(const struct options_in *in, int at)
{
	uint32_t n = 0;

	for (; at < in->argc; at++)
		n += strcmp(in->argv[at], ":") == 0;
	return n;
}

/* Defaults, files as far as they are read, environment. */
static enum xr_status
read_weak(const struct options_in *in, struct run_options *out,
	struct options_found *found, struct xr_error *err)
{
	enum xr_status before, status;

	*out = (struct run_options){ 0 };
	opt_init(&found->opts, run_options, out);
	found->opts.later = run_options_later;
	before = config_apply(&found->config, &found->opts, err);
	status = read_vars(found, in->vars, before == XR_OK ? err : NULL);
	return before != XR_OK ? before : status;
}

/* "--show-env 1 true" means no program called 1. */
static enum xr_status
check_alone(const struct options_in *in, int first, struct xr_error *err)
{
	const char *before = first > 1 ? in->argv[first - 1] : "";
	const char *word = first < in->argc ? in->argv[first] : "";
	const struct opt *o;

	if (strncmp(before, "--", 2) != 0 || *word == '\0' ||
		word[strspn(word, "0123456789")] != '\0')
		return XR_OK;
	o = opt_find(run_options, span_of(before + 2));
	if (o == NULL || !o->maybe)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"%s: its value stands behind a '=', and '%.20s' would be the program\t%s=%.20s, or -- before the program",
		before, word, before, word);
}

/* And the command line, up to the first program. */
static enum xr_status
read_sources(const struct options_in *in, struct run_options *out,
	struct options_found *found, struct xr_error *err)
{
	enum xr_status status, before;
	struct xr_error wrong = { 0 };

	before = read_weak(in, out, found, &wrong);
	status = opt_argv(&found->opts, in->argc, in->argv, &found->first, err);
	if (status != XR_OK)
		return explain(in, status, in->argv[found->first], err);
	status = check_alone(in, found->first, err);
	if (status != XR_OK && !out->help)
		return status;
	keep_faults(found, out);
	found->dashes = found->first > 1 &&
		strcmp(in->argv[found->first - 1], "--") == 0;
	if (before != XR_OK && !out->help)
		return fail(err, before, "%s", wrong.text);
	return XR_OK;
}

/* Which file is asked for stands in stronger sources: if there are files, all
 * is read again, on top of them. */
static enum xr_status
read_files(const struct options_in *in, struct run_options *out,
	struct options_found *found, struct xr_error *err)
{
	enum xr_status status;

	status = config_open(&found->config, out->config, err);
	if (status != XR_OK)
		options_blame(found, err);
	if (status == XR_OK && found->config.n > 0) {
		buf_clear(&found->warnings);
		opt_fini(&found->opts);
		status = read_sources(in, out, found, err);
	}
	buf_put(&found->warnings, found->config.warnings.data,
		found->config.warnings.len);
	return status;
}

/* Program @number, from 1, whose ranks the command line does not tell: what
 * stands elsewhere cannot mean each of them. */
static enum xr_status
check_ranks(const struct options_found *found, const struct opts *opts,
	uint32_t number, struct xr_error *err)
{
	enum opt_source source = opt_source(opts, "ranks");
	const struct config_file *file = config_file_of(&found->config, source);

	if (source == OPT_DEFAULT || source == OPT_ARGV)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"%s%s does not say how many ranks are of which program, and program %u has no -n\t-n N before each program",
		file == NULL ? "XRUN_RANKS" : "\"ranks\" of ",
		file == NULL ? "" : file->name, number);
}

/* Was it --no-NAME that was said? */
static bool
is_off(const struct opts *opts, const struct opt *flag)
{
	bool on = true;

	if (flag->type == OPT_FLAG)
		memcpy(&on, (const char *)opts->base + flag->offset,
			sizeof(on));
	return !on;
}

static enum xr_status
check_of_part(const struct opts *opts, const char *program,
	struct xr_error *err)
{
	const struct opt *o = opt_of_job(opts);

	if (o == NULL)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"--%s%s is for the whole job, and stands before '%s', which is not the first program\tgive it before the first program",
		is_off(opts, o) ? "no-" : "", o->name, program);
}

/* The options and the program between argv[*@colon] and the next one. What was
 * read without failure for the first program does not fail for this one. */
static enum xr_status
read_part(const struct options_in *in, const struct options_found *found,
	struct options_part *part, int *colon, struct xr_error *err)
{
	struct options_found weak = { .config = found->config };
	char **argv = in->argv + *colon;
	int end = next_colon(in, *colon + 1), argc = end - *colon, first;
	enum xr_status status;

	status = read_weak(in, &part->opt, &weak, err);
	buf_fini(&weak.warnings);
	part->opts = weak.opts;
	if (status != XR_OK)
		return status;
	status = opt_argv(&part->opts, argc, argv, &first, err);
	if (status != XR_OK)
		return explain(in, status, argv[first], err);
	if (first >= argc && argc > 1)
		return fail(err, XR_E_INVAL,
			"program %u is missing: behind %s ':' are options, beginning with '%.40s', and no program\tthe program behind them",
			found->more_count + 1,
			end < in->argc ? "a" : "the last", argv[1]);
	if (first >= argc)
		return fail(err, XR_E_INVAL,
			"program %u is missing: nothing stands behind %s ':'\t-- before the first program, to pass ':' on to it",
			found->more_count + 1,
			end < in->argc ? "a" : "the last");
	part->argv = argv + first;
	*colon = end;
	return check_of_part(&part->opts, argv[first], err);
}

/* What stands behind the first program. */
static enum xr_status
read_more(const struct options_in *in, struct options_found *found,
	struct xr_error *err)
{
	struct options_in own = *in;
	int colon = next_colon(in, found->first);
	enum xr_status status = XR_OK;
	struct options_part *part;

	if (colon == found->first)
		return fail(err, XR_E_INVAL,
			"program 1 is missing: nothing stands before the first ':'\txrun -n 1 ./server : -n 7 ./worker");
	status = check_ranks(found, &found->opts, 1, err);
	found->more = calloc(count_colons(in, colon), sizeof(*found->more));
	found->words = calloc((size_t)in->argc + 1, sizeof(*found->words));
	if (found->more == NULL || found->words == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	memcpy(found->words, in->argv, (size_t)in->argc * sizeof(*in->argv));
	own.argv = found->words;
	found->argv = own.argv + found->first;
	while (colon < in->argc && status == XR_OK) {
		part = &found->more[found->more_count++];
		own.argv[colon] = NULL;
		status = read_part(&own, found, part, &colon, err);
		if (status == XR_OK)
			status = check_ranks(found, &part->opts,
				found->more_count + 1, err);
	}
	return status;
}

enum xr_status
options_read(const struct options_in *in, struct run_options *out,
	struct options_found *found, struct xr_error *err)
{
	enum xr_status status;

	*found = (struct options_found){ 0 };
	status = read_sources(in, out, found, err);
	if (status == XR_OK && !out->help)
		status = read_files(in, out, found, err);
	found->argv = in->argv + found->first;
	if (status != XR_OK || out->help || found->dashes ||
		found->first >= in->argc ||
		next_colon(in, found->first) == in->argc)
		return status;
	return read_more(in, found, err);
}

/* "XRUN_GRACE", or "XRUN_NO_LOGS" if that was said. */
static char *
variable_of(const struct opt *row)
{
	char name[64], no[64];
	const char *value;

	opt_env_name(row->name, name, sizeof(name));
	value = getenv(name);
	if (value != NULL && value[0] != '\0')
		return xstrdup(name);
	snprintf(no, sizeof(no), "no-%s", row->name);
	opt_env_name(no, name, sizeof(name));
	return xstrdup(name);
}

char *
options_origin(const struct options_found *found, const struct opts *opts,
	const struct opt *row)
{
	enum opt_source source = opt_source(opts, row->name);
	const struct config_file *file = config_file_of(&found->config, source);
	const struct gate_place *place = &opts->place[row - opts->table];

	if (source == OPT_ENV)
		return variable_of(row);
	if (file == NULL)
		return NULL;
	return xasprintf("%s:%u:%u", file->name, place->line, place->column);
}

/* Programs may have different sources; then nobody knows which is meant. */
static bool
is_of_all(const struct options_found *found, size_t row)
{
	for (uint32_t i = 0; i < found->more_count; i++)
		if (found->more[i].opts.source[row] != found->opts.source[row])
			return false;
	return true;
}

void
options_blame(const struct options_found *found, struct xr_error *err)
{
	size_t len = strcspn(err->text, ":");
	struct xr_error was = *err;
	const struct opt *o;
	char *origin;

	if (strncmp(err->text, "--", 2) != 0 || was.text[len] != ':')
		return;
	o = opt_find(run_options,
		(struct span){ .at = was.text + 2, .len = len - 2 });
	if (o == NULL || !is_of_all(found, (size_t)(o - run_options)))
		return;
	origin = options_origin(found, &found->opts, o);
	if (origin != NULL)
		fail(err, was.status, "%s: %s", origin,
			opt_source(&found->opts, o->name) == OPT_ENV ?
				was.text + len + 2 :
				was.text + 2);
	err->sys = was.sys;
	free(origin);
}

void
options_fini(struct options_found *found)
{
	for (uint32_t i = 0; i < found->more_count; i++)
		opt_fini(&found->more[i].opts);
	free(found->more);
	free(found->words);
	if (found->opts.table != NULL)
		opt_fini(&found->opts);
	buf_fini(&found->warnings);
	config_fini(&found->config);
}

unsigned
options_stacks_on(const struct run_options *opt)
{
	struct span rest = span_of(opt->stacks_on), word;
	unsigned set = 0;

	while (rest.at != NULL) {
		word = span_next(&rest, ',');
		if (span_is(word, "hang"))
			set |= STACKS_ON_HANG;
		else if (span_is(word, "timeout"))
			set |= STACKS_ON_TIMEOUT;
		else if (span_is(word, "crash"))
			set |= STACKS_ON_CRASH;
	}
	return set;
}

bool
options_need_driver(const struct run_options *opt)
{
	return mask_needs_driver(opt->devices);
}
