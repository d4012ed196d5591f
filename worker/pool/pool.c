/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - see xrun/pool.h: the life of a pool. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/final.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "segment/layout.h"
#include "worker/pool/call.h"
#include "worker/pool/keeper.h"
#include "worker/pool/tell.h"
#include "worker/pool/seat.h"
#include "worker/pool/thread.h"
#include "worker/proc/report.h"
#include "worker/proc/zygote.h"
#include "worker/rpc/future.h"

#define END_PRIORITY 1 /* before processes are ended */
#define AT_EXIT_NS   NS_PER_S
#define ITEMS_MORE \
	64 /* of a queue, beside tasks: what was retried, or dropped */

static const struct xr_pool_opts plain = { .size = sizeof(plain) };

/* --- memory ------------------------------------------------------------------------- */

struct xr_pool *
pool_ref(struct xr_pool *pool)
{
	atomic_fetch_add(&pool->refs, 1);
	return pool;
}

void
pool_unref(struct xr_pool *pool)
{
	if (pool == NULL || atomic_fetch_sub(&pool->refs, 1) != 1)
		return;
	book_fini(&pool->book);
	xr_value_unref(pool->failure);
	conf_fini(&pool->conf);
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->lock);
	free(pool->place);
	free(pool->tables);
	free(pool->spare);
	free(pool->in);
	free(pool->taker);
	free(pool->buf);
	free(pool);
}

enum xr_status
pool_forked(const struct xr_pool *pool, struct xr_error *err)
{
	if (pool == NULL)
		return fail(err, XR_E_INVAL, "no pool");
	return pool->born == keeper_forks() ?
		XR_OK :
		fail(err, XR_E_STATE, "after fork() a pool is its parent's");
}

static struct xr_pool *
alloc(void)
{
	struct xr_pool *pool = calloc(1, sizeof(*pool));
	pthread_condattr_t attr;

	if (pool == NULL)
		return NULL;
	atomic_init(&pool->refs, 1);
	pool->ledger.fd = pool->book.fd = -1;
	pool->born = keeper_forks();
	pool->kill_at = INT64_MAX;
	pthread_sigmask(SIG_SETMASK, NULL, &pool->mask);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->changed, &attr);
	pthread_condattr_destroy(&attr);
	TAILQ_INIT(&pool->again);
	TAILQ_INIT(&pool->jobs);
	TAILQ_INIT(&pool->kept);
	TAILQ_INIT(&pool->waiting);
	TAILQ_INIT(&pool->rooms);
	TAILQ_INIT(&pool->followers);
	return pool;
}

/* In lines of their own. Pages that nobody needs are not touched. */
static bool
make_tasks(struct xr_pool *pool)
{
	size_t line = _Alignof(struct task), tasks = pool->conf.tasks;

	pool->tables = calloc(1,
		line + tasks * (sizeof(*pool->task) + sizeof(*pool->call)));
	if (pool->tables == NULL)
		return false;
	pool->task =
		(struct task *)segment_round((uintptr_t)pool->tables, line);
	pool->call = (struct call *)(pool->task + tasks);
	return true;
}

static enum xr_status
make_tables(struct xr_pool *pool, struct xr_error *err)
{
	uint32_t tasks = pool->conf.tasks;

	pool->place = calloc(pool->conf.workers, sizeof(*pool->place));
	pool->spare = calloc(tasks, sizeof(*pool->spare));
	pool->in = calloc(pool->conf.workers, sizeof(struct xr_queue *));
	pool->taker = calloc(TAKE_BATCH, sizeof(*pool->taker));
	pool->buf = calloc(TAKE_BATCH, sizeof(*pool->buf));
	if (!make_tasks(pool) || pool->place == NULL || pool->spare == NULL ||
		pool->in == NULL || pool->taker == NULL || pool->buf == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	for (uint32_t i = 0; i < pool->conf.workers; i++)
		pthread_mutex_init(&pool->place[i].puts, NULL);
	while (pool->spare_count < tasks) {
		pool->spare[pool->spare_count] = tasks - 1 - pool->spare_count;
		pool->spare_count++;
	}
	return ledger_new(&pool->ledger, pool->conf.workers, tasks, err);
}

/* --- queues ----------------------------------------------------------------------------- */

static uint32_t
power_of_two(uint32_t n)
{
	uint32_t p = 64;

	while (p < n && p < XR_QUEUE_ITEMS_MAX)
		p *= 2;
	return p;
}

XR_EXPORT enum xr_status
xr_pool_setup_queues(struct xr_pool *pool, struct xr_pool_queues *queues,
	struct xr_error *err)
{
	const struct pool_conf *c = &pool->conf;
	bool is_alone = queues->count > 1 && c->mode == XR_ENC_COPY;
	const struct xr_queue_opts in = {
		.size = sizeof(in),
		.kind = is_alone ? XR_QUEUE_P2P : XR_QUEUE_ANY,
		.items = power_of_two(c->tasks + ITEMS_MORE),
		.bytes = c->bytes,
		.mode = c->mode,
		.redeliver = !is_alone && c->kind == XR_POOL_PROCESSES,
	};
	const struct xr_queue_opts out = {
		.size = sizeof(out),
		.items = in.items,
		.mode = c->mode,
		.bytes = c->bytes,
	};
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < queues->count && status == XR_OK; i++)
		status = queue_make(&in, &queues->in[i], err);
	if (status == XR_OK)
		status = queue_make(&out, &queues->out, err);
	return status;
}

