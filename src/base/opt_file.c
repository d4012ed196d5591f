/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_file.c - see opt.h: values from a file.
 *
 * What settings borrow, a text without its escapes or a number, is copied to
 * one block of memory as large as the file. It always fits: a value with its
 * NUL is no longer than it is in the file with its quotes or the comma, colon
 * or bracket around it, and NAME=VALUE no longer than "NAME":"VALUE".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/opt_inner.h"
#include "base/status.h"
#include "base/suggest.h"

#define NUMBER     24 /* room for one that is whole */
#define ERRORS_MAX 20 /* that are told one by one */

struct reader {
	struct opts *opts;
	struct opt_file *file;
	char *free; /* behind what is used of file->values */
	unsigned errors;
	enum xr_status status; /* of the first */
	struct xr_error *err;  /* receives the first */
};

/* One more error, @wrong, about what stands at @at. */
static void
note(struct reader *r, const char *at, enum xr_status status,
	const struct xr_error *wrong)
{
	struct gate_place p = gate_place(r->file->text, at);

	if (r->errors++ == 0)
		r->status = fail(r->err, status, "%s:%u:%u: %s", r->file->name,
			p.line, p.column, wrong->text);
	if (r->file->errors != NULL && r->errors <= ERRORS_MAX)
		buf_fmt(r->file->errors, "%s:%u:%u: %s\n", r->file->name,
			p.line, p.column, wrong->text);
}

/* The text of @value, or the number as it is written; kept till the end. */
static char *
keep(struct reader *r, struct span value)
{
	char *text = r->free;

	if (gate_kind(value) == GATE_TEXT) {
		r->free += gate_unescape(value, text) + 1;
	} else {
		memcpy(text, value.at, value.len);
		text[value.len] = '\0';
		r->free += value.len + 1;
	}
	return text;
}

/* A list that is one text: its names are in the plural. */
static bool
takes_commas(const struct opt *o)
{
	return o->type == OPT_TEXT && o->arg != NULL &&
		(strcmp(o->arg, "LIST") == 0 || strcmp(o->arg, "RANKS") == 0);
}

/* A value that is not even of the right kind, as it is written. */
static enum xr_status
refuse_kind(const struct opt *o, struct span value, struct xr_error *err)
{
	char text[OPT_SHOWN_MAX];
	struct opt_said said = { .what = o->name, .text = text };

	snprintf(text, sizeof(text), "%.*s",
		value.len < sizeof(text) ? (int)value.len :
					   (int)sizeof(text) - 1,
		value.at);
	if (takes_commas(o) && gate_kind(value) == GATE_ARRAY)
		return fail(err, XR_E_INVAL,
			"%s: expected one text, with commas in it, and no list",
			o->name);
	if (o->type != OPT_LIST)
		return opt_refuse(o, &said, err);
	return fail(err, XR_E_INVAL, "%s: expected a list, [\"%s\"]%s", o->name,
		o->arg,
		opt_takes_pairs(o) ? ", or an object, {\"NAME\": \"VALUE\"}" :
				     "");
}

static bool
is_word(struct span value)
{
	return gate_kind(value) == GATE_TEXT || gate_kind(value) == GATE_NUMBER;
}

/* "NAME=VALUE" of "NAME": "VALUE". */
static enum xr_status
keep_pair(struct reader *r, const struct gate_item *item, const char **text,
	struct xr_error *err)
{
	char *name = keep(r, item->key);

	if (*name == '\0' || strchr(name, '=') != NULL)
		return fail(err, XR_E_INVAL, "'%s' cannot be a variable's name",
			name);
	r->free[-1] = '=';
	keep(r, item->value);
	*text = name;
	return XR_OK;
}

/* An item of a list; its errors stand where it stands. */
static void
add_item(struct reader *r, const struct opt *o, const struct gate_item *item)
{
	struct opt_said said = { .who = r->file->who, .what = o->name };
	enum xr_status status = XR_OK;
	const char *at = item->value.at;
	struct xr_error wrong = { 0 };

	if (!is_word(item->value))
		status = fail(&wrong, XR_E_INVAL,
			"%s: expected a text or a number", o->name);
	else if (item->key.at != NULL)
		status = keep_pair(r, item, &said.text, &wrong);
	else
		said.text = keep(r, item->value);
	if (status == XR_OK)
		status = opt_set(r->opts, o, &said, &wrong);
	else if (is_word(item->value))
		at = item->key.at; /* the name is to blame */
	if (status != XR_OK)
		note(r, at, status, &wrong);
}

