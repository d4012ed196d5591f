/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - the gate of gate.h: a reader by RFC 8259 that keeps nothing but the
 * places of the keys, to find doubles. The reader of what passed: gate_read.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/gate_inner.h"
#include "base/status.h"
#include "base/utf8.h"

#define EXACT_MAX  (UINT64_C(1) << 53)
#define REAL_MAX   308 /* DBL_MAX is 1.7976931348623157e308 */
#define REAL_FIRST UINT64_C(17976931348623157)
#define TEN_TO_16  UINT64_C(10000000000000000)
#define DIGITS     "0123456789"

/* A key as it stands in the text, without its quotes. */
struct key {
	const char *at;
	size_t len;
};

struct gate {
	const char *name;
	const char *text, *end, *p;
	struct key *keys; /* of all open objects, outer ones first */
	size_t n, cap;
	unsigned depth;
	bool commented; /* comments and a last comma are let through */
	struct xr_error *err;
};

static enum xr_status value(struct gate *g);

/* Fail at @at, a byte of the text or its end. */
static enum xr_status
bad(struct gate *g, enum xr_status status, const char *at, const char *what)
{
	struct gate_place place = gate_place(g->text, at);

	return fail(g->err, status, "%s:%u:%u: %s", g->name, place.line,
		place.column, what);
}

static bool
begins_comment(const struct gate *g)
{
	return g->end - g->p > 1 && g->p[0] == '/' &&
		(g->p[1] == '/' || g->p[1] == '*');
}

static enum xr_status
bad_here(struct gate *g, const char *what)
{
	if (g->p == g->end)
		what = "the text ends too early";
	else if (begins_comment(g))
		what = g->commented ?
			"a comment that does not end, or is not plain UTF-8" :
			"a comment, which this JSON may not have";
	return bad(g, XR_E_DECODE, g->p, what);
}

static bool
next_is(const struct gate *g, char c)
{
	return g->p < g->end && *g->p == c;
}

/* Stops at a comment that is none, for bad_here() to name. */
static void
skip_blanks(struct gate *g)
{
	const char *behind;

	for (;;) {
		while (g->p < g->end && gate_is_blank(*g->p))
			g->p++;
		behind = g->commented ? gate_comment(g->p, g->end) : NULL;
		if (behind == NULL)
			return;
		g->p = behind;
	}
}

/* The size of a number: digits times ten to the exponent. */
struct decimal {
	uint64_t digits;
	int64_t exponent;
};

/* At least one digit of @d; each one behind the point costs a power of ten. */
static bool
digits(struct gate *g, struct decimal *d, bool behind)
{
	const char *from = g->p;

	for (; g->p < g->end && *g->p >= '0' && *g->p <= '9'; g->p++) {
		if (d->digits > EXACT_MAX) { /* the rest weighs nothing */
			d->exponent += !behind;
			continue;
		}
		d->digits = d->digits * 10 + (uint64_t)(*g->p - '0');
		d->exponent -= behind;
	}
	return g->p > from;
}

/* Behind the e: a sign and digits, added to @d's exponent. */
static bool
exponent(struct gate *g, struct decimal *d)
{
	bool minus = next_is(g, '-');
	struct decimal power = { 0 };

	g->p += minus || next_is(g, '+');
	if (!digits(g, &power, false))
		return false;
	if (power.digits > EXACT_MAX)
		power.digits = EXACT_MAX;
	d->exponent += minus ? -(int64_t)power.digits : (int64_t)power.digits;
	return true;
}

/* Returns true if it is more than a double holds; its 17 first digits decide. */
static bool
beyond_real(struct decimal d)
{
	int64_t power = d.exponent;
	uint64_t first = d.digits;

	if (first == 0)
		return false;
	for (uint64_t rest = first; rest >= 10; rest /= 10)
		power++;
	while (first < TEN_TO_16)
		first *= 10;
	return power > REAL_MAX || (power == REAL_MAX && first > REAL_FIRST);
}

