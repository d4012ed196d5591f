/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.c - see opt.h: the table, and values from the command line. Values from
 * the environment: opt_env.c; from files: opt_file.c; what a text means:
 * opt_value.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/opt_inner.h"
#include "base/status.h"
#include "base/suggest.h"

#define NAME_MAX_LEN 40 /* of what a person wrote, in errors */

/* A word of the command line under the reader's eye. */
struct words {
	int argc;
	char **argv;
	int at;
};

bool
opt_alone(const struct opt *o)
{
	return o->type == OPT_FLAG || o->maybe;
}

bool
opt_negatable(const struct opt *o)
{
	return opt_alone(o) || o->no != NULL;
}

const struct opt *
opt_find(const struct opt *table, struct span name)
{
	for (const struct opt *o = table; o->name != NULL; o++)
		if (span_is(name, o->name) ||
			(o->alias != NULL && span_is(name, o->alias)))
			return o;
	return NULL;
}

const char *
opt_alias_dashes(const struct opt *o)
{
	return strlen(o->alias) > 2 ? "--" : "-";
}

/* "no-logs" finds logs. */
const struct opt *
opt_find_negated(const struct opt *table, struct span name)
{
	const struct opt *o;

	if (name.len < 3 || memcmp(name.at, "no-", 3) != 0)
		return NULL;
	o = opt_find(table, opt_span(name.at + 3, name.len - 3));
	return o != NULL && opt_negatable(o) ? o : NULL;
}

