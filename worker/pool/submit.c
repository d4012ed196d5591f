/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - see xrun/pool.h: what a pool is given to do. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/pool/call.h"
#include "worker/pool/iter.h"
#include "worker/pool/seat.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"

#define SOON_NS NS_PER_MS
#define LOOK_NS (20 * NS_PER_MS)
#define REAP    32 /* submissions */

/* With the lock held. */
static enum xr_status
may_submit(const struct xr_pool *pool, struct xr_error *err)
{
	if (pool->failure != NULL)
		return failure_status(pool->failure, err);
	switch (pool->state) {
	case XR_POOL_RUNNING:
		return XR_OK;
	case XR_POOL_CLOSED:
		return fail(err, XR_E_STATE, "the pool was closed");
	case XR_POOL_TERMINATED:
		break;
	}
	return fail(err, XR_E_STATE, "the pool was terminated");
}

/* Of threads, which may have done some; with the lock held. What they do from now on they
 * look after themselves. Of processes, one may have told of room before @r is listed. */
static bool
is_room(struct xr_pool *pool, const struct room *r)
{
	if (pool->gang == NULL)
		return r->puts && !atomic_load(&pool->starves);
	atomic_store(&pool->stirs, true);
	thread_reap(pool);
	return pool->spare_count >= r->need;
}

/* Until as many tasks are spare as it needs, and so there may be room. False: the time is
 * up. The lock is held, and given back meanwhile. */
static bool
await_some(struct xr_pool *pool, struct room *r, int64_t deadline)
{
	return is_room(pool, r) ||
		take_await_in(pool, &pool->rooms, r, deadline);
}

/* The same, for one. To be woken costs more than many short tasks do, so who waits for
 * threads, which go on meanwhile, waits for a fourth of all at first. */
static bool
await_room(struct xr_pool *pool, int64_t deadline)
{
	struct room one = { .need = 1 },
		    many = { .need = pool->conf.tasks / 4 };
	int64_t soon = clock_now() + SOON_NS;

	if (pool->gang == NULL || many.need < 2)
		return await_some(pool, &one, deadline);
	if (await_some(pool, &many, soon < deadline ? soon : deadline))
		return true;
	return pool->spare_count > 0 || await_some(pool, &one, deadline);
}

/* The same, for a task that is to be put. The program's own way to take results hears of
 * them only, so that there is a look now and then. False: the time is up. */
static bool
await_put(struct xr_pool *pool, int64_t deadline)
{
	struct room r = { .need = 1, .puts = true };
	int64_t look = clock_now() + LOOK_NS, until = deadline;

	if (pool->ops.outqueue_get != NULL && look < deadline)
		until = look;
	pthread_mutex_lock(&pool->lock);
	await_some(pool, &r, until);
	pthread_mutex_unlock(&pool->lock);
	return clock_now() < deadline || waiter_is_done(&r.waiter);
}

/* Of a function of the pool: without room its call is kept until there is, since all workers
 * might wait for it. With the lock held. */
static bool
is_kept(struct xr_pool *pool)
{
	if (pool->spare_count > 0 || !seat_is_ours(pool))
		return false;
	thread_reap(pool);
	return pool->spare_count == 0;
}

/* A task that is nobody's. With the lock held. */
static enum xr_status
take_task(struct xr_pool *pool, int64_t deadline, uint32_t *index,
	struct xr_error *err)
{
	enum xr_status status = may_submit(pool, err);

	/* Those that were used last are near. */
	if (pool->spare_count == 0 || pool->numbers % REAP == 0)
		thread_reap(pool);
	while (status == XR_OK && pool->spare_count == 0) {
		if (!await_room(pool, deadline))
			return fail(err, XR_E_TIMEOUT,
				"%u tasks are waiting or in hand, and that is all there may be",
				pool->conf.tasks);
		status = may_submit(pool, err);
	}
	if (status == XR_OK)
		*index = pool->spare[--pool->spare_count];
	return status;
}

/* It did not go, and never was; false: it has ended meanwhile, otherwise. */
static bool
take_back(struct job *job, uint32_t index)
{
	struct xr_pool *pool = job->pool;
	bool was_listed;

	pthread_mutex_lock(&pool->lock);
	was_listed = job->is_listed;
	if (was_listed) {
		TAILQ_REMOVE(&pool->jobs, job, list);
		job->is_listed = false;
		job->ended = true;
		atomic_fetch_sub(&job->refs, 1);
	}
	feed_give_back(pool, index);
	pthread_mutex_unlock(&pool->lock);
	pool_close_queues(pool);
	return was_listed;
}

