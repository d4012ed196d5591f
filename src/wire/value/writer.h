/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the head of a message while it grows; inside of src/wire/value only.
 *
 * As struct buf, but that most heads need no memory of their own, and that a
 * number costs one comparison. The first failure is kept in `bad`.
 */
#ifndef WIRE_VALUE_WRITER_H
#define WIRE_VALUE_WRITER_H

#include <stddef.h>

#include "wire/value/format.h"

#define WRITER_FIRST 448 /* bytes; so that with its record it fits 8 lines */

struct writer {
	uint8_t *at; /* @first, or the heap */
	size_t len, cap;
	enum xr_status bad;
	uint8_t first[WRITER_FIRST];
};

void writer_init(struct writer *w);
void writer_fini(struct writer *w);

/* writer_grow() - as writer_room(), where there is none. */
uint8_t *writer_grow(struct writer *w, size_t len);

/* writer_room() - @len bytes more, to be written to; NULL if bad. */
static inline uint8_t *
writer_room(struct writer *w, size_t len)
{
	uint8_t *p = w->at + w->len;

	if (len > w->cap - w->len)
		return writer_grow(w, len);
	w->len += len;
	return p;
}

static inline void
writer_put8(struct writer *w, uint8_t u)
{
	uint8_t *p = writer_room(w, 1);

	if (p != NULL)
		*p = u;
}

static inline void
writer_put32(struct writer *w, uint32_t u)
{
	uint8_t *p = writer_room(w, 4);

	if (p != NULL)
		format_put32(p, u);
}

static inline void
writer_put64(struct writer *w, uint64_t u)
{
	uint8_t *p = writer_room(w, 8);

	if (p != NULL)
		format_put64(p, u);
}

static inline void
writer_put(struct writer *w, const void *data, size_t len)
{
	uint8_t *p = writer_room(w, len);

	if (p != NULL && len > 0)
		memcpy(p, data, len);
}

#endif /* WIRE_VALUE_WRITER_H */
