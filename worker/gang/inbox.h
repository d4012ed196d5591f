/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inbox.h - tasks that come from outside, in the order in which they came.
 *
 * Anybody puts: one exchange, and a store that links what it follows. One at a time
 * takes. Between the exchange and the store there is something that cannot be taken yet,
 * nor what comes after it; whoever looks again finds it.
 *
 * Source   Vyukov, Intrusive MPSC node-based queue
 */
#ifndef WORKER_GANG_INBOX_H
#define WORKER_GANG_INBOX_H

#include <stddef.h>

#include "worker/gang/gang.h"

struct inbox {
	_Alignas(128) _Atomic(struct gang_task *) last;
	_Alignas(128) _Atomic bool locked; /* by who takes */
	_Atomic(struct gang_task *) first;
	struct gang_task stub; /* first and last, where it is empty */
};

void inbox_init(struct inbox *in);

/* inbox_put() - @first to @last, linked. A look at who sleeps may follow at once. */
static inline void
inbox_put(struct inbox *in, struct gang_task *first, struct gang_task *last)
{
	struct gang_task *before;

	atomic_store_explicit(&last->next, NULL, memory_order_relaxed);
	before = atomic_exchange(&in->last, last);
	atomic_store_explicit(&before->next, first, memory_order_release);
}

/* inbox_empty() - is it, for this moment? */
static inline bool
inbox_empty(struct inbox *in)
{
	return atomic_load(&in->last) == &in->stub &&
		atomic_load(&in->first) == &in->stub;
}

/* inbox_take() - up to @most, the oldest first, or as many as another one who takes
 * leaves us: none. How many. */
uint32_t inbox_take(struct inbox *in, struct gang_task **tasks, uint32_t most);

#endif /* WORKER_GANG_INBOX_H */