/* The same of one without callbacks, whose future is nobody's then. */
static bool
take_back_call(struct xr_pool *pool, uint32_t index)
{
	struct job *job = &pool->call[index].job;
	struct xr_future *future = call_claim(job);
	struct call_rest rest = call_take(job);

	pthread_mutex_lock(&pool->lock);
	feed_give_back(pool, index);
	pthread_mutex_unlock(&pool->lock);
	call_drop(&rest);
	pool_close_queues(pool);
	xr_future_unref(future);
	return future != NULL;
}

/* Its queue is closed: since the pool is terminated, or by the program. */
static enum xr_status
closed(struct xr_pool *pool, struct xr_error *err)
{
	enum xr_status status;

	pthread_mutex_lock(&pool->lock);
	status = may_submit(pool, err);
	pthread_mutex_unlock(&pool->lock);
	return status == XR_OK ? XR_E_CLOSED : status;
}

/* Somebody ends it meanwhile, or there is room. */
static enum xr_status
put(struct xr_pool *pool, uint32_t index, int64_t deadline,
	struct xr_error *err)
{
	enum xr_status status;
	bool goes_on = true;

	while ((status = feed_one(pool, index, err)) == XR_E_AGAIN && goes_on) {
		feed_starve(pool);
		status = feed_one(pool, index, err);
		if (status != XR_E_AGAIN)
			break;
		goes_on = await_put(pool, deadline);
	}
	if (status == XR_E_AGAIN)
		return fail(err, XR_E_TIMEOUT,
			"no room for its arguments in time");
	return status == XR_E_CLOSED ? closed(pool, err) : status;
}

static enum xr_status
submit_call(struct job *job, const struct xr_pool_task *task, int64_t deadline,
	struct xr_error *err)
{
	struct xr_pool *pool = job->pool;
	enum xr_status status;
	uint32_t index;
	bool keeps;

	pthread_mutex_lock(&pool->lock);
	status = job_find(pool, task, &job->func, err);
	job->chunk = 1;
	keeps = is_kept(pool);
	job->here = job->here && !keeps;
	if (status == XR_OK)
		status = keeps ? may_submit(pool, err) :
				 take_task(pool, deadline, &index, err);
	if (status == XR_OK && !keeps)
		feed_begin(pool, index, job);
	if (status == XR_OK)
		job_list(job);
	pthread_mutex_unlock(&pool->lock);
	if (status == XR_OK && keeps)
		feed(pool);
	if (status != XR_OK || keeps)
		return status;
	status = put(pool, index, deadline, err);
	if (status != XR_OK && !take_back(job, index))
		return XR_OK;
	return status;
}

static enum xr_status
submit_map(struct job *job, const struct xr_pool_task *task,
	struct xr_error *err)
{
	struct xr_pool *pool = job->pool;
	enum xr_status status;

	pthread_mutex_lock(&pool->lock);
	status = may_submit(pool, err);
	if (status == XR_OK)
		status = job_find(pool, task, &job->func, err);
	if (status == XR_OK && job->count > 0) {
		job->chunk = job_chunk(job, task);
		job_list(job);
	}
	pthread_mutex_unlock(&pool->lock);
	if (status != XR_OK)
		return status;
	if (job->count > 0)
		feed(pool);
	else
		job_empty(job);
	return XR_OK;
}

/* Returns when a wait for room ends; without a timeout in @task, never. */
static int64_t
submit_room_deadline(const struct xr_pool_task *task)
{
	int64_t deadline = INT64_MAX;

	if (task->timeout > 0)
		future_deadline(task->timeout, &deadline);
	return deadline;
}

/* @job receives a reference. */
static enum xr_status
submit(struct xr_pool *pool, const struct job_ask *ask, struct job **made,
	struct xr_error *err)
{
	enum xr_status status;
	int64_t deadline;
	struct job *job;

