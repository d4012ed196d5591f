/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brace.h - texts with names in braces, taken apart: "{host}/run-{job}".
 *
 * One rule wherever a person writes such a text (--prefix, --template,
 * --log-dir): "{name}" is a name of those that are known there, "{{" and "}}"
 * are braces of the text, and anything else with a brace is refused, with its
 * byte and with what would be right. Pure; nothing is allocated, and pieces
 * borrow from the text.
 */
#ifndef BASE_BRACE_H
#define BASE_BRACE_H

#include "base/buf.h"
#include "xrun/error.h"

#define BRACE_TEXT (-1)
#define BRACE_END  (-2)

struct brace_piece {
	int name;         /* index of the name, or BRACE_TEXT, BRACE_END */
	size_t at;        /* byte of the text at which it begins */
	struct span text; /* of BRACE_TEXT: what it says, never empty */
};

/* A reader; all fields are its own. */
struct brace {
	struct span all;
	size_t at;
	const char *const *names; /* NULL-terminated */
};

/* brace_of() - read @text from its beginning. */
struct brace brace_of(struct span text, const char *const *names);

/*
 * brace_next() - the next piece. After the last comes BRACE_END, for ever.
 *
 * Returns  XR_OK; XR_E_INVAL: a name that is not known, or a brace alone
 */
enum xr_status brace_next(struct brace *brace, struct brace_piece *piece,
	struct xr_error *err);

/* brace_check() - all of @text. Returns as brace_next(). */
enum xr_status brace_check(struct span text, const char *const *names,
	struct xr_error *err);

/* brace_has() - does the name of this index occur in @text? */
bool brace_has(struct span text, const char *const *names, int name);

#endif /* BASE_BRACE_H */