static enum xr_status
number(struct gate *g)
{
	struct decimal d = { 0 };
	const char *from = g->p;
	bool whole = true;

	g->p += next_is(g, '-');
	if (next_is(g, '0') && g->p + 1 < g->end &&
		memchr(DIGITS, g->p[1], 10) != NULL)
		return bad(g, XR_E_DECODE, from, "a number with a leading 0");
	if (!digits(g, &d, false))
		return bad_here(g, "expected a digit");
	if (next_is(g, '.')) {
		g->p++;
		whole = false;
		if (!digits(g, &d, true))
			return bad_here(g, "expected a digit after the point");
	}
	if (next_is(g, 'e') || next_is(g, 'E')) {
		g->p++;
		whole = false;
		if (!exponent(g, &d))
			return bad_here(g, "expected a digit in the exponent");
	}
	if (whole && d.digits > EXACT_MAX)
		return bad(g, XR_E_DECODE, from, "an integer beyond 2^53");
	if (!whole && beyond_real(d))
		return bad(g, XR_E_DECODE, from, "a number beyond 1.8e308");
	return XR_OK;
}

/* Four hexadecimal digits at @p, or UINT32_MAX. */
static uint32_t
hex4(const char *p, const char *end)
{
	static const char set[] = "0123456789abcdef0123456789ABCDEF";
	uint32_t code = 0;
	const char *digit;

	if (end - p < 4)
		return UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		digit = memchr(set, p[i], 32);
		if (digit == NULL)
			return UINT32_MAX;
		code = code << 4 | ((uint32_t)(digit - set) & 15u);
	}
	return code;
}

uint32_t
gate_escape(const char **p, const char *end)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meaning[] = "\"\\/\b\f\n\r\t";
	const char *at = *p + 1, *letter;
	uint32_t code, low;

	if (at == end)
		return UINT32_MAX;
	if (*at != 'u') {
		*p = at + 1;
		letter = memchr(letters, *at, sizeof(letters) - 1);
		return letter == NULL ? UINT32_MAX :
					(uint32_t)meaning[letter - letters];
	}
	code = hex4(at + 1, end);
	if (code == UINT32_MAX)
		return UINT32_MAX;
	*p = at + 5;
	if (code == 0 || (code >= 0xdc00 && code <= 0xdfff))
		return UINT32_MAX;
	if (code < 0xd800 || code > 0xdbff)
		return code;
	if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
		return UINT32_MAX;
	low = hex4(*p + 2, end);
	*p += 6;
	if (low < 0xdc00 || low > 0xdfff)
		return UINT32_MAX;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static enum xr_status
string(struct gate *g, struct key *out)
{
	const char *at;
	size_t step;

	for (at = ++g->p; !next_is(g, '"'); g->p += step) {
		const char *from = g->p;

		step = 0;
		if (g->p == g->end)
			return bad_here(g, "");
		if (*g->p == '\\') {
			if (gate_escape(&g->p, g->end) == UINT32_MAX)
				return bad(g, XR_E_DECODE, from,
					"an escape that means nothing, or no character");
			continue;
		}
		if ((unsigned char)*g->p < 0x20)
			return bad_here(g, "a control character in a string");
		step = utf8_step(g->p, (size_t)(g->end - g->p));
		if (step == 0)
			return bad_here(g, "not UTF-8");
	}
	if (out != NULL)
		*out = (struct key){ .at = at, .len = (size_t)(g->p - at) };
	g->p++;
	return XR_OK;
}

/* The next byte of a key after unescaping; -1 at its end. @held keeps rest. */
struct bytes {
	const char *p, *end;
	char held[4];
	size_t n, at;
};

static int
next_byte(struct bytes *b)
{
	if (b->at < b->n)
		return (unsigned char)b->held[b->at++];
	if (b->p == b->end)
		return -1;
	if (*b->p != '\\')
		return (unsigned char)*b->p++;
	b->n = utf8_put(gate_escape(&b->p, b->end), b->held);
	b->at = 1;
	return (unsigned char)b->held[0];
}

static int
compare_keys(const struct key *a, const struct key *b)
{
	struct bytes x = { .p = a->at, .end = a->at + a->len };
	struct bytes y = { .p = b->at, .end = b->at + b->len };
	int cx, cy;

	do {
		cx = next_byte(&x);
		cy = next_byte(&y);
	} while (cx == cy && cx != -1);
	return cx - cy;
}

/* qsort: by bytes, and equal ones as they stand in the text. */
static int
by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = compare_keys(x, y);

	if (order != 0)
		return order;
	return x->at < y->at ? -1 : x->at > y->at;
}

static enum xr_status
bad_twice(struct gate *g, const struct key *key)
{
	struct gate_place place = gate_place(g->text, key->at - 1);
	int shown = key->len < 60 ? (int)key->len : 60;

	return fail(g->err, XR_E_DECODE, "%s:%u:%u: the key \"%.*s%s\" again",
		g->name, place.line, place.column, shown, key->at,
		(size_t)shown < key->len ? "..." : "");
}

