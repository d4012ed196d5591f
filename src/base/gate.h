/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - the strict gate that JSON from outside passes before anybody reads
 * it, and a reader of what has passed.
 *
 * The gate reads the whole text once and keeps nothing. It refuses what cJSON
 * would let through: trailing rubbish, a key that stands twice in an object,
 * bad UTF-8, a byte order mark, numbers like 012, integers beyond 2^53 and reals
 * beyond double (1e999), \u0000, lone surrogates, depth beyond 32. Keys are
 * equal if they are after unescaping. Time is O(n log n) whatever the text.
 *
 * JSON with comments is JSON that people write: C and C++ comments, and a comma
 * before a closing bracket. The gate overwrites both with blanks, so what has
 * passed is JSON, and every byte of it where it was.
 *
 * The reader steps through an object or array without a tree, and says where
 * everything stands; it may only see a text that has passed.
 */
#ifndef BASE_GATE_H
#define BASE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "xrun/error.h"

#define GATE_DEPTH_MAX 32
#define GATE_MAX       (1 << 20) /* bytes, for whom nothing else is said */

/*
 * gate_check() - is @text one strict JSON value?
 *
 * @name:  what to call the text in the error: "job.json"
 * @text:  need not be terminated
 * Returns XR_OK, or XR_E_DECODE with "name:line:col: what is wrong" in @err,
 *         or XR_E_RANGE when larger than @max bytes or nested deeper than 32,
 *         or XR_E_NOMEM. Lines and columns as in gate_place()
 */
enum xr_status gate_check(const char *name, const char *text, size_t len,
	size_t max, struct xr_error *err);

/*
 * gate_check_commented() - the same for JSON with comments.
 *
 * @text: once it has passed, comments and commas without need are blanks:
 *        gate_check() would let it pass, too. Line ends stay. Unchanged if it
 *        is refused
 */
enum xr_status gate_check_commented(const char *name, char *text, size_t len,
	size_t max, struct xr_error *err);

/*
 * gate_place() - line and column of the byte at @at.
 *
 * Both count from 1, columns in characters; a carriage return takes none.
 */
struct gate_place {
	uint32_t line, column;
};

struct gate_place gate_place(const char *text, const char *at);

/* A value as it stands in the text: "12", "\"a\\n\"", "{...}". */
struct gate_item {
	struct span key; /* with its quotes; .at is NULL in arrays */
	struct span value;
};

/* Where a reader is. */
struct gate_walk {
	const char *at, *end;
};

/* gate_root() - the one value of a whole text. */
struct span gate_root(const char *text, size_t len);

/* gate_walk() - begin with the first item of @value, an object or array; of
 * any other value there are no items. */
struct gate_walk gate_walk(struct span value);

/* gate_next() - the next item; false if there is none. */
bool gate_next(struct gate_walk *walk, struct gate_item *item);

/* What a value is: its first character, with '0' for numbers. */
enum gate_kind {
	GATE_OBJECT = '{',
	GATE_ARRAY = '[',
	GATE_TEXT = '"',
	GATE_NUMBER = '0',
	GATE_TRUE = 't',
	GATE_FALSE = 'f',
	GATE_NULL = 'n',
};

enum gate_kind gate_kind(struct span value);

/*
 * gate_unescape() - what a text (or key) with its quotes says.
 *
 * @out: room for @text.len bytes; receives a terminated string
 * Returns its length; no NUL is in it
 */
size_t gate_unescape(struct span text, char *out);

#endif /* BASE_GATE_H */
