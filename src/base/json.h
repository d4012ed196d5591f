/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - writing JSON into a buf. The gate for JSON from outside: gate.h.
 *
 * Values are put in order, commas and colons come by themselves.
 * A struct json holds only the nesting; the text goes straight to the buf,
 * whose sticky error is the only error. Text that is not UTF-8 is written with
 * U+FFFD for each bad byte. No newline is written. Integers beyond 2^53 are
 * written as text, since a reader's double cannot hold them; what is written
 * so passes the gate. Opening deeper than 32 fails the buf, XR_E_RANGE.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "xrun/error.h"

#define JSON_DEPTH_MAX 32

struct json {
	struct buf *out;
	uint32_t depth;
	/* whether a value already stands at each depth */
	bool some[JSON_DEPTH_MAX + 1];
};

void json_init(struct json *j, struct buf *out);
void json_open_object(struct json *j, const char *key); /* key NULL in arrays */
void json_open_array(struct json *j, const char *key);
void json_close_object(struct json *j);
void json_close_array(struct json *j);
/* json_text() - NULL is written as null. */
void json_text(struct json *j, const char *key, const char *value);
void json_bytes(struct json *j, const char *key, struct span value);
/* json_items() - texts, up to NULL, into the array that is open. */
void json_items(struct json *j, char *const *texts);
void json_int(struct json *j, const char *key, int64_t value);
void json_real(struct json *j, const char *key, double value); /* nan: null */
void json_bool(struct json *j, const char *key, bool value);
/* json_raw() - a value as it stands, which has passed the gate or was made
 * here. A line break in it becomes a blank. */
void json_raw(struct json *j, const char *key, struct span value);

#endif /* BASE_JSON_H */
