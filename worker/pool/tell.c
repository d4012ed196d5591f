/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - see tell.h. */
#include "base/clock.h"
#include "worker/pool/tell.h"

void
tell_begin(struct xr_pool *pool)
{
	const struct gauge_of of = {
		.kind = pool->conf.kind == XR_POOL_THREADS ? GAUGE_THREADS :
							     GAUGE_PROCESSES,
		.name = pool->conf.name,
		.fd = pool->ledger.fd,
		.parts = pool->conf.workers,
		.room = pool->conf.tasks,
	};
	struct gauge_row *row = gauge_new(&of);

	pthread_mutex_lock(&pool->lock);
	pool->gauge = row;
	pthread_mutex_unlock(&pool->lock);
}

void
tell_end(struct xr_pool *pool)
{
	struct gauge_row *row = pool->gauge;
	int64_t lived;

	if (row == NULL || pool_forked(pool, NULL) != XR_OK)
		return;
	lived = clock_now() - atomic_load(&row->born);
	gauge_add(&row->spent, (uint64_t)lived * pool->conf.workers);
	pthread_mutex_lock(&pool->lock);
	pool->gauge = NULL;
	pthread_mutex_unlock(&pool->lock);
	gauge_free(row);
}

/* Of an iterator each call fails for itself. */
static bool
has_failed(const struct job_part *part)
{
	const struct task *t = part->task;
	const struct job *job = t->job;

	for (uint32_t i = 0; job->item != NULL && i < part->done; i++)
		if (job->item[t->first + i] == JOB_ERROR)
			return true;
	return part->error != NULL;
}

void
tell_over(struct xr_pool *pool, const struct job_part *part)
{
	struct gauge_row *row = pool->gauge;

	if (row == NULL)
		return;
	gauge_add(&row->done, 1);
	if (has_failed(part))
		gauge_add(&row->failed, 1);
	/* Of what was lost, or did not run, nobody knows. */
	if (part->ns == 0 && part->error != NULL)
		return;
	gauge_add(&row->busy, part->ns);
	gauge_add(&row->time[gauge_bucket(part->ns)], 1);
}
