/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deque.h - tasks of one seat: who sits there puts and takes at one end, the newest
 * first, others take the oldest at the other end.
 *
 * Who sits there needs no lock, and races with others for the last one only. It grows;
 * what it was before stays until its end, since others may still look there.
 *
 * Source   Chase and Lev, Dynamic Circular Work-Stealing Deque, 2005; Lê and others,
 *          Correct and Efficient Work-Stealing for Weak Memory Models, 2013
 */
#ifndef WORKER_GANG_DEQUE_H
#define WORKER_GANG_DEQUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gang_task;

struct deque_ring {
	struct deque_ring *older;
	int64_t mask;
	_Atomic(struct gang_task *) task[];
};

struct deque {
	_Alignas(128) _Atomic int64_t top;    /* the oldest; others take it */
	_Alignas(128) _Atomic int64_t bottom; /* one beyond the newest */
	_Atomic(struct deque_ring *) ring;
};

/* deque_init() - false: no memory. */
bool deque_init(struct deque *d);
void deque_fini(struct deque *d);

/* deque_grow() - room for twice as many; false: no memory, nothing changed. */
bool deque_grow(struct deque *d);

/* deque_empty() - is it, for this moment? Anybody. */
static inline bool
deque_empty(struct deque *d)
{
	return atomic_load(&d->bottom) <= atomic_load(&d->top);
}

/* deque_push() - false: no memory. A look at who sleeps may follow at once: the store is
 * seen by all before it. */
static inline bool
deque_push(struct deque *d, struct gang_task *task)
{
	int64_t b = atomic_load_explicit(&d->bottom, memory_order_relaxed);
	int64_t t = atomic_load_explicit(&d->top, memory_order_acquire);
	struct deque_ring *ring =
		atomic_load_explicit(&d->ring, memory_order_relaxed);

	if (b - t > ring->mask) {
		if (!deque_grow(d))
			return false;
		ring = atomic_load_explicit(&d->ring, memory_order_relaxed);
	}
	atomic_store_explicit(&ring->task[b & ring->mask], task,
		memory_order_relaxed);
	atomic_store(&d->bottom, b + 1);
	return true;
}

/* deque_pop() - the newest; NULL. */
static inline struct gang_task *
deque_pop(struct deque *d)
{
	int64_t b = atomic_load_explicit(&d->bottom, memory_order_relaxed) - 1;
	struct deque_ring *ring =
		atomic_load_explicit(&d->ring, memory_order_relaxed);
	struct gang_task *task = NULL;
	int64_t t;

	if (b < atomic_load_explicit(&d->top, memory_order_relaxed))
		return NULL;
	atomic_store(&d->bottom, b);
	t = atomic_load(&d->top);
	if (t <= b)
		task = atomic_load_explicit(&ring->task[b & ring->mask],
			memory_order_relaxed);
	if (t < b)
		return task;
	if (t == b && !atomic_compare_exchange_strong(&d->top, &t, t + 1))
		task = NULL;
	atomic_store_explicit(&d->bottom, b + 1, memory_order_release);
	return task;
}

/* deque_steal() - the oldest, by anybody; NULL: none, or another one was faster. */
static inline struct gang_task *
deque_steal(struct deque *d)
{
	int64_t t = atomic_load(&d->top);
	struct deque_ring *ring;
	struct gang_task *task;

	if (t >= atomic_load(&d->bottom))
		return NULL;
	ring = atomic_load_explicit(&d->ring, memory_order_acquire);
	task = atomic_load_explicit(&ring->task[t & ring->mask],
		memory_order_relaxed);
	return atomic_compare_exchange_strong(&d->top, &t, t + 1) ? task : NULL;
}

#endif /* WORKER_GANG_DEQUE_H */
