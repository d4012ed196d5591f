/* SPDX-License-Identifier: Apache-2.0 */
/* options_pair.c - see options_pair.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/span.h"
#include "base/status.h"
#include "launcher/job/options_pair.h"

enum verdict {
	IDLE,       /* the second does nothing beside the first */
	REFUSED,    /* they contradict each other, whoever said them */
	NOT_BESIDE, /* the same, unless the second is the weaker */
	STRONGER,   /* the flag of the stronger source counts; of equal sources
		     * the first, with a warning */
};

/* The first is a flag, and looked at first: of a job with default options that
 * is all there is to do. */
struct pair {
	const char *first;
	size_t at; /* of its value */
	bool is;   /* false: it is the no- form that counts */
	const char *second;
	enum verdict verdict;
	const char *why;
	const char *instead; /* where it is refused */
};

#define OFF(name, field) name, offsetof(struct run_options, field), false
#define ON(name, field)  name, offsetof(struct run_options, field), true

#define NO_FILES  "no files are kept"
#define NO_START  "nothing is started"
#define NO_READER "nothing is shown"

static const struct pair pairs[] = {
	{ OFF("logs", logs), "log-dir", IDLE, NO_FILES, NULL },
	{ OFF("logs", logs), "log-rotate", IDLE, NO_FILES, NULL },
	{ OFF("logs", logs), "log-reserve", IDLE, NO_FILES, NULL },
	{ OFF("logs", logs), "log-full", IDLE, NO_FILES, NULL },
	{ OFF("logs", logs), "detach", REFUSED,
		"nothing would be left of the output", "--log-dir DIR" },
	{ ON("detach", detach), "stdin", NOT_BESIDE,
		"no rank has standard input", "--stdin none" },
	{ ON("detach", detach), "show", IDLE, NO_READER, NULL },
	{ ON("detach", detach), "prefix", IDLE, NO_READER, NULL },
	{ ON("detach", detach), "timestamps", IDLE, NO_READER, NULL },
	{ ON("detach", detach), "interrupt", IDLE,
		"Ctrl-C does not reach the job", NULL },
	{ ON("pty", pty), "merge-stderr", IDLE,
		"both streams of a rank are its terminal", NULL },
	{ ON("quiet", quiet), "verbose", STRONGER,
		"xrun prints errors and warnings only", NULL },
	{ ON("show-env", show_env), "dry-run", IDLE, "only variables are shown",
		NULL },
	{ ON("show-env", show_env), "report", IDLE, NO_START, NULL },
	{ ON("show-env", show_env), "events", IDLE, NO_START, NULL },
	{ ON("show-env", show_env), "metrics-file", IDLE, NO_START, NULL },
	{ ON("show-env", show_env), "http", IDLE, NO_START, NULL },
	{ ON("show-env", show_env), "on-event", IDLE, NO_START, NULL },
	{ ON("show-env", show_env), "exec-on", IDLE, NO_START, NULL },
	{ ON("dry-run", dry_run), "report", IDLE, NO_START, NULL },
	{ ON("dry-run", dry_run), "events", IDLE, NO_START, NULL },
	{ ON("dry-run", dry_run), "metrics-file", IDLE, NO_START, NULL },
	{ ON("dry-run", dry_run), "http", IDLE, NO_START, NULL },
	{ ON("dry-run", dry_run), "on-event", IDLE, NO_START, NULL },
	{ ON("dry-run", dry_run), "exec-on", IDLE, NO_START, NULL },
};

static bool
flag_at(const struct run_options *opt, size_t offset)
{
	bool value;

	memcpy(&value, (const char *)opt + offset, sizeof(value));
	return value;
}

/* Returns true if @row is set to a value that requests something. --no-dry-run and
 * --show none do not. */
static bool
asks(const struct run_options *opt, const struct opt *row)
{
	const char *text;

	if (row->type == OPT_FLAG)
		return flag_at(opt, row->offset);
	if (row->type != OPT_TEXT)
		return true;
	memcpy(&text, (const char *)opt + row->offset, sizeof(text));
	return text != NULL && strcmp(text, "none") != 0;
}

/* "--no-logs", "XRUN_LOG_DIR", "FILE:4:12: log-dir" where a line begins with
 * it, else "log-dir" (FILE:4:12). The caller frees. */
static char *
said(const struct options_found *found, const struct opt *row, const char *no,
	bool place_first)
{
	char *origin = options_origin(found, &found->opts, row), *place;

	if (origin == NULL)
		return xasprintf("--%s%s", no, row->name);
	if (opt_source(&found->opts, row->name) == OPT_ENV)
		return origin;
	place = place_first ? xasprintf("%s: %s", origin, row->name) :
			      xasprintf("\"%s\" (%s)", row->name, origin);
	free(origin);
	return place;
}

static enum xr_status
tell(const struct pair *p, const struct opt *first, const struct opt *second,
	struct options_found *found, struct xr_error *err)
{
	char *one = said(found, first, p->is ? "" : "no-", false);
	char *two = said(found, second, "", true);
	enum xr_status status = XR_OK;

	if (p->verdict == IDLE || p->verdict == STRONGER)
		buf_fmt(&found->warnings, "%s does nothing with %s: %s\n", two,
			one, p->why);
	else
		status = fail(err, XR_E_INVAL, "%s: with %s %s\t%s", two, one,
			p->why, p->instead);
	free(one);
	free(two);
	return status;
}

/* The weaker of two flags is as if it had not been said. */
static void
take_back(struct run_options *opt, const struct opt *row)
{
	memset((char *)opt + row->offset, 0, sizeof(bool));
}

static enum xr_status
look(const struct pair *p, struct run_options *opt, struct options_found *found,
	struct xr_error *err)
{
	const struct opt *first = opt_find(run_options, span_of(p->first));
	const struct opt *second = opt_find(run_options, span_of(p->second));
	enum opt_source by = opt_source(&found->opts, p->first);
	enum opt_source too = opt_source(&found->opts, p->second);

	if (too == OPT_DEFAULT || !asks(opt, second))
		return XR_OK;
	if (p->verdict == STRONGER) {
		take_back(opt, by < too ? first : second);
		if (by != too)
			return XR_OK;
	}
	if (by > too && p->verdict != REFUSED)
		return XR_OK;
	return tell(p, first, second, found, err);
}

enum xr_status
options_pairs(struct run_options *opt, struct options_found *found,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;

	for (size_t i = 0;
		i < sizeof(pairs) / sizeof(pairs[0]) && status == XR_OK; i++)
		if (flag_at(opt, pairs[i].at) == pairs[i].is)
			status = look(&pairs[i], opt, found, err);
	return status;
}
