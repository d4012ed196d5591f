/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - workers that are threads of this process: a gang (gang.h).
 *
 * A task is posted as it is, and its results are written where they belong by who runs
 * it. What was dropped meanwhile is spare once the gang has come to it.
 *
 * Who has run a call (call.h) takes no lock: he adds the task to those of his seat that
 * are over, and ends the future. Such tasks are spare when somebody who has the lock
 * wants some: who submits and has none left; where somebody waits for one, or the pool is
 * to end, pool->stirs tells those who run tasks to look after that.
 *
 * A function of the pool that calls another one, and waits for it, runs it in its own place,
 * and no task is made of that; where it waits for what was submitted, see help.h. One that ends its thread (pthread_exit(3)) has failed; another
 * thread takes its place.
 */
#ifndef WORKER_POOL_THREAD_H
#define WORKER_POOL_THREAD_H

#include "worker/pool/pool.h"

/* thread_start() - all of them. */
enum xr_status thread_start(struct xr_pool *pool, struct xr_error *err);

/* thread_reap() - calls that are over are spare; with the lock held. Where there is no
 * gang, nothing. */
void thread_reap(struct xr_pool *pool);

/* thread_tidy() - if somebody waits for a task, what is stale is spare, wherever the gang has it:
 * after one has become so, and before a wait. No lock is held. */
void thread_tidy(struct xr_pool *pool);

/* thread_put() - task @index, which is another one's as soon as it was accepted;
 * XR_E_CLOSED. */
enum xr_status thread_put(struct xr_pool *pool, uint32_t index,
	struct xr_error *err);

/* thread_run() - what was begun (seat.h), until it is over. */
struct stint;
void thread_run(struct stint *s);

/* thread_close() - they end when all is done; thread_stop() - soon. */
void thread_close(struct xr_pool *pool);
void thread_stop(struct xr_pool *pool);

/* thread_join() - false: @deadline came first. Not by one of them. */
bool thread_join(struct xr_pool *pool, int64_t deadline);
void thread_free(struct xr_pool *pool);

#endif /* WORKER_POOL_THREAD_H */