static enum xr_status
make_queues(struct xr_pool *pool, struct xr_error *err)
{
	bool is_alone = pool->conf.routing == XR_POOL_P2P &&
		pool->conf.kind == XR_POOL_PROCESSES;
	struct xr_pool_queues q = {
		.size = sizeof(q),
		.count = is_alone ? pool->conf.workers : 1,
		.in = pool->in,
	};
	enum xr_status status;

	if (pool->conf.kind == XR_POOL_THREADS && !pool->by_mates)
		return XR_OK;
	status = pool->ops.setup_queues != NULL ?
		pool->ops.setup_queues(pool, &q, pool->ops.ctx, err) :
		xr_pool_setup_queues(pool, &q, err);
	pool->in_count = q.count;
	pool->out = q.out;
	if (status != XR_OK)
		return status;
	for (uint32_t i = 0; i < q.count; i++)
		if (q.in[i] == NULL)
			return fail(err, XR_E_INVAL, "setup_queues: no queue");
	return q.out != NULL ? XR_OK :
			       fail(err, XR_E_INVAL, "setup_queues: no queue");
}

void
pool_close_queues(struct xr_pool *pool)
{
	bool is_over;

	pthread_mutex_lock(&pool->lock);
	thread_reap(pool);
	is_over = !pool->queues_closed &&
		(pool->state == XR_POOL_TERMINATED ||
			(pool->state == XR_POOL_CLOSED && !pool_is_busy(pool)));
	if (is_over)
		pool->queues_closed = true;
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; is_over && i < pool->in_count; i++)
		xr_queue_close(pool->in[i]);
	if (is_over && pool->gang != NULL)
		thread_close(pool);
}

/* --- ending ------------------------------------------------------------------------------- */

struct xr_value *
pool_terminated(void)
{
	return failure_new(XR_E_CANCELLED, "the pool was terminated");
}

void
pool_fail_all(struct xr_pool *pool, struct xr_value *error)
{
	struct job *job;

	call_abort_all(pool, error);
	for (;;) {
		pthread_mutex_lock(&pool->lock);
		job = TAILQ_FIRST(&pool->jobs);
		if (job != NULL)
			job_ref(job);
		pthread_mutex_unlock(&pool->lock);
		if (job == NULL)
			return;
		job_abort(job, error);
		job_unref(job);
	}
}

static void
set_terminated(struct xr_pool *pool)
{
	struct room *r;

	pthread_mutex_lock(&pool->lock);
	pool->state = XR_POOL_TERMINATED;
	atomic_store(&pool->stirs, true);
	while ((r = TAILQ_FIRST(&pool->rooms)) != NULL) {
		TAILQ_REMOVE(&pool->rooms, r, list);
		waiter_done(&r->waiter);
	}
	pthread_mutex_unlock(&pool->lock);
	take_nudge(pool);
}

/* All results that are not there are that error, before functions are told. */
static void
fail_rest(struct xr_pool *pool, struct xr_value *error)
{
	if (error != NULL)
		pool_fail_all(pool, error);
	if (pool->ledger.head != NULL)
		atomic_store(&pool->ledger.head->ended, 1);
	pool_close_queues(pool);
}

static enum xr_status
end_workers(struct xr_pool *pool, int64_t grace, struct xr_error *err)
{
	if (pool->ops.terminate_workers != NULL)
		return pool->ops.terminate_workers(pool, grace, pool->ops.ctx,
			err);
	return xr_pool_terminate_workers(pool, grace, err);
}

static enum xr_status
join_workers(struct xr_pool *pool, int64_t timeout, struct xr_error *err)
{
	if (pool->ops.join_workers != NULL)
		return pool->ops.join_workers(pool, timeout, pool->ops.ctx,
			err);
	return xr_pool_join_workers(pool, timeout, err);
}