static enum xr_status
set_list(struct reader *r, const struct opt *o, struct span value,
	struct xr_error *err)
{
	enum gate_kind kind = gate_kind(value);
	struct gate_walk walk = gate_walk(value);
	struct gate_item item;

	if (kind != GATE_ARRAY && (kind != GATE_OBJECT || !opt_takes_pairs(o)))
		return refuse_kind(o, value, err);
	opt_begin_list(r->opts, o, r->file->who);
	while (gate_next(&walk, &item))
		add_item(r, o, &item);
	return XR_OK;
}

/* Is it written with a point or an exponent? */
static bool
is_broken(struct span value)
{
	for (size_t i = 0; i < value.len; i++)
		if (strchr(".eE", value.at[i]) != NULL)
			return true;
	return false;
}

/* Is it a whole number that is written as others are, 2.0 or 1e3? Then @out is
 * it in digits. */
static bool
is_whole(struct span value, char out[NUMBER])
{
	char text[NUMBER], *end;
	double number;

	if (gate_kind(value) != GATE_NUMBER || value.len >= NUMBER)
		return false;
	if (!is_broken(value))
		return false;
	memcpy(text, value.at, value.len);
	text[value.len] = '\0';
	number = strtod(text, &end);
	if (*end != '\0' || number < -1e15 || number > 1e15 ||
		(double)(int64_t)number != number)
		return false;
	snprintf(out, NUMBER, "%lld", (long long)number);
	return true;
}

/* A number that may stand for a text of some form. What it means as a text is
 * for the row's check; 1e3, which is shorter than its digits, stays as it is. */
static enum xr_status
keep_number(struct reader *r, const struct opt *o, struct span value,
	const char **text, struct xr_error *err)
{
	char number[NUMBER];
	bool whole;

	if (o->min == 0 && o->max == 0)
		return fail(err, XR_E_INVAL, "%s: expected a text, in quotes",
			o->name);
	whole = is_whole(value, number);
	if (!whole && is_broken(value))
		return fail(err, XR_E_INVAL,
			"%s: '%.*s' is no whole number; a text stands in quotes",
			o->name, (int)(value.len < NUMBER ? value.len : NUMBER),
			value.at);
	if (whole && strlen(number) <= value.len)
		value = (struct span){ number, strlen(number) };
	*text = keep(r, value);
	return XR_OK;
}

static enum xr_status
set_value(struct reader *r, const struct opt *o, struct span value,
	struct xr_error *err)
{
	struct opt_said said = { .who = r->file->who, .what = o->name };
	enum gate_kind kind = gate_kind(value);
	enum xr_status status;
	char number[NUMBER];

	if (o->type == OPT_LIST)
		return set_list(r, o, value, err);
	if (kind == GATE_FALSE && opt_negatable(o))
		return opt_set_no(r->opts, o, said.who, o->name, err);
	if (kind == GATE_TRUE && opt_alone(o)) {
		opt_set_given(r->opts, o, said.who, true);
		return XR_OK;
	}
	if (!is_word(value))
		return refuse_kind(o, value, err);
	if (o->type == OPT_FLAG)
		return fail(err, XR_E_INVAL, "%s: expected true or false",
			o->name);
	if (o->type == OPT_INT && kind == GATE_TEXT)
		return fail(err, XR_E_INVAL,
			"%s: expected a number, without quotes", o->name);
	status = XR_OK;
	if (o->type == OPT_TEXT && o->pattern != NULL && kind == GATE_NUMBER)
		status = keep_number(r, o, value, &said.text, err);
	else if (o->type != OPT_TEXT && is_whole(value, number))
		said.text = number;
	else
		said.text = keep(r, value);
	if (status == XR_OK)
		status = opt_set(r->opts, o, &said, err);
	if (status == XR_OK && o->maybe)
		opt_set_given(r->opts, o, said.who, true);
	return status;
}

