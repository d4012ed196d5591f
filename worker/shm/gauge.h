/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge.h - where this process says how its pools and queues are: segment/gauge.h.
 *
 * A row is its owner's, whose threads write it, and who shows it when all of
 * it is there. Outside of a job there are none, nor in a child of fork(), nor where
 * another process of the rank has them: who has no row tells nobody. A rank without a slot
 * sends the supervisor memory to look into, once.
 */
#ifndef WORKER_SHM_GAUGE_H
#define WORKER_SHM_GAUGE_H

#include "segment/gauge.h"

/* What a row is of. */
struct gauge_of {
	enum gauge_kind kind;
	const char *name; /* cut, and numbered where another live one has it */
	int fd;           /* of the memory */
	uint32_t parts, room;
	uint64_t at, stride;
};

/* gauge_send_by() - how the supervisor is sent memory, where there is no segment: @send gives
 * false, if it was not. Before any other thread. */
void gauge_send_by(bool (*send)(int fd));

/* gauge_new() - a row, which is shown; NULL: there is none. Any thread. */
struct gauge_row *gauge_new(const struct gauge_of *of);

/* gauge_rename() - of a queue: it has this name from now on. NULL is fine. Any thread. */
void gauge_rename(struct gauge_row *row, const char *name);

/* gauge_name() - what it is called now. Any thread. */
void gauge_name(const struct gauge_row *row, char name[GAUGE_NAME]);

/* gauge_free() - it is no more: what has been counted stays. NULL is fine. Any thread. */
void gauge_free(struct gauge_row *row);

/* gauge_set(), gauge_add() - a word that one thread at a time writes. */
static inline void
gauge_set(_Atomic uint64_t *word, uint64_t n)
{
	atomic_store_explicit(word, n, memory_order_relaxed);
}

static inline void
gauge_add(_Atomic uint64_t *word, uint64_t n)
{
	gauge_set(word, atomic_load_explicit(word, memory_order_relaxed) + n);
}

/* gauge_count() - one that any thread writes, but only so. */
static inline void
gauge_count(_Atomic uint64_t *word, uint64_t n)
{
	atomic_fetch_add_explicit(word, n, memory_order_relaxed);
}

#endif /* WORKER_SHM_GAUGE_H */
