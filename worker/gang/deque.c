/* SPDX-License-Identifier: Apache-2.0 */
/* deque.c - see deque.h. */
#include <stdlib.h>

#include "worker/gang/deque.h"

#define FIRST 256 /* tasks; a power of two */

static struct deque_ring *
ring_new(int64_t size)
{
	struct deque_ring *ring =
		malloc(sizeof(*ring) + (size_t)size * sizeof(ring->task[0]));

	if (ring == NULL)
		return NULL;
	ring->older = NULL;
	ring->mask = size - 1;
	return ring;
}

bool
deque_init(struct deque *d)
{
	struct deque_ring *ring = ring_new(FIRST);

	atomic_init(&d->top, 0);
	atomic_init(&d->bottom, 0);
	atomic_init(&d->ring, ring);
	return ring != NULL;
}

void
deque_fini(struct deque *d)
{
	struct deque_ring *ring = atomic_load(&d->ring), *older;

	for (; ring != NULL; ring = older) {
		older = ring->older;
		free(ring);
	}
}

bool
deque_grow(struct deque *d)
{
	struct deque_ring *old = atomic_load(&d->ring), *new;
	int64_t b = atomic_load(&d->bottom), t = atomic_load(&d->top);

	new = ring_new(2 * (old->mask + 1));
	if (new == NULL)
		return false;
	for (int64_t i = t; i < b; i++)
		atomic_store_explicit(&new->task[i & new->mask],
			atomic_load_explicit(&old->task[i & old->mask],
				memory_order_relaxed),
			memory_order_relaxed);
	new->older = old;
	atomic_store_explicit(&d->ring, new, memory_order_release);
	return true;
}
