/* SPDX-License-Identifier: Apache-2.0 */
/* seat.c - see seat.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/pool/help.h"
#include "worker/pool/seat.h"
#include "worker/pool/tell.h"
#include "worker/rpc/future.h"

static bool
is_cancelled(const struct hand *h)
{
	const struct stint *s = h->ctx;
	const struct ledger *l = &s->pool->ledger;

	return atomic_load(&l->head->ended) != 0 ||
		atomic_load(&l->task[s->index].cancelled) == s->gen + 1;
}

static void
stint_init(struct stint *s, struct xr_pool *pool, uint32_t i)
{
	struct seat *seat = &pool->seats[i];

	s->pool = pool;
	s->seat = seat;
	s->place = i;
	s->hand = (struct hand){
		.name = seat->name,
		.is_cancelled = is_cancelled,
		.ctx = s,
	};
}

/* --- a task ----------------------------------------------------------------------- */

static struct xr_value *
context_of(const struct xr_pool *pool, uint32_t seat, struct xr_value *nil)
{
	if ((pool->conf.flags & XR_POOL_CONTEXT) == 0)
		return NULL;
	return pool->conf.contexts != NULL ?
		xr_value_at(pool->conf.contexts, seat) :
		nil;
}

static inline struct run_plan
plan_of(const struct stint *s)
{
	const struct job *job = s->part.task->job;

	return (struct run_plan){
		.func = job->func->func,
		.form = job->form,
		.context = context_of(s->pool, s->place, s->seat->nil),
		.bound = job->func->bound,
		.named = job->named,
	};
}

struct stint *
stint_begin(struct xr_pool *pool, struct task *t, uint32_t i)
{
	struct seat *seat = &pool->seats[i];
	struct stint *s = &seat->own;

	s->index = (uint32_t)(t - pool->task);
	s->gen = t->gen & LEDGER_GEN_MASK;
	s->part = (struct job_part){ .task = t };
	s->began = clock_now();
	s->since = ledger_since(&pool->ledger, i, s->began);
	seat->now = s;
	return s;
}

/* Others than who waits for it may want it, and so it is not cancelled with him. Who asks may
 * have kept the call, and be late. */
static bool
is_cancelled_loose(const struct hand *h)
{
	const struct stint *s = h->ctx;
	struct xr_pool *pool = s->pool;
	bool is;

	pthread_mutex_lock(&pool->lock);
	is = atomic_load(&pool->ledger.head->ended) != 0 || s->loose == NULL ||
		atomic_load(&s->loose->ended);
	pthread_mutex_unlock(&pool->lock);
	return is;
}

void
stint_begin_inside(struct stint *s, struct xr_pool *pool, struct task *t)
{
	uint32_t i = gang_seat(pool->gang);
	struct seat *seat = &pool->seats[i];

	*s = (struct stint){
		.part = { .task = t, .inside = true },
		.began = clock_now(),
		.outer = seat->now,
	};
	stint_init(s, pool, i);
	if (atomic_load(&t->held) == TASK_LOOSE) {
		s->loose = t->job;
		s->hand.is_cancelled = is_cancelled_loose;
	} else {
		s->index = (uint32_t)(t - pool->task);
		s->gen = t->gen & LEDGER_GEN_MASK;
	}
	seat->now = s;
}

static void
leave_loose(struct stint *s)
{
	pthread_mutex_lock(&s->pool->lock);
	s->loose = NULL;
	pthread_mutex_unlock(&s->pool->lock);
}

void
stint_end(struct stint *s)
{
	struct xr_pool *pool = s->pool;

	s->seat->now = s->outer;
	if (!s->part.inside)
		ledger_since(&pool->ledger, s->place, s->since);
	if (s->loose != NULL)
		leave_loose(s);
	s->part.ns = (uint64_t)(clock_now() - s->began);
	if (__builtin_expect(prof_is_on(), false))
		tell_ran(pool, s->part.task, s->began, &s->part);
}

