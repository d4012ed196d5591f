/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see job.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/stock.h"
#include "base/timeout.h"
#include "wire/value/many.h"
#include "worker/pool/call.h"
#include "worker/pool/help.h"
#include "worker/pool/job.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"

#define SHORT_NS  20000     /* a chunk of less is made larger */
#define LOAD_MOST (1 << 18) /* bytes of a chunk, about, unless it is said */

/* --- life ------------------------------------------------------------------------ */

struct job *
job_ref(struct job *job)
{
	if (job->is_own)
		return job;
	atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
	return job;
}

static void
free_values(struct job *job)
{
	for (size_t i = 0; job->value != NULL && i < job->count; i++)
		xr_value_unref(job->value[i]);
	if (job->value != &job->one)
		free(job->value);
}

void
job_unref(struct job *job)
{
	struct xr_pool *pool;

	if (job == NULL || job->is_own ||
		atomic_fetch_sub_explicit(&job->refs, 1,
			memory_order_acq_rel) != 1)
		return;
	pool = job->pool;
	if (job->func != NULL)
		book_release(job->func);
	free_values(job);
	xr_value_unref(job->args);
	xr_value_unref(job->named);
	xr_value_unref(job->error);
	xr_value_unref(job->result);
	free(job->item);
	free(job->shown);
	free(job->order);
	stock_put(job, sizeof(*job));
	pool_unref(pool);
}

/* The future is gone, which had a reference. */
static void
future_gone(void *ctx)
{
	job_unref(ctx);
}

static bool
cancel(struct xr_future *future, void *ctx)
{
	struct xr_value *error = failure_new(XR_E_CANCELLED, "canceled");
	bool ended = error != NULL && job_abort(ctx, error);

	(void)future;
	xr_value_unref(error);
	return ended;
}

static bool
await(struct waiter *w, int64_t deadline, void *ctx)
{
	const struct job *job = ctx;

	return take_await(job->pool, w, deadline);
}

static bool
help(const struct xr_future *future, void *ctx)
{
	(void)future;
	return help_job(ctx);
}

static const struct future_maker maker = {
	.cancel = cancel,
	.free = future_gone,
	.wait = await,
	.help = help,
	.post = callback_work,
};

/* --- making ------------------------------------------------------------------------ */

/* About how many bytes of a message an item takes; 0: hardly any. */
static size_t
size_of(const struct xr_value *item)
{
	size_t len = 0;

	if (xr_value_kind(item) == XR_NIL)
		return 0;
	xr_value_data(item, &len);
	return len + 16 + 16 * xr_value_count(item);
}

static size_t
divide(size_t a, size_t b)
{
	return a / b + (a % b != 0);
}

/* A fourth of a worker's share; more of what is known to be short, less of what is
 * large. */
size_t
job_chunk(const struct job *job, const struct xr_pool_task *t)
{
	size_t workers = job->pool->conf.workers, size;
	size_t chunk = divide(job->count, 4 * workers);
	size_t share = divide(job->count, workers), more;
	double ns = job->func->ns;

	if ((t->flags & XR_POOL_CHUNK) != 0)
		return (size_t)t->chunk;
	if (job->kind == JOB_ITER || job->kind == JOB_ITER_ANY)
		return 1;
	if (ns > 0 && (double)chunk * ns < SHORT_NS) {
		more = (size_t)(SHORT_NS / ns) + 1;
		chunk = more < share ? more : share;
	}
	size = size_of(xr_value_at(job->args, 0));
	if (size > 0 && chunk > LOAD_MOST / size)
		chunk = LOAD_MOST / size;
	return chunk > 0 ? chunk : 1;
}

