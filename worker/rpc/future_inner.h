/* SPDX-License-Identifier: Apache-2.0 */
/*
 * future_inner.h - what the parts of futures know of each other: future.c (life, ending,
 * waiting) and future_then.c (what is called when one has ended).
 */
#ifndef WORKER_RPC_FUTURE_INNER_H
#define WORKER_RPC_FUTURE_INNER_H

#include <stdatomic.h>

#include "worker/rpc/future.h"
#include "worker/rpc/lead.h"
#include "worker/shm/tick.h"

struct then; /* what is called when a future ended */

enum future_state {
	FUTURE_PENDING,
	FUTURE_VALUE,
	FUTURE_ERROR,
};

struct wait_one {
	struct waiter waiter;
	TAILQ_ENTRY(wait_one) list;
};
TAILQ_HEAD(wait_list, wait_one);

struct xr_future {
	_Atomic uint32_t refs;
	_Atomic uint32_t state; /* enum future_state */
	_Atomic uint32_t lock;  /* of what follows; held for a few stores */
	struct then *first, **last;
	struct wait_list waits;
	struct xr_value *result;
	_Atomic uint32_t unsettled; /* callbacks that have not run, and 1: of a
				     * maker that is told */
	const struct future_maker *maker; /* or NULL */
	void *ctx;
	bool bound; /* its devices were declared */
	uint32_t device_count;
	struct xr_device_name device[]; /* [device_count] */
};

static inline void
future_lock(struct xr_future *f)
{
	while (atomic_exchange_explicit(&f->lock, 1, memory_order_acquire) != 0)
		while (atomic_load_explicit(&f->lock, memory_order_relaxed))
			tick_pause();
}

static inline void
future_unlock(struct xr_future *f)
{
	atomic_store_explicit(&f->lock, 0, memory_order_release);
}

static inline bool
future_has_ended(const struct xr_future *f)
{
	return atomic_load_explicit(&f->state, memory_order_acquire) >=
		FUTURE_VALUE;
}

/* --- future.c --------------------------------------------------------------- */

/* future_settle_one() - a callback of it has run. */
void future_settle_one(struct xr_future *f);

/* --- future_then.c ---------------------------------------------------------- */

/* then_dispatch_all() - @then, and those behind it, of @f, which has ended. */
void then_dispatch_all(struct xr_future *f, struct then *then);

#endif /* WORKER_RPC_FUTURE_INNER_H */
