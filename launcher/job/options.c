/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. The table stands in options_table.c. */
#include <stdio.h>
#include <string.h>

#include <sys/auxv.h>

#include "base/status.h"
#include "launcher/host/platform.h"
#include "launcher/job/options.h"
#include "place/profile.h"

/* Names that are decided and do nothing yet. */
static const char *const later[] = { "XRUN_DEBUG", "XRUN_LOG_FILE", NULL };

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

bool
options_env_is(const void *unused, struct span name)
{
	return (opt_env_is(&rows, name) || span_is(name, FAULT)) &&
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
	if (platform_is_setting(name))
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

/* --version and the like: verbs are not options. */
static enum xr_status
name_verb(const struct options_in *in, enum xr_status status, const char *word,
	struct xr_error *err)
{
	if (status == XR_E_NOTFOUND && strncmp(word, "--", 2) == 0 &&
		in->is_verb != NULL && in->is_verb(word + 2))
		return fail(err, status,
			"unknown option %s (did you mean xrun %s?)", word,
			word + 2);
	return status;
}

/* A lone ':' will split a job into parts; until it does, nobody may rely on
 * its being passed on. */
static enum xr_status
check_parts(const struct options_in *in, const struct options_found *found,
	struct xr_error *err)
{
	if (found->dashes)
		return XR_OK;
	for (int i = found->first; i < in->argc; i++) {
		if (strcmp(in->argv[i], "--") == 0)
			return XR_OK;
		if (strcmp(in->argv[i], ":") == 0)
			return fail(err, XR_E_NOTFOUND,
				"':' between programs comes with a later version; to pass it on, write -- before the program");
	}
	return XR_OK;
}

/* Defaults, files as far as they are read, environment, command line. */
static enum xr_status
read_sources(const struct options_in *in, struct run_options *out,
	struct options_found *found, struct xr_error *err)
{
	enum xr_status status, before;
	struct xr_error wrong = { 0 };

	*out = (struct run_options){ 0 };
	opt_init(&found->opts, run_options, out);
	found->opts.later = run_options_later;
	before = config_apply(&found->config, &found->opts, &wrong);
	status = read_vars(found, in->vars, before == XR_OK ? &wrong : NULL);
	if (before == XR_OK)
		before = status;
	status = opt_argv(&found->opts, in->argc, in->argv, &found->first, err);
	if (status != XR_OK)
		return name_verb(in, status, in->argv[found->first], err);
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
	if (status == XR_OK && found->config.n > 0) {
		buf_clear(&found->warnings);
		opt_fini(&found->opts);
		status = read_sources(in, out, found, err);
	}
	buf_put(&found->warnings, found->config.warnings.data,
		found->config.warnings.len);
	return status;
}

enum xr_status
options_read(const struct options_in *in, struct run_options *out,
	struct options_found *found, struct xr_error *err)
{
	enum xr_status status;

	*found = (struct options_found){ 0 };
	status = read_sources(in, out, found, err);
	if (status != XR_OK || out->help)
		return status;
	status = read_files(in, out, found, err);
	return status == XR_OK ? check_parts(in, found, err) : status;
}

void
options_fini(struct options_found *found)
{
	if (found->opts.table != NULL)
		opt_fini(&found->opts);
	buf_fini(&found->warnings);
	config_fini(&found->config);
}
