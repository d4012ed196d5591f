/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - see base64.h. */
#include <stdint.h>

#include "base/base64.h"

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
base64_len(size_t len)
{
	return (len + 2) / 3 * 4;
}

void
base64_put(struct span bytes, char *out)
{
	const unsigned char *p = (const unsigned char *)bytes.at;
	size_t n = bytes.len;

	for (; n >= 3; n -= 3, p += 3) {
		uint32_t w = (uint32_t)p[0] << 16 | p[1] << 8 | p[2];

		*out++ = digits[w >> 18];
		*out++ = digits[w >> 12 & 63];
		*out++ = digits[w >> 6 & 63];
		*out++ = digits[w & 63];
	}
	if (n > 0) {
		uint32_t w = (uint32_t)p[0] << 16 | (n > 1 ? p[1] << 8 : 0);

		*out++ = digits[w >> 18];
		*out++ = digits[w >> 12 & 63];
		*out++ = n > 1 ? digits[w >> 6 & 63] : '=';
		*out++ = '=';
	}
	*out = '\0';
}

static int
digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* The bits of @n digits, or -1. */
static int32_t
read_digits(const char *p, size_t n)
{
	int32_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		int d = digit_of(p[i]);

		if (d < 0)
			return -1;
		bits = bits << 6 | d;
	}
	return bits;
}

bool
base64_get(struct span text, char *out, size_t *len)
{
	const char *p = text.at;
	size_t n = text.len, pad = 0;
	char *begin = out;
	int32_t w;

	if (n % 4 != 0)
		return false;
	while (pad < 2 && pad < n && p[n - 1 - pad] == '=')
		pad++;
	for (; n > (pad > 0 ? 4 : 0); n -= 4, p += 4) {
		w = read_digits(p, 4);
		if (w < 0)
			return false;
		*out++ = (char)(w >> 16);
		*out++ = (char)(w >> 8);
		*out++ = (char)w;
	}
	if (pad > 0) {
		w = read_digits(p, 4 - pad);
		if (w < 0 || (w & (pad == 1 ? 3 : 15)) != 0)
			return false;
		w >>= pad == 1 ? 2 : 4;
		if (pad == 1)
			*out++ = (char)(w >> 8);
		*out++ = (char)w;
	}
	*len = (size_t)(out - begin);
	return true;
}
