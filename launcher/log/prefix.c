/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.c - see prefix.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/brace.h"
#include "base/clock.h"
#include "base/status.h"
#include "launcher/log/prefix.h"

#define ROOM (PREFIX_MAX - 16) /* less what a colour takes */

#define NAME(field) [PREFIX_##field - PREFIX_RANK]

/* From PREFIX_RANK on. */
static const char *const names[] = {
	NAME(RANK) = "rank",
	NAME(LOCAL_RANK) = "local_rank",
	NAME(SIZE) = "size",
	NAME(HOST) = "host",
	NAME(JOB) = "job",
	NAME(PART) = "part",
	NAME(STREAM) = "stream",
	NAME(CLOCK) = "time",
	NAME(NAMES) = NULL,
};

/* What is wrong with the byte @at. */
static enum xr_status
wrong(struct xr_error *err, size_t at, const char *what)
{
	return fail(err, XR_E_INVAL, "byte %zu: %s", at, what);
}

static enum xr_status
add(struct prefix *p, const struct brace_piece *piece, bool braces,
	struct xr_error *err)
{
	enum prefix_name name = piece->name == BRACE_TEXT ?
		PREFIX_TEXT :
		(enum prefix_name)(piece->name + PREFIX_RANK);

	if (braces && p->braces++ == PREFIX_BRACES)
		return wrong(err, piece->at,
			"too many names and braces; 24 at most");
	if (name == PREFIX_CLOCK && prefix_has(p, PREFIX_CLOCK))
		return wrong(err, piece->at,
			"{time} is there already; once is all");
	p->piece[p->count++] = (struct prefix_piece){ name, piece->text };
	p->names |= 1u << name;
	return XR_OK;
}

static bool
is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

enum xr_status
prefix_parse(struct prefix *out, struct span f, struct xr_error *err)
{
	struct brace b = brace_of(f, names);
	struct brace_piece piece = { 0 };
	enum xr_status status = XR_OK;
	struct prefix p = { 0 };

	for (size_t i = 0; i < f.len; i++)
		if (is_control(f.at[i]))
			return wrong(err, i,
				"a control character; colours: --color");
	while (status == XR_OK && piece.name != BRACE_END) {
		status = brace_next(&b, &piece, err);
		if (status == XR_OK && piece.name != BRACE_END)
			status = add(&p, &piece,
				strchr("{}", f.at[piece.at]) != NULL, err);
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
