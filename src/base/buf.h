/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - growing bytes with an error that sticks.
 *
 * A buf is written at the end. The first failure (no memory, limit passed) is
 * kept in `bad`; later calls do nothing. Code that puts thirty pieces together
 * therefore looks once, at the end, and cannot forget one.
 *
 * After every call data[len] is 0 (if anything was ever written), so text can
 * be handed to libc; the bytes themselves may hold NULs. One owner, one thread.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "xrun/status.h"

struct buf {
	char *data;         /* NULL until the first byte */
	size_t len;         /* bytes written */
	size_t cap;         /* bytes allocated */
	size_t max;         /* limit on len; 0 means none */
	enum xr_status bad; /* first failure, or XR_OK */
};

void buf_put(struct buf *b, const void *data, size_t len);
void buf_put_text(struct buf *b, const char *text);
void buf_put_char(struct buf *b, char c);
void buf_fmt(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* buf_room() - room for @len more bytes, counted as written; NULL if bad. */
char *buf_room(struct buf *b, size_t len);

/* buf_text() - the bytes as text; "" while empty. Borrowed till the next put. */
const char *buf_text(const struct buf *b);

/* buf_clear() - empty again, memory kept, `bad` forgotten. */
void buf_clear(struct buf *b);
void buf_fini(struct buf *b);

#endif /* BASE_BUF_H */
