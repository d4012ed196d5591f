/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.h - what a function of a pool of threads waits for, and nobody has begun, it does itself.
 *
 * All workers may be waiting so, and then nobody would. It does nothing else meanwhile: what it
 * waits for would hold it up anyhow, and so nothing waits for anything that it would not have
 * waited for on another thread.
 *
 * A task that was posted is marked as begun, and stays in the gang until its turn is there;
 * whoever is last, the gang or who has begun it, makes it spare (enum task_held). Items that no
 * task has need none.
 */
#ifndef WORKER_POOL_HELP_H
#define WORKER_POOL_HELP_H

#include "worker/pool/job.h"
#include "worker/pool/seat.h"

/* help_call() - the call (call.h) of @task, if it is the one that ends @future; help_job() - some
 * items of @job, the first that there are if they are for an iterator. On a seat of the pool,
 * with no lock held. False: nothing was there to be begun. */
bool help_call(struct task *task, const struct job *job,
	const struct xr_future *future);
bool help_job(struct job *job);

/* help_free() - of what was begun so, after stint_end(). */
void help_free(struct stint *s);

#endif /* WORKER_POOL_HELP_H */
