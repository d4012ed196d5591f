/* SPDX-License-Identifier: Apache-2.0 */
/* escape.c - see escape.h. ECMA-48: CSI is ESC [ parameters final, strings
 * (OSC, DCS, SOS, PM, APC) end with BEL or ESC \. Each of these has a form of
 * one character, too, U+0080 to U+009F: c2 80 to c2 9f in UTF-8. */
#include "base/utf8.h"
#include "launcher/log/escape.h"

enum state {
	TEXT,
	ESC,        /* after ESC */
	CSI,        /* parameters were held back; see held() */
	STRING,     /* inside OSC and the like */
	STRING_ESC, /* ESC inside of it */
	CSI_SKIP, /* too long or not SGR: to be dropped up to its final byte */
	LEAD,     /* after c2 in text, which is held back */
	STRING_LEAD,    /* after c2 inside a string */
	LAST_OF_LETTER, /* a letter of UTF-8 has so many bytes to come */
	TWO_OF_LETTER,
	THREE_OF_LETTER,
	AFTER_E0, /* two and three, the first not so low */
	AFTER_F0,
	AFTER_E2, /* held back: it may begin a control of direction */
	AFTER_E2_80,
	AFTER_E2_81,
};

#define C2 ((char)0xc2)

/* A colour is put together again from its parameters, which the state cannot
 * hold: a sequence cut between two pieces is therefore dropped whole. */
static size_t
sgr_length(struct span data, size_t at)
{
	size_t i = at;

	while (i < data.len && i - at < 32 &&
		((data.at[i] >= '0' && data.at[i] <= '9') ||
			data.at[i] == ';' || data.at[i] == ':'))
		i++;
	return i < data.len && data.at[i] == 'm' ? i + 1 - at : 0;
}

/* On its own: from 80 to 9f only as a part of a letter. */
static bool
passes(unsigned char c)
{
	if (c < 0x20)
		return c == '\t' || c == '\n' || c == '\r';
	return c < 0x7f || c >= 0xa0;
}

/* Behind @c, which is no c2. */
static enum state
begin_letter(unsigned char c)
{
	if (c < 0xc2 || c > 0xf4)
		return TEXT;
	if (c < 0xe0)
		return LAST_OF_LETTER;
	if (c < 0xf0)
		return c == 0xe0 ? AFTER_E0 : TWO_OF_LETTER;
	return c == 0xf0 ? AFTER_F0 : THREE_OF_LETTER;
}

/* A letter that began with e2 does not end. Of its bytes only the first goes out:
 * the others could meet one that makes them a control of direction. */
static void
escape_give_up(struct buf *out, enum state *state)
{
	if (*state >= AFTER_E2)
		buf_put_char(out, (char)0xe2);
	*state = TEXT;
}

/* @c follows e2, or e2 and one more byte, which are held back. Returns false if
 * it is no part of the letter. */
static bool
escape_after_e2(struct buf *out, enum state *state, unsigned char c)
{
	const char letter[3] = { (char)0xe2,
		(char)(*state == AFTER_E2_81 ? 0x81 : 0x80), (char)c };

	if ((c & 0xc0) != 0x80) {
		escape_give_up(out, state);
		return false;
	}
	if (*state == AFTER_E2 && c <= 0x81) {
		*state = c == 0x80 ? AFTER_E2_80 : AFTER_E2_81;
	} else if (*state == AFTER_E2) {
		buf_put_char(out, letter[0]);
		buf_put_char(out, letter[2]);
		*state = LAST_OF_LETTER;
	} else {
		if (!utf8_is_bidi(letter))
			buf_put(out, letter, sizeof(letter));
		*state = TEXT;
	}
	return true;
}

/* Does @c go on with a letter? If not, the letter is given up. A form that is
 * longer than need be could hide a control character: it is none. */
static bool
continues(enum state *state, unsigned char c)
{
	enum state was = *state;

	if (was < LAST_OF_LETTER)
		return false;
	*state = TEXT;
	if ((c & 0xc0) != 0x80 || (was == AFTER_E0 && c < 0xa0) ||
		(was == AFTER_F0 && c < 0x90))
		return false;
	if (was == THREE_OF_LETTER || was == AFTER_F0)
		*state = TWO_OF_LETTER;
	else if (was != LAST_OF_LETTER)
		*state = LAST_OF_LETTER;
	return true;
}

