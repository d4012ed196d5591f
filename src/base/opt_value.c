/* SPDX-License-Identifier: Apache-2.0 */
/* opt_value.c - see opt_inner.h: one text becomes one value. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/opt_inner.h"
#include "base/signo.h"
#include "base/status.h"
#include "base/utf8.h"

struct unit {
	const char *name;
	int64_t scale;
};

static const struct unit plain[] = { { "", 1 }, { 0 } };
static const struct unit sizes[] = { { "", 1 }, { "k", 1LL << 10 },
	{ "K", 1LL << 10 }, { "M", 1LL << 20 }, { "G", 1LL << 30 },
	{ "T", 1LL << 40 }, { 0 } };
static const struct unit times[] = { { "ms", NS_PER_MS }, { "s", NS_PER_S },
	{ "m", 60 * NS_PER_S }, { "h", 3600 * NS_PER_S }, { 0 } };

static const struct unit *
units_of(const struct opt *o)
{
	if (o->type == OPT_SIZE)
		return sizes;
	return o->type == OPT_DURATION ? times : plain;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits from *p on; INT64_MAX if they are too many. */
static int64_t
scan_digits(const char **p)
{
	int64_t v = 0;

	for (; is_digit(**p); ++*p)
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, **p - '0', &v))
			v = INT64_MAX;
	return v;
}

/* What stands behind the point, in parts of @scale; *p at the first digit. */
static int64_t
scan_fraction(const char **p, int64_t scale)
{
	double part = 0, weight = (double)scale;

	for (; is_digit(**p); ++*p) {
		weight /= 10;
		part += (**p - '0') * weight;
	}
	return (int64_t)(part + 0.5);
}

/* The unit of the first @len bytes at @p, or NULL. */
static const struct unit *
find_unit(const struct unit *units, const char *p, size_t len)
{
	for (; units->name != NULL; units++)
		if (span_is(opt_span(p, len), units->name))
			return units;
	return NULL;
}

/* "1.5s" at *@p: a number and a unit, which ends at the next digit. Gives the
 * unit, or NULL. */
static const struct unit *
scan_amount(const char **p, const struct unit *units, int64_t *out)
{
	const struct unit *unit = NULL;
	const char *point = NULL;
	int64_t v;

	if (!is_digit(**p))
		return NULL;
	v = scan_digits(p);
	if (units != plain && **p == '.' && is_digit((*p)[1])) {
		point = ++*p;
		while (is_digit(**p))
			++*p;
	}
	unit = find_unit(units, *p, strcspn(*p, "0123456789"));
	if (unit == NULL)
		return NULL;
	*p += strlen(unit->name);
	if (__builtin_mul_overflow(v, unit->scale, &v) ||
		(point != NULL &&
			__builtin_add_overflow(v,
				scan_fraction(&point, unit->scale), &v)))
		v = INT64_MAX;
	*out = v;
	return unit;
}

/* Amounts whose units grow smaller; nothing but "0" has none. */
bool
opt_time(const char *text, int64_t *out)
{
	const struct unit *unit, *last = NULL;
	const char *p = text;
	int64_t sum = 0, v;

	if (*text == '0' && text[strspn(text, "0")] == '\0') {
		*out = 0;
		return true;
	}
	do {
		unit = scan_amount(&p, times, &v);
		if (unit == NULL ||
			(last != NULL && unit->scale >= last->scale))
			return false;
		if (__builtin_add_overflow(sum, v, &sum))
			sum = INT64_MAX;
		last = unit;
	} while (*p != '\0');
	*out = sum;
	return true;
}

/*
 * "-3", "8", "1.5G", "1h30m": a number and one of @units, whole where there are
 * none, or several of a time. Too large is INT64_MAX, which every range leaves
 * out. False: not a number.
 */
static bool
scan(const char *text, const struct unit *units, int64_t *out)
{
	bool minus = units == plain && *text == '-';
	const char *p = text + minus;
	int64_t v;

	if (units == times)
		return opt_time(text, out);
	if (scan_amount(&p, units, &v) == NULL || *p != '\0')
		return false;
	*out = minus ? -v : v;
	return true;
}

