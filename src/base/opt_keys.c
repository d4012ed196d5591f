/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt_keys.c - see opt_print.h: a table of settings as keys of a file: a list,
 * the manual's part, the schema by which editors and others check a file, and
 * what the settings are.
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/opt_inner.h"
#include "base/opt_print.h"
#include "base/signo.h"

#define AMOUNT "[0-9]+(\\.[0-9]+)?"
#define TIME_PATTERN \
	"^(0+|(" AMOUNT "h)?(" AMOUNT "m)?(" AMOUNT "s)?(" AMOUNT "ms)?)$"
#define SIZE_PATTERN "^" AMOUNT "[kKMGT]?$"

/* Is it on unless something is said? Then its help says what false does. */
static bool
is_on(const struct opt *o)
{
	return o->type == OPT_FLAG && o->dflt != NULL &&
		strcmp(o->dflt, "yes") == 0;
}

/* Is its default worth telling? Of what may go without a value it is none: not
 * asked for is another thing. */
static bool
has_default(const struct opt *o)
{
	return o->dflt != NULL && o->type != OPT_FLAG && !o->maybe;
}

/* The value as it is written: 8, "10s", ["NAME=VALUE"]. */
static void
put_form(const struct opt *o, const char *mark, struct buf *out)
{
	char arg[96];

	opt_arg(o, arg, sizeof(arg));
	switch (o->type) {
	case OPT_FLAG:
		buf_put_text(out, is_on(o) ? "false" : "true");
		break;
	case OPT_INT:
		buf_fmt(out, "%s%s%s", mark, arg, mark);
		break;
	case OPT_LIST:
		buf_fmt(out, "[\"%s%s%s\"]", mark, arg, mark);
		break;
	case OPT_SIZE:
	case OPT_DURATION:
	case OPT_TEXT:
	case OPT_CHOICE:
	case OPT_SIGNAL:
		buf_fmt(out, "\"%s%s%s\"", mark, arg, mark);
		break;
	}
}

void
opt_print_keys(const struct opt *table, struct buf *out)
{
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (o->no_file)
			continue;
		buf_fmt(out, "  \"%s\": ", o->name);
		put_form(o, "", out);
		buf_fmt(out, "\n      %s", o->help);
		if (has_default(o))
			buf_fmt(out, " (%s)", o->dflt);
		buf_put_char(out, '\n');
	}
}

void
opt_print_keys_man(const struct opt *table, struct buf *out)
{
	for (const struct opt *o = table; o->name != NULL; o++) {
		if (o->no_file)
			continue;
		buf_fmt(out, "*\"%s\"*: ", o->name);
		put_form(o, "_", out);
		buf_fmt(out, "\n\t%s", o->help);
		if (has_default(o))
			buf_fmt(out, "; \"%s\" unless it is said", o->dflt);
		buf_put_text(out, "\n\n");
	}
}

static void
put_two_types(struct json *j, const char *first, const char *second)
{
	json_open_array(j, "type");
	json_text(j, NULL, first);
	json_text(j, NULL, second);
	json_close_array(j);
}

static void
put_choices(struct json *j, const struct opt *o)
{
	json_open_array(j, "enum");
	for (int i = 0; o->choices[i] != NULL; i++)
		json_text(j, NULL, o->choices[i]);
	json_close_array(j);
}

static void
put_integer(struct json *j, const struct opt *o)
{
	json_text(j, "type", "integer");
	json_int(j, "minimum", o->min);
	json_int(j, "maximum", o->max);
}

/* A number, or text with a unit. */
static void
put_amount(struct json *j, const struct opt *o)
{
	json_open_array(j, "anyOf");
	json_open_object(j, NULL);
	if (o->type == OPT_SIZE)
		put_integer(j, o);
	else
		json_int(j, "const", 0); /* the one that needs no unit */
	json_close_object(j);
	json_open_object(j, NULL);
	json_text(j, "type", "string");
	json_int(j, "minLength", 1);
	json_text(j, "pattern",
		o->type == OPT_SIZE ? SIZE_PATTERN : TIME_PATTERN);
	json_close_object(j);
	json_close_array(j);
}

