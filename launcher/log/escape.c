/* SPDX-License-Identifier: Apache-2.0 */
/* escape.c - see escape.h. ECMA-48: CSI is ESC [ parameters final, strings
 * (OSC, DCS, SOS, PM, APC) end with BEL or ESC \. */
#include "launcher/log/escape.h"

enum state {
	TEXT,
	ESC,        /* after ESC */
	CSI,        /* parameters were held back; see held() */
	STRING,     /* inside OSC and the like */
	STRING_ESC, /* ESC inside of it */
	CSI_SKIP, /* too long or not SGR: to be dropped up to its final byte */
};

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

/* A byte that is not plain text; gives the new state. */
static enum state
step(enum state state, char c)
{
	switch (state) {
	case TEXT:
		return c == '\033' ? ESC : TEXT;
	case ESC:
		return c == '\033' ? ESC : after_escape(c);
	case CSI:
	case CSI_SKIP:
		return c >= 0x40 && c <= 0x7e ? TEXT : CSI_SKIP;
	case STRING:
		return c == '\a' ? TEXT : c == '\033' ? STRING_ESC : STRING;
	case STRING_ESC:
		return c == '\\' ? TEXT : STRING;
	}
	return TEXT;
}

void
escape_filter(struct buf *out, struct span data, uint8_t *kept, bool *colored)
{
	enum state state = (enum state) * kept;
	size_t i = 0, sgr;

	while (i < data.len) {
		if (data.at[i] == '\n')
			state = TEXT; /* nothing unfinished eats a line */
		if (state == TEXT && data.at[i] != '\033') {
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
