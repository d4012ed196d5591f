/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - a long body, piece by piece through memory that both map, where the
 * reader may not read the writer's.
 *
 * Four windows of 64 KiB in the writer's arena, one after the other: the writer
 * fills them, the reader empties them, both at a time. How much is in each
 * follows from the length of the body alone, so nobody need be believed: a peer
 * that lies about how far it is damages the body.
 */
#ifndef WORKER_SHM_WINDOW_H
#define WORKER_SHM_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/transport.h>

#define WINDOW_SIZE  (64u << 10)
#define WINDOW_COUNT 4

struct window {
	_Alignas(128) _Atomic uint64_t fed;   /* windows filled; the writer's */
	_Alignas(128) _Atomic uint64_t taken; /* emptied; the reader's */
	_Alignas(128) unsigned char data[WINDOW_COUNT][WINDOW_SIZE];
};

/* One side of a transfer. */
struct window_end {
	struct window *window;
	uint64_t at;   /* windows passed since there are windows */
	uint64_t done; /* bytes of this body */
};

enum window_state {
	WINDOW_SAME,
	WINDOW_MOVED,  /* the other side has something to do */
	WINDOW_BROKEN, /* it says that it is where it cannot be */
};

/* window_feed() - fill what is empty, from @count parts of @len bytes in all. */
enum window_state window_feed(struct window_end *w, const struct xr_part *parts,
	uint32_t count, uint64_t len);

/* window_take() - empty what is full, into @to, of @len bytes in all. */
enum window_state window_take(struct window_end *w, void *to, uint64_t len);

/* window_skip() - empty all, of a body that is not fed any more. None is fine. */
void window_skip(struct window_end *w);

#endif /* WORKER_SHM_WINDOW_H */