static const struct opt *
find_letter(const struct opt *table, char letter)
{
	for (const struct opt *o = table; o->name != NULL; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

bool
opt_is_later(const struct opts *opts, struct span name)
{
	const struct opt_later *l = opts->later;

	if (name.len > 3 && memcmp(name.at, "no-", 3) == 0 &&
		opt_is_later(opts, opt_span(name.at + 3, name.len - 3)))
		return true;
	for (; l != NULL && l->name != NULL; l++)
		if (span_is(name, l->name))
			return true;
	return false;
}

static bool
is_later_letter(const struct opts *opts, char letter)
{
	const struct opt_later *l = opts->later;

	for (; l != NULL && l->name != NULL; l++)
		if (l->letter == letter)
			return true;
	return false;
}

void
opt_begin_list(struct opts *opts, const struct opt *o, enum opt_source who)
{
	struct opt_list *list = (void *)((char *)opts->base + o->offset);
	uint8_t *source = &opts->source[o - opts->table];

	if (*source == who)
		return;
	free(list->own);
	list->own = NULL;
	list->n = 0;
	*source = (uint8_t)who;
}

enum xr_status
opt_set(struct opts *opts, const struct opt *o, const struct opt_said *said,
	struct xr_error *err)
{
	enum xr_status status;

	if (o->type == OPT_LIST)
		opt_begin_list(opts, o, said->who);
	status = opt_parse(o, opts->base, said, err);
	if (status == XR_OK)
		opts->source[o - opts->table] = (uint8_t)said->who;
	return status;
}

/* Whether a flag, or an option that may go without a value, is meant. */
void
opt_set_given(struct opts *opts, const struct opt *o, enum opt_source who,
	bool yes)
{
	size_t offset = o->type == OPT_FLAG ? o->offset : o->given;

	memcpy((char *)opts->base + offset, &yes, sizeof(yes));
	opts->source[o - opts->table] = (uint8_t)who;
}

enum xr_status
opt_set_no(struct opts *opts, const struct opt *o, enum opt_source who,
	const char *what, struct xr_error *err)
{
	struct opt_said said = { .who = who, .what = what, .text = o->no };

	if (o->no != NULL)
		return opt_set(opts, o, &said, err);
	opt_set_given(opts, o, who, false);
	return XR_OK;
}

void
opt_init(struct opts *opts, const struct opt *table, void *base)
{
	struct opt_said said = { .who = OPT_DEFAULT };
	enum xr_status status;

	*opts = (struct opts){ .table = table, .base = base };
	for (const struct opt *o = table; o->name != NULL; o++) {
		XR_ASSERT(o - table < OPT_ROWS_MAX);
		if (o->dflt == NULL)
			continue;
		said.what = o->name;
		said.text = o->dflt;
		status = opt_set(opts, o, &said, NULL);
		XR_ASSERT(status == XR_OK);
	}
}

void
opt_fini(struct opts *opts)
{
	struct opt_list *list;

	for (const struct opt *o = opts->table; o->name != NULL; o++) {
		if (o->type != OPT_LIST)
			continue;
		list = (void *)((char *)opts->base + o->offset);
		free(list->own);
		free(list->items);
		*list = (struct opt_list){ 0 };
	}
}

const struct opt *
opt_of_job(const struct opts *opts)
{
	for (const struct opt *o = opts->table; o->name != NULL; o++)
		if (!o->part && opts->source[o - opts->table] == OPT_ARGV)
			return o;
	return NULL;
}

enum opt_source
opt_source(const struct opts *opts, const char *name)
{
	const struct opt *o =
		opt_find(opts->table, opt_span(name, strlen(name)));

	XR_ASSERT(o != NULL);
	return (enum opt_source)opts->source[o - opts->table];
}

/* Every name of the table, and the no- form of flags. */
void
opt_offer_all(struct suggest *near, const struct opt *table)
{
	char name[SUGGEST_MAX];

	for (const struct opt *o = table; o->name != NULL; o++) {
		suggest_offer(near, o->name);
		if (!opt_negatable(o))
			continue;
		snprintf(name, sizeof(name), "no-%s", o->name);
		suggest_offer(near, name);
	}
}

static enum xr_status
comes_later(const char *dashes, struct span name, struct xr_error *err)
{
	return fail(err, XR_E_NOTFOUND, "%s%.*s comes with a later version",
		dashes, (int)name.len, name.at);
}

static enum xr_status
unknown(const struct opts *opts, const char *dashes, struct span name,
	struct xr_error *err)
{
	struct suggest near;
	const char *best;
	char shown[OPT_SHOWN_MAX], text[NAME_MAX_LEN];

	snprintf(text, sizeof(text), "%.*s", (int)name.len, name.at);
	opt_shown(text, shown);
	suggest_init(&near, name.at, name.len);
	opt_offer_all(&near, opts->table);
	best = suggest_best(&near);
	if (best == NULL)
		return fail(err, XR_E_NOTFOUND, "unknown option %s%s", dashes,
			shown);
	return fail(err, XR_E_NOTFOUND,
		"unknown option %s%s (did you mean --%s?)", dashes, shown,
		best);
}

/* The value of @o is the next word, unless it was joined to the name. */
static enum xr_status
set_value(struct opts *opts, const struct opt *o, struct words *w,
	struct opt_said *said, struct xr_error *err)
{
	char want[128];

	if (said->text == NULL) {
		if (w->at + 1 >= w->argc)
			return fail(err, XR_E_INVAL, "%s needs %s", said->what,
				opt_want(o, want, sizeof(want)));
		said->text = w->argv[++w->at];
	}
	return opt_set(opts, o, said, err);
}

/* --name, --name=VALUE, --name VALUE, --no-name; -np VALUE comes here too. */
static enum xr_status
set_long(struct opts *opts, struct words *w, const char *dashes,
	struct xr_error *err)
{
	const char *arg = w->argv[w->at] + strlen(dashes);
	struct span name = opt_span(arg, strcspn(arg, "="));
	const struct opt *o = opt_find(opts->table, name);
	const struct opt *off = opt_find_negated(opts->table, name);
	enum xr_status status = XR_OK;
	char what[64];
	struct opt_said said = { .who = OPT_ARGV, .what = what };

	if (arg[name.len] == '=')
		said.text = arg + name.len + 1;
	if (o == NULL && off == NULL && opt_is_later(opts, name))
		return comes_later(dashes, name, err);
	if (o == NULL && off == NULL)
		return unknown(opts, dashes, name, err);
	snprintf(what, sizeof(what), "%s%.*s", dashes, (int)name.len, name.at);
	if (o == NULL && said.text != NULL)
		return fail(err, XR_E_INVAL, "%s takes no value", what);
	if (o == NULL)
		return opt_set_no(opts, off, OPT_ARGV, what, err);
	if (opt_alone(o) && said.text == NULL) {
		opt_set_given(opts, o, OPT_ARGV, true);
		return XR_OK;
	}
	status = set_value(opts, o, w, &said, err);
	if (status == XR_OK && o->maybe)
		opt_set_given(opts, o, OPT_ARGV, true);
	return status;
}

/* -x, or the x of -vx, which no row has. */
static enum xr_status
unknown_letter(const struct opts *opts, const char *word, char letter,
	struct xr_error *err)
{
	struct span name = opt_span(word + 1, strcspn(word + 1, "="));

	if (is_later_letter(opts, letter))
		return comes_later("-", opt_span(&letter, 1), err);
	if (name.len == 1)
		return fail(err, XR_E_NOTFOUND, "unknown option %s", word);
	if (opt_is_later(opts, name))
		return comes_later("--", name, err);
	return unknown(opts, "-", name, err);
}

/* -vq -n VALUE -nVALUE: flags may be joined, the last may take a value. */
static enum xr_status
set_short(struct opts *opts, struct words *w, struct xr_error *err)
{
	const char *word = w->argv[w->at];
	const struct opt *o;
	char what[3] = "-?";
	struct opt_said said = { .who = OPT_ARGV, .what = what };

	for (const char *p = word + 1; *p != '\0'; p++) {
		o = find_letter(opts->table, *p);
		if (o == NULL)
			return unknown_letter(opts, word, *p, err);
		what[1] = *p;
		if (!opt_alone(o)) {
			said.text = p[1] == '\0' ? NULL : p + 1;
			return set_value(opts, o, w, &said, err);
		}
		opt_set_given(opts, o, OPT_ARGV, true);
	}
	return XR_OK;
}

static bool
is_alias(const struct opt *table, const char *arg)
{
	struct span name = opt_span(arg, strcspn(arg, "="));

	for (const struct opt *o = table; o->name != NULL; o++)
		if (o->alias != NULL && span_is(name, o->alias))
			return true;
	return false;
}

/* Returns the row of a number whose alias begins @arg, before a digit, as in
 * "np2"; NULL if there is none. */
static const struct opt *
find_joined_alias(const struct opt *table, const char *arg)
{
	size_t len;

	for (const struct opt *o = table; o->name != NULL; o++) {
		len = o->alias == NULL ? 0 : strlen(o->alias);
		if (len > 0 && o->type == OPT_INT &&
			strncmp(arg, o->alias, len) == 0 && arg[len] >= '0' &&
			arg[len] <= '9')
			return o;
	}
	return NULL;
}

/* @arg: "-np2" */
static enum xr_status
set_joined(struct opts *opts, const struct opt *o, const char *arg,
	struct xr_error *err)
{
	char what[64];
	struct opt_said said = { .who = OPT_ARGV,
		.what = what,
		.text = arg + 1 + strlen(o->alias) };

	snprintf(what, sizeof(what), "-%s", o->alias);
	return opt_set(opts, o, &said, err);
}

enum xr_status
opt_argv(struct opts *opts, int argc, char **argv, int *next,
	struct xr_error *err)
{
	struct words w = { .argc = argc, .argv = argv, .at = 1 };
	enum xr_status status = XR_OK;
	const struct opt *joined;
	const char *arg;

	for (; w.at < argc && status == XR_OK; w.at += status == XR_OK) {
		arg = argv[w.at];
		if (strcmp(arg, "--") == 0) {
			w.at++;
			break;
		}
		if (arg[0] != '-' || arg[1] == '\0')
			break;
		if (arg[1] == '-')
			status = set_long(opts, &w, "--", err);
		else if (is_alias(opts->table, arg + 1))
			status = set_long(opts, &w, "-", err);
		else if ((joined = find_joined_alias(opts->table, arg + 1)) !=
			NULL)
			status = set_joined(opts, joined, arg, err);
		else
			status = set_short(opts, &w, err);
	}
	*next = w.at;
	return status;
}
