/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiter.h - a thread that waits for one thing, and who ends its wait.
 *
 * Its word is a futex. Beside the end of its wait others may have something for it to do
 * meanwhile: they make it get up, and it looks.
 */
#ifndef WORKER_RPC_WAITER_H
#define WORKER_RPC_WAITER_H

#include <stdbool.h>

#include <sys/queue.h>

#include "worker/rpc/word.h"

enum waiter_state {
	WAITER_PENDING,
	WAITER_ASLEEP, /* on its word */
	WAITER_BATON,  /* is to lead */
	WAITER_DONE,
};

/* On the stack of who waits. Zero is a good beginning. */
struct waiter {
	_Atomic uint32_t state; /* enum waiter_state */
	bool follows;           /* under the lock of who leads */
	TAILQ_ENTRY(waiter) list;
};

static inline bool
waiter_is_done(const struct waiter *w)
{
	return atomic_load_explicit(&w->state, memory_order_acquire) ==
		WAITER_DONE;
}

/* waiter_end() - its wait is over; it may be gone when this returns. Once a wait. */
static inline void
waiter_end(struct waiter *w)
{
	if (atomic_exchange(&w->state, WAITER_DONE) == WAITER_ASLEEP)
		word_wake(&w->state, 1);
}

/* waiter_rest() - sleep until something has come, or @until, of CLOCK_MONOTONIC, is over;
 * INT64_MAX: never. */
static inline void
waiter_rest(struct waiter *w, int64_t until)
{
	uint32_t awake = WAITER_PENDING, asleep = WAITER_ASLEEP;

	atomic_compare_exchange_strong(&w->state, &awake, WAITER_ASLEEP);
	while (atomic_load(&w->state) == WAITER_ASLEEP &&
		(until == INT64_MAX || clock_now() < until))
		word_sleep(&w->state, WAITER_ASLEEP, until);
	atomic_compare_exchange_strong(&w->state, &asleep, WAITER_PENDING);
}

#endif /* WORKER_RPC_WAITER_H */