static enum xr_status
check_task(const struct job_ask *ask, struct xr_error *err)
{
	const struct xr_pool_task *t = ask->task;

	if (t == NULL || t->size < sizeof(*t))
		return fail(err, XR_E_INVAL, "struct xr_pool_task: its size");
	if ((t->name == NULL) == (t->func == NULL))
		return fail(err, XR_E_INVAL,
			"a task has the name of a function, or a function");
	if (t->func != NULL && xr_value_kind(t->func) != XR_FUNC)
		return fail(err, XR_E_INVAL, "func is of kind %s",
			xr_kind_name(xr_value_kind(t->func)));
	if ((t->args != NULL && xr_value_kind(t->args) != XR_LIST) ||
		(t->args == NULL && ask->kind != JOB_APPLY))
		return fail(err, XR_E_INVAL, "args is no list");
	if (t->named != NULL &&
		(xr_value_kind(t->named) != XR_DICT || ask->kind != JOB_APPLY))
		return fail(err, XR_E_INVAL,
			"named is a dict, and only of one call");
	if ((t->flags & ~(uint32_t)(XR_POOL_IDEMPOTENT | XR_POOL_CHUNK)) != 0)
		return fail(err, XR_E_INVAL, "unknown flags 0x%x", t->flags);
	if ((t->flags & XR_POOL_CHUNK) == 0 && t->chunk != 0)
		return fail(err, XR_E_INVAL,
			"a chunk of %lld, and no XR_POOL_CHUNK in flags",
			(long long)t->chunk);
	if ((t->flags & XR_POOL_CHUNK) != 0 && t->chunk < 1)
		return fail(err, XR_E_INVAL,
			"a chunk of %lld: it has one item at least",
			(long long)t->chunk);
	return timeout_check(t->timeout, err);
}

static enum xr_status
check_items(const struct job_ask *ask, struct xr_error *err)
{
	const struct xr_value *items = ask->task->args;

	for (size_t i = 0;
		ask->form == ITEM_STARMAP && i < xr_value_count(items); i++)
		if (xr_value_kind(xr_value_at(items, i)) != XR_LIST)
			return fail(err, XR_E_INVAL,
				"item %zu is of kind %s, and not a list of arguments",
				i,
				xr_kind_name(xr_value_kind(xr_value_at(items,
					i))));
	return XR_OK;
}

enum xr_status
job_find(struct xr_pool *pool, const struct xr_pool_task *t,
	struct entry **entry, struct xr_error *err)
{
	struct entry *e;
	enum xr_status status;

	status = book_find(&pool->book, t->name, t->func, &e, err);
	if (status != XR_OK)
		return status;
	if (e->func == NULL && pool->conf.module == NULL) {
		book_release(e);
		return fail(err, XR_E_NO_FUNCTION,
			"%.200s is not registered, or takes bytes", e->name);
	}
	*entry = e;
	return XR_OK;
}

static enum xr_status
make_room(struct job *job, struct xr_error *err)
{
	bool is_iter = job->kind == JOB_ITER || job->kind == JOB_ITER_ANY;

	TAILQ_INIT(&job->takers);
	job->value = &job->one;
	if (job->kind != JOB_APPLY)
		job->value = calloc(job->count + 1, sizeof(*job->value));
	if (is_iter) {
		job->item = calloc(job->count + 1, sizeof(*job->item));
		job->shown = calloc(job->count + 1, sizeof(*job->shown));
	}
	if (job->kind == JOB_ITER_ANY)
		job->order = calloc(job->count + 1, sizeof(*job->order));
	if (!is_iter) {
		job->future = future_new(&maker, job);
		if (job->future != NULL) {
			job_ref(job);
			job->mine = xr_future_ref(job->future);
		}
	}
	if (job->value == NULL ||
		(is_iter ? job->item == NULL || job->shown == NULL :
			   job->future == NULL) ||
		(job->kind == JOB_ITER_ANY && job->order == NULL))
		return fail(err, XR_E_NOMEM, "out of memory");
	return XR_OK;
}

/* It ends as it was never begun, with both references of its future. */
void
job_give_up(struct job *job)
{
	struct xr_future *future = job->future;

	job->ended = true;
	job->future = NULL;
	xr_future_unref(job->mine);
	xr_future_unref(future); /* and with it a reference of the job */
	job_unref(job);
}

