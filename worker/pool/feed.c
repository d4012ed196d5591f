/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - see pool.h: tasks to workers. */
#include <string.h>

#include "base/status.h"
#include "worker/pool/job.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"
#include "worker/shm/seen.h"

#define AHEAD     16 /* tasks of maps, for each worker */
#define AHEAD_MIN 64

/* --- which ------------------------------------------------------------------------- */

/* With XR_POOL_P2P, the one that has the fewest. */
static uint32_t
choose_place(const struct xr_pool *pool)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < pool->in_count; i++)
		if (pool->place[i].tasks < pool->place[best].tasks)
			best = i;
	return best;
}

void
feed_begin(struct xr_pool *pool, uint32_t index, struct job *job)
{
	size_t more = job->count - job->next;
	struct task *t = &pool->task[index];

	t->job = job_ref(job);
	t->first = job->next;
	t->count = (uint32_t)(more < job->chunk ? more : job->chunk);
	t->gen = (t->gen + 1) & LEDGER_GEN_MASK;
	t->tries = 0;
	atomic_store_explicit(&t->held, TASK_WAITS, memory_order_relaxed);
	job->next += t->count;
	job->tasks++;
	if (job->kind != JOB_APPLY)
		pool->map_tasks++;
	if (pool->in_count > 1) {
		t->place = choose_place(pool);
		pool->place[t->place].tasks++;
	}
	pool->unfed -= job->is_waiting;
	if (pool->gang == NULL)
		atomic_fetch_add(&pool->open, 1);
	tell_open(pool, 1 - (int64_t)job->is_waiting);
}

bool
feed_take(struct xr_pool *pool, struct job *job, uint32_t *index)
{
	if (pool->spare_count == 0)
		return false;
	*index = pool->spare[--pool->spare_count];
	feed_begin(pool, *index, job);
	return true;
}

/* Some of its items have a task now; of the last ones it waits no more. */
static void
unwait(struct job *job)
{
	if (job->next < job->count)
		return;
	TAILQ_REMOVE(job_waits_in(job), job, waits);
	job->is_waiting = false;
}

bool
feed_loose(struct job *job, struct task *t)
{
	size_t more = job->count - job->next;

	if (!job->is_waiting)
		return false;
	*t = (struct task){
		.job = job_ref(job),
		.first = job->next,
		.count = (uint32_t)(more < job->chunk ? more : job->chunk),
		.held = TASK_LOOSE,
	};
	job->next += t->count;
	job->pool->unfed--;
	unwait(job);
	return true;
}

/* Of maps; some are left to those who submit calls. */
static bool
may_take(const struct xr_pool *pool)
{
	uint32_t most = pool->conf.workers * AHEAD;

	if (most < AHEAD_MIN)
		most = AHEAD_MIN;
	if (most > pool->conf.tasks - pool->conf.tasks / 4)
		most = pool->conf.tasks - pool->conf.tasks / 4;
	return pool->map_tasks < most;
}

/* Of whom something is to have a task, and one is spare, if any is. */
static struct job *
next_job(struct xr_pool *pool)
{
	struct job *job = TAILQ_FIRST(&pool->kept);

	if (job == NULL && may_take(pool))
		job = TAILQ_FIRST(&pool->waiting);
	if (job != NULL && pool->spare_count == 0)
		thread_reap(pool); /* who ends a call makes none spare */
	return job;
}

/* The next task that is to be put. False: there is none, or no room. */
static bool
next_task(struct xr_pool *pool, uint32_t *index)
{
	struct task *t = TAILQ_FIRST(&pool->again);
	struct job *job;

	if (t != NULL) {
		TAILQ_REMOVE(&pool->again, t, list);
		t->is_again = false;
		*index = (uint32_t)(t - pool->task);
		return true;
	}
	job = next_job(pool);
	if (job == NULL || !feed_take(pool, job, index))
		return false;
	unwait(job);
	return true;
}

/* --- on its way --------------------------------------------------------------------- */

static bool
pack_items(struct load *l, const struct task *t)
{
	const struct job *job = t->job;

	if (job->named != NULL)
		return false;
	if (job->kind == JOB_APPLY) {
		for (size_t i = 0; i < xr_value_count(job->args); i++)
			if (!pack_add(&l->pack, xr_value_at(job->args, i)))
				return false;
		return true;
	}
	for (size_t i = 0; i < t->count; i++)
		if (!pack_add(&l->pack, xr_value_at(job->args, t->first + i)))
			return false;
	return true;
}