static enum state
after_escape(char c)
{
	switch (c) {
	case '[':
		return CSI;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		return STRING;
	case ' ':
	case '#':
	case '%':
	case '(':
	case ')':
		return ESC; /* one more byte belongs to it */
	default:
		return TEXT;
	}
}

/* After c2: the control characters of 8 bits. */
static enum state
after_lead(unsigned char c)
{
	switch (c) {
	case 0x9b:
		return CSI;
	case 0x90:
	case 0x98:
	case 0x9d:
	case 0x9e:
	case 0x9f:
		return STRING;
	default:
		return TEXT;
	}
}

static enum state
in_string(char c)
{
	switch (c) {
	case '\a':
		return TEXT;
	case '\033':
		return STRING_ESC;
	case C2:
		return STRING_LEAD;
	default:
		return STRING;
	}
}

/* A byte that is not plain text; gives the new state. */
static enum state
step(enum state state, char c)
{
	switch (state) {
	case TEXT:
		return c == '\033' ? ESC : LEAD;
	case ESC:
		return c == '\033' ? ESC : after_escape(c);
	case CSI:
	case CSI_SKIP:
		return c >= 0x40 && c <= 0x7e ? TEXT : CSI_SKIP;
	case STRING:
		return in_string(c);
	case STRING_ESC:
		return c == '\\' ? TEXT : STRING;
	case LEAD:
		return after_lead((unsigned char)c);
	case STRING_LEAD:
		return (unsigned char)c == 0x9c ? TEXT : in_string(c);
	default:
		return TEXT;
	}
}

/* Nothing unfinished eats the next line. */
static void
end_line(struct buf *out, enum state *state)
{
	if (*state == LEAD)
		buf_put_char(out, C2);
	escape_give_up(out, state);
}

void
escape_end(struct buf *out, uint8_t *kept)
{
	enum state state = (enum state) * kept;

	end_line(out, &state);
	*kept = (uint8_t)state;
}

/* Is the byte for step(), and not for the reader? A c2 that begins no letter
 * goes out only together with the byte behind it: something that is dropped
 * between the two must not let it meet another. */
static bool
is_control(struct buf *out, enum state *state, char c)
{
	if (*state == LEAD && ((unsigned char)c & 0xe0) != 0x80) {
		if (c != C2 && passes((unsigned char)c))
			buf_put_char(out, C2);
		*state = TEXT;
	}
	if (*state >= LAST_OF_LETTER && (c == '\033' || c == C2))
		escape_give_up(out, state);
	return (*state != TEXT && *state < LAST_OF_LETTER) || c == '\033' ||
		c == C2;
}

/* Bytes of the letter at @at; 0: it is none, or a control of direction. */
static size_t
escape_letter(struct span data, size_t at)
{
	size_t step = utf8_step(data.at + at, data.len - at);

	return step == 3 && utf8_is_bidi(data.at + at) ? 0 : step;
}

/* Bytes from @at on that mean nothing to a terminal: most, and copied at once.
 */
static size_t
plain_run(struct span data, size_t at, bool narrow)
{
	size_t i = at, step = 1;

	for (; i < data.len && step > 0; i += step) {
		if ((signed char)data.at[i] >= 0)
			step = passes((unsigned char)data.at[i]);
		else if (!narrow && data.at[i] != C2)
			step = escape_letter(data, i);
		else
			step = 0;
	}
	return i - at;
}

/* A byte that is no part of a sequence, as far as it is for the reader. */
static void
put_byte(struct buf *out, enum state *state, char c, bool narrow)
{
	if (*state >= AFTER_E2 && escape_after_e2(out, state, (unsigned char)c))
		return;
	if (!continues(state, (unsigned char)c)) {
		if (!passes((unsigned char)c))
			return;
		if (!narrow && (unsigned char)c == 0xe2) {
			*state = AFTER_E2;
			return;
		}
		*state = narrow ? TEXT : begin_letter((unsigned char)c);
	}
	buf_put_char(out, c);
}

