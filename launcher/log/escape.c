/* SPDX-License-Identifier: Apache-2.0 */
/* escape.c - see escape.h. ECMA-48: CSI is ESC [ parameters final, strings
 * (OSC, DCS, SOS, PM, APC) end with BEL or ESC \. Each of these has a form of
 * one character, too, U+0080 to U+009F: c2 80 to c2 9f in UTF-8. */
#include "launcher/log/escape.h"

enum state {
	TEXT,
	ESC,        /* after ESC */
	CSI,        /* parameters were held back; see held() */
	STRING,     /* inside OSC and the like */
	STRING_ESC, /* ESC inside of it */
	CSI_SKIP, /* too long or not SGR: to be dropped up to its final byte */
	LEAD,     /* after c2 in text, which is held back */
	STRING_LEAD, /* after c2 inside a string */
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

static bool
passes(unsigned char c)
{
	return c >= 0x20 ? c != 0x7f : c == '\t' || c == '\n' || c == '\r';
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
	}
	return TEXT;
}

/* Nothing unfinished eats the next line. */
static void
end_line(struct buf *out, enum state *state)
{
	if (*state == LEAD)
		buf_put_char(out, C2);
	*state = TEXT;
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
	return *state != TEXT || c == '\033' || c == C2;
}

/* Bytes from @at on that mean nothing to a terminal: most, and copied at once.
 */
static size_t
plain_run(struct span data, size_t at)
{
	size_t i = at;

	while (i < data.len && data.at[i] != C2 &&
		passes((unsigned char)data.at[i]))
		i++;
	return i - at;
}

void
escape_filter(struct buf *out, struct span data, uint8_t *kept, bool *colored)
{
	enum state state = (enum state) * kept;
	size_t i = 0, sgr, run;

	while (i < data.len) {
		run = state == TEXT ? plain_run(data, i) : 0;
		if (run > 0) {
			buf_put(out, data.at + i, run);
			i += run;
			continue;
		}
		if (data.at[i] == '\n')
			end_line(out, &state);
		if (!is_control(out, &state, data.at[i])) {
			if (passes((unsigned char)data.at[i]))
				buf_put_char(out, data.at[i]);
			i++;
			continue;
		}
		sgr = state == CSI ? sgr_length(data, i) : 0;
		if (sgr != 0) {
			buf_put(out, "\033[", 2);
			buf_put(out, data.at + i, sgr);
			*colored = true;
			state = TEXT;
			i += sgr;
			continue;
		}
		state = step(state, data.at[i++]);
	}
	*kept = (uint8_t)state;
}