/* All of it as one value. */
static struct xr_value *
list_items(const struct task *t)
{
	struct xr_value *list = xr_value_new_list();
	const struct job *job = t->job;
	bool one = job->kind == JOB_APPLY;
	size_t count = one ? xr_value_count(job->args) : t->count;
	size_t first = one ? 0 : t->first;
	enum xr_status status = list != NULL ? XR_OK : XR_E_NOMEM;

	for (size_t i = 0; i < count && status == XR_OK; i++)
		status = xr_value_append(list,
			xr_value_ref(xr_value_at(job->args, first + i)));
	if (status == XR_OK && job->named != NULL)
		status = xr_value_append(list, xr_value_ref(job->named));
	if (status == XR_OK)
		return list;
	xr_value_unref(list);
	return NULL;
}

static void
fill_head(struct task_head *head, const struct task *t, uint32_t index)
{
	const struct job *job = t->job;

	*head = (struct task_head){
		.index = index,
		.gen = t->gen,
		.at = job->func->at,
		.len = job->func->len,
		.entry = job->func->index,
		.serial = job->func->serial,
		.count = job->kind == JOB_APPLY ?
			(uint32_t)xr_value_count(job->args) :
			t->count,
		.form = (uint8_t)job->form,
	};
	if (job->named != NULL)
		head->flags |= ITEM_NAMED;
	if (job->item != NULL)
		head->flags |= ITEM_EACH;
}

static enum xr_status
put_letter(struct xr_pool *pool, const struct task *t, const struct load *load,
	struct xr_error *err)
{
	struct letter letter = {
		.kind = CELL_BYTES,
		.parts = load->all,
		.count = load->count,
		.len = load->len,
	};
	struct xr_queue *in = pool->in[pool->in_count > 1 ? t->place : 0];
	bool is_alone = in->hall->plan.kind == XR_QUEUE_P2P;
	pthread_mutex_t *puts = &pool->place[t->place].puts;
	enum xr_status status;
	size_t count = 1;

	if (is_alone)
		pthread_mutex_lock(puts);
	status = give_all(in, &letter, &count, 0, err);
	if (is_alone)
		pthread_mutex_unlock(puts);
	return status == XR_E_TIMEOUT ? XR_E_AGAIN : status;
}

