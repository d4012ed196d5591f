/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h. Widths: UAX #11, East Asian Width, Unicode 15. */
#include <stdbool.h>

#include "base/utf8.h"
#include "launcher/log/rows.h"

struct range {
	uint32_t from, to;
	int width;
};

/* Whole blocks of letters and marks without anything that combines. */
static const struct range ranges[] = {
	{ 0xa1, 0xac, 1 },
	{ 0xae, 0x2ff, 1 },
	{ 0x370, 0x482, 1 },
	{ 0x48a, 0x52f, 1 },
	{ 0x2010, 0x2027, 1 },
	{ 0x2030, 0x205e, 1 },
	{ 0x20a0, 0x20bf, 1 },
	{ 0x2190, 0x2199, 1 },
	{ 0x2200, 0x22ff, 1 },
	{ 0x2500, 0x25a0, 1 },
	{ 0x3041, 0x3096, 2 },
	{ 0x30a1, 0x30fa, 2 },
	{ 0x4e00, 0x9fff, 2 },
	{ 0xac00, 0xd7a3, 2 },
	{ 0xff01, 0xff60, 2 },
};

#define COUNT (sizeof(ranges) / sizeof(ranges[0]))

/* 0: unknown. */
static int
width_of(uint32_t code)
{
	for (size_t i = 0; i < COUNT && code >= ranges[i].from; i++)
		if (code <= ranges[i].to)
			return ranges[i].width;
	return 0;
}

/* The character of @len bytes at @p. */
static uint32_t
decode(const char *p, size_t len)
{
	static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code = (unsigned char)p[0] & first[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)p[i] & 0x3f);
	return code;
}

/* Bytes of a whole SGR sequence at @p; 0: there is none. */
static size_t
sequence(const char *p, size_t len)
{
	size_t i = 2;

	if (len < 2 || p[0] != '\033' || p[1] != '[')
		return 0;
	while (i < len && p[i] >= '0' && p[i] <= ';')
		i++;
	return i < len && p[i] == 'm' ? i + 1 : 0;
}

static struct span
behind(struct span line, size_t at)
{
	return (struct span){ line.at + at, line.len - at };
}

/* Bytes of the character at the beginning; @width 0: unknown. */
static size_t
character(struct span line, uint32_t col, uint32_t cols, int *width)
{
	unsigned char c = (unsigned char)line.at[0];
	size_t step;

	*width = 1;
	if (c >= 0x20 && c <= 0x7e)
		return 1;
	/* Within a row tabs are plain; at its end each has its own way. */
	*width = c == '\t' && col / 8 * 8 + 8 < cols ? (int)(8 - col % 8) : 0;
	if (c < 0x80)
		return 1;
	step = utf8_step(line.at, line.len);
	*width = step == 0 ? 0 : width_of(decode(line.at, step));
	return step;
}

uint32_t
rows_of(struct span line, uint32_t cols)
{
	uint32_t rows = 1, col = 0;
	size_t i = 0, step;
	int width;

	while (i < line.len) {
		step = sequence(line.at + i, line.len - i);
		if (step > 0) {
			i += step;
			continue;
		}
		step = character(behind(line, i), col, cols, &width);
		if (width == 0 || (uint32_t)width > cols)
			return 0;
		if (col + (uint32_t)width > cols) {
			rows++;
			col = 0;
		}
		col += (uint32_t)width;
		i += step;
	}
	return rows;
}

size_t
rows_clip(struct span line, uint32_t cols)
{
	size_t i = 0, step;
	uint32_t seen = 0;

	while (i < line.len) {
		step = sequence(line.at + i, line.len - i);
		if (step == 0 && seen++ == cols)
			break;
		if (step == 0)
			step = utf8_step(line.at + i, line.len - i);
		i += step == 0 ? 1 : step;
	}
	return i;
}