void
pool_give_up(struct xr_pool *pool, struct xr_value *error)
{
	bool is_first;

	if (error == NULL)
		error = failure_new(XR_E_NOMEM, "out of memory");
	pthread_mutex_lock(&pool->lock);
	is_first = pool->failure == NULL && pool->state != XR_POOL_TERMINATED &&
		error != NULL;
	if (is_first)
		pool->failure = error;
	pthread_mutex_unlock(&pool->lock);
	if (!is_first) {
		xr_value_unref(error);
		return;
	}
	set_terminated(pool);
	fail_rest(pool, error);
	end_workers(pool, AT_EXIT_NS, NULL);
}

XR_EXPORT void
xr_pool_close(struct xr_pool *pool)
{
	if (pool == NULL || pool_forked(pool, NULL) != XR_OK)
		return;
	pthread_mutex_lock(&pool->lock);
	if (pool->state == XR_POOL_RUNNING)
		pool->state = XR_POOL_CLOSED;
	atomic_store(&pool->stirs, true);
	pthread_mutex_unlock(&pool->lock);
	pool_close_queues(pool);
	KEEP_FRAME;
}

XR_EXPORT enum xr_status
xr_pool_terminate(struct xr_pool *pool, int64_t grace, struct xr_error *err)
{
	struct xr_value *error;
	enum xr_status status = pool_forked(pool, err);

	if (status == XR_OK)
		status = timeout_argument(&grace, XR_POOL_GRACE, err);
	if (status != XR_OK)
		return status;
	set_terminated(pool);
	error = pool_terminated();
	fail_rest(pool, error);
	xr_value_unref(error);
	status = end_workers(pool, grace, err);
	if (status == XR_OK)
		status = join_workers(pool,
			pool->conf.kind == XR_POOL_THREADS ? grace :
							     XR_TIMEOUT_NEVER,
			err);
	return status;
}

XR_EXPORT enum xr_status
xr_pool_join(struct xr_pool *pool, int64_t timeout, struct xr_error *err)
{
	enum xr_status status = pool_forked(pool, err);

	if (status == XR_OK)
		status = timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);
	if (status == XR_OK && xr_pool_state(pool) == XR_POOL_RUNNING)
		status = fail(err, XR_E_STATE,
			"a pool is closed, or terminated, and then joined");
	return status == XR_OK ? join_workers(pool, timeout, err) : status;
}

/* Of who was killed, or came too late. */
static void
let_go(struct task *t)
{
	struct call_rest rest;

	if (t->job != NULL && t->job->is_own) {
		rest = call_take(t->job);
		call_drop(&rest);
	}
	job_unref(t->job);
	t->job = NULL;
}

static void
release(struct xr_pool *pool)
{
	if (pool->by_fork && pool_forked(pool, NULL) == XR_OK)
		zygote_end(pool);
	thread_free(pool);
	tell_end(pool);
	for (uint32_t i = 0; i < pool->in_count; i++)
		xr_queue_free(pool->in[i]);
	pool->in_count = 0;
	for (uint32_t i = 0; i < pool->conf.tasks && pool->task != NULL; i++) {
		let_go(&pool->task[i]);
	}
	for (uint32_t i = 0; i < TAKE_BATCH && pool->taker != NULL; i++)
		free(pool->taker[i].made);
	xr_queue_free(pool->out);
	pool->out = NULL;
	ledger_fini(&pool->ledger);
	pool_unref(pool);
}

XR_EXPORT void
xr_pool_free(struct xr_pool *pool)
{
	if (pool == NULL)
		return;
	if (pool_forked(pool, NULL) == XR_OK) {
		xr_final_drop(pool->final);
		xr_pool_terminate(pool, 0, NULL);
		if (pool->gang == NULL)
			staff_await(pool, INT64_MAX);
		keeper_leave(pool);
		callback_leave(pool);
		take_end(pool);
	}
	release(pool);
	KEEP_FRAME;
}

/* At a normal exit. */
static void
end_at_exit(void *ctx)
{
	struct xr_pool *pool = ctx;

	if ((pool->conf.flags & XR_POOL_DRAINS) != 0) {
		xr_pool_close(pool);
		xr_pool_join(pool, XR_TIMEOUT_NEVER, NULL);
	}
	xr_pool_terminate(pool, AT_EXIT_NS, NULL);
}

/* --- making --------------------------------------------------------------------------------- */

/* Of the process as it is before the pool has anything. */
static enum xr_status
have_zygote(struct xr_pool *pool, struct xr_error *err)
{
	const struct pool_conf *c = &pool->conf;
	enum xr_status status;

	if (c->kind == XR_POOL_THREADS || c->method == NULL ||
		strcmp(c->method, "fork") != 0)
		return XR_OK;
	if (c->module != NULL)
		return fail(err, XR_E_INVAL, "a module, and method fork");
	status = zygote_fork(pool, err);
	pool->by_fork = status == XR_OK;
	return status;
}