	if (pool == NULL)
		return fail(err, XR_E_INVAL, "no pool");
	status = pool_forked(pool, err);
	if (status == XR_OK)
		status = job_new(pool, ask, &job, err);
	if (status != XR_OK)
		return status;
	deadline = submit_room_deadline(ask->task);
	status = ask->kind == JOB_APPLY ?
		submit_call(job, ask->task, deadline, err) :
		submit_map(job, ask->task, err);
	if (status == XR_OK)
		*made = job;
	else
		job_give_up(job);
	return status;
}

/* --- with a future ---------------------------------------------------------------------- */

/* A call without callbacks, of a pool that is there. XR_E_AGAIN: it is to be kept, as a job. */
static enum xr_status
begin_call(struct xr_pool *pool, const struct job_ask *ask,
	struct xr_future *future, struct xr_error *err)
{
	const int64_t deadline = submit_room_deadline(ask->task);
	struct entry *entry = NULL;
	enum xr_status status;
	uint32_t index;

	pthread_mutex_lock(&pool->lock);
	status = job_find(pool, ask->task, &entry, err);
	if (status == XR_OK && is_kept(pool))
		status = XR_E_AGAIN;
	if (status == XR_OK)
		status = take_task(pool, deadline, &index, err);
	if (status == XR_OK)
		call_begin(pool, index, ask, entry, future);
	else if (entry != NULL)
		book_release(entry);
	pthread_mutex_unlock(&pool->lock);
	if (status != XR_OK)
		return status;
	status = put(pool, index, deadline, err);
	return status == XR_OK || take_back_call(pool, index) ? status : XR_OK;
}

static enum xr_status
submit_call_async(struct xr_pool *pool, const struct job_ask *ask,
	struct xr_future **future, struct xr_error *err)
{
	struct xr_future *made;
	enum xr_status status;

	if (pool == NULL)
		return fail(err, XR_E_INVAL, "no pool");
	status = pool_forked(pool, err);
	if (status == XR_OK)
		status = job_check(ask, err);
	if (status != XR_OK)
		return status;
	made = call_future();
	if (made == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = begin_call(pool, ask, made, err);
	if (status == XR_OK)
		*future = made;
	else
		xr_future_unref(made);
	return status;
}

static enum xr_status
submit_async(struct xr_pool *pool, const struct job_ask *ask,
	struct xr_future **future, struct xr_error *err)
{
	struct job *job;
	enum xr_status status;

	status = call_is(ask) ? submit_call_async(pool, ask, future, err) :
				XR_E_AGAIN;
	if (status != XR_E_AGAIN)
		return status;
	status = submit(pool, ask, &job, err);
	if (status != XR_OK)
		return status;
	*future = job->mine;
	job_unref(job);
	return XR_OK;
}

static enum xr_status
async(struct xr_pool *pool, const struct job_ask *ask,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = submit_async(pool, ask, future, err);

	if (status == XR_OK)
		take_begun(pool);
	return status;
}

/* Of threads, by a function of the pool that waits for ever: all workers may be waiting so. */
static bool
is_inside(const struct xr_pool *pool, const struct job_ask *ask)
{
	return pool != NULL && seat_is_ours(pool) &&
		ask->task->callback == NULL &&
		ask->task->error_callback == NULL;
}

static enum xr_status
call_inside(struct xr_pool *pool, const struct job_ask *ask,
	struct xr_value **value, struct xr_error *err)
{
	struct entry *entry;
	enum xr_status status = job_check(ask, err);

	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&pool->lock);
	status = may_submit(pool, err);
	if (status == XR_OK)
		status = job_find(pool, ask->task, &entry, err);
	pthread_mutex_unlock(&pool->lock);
	if (status != XR_OK)
		return status;
	status = seat_call(pool, ask, entry, value, err);
	book_release(entry);
	return status;
}

static void
unref(void *future)
{
	xr_future_unref(future);
}

/* On a seat, with callbacks. What it is may end the thread. */
static void
help(struct xr_future *future)
{
	pthread_cleanup_push(unref, future);
	future_help(future);
	pthread_cleanup_pop(0);
}

static enum xr_status
synchronous(struct xr_pool *pool, const struct job_ask *ask, int64_t timeout,
	struct xr_value **value, struct xr_error *err)
{
	struct xr_pool_task task;
	struct job_ask timed = *ask;
	struct xr_future *future;
	enum xr_status status;
	int64_t deadline;