static enum xr_status
put_shared(struct xr_pool *pool, const struct task *t,
	const struct task_head *head, struct xr_error *err)
{
	struct xr_queue *in = pool->in[pool->in_count > 1 ? t->place : 0];
	struct xr_value *list = list_items(t), *item;
	enum xr_status status;

	item = list != NULL ? share_item(head, sizeof(*head), list) : NULL;
	if (item == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	seen_put(&pool->ledger.task[head->index]);
	status = xr_queue_put(in, item, 0, err);
	xr_value_unref(item);
	return status == XR_E_TIMEOUT ? XR_E_AGAIN : status;
}

/* Threads have the rest. */
static enum xr_status
put_number(struct xr_pool *pool, const struct task_head *head,
	struct xr_error *err)
{
	enum xr_status status;

	status = xr_queue_put_bytes(pool->in[0], head, sizeof(*head), 0, err);
	return status == XR_E_TIMEOUT ? XR_E_AGAIN : status;
}

static enum xr_status
put(struct xr_pool *pool, uint32_t index, struct xr_error *err)
{
	const struct task *t = &pool->task[index];
	enum xr_status status = XR_OK;
	struct task_head head;
	struct load load;

	fill_head(&head, t, index);
	if (pool->by_mates)
		return put_number(pool, &head, err);
	if (pool->conf.mode == XR_ENC_SHARE)
		return put_shared(pool, t, &head, err);
	load_init(&load);
	if (!pack_items(&load, t)) {
		head.flags |= ITEM_CODED;
		status = load_code(&load, list_items(t), err);
	}
	if (status == XR_OK)
		status = load_head(&load, &head, sizeof(head));
	seen_put(&pool->ledger.task[index]);
	if (status == XR_OK)
		status = put_letter(pool, t, &load, err);
	load_fini(&load);
	return status;
}

XR_EXPORT enum xr_status
xr_pool_inqueue_put(struct xr_pool *pool, struct xr_pool_item *item,
	struct xr_error *err)
{
	return XR_KEEP_FRAME(put(pool, item->index, err));
}

static void
describe(const struct xr_pool *pool, uint32_t index, struct xr_pool_item *item)
{
	const struct task *t = &pool->task[index];

	*item = (struct xr_pool_item){
		.index = index,
		.info = {
			.size = sizeof(item->info),
			.count = t->count,
			.job = t->job->number,
			.first = t->first,
			.func = t->job->func->name,
			.worker = t->place,
		},
	};
}

/* Its job has ended while it was put. Then it is spare, unless a worker has it. */
static void
forsake(struct xr_pool *pool, uint32_t index, uint32_t gen, bool is_put)
{
	struct task *t = &pool->task[index];

	if (!is_put || ledger_drop(&pool->ledger, index, gen))
		job_part_dropped(pool, t);
}

static enum xr_status
put_one(struct xr_pool *pool, uint32_t index, struct xr_error *err)
{
	struct xr_pool_item item;

	if (pool->ops.inqueue_put == NULL)
		return put(pool, index, err);
	describe(pool, index, &item);
	return pool->ops.inqueue_put(pool, &item, pool->ops.ctx, err);
}

/* What was not put waits no more. Nothing is to be done if its job has ended meanwhile.
 * As soon as it is put it may be over, and another one's. */
enum xr_status
feed_one(struct xr_pool *pool, uint32_t index, struct xr_error *err)
{
	struct task *t = &pool->task[index];
	uint32_t gen = t->gen, feeding = gen << 2 | FEEDING;
	enum xr_status status;

	if (pool->gang != NULL)
		return thread_put(pool, index, err);
	atomic_store_explicit(&t->feeding, feeding, memory_order_relaxed);
	ledger_post(&pool->ledger, index, gen);
	status = put_one(pool, index, err);
	if (status != XR_OK && !ledger_drop(&pool->ledger, index, gen))
		status = XR_OK;
	if (atomic_compare_exchange_strong(&t->feeding, &feeding, 0) ||
		feeding != (gen << 2 | FORSAKEN))
		return status;
	forsake(pool, index, gen, status == XR_OK);
	return XR_OK;
}

/* Its queue is closed: what others have when the pool ends; or NULL, since it was the
 * program's own that was closed. */
static struct xr_value *
end_of(struct xr_pool *pool)
{
	struct xr_value *error;
	bool is_over;

	pthread_mutex_lock(&pool->lock);
	error = xr_value_ref(pool->failure);
	is_over = pool->state == XR_POOL_TERMINATED;
	pthread_mutex_unlock(&pool->lock);
	if (error == NULL && is_over)
		error = pool_terminated();
	return error;
}

/* It cannot go: it ends with that. */
static void
fail_task(struct xr_pool *pool, uint32_t index, enum xr_status status,
	const char *why)
{
	struct job_part part = { .task = &pool->task[index] };

	if (status == XR_E_CLOSED)
		part.error = end_of(pool);
	if (part.error == NULL)
		part.error = failure_new(status, "%s", why);

	job_part_over(pool, &part);
}

static void
put_again(struct xr_pool *pool, uint32_t index)
{
	struct task *t = &pool->task[index];

	pthread_mutex_lock(&pool->lock);
	t->is_again = true;
	TAILQ_INSERT_HEAD(&pool->again, t, list);
	atomic_store(&pool->hungry, true);
	pthread_mutex_unlock(&pool->lock);
}

void
feed_starve(struct xr_pool *pool)
{
	atomic_store(&pool->starves, true);
	atomic_store(&pool->ledger.head->starved, 1);
}

void
feed_room(struct xr_pool *pool)
{
	struct room *r;

	atomic_store(&pool->starves, false);
	pthread_mutex_lock(&pool->lock);
	while ((r = TAILQ_FIRST(&pool->rooms)) != NULL) {
		TAILQ_REMOVE(&pool->rooms, r, list);
		waiter_done(&r->waiter);
	}
	pthread_mutex_unlock(&pool->lock);
	take_nudge(pool);
	feed_hungry(pool);
}

void
feed(struct xr_pool *pool)
{
	enum xr_status status = XR_OK;
	struct xr_error err;
	uint32_t index;
	bool is_some, starves = false;

	while (status != XR_E_AGAIN) {
		pthread_mutex_lock(&pool->lock);
		is_some = next_task(pool, &index);
		if (TAILQ_EMPTY(&pool->again) && TAILQ_EMPTY(&pool->kept) &&
			TAILQ_EMPTY(&pool->waiting))
			atomic_store(&pool->hungry, false);
		pthread_mutex_unlock(&pool->lock);
		if (!is_some)
			return;
		err = (struct xr_error){ 0 };
		status = feed_one(pool, index, &err);
		if (status == XR_E_AGAIN)
			put_again(pool, index);
		if (status == XR_E_AGAIN && !starves) {
			feed_starve(pool);
			starves = true;
			status = XR_OK;
		} else if (status != XR_OK && status != XR_E_AGAIN) {
			fail_task(pool, index, status, err.text);
		}
	}
}
