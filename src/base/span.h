/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - text from outside: a borrowed pointer and a length, no terminator.
 */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	const char *at;
	size_t len;
};

/* span_of() - all of @text; NULL gives an empty one. */
struct span span_of(const char *text);

/* span_is() - true if the span holds exactly @text. */
int span_is(struct span s, const char *text);

/* span_next() - cut the piece up to @sep (or the end) off the front of @rest.
 * After the last piece @rest->at is NULL; "" has one piece, an empty one. */
struct span span_next(struct span *rest, char sep);

/* span_count() - how many pieces span_next() will give. */
size_t span_count(struct span text, char sep);

/* span_fits() - is @text what the glob @pattern means? '*' is any bytes, '?' one;
 * all else is itself. */
bool span_fits(struct span pattern, struct span text);

/* number_parse() - decimal digits and nothing else, at most @max. */
bool number_parse(struct span text, uint32_t max, uint32_t *number);

/* QUOTED - print a span as a person can bear it: at most 60 bytes. */
#define QUOTED(s) (int)((s).len < 60 ? (s).len : 60), (s).at

#endif /* BASE_SPAN_H */