/* The object whose keys are those from @base on has ended. */
static enum xr_status
check_keys(struct gate *g, size_t base)
{
	const struct key *twice = NULL;
	enum xr_status status = XR_OK;

	if (g->n - base > 1)
		qsort(g->keys + base, g->n - base, sizeof(*g->keys), by_key);
	for (size_t i = base + 1; i < g->n; i++)
		if (compare_keys(&g->keys[i - 1], &g->keys[i]) == 0 &&
			(twice == NULL || g->keys[i].at < twice->at))
			twice = &g->keys[i];
	if (twice != NULL)
		status = bad_twice(g, twice);
	g->n = base;
	return status;
}

static enum xr_status
add_key(struct gate *g, struct key key)
{
	struct key *grown;

	if (g->n == g->cap) {
		g->cap = g->cap == 0 ? 32 : g->cap * 2;
		grown = reallocarray(g->keys, g->cap, sizeof(*grown));
		if (grown == NULL)
			return fail(g->err, XR_E_NOMEM, "%s: out of memory",
				g->name);
		g->keys = grown;
	}
	g->keys[g->n++] = key;
	return XR_OK;
}

/* "key": before a value of an object. */
static enum xr_status
member(struct gate *g)
{
	enum xr_status status;
	struct key key;

	if (!next_is(g, '"'))
		return bad_here(g, "expected a key in double quotes");
	status = string(g, &key);
	if (status == XR_OK)
		status = add_key(g, key);
	if (status != XR_OK)
		return status;
	skip_blanks(g);
	if (!next_is(g, ':'))
		return bad_here(g, "expected ':'");
	g->p++;
	skip_blanks(g);
	return XR_OK;
}

/* An object or an array; @close is its last character. */
static enum xr_status
container(struct gate *g, char close)
{
	enum xr_status status = XR_OK;
	size_t base = g->n;

	if (g->depth == GATE_DEPTH_MAX)
		return bad(g, XR_E_RANGE, g->p, "nested deeper than 32");
	g->depth++;
	g->p++;
	skip_blanks(g);
	for (bool first = true; !next_is(g, close) || !first; first = false) {
		if (close == '}')
			status = member(g);
		if (status == XR_OK)
			status = value(g);
		if (status != XR_OK)
			return status;
		skip_blanks(g);
		if (next_is(g, close))
			break;
		if (!next_is(g, ','))
			return bad_here(g,
				close == '}' ? "expected ',' or '}'" :
					       "expected ',' or ']'");
		g->p++;
		skip_blanks(g);
		if (g->commented && next_is(g, close))
			break;
	}
	g->p++;
	g->depth--;
	return check_keys(g, base);
}

static enum xr_status
word(struct gate *g)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		if ((size_t)(g->end - g->p) >= len &&
			memcmp(g->p, words[i], len) == 0) {
			g->p += len;
			return XR_OK;
		}
	}
	return bad_here(g, "expected a value");
}

static enum xr_status
value(struct gate *g)
{
	if (next_is(g, '{'))
		return container(g, '}');
	if (next_is(g, '['))
		return container(g, ']');
	if (next_is(g, '"'))
		return string(g, NULL);
	if (g->p < g->end && memchr("-" DIGITS, *g->p, 11) != NULL)
		return number(g);
	return word(g);
}

static enum xr_status
check(struct gate *g, size_t len, size_t max)
{
	enum xr_status status;

	if (len > max)
		return fail(g->err, XR_E_RANGE, "%s: larger than %zu bytes",
			g->name, max);
	g->p = g->text;
	g->end = g->text + len;
	if (len >= 3 && memcmp(g->text, "\xef\xbb\xbf", 3) == 0)
		return bad(g, XR_E_DECODE, g->text, "a byte order mark");
	skip_blanks(g);
	status = value(g);
	if (status == XR_OK) {
		skip_blanks(g);
		if (g->p != g->end)
			status = bad_here(g, "more text after the value");
	}
	free(g->keys);
	return status;
}

enum xr_status
gate_check(const char *name, const char *text, size_t len, size_t max,
	struct xr_error *err)
{
	struct gate g = { .name = name, .text = text, .err = err };

	return check(&g, len, max);
}

enum xr_status
gate_check_commented(const char *name, char *text, size_t len, size_t max,
	struct xr_error *err)
{
	struct gate g = {
		.name = name,
		.text = text,
		.commented = true,
		.err = err,
	};
	enum xr_status status = check(&g, len, max);

	if (status == XR_OK)
		gate_blank(text, len);
	return status;
}
