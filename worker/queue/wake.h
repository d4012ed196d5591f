/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake.h - a place in a queue's memory where processes sleep until something changes.
 *
 *	seen = wake_arm(w);                  from here on others ring
 *	if (nothing is there)                look again: what came before counts
 *		wake_sleep(w, seen, until);
 *
 * Who sleeps reads the number, arms, and looks; who has changed something looks whether it
 * is armed, steps the number, and wakes as many as it has something for. So a change is
 * either seen by the look, or has stepped the number since. Who wakes fewer than it could
 * have disarms, unless somebody armed meanwhile. Nobody counts the sleepers: one that is
 * killed would be counted for ever. Who is killed between a change and its ring is made up
 * for by who hears of its death (vigil.h).
 */
#ifndef WORKER_QUEUE_WAKE_H
#define WORKER_QUEUE_WAKE_H

#include "worker/queue/layout.h"

#define WAKE_ARMED 1u /* the rest of the word is how often */

/* wake_arm() - gives what wake_sleep() needs. */
uint32_t wake_arm(struct wake *w);

/* wake_sleep() - until somebody rings, or did since @seen; or @until, in ns of
 * CLOCK_MONOTONIC, INT64_MAX: never. Returns 0, also for nothing; ETIMEDOUT. */
int wake_sleep(struct wake *w, uint32_t seen, int64_t until);

/* wake_slow() - of an armed one, up to @count; wake_all() - whatever it says. */
void wake_slow(struct wake *w, uint32_t count);
void wake_all(struct wake *w);

/* wake_ring() - there is something for @count of those who sleep. Cost: a fence and a
 * load, where nobody does. */
static inline void
wake_ring(struct wake *w, uint32_t count)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (__builtin_expect((atomic_load_explicit(&w->armed,
				      memory_order_relaxed) &
				     WAKE_ARMED) != 0,
		    false))
		wake_slow(w, count);
}

#endif /* WORKER_QUEUE_WAKE_H */
