/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - see call.h. */
#include "base/status.h"
#include "worker/pool/call.h"
#include "worker/pool/help.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"

/* --- its future ---------------------------------------------------------------------- */

static void
future_gone(void *ctx)
{
	const struct job *job = ctx;

	if (job != NULL) /* it was begun */
		pool_unref(job->pool);
}

static bool
await(struct waiter *w, int64_t deadline, void *ctx)
{
	const struct job *job = ctx;

	return take_await(job->pool, w, deadline);
}

static struct task *
task_of(const struct xr_pool *pool, const struct job *job)
{
	return &pool->task[(const struct call *)job - pool->call];
}

/* With the lock held; as call_claim(). @rest: of one that nobody has in hand. */
static struct xr_future *
abort_one(struct xr_pool *pool, struct job *job, struct call_rest *rest)
{
	struct xr_future *future = call_claim(job);

	if (future != NULL)
		job_drop(pool, task_of(pool, job), rest);
	return future;
}

static void
after_abort(struct xr_pool *pool)
{
	take_nudge(pool);
	thread_tidy(pool);
	feed_hungry(pool);
	pool_close_queues(pool);
}

static bool
cancel(struct xr_future *future, void *ctx)
{
	struct job *job = ctx;
	struct xr_pool *pool = job->pool;
	struct xr_value *error = failure_new(XR_E_CANCELLED, "canceled");
	struct call_rest rest = { NULL };
	struct xr_future *mine = NULL;

	if (error == NULL)
		return false;
	pthread_mutex_lock(&pool->lock);
	if (job->future == future)
		mine = abort_one(pool, job, &rest);
	pthread_mutex_unlock(&pool->lock);
	call_drop(&rest);
	if (mine == NULL) {
		xr_value_unref(error);
		return false;
	}
	call_settle(mine, error, true);
	after_abort(pool);
	return true;
}

static bool
help(const struct xr_future *future, void *ctx)
{
	const struct job *job = ctx;

	return help_call(task_of(job->pool, job), job, future);
}

static const struct future_maker maker = {
	.cancel = cancel,
	.free = future_gone,
	.wait = await,
	.help = help,
	.post = callback_work,
};

struct xr_future *
call_future(void)
{
	return future_new(&maker, NULL);
}

/* --- beginning and ending -------------------------------------------------------------- */

void
call_begin(struct xr_pool *pool, uint32_t index, const struct job_ask *ask,
	struct entry *entry, struct xr_future *future)
{
	struct job *job = &pool->call[index].job;

	job->is_own = true;
	/* Once: that of a future that is gone may be looked at when another one has it. */
	if (job->pool == NULL)
		job->pool = pool;
	pool_ref(pool); /* the future's */
	job->kind = JOB_APPLY;
	job->form = ITEM_APPLY;
	job->flags = ask->task->flags;
	job->here = ask->here;
	job->func = entry;
	job->args = xr_value_ref(ask->task->args);
	job->named = xr_value_ref(ask->task->named);
	job->value = &job->one;
	job->one = NULL;
	job->count = job->chunk = job->left = 1;
	job->next = 0;
	job->number = ++pool->numbers;
	job->future = xr_future_ref(future);
	atomic_store_explicit(&job->ended, false, memory_order_relaxed);
	future_bind(future, job);
	pool->calls++;
	feed_begin(pool, index, job);
}

struct call_rest
call_take(struct job *job)
{
	struct call_rest rest = { job->args, job->named, job->one };

	job->args = job->named = job->one = NULL;
	return rest;
}

void
call_drop(struct call_rest *rest)
{
	xr_value_unref(rest->args);
	xr_value_unref(rest->named);
	xr_value_unref(rest->value);
}

struct xr_future *
call_claim(struct job *job)
{
	return atomic_exchange(&job->ended, true) ? NULL : job->future;
}

void
call_settle(struct xr_future *future, struct xr_value *result, bool failed)
{
	if (future == NULL) {
		xr_value_unref(result);
		return;
	}
	if (result == NULL && !failed)
		result = xr_value_new_nil();
	future_finish(future, result, failed);
}

void
call_over(struct xr_pool *pool, const struct job_part *part)
{
	struct job *job = part->task->job;
	struct xr_future *future = call_claim(job);
	struct call_rest rest = call_take(job);
	bool closes, failed = part->error != NULL;
	struct xr_value *result = failed ? part->error : rest.value;

	if (!failed)
		rest.value = NULL;
	tell_over(pool, part);
	pthread_mutex_lock(&pool->lock);
	job_make_spare(pool, part->task);
	closes = pool->state != XR_POOL_RUNNING;
	pthread_mutex_unlock(&pool->lock);
	call_drop(&rest);
	call_settle(future, result, failed);
	if (!part->led)
		take_nudge(pool);
	if (closes)
		pool_close_queues(pool);
}

void
call_abort_all(struct xr_pool *pool, struct xr_value *error)
{
	for (uint32_t i = 0; i < pool->conf.tasks; i++) {
		struct call_rest rest = { NULL };
		struct xr_future *future = NULL;
		struct job *job;

		pthread_mutex_lock(&pool->lock);
		job = pool->task[i].job;
		if (job != NULL && job->is_own)
			future = abort_one(pool, job, &rest);
		pthread_mutex_unlock(&pool->lock);
		call_drop(&rest);
		if (future != NULL)
			call_settle(future, xr_value_ref(error), true);
	}
	after_abort(pool);
}