/* A list of text. */
static void
put_list(struct json *j, const struct opt *o)
{
	json_text(j, "type", "array");
	json_open_object(j, "items");
	put_two_types(j, "string", "number");
	json_int(j, "minLength", 1);
	if (o->pattern != NULL)
		json_text(j, "pattern", o->pattern);
	json_close_object(j);
}

/* NAME=VALUE, as a list or as an object. */
static void
put_pairs(struct json *j, const struct opt *o)
{
	const char *name = o->pattern == NULL ? "[^=]+" : o->pattern;
	struct buf pattern = { 0 };

	put_two_types(j, "array", "object");
	json_open_object(j, "items");
	json_text(j, "type", "string");
	buf_fmt(&pattern, "^%s=", name);
	json_text(j, "pattern", buf_text(&pattern));
	json_close_object(j);
	buf_clear(&pattern);
	buf_fmt(&pattern, "^%s$", name);
	json_open_object(j, "propertyNames");
	json_text(j, "pattern", buf_text(&pattern));
	buf_fini(&pattern);
	json_close_object(j);
	json_open_object(j, "additionalProperties");
	put_two_types(j, "string", "number");
	json_close_object(j);
}

/* Its number, or a name with or without SIG, in any case. */
static void
put_signal(struct json *j)
{
	struct buf pattern = { 0 };
	char name[64];

	put_two_types(j, "string", "integer");
	json_int(j, "minimum", 1);
	json_int(j, "maximum", NSIG - 1);
	buf_put_text(&pattern,
		"^(0*([1-9]|[1-5][0-9]|6[0-4])|([sS][iI][gG])?(");
	for (int i = 1; i < NSIG; i++) {
		signo_short(i, name, sizeof(name));
		if (strchr(name, ' ') != NULL) /* it has none */
			continue;
		buf_put_text(&pattern, i == 1 ? "" : "|");
		for (const char *p = name; *p != '\0'; p++)
			if (isalpha((unsigned char)*p))
				buf_fmt(&pattern, "[%c%c]", *p,
					tolower((unsigned char)*p));
			else
				buf_put_char(&pattern, *p);
	}
	buf_put_text(&pattern, "))$");
	json_text(j, "pattern", buf_text(&pattern));
	buf_fini(&pattern);
}

/* Text, or where a number may stand for it that, too. */
static void
put_text(struct json *j, const struct opt *o)
{
	bool bounds = o->min != 0 || o->max != 0;

	if (o->pattern == NULL)
		put_two_types(j, "string", "number");
	else if (bounds)
		put_two_types(j, "string", "integer");
	else
		json_text(j, "type", "string");
	json_int(j, "minLength", 1);
	if (o->pattern != NULL)
		json_text(j, "pattern", o->pattern);
	if (bounds) {
		json_int(j, "minimum", o->min);
		json_int(j, "maximum", o->max);
	}
}

static void
put_kind(struct json *j, const struct opt *o)
{
	switch (o->type) {
	case OPT_FLAG:
		json_text(j, "type", "boolean");
		break;
	case OPT_INT:
		put_integer(j, o);
		break;
	case OPT_SIZE:
	case OPT_DURATION:
		put_amount(j, o);
		break;
	case OPT_CHOICE:
		put_choices(j, o);
		break;
	case OPT_TEXT:
		if (o->choices != NULL) {
			put_choices(j, o);
			break;
		}
		put_text(j, o);
		break;
	case OPT_SIGNAL:
		put_signal(j);
		break;
	case OPT_LIST:
		if (opt_takes_pairs(o))
			put_pairs(j, o);
		else
			put_list(j, o);
		break;
	}
}

static void
put_default(struct json *j, const struct opt *o)
{
	char *end;
	long long number;

	if (o->dflt == NULL || o->maybe)
		return;
	number = strtoll(o->dflt, &end, 10);
	if (o->type == OPT_FLAG)
		json_bool(j, "default", is_on(o));
	else if (o->type == OPT_INT || (number == 0 && strcmp(end, "") == 0))
		json_int(j, "default", number);
	else
		json_text(j, "default", o->dflt);
}

