/* SPDX-License-Identifier: Apache-2.0 */
/* gate_read.c - see gate.h: reading a text that has passed the gate. */
#include <string.h>

#include "base/gate.h"
#include "base/gate_inner.h"
#include "base/utf8.h"

struct gate_place
gate_place(const char *text, const char *at)
{
	struct gate_place place = { .line = 1, .column = 1 };

	for (const char *p = text; p < at; p++) {
		if (*p == '\n') {
			place.line++;
			place.column = 1;
		} else if (((unsigned char)*p & 0xc0) != 0x80 && *p != '\r') {
			place.column++;
		}
	}
	return place;
}

/* What a comment consists of. */
static size_t
comment_step(const char *p, const char *end)
{
	if ((unsigned char)*p < 0x20 && !gate_is_blank(*p))
		return 0;
	return utf8_step(p, (size_t)(end - p));
}

const char *
gate_comment(const char *p, const char *end)
{
	bool lines;
	size_t step;

	if (end - p < 2 || p[0] != '/' || (p[1] != '/' && p[1] != '*'))
		return NULL;
	lines = p[1] == '*';
	for (p += 2; p < end; p += step) {
		if (!lines && *p == '\n')
			return p;
		if (lines && *p == '*' && end - p > 1 && p[1] == '/')
			return p + 2;
		step = comment_step(p, end);
		if (step == 0)
			return NULL;
	}
	return lines ? NULL : end;
}

/* Behind the text at @p, which begins and ends with a quote: the first that no
 * backslash escapes. Long ones have none. */
static const char *
skip_text(const char *p)
{
	const char *end = rawmemchr(++p, '"');

	while ((p = memchr(p, '\\', (size_t)(end - p))) != NULL) {
		p += 2;
		if (p > end)
			end = rawmemchr(p, '"');
	}
	return end + 1;
}

/* A character stays a column: of those of several bytes all but the first
 * become a carriage return, a blank that takes none. */
static void
blank_comment(char *p, const char *end)
{
	for (; p < end; p++) {
		if (((unsigned char)*p & 0xc0) == 0x80)
			*p = '\r';
		else if (!gate_is_blank(*p))
			*p = ' ';
	}
}

void
gate_blank(char *text, size_t len)
{
	char *p = text, *comma = NULL;
	const char *end = text + len, *behind;

	while (p < end) {
		behind = gate_comment(p, end);
		if (behind != NULL) {
			blank_comment(p, behind);
			p += behind - p;
			continue;
		}
		if (comma != NULL && (*p == '}' || *p == ']'))
			*comma = ' ';
		if (!gate_is_blank(*p))
			comma = *p == ',' ? p : NULL;
		p += *p == '"' ? skip_text(p) - p : 1;
	}
}

static const char *
skip_blanks(const char *p, const char *end)
{
	while (p < end && gate_is_blank(*p))
		p++;
	return p;
}

static bool
ends_word(char c)
{
	return gate_is_blank(c) || c == ',' || c == '}' || c == ']';
}

/* Behind the value at @p. */
static const char *
skip_value(const char *p, const char *end)
{
	unsigned depth = 0;

	if (*p == '"')
		return skip_text(p);
	if (*p != '{' && *p != '[') {
		while (p < end && !ends_word(*p))
			p++;
		return p;
	}
	do {
		if (*p == '"') {
			p = skip_text(p);
			continue;
		}
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
	} while (depth > 0);
	return p;
}

struct span
gate_root(const char *text, size_t len)
{
	const char *at = skip_blanks(text, text + len);
	const char *end = skip_value(at, text + len);

	return (struct span){ .at = at, .len = (size_t)(end - at) };
}

struct gate_walk
gate_walk(struct span value)
{
	struct gate_walk walk = { .at = value.at, .end = value.at + value.len };

	if (*value.at != '{' && *value.at != '[')
		walk.at = walk.end;
	else
		walk.at = skip_blanks(value.at + 1, --walk.end);
	return walk;
}

/* At the beginning of an item, or of the comma before it. */
bool
gate_next(struct gate_walk *walk, struct gate_item *item)
{
	const char *p = walk->at, *from;

	if (p == walk->end)
		return false;
	if (*p == ',')
		p = skip_blanks(p + 1, walk->end);
	*item = (struct gate_item){ 0 };
	from = p;
	p = skip_value(p, walk->end);
	item->value = (struct span){ .at = from, .len = (size_t)(p - from) };
	p = skip_blanks(p, walk->end);
	if (p < walk->end && *p == ':') {
		item->key = item->value;
		from = skip_blanks(p + 1, walk->end);
		p = skip_value(from, walk->end);
		item->value.at = from;
		item->value.len = (size_t)(p - from);
		p = skip_blanks(p, walk->end);
	}
	walk->at = p;
	return true;
}

enum gate_kind
gate_kind(struct span value)
{
	char c = *value.at;

	return c == '-' || (c >= '0' && c <= '9') ? GATE_NUMBER :
						    (enum gate_kind)c;
}

size_t
gate_unescape(struct span text, char *out)
{
	const char *p = text.at + 1, *end = text.at + text.len - 1;
	char *to = out;

	while (p < end) {
		if (*p == '\\')
			to += utf8_put(gate_escape(&p, end), to);
		else
			*to++ = *p++;
	}
	*to = '\0';
	return (size_t)(to - out);
}
