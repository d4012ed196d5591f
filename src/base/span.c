/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - see span.h. */
#include <string.h>

#include "base/span.h"

struct span
span_of(const char *text)
{
	return (struct span){
		.at = text,
		.len = text == NULL ? 0 : strlen(text),
	};
}

int
span_is(struct span s, const char *text)
{
	return strlen(text) == s.len && memcmp(s.at, text, s.len) == 0;
}

struct span
span_next(struct span *rest, char sep)
{
	struct span piece = *rest;
	const char *end = memchr(rest->at, sep, rest->len);

	if (end == NULL) {
		*rest = (struct span){ 0 };
		return piece;
	}
	piece.len = (size_t)(end - piece.at);
	rest->at = end + 1;
	rest->len -= piece.len + 1;
	return piece;
}

size_t
span_count(struct span text, char sep)
{
	size_t count = 1;

	for (size_t i = 0; i < text.len; i++)
		count += text.at[i] == sep;
	return count;
}

/* After a '*' that failed, it takes a byte more and all behind it is tried
 * again; an earlier one need never take more. */
bool
span_fits(struct span pattern, struct span text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

	while (t < text.len) {
		if (p < pattern.len && pattern.at[p] == '*') {
			star = p++;
			from = t;
		} else if (p < pattern.len &&
			(pattern.at[p] == '?' || pattern.at[p] == text.at[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.at[p] == '*')
		p++;
	return p == pattern.len;
}

bool
number_parse(struct span text, uint32_t max, uint32_t *number)
{
	uint64_t value = 0;

	if (text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text.at[i] - '0');
		if (value > max)
			return false;
	}
	*number = (uint32_t)value;
	return true;
}
