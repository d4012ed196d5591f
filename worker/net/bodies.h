/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bodies.h - memory for bodies of messages, counted and used again.
 *
 * Fresh memory costs a fault for every page that is written, more than it takes
 * to copy there; so what was given back waits for the next of its size, up to
 * BODIES_KEPT. Sizes are powers of two. Any thread.
 *
 * Buffers outlive whoever made them: what is given out when bodies_close() is
 * called is freed as it comes back, and the rest with the last of it. In a forked
 * child nothing happens to what was its parent's.
 */
#ifndef WORKER_NET_BODIES_H
#define WORKER_NET_BODIES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODIES_ALIGN   64
#define BODIES_LEAST   9  /* 512 bytes are the smallest size ... */
#define BODIES_MOST    24 /* ... and 16 MiB the largest that is kept */
#define BODIES_CLASSES (BODIES_MOST - BODIES_LEAST + 1)
#define BODIES_KEPT    (32 << 20) /* bytes that wait */

struct bodies;

/* Its data stands behind it. */
struct xr_body_buffer {
	struct bodies *from;
	struct xr_body_buffer *next; /* that waits, too */
	size_t cap;                  /* bytes of data */
	uint32_t refs;               /* atomic */
};

struct bodies {
	pthread_mutex_t lock;
	struct xr_body_buffer *waiting[BODIES_CLASSES];
	size_t kept; /* bytes of them */
	size_t out;  /* buffers that are given out */
	bool closed;
	unsigned generation; /* heir.h */
};

struct bodies *bodies_new(void);     /* NULL: no memory */
void bodies_close(struct bodies *b); /* NULL is fine */

/* bodies_get() - one with @len bytes at least, and one reference; NULL: no
 * memory. */
struct xr_body_buffer *bodies_get(struct bodies *b, uint64_t len);
struct xr_body_buffer *bodies_ref(struct xr_body_buffer *buffer);
void bodies_unref(struct xr_body_buffer *buffer); /* NULL is fine */

/* bodies_data() - where its bytes are, aligned to BODIES_ALIGN. */
static inline char *
bodies_data(struct xr_body_buffer *buffer)
{
	return (char *)buffer + BODIES_ALIGN;
}

#endif /* WORKER_NET_BODIES_H */