enum xr_status
job_check(const struct job_ask *ask, struct xr_error *err)
{
	enum xr_status status = check_task(ask, err);

	return status == XR_OK ? check_items(ask, err) : status;
}

enum xr_status
job_new(struct xr_pool *pool, const struct job_ask *ask, struct job **made,
	struct xr_error *err)
{
	const struct xr_pool_task *t = ask->task;
	enum xr_status status = job_check(ask, err);
	struct job *job;

	if (status != XR_OK)
		return status;
	job = stock_get_zeroed(sizeof(*job));
	if (job == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	atomic_init(&job->refs, 1);
	job->pool = pool_ref(pool);
	job->kind = ask->kind;
	job->form = ask->form;
	job->flags = t->flags;
	job->here = ask->here;
	job->args = xr_value_ref(t->args);
	job->named = xr_value_ref(t->named);
	job->count = ask->kind == JOB_APPLY ? 1 : xr_value_count(t->args);
	job->left = job->count;
	job->callback = t->callback;
	job->error_callback = t->error_callback;
	job->ctx = t->ctx;
	status = make_room(job, err);
	if (status != XR_OK) {
		job_give_up(job);
		return status;
	}
	*made = job;
	return XR_OK;
}

/* Or less. */
static void
add_unfed(const struct job *job, int64_t sign)
{
	int64_t tasks = (int64_t)divide(job->count - job->next, job->chunk);

	job->pool->unfed += (uint64_t)(sign * tasks);
	tell_open(job->pool, sign * tasks);
}

void
job_list(struct job *job)
{
	struct xr_pool *pool = job->pool;

	job->number = ++pool->numbers;
	job->is_listed = true;
	job_ref(job);
	TAILQ_INSERT_TAIL(&pool->jobs, job, list);
	if (job->next < job->count) {
		job->is_waiting = true;
		TAILQ_INSERT_TAIL(job_waits_in(job), job, waits);
		add_unfed(job, 1);
		atomic_store(&pool->hungry, true);
	}
}

/* With the lock held. The list's reference is the caller's. */
static void
unlist(struct job *job)
{
	struct xr_pool *pool = job->pool;

	if (job->is_waiting) {
		TAILQ_REMOVE(job_waits_in(job), job, waits);
		add_unfed(job, -1);
	}
	job->is_waiting = false;
	TAILQ_REMOVE(&pool->jobs, job, list);
	job->is_listed = false;
}

/* --- results ------------------------------------------------------------------------ */

/* What its items gave: taken out of it. NULL: no memory. */
static struct xr_value *
gather(struct job *job)
{
	struct xr_value *list, *value;

	if (job->kind == JOB_APPLY) {
		value = job->one;
		job->one = NULL;
		return value != NULL ? value : xr_value_new_nil();
	}
	list = many_adopt(job->value, job->count);
	if (list != NULL)
		job->value = NULL;
	return list;
}

void
job_settle(struct job *job)
{
	struct xr_future *future = job->future;
	struct xr_value *result = job->result;

	job->future = NULL;
	job->result = NULL;
	future_end(future, result, job->failed);
	take_nudge(job->pool);
	xr_future_unref(future);
}

/* It has ended, once; its error is set, if it failed. */
static void
conclude(struct job *job)
{
	struct room *r;

	if (job->future == NULL) {
		pthread_mutex_lock(&job->pool->lock);
		while ((r = TAILQ_FIRST(&job->takers)) != NULL) {
			TAILQ_REMOVE(&job->takers, r, list);
			waiter_done(&r->waiter);
		}
		pthread_mutex_unlock(&job->pool->lock);
		take_nudge(job->pool);
		return;
	}
	job->failed = job->error != NULL;
	job->result = job->failed ? xr_value_ref(job->error) : gather(job);
	if (job->failed ? job->error_callback != NULL : job->callback != NULL)
		callback_post(job);
	else
		job_settle(job);
}

void
job_empty(struct job *job)
{
	job->ended = true;
	conclude(job);
}

/* Of an iterator: what came can be had. With the lock held. */
static void
show(struct job *job, const struct job_part *part)
{
	const struct task *t = part->task;
	struct room *r;

	for (size_t i = t->first; i < t->first + t->count; i++) {
		if (i >= t->first + part->done) {
			job->value[i] = xr_value_ref(part->error);
			job->item[i] = JOB_ERROR;
		}
		job->shown[i] = true;
		if (job->order != NULL)
			job->order[job->came] = i;
		job->came++;
	}
	if (TAILQ_EMPTY(&job->takers))
		return;
	while ((r = TAILQ_FIRST(&job->takers)) != NULL) {
		TAILQ_REMOVE(&job->takers, r, list);
		waiter_done(&r->waiter);
	}
	take_nudge(job->pool);
}

/* A moving average of 1/4. */
static void
learn(struct entry *e, const struct job_part *part)
{
	double ns = (double)part->ns / (part->done > 0 ? part->done : 1);

	if (part->ns > 0)
		e->ns = e->ns > 0 ? e->ns + (ns - e->ns) / 4 : ns;
}

void
job_reclaim(struct xr_pool *pool, struct task *t)
{
	struct room *r = TAILQ_FIRST(&pool->rooms);
	struct job *job = t->job;

	job->tasks--;
	if (job->is_own) {
		book_release(job->func);
		pool->calls--;
	} else if (job->kind != JOB_APPLY) {
		pool->map_tasks--;
	}
	if (pool->in_count > 1)
		pool->place[t->place].tasks--;
	t->job = NULL;
	pool->spare[pool->spare_count++] = (uint32_t)(t - pool->task);
	if (r != NULL && pool->spare_count >= r->need) {
		TAILQ_REMOVE(&pool->rooms, r, list);
		waiter_done(&r->waiter);
		take_nudge(pool);
	}
}

void
job_close(struct xr_pool *pool)
{
	if (pool->gang == NULL)
		atomic_fetch_sub(&pool->open, 1);
	tell_open(pool, -1);
}

void
job_make_spare(struct xr_pool *pool, struct task *t)
{
	job_close(pool);
	job_reclaim(pool, t);
}

/* With the lock held: has it ended with that? */
static bool
count_part(struct job *job, const struct job_part *part)
{
	if (job->ended)
		return false;
	job->left -= part->task->count;
	if (job->item != NULL)
		show(job, part);
	else if (part->error != NULL && job->error == NULL)
		job->error = xr_value_ref(part->error);
	if (job->left > 0)
		return false;
	job->ended = true;
	unlist(job);
	return true;
}

/* False: it is not in that state. */
static bool
go_stale(struct xr_pool *pool, struct task *t, uint32_t from)
{
	atomic_fetch_add(&pool->stale, 1);
	if (atomic_compare_exchange_strong(&t->held, &from, TASK_STALE))
		return true;
	atomic_fetch_sub(&pool->stale, 1);
	return false;
}

bool
job_leave(struct xr_pool *pool, struct task *t)
{
	uint32_t held = atomic_load_explicit(&t->held, memory_order_acquire);

	return held != TASK_HELPED || !go_stale(pool, t, held);
}

/* What is over is spare; with the lock held. False: the gang has it, and its reference. */
static bool
free_task(struct xr_pool *pool, struct task *t)
{
	job_close(pool);
	if (!job_leave(pool, t))
		return false;
	if (atomic_load_explicit(&t->held, memory_order_relaxed) != TASK_LOOSE)
		job_reclaim(pool, t);
	return true;
}

void
job_part_over(struct xr_pool *pool, const struct job_part *part)
{
	struct job *job = part->task->job;
	bool is_last, is_ours;

	if (job->is_own) {
		call_over(pool, part);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	learn(job->func, part);
	is_last = count_part(job, part);
	tell_over(pool, part);
	is_ours = free_task(pool, part->task);
	pthread_mutex_unlock(&pool->lock);
	xr_value_unref(part->error);
	if (is_last) {
		conclude(job);
		job_unref(job); /* the list's */
		pool_close_queues(pool);
	}
	if (is_ours)
		job_unref(job);
}

void
job_part_dropped(struct xr_pool *pool, struct task *task)
{
	struct job *job = task->job->is_own ? NULL : task->job;
	struct call_rest rest = { NULL };

	if (job == NULL)
		rest = call_take(task->job);
	pthread_mutex_lock(&pool->lock);
	job_make_spare(pool, task);
	pthread_mutex_unlock(&pool->lock);
	call_drop(&rest);
	job_unref(job);
	pool_close_queues(pool);
}

/* --- ending it otherwise ------------------------------------------------------------- */

/* Who puts it at this moment makes it spare. */
static bool
is_being_put(struct task *t)
{
	uint32_t feeding = t->gen << 2 | FEEDING;

	return atomic_compare_exchange_strong(&t->feeding, &feeding,
		t->gen << 2 | FORSAKEN);
}

/* If nobody has begun it, nobody will; the gang has it yet, and its reference. */
static void
drop_posted(struct xr_pool *pool, struct task *t, struct call_rest *rest)
{
	if (!go_stale(pool, t, TASK_WAITS))
		return;
	job_close(pool);
	if (t->job->is_own)
		*rest = call_take(t->job);
}

bool
job_drop(struct xr_pool *pool, struct task *t, struct call_rest *rest)
{
	uint32_t i = (uint32_t)(t - pool->task);

	atomic_store(&pool->ledger.task[i].cancelled,
		(t->gen & LEDGER_GEN_MASK) + 1);
	if (t->is_again) {
		TAILQ_REMOVE(&pool->again, t, list);
		t->is_again = false;
	} else if (pool->gang != NULL) {
		drop_posted(pool, t, rest);
		return false;
	} else if (is_being_put(t) || !ledger_drop(&pool->ledger, i, t->gen)) {
		return false; /* another one has it yet */
	}
	if (t->job->is_own)
		*rest = call_take(t->job);
	job_make_spare(pool, t);
	return true;
}

/* All tasks of it, with the lock held; how many references are to be released. */
static uint32_t
drop_tasks(struct job *job)
{
	struct xr_pool *pool = job->pool;
	uint32_t dropped = 0;

	for (uint32_t i = 0; i < pool->conf.tasks && job->tasks > 0; i++)
		if (pool->task[i].job == job)
			dropped += job_drop(pool, &pool->task[i], NULL);
	return dropped;
}

void
feed_give_back(struct xr_pool *pool, uint32_t index)
{
	struct task *t = &pool->task[index];
	struct job *job = t->job;

	job_make_spare(pool, t);
	/* Not the last one: the submitter has one. */
	if (!job->is_own)
		atomic_fetch_sub(&job->refs, 1);
}

bool
job_abort(struct job *job, struct xr_value *error)
{
	struct xr_pool *pool = job->pool;
	uint32_t dropped = 0;
	bool ends;

	pthread_mutex_lock(&pool->lock);
	ends = job->is_listed;
	if (ends) {
		job->ended = true;
		unlist(job);
		xr_value_unref(job->error);
		job->error = xr_value_ref(error);
		dropped = drop_tasks(job);
	}
	pthread_mutex_unlock(&pool->lock);
	if (!ends)
		return false;
	conclude(job);
	for (; dropped > 0; dropped--)
		job_unref(job);
	job_unref(job); /* the list's */
	thread_tidy(pool);
	feed_hungry(pool);
	pool_close_queues(pool);
	return true;
}

void
job_nobody(struct job *job)
{
	struct xr_value *error = failure_new(XR_E_CANCELLED, "canceled");

	if (error != NULL)
		job_abort(job, error);
	xr_value_unref(error);
}
