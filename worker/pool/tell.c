/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - see tell.h. */
#include <stdio.h>

#include "base/clock.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"

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

static void
count(struct gauge_row *row, bool failed)
{
	gauge_count(&row->done, 1);
	if (failed)
		gauge_count(&row->failed, 1);
}

/* @inside: no worker was busy with that alone. */
static void
note_time(struct gauge_row *row, uint64_t ns, bool inside)
{
	if (!inside)
		gauge_count(&row->busy, ns);
	gauge_count(&row->time[gauge_bucket(ns)], 1);
}

void
tell_over(struct xr_pool *pool, const struct job_part *part)
{
	struct gauge_row *row = pool->gauge;

	if (row == NULL)
		return;
	count(row, has_failed(part));
	/* Of what was lost, or did not run, nobody knows. */
	if (part->ns > 0 || part->error == NULL)
		note_time(row, part->ns, part->inside);
}

void
tell_ended(struct xr_pool *pool, const struct job_part *part, bool failed)
{
	if (pool->gauge == NULL)
		return;
	count(pool->gauge, failed);
	note_time(pool->gauge, part->ns, part->inside);
}

void
tell_part_begin(struct tell_part *part, struct xr_pool *pool, uint32_t seat)
{
	int64_t now;

	*part = (struct tell_part){ .row = pool->gauge, .seat = seat };
	if (part->row == NULL || seat >= pool->conf.workers ||
		ledger_has(&pool->ledger, seat))
		return;
	now = clock_now();
	part->began = now;
	gauge_count(&part->row->open, 1);
	ledger_since(&pool->ledger, seat, now);
}

void
tell_part_end(const struct tell_part *part, struct xr_pool *pool)
{
	if (part->row == NULL)
		return;
	count(part->row, false);
	if (part->began == 0)
		return;
	ledger_since(&pool->ledger, part->seat, 0);
	note_time(part->row, (uint64_t)(clock_now() - part->began), false);
	gauge_count(&part->row->open, (uint64_t)-1);
}

/* --- profiles ------------------------------------------------------------------------- */

/* And this one, which is over, or will be in a moment. */
static uint32_t
open_now(struct xr_pool *pool, const struct task *t)
{
	uint64_t open, stale = atomic_load(&pool->stale);

	pthread_mutex_lock(&pool->lock);
	thread_reap(pool);
	open = pool->conf.tasks - pool->spare_count + pool->unfed;
	pthread_mutex_unlock(&pool->lock);
	if (atomic_load(&t->held) == TASK_LOOSE)
		open++;
	return open > stale ? (uint32_t)(open - stale) : 1;
}

static void
note(struct xr_pool *pool, const struct task *t, struct prof_event *e)
{
	char key[512];

	snprintf(key, sizeof(key), "pool#%.200s: %.255s", pool->conf.name,
		t->job->func->name);
	e->key = key;
	e->open = open_now(pool, t);
	prof_note_task(e);
}

void
tell_ran(struct xr_pool *pool, const struct task *t, int64_t began,
	const struct job_part *part)
{
	struct prof_event e = { .start = began,
		.end = began + (int64_t)part->ns };

	note(pool, t, &e);
}

/* 0: it is gone. */
static uint32_t
pid_at(struct xr_pool *pool, uint32_t i)
{
	int32_t pid = 0;

	pthread_mutex_lock(&pool->lock);
	if (i < pool->conf.workers && pool->place[i].proc != NULL)
		pid = xr_proc_pid(pool->place[i].proc);
	pthread_mutex_unlock(&pool->lock);
	return (uint32_t)pid;
}

/* All clocks of a machine are one. What began more than 71 minutes ago was longer than its
 * bits tell. */
void
tell_came(struct xr_pool *pool, const struct task *t,
	const struct result_head *head)
{
	int64_t now = clock_now(), ns = (int64_t)head->ns;
	struct prof_event e = { .thread = pid_at(pool, head->place) };

	if (pool->by_mates)
		return;
	e.start = (now / 1000 -
			  (uint32_t)((uint32_t)(now / 1000) - head->began)) *
		1000;
	if (ns > now - e.start)
		e.start = now - ns;
	e.end = e.start + ns;
	note(pool, t, &e);
}