static enum xr_status
set_up(struct xr_pool *pool, const struct xr_pool_opts *o, struct xr_error *err)
{
	enum xr_status status = conf_init(&pool->conf, o, err);

	if (status == XR_OK && o->ops != NULL) {
		if (o->ops->size < sizeof(*o->ops))
			return fail(err, XR_E_INVAL, "struct xr_pool_ops");
		pool->ops = *o->ops;
		pool->by_mates = o->kind == XR_POOL_THREADS;
	}
	if (status == XR_OK)
		status = have_zygote(pool, err);
	if (status == XR_OK)
		status = make_tables(pool, err);
	/* Threads that take tasks from no queue have the values themselves. */
	if (status == XR_OK && (o->kind != XR_POOL_THREADS || pool->by_mates))
		status = book_init(&pool->book, err);
	if (status == XR_OK)
		status = make_queues(pool, err);
	if (status == XR_OK && pool->conf.kind == XR_POOL_THREADS)
		status = seats_new(pool, err);
	return status;
}

/* It is looked after from the first worker on. */
static enum xr_status
begin(struct xr_pool *pool, struct xr_error *err)
{
	enum xr_status status = keeper_come(pool, err);

	if (status != XR_OK)
		return status;
	callback_come();
	tell_begin(pool);
	status = staff_repopulate(pool, err);
	if (status == XR_OK)
		status = xr_final_new(end_at_exit, pool, END_PRIORITY,
			&pool->final, err);
	if (status == XR_OK)
		return status;
	xr_pool_terminate(pool, 0, NULL);
	keeper_leave(pool);
	callback_leave(pool);
	return status;
}

XR_EXPORT enum xr_status
xr_pool_new(const struct xr_pool_opts *opts, struct xr_pool **pool,
	struct xr_error *err)
{
	const struct xr_pool_opts *o = opts != NULL ? opts : &plain;
	struct xr_pool *p = alloc();
	enum xr_status status;

	if (p == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = set_up(p, o, err);
	if (status == XR_OK)
		status = begin(p, err);
	if (status == XR_OK)
		*pool = p;
	else
		release(p);
	return status;
}

/* --- asking ----------------------------------------------------------------------------------- */

static struct xr_pool *
writable(const struct xr_pool *pool)
{
	return (struct xr_pool *)(uintptr_t)pool;
}

XR_EXPORT enum xr_pool_state
xr_pool_state(const struct xr_pool *pool)
{
	struct xr_pool *p = writable(pool);
	enum xr_pool_state state;

	pthread_mutex_lock(&p->lock);
	state = p->state;
	pthread_mutex_unlock(&p->lock);
	return state;
}

XR_EXPORT uint32_t
xr_pool_size(const struct xr_pool *pool)
{
	struct xr_pool *p = writable(pool);
	uint32_t size;

	pthread_mutex_lock(&p->lock);
	size = p->alive;
	pthread_mutex_unlock(&p->lock);
	return size;
}

/* 0: a thread. False: nobody is at place @i. */
static bool
pid_at(const struct xr_pool *pool, uint32_t i, int32_t *pid)
{
	const struct place *place = &pool->place[i];
	bool thread = pool->gang != NULL || place->mate != NULL;

	*pid = thread || place->proc == NULL ? 0 : xr_proc_pid(place->proc);
	return pool->gang != NULL ? i < pool->alive :
				    place->proc != NULL || place->mate != NULL;
}

XR_EXPORT uint32_t
xr_pool_pids(const struct xr_pool *pool, int32_t *pids, uint32_t cap)
{
	struct xr_pool *p = writable(pool);
	uint32_t n = 0;
	int32_t pid;

	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->conf.workers; i++) {
		if (!pid_at(p, i, &pid))
			continue;
		if (n < cap)
			pids[n] = pid;
		n++;
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

XR_EXPORT enum xr_status
xr_pool_item_info(const struct xr_pool_item *item,
	struct xr_pool_item_info *info)
{
	if (info->size < sizeof(*info))
		return XR_E_INVAL;
	*info = item->info;
	return XR_OK;
}

static const struct xr_type type = { .size = sizeof(type), .name = "xr.pool" };

__attribute__((constructor)) static void
make_known(void)
{
	xr_type_register(&type, NULL);
}

/* Not to be encoded: its type has nothing for that. */
XR_EXPORT struct xr_value *
xr_pool_value(struct xr_pool *pool)
{
	return xr_value_new_opaque(type.name, pool);
}

XR_EXPORT struct xr_pool *
xr_pool_of(const struct xr_value *value)
{
	return xr_value_object(value, type.name);
}
