/* SPDX-License-Identifier: Apache-2.0 */
/* opt_env.c - see opt.h: values from XRUN_* variables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/opt_inner.h"
#include "base/status.h"
#include "base/suggest.h"

void
opt_env_name(const char *name, char *out, size_t cap)
{
	size_t n = (size_t)snprintf(out, cap, "XRUN_%s", name);

	XR_ASSERT(n < cap);
	for (char *p = out + 5; *p != '\0'; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* "XRUN_STOP_SIGNAL" is "stop-signal"; false if it cannot be an option's. */
static bool
option_name(struct span name, char *out, size_t cap)
{
	size_t i;

	if (name.len <= 5 || name.len - 5 >= cap ||
		memcmp(name.at, "XRUN_", 5) != 0)
		return false;
	for (i = 0; i < name.len - 5; i++) {
		out[i] = name.at[i + 5];
		if (out[i] == '-' || (out[i] >= 'a' && out[i] <= 'z'))
			return false;
		out[i] = out[i] == '_' ? '-' :
					 (char)tolower((unsigned char)out[i]);
	}
	out[i] = '\0';
	return true;
}

/* The row of "ranks" or "no-logs", without its aliases. */
static const struct opt *
find_env(const struct opt *table, const char *name, bool *negated)
{
	struct span all = opt_span(name, strlen(name));
	const struct opt *o = opt_find(table, all);

	*negated = false;
	if (o == NULL) {
		o = opt_find_negated(table, all);
		*negated = o != NULL;
	}
	if (o != NULL &&
		(o->no_variable ||
			strcmp(name + (*negated ? 3 : 0), o->name) != 0))
		return NULL;
	return o;
}

bool
opt_env_is(const struct opts *opts, struct span name)
{
	char option[64];
	bool negated;

	if (!option_name(name, option, sizeof(option)))
		return false;
	return find_env(opts->table, option, &negated) != NULL ||
		opt_is_later(opts, opt_span(option, strlen(option)));
}

/* One item a line. */
static enum xr_status
set_env_list(struct opts *opts, const struct opt *o,
	const struct opt_said *said, struct xr_error *err)
{
	struct opt_list *list = (void *)((char *)opts->base + o->offset);
	struct opt_said item = *said;
	enum xr_status status = XR_OK;
	char *own, *line, *next;

	if (list->own != NULL) /* twice in environ: as getenv(3), the first */
		return XR_OK;
	own = line = strdup(said->text);
	if (own == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	while (line != NULL && status == XR_OK) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		item.text = line;
		if (*line != '\0')
			status = opt_set(opts, o, &item, err);
		line = next;
	}
	list->own = own;
	return status;
}

/* XRUN_LOGS and XRUN_NO_LOGS are both there, and differ. */
static enum xr_status
contradiction(const struct opt *o, struct xr_error *err)
{
	char name[64], yes[80], no[80];

	snprintf(name, sizeof(name), "no-%s", o->name);
	opt_env_name(o->name, yes, sizeof(yes));
	opt_env_name(name, no, sizeof(no));
	return fail(err, XR_E_INVAL, "%s and %s contradict each other", yes,
		no);
}

/* A flag, or an option that may go without a value; @negated: its no- form. */
static enum xr_status
set_env_flag(struct opts *opts, const struct opt *o, bool negated, bool yes,
	struct xr_error *err)
{
	size_t offset = o->type == OPT_FLAG ? o->offset : o->given;
	bool before;

	yes = yes != negated;
	memcpy(&before, (char *)opts->base + offset, sizeof(before));
	if (opts->source[o - opts->table] == OPT_ENV && before != yes)
		return contradiction(o, err);
	opt_set_given(opts, o, OPT_ENV, yes);
	return XR_OK;
}

/* A text and its no- form are both there; @no: the later one means no. */
static enum xr_status
agree(const struct opts *opts, const struct opt *o, bool no,
	struct xr_error *err)
{
	const char *before;

	memcpy(&before, (char *)opts->base + o->offset, sizeof(before));
	return no == (strcmp(before, o->no) == 0) ? XR_OK :
						    contradiction(o, err);
}

/* The no- form of a text. */
static enum xr_status
set_env_no(struct opts *opts, const struct opt *o, bool yes,
	const struct opt_said *said, struct xr_error *err)
{
	if (opts->source[o - opts->table] == OPT_ENV)
		return agree(opts, o, yes, err);
	return yes ? opt_set_no(opts, o, OPT_ENV, said->what, err) : XR_OK;
}

static enum xr_status
set_env(struct opts *opts, const struct opt *o, bool negated,
	const struct opt_said *said, struct xr_error *err)
{
	static const struct opt flag = { .type = OPT_FLAG };
	size_t digits = strspn(said->text, "0123456789");
	bool yes = true;
	enum xr_status status;

	if (o->type == OPT_FLAG || negated) {
		status = opt_parse(&flag, &yes, said, err);
		if (status != XR_OK)
			return status;
		if (negated && o->no != NULL)
			return set_env_no(opts, o, yes, said, err);
		return set_env_flag(opts, o, negated, yes, err);
	}
	if (o->maybe && said->text[digits] != '\0' &&
		opt_parse_bool(said->text, &yes))
		return set_env_flag(opts, o, false, yes, err);
	/* Twice in environ: the first, as getenv(3). */
	if (opts->source[o - opts->table] == OPT_ENV)
		return o->no == NULL ?
			XR_OK :
			agree(opts, o, strcmp(said->text, o->no) == 0, err);
	if (o->type == OPT_LIST)
		return set_env_list(opts, o, said, err);
	status = opt_set(opts, o, said, err);
	if (status == XR_OK && o->maybe)
		opt_set_given(opts, o, OPT_ENV, true);
	return status;
}

enum xr_status
opt_env(struct opts *opts, const char *entry, bool *known, struct xr_error *err)
{
	size_t len = strcspn(entry, "=");
	const char *text = entry[len] == '=' ? entry + len + 1 : "";
	char option[64], what[80];
	struct opt_said said = { .who = OPT_ENV, .what = what, .text = text };
	const struct opt *o;
	bool negated;

	*known = false;
	if (!option_name(opt_span(entry, len), option, sizeof(option)))
		return XR_OK;
	o = find_env(opts->table, option, &negated);
	*known = o != NULL ||
		opt_is_later(opts, opt_span(option, strlen(option)));
	if (!*known || *text == '\0')
		return XR_OK;
	opt_env_name(option, what, sizeof(what));
	if (o == NULL)
		return fail(err, XR_E_NOTFOUND, "%s comes with a later version",
			what);
	return set_env(opts, o, negated, &said, err);
}

void
opt_suggest_env(const struct opt *table, struct span name, char *out,
	size_t cap)
{
	char option[64];
	struct suggest near;

	out[0] = '\0';
	if (!option_name(name, option, sizeof(option)))
		return;
	/* Its short names are no variables. */
	for (const struct opt *o = table; o->name != NULL; o++)
		if ((o->alias != NULL && strcmp(o->alias, option) == 0) ||
			(option[1] == '\0' && o->letter == option[0])) {
			opt_env_name(o->name, out, cap);
			return;
		}
	suggest_init(&near, option, strlen(option));
	opt_offer_all(&near, table);
	if (suggest_best(&near) != NULL)
		opt_env_name(suggest_best(&near), out, cap);
}
