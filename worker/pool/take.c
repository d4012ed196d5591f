/* SPDX-License-Identifier: Apache-2.0 */
/*
 * take.c - see pool.h: results, and who takes them.
 *
 * Who passes whom. A follower notes itself, with the lock, and looks whether somebody
 * leads; who stops leading says so with the lock, and then looks whether any task is
 * open: if so the keeper is to watch. Who has begun a task looks then whether anybody
 * leads or watches.
 */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/pool/job.h"
#include "worker/pool/keeper.h"
#include "worker/pool/take.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"
#include "worker/rpc/word.h"

#define NAP_SHARE  8 /* of what is left, or of the room for results */
#define NAP_MIN_NS (60 * NS_PER_US)
#define NAP_MAX_NS NS_PER_MS

/* --- one result ----------------------------------------------------------------------- */

/* A result that is read. */
struct reading {
	struct job *job;
	struct job_part part;
	const struct result_head *head;
	struct unload u;
	const uint8_t *failed; /* of the values; or NULL */
	struct xr_value *flags;
};

static void
note(struct reading *r, size_t i, struct xr_value *value, bool failed)
{
	struct job *job = r->job;
	size_t at = r->part.task->first + i;

	job->value[at] = value;
	if (job->item != NULL)
		job->item[at] = failed ? JOB_ERROR : JOB_VALUE;
}

static bool
read_flags(struct reading *r)
{
	size_t len = 0;

	if ((r->head->flags & ITEM_EACH) == 0)
		return true;
	r->flags = unload_next(&r->u);
	r->failed = xr_value_data(r->flags, &len);
	return r->failed != NULL && len == r->head->count;
}

/* Into the places of its items, which are its alone. */
static enum xr_status
read_values(struct reading *r, struct xr_error *err)
{
	uint32_t count = r->head->count;
	struct xr_value *value;

	if (count > r->part.task->count || !read_flags(r))
		return fail(err, XR_E_PROTO, "a result that is none");
	/* NULL is NIL. */
	if (r->job->kind == JOB_APPLY || r->job->kind == JOB_MAP)
		r->part.done += unload_nils(&r->u, count);
	for (; r->part.done < count; r->part.done++) {
		value = unload_next(&r->u);
		if (value == NULL)
			return fail(err, XR_E_NOMEM,
				"out of memory, or a result that is none");
		note(r, r->part.done, value,
			r->failed != NULL && r->failed[r->part.done] != 0);
	}
	if ((r->head->flags & ITEM_FAILED) != 0)
		r->part.error = unload_next(&r->u);
	if ((r->head->flags & ITEM_FAILED) == 0 &&
		r->part.done < r->part.task->count)
		return fail(err, XR_E_PROTO, "a result that is cut short");
	if ((r->head->flags & ITEM_FAILED) != 0 &&
		(r->part.error == NULL ||
			xr_value_kind(r->part.error) != XR_ERROR))
		return fail(err, XR_E_PROTO, "an error that is none");
	return XR_OK;
}

/* @status: of what its values were to be made of. */
static void
read_result(struct reading *r, enum xr_status status, struct xr_error *err)
{
	if (status == XR_OK)
		status = read_values(r, err);
	unload_fini(&r->u);
	xr_value_unref(r->flags);
	if (status == XR_OK)
		return;
	xr_value_unref(r->part.error);
	r->part.error =
		failure_new(status, "its result cannot be read: %s", err->text);
}

/* False: somebody else has ended it. */
static bool
begin_result(struct xr_pool *pool, struct reading *r)
{
	if (!ledger_end(&pool->ledger, r->head->index, r->head->gen))
		return false;
	r->part.task = &pool->task[r->head->index];
	r->part.ns = r->head->ns;
	r->part.led = true;
	r->job = r->part.task->job;
	if (__builtin_expect(prof_is_on(), false))
		tell_came(pool, r->part.task, r->head);
	return true;
}

/* Moving averages of 1/8. */
static void
learn(struct xr_pool *pool, uint64_t ns, size_t len)
{
	if (pool->task_ns == 0) {
		pool->task_ns = ns;
		pool->task_len = len;
		return;
	}
	pool->task_ns = (pool->task_ns * 7 + ns) / 8;
	pool->task_len = (pool->task_len * 7 + len) / 8;
}