/* In the largest unit that leaves no rest. */
void
opt_amount(const struct opt *o, int64_t v, char *out, size_t cap)
{
	const struct unit *best = NULL;

	for (const struct unit *u = units_of(o); u->name != NULL; u++)
		if (v % u->scale == 0 &&
			(best == NULL || u->scale > best->scale))
			best = u;
	if (v == 0)
		snprintf(out, cap, "0");
	else if (best == NULL) /* a time that is no whole number of ms */
		snprintf(out, cap, "%lld.%06lldms", v / NS_PER_MS,
			v % NS_PER_MS);
	else
		snprintf(out, cap, "%" PRId64 "%s", v / best->scale,
			best->name);
}

/* "1 to 1000000" */
static void
print_range(const struct opt *o, char *out, size_t cap)
{
	char min[32], max[32];

	opt_amount(o, o->min, min, sizeof(min));
	opt_amount(o, o->max, max, sizeof(max));
	snprintf(out, cap, "%s to %s", min, max);
}

static void
join_choices(const struct opt *o, char *out, size_t cap)
{
	size_t n = 0;

	for (int i = 0; o->choices[i] != NULL && n < cap; i++)
		n += (size_t)snprintf(out + n, cap - n, "%s%s",
			i == 0 ? "" : "|", o->choices[i]);
}

bool
opt_takes_pairs(const struct opt *o)
{
	return o->type == OPT_LIST && o->arg != NULL &&
		strchr(o->arg, '=') != NULL;
}

const char *
opt_arg(const struct opt *o, char *out, size_t cap)
{
	out[0] = '\0';
	if (o->choices != NULL)
		join_choices(o, out, cap);
	else if (o->type == OPT_FLAG)
		return out;
	else
		snprintf(out, cap, "%s", o->arg);
	return out;
}

const char *
opt_want(const struct opt *o, char *out, size_t cap)
{
	char detail[96];

	opt_arg(o, detail, sizeof(detail));
	if (o->choices != NULL) {
		snprintf(out, cap, "one of %s", detail);
		return out;
	}
	switch (o->type) {
	case OPT_FLAG:
		snprintf(out, cap, "one of 1|true|yes|on|0|false|no|off");
		break;
	case OPT_INT:
		print_range(o, detail, sizeof(detail));
		snprintf(out, cap, "a number; %s", detail);
		break;
	case OPT_SIZE:
		snprintf(out, cap, "a size such as 64k, 10M or 1G");
		break;
	case OPT_DURATION:
		snprintf(out, cap, "a time such as 250ms, 30s, 10m or 1h30m");
		break;
	case OPT_SIGNAL:
		snprintf(out, cap, "a signal such as TERM, INT or 15");
		break;
	case OPT_TEXT:
	case OPT_CHOICE:
	case OPT_LIST:
		snprintf(out, cap, "a %s", detail);
		break;
	}
	return out;
}

const char *
opt_shown(const char *text, char out[OPT_SHOWN_MAX])
{
	size_t left = strlen(text), n = 0, step;

	while (left > 0 && n + 8 < OPT_SHOWN_MAX) {
		step = utf8_step(text, left);
		if (step == 0 || (unsigned char)*text < 0x20 || *text == 0x7f) {
			out[n++] = '?';
			step = 1;
		} else {
			memcpy(out + n, text, step);
			n += step;
		}
		text += step;
		left -= step;
	}
	memcpy(out + n, left > 0 ? "..." : "\0\0\0", 4);
	return out;
}

enum xr_status
opt_refuse(const struct opt *o, const struct opt_said *said,
	struct xr_error *err)
{
	char shown[OPT_SHOWN_MAX], want[128];