	status = timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);
	if (status != XR_OK)
		return status;
	if (ask->task == NULL)
		return fail(err, XR_E_INVAL, "the task is NULL");
	future_deadline(timeout, &deadline);
	if (timeout == XR_TIMEOUT_NEVER && is_inside(pool, ask))
		return call_inside(pool, ask, value, err);
	task = *ask->task;
	if (task.timeout <= 0 && task.timeout >= XR_TIMEOUT_DEFAULT &&
		timeout != XR_TIMEOUT_NEVER)
		task.timeout = timeout > 0 ? timeout : 1;
	timed.task = &task;
	timed.here = timeout == XR_TIMEOUT_NEVER;
	status = submit_async(pool, &timed, &future, err);
	if (status != XR_OK)
		return status;
	if (deadline == INT64_MAX && seat_is_ours(pool))
		help(future);
	status = xr_future_wait(future, future_left(deadline), value, err);
	if (status == XR_E_TIMEOUT)
		take_begun(pool);
	xr_future_unref(future);
	return status;
}

XR_EXPORT enum xr_status
xr_pool_apply_async(struct xr_pool *pool, const struct xr_pool_task *task,
	struct xr_future **future, struct xr_error *err)
{
	const struct job_ask ask = { task, JOB_APPLY, ITEM_APPLY, false };

	return async(pool, &ask, future, err);
}

XR_EXPORT enum xr_status
xr_pool_apply(struct xr_pool *pool, const struct xr_pool_task *task,
	int64_t timeout, struct xr_value **value, struct xr_error *err)
{
	const struct job_ask ask = { task, JOB_APPLY, ITEM_APPLY, false };

	return synchronous(pool, &ask, timeout, value, err);
}

XR_EXPORT enum xr_status
xr_pool_map_async(struct xr_pool *pool, const struct xr_pool_task *task,
	struct xr_future **future, struct xr_error *err)
{
	const struct job_ask ask = { task, JOB_MAP, ITEM_MAP, false };

	return async(pool, &ask, future, err);
}

XR_EXPORT enum xr_status
xr_pool_map(struct xr_pool *pool, const struct xr_pool_task *task,
	int64_t timeout, struct xr_value **values, struct xr_error *err)
{
	const struct job_ask ask = { task, JOB_MAP, ITEM_MAP, false };

	return synchronous(pool, &ask, timeout, values, err);
}

XR_EXPORT enum xr_status
xr_pool_starmap_async(struct xr_pool *pool, const struct xr_pool_task *task,
	struct xr_future **future, struct xr_error *err)
{
	const struct job_ask ask = { task, JOB_MAP, ITEM_STARMAP, false };

	return async(pool, &ask, future, err);
}

XR_EXPORT enum xr_status
xr_pool_starmap(struct xr_pool *pool, const struct xr_pool_task *task,
	int64_t timeout, struct xr_value **values, struct xr_error *err)
{
	const struct job_ask ask = { task, JOB_MAP, ITEM_STARMAP, false };

	return synchronous(pool, &ask, timeout, values, err);
}

/* --- with an iterator ------------------------------------------------------------------------ */

static enum xr_status
iterate(struct xr_pool *pool, const struct xr_pool_task *task,
	enum job_kind kind, struct xr_pool_iter **iter, struct xr_error *err)
{
	const struct job_ask ask = { task, kind, ITEM_MAP, false };
	enum xr_status status;
	struct job *job;

	if (task != NULL && task->size >= sizeof(*task) &&
		(task->callback != NULL || task->error_callback != NULL))
		return fail(err, XR_E_INVAL, "an iterator has no callbacks");
	status = submit(pool, &ask, &job, err);
	if (status != XR_OK)
		return status;
	take_begun(pool);
	return iter_new(job, iter, err);
}

XR_EXPORT enum xr_status
xr_pool_imap(struct xr_pool *pool, const struct xr_pool_task *task,
	struct xr_pool_iter **iter, struct xr_error *err)
{
	return iterate(pool, task, JOB_ITER, iter, err);
}

XR_EXPORT enum xr_status
xr_pool_imap_unordered(struct xr_pool *pool, const struct xr_pool_task *task,
	struct xr_pool_iter **iter, struct xr_error *err)
{
	return iterate(pool, task, JOB_ITER_ANY, iter, err);
}