/* No row is called like that: why, and what was meant. */
static enum xr_status
unknown_key(const struct opts *opts, const char *key, struct xr_error *err)
{
	struct span name = opt_span(key, strlen(key));
	const struct opt *alias = opt_find(opts->table, name);
	const struct opt *off = opt_find_negated(opts->table, name);
	struct suggest near;
	char shown[OPT_SHOWN_MAX];

	opt_shown(key, shown);
	if (off != NULL)
		return fail(err, XR_E_NOTFOUND,
			"\"%s\" is written \"%s\": false", shown, off->name);
	if (opt_is_later(opts, name))
		return fail(err, XR_E_NOTFOUND,
			"\"%s\" comes with a later version", shown);
	suggest_init(&near, name.at, name.len);
	for (const struct opt *o = opts->table; o->name != NULL; o++)
		if (!o->no_file)
			suggest_offer(&near, o->name);
	if (alias == NULL && suggest_best(&near) == NULL)
		return fail(err, XR_E_NOTFOUND, "unknown key \"%s\"", shown);
	return fail(err, XR_E_NOTFOUND,
		"unknown key \"%s\" (did you mean \"%s\"?)", shown,
		alias != NULL ? alias->name : suggest_best(&near));
}

static enum xr_status
find_row(const struct opts *opts, const char *key, const struct opt **row,
	struct xr_error *err)
{
	const struct opt *o = opt_find(opts->table, opt_span(key, strlen(key)));

	if (o == NULL || strcmp(o->name, key) != 0)
		return unknown_key(opts, key, err);
	if (o->no_file)
		return fail(err, XR_E_INVAL, "\"%s\" cannot stand in a file",
			key);
	*row = o;
	return XR_OK;
}

/* One name and its value. The name is needed only here: its room is free
 * again. */
static void
set_item(struct reader *r, const struct gate_item *item)
{
	struct xr_error wrong = { 0 };
	const struct opt *o = NULL;
	enum xr_status status;
	char *key = keep(r, item->key);

	r->free = key;
	if (strcmp(key, "$schema") == 0)
		return;
	r->file->count++;
	status = find_row(r->opts, key, &o, &wrong);
	if (status != XR_OK) {
		note(r, item->key.at, status, &wrong);
		return;
	}
	status = set_value(r, o, item->value, &wrong);
	if (status != XR_OK)
		note(r, item->value.at, status, &wrong);
	else
		r->opts->place[o - r->opts->table] =
			gate_place(r->file->text, item->value.at);
}

/* A syntax error is the only one, since nothing can be read behind it. */
static enum xr_status
fail_whole(struct opt_file *file, enum xr_status status,
	const struct xr_error *wrong, struct xr_error *err)
{
	if (file->errors != NULL)
		buf_fmt(file->errors, "%s\n", wrong->text);
	return fail(err, status, "%s", wrong->text);
}

static enum xr_status
read_items(struct reader *r, struct span root)
{
	struct gate_walk walk = gate_walk(root);
	struct xr_error wrong = { 0 };
	struct gate_item item;

	if (gate_kind(root) != GATE_OBJECT) {
		fail(&wrong, XR_E_INVAL, "expected an object, {\"NAME\": ...}");
		note(r, root.at, XR_E_INVAL, &wrong);
		return r->status;
	}
	while (gate_next(&walk, &item))
		set_item(r, &item);
	if (r->errors > ERRORS_MAX && r->file->errors != NULL)
		buf_fmt(r->file->errors, "%s: and %u more errors\n",
			r->file->name, r->errors - ERRORS_MAX);
	return r->status;
}

enum xr_status
opt_file(struct opts *opts, struct opt_file *file, struct xr_error *err)
{
	struct reader r = { .opts = opts, .file = file, .err = err };
	struct xr_error wrong = { 0 };
	enum xr_status status;

	file->count = 0;
	status = gate_check_commented(file->name, file->text, file->len,
		GATE_MAX, &wrong);
	if (status == XR_OK && file->values == NULL)
		file->values = malloc(file->len + 1);
	if (status == XR_OK && file->values == NULL)
		status = fail(&wrong, XR_E_NOMEM, "%s: out of memory",
			file->name);
	if (status != XR_OK)
		return fail_whole(file, status, &wrong, err);
	r.free = file->values;
	return read_items(&r, gate_root(file->text, file->len));
}
