/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_tag.h - the value of XRUN_STDIO: which pipes are xrun's, and how a
 * program shall buffer what it writes into them.
 *
 *	tag  := pipe [ ',' pipe ] ';' mode        stdout's, then stderr's
 *	pipe := st_dev ':' st_ino                 decimal, as fstat(2) gives them
 *	mode := "line" | "none" | "full"
 *
 * The launcher writes it, the preloaded shim reads it. Everything is in this
 * header because the shim is linked with nothing, not even base. Nothing here
 * allocates or touches errno.
 */
#ifndef BASE_STDIO_TAG_H
#define BASE_STDIO_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STDIO_TAG_MAX 92 /* four numbers of 20 digits, marks, mode, 0 */

enum stdio_mode { STDIO_LINE, STDIO_NONE, STDIO_FULL };

struct stdio_pipe {
	uint64_t dev, ino;
};

struct stdio_tag {
	struct stdio_pipe out, err; /* err equals out where it was not named */
	enum stdio_mode mode;
};

/* A decimal number without sign; NULL if there is none or it is too large. */
static inline const char *
stdio_tag_number(const char *p, uint64_t *number)
{
	uint64_t n = 0;

	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return NULL;
	}
	*number = n;
	return p;
}

static inline const char *
stdio_tag_pipe(const char *p, struct stdio_pipe *pipe)
{
	p = stdio_tag_number(p, &pipe->dev);
	if (p == NULL || *p != ':')
		return NULL;
	return stdio_tag_number(p + 1, &pipe->ino);
}

static inline bool
stdio_tag_mode(const char *p, enum stdio_mode *mode)
{
	static const char names[3][5] = { "line", "none", "full" };
	int i, k;

	for (i = 0; i < 3; i++) {
		for (k = 0; k < 4 && p[k] == names[i][k]; k++)
			;
		if (k == 4 && p[4] == '\0') {
			*mode = (enum stdio_mode)i;
			return true;
		}
	}
	return false;
}

/* stdio_tag_parse() - read @text; false, with @tag untouched, if it is none. */
static inline bool
stdio_tag_parse(const char *text, struct stdio_tag *tag)
{
	struct stdio_tag t = { 0 };
	const char *p = stdio_tag_pipe(text, &t.out);

	if (p == NULL)
		return false;
	t.err = t.out;
	if (*p == ',')
		p = stdio_tag_pipe(p + 1, &t.err);
	if (p == NULL || *p != ';' || !stdio_tag_mode(p + 1, &t.mode))
		return false;
	*tag = t;
	return true;
}

static inline char *
stdio_tag_put(char *out, uint64_t n, char mark)
{
	char digits[20];
	int len = 0;

	do
		digits[len++] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	while (len > 0)
		*out++ = digits[--len];
	*out++ = mark;
	return out;
}

/* stdio_tag_format() - the text of @tag; both pipes are always named. */
static inline void
stdio_tag_format(const struct stdio_tag *tag, char out[STDIO_TAG_MAX])
{
	static const char names[3][5] = { "line", "none", "full" };
	int k;

	out = stdio_tag_put(out, tag->out.dev, ':');
	out = stdio_tag_put(out, tag->out.ino, ',');
	out = stdio_tag_put(out, tag->err.dev, ':');
	out = stdio_tag_put(out, tag->err.ino, ';');
	for (k = 0; k < 5; k++)
		out[k] = names[tag->mode][k];
}

#endif /* BASE_STDIO_TAG_H */
