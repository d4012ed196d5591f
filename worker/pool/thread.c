/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - see thread.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/value/many.h"
#include "worker/gang/gang.h"
#include "worker/pool/call.h"
#include "worker/pool/hand.h"
#include "worker/pool/run.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"

/* What belongs to a seat. */
struct seat {
	struct hand hand;
	struct xr_pool *pool;
	uint32_t index, gen;         /* of what it runs */
	struct xr_value *nil, *none; /* NIL, and an empty LIST */
	char name[140];
	/* Tasks of calls that are over: added by who sits here, taken all at once. */
	_Alignas(128) _Atomic(struct task *) done;
};

static bool
is_cancelled(const struct hand *h)
{
	const struct seat *s = h->ctx;
	const struct ledger *l = &s->pool->ledger;

	return atomic_load(&l->head->ended) != 0 ||
		atomic_load(&l->task[s->index].cancelled) == s->gen + 1;
}

/* --- tasks ------------------------------------------------------------------------ */

/* One more result. False: that was it. */
static bool
note(struct job *job, struct job_part *part, struct xr_value *result, bool ok)
{
	size_t at = part->task->first + part->done;

	if (!ok && result == NULL)
		result = failure_new(XR_E_NOMEM, "out of memory");
	if (!ok && job->item == NULL) {
		part->error = result;
		return false;
	}
	job->value[at] = result;
	if (job->item != NULL)
		job->item[at] = ok ? JOB_VALUE : JOB_ERROR;
	part->done++;
	return true;
}

static void
run_calls(struct seat *s, struct run_plan *plan, struct job *job,
	struct job_part *part)
{
	struct xr_value *result;
	bool goes_on = true, ok;

	if (job->kind == JOB_APPLY) {
		ok = run_apply(&s->hand, plan,
			job->args != NULL ? job->args : s->none, &result);
		note(job, part, result, ok);
		return;
	}
	for (uint32_t i = 0; i < part->task->count && goes_on; i++) {
		struct xr_value *item =
			xr_value_at(job->args, part->task->first + i);

		ok = run_item(&s->hand, plan, item, &result);
		goes_on = note(job, part, result, ok);
	}
	run_end(plan);
}

static struct xr_value *
context_of(const struct xr_pool *pool, uint32_t seat, struct xr_value *nil)
{
	if ((pool->conf.flags & XR_POOL_CONTEXT) == 0)
		return NULL;
	return pool->conf.contexts != NULL ?
		xr_value_at(pool->conf.contexts, seat) :
		nil;
}

static struct run_plan
plan_of(const struct xr_pool *pool, const struct job *job, uint32_t seat)
{
	return (struct run_plan){
		.func = job->func->func,
		.form = job->form,
		.context = context_of(pool, seat, pool->seats[seat].nil),
		.bound = job->func->bound,
		.named = job->named,
	};
}

/* What a seat is at: a task, and one around that which waits meanwhile. */
struct stint {
	uint32_t seat;
	int64_t began, around; /* 0: there is none around */
};

/* Until it is over it can be seen from outside, and cancelled. */
static struct stint
enter(struct xr_pool *pool, const struct task *t, uint32_t seat)
{
	struct seat *s = &pool->seats[seat];
	struct stint stint = { .seat = seat, .began = clock_now() };

	s->index = (uint32_t)(t - pool->task);
	s->gen = t->gen & LEDGER_GEN_MASK;
	stint.around = ledger_since(&pool->ledger, seat, stint.began);
	return stint;
}

static void
leave(struct xr_pool *pool, const struct stint *stint, struct job_part *part)
{
	ledger_since(&pool->ledger, stint->seat, stint->around);
	part->ns = (uint64_t)(clock_now() - stint->began);
	if (__builtin_expect(prof_is_on(), false))
		tell_ran(pool, part->task, stint->began, part);
}

static struct job_part
do_task(struct xr_pool *pool, struct task *t, uint32_t seat)
{
	struct run_plan plan = plan_of(pool, t->job, seat);
	struct job_part part = { .task = t };
	struct stint stint = enter(pool, t, seat);

	run_calls(&pool->seats[seat], &plan, t->job, &part);
	leave(pool, &stint, &part);
	return part;
}

