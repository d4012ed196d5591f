/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - see thread.h. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "worker/gang/gang.h"
#include "worker/pool/call.h"
#include "worker/pool/help.h"
#include "worker/pool/seat.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"

/* --- tasks ------------------------------------------------------------------------ */

static void
task_over(struct stint *s)
{
	struct xr_pool *pool = s->pool;

	stint_end(s);
	job_part_over(pool, &s->part);
	feed_hungry(pool);
}

/* --- calls ------------------------------------------------------------------------- */

void
thread_reap(struct xr_pool *pool)
{
	struct task *t, *next;

	for (uint32_t i = 0; pool->gang != NULL && i < pool->conf.workers;
		i++) {
		struct seat *s = &pool->seats[i];

		if (atomic_load(&s->done) == NULL)
			continue;
		for (t = atomic_exchange(&s->done, NULL); t != NULL; t = next) {
			next = t->next_done;
			job_reclaim(pool, t);
		}
	}
}

/* Whoever waits for what we have done is seen to. */
static void
stir(struct xr_pool *pool)
{
	bool ends;

	pthread_mutex_lock(&pool->lock);
	ends = pool->state != XR_POOL_RUNNING;
	if (!ends && TAILQ_EMPTY(&pool->rooms))
		atomic_store(&pool->stirs, false);
	thread_reap(pool);
	pthread_mutex_unlock(&pool->lock);
	if (ends)
		pool_close_queues(pool);
}

/* Either who sets pool->stirs, and reaps then, finds it, or we see that. */
static void
add_done(struct xr_pool *pool, struct seat *s, struct task *t)
{
	struct task *first =
		atomic_load_explicit(&s->done, memory_order_relaxed);

	do
		t->next_done = first;
	while (!atomic_compare_exchange_weak(&s->done, &first, t));
	if (__builtin_expect(atomic_load(&pool->stirs), false))
		stir(pool);
}

static void
call_over_here(struct stint *s, struct xr_value *result, bool ok)
{
	struct xr_pool *pool = s->pool;
	struct task *t = s->part.task;
	struct job *job = t->job;
	struct xr_future *future;
	struct call_rest rest;

	stint_end(s);
	tell_ended(pool, &s->part, !ok);
	job_close(pool);
	future = call_claim(job);
	rest = call_take(job);
	if (job_leave(pool, t))
		add_done(pool, s->seat, t); /* and so it may be another one's */
	call_drop(&rest);
	call_settle(future, result, !ok);
	feed_hungry(pool);
}

void
thread_run(struct stint *s)
{
	struct xr_value *result;
	bool ok;

	if (s->part.task->job->is_own) {
		ok = stint_call(s, &result);
		call_over_here(s, result, ok);
	} else {
		stint_run(s);
		task_over(s);
	}
}

/* Its function has ended the thread. */
static void
task_left(struct stint *s)
{
	struct xr_value *result;
	bool ok;

	if (s->part.task->job->is_own) {
		ok = stint_call_left(s, &result);
		call_over_here(s, result, ok);
	} else {
		stint_left(s);
		task_over(s);
	}
}

static struct task *
task_of(struct gang_task *gang)
{
	return (struct task *)((char *)gang - offsetof(struct task, gang));
}

/* It is stale. */
static void
make_spare(struct xr_pool *pool, struct task *t)
{
	struct job *job = t->job->is_own ? NULL : t->job;
	bool closes;

	atomic_fetch_sub(&pool->stale, 1);
	pthread_mutex_lock(&pool->lock);
	job_reclaim(pool, t);
	closes = pool->state != XR_POOL_RUNNING;
	pthread_mutex_unlock(&pool->lock);
	job_unref(job);
	if (closes)
		pool_close_queues(pool);
	feed_hungry(pool);
}

/* The gang has it no more. False: who waits for it has begun it, or it is stale. */
static bool
take_out(struct task *t)
{
	uint32_t held = TASK_WAITS;

	if (atomic_compare_exchange_strong(&t->held, &held, TASK_RUNS))
		return true;
	if (held == TASK_STALE ||
		!atomic_compare_exchange_strong(&t->held, &held,
			TASK_HELPED_OUT))
		make_spare(t->job->pool, t);
	return false;
}

static void
drop_part(struct xr_pool *pool, struct task *t)
{
	job_part_dropped(pool, t);
	feed_hungry(pool);
}

static void
drop(struct gang_task *gang)
{
	struct task *t = task_of(gang);

	if (take_out(t))
		drop_part(t->job->pool, t);
}

