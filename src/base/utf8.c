/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - see utf8.h. */
#include <stdlib.h>
#include <string.h>
#include <termios.h>

#include "base/utf8.h"

size_t
utf8_step(const char *p, size_t len)
{
	/* the least code point that needs 2, 3 and 4 bytes */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)p;
	uint32_t code;
	size_t n;

	if (len == 0)
		return 0;
	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	n = 2u + (u[0] >= 0xe0) + (u[0] >= 0xf0);
	if (n > len)
		return 0;
	code = u[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (u[i] & 0x3fu);
	}
	if (code < least[n] || code > 0x10ffff ||
		(code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

bool
utf8_is_bidi(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return u[0] == 0xe2 &&
		((u[1] == 0x80 && u[2] >= 0xaa && u[2] <= 0xae) ||
			(u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9));
}

void
utf8_tame(char *text, bool narrow)
{
	unsigned char *p = (unsigned char *)text;
	size_t left = strlen(text), step;

	for (; left > 0; p += step, left -= step) {
		step = utf8_step((const char *)p, left);
		if (narrow || step == 0)
			step = 1;
		if (step > 1) {
			/* U+0080 to U+009F are c2 80 to c2 9f. */
			if (*p == 0xc2 && p[1] < 0xa0)
				p[0] = p[1] = '?';
			if (step == 3 && utf8_is_bidi((const char *)p))
				p[0] = p[1] = p[2] = '?';
		} else if ((*p < 0x20 && *p != '\t' && *p != '\n') ||
			(*p >= 0x7f && *p < 0xa0)) {
			*p = '?';
		}
	}
}

const char *
utf8_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL;

	for (int i = 0; i < 3 && (value == NULL || value[0] == '\0'); i++)
		value = getenv(names[i]);
	return value;
}

bool
utf8_spoken(void)
{
	const char *name = utf8_locale();

	return name != NULL &&
		(strcasestr(name, "utf-8") != NULL ||
			strcasestr(name, "utf8") != NULL);
}

bool
utf8_narrow(int fd)
{
	const char *name = utf8_locale();
	struct termios mode;

	return name != NULL && strchr(name, '.') != NULL && !utf8_spoken() &&
		tcgetattr(fd, &mode) == 0 && (mode.c_iflag & IUTF8) == 0;
}

size_t
utf8_put(uint32_t code, char out[4])
{
	size_t n = 1;

	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	n += code >= 0x80;
	n += code >= 0x800;
	n += code >= 0x10000;
	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)((0xf00u >> n & 0xf0u) | code);
	return n;
}