static void
run_task(struct xr_pool *pool, struct task *t, uint32_t seat)
{
	struct job_part part = do_task(pool, t, seat);

	job_part_over(pool, &part);
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
run_call(struct xr_pool *pool, struct task *t, uint32_t seat)
{
	struct seat *s = &pool->seats[seat];
	struct job *job = t->job;
	struct run_plan plan = plan_of(pool, job, seat);
	struct job_part part = { .task = t };
	struct stint stint = enter(pool, t, seat);
	struct xr_value *result;
	struct xr_future *future;
	struct call_rest rest;
	bool ok;

	ok = run_apply(&s->hand, &plan, job->args != NULL ? job->args : s->none,
		&result);
	leave(pool, &stint, &part);
	tell_ended(pool, part.ns, !ok);
	job_close(pool);
	future = call_claim(job);
	rest = call_take(job);
	add_done(pool, s, t); /* and so it may be another one's */
	call_drop(&rest);
	call_settle(future, result, !ok);
}

void
thread_run(struct xr_pool *pool, uint32_t index, uint32_t i)
{
	struct task *t = &pool->task[index];
	struct job_part part = do_task(pool, t, i);

	t->done = part.done;
	t->error = part.error;
	t->ns = part.ns;
}

static struct task *
task_of(struct gang_task *gang)
{
	return (struct task *)((char *)gang - offsetof(struct task, gang));
}

static void
drop(struct gang_task *gang)
{
	struct task *t = task_of(gang);

	job_part_dropped(t->job->pool, t);
}

static void
run(struct gang_task *gang, uint32_t seat)
{
	struct task *t = task_of(gang);
	struct xr_pool *pool = t->job->pool;

	if (atomic_load_explicit(&t->job->ended, memory_order_acquire))
		drop(gang);
	else if (t->job->is_own)
		run_call(pool, t, seat);
	else
		run_task(pool, t, seat);
}

enum xr_status
thread_put(struct xr_pool *pool, uint32_t index, struct xr_error *err)
{
	struct gang_task *gang = &pool->task[index].gang;
	const struct job *job = pool->task[index].job;

	gang->run = run;
	gang->drop = drop;
	/* Who would sleep meanwhile does it himself, if a seat is free. */
	if (job->here && job->kind == JOB_APPLY && gang_run(pool->gang, gang))
		return XR_OK;
	return gang_post(pool->gang, gang) ?
		XR_OK :
		fail(err, XR_E_CLOSED, "the pool was closed");
}

/* --- threads ------------------------------------------------------------------------ */

void
thread_left(struct xr_pool *pool, uint32_t i)
{
	struct hand *h = &pool->seats[i].hand;

	if (h->args != NULL && h->lent > 0)
		many_return(h->args, h->lent - 1);
	xr_value_unref(h->args);
	h->args = NULL;
	h->lent = 0;
}

enum xr_status
thread_initialise(struct xr_pool *pool, uint32_t seat, struct xr_error *err)
{
	struct seat *s = &pool->seats[seat];
	struct xr_value *nil = xr_value_new_nil(), *result = NULL, *args;
	struct run_plan plan = { .context = context_of(pool, seat, nil) };
	enum xr_status status;

	if (pool->conf.initializer == NULL) {
		xr_value_unref(nil);
		return XR_OK;
	}
	args = pool->conf.initargs != NULL ? xr_value_ref(pool->conf.initargs) :
					     xr_value_new_list();
	status = hand_find(pool->conf.initializer, &plan.func, err);
	if (status == XR_OK && !run_apply(&s->hand, &plan, args, &result))
		status = failure_status(result, err);
	xr_value_unref(result);
	xr_value_unref(args);
	xr_value_unref(nil);
	return status;
}

static void
begin(void *ctx, uint32_t seat)
{
	struct xr_error err = { 0 };
	struct xr_pool *pool = ctx;
	enum xr_status status = thread_initialise(pool, seat, &err);

	if (status != XR_OK)
		pool_give_up(pool, failure_new(status, "%s", err.text));
}

enum xr_status
thread_seats(struct xr_pool *pool, struct xr_error *err)
{
	size_t size = pool->conf.workers * sizeof(*pool->seats);

	pool->seats = aligned_alloc(_Alignof(struct seat), size);
	if (pool->seats == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	memset(pool->seats, 0, size);
	for (uint32_t i = 0; i < pool->conf.workers; i++) {
		struct seat *s = &pool->seats[i];

		snprintf(s->name, sizeof(s->name), "%s/%u", pool->conf.name, i);
		s->pool = pool;
		s->nil = xr_value_new_nil();
		s->none = xr_value_new_list();
		if (s->nil == NULL || s->none == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
		s->hand = (struct hand){
			.name = s->name,
			.is_cancelled = is_cancelled,
			.ctx = s,
		};
	}
	return XR_OK;
}

enum xr_status
thread_start(struct xr_pool *pool, struct xr_error *err)
{
	const struct gang_opts o = {
		.seats = pool->conf.workers,
		.name = pool->conf.name,
		.begin = begin,
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
	for (uint32_t i = 0; pool->seats != NULL && i < pool->conf.workers;
		i++) {
		xr_value_unref(pool->seats[i].nil);
		xr_value_unref(pool->seats[i].none);
	}
	free(pool->seats);
	pool->seats = NULL;
}