static void
run(struct gang_task *gang, uint32_t seat)
{
	struct task *t = task_of(gang);
	struct xr_pool *pool = t->job->pool;

	if (!take_out(t))
		return;
	if (atomic_load_explicit(&t->job->ended, memory_order_acquire))
		drop_part(pool, t);
	else
		thread_run(stint_begin(pool, t, seat));
}

static bool
is_stale(const struct gang_task *gang)
{
	const struct task *t = (const struct task *)((const char *)gang -
		offsetof(struct task, gang));

	return atomic_load(&t->held) == TASK_STALE;
}

void
thread_tidy(struct xr_pool *pool)
{
	if (__builtin_expect(atomic_load(&pool->stirs), false) &&
		pool->gang != NULL && atomic_load(&pool->stale) > 0)
		gang_sweep(pool->gang, pool->conf.tasks, is_stale);
}

/* Who would sleep meanwhile does it himself, if a seat is free; but what each worker has
 * begun with was not done on his thread. */
static bool
run_here(struct xr_pool *pool, const struct job *job, struct gang_task *gang)
{
	return job->here && job->kind == JOB_APPLY &&
		pool->conf.initializer == NULL && gang_run(pool->gang, gang);
}

enum xr_status
thread_put(struct xr_pool *pool, uint32_t index, struct xr_error *err)
{
	struct gang_task *gang = &pool->task[index].gang;
	const struct job *job = pool->task[index].job;

	gang->run = run;
	gang->drop = drop;
	if (run_here(pool, job, gang))
		return XR_OK;
	if (!gang_post(pool->gang, gang) && take_out(&pool->task[index]))
		return fail(err, XR_E_CLOSED, "the pool was closed");
	thread_tidy(pool); /* it may have become stale meanwhile */
	return XR_OK;
}

/* --- threads ------------------------------------------------------------------------ */

static void
give_up(struct xr_pool *pool, enum xr_status status, const char *text)
{
	pool_give_up(pool, failure_new(status, "%s", text));
}

static void
begin_left(void *ctx)
{
	give_up(ctx, XR_E_STATE,
		"its initializer has ended a thread (pthread_exit), which is the pool's");
}

static void
begin(void *ctx, uint32_t seat)
{
	struct xr_error err = { 0 };
	struct xr_pool *pool = ctx;
	enum xr_status status;

	pthread_cleanup_push(begin_left, pool);
	status = seat_initialise(pool, seat, &err);
	pthread_cleanup_pop(0);
	if (status != XR_OK)
		give_up(pool, status, err.text);
}

static void
left(void *ctx, uint32_t i)
{
	struct xr_pool *pool = ctx;
	struct seat *seat = &pool->seats[i];
	struct stint *s;

	while ((s = seat->now) != NULL) {
		bool inside = s->part.inside;

		task_left(s);
		if (inside)
			help_free(s);
	}
}

static void
lost(void *ctx, int sys)
{
	char text[200];

	snprintf(text, sizeof(text),
		"a function has ended its thread (pthread_exit), and there is no other: %s",
		strerror(sys));
	give_up(ctx, XR_E_SYS, text);
}

enum xr_status
thread_start(struct xr_pool *pool, struct xr_error *err)
{
	const struct gang_opts o = {
		.seats = pool->conf.workers,
		.name = pool->conf.name,
		.begin = begin,
		.left = left,
		.lost = lost,
		.ctx = pool,
	};
	struct gang *gang;
	bool is_over;
	int sys;

	sys = gang_new(&o, &gang);
	errno = sys;
	if (sys != 0)
		return fail(err, sys == ENOMEM ? XR_E_NOMEM : XR_E_SYS,
			"threads: %s", strerror(sys));
	pthread_mutex_lock(&pool->lock);
	pool->gang = gang;
	pool->alive = pool->conf.workers;
	is_over = pool->state == XR_POOL_TERMINATED;
	pthread_mutex_unlock(&pool->lock);
	if (is_over) /* by an initializer */
		gang_stop(gang);
	return XR_OK;
}

void
thread_close(struct xr_pool *pool)
{
	gang_close(pool->gang);
}

void
thread_stop(struct xr_pool *pool)
{
	gang_stop(pool->gang);
}

bool
thread_join(struct xr_pool *pool, int64_t deadline)
{
	if (!gang_join(pool->gang, deadline))
		return false;
	pthread_mutex_lock(&pool->lock);
	pool->alive = 0;
	pthread_mutex_unlock(&pool->lock);
	return true;
}

void
thread_free(struct xr_pool *pool)
{
	if (pool_forked(pool, NULL) == XR_OK)
		gang_free(pool->gang);
	else
		gang_forget(pool->gang);
	pool->gang = NULL;
	seats_free(pool);
}
