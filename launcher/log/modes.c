/* SPDX-License-Identifier: Apache-2.0 */
/* modes.c - see modes.h. Sequences: ECMA-48; DEC VT520; xterm's ctlseqs; the
 * keyboard protocol of kitty. */
#include <stdbool.h>
#include <string.h>

#include "launcher/log/modes.h"

enum state {
	TEXT,
	ESC,
	CHARSET, /* after ESC ( and ESC ): the next byte names it */
	CSI,
	STRING,     /* OSC, DCS and the like */
	STRING_ESC, /* ESC inside of it */
};

/* Either ends a sequence that is not whole. */
#define CAN '\030'
#define SUB '\032'

/* Switched by CSI h and CSI l: @number behind @private, of which @on is not as
 * terminals begin. */
struct row {
	char private;
	uint16_t number;
	char on;
	const char *off;
	bool kept; /* by DECSTR */
};

/* The order is that of modes_end(): first the screen, for what follows belongs
 * to each of the two in some terminals. */
static const struct row rows[] = {
	{ '?', 2026, 'h', "\033[?2026l", true }, /* synchronized output */
	{ '?', 1049, 'h', "\033[?1049l", true }, /* the other screen */
	{ '?', 1047, 'h', "\033[?1047l", true },
	{ '?', 47, 'h', "\033[?47l", true },
	{ '?', 1, 'h', "\033[?1l", false },   /* cursor keys of applications */
	{ '?', 5, 'h', "\033[?5l", true },    /* reverse screen */
	{ '?', 6, 'h', "\033[?6l", false },   /* origin at the region */
	{ '?', 7, 'l', "\033[?7h", false },   /* wrap */
	{ '?', 25, 'l', "\033[?25h", false }, /* cursor */
	{ '?', 66, 'h', "\033>", false },     /* keypad of applications */
	{ '?', 9, 'h', "\033[?9l", true },    /* mouse, in six ways */
	{ '?', 1000, 'h', "\033[?1000l", true },
	{ '?', 1001, 'h', "\033[?1001l", true },
	{ '?', 1002, 'h', "\033[?1002l", true },
	{ '?', 1003, 'h', "\033[?1003l", true },
	{ '?', 1004, 'h', "\033[?1004l", true }, /* focus */
	{ '?', 1005, 'h', "\033[?1005l", true }, /* forms of its words */
	{ '?', 1006, 'h', "\033[?1006l", true },
	{ '?', 1015, 'h', "\033[?1015l", true },
	{ '?', 1016, 'h', "\033[?1016l", true },
	{ '?', 2004, 'h', "\033[?2004l", true }, /* bracketed paste */
	{ 0, 4, 'h', "\033[4l", false },         /* insert */
	{ 0, 20, 'h', "\033[20l", false },       /* Return is two characters */
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What other sequences switch; behind the rows. */
enum other {
	KEYPAD = ROWS, /* ESC = */
	G0,            /* ESC ( 0: lines instead of letters */
	G1,
	SHIFTED, /* SO */
	REGION,  /* rows that scroll; putting it back moves the cursor */
	CURSOR,  /* its form */
	KEYS,    /* xterm's modifyOtherKeys */
	COLOR,
	OTHERS,
};

static const char *const others[OTHERS - ROWS] = {
	[KEYPAD - ROWS] = "\033>",
	[G0 - ROWS] = "\033(B",
	[G1 - ROWS] = "\033)B",
	[SHIFTED - ROWS] = "\017",
	[REGION - ROWS] = "\0337\033[r\0338",
	[CURSOR - ROWS] = "\033[0 q",
	[KEYS - ROWS] = "\033[>4m",
	[COLOR - ROWS] = "\033[0m",
};

_Static_assert(OTHERS <= 32, "a bit for each");

static void
set(struct modes *m, uint32_t bit, bool on)
{
	m->on = on ? m->on | 1u << bit : m->on & ~(1u << bit);
}

static void
switch_modes(struct modes *m, char final)
{
	for (uint32_t k = 0; k < m->count; k++)
		for (uint32_t i = 0; i < ROWS; i++)
			if (rows[i].private == (char)m->private &&
				rows[i].number == m->param[k])
				set(m, i, final == rows[i].on);
}

/* DECSTR leaves the screen, the mouse and the paste as they are. */
static void
soft_reset(struct modes *m)
{
	uint32_t on = 0;

	for (uint32_t i = 0; i < ROWS; i++)
		if (rows[i].kept)
			on |= m->on & 1u << i;
	m->on = on;
}

/* kitty's: a stack of what the keyboard sends. */
static void
push_keyboard(struct modes *m)
{
	unsigned n = m->count == 0 || m->param[0] == 0 ? 1 : m->param[0];

	if (m->private == '>' && m->keyboards < 99)
		m->keyboards++;
	else if (m->private == '<')
		m->keyboards = n >= m->keyboards ? 0 : m->keyboards - n;
}

/* Plain is "0" alone: behind others it may be a colour's number. */
static void
set_color(struct modes *m)
{
	if (m->private == 0)
		set(m, COLOR, m->count > 1 || m->param[0] != 0);
	else if (m->private == '>' && m->param[0] == 4)
		set(m, KEYS, m->count > 1 && m->param[1] != 0);
}

static void
end_csi(struct modes *m, char final)
{
	if (m->between == ' ' && final == 'q')
		set(m, CURSOR, m->param[0] != 0);
	else if (m->between == '!' && final == 'p')
		soft_reset(m);
	else if (m->between != 0)
		return;
	else if (final == 'h' || final == 'l')
		switch_modes(m, final);
	else if (final == 'm')
		set_color(m);
	else if (final == 'r' && m->private == 0)
		set(m, REGION, m->count > 0);
	else if (final == 'u')
		push_keyboard(m);
}

/* A digit, or the end of a parameter. */
static void
add_param(struct modes *m, char c)
{
	uint16_t *last;

	if (m->count == 0)
		m->param[m->count++] = 0;
	if (m->count > MODES_PARAMS)
		return;
	last = &m->param[m->count - 1];
	if (c == ';' || c == ':')
		m->param[m->count++] = 0;
	else
		*last = (uint16_t)(*last % 6553 * 10 + (c - '0'));
}

static enum state
in_csi(struct modes *m, char c)
{
	if (c >= '0' && c <= ';') {
		add_param(m, c);
	} else if (c >= '<' && c <= '?') {
		m->private = (uint8_t)c;
	} else if (c >= ' ' && c <= '/') {
		m->between = (uint8_t)c;
	} else if (c >= '@' && c <= '~') {
		end_csi(m, c);
		return TEXT;
	} else if (c == '\033') {
		return ESC;
	}
	return CSI;
}

static enum state
after_escape(struct modes *m, char c)
{
	switch (c) {
	case '[':
		m->private = m->between = m->count = 0;
		m->param[0] = 0;
		return CSI;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		return STRING;
	case '(':
	case ')':
		m->between = (uint8_t)c;
		return CHARSET;
	case '=':
	case '>':
		set(m, KEYPAD, c == '=');
		return TEXT;
	case 'c': /* all is as at the beginning */
		m->on = m->keyboards = 0;
		return TEXT;
	case '\033':
		return ESC;
	default:
		return TEXT;
	}
}

static enum state
step(struct modes *m, char c)
{
	if (c == CAN || c == SUB)
		return TEXT;
	switch ((enum state)m->state) {
	case TEXT:
		if (c == '\016' || c == '\017')
			set(m, SHIFTED, c == '\016');
		return c == '\033' ? ESC : TEXT;
	case ESC:
		return after_escape(m, c);
	case CHARSET:
		set(m, m->between == '(' ? G0 : G1, c != 'B');
		return TEXT;
	case CSI:
		return in_csi(m, c);
	case STRING:
		return c == '\a' ? TEXT : c == '\033' ? STRING_ESC : STRING;
	case STRING_ESC:
		return c == '\\' ? TEXT : after_escape(m, c);
	}
	return TEXT;
}

void
modes_follow(struct modes *m, struct span data)
{
	for (size_t i = 0; i < data.len; i++) {
		unsigned char c = (unsigned char)data.at[i];

		if (m->state != TEXT || c == '\033' || c == '\016' ||
			c == '\017')
			m->state = (uint8_t)step(m, (char)c);
	}
}

static size_t
put(char *out, size_t at, const char *text)
{
	size_t len = strlen(text);

	if (at + len > MODES_END_MAX)
		return at;
	memcpy(out + at, text, len);
	return at + len;
}

size_t
modes_end(struct modes *m, char out[static MODES_END_MAX])
{
	char pop[] = "\033[<00u";
	size_t len = 0;

	/* Half a sequence would eat what follows. */
	if (m->state != TEXT)
		len = put(out, len, m->state >= STRING ? "\033\\" : "\030");
	if (m->keyboards > 0) {
		pop[3] = (char)('0' + m->keyboards / 10);
		pop[4] = (char)('0' + m->keyboards % 10);
		len = put(out, len, pop);
	}
	for (uint32_t i = 0; i < OTHERS; i++)
		if ((m->on & 1u << i) != 0)
			len = put(out, len,
				i < ROWS ? rows[i].off : others[i - ROWS]);
	*m = (struct modes){ 0 };
	return len;
}