static void
put_property(struct json *j, const struct opt *o)
{
	char help[160];

	snprintf(help, sizeof(help), "%s%s", is_on(o) ? "false: " : "",
		o->help);
	json_open_object(j, o->name);
	json_text(j, "description", help);
	put_default(j, o);
	if ((!o->maybe && o->no == NULL) || o->type == OPT_FLAG) {
		put_kind(j, o);
	} else {
		json_open_array(j, "anyOf");
		json_open_object(j, NULL);
		if (o->maybe)
			json_text(j, "type", "boolean");
		else
			json_bool(j, "const", false);
		json_close_object(j);
		json_open_object(j, NULL);
		put_kind(j, o);
		json_close_object(j);
		json_close_array(j);
	}
	json_close_object(j);
}

void
opt_print_schema(const struct opt *table, struct json *j)
{
	json_open_object(j, "$schema");
	json_text(j, "type", "string");
	json_close_object(j);
	for (const struct opt *o = table; o->name != NULL; o++)
		if (!o->no_file)
			put_property(j, o);
}

/* --- what is set ---------------------------------------------------------- */

static const void *
field(const struct opt *o, const void *base)
{
	return (const char *)base + o->offset;
}

/* Of one that may go without a value: was it asked for at all? */
static bool
is_given(const struct opt *o, const void *base)
{
	bool given = true;

	if (o->maybe)
		memcpy(&given, (const char *)base + o->given, sizeof(given));
	return given;
}

static void
put_int(const struct opt *o, const void *base, struct buf *out)
{
	char text[64];
	int number;

	memcpy(&number, field(o, base), sizeof(number));
	if (o->type == OPT_CHOICE) {
		buf_put_text(out, o->choices[number]);
		return;
	}
	/* One without a name is written as a number. */
	if (signo_parse(signo_short(number, text, sizeof(text))) != number)
		snprintf(text, sizeof(text), "%d", number);
	buf_put_text(out, text);
}

void
opt_print_value(const struct opt *o, const void *base, struct buf *out)
{
	const struct opt_list *list = field(o, base);
	const char *text;
	char amount[64];
	int64_t number;
	bool flag;

	if (!is_given(o, base)) {
		buf_put_text(out, "no");
		return;
	}
	switch (o->type) {
	case OPT_FLAG:
		memcpy(&flag, field(o, base), sizeof(flag));
		buf_put_text(out, flag ? "yes" : "no");
		break;
	case OPT_INT:
	case OPT_SIZE:
	case OPT_DURATION:
		memcpy(&number, field(o, base), sizeof(number));
		opt_amount(o, number, amount, sizeof(amount));
		buf_put_text(out, amount);
		break;
	case OPT_TEXT:
		memcpy(&text, field(o, base), sizeof(text));
		buf_put_text(out, text == NULL ? "" : text);
		break;
	case OPT_CHOICE:
	case OPT_SIGNAL:
		put_int(o, base, out);
		break;
	case OPT_LIST:
		for (size_t i = 0; i < list->n; i++)
			buf_fmt(out, "%s%s", i == 0 ? "" : "\n",
				list->items[i]);
		break;
	}
}

void
opt_print_json(const struct opt *o, const void *base, const char *key,
	struct json *j)
{
	const struct opt_list *list = field(o, base);
	struct buf text = { 0 };
	int64_t number;

	if (o->type == OPT_LIST) {
		json_open_array(j, key);
		for (size_t i = 0; i < list->n; i++)
			json_text(j, NULL, list->items[i]);
		json_close_array(j);
		return;
	}
	opt_print_value(o, base, &text);
	if (o->type == OPT_FLAG || !is_given(o, base)) {
		json_bool(j, key, strcmp(buf_text(&text), "yes") == 0);
	} else if (o->type == OPT_INT) {
		memcpy(&number, field(o, base), sizeof(number));
		json_int(j, key, number);
	} else {
		json_text(j, key, buf_text(&text));
	}
	buf_fini(&text);
}