#define PARAM_MAX 255 /* the largest number that a colour has */

/* One of the parameters of a colour, with what separates it from the next. */
struct escape_param {
	const char *at;
	size_t len;
	unsigned number; /* what it begins with; at most PARAM_MAX + 1 */
	bool plain;      /* it is a number alone */
};

static struct escape_param
escape_next_param(const char *at)
{
	struct escape_param p = { .at = at };

	for (; at[p.len] >= '0' && at[p.len] <= '9'; p.len++) {
		p.number = p.number * 10 + (unsigned)(at[p.len] - '0');
		if (p.number > PARAM_MAX)
			p.number = PARAM_MAX + 1;
	}
	p.plain = p.len > 0 && (at[p.len] == ';' || at[p.len] == 'm');
	while (at[p.len] != ';' && at[p.len] != 'm')
		p.len++;
	return p;
}

/* 38, 48 or 58, with arguments behind it: 38;5;N or 38;2;R;G;B. With colons all of
 * it is one parameter. */
static bool
escape_is_indexed(struct escape_param p)
{
	return p.plain && (p.number == 38 || p.number == 48 || p.number == 58);
}

/* The length of the parameter @p, which escape_is_indexed(), and its arguments; 0 if
 * they are incomplete: terminals differ in what they make of the rest. @eight: an
 * argument is 8. */
static size_t
escape_indexed_length(struct escape_param p, bool *eight)
{
	struct escape_param next = p;
	int count = 1;

	for (int i = 0; i < count; i++) {
		if (next.at[next.len] != ';')
			return 0;
		next = escape_next_param(next.at + next.len + 1);
		if (!next.plain || next.number > PARAM_MAX)
			return 0;
		if (i == 0 && next.number != 5 && next.number != 2)
			return 0;
		if (i == 0)
			count = next.number == 5 ? 2 : 4;
		*eight = *eight || next.number == 8;
	}
	return (size_t)(next.at - p.at) + next.len;
}

/* A colour without the parameter 8, which hides text; @at ends with 'm'. A terminal
 * that does not know 58 takes its arguments for parameters. */
static void
escape_put_visible(struct buf *out, const char *at)
{
	size_t before = out->len;
	struct escape_param p;
	bool any = false, hides;

	for (;; at = p.at + p.len + 1) {
		p = escape_next_param(at);
		hides = p.number == 8;
		if (escape_is_indexed(p)) {
			p.len = escape_indexed_length(p, &hides);
			hides = hides && p.number == 58;
		}
		if (p.len == 0 && *at != ';' && *at != 'm')
			break;
		if (p.number > PARAM_MAX)
			break;
		if (!hides) {
			buf_put_text(out, any ? ";" : "\033[");
			buf_put(out, p.at, p.len);
			any = true;
		}
		if (p.at[p.len] == 'm') {
			if (any)
				buf_put_char(out, 'm');
			return;
		}
	}
	out->len = before; /* terminals would not agree on it */
}

/* A colour; its length, or 0 if none is there. */
static size_t
put_colour(struct buf *out, struct span data, size_t at)
{
	size_t sgr = sgr_length(data, at);

	if (sgr > 0)
		escape_put_visible(out, data.at + at);
	return sgr;
}

void
escape_filter(struct buf *out, struct span data, bool narrow, uint8_t *kept,
	bool *colored)
{
	enum state state = (enum state) * kept;
	size_t i = 0, some;

	while (i < data.len) {
		some = state == TEXT ? plain_run(data, i, narrow) : 0;
		buf_put(out, data.at + i, some);
		i += some;
		if (i == data.len)
			break;
		if (data.at[i] == '\n')
			end_line(out, &state);
		if (!is_control(out, &state, data.at[i])) {
			put_byte(out, &state, data.at[i++], narrow);
			continue;
		}
		some = state == CSI ? put_colour(out, data, i) : 0;
		if (some > 0) {
			*colored = true;
			state = TEXT;
			i += some;
			continue;
		}
		state = step(state, data.at[i++]);
	}
	*kept = (uint8_t)state;
}