	opt_shown(said->text, shown);
	if (o->type == OPT_DURATION && is_digit(*said->text) &&
		said->text[strspn(said->text, "0123456789.")] == '\0')
		return fail(err, XR_E_INVAL,
			"%s: '%s' has no unit, such as %ss, %sm or %sh",
			said->what, shown, shown, shown, shown);
	return fail(err, XR_E_INVAL, "%s: '%s' is not %s", said->what, shown,
		opt_want(o, want, sizeof(want)));
}

static enum xr_status
parse_number(const struct opt *o, void *at, const struct opt_said *said,
	struct xr_error *err)
{
	char shown[OPT_SHOWN_MAX], range[80];
	int64_t v;

	if (!scan(said->text, units_of(o), &v))
		return opt_refuse(o, said, err);
	if (v < o->min || v > o->max) {
		print_range(o, range, sizeof(range));
		return fail(err, XR_E_RANGE, "%s: '%s' is too %s; %s",
			said->what, opt_shown(said->text, shown),
			v < o->min ? "small" : "large", range);
	}
	memcpy(at, &v, sizeof(v));
	return XR_OK;
}

/* The index of @text among @words, or -1. */
static int
find_word(const char *const *words, const char *text)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], text) == 0)
			return i;
	return -1;
}

static bool
valid_text(const struct opt *o, const char *text)
{
	if (o->choices != NULL)
		return find_word(o->choices, text) >= 0;
	return o->valid == NULL || o->valid(text);
}

static enum xr_status
check_text(const struct opt *o, const struct opt_said *said,
	struct xr_error *err)
{
	struct xr_error why = { 0 };
	enum xr_status status;
	char arg[96];

	if (*said->text == '\0')
		return fail(err, XR_E_INVAL,
			"%s: '' is empty, where %s should stand", said->what,
			opt_arg(o, arg, sizeof(arg)));
	if (!valid_text(o, said->text))
		return opt_refuse(o, said, err);
	if (o->check == NULL ||
		(o->words != NULL && find_word(o->words, said->text) >= 0))
		return XR_OK;
	status = o->check(said->text, &why);
	return status == XR_OK ?
		XR_OK :
		fail(err, status, "%s: %s", said->what, why.text);
}

/* Room grows when the count is a power of two. */
static enum xr_status
append(struct opt_list *list, const char *item, struct xr_error *err)
{
	const char **items = list->items;

	if ((list->n & (list->n - 1)) == 0) {
		items = reallocarray(items, list->n == 0 ? 1 : list->n * 2,
			sizeof(*items));
		if (items == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
		list->items = items;
	}
	items[list->n++] = item;
	return XR_OK;
}

bool
opt_parse_bool(const char *text, bool *out)
{
	static const char *const words[] = { "0", "1", "false", "true", "no",
		"yes", "off", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(words[i], text) == 0) {
			*out = i % 2 != 0;
			return true;
		}
	return false;
}

enum xr_status
opt_parse(const struct opt *o, void *base, const struct opt_said *said,
	struct xr_error *err)
{
	void *at = (char *)base + o->offset;
	const char *text = said->text;
	enum xr_status status;
	int number = 0;

	switch (o->type) {
	case OPT_FLAG:
		if (!opt_parse_bool(text, at))
			return opt_refuse(o, said, err);
		return XR_OK;
	case OPT_INT:
	case OPT_SIZE:
	case OPT_DURATION:
		return parse_number(o, at, said, err);
	case OPT_CHOICE:
		number = find_word(o->choices, text);
		break;
	case OPT_SIGNAL:
		number = signo_parse(text);
		number = number == 0 ? -1 : number;
		break;
	case OPT_TEXT:
		status = check_text(o, said, err);
		if (status != XR_OK)
			return status;
		memcpy(at, &text, sizeof(text));
		return XR_OK;
	case OPT_LIST:
		status = check_text(o, said, err);
		if (status != XR_OK)
			return status;
		return append(at, text, err);
	}
	if (number < 0)
		return opt_refuse(o, said, err);
	memcpy(at, &number, sizeof(number));
	return XR_OK;
}
