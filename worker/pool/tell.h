/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell.h - how a pool is, for whoever looks on from outside: segment/gauge.h.
 *
 * Some words are written for each task, by any thread. What workers have in hand stands
 * in the ledger.
 */
#ifndef WORKER_POOL_TELL_H
#define WORKER_POOL_TELL_H

#include "worker/pool/item.h"
#include "worker/pool/job.h"
#include "worker/rpc/prof.h"
#include "worker/shm/gauge.h"

/* tell_begin() - before its first worker; tell_end() - it has none, and no tasks. */
void tell_begin(struct xr_pool *pool);
void tell_end(struct xr_pool *pool);

/* tell_open() - there are so many more tasks, or less. */
static inline void
tell_open(struct xr_pool *pool, int64_t more)
{
	if (pool->gauge != NULL)
		gauge_count(&pool->gauge->open, (uint64_t)more);
}

/* tell_over() - a task is over that a worker had, or that could not go to one. tell_ended() -
 * the same of one that took @ns. */
void tell_over(struct xr_pool *pool, const struct job_part *part);
void tell_ended(struct xr_pool *pool, const struct job_part *part, bool failed);

/* A part of a loop, which is a task that does not wait. One on a seat that has no task is what
 * that does meanwhile. */
struct tell_part {
	struct gauge_row *row; /* NULL: nobody looks on */
	uint32_t seat;
	int64_t began; /* 0: its time is that of another task, or nobody's */
};

void tell_part_begin(struct tell_part *part, struct xr_pool *pool,
	uint32_t seat);
void tell_part_end(const struct tell_part *part, struct xr_pool *pool);

/* A task ran, and somebody records a profile: tell_ran() - on this thread, from @began on;
 * tell_came() - in another process, or by a mate, who has told it. The lock is not held. */
void tell_ran(struct xr_pool *pool, const struct task *t, int64_t began,
	const struct job_part *part);
void tell_came(struct xr_pool *pool, const struct task *t,
	const struct result_head *head);

#endif /* WORKER_POOL_TELL_H */
