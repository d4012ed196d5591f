/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.h - what a function of a pool of threads waits for, and nobody has begun, it does itself.
 *
 * All workers may be waiting so, and then nobody would. It does nothing else meanwhile: what it
 * waits for would hold it up anyhow. But it hears of an end that comes otherwise, by a cancel or
 * by the error of another one, only when what it does is over.
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
 * items of @job; of an iterator with order those with the one that is due. On a seat of the pool,
 * with no lock held. False: nothing was there to be begun. */
bool help_call(struct task *task, const struct job *job,
	const struct xr_future *future);
bool help_job(struct job *job);

/* help_free() - of what was begun so, after stint_end(). help_fini() - of a seat that is no
 * more. */
void help_free(struct stint *s);
void help_fini(struct seat *seat);

#endif /* WORKER_POOL_HELP_H */