/* One more result. False: that was it. */
static bool
note(struct job_part *part, struct xr_value *result, bool ok)
{
	struct job *job = part->task->job;
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

bool
stint_call(struct stint *s, struct xr_value **result)
{
	const struct job *job = s->part.task->job;
	const struct run_plan plan = plan_of(s);

	return run_apply(&s->hand, &plan,
		job->args != NULL ? job->args : s->seat->none, result);
}

void
stint_run(struct stint *s)
{
	const struct task *t = s->part.task;
	const struct job *job = t->job;
	struct run_plan plan = plan_of(s);
	struct xr_value *result;
	bool goes_on = true, ok;

	if (job->kind == JOB_APPLY) {
		ok = stint_call(s, &result);
		note(&s->part, result, ok);
		return;
	}
	for (uint32_t i = 0; i < t->count && goes_on; i++) {
		struct xr_value *item = xr_value_at(job->args, t->first + i);

		ok = run_item(&s->hand, &plan, item, &result);
		goes_on = note(&s->part, result, ok);
	}
	run_end(&plan);
}

bool
stint_call_left(struct stint *s, struct xr_value **result)
{
	return hand_left(&s->hand, result);
}

void
stint_left(struct stint *s)
{
	struct xr_value *result;
	bool ok = stint_call_left(s, &result);

	if (note(&s->part, result, ok) && s->part.done < s->part.task->count)
		s->part.error = failure_new(XR_E_STATE,
			"it was not run: the one before it has ended its thread (pthread_exit)");
}

/* --- of a mate -------------------------------------------------------------------- */

void
seat_run(struct xr_pool *pool, uint32_t index, uint32_t i)
{
	struct task *t = &pool->task[index];
	struct stint *s = stint_begin(pool, t, i);

	stint_run(s);
	stint_end(s);
	t->done = s->part.done;
	t->error = s->part.error;
	t->ns = s->part.ns;
}

void
seat_left(struct xr_pool *pool, uint32_t i)
{
	struct seat *seat = &pool->seats[i];

	hand_let_go(&seat->own.hand);
	seat->now = NULL;
}

enum xr_status
seat_initialise(struct xr_pool *pool, uint32_t i, struct xr_error *err)
{
	const struct seat *seat = &pool->seats[i];
	struct run_plan plan = { .context = context_of(pool, i, seat->nil) };
	struct hand hand = { .name = seat->name };
	struct xr_value *args, *result = NULL;
	enum xr_status status;

	if (pool->conf.initializer == NULL)
		return XR_OK;
	args = pool->conf.initargs != NULL ? pool->conf.initargs : seat->none;
	status = hand_find(pool->conf.initializer, &plan.func, err);
	if (status == XR_OK && !run_apply(&hand, &plan, args, &result))
		status = failure_status(result, err);
	xr_value_unref(result);
	return status;
}

/* --- in the middle of a task --------------------------------------------------------- */

bool
seat_is_ours(const struct xr_pool *pool)
{
	return pool->gang != NULL && gang_seat(pool->gang) != GANG_NOBODY;
}

/* Of all items, or the first error. */
static bool
run_items(struct hand *hand, struct run_plan *plan,
	const struct xr_value *items, struct xr_value **result)
{
	struct xr_value *list = xr_value_new_list(), *one = NULL;
	bool ok = list != NULL;

	for (size_t i = 0; ok && i < xr_value_count(items); i++) {
		ok = run_item(hand, plan, xr_value_at(items, i), &one);
		if (ok && one == NULL)
			one = xr_value_new_nil();
		if (ok) {
			ok = xr_value_append(list, one) == XR_OK;
			one = NULL;
		}
	}
	run_end(plan);
	if (!ok)
		xr_value_unref(list);
	*result = ok ? list : one;
	return ok;
}

enum xr_status
seat_call(struct xr_pool *pool, const struct job_ask *ask,
	const struct entry *entry, struct xr_value **value,
	struct xr_error *err)
{
	uint32_t i = gang_seat(pool->gang);
	const struct seat *seat = &pool->seats[i];
	const struct xr_pool_task *t = ask->task;
	struct hand hand = { .name = seat->name };
	struct run_plan plan = {
		.func = entry->func,
		.form = ask->form,
		.context = context_of(pool, i, seat->nil),
		.bound = entry->bound,
		.named = t->named,
	};
	struct xr_value *result = NULL;
	enum xr_status status = XR_OK;
	bool ok;

	if (seat->now != NULL) {
		hand.is_cancelled = seat->now->hand.is_cancelled;
		hand.ctx = seat->now;
	}
	ok = ask->kind == JOB_APPLY ?
		run_apply(&hand, &plan, t->args != NULL ? t->args : seat->none,
			&result) :
		run_items(&hand, &plan, t->args, &result);
	if (!ok)
		status = failure_status(result, err);
	else if (result == NULL)
		result = xr_value_new_nil();
	if (ok && value != NULL)
		*value = result;
	else
		xr_value_unref(result);
	return status;
}

/* --- all of them ------------------------------------------------------------------ */

enum xr_status
seats_new(struct xr_pool *pool, struct xr_error *err)
{
	size_t size = pool->conf.workers * sizeof(*pool->seats);

	pool->seats = aligned_alloc(_Alignof(struct seat), size);
	if (pool->seats == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	memset(pool->seats, 0, size);
	for (uint32_t i = 0; i < pool->conf.workers; i++) {
		struct seat *s = &pool->seats[i];

		snprintf(s->name, sizeof(s->name), "%s/%u", pool->conf.name, i);
		stint_init(&s->own, pool, i);
		s->nil = xr_value_new_nil();
		s->none = xr_value_new_list();
		if (s->nil == NULL || s->none == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
	}
	return XR_OK;
}

void
seats_free(struct xr_pool *pool)
{
	for (uint32_t i = 0; pool->seats != NULL && i < pool->conf.workers;
		i++) {
		help_fini(&pool->seats[i]);
		xr_value_unref(pool->seats[i].nil);
		xr_value_unref(pool->seats[i].none);
	}
	free(pool->seats);
	pool->seats = NULL;
}
