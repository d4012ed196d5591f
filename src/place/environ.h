/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environ.h - looking things up in an environment that was handed in.
 *
 * Nothing in place/ reads the environment of the process: who calls says which
 * variables count, so every rule can be tested with a list on the stack.
 */
#ifndef PLACE_ENVIRON_H
#define PLACE_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* environ_get() - the value of the first @name, or NULL. @vars may be NULL. */
const char *environ_get(char *const *vars, const char *name);

/* environ_name() - the name in front of the '='; all of it if there is none. */
struct span environ_name(const char *entry);

/* number_parse() - decimal digits and nothing else, at most @max. */
bool number_parse(struct span text, uint32_t max, uint32_t *number);

/* span_next() - cut the piece up to @sep (or the end) off the front of @rest.
 * After the last piece @rest->at is NULL; "" has one piece, an empty one. */
struct span span_next(struct span *rest, char sep);

/* span_of() - all of @text; NULL gives an empty one. */
struct span span_of(const char *text);

/* span_count() - how many pieces span_next() will give. */
size_t span_count(struct span text, char sep);

/* span_fits() - is @text what the glob @pattern means? '*' is any bytes, '?' one;
 * all else is itself. */
bool span_fits(struct span pattern, struct span text);

/* QUOTED - print a span as a person can bear it: at most 60 bytes. */
#define QUOTED(s) (int)((s).len < 60 ? (s).len : 60), (s).at

#endif /* PLACE_ENVIRON_H */
