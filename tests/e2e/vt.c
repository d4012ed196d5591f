/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vt.c - what a terminal would show: reads what was written to one from stdin,
 * and prints its rows, those that scrolled away first.
 *
 *   vt [-c COLSxROWS] [-l]
 *
 * As xterm does it, as far as xrun uses it: CR, LF, CUU, ED and EL to the end,
 * SGR (which is left out), DECAWM, tabs, and a wrap that waits for the next
 * character. Every character of UTF-8 is one column. With -l, rows that were
 * filled to the last column go on in the next: long lines are one line.
 *
 * Ends with 1 and a word about a sequence that it does not know.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

struct cell {
	char text[5]; /* one character; "" is a blank */
};

struct row {
	struct cell *cell;
	bool wraps; /* the next row continues it */
};

static unsigned cols = 80, rows = 24;
static struct row *row; /* all of them; the last @rows are the screen */
static unsigned count, x, y;
static bool wrap = true, join;

static struct row *
row_at(unsigned at)
{
	while (at >= count) {
		row = xrealloc(row, (count + 1) * sizeof(*row));
		row[count++] = (struct row){
			.cell = xcalloc(cols, sizeof(struct cell)),
		};
	}
	return &row[at];
}

/* The first row of the screen. */
static unsigned
top(void)
{
	return count > rows ? count - rows : 0;
}

static void
line_feed(void)
{
	y++;
	row_at(y);
}

static void
put(const char *text)
{
	if (x == cols && wrap) {
		row_at(y)->wraps = true;
		line_feed();
		x = 0;
	}
	if (x == cols)
		x--;
	snprintf(row_at(y)->cell[x++].text, 5, "%s", text);
}

static void
erase_row(unsigned at, unsigned from)
{
	memset(row_at(at)->cell + from, 0, (cols - from) * sizeof(struct cell));
	row_at(at)->wraps = false;
}

static void
unknown(const char *what, const char *text)
{
	fprintf(stderr, "vt: unknown %s '%s'\n", what, text);
	exit(1);
}

/* What follows ESC [ */
static void
sequence(const char *text, char last)
{
	unsigned n = (unsigned)strtoul(text, NULL, 10);
	unsigned from = x < cols ? x : cols - 1;

	if (last == 'm')
		return;
	if (last == 'A') {
		n = n == 0 ? 1 : n;
		y = y - top() < n ? top() : y - n;
		x = from;
	} else if (last == 'K' && n == 0) {
		erase_row(y, from);
	} else if (last == 'J' && n == 0) {
		erase_row(y, from);
		for (unsigned i = y + 1; i < count; i++)
			erase_row(i, 0);
	} else if ((last == 'l' || last == 'h') && strcmp(text, "?7") == 0) {
		wrap = last == 'h';
	} else {
		unknown("sequence", text);
	}
}

static void
read_sequence(void)
{
	char text[32] = "";
	unsigned n = 0;
	int c = getchar();

	if (c != '[')
		unknown("escape", "");
	while ((c = getchar()) != EOF && (c < 0x40 || c > 0x7e))
		if (n + 1 < sizeof(text))
			text[n++] = (char)c;
	if (c != EOF)
		sequence(text, (char)c);
}

static void
read_character(int c)
{
	char text[5] = { (char)c };
	int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0;

	for (int i = 1; i <= more; i++)
		text[i] = (char)getchar();
	put(text);
}

static void
take(int c)
{
	if (c == '\r')
		x = 0;
	else if (c == '\n')
		line_feed();
	else if (c == '\t')
		x = x / 8 * 8 + 8 < cols ? x / 8 * 8 + 8 : cols - 1;
	else if (c == 033)
		read_sequence();
	else
		read_character(c);
}

static void
print(void)
{
	unsigned last;

	for (unsigned i = 0; i < count; i++) {
		for (last = cols; last > 0; last--)
			if (row[i].cell[last - 1].text[0] != '\0')
				break;
		for (unsigned k = 0; k < last; k++)
			fputs(row[i].cell[k].text[0] == '\0' ?
					" " :
					row[i].cell[k].text,
				stdout);
		if (i + 1 < count && !(join && row[i].wraps))
			putchar('\n');
	}
	putchar('\n');
}

int
main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "c:l")) != -1) {
		if (c == 'l')
			join = true;
		else if (c != 'c' || sscanf(optarg, "%ux%u", &cols, &rows) != 2)
			return 2;
	}
	row_at(0);
	while ((c = getchar()) != EOF)
		take(c);
	print();
	return 0;
}
