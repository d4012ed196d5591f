/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one call, without callbacks: a job that is part of its task.
 *
 * Nothing is made for it but its future. The job of task @i is pool->call[i], from when
 * the task is taken until it is spare again; nobody counts who refers to it. Whoever sets
 * `ended` first ends the future; whoever has the task makes it spare. So what a future
 * says of its job is looked at with the pool's lock, and counts while the job has that
 * future.
 */
#ifndef WORKER_POOL_CALL_H
#define WORKER_POOL_CALL_H

#include "worker/pool/job.h"

/* call_is() - is that what is asked for? */
static inline bool
call_is(const struct job_ask *ask)
{
	return ask->kind == JOB_APPLY && ask->task != NULL &&
		ask->task->size >= sizeof(*ask->task) &&
		ask->task->callback == NULL &&
		ask->task->error_callback == NULL;
}

/* call_future() - for one that is to be begun; NULL: no memory. */
struct xr_future *call_future(void);

/* call_begin() - task @index, which is taken, is what is asked for, by @entry, which is
 * taken, too, as is a reference of @future. With the lock held. */
void call_begin(struct xr_pool *pool, uint32_t index, const struct job_ask *ask,
	struct entry *entry, struct xr_future *future);

/* What a call has, taken out of it, to be released without the lock. */
struct call_rest {
	struct xr_value *args, *named, *value;
};

struct call_rest call_take(struct job *job);
void call_drop(struct call_rest *rest);

/* call_claim() - its future, a reference, and nobody else ends it; NULL: somebody has. */
struct xr_future *call_claim(struct job *job);

/* call_settle() - of what was claimed, or NULL; @result is taken: a value, NULL: NIL; or
 * an ERROR, NULL: no memory for it. */
void call_settle(struct xr_future *future, struct xr_value *result,
	bool failed);

/* call_over() - as job_part_over(). */
void call_over(struct xr_pool *pool, const struct job_part *part);

/* call_abort_all() - those that have not ended end with @error, borrowed. */
void call_abort_all(struct xr_pool *pool, struct xr_value *error);

#endif /* WORKER_POOL_CALL_H */