void
take_result(struct xr_pool *pool, const char *data, size_t len)
{
	struct result_head head;
	struct reading r = { .head = &head };
	struct xr_error err = { 0 };

	if (len < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	if (!begin_result(pool, &r))
		return;
	learn(pool, head.ns, len);
	if (pool->by_mates) {
		r.part.done = r.part.task->done;
		r.part.error = r.part.task->error;
		r.part.ns = r.part.task->ns;
		job_part_over(pool, &r.part);
		return;
	}
	read_result(&r,
		unload_init(&r.u, data + sizeof(head), len - sizeof(head),
			head.flags, &err),
		&err);
	job_part_over(pool, &r.part);
}

/* One of XR_ENC_SHARE. */
void
take_shared(struct xr_pool *pool, const struct xr_value *item)
{
	struct result_head head;
	struct reading r = { .head = &head };
	struct xr_error err = { 0 };
	struct xr_value *list;

	if (!share_head(item, &head, sizeof(head), &list) ||
		!begin_result(pool, &r))
		return;
	unload_list(&r.u, list);
	read_result(&r, XR_OK, &err);
	job_part_over(pool, &r.part);
}

/* --- all there are ---------------------------------------------------------------------- */

/* What cannot be read is gone, and its worker, too. */
static size_t
take_one_shared(struct xr_pool *pool)
{
	struct xr_value *item = NULL;
	enum xr_status status;

	if (xr_queue_empty(pool->out))
		return 0;
	status = xr_queue_get(pool->out, &item, 0, NULL);
	if (status == XR_OK)
		take_shared(pool, item);
	xr_value_unref(item);
	feed_hungry(pool);
	return status != XR_E_TIMEOUT && status != XR_E_CLOSED;
}

/* By who leads: what is there, at most a batch. */
static size_t
take_batch(struct xr_pool *pool)
{
	size_t count = TAKE_BATCH;

	if (pool->conf.mode == XR_ENC_SHARE)
		return take_one_shared(pool);
	for (uint32_t i = 0; i < TAKE_BATCH; i++)
		pool->taker[i].buf = &pool->buf[i];
	if (take_now(pool->out, pool->taker, &count, NULL) != XR_OK)
		return 0;
	for (size_t i = 0; i < count; i++)
		take_result(pool, pool->taker[i].made, pool->buf[i].len);
	feed_hungry(pool);
	return count;
}

/* --- leading ------------------------------------------------------------------------------ */

static bool
lead_take(struct xr_pool *pool)
{
	uint32_t no = 0;

	return atomic_load_explicit(&pool->led, memory_order_relaxed) == 0 &&
		atomic_compare_exchange_strong(&pool->led, &no, 1);
}

/* To a follower; under the lock, as it may be gone after that. */
static bool
hand_on(struct xr_pool *pool)
{
	struct waiter *w;
	uint32_t state;

	pthread_mutex_lock(&pool->lock);
	w = TAILQ_FIRST(&pool->followers);
	if (w == NULL) {
		atomic_store(&pool->led, 0);
		if (atomic_load(&pool->out_is_over))
			pthread_cond_broadcast(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
		return false;
	}
	TAILQ_REMOVE(&pool->followers, w, list);
	w->follows = false;
	pool->heir = w;
	state = atomic_load(&w->state);
	while (state != WAITER_DONE &&
		!atomic_compare_exchange_weak(&w->state, &state, WAITER_BATON))
		;
	if (state == WAITER_ASLEEP)
		word_wake(&w->state, 1);
	pthread_mutex_unlock(&pool->lock);
	return true;
}

/* The keeper is to look, if anything may come, and nobody else does. */
static void
have_watched(struct xr_pool *pool)
{
	if (atomic_load(&pool->open) == 0 || atomic_load(&pool->led) != 0 ||
		atomic_load(&pool->watched) != 0)
		return;
	if (atomic_exchange(&pool->watched, 1) != 0)
		return;
	pthread_mutex_lock(&pool->lock);
	if (!atomic_load(&pool->out_is_over))
		keeper_watch(pool);
	pthread_mutex_unlock(&pool->lock);
}

static void
lead_leave(struct xr_pool *pool)
{
	if (!hand_on(pool))
		have_watched(pool);
}

void
take_begun(struct xr_pool *pool)
{
	if (pool->out != NULL)
		have_watched(pool);
}

void
take_nudge(struct xr_pool *pool)
{
	if (pool->out == NULL)
		return;
	atomic_fetch_add(&pool->nudges, 1);
	if (atomic_load(&pool->naps))
		word_wake(&pool->nudges, 1);
	wake_ring(&pool->out->hall->head->items_wake, UINT32_MAX);
}

/* Who takes the lead sees that there is nothing, or is seen. */
void
take_end(struct xr_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	atomic_store(&pool->out_is_over, true);
	pthread_mutex_unlock(&pool->lock);
	take_nudge(pool);
	pthread_mutex_lock(&pool->lock);
	while (atomic_load(&pool->led) != 0)
		pthread_cond_wait(&pool->changed, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

/* Where the program takes results: nothing is known of how it waits. */
static bool
lead_by_hook(struct xr_pool *pool, const struct waiter *w, int64_t deadline)
{
	lead_deliver_begin();
	do
		hook_take(pool, future_left(deadline));
	while (!waiter_is_done(w) && !lead_has_later() &&
		future_left(deadline) > 0 && !atomic_load(&pool->out_is_over));
	lead_leave(pool);
	lead_deliver_end();
	return future_left(deadline) > 0;
}

/* --- naps --------------------------------------------------------------------------------- */

/*
 * To be woken costs who leads, and the worker that wakes him, more than short tasks do. With
 * many tasks before the workers he looks by himself, from time to time: so late is what comes
 * meanwhile, at most, and less than an eighth of what is left will take. 0: he is to be
 * woken.
 */
static uint64_t
nap_ns(const struct xr_pool *pool)
{
	const struct hall_plan *plan = &pool->out->hall->plan;
	uint64_t open = atomic_load_explicit(&pool->open, memory_order_relaxed);
	uint64_t workers = pool->conf.workers, some = open / NAP_SHARE;
	uint64_t room = (uint64_t)plan->blocks * plan->block / NAP_SHARE;
	uint64_t ns;

	if (some < workers || atomic_load(&pool->starves))
		return 0;
	if (some * pool->task_len > room)
		some = room / (pool->task_len + 1);
	ns = some * pool->task_ns / workers;
	if (ns > NAP_MAX_NS)
		ns = NAP_MAX_NS;
	/* It is for two of them, at least. */
	return ns < NAP_MIN_NS || ns * workers < 2 * pool->task_ns ? 0 : ns;
}

/* False: it is not the time for that, or he was nudged. */
static bool
nap(struct xr_pool *pool, const struct waiter *w, int64_t deadline)
{
	uint64_t ns = nap_ns(pool);
	uint32_t nudges = atomic_load(&pool->nudges);
	int64_t until;

	if (ns == 0)
		return false;
	until = clock_now() + (int64_t)ns;
	if (until >= deadline)
		return false;
	atomic_store(&pool->naps, true);
	if (!waiter_is_done(w) && !atomic_load(&pool->out_is_over))
		word_sleep(&pool->nudges, nudges, until);
	atomic_store(&pool->naps, false);
	return atomic_load(&pool->nudges) == nudges;
}

/* Until @w is done. False: the time is over. */
static bool
lead(struct xr_pool *pool, const struct waiter *w, int64_t deadline)
{
	struct spell s;

	lead_deliver_begin();
	spell_init(&s, pool->out->hall, &pool->out->hall->head->items_wake,
		future_left(deadline));
	for (;;) {
		size_t count = take_batch(pool);

		feed_told(pool);
		if (waiter_is_done(w) || lead_has_later() ||
			atomic_load(&pool->out_is_over))
			break;
		if (count > 0 && s.begun)
			wait_again(&s.wait);
		if (count > 0 || (!s.armed && nap(pool, w, deadline))) {
			/* Of this, not of naps, it counts the time that is left. */
			if (!s.begun)
				s.timeout = future_left(deadline);
			continue;
		}
		if (spell_turn(&s, NULL) != XR_OK)
			break;
	}
	spell_end(&s);
	lead_leave(pool);
	lead_deliver_end();
	return future_left(deadline) > 0;
}

/* --- following ---------------------------------------------------------------------------- */

/* False: nobody leads. */
static bool
enlist(struct xr_pool *pool, struct waiter *w)
{
	bool is_led;

	pthread_mutex_lock(&pool->lock);
	is_led = atomic_load(&pool->led) != 0;
	if (is_led) {
		w->follows = true;
		TAILQ_INSERT_TAIL(&pool->followers, w, list);
	}
	pthread_mutex_unlock(&pool->lock);
	return is_led;
}

/* Gives whether it has the lead now. */
static bool
delist(struct xr_pool *pool, struct waiter *w)
{
	uint32_t baton = WAITER_BATON;
	bool is_heir;

	pthread_mutex_lock(&pool->lock);
	if (w->follows)
		TAILQ_REMOVE(&pool->followers, w, list);
	w->follows = false;
	is_heir = pool->heir == w;
	if (is_heir)
		pool->heir = NULL;
	pthread_mutex_unlock(&pool->lock);
	atomic_compare_exchange_strong(&w->state, &baton, WAITER_PENDING);
	return is_heir;
}

/* Gives whether it has the lead now. */
static bool
follow(struct xr_pool *pool, struct waiter *w, int64_t deadline)
{
	if (!enlist(pool, w))
		return false;
	waiter_rest(w, deadline);
	return delist(pool, w);
}

bool
take_await(struct xr_pool *pool, struct waiter *w, int64_t deadline)
{
	bool leads = false;

	if (pool->gang != NULL) {
		thread_tidy(pool);
		waiter_rest(w, deadline);
		return waiter_is_done(w);
	}
	while (!waiter_is_done(w)) {
		if (atomic_load(&pool->out_is_over)) {
			if (leads)
				lead_leave(pool);
			leads = false;
			waiter_rest(w, deadline);
			break;
		}
		if (leads || lead_take(pool)) {
			leads = atomic_load(&pool->out_is_over);
			if (leads)
				continue;
		} else {
			leads = follow(pool, w, deadline);
			if (!leads && future_left(deadline) == 0)
				return waiter_is_done(w);
			continue;
		}
		if (!(pool->ops.outqueue_get != NULL ?
				    lead_by_hook(pool, w, deadline) :
				    lead(pool, w, deadline)))
			return waiter_is_done(w);
	}
	if (leads)
		lead_leave(pool);
	return waiter_is_done(w);
}

/* --- in a list ----------------------------------------------------------------------------- */

bool
take_await_in(struct xr_pool *pool, struct room_list *list, struct room *r,
	int64_t deadline)
{
	bool done;

	TAILQ_INSERT_TAIL(list, r, list);
	pthread_mutex_unlock(&pool->lock);
	done = take_await(pool, &r->waiter, deadline);
	pthread_mutex_lock(&pool->lock);
	if (!waiter_is_done(&r->waiter))
		TAILQ_REMOVE(list, r, list);
	return done || waiter_is_done(&r->waiter);
}

/* --- the keeper ---------------------------------------------------------------------------- */

/* As a get with no time: who polls is told that there is nothing. */
static void
darken(struct xr_pool *pool)
{
	struct hall *h = pool->out->hall;

	hall_darken(h);
	if (!xr_queue_empty(pool->out))
		hall_light(h);
}

void
take_for_keeper(struct xr_pool *pool)
{
	size_t count;

	atomic_store(&pool->watched, 0);
	if (!lead_take(pool))
		return;
	lead_deliver_begin();
	do
		count = pool->ops.outqueue_get != NULL ? hook_take(pool, 0) :
							 take_batch(pool);
	while (count > 0);
	feed_told(pool);
	darken(pool);
	lead_leave(pool);
	lead_deliver_end();
}
