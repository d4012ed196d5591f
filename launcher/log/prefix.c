/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.c - see prefix.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/log/prefix.h"

#define ROOM (PREFIX_MAX - 16) /* less what a colour takes */

static const char *const names[PREFIX_NAMES] = {
	[PREFIX_TEXT] = "",
	[PREFIX_RANK] = "rank",
	[PREFIX_LOCAL_RANK] = "local_rank",
	[PREFIX_SIZE] = "size",
	[PREFIX_HOST] = "host",
	[PREFIX_JOB] = "job",
	[PREFIX_PART] = "part",
	[PREFIX_STREAM] = "stream",
	[PREFIX_CLOCK] = "time",
};

static const char all_names[] =
	"{rank} {local_rank} {size} {host} {job} {part} {stream} {time}";

/* PREFIX_TEXT: it is none. */
static enum prefix_name
find_name(struct span name)
{
	for (int i = PREFIX_TEXT + 1; i < PREFIX_NAMES; i++)
		if (span_is(name, names[i]))
			return (enum prefix_name)i;
	return PREFIX_TEXT;
}

/* What is wrong with the byte @at. */
static enum xr_status
wrong(struct xr_error *err, size_t at, const char *what)
{
	return fail(err, XR_E_INVAL, "byte %zu: %s", at, what);
}

static enum xr_status
add(struct prefix *p, struct prefix_piece piece, size_t at,
	struct xr_error *err)
{
	if (piece.name == PREFIX_TEXT && piece.text.len == 0)
		return XR_OK;
	if (p->count == PREFIX_PIECES)
		return wrong(err, at, "too many pieces; 24 at most");
	if (piece.name == PREFIX_CLOCK && prefix_has(p, PREFIX_CLOCK))
		return wrong(err, at, "{time} is there already; once is all");
	p->piece[p->count++] = piece;
	p->names |= 1u << piece.name;
	return XR_OK;
}

/* The brace at @at: a name, or one half of a doubled one. @next: behind it. */
static enum xr_status
parse_brace(struct prefix *p, struct span f, size_t at, size_t *next,
	struct xr_error *err)
{
	const char *begin = f.at + at, *end;
	struct prefix_piece piece = { .name = PREFIX_TEXT };

	*next = at + 2;
	piece.text = (struct span){ begin, 1 };
	if (at + 1 < f.len && begin[1] == begin[0])
		return add(p, piece, at, err);
	if (begin[0] == '}')
		return wrong(err, at, "a '}' alone; one of the text is }}");
	end = memchr(begin, '}', f.len - at);
	if (end == NULL)
		return wrong(err, at,
			"'{' without its '}'; one of the text is {{");
	piece.text = (struct span){ begin + 1, (size_t)(end - begin) - 1 };
	piece.name = find_name(piece.text);
	*next = at + piece.text.len + 2;
	if (piece.name == PREFIX_TEXT)
		return fail(err, XR_E_INVAL,
			"byte %zu: '{%.*s}' is not one of %s", at,
			piece.text.len > 40 ? 40 : (int)piece.text.len,
			piece.text.at, all_names);
	return add(p, piece, at, err);
}

static bool
is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

enum xr_status
prefix_parse(struct prefix *out, struct span f, struct xr_error *err)
{
	struct prefix p = { 0 };
	enum xr_status status = XR_OK;
	size_t at = 0, from;

	for (size_t i = 0; i < f.len; i++)
		if (is_control(f.at[i]))
			return wrong(err, i,
				"a control character; colours: --color");
	while (at < f.len && status == XR_OK) {
		from = at;
		while (at < f.len && f.at[at] != '{' && f.at[at] != '}')
			at++;
		status = add(&p,
			(struct prefix_piece){
				.text = { f.at + from, at - from } },
			from, err);
		if (status == XR_OK && at < f.len)
			status = parse_brace(&p, f, at, &at, err);
	}
	if (status == XR_OK)
		*out = p;
	return status;
}

bool
prefix_has(const struct prefix *p, enum prefix_name name)
{
	return (p->names & 1u << name) != 0;
}

static void
put(struct line_prefix *out, const char *at, size_t len)
{
	/* Counted all the same, for the words. */
	if (out->len + len < PREFIX_MAX)
		memcpy(out->text + out->len, at, len);
	out->len = out->len + len > UINT16_MAX ? UINT16_MAX :
						 (uint16_t)(out->len + len);
}

static void
put_value(struct line_prefix *out, const char *value)
{
	put(out, value == NULL ? "" : value, value == NULL ? 0 : strlen(value));
}

static void
put_blank_clock(struct line_prefix *out)
{
	put(out, "00:00:00.000", PREFIX_TIME);
	out->time = out->len;
}

static void
put_pieces(const struct prefix *p, const char *const values[PREFIX_NAMES],
	struct line_prefix *out)
{
	for (uint32_t i = 0; i < p->count; i++) {
		const struct prefix_piece *piece = &p->piece[i];

		if (piece->name == PREFIX_TEXT)
			put(out, piece->text.at, piece->text.len);
		else if (piece->name == PREFIX_CLOCK)
			put_blank_clock(out);
		else
			put_value(out, values[piece->name]);
	}
}

enum xr_status
prefix_make(const struct prefix *p, const char *const values[PREFIX_NAMES],
	const char *color, struct line_prefix *out, struct xr_error *err)
{
	struct line_prefix made = { 0 };
	uint16_t sequence;

	if (color != NULL) {
		put(&made, "\033[", 2);
		put_value(&made, color);
		put(&made, "m", 1);
	}
	sequence = made.len;
	if (p->time_first) {
		put_blank_clock(&made);
		put(&made, " ", 1);
	}
	put_pieces(p, values, &made);
	if (made.len - sequence > ROOM)
		return fail(err, XR_E_RANGE,
			"%u bytes before each line; %d at most",
			made.len - sequence, ROOM);
	if (made.len == sequence)
		made.len = 0;
	else if (color != NULL)
		put(&made, "\033[0m", 4);
	*out = made;
	return XR_OK;
}

const char *
prefix_clock(struct prefix_clock *c, int64_t wall)
{
	int64_t second = wall / NS_PER_S;
	unsigned ms = (unsigned)(wall % NS_PER_S / NS_PER_MS);
	struct tm tm = { 0 };
	time_t t = (time_t)second;

	if (second != c->second || c->text[0] == '\0') {
		localtime_r(&t, &tm);
		snprintf(c->text, sizeof(c->text), "%02u:%02u:%02u.",
			(unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
			(unsigned)tm.tm_sec % 100);
		c->second = second;
	}
	c->text[9] = (char)('0' + ms / 100);
	c->text[10] = (char)('0' + ms / 10 % 10);
	c->text[11] = (char)('0' + ms % 10);
	return c->text;
}
