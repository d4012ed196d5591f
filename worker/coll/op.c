/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - see op.h. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/coll/board.h"
#include "worker/coll/conflict.h"
#include "worker/coll/mail.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/local.h"
#include "worker/rpc/peer.h"

#define CHECK_FUTURE UINT32_C(0x80000000) /* of the form with a future */

#define TURNS_NS (300 * NS_PER_US) /* others are let run, before it sleeps */

static struct wait_site site; /* of all who wait for members */

/* --- what came ----------------------------------------------------------------- */

static bool
part_put(struct part *p, const struct xr_body *body)
{
	p->len = body->len;
	if (body->len <= OP_SMALL) {
		memcpy(p->small, body->len > 0 ? body->data : p->small,
			body->len);
		p->data = p->small;
	} else {
		p->held = held_take(body);
		p->data = p->held != NULL ? held_data(p->held) : NULL;
	}
	p->here = p->data != NULL;
	return p->here;
}

static void
part_move(struct part *to, struct part *from)
{
	*to = *from;
	if (to->held == NULL)
		to->data = to->small;
	*from = (struct part){ 0 };
}

static void
part_fini(struct part *p)
{
	held_unref(p->held);
	p->held = NULL;
}

/* --- its life ------------------------------------------------------------------- */

/* Of what is called; 0 is of nothing. */
static uint32_t
check_of(const struct plan *plan, const struct xr_coll_op *call)
{
	const uint64_t words[] = { plan->code, plan->reduces ? call->op : 0,
		plan->has_root ? (uint64_t)call->rank : 0, call->dtype,
		call->count };
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash = (hash ^ words[i]) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	return (uint32_t)hash | 1;
}

static void run_work(struct work *work);

struct op *
op_new(struct xr_coll *team)
{
	size_t parts = (size_t)OP_STAGES * team->count;
	struct op *op = calloc(1,
		sizeof(*op) + parts * sizeof(op->part[0]) +
			team->count * sizeof(op->src[0]));

	if (op == NULL)
		return NULL;
	op->team = team_ref(team);
	op->src = (const void **)&op->part[parts];
	op->work.run = run_work;
	return op;
}

void
op_set(struct op *op, const struct plan *plan, const struct xr_coll_op *call)
{
	struct xr_coll *team = op->team;

	op->plan = plan;
	op->call = *call;
	op->bytes = call->count * xr_dtype_size(call->dtype);
	op->root = plan->has_root ?
		(uint32_t)team_place_of_rank(team, call->rank) :
		0;
	op->check = check_of(plan, call);
	op->stage = 0;
}

/* And what it will send and wait for. */
static struct op *
op_make(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call)
{
	struct op *op = op_new(team);

	if (op == NULL)
		return NULL;
	op_set(op, plan, call);
	op->deadline = team_deadline(team, call);
	if (plan->begin != NULL)
		plan->begin(op);
	op->stages = plan->stages(op);
	for (uint32_t s = 0; s < op->stages; s++)
		for (uint32_t i = 0; i < team->count; i++)
			op->missing[s] += (int64_t)i != team->me &&
				plan->wants(op, s, i) != PLAN_NONE;
	return op;
}

void
op_free(struct op *op)
{
	for (size_t i = 0; i < (size_t)OP_STAGES * op->team->count; i++)
		part_fini(&op->part[i]);
	storage_unref(op->made);
	team_unref(op->team);
	free(op);
}

/* --- failing -------------------------------------------------------------------- */

void
op_stir(struct op *op)
{
	struct waiter *w = op->waiter;

	op->waiter = NULL;
	if (w != NULL)
		waiter_done(w);
	else if (op->future != NULL && !op->posted)
		op->posted = crew_post(&op->work);
}

static void
early_drop(struct xr_coll *team, struct early *e)
{
	TAILQ_REMOVE(&team->early, e, list);
	load_drop(&team->account[e->from].early, e->bytes);
	part_fini(&e->part);
	free(e);
}

void
op_forget_early(struct xr_coll *team)
{
	struct early *e;

	while ((e = TAILQ_FIRST(&team->early)) != NULL)
		early_drop(team, e);
}

/* --- arriving ------------------------------------------------------------------- */

struct op *
op_find(struct xr_coll *team, uint32_t seq)
{
	struct op *op;

	TAILQ_FOREACH(op, &team->ops, list)
	if (op->seq == seq)
		return op;
	return NULL;
}

static enum xr_status
fits(struct op *op, const struct early *e)
{
	size_t wants;

	if (e->check != op->check)
		return XR_E_CONFLICT;
	if (e->stage >= op->stages || op_part(op, e->stage, e->from)->here)
		return XR_E_PROTO;
	wants = op->plan->wants(op, e->stage, e->from);
	return wants == e->part.len ? XR_OK : XR_E_PROTO;
}

/* @e's part becomes @op's; the lock is held. */
static void
take(struct op *op, struct early *e, struct conflict *v)
{
	conflict_judge(op, e->from, e->seq, fits(op, e), v);
	if (v->status != XR_OK)
		return;
	part_move(op_part(op, e->stage, e->from), &e->part);
	if (--op->missing[e->stage] == 0 && e->stage == op->stage)
		op_stir(op);
}

/* Of one who shows nothing of what is waited for here it is something else. */
static bool
keep_early(struct xr_coll *team, struct early *e, struct conflict *v)
{
	struct early *kept;

	if (!op_may_be_ahead(team, e)) {
		*v = (struct conflict){ .status = XR_E_PROTO };
		op_ahead_text(team, e, v->why, sizeof(v->why));
		return true;
	}
	kept = malloc(sizeof(*kept));
	if (kept == NULL)
		return false;
	load_add(&team->account[e->from].early, e->bytes);
	*kept = *e;
	part_move(&kept->part, &e->part);
	TAILQ_INSERT_TAIL(&team->early, kept, list);
	if (board_lacks(team->board, e->from))
		board_judge(team->board, e->from, e->seq, v);
	return true;
}

bool
op_is_ahead(const struct xr_coll *team, uint32_t from, uint32_t *seq)
{
	const struct early *e;

	TAILQ_FOREACH(e, &team->early, list)
	if (e->from == from) {
		*seq = e->seq;
		return true;
	}
	return false;
}

void
op_arrived(struct xr_coll *team, uint32_t from, const struct xr_record *record,
	const struct xr_body *body)
{
	struct early e = {
		.seq = (uint32_t)record->corr & 0xffffff,
		.stage = record->aux,
		.from = from,
		.check = record->method,
		.bytes = body->len,
	};
	struct conflict v = { .status = XR_OK };
	bool memory = part_put(&e.part, body);
	struct op *op;

	pthread_mutex_lock(&team->lock);
	op = memory ? op_find(team, e.seq) : NULL;
	if (op != NULL)
		take(op, &e, &v);
	else if (memory && team->failed == XR_OK && op_is_to_come(team, e.seq))
		memory = keep_early(team, &e, &v);
	pthread_mutex_unlock(&team->lock);
	part_fini(&e.part);
	if (!memory)
		v = (struct conflict){ XR_E_NOMEM,
			.why = "no memory for what a member sent" };
	conflict_settle(team, &v);
}

/* --- carrying it through --------------------------------------------------------- */

/* What came for it before it began; the lock is held. */
static void
take_early(struct op *op, struct conflict *v)
{
	struct early_list *all = &op->team->early;
	struct early *e, *next;

	for (e = TAILQ_FIRST(all); e != NULL; e = next) {
		next = TAILQ_NEXT(e, list);
		if (e->seq != op->seq)
			continue;
		if (v->status == XR_OK)
			take(op, e, v);
		early_drop(op->team, e);
	}
}

/* Into the group, unless that has failed. */
static enum xr_status
enter(struct op *op, struct xr_error *err)
{
	struct conflict v = { .status = XR_OK };
	struct xr_coll *team = op->team;
	enum xr_status status;

	pthread_mutex_lock(&team->lock);
	status = op_await_room(op, err);
	if (status == XR_OK) {
		op->seq = team->next++ & 0xffffff;
		load_add(&team->load, op->bytes);
		TAILQ_INSERT_TAIL(&team->ops, op, list);
		take_early(op, &v);
	}
	pthread_mutex_unlock(&team->lock);
	conflict_settle(team, &v);
	return status;
}

/* Out of it; gives how it ended. */
static enum xr_status
unlist(struct op *op, struct xr_error *err)
{
	struct xr_coll *team = op->team;

	pthread_mutex_lock(&team->lock);
	TAILQ_REMOVE(&team->ops, op, list);
	if (op->seq != OP_SHOWN) {
		load_drop(&team->load, op->bytes);
		pthread_cond_broadcast(&team->changed);
	}
	pthread_mutex_unlock(&team->lock);
	return op->is_over ? fail(err, op->status, "%s", op->why) : XR_OK;
}

static enum xr_status
leave(struct op *op, struct xr_error *err)
{
	enum xr_status status = unlist(op, err);

	op_free(op);
	return status;
}

/* True: what the stage waits for is here, or it is over. Else @w will be done. */
static bool
is_there(struct op *op, struct waiter *w)
{
	bool there;

	pthread_mutex_lock(&op->team->lock);
	there = op->is_over || op->missing[op->stage] == 0;
	op->waiter = there ? NULL : w;
	if (!there && w == NULL)
		op->posted = false;
	pthread_mutex_unlock(&op->team->lock);
	return there;
}

/* Fails the group if members of @op's stage are missing still. Returns true if so.
 *
 * What arrived in time, and was not read yet, is read first: a member that came is not
 * named. */
static bool
fail_late(struct op *op)
{
	enum xr_status status;
	char why[232];
	bool late;

	lead_catch_up();
	lead_decline();
	pthread_mutex_lock(&op->team->lock);
	board_look(op->team->board);
	late = !op->is_over && op->missing[op->stage] > 0;
	status = op_late(op, why, sizeof(why));
	pthread_mutex_unlock(&op->team->lock);
	if (late)
		team_fail(op->team, status, why, true);
	return late;
}

/* If a member takes nothing more until the time is over, the members that are missing
 * are named, as they are if nothing has to be sent. */
static void
send_stage(struct op *op)
{
	struct xr_error err = { 0 };
	enum xr_status status = mail_stage(op, &err);

	if (status == XR_OK)
		atomic_store(&op->sent, op->stage + 1);
	else if (status != XR_E_TIMEOUT || lead_delivers() || !fail_late(op))
		team_fail(op->team, err.status, err.text, true);
}

/* Where there are more members than processors each has to run before all are done: who
 * lets others run is back soon, and need not be woken. */
static void
let_others_run(const struct op *op, const struct waiter *w)
{
	int64_t end = clock_now() + TURNS_NS, before = end - TURNS_NS,
		now = before;

	while (!waiter_is_done(w) && now < end && now < op->deadline &&
		now - before < OP_SLICE_NS) {
		before = now;
		lead_poll();
		now = clock_now();
	}
}

static void
await_stage(struct op *op)
{
	const struct wait_hint hint = { NULL, &site };
	struct waiter w = { 0 };

	if (is_there(op, &w)) {
		lead_decline();
		return;
	}
	crew_wait_begin();
	if (op->team->count > local_cpus())
		let_others_run(op, &w);
	if (!lead_wait(&w, &hint, op->deadline)) {
		fail_late(op);
		/* It is complete, or the thread that failed the group ends it. */
		lead_wait(&w, &hint, INT64_MAX);
	}
	crew_wait_end();
}

enum xr_status
op_await(struct op *op, struct xr_error *err)
{
	await_stage(op);
	return unlist(op, err);
}

/* The next stage; false: there is none. */
static bool
work_stage(struct op *op)
{
	enum xr_status status;
	bool is_over;

	pthread_mutex_lock(&op->team->lock);
	is_over = op->is_over;
	pthread_mutex_unlock(&op->team->lock);
	if (is_over)
		return false;
	status = op->plan->work(op, op->stage);
	if (status != XR_OK) {
		team_fail(op->team, status, "out of memory", true);
		return false;
	}
	for (uint32_t i = 0; i < op->team->count; i++)
		part_fini(op_part(op, op->stage, i));
	pthread_mutex_lock(&op->team->lock);
	op->stage++;
	pthread_mutex_unlock(&op->team->lock);
	return op->stage < op->stages;
}

enum xr_status
op_enter(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct op **out, struct xr_error *err)
{
	struct op *op = op_make(team, plan, call);
	enum xr_status status;

	if (op == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = enter(op, err);
	if (status == XR_OK)
		*out = op;
	else
		op_free(op);
	return status;
}

enum xr_status
op_carry(struct op *op, struct xr_error *err)
{
	do {
		lead_expect();
		send_stage(op);
		await_stage(op);
	} while (work_stage(op));
	return leave(op, err);
}

void
op_drop(struct op *op)
{
	leave(op, NULL);
}

enum xr_status
op_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *err)
{
	struct op *op = NULL;
	enum xr_status status = op_enter(team, plan, call, &op, err);

	return status == XR_OK ? op_carry(op, err) : status;
}

/* --- with a future ---------------------------------------------------------------- */

static void
finish(struct op *op)
{
	struct xr_future *future = op->future;
	struct xr_error err = { 0 };

	lead_answered();
	if (leave(op, &err) == XR_OK)
		future_end(future, xr_value_new_nil(), false);
	else
		future_fail(future, err.status, "%s", err.text);
	xr_future_unref(future);
}

static void
run_work(struct work *work)
{
	struct op *op = (struct op *)((char *)work - offsetof(struct op, work));

	while (is_there(op, NULL)) {
		if (!work_stage(op)) {
			finish(op);
			return;
		}
		send_stage(op);
	}
}

/* One that failed when there was no crew any more. */
static struct op *
find_left(struct xr_coll *team)
{
	struct op *op;

	pthread_mutex_lock(&team->lock);
	TAILQ_FOREACH(op, &team->ops, list)
	if (op->future != NULL && op->is_over && !op->posted)
		break;
	if (op != NULL)
		op->posted = true;
	pthread_mutex_unlock(&team->lock);
	return op;
}

void
op_finish_left(struct xr_coll *team)
{
	struct op *op;

	while ((op = find_left(team)) != NULL)
		run_work(&op->work);
}

/* Others have heard of it, and its memory is in use until it has ended. */
static const struct future_maker maker = { .goes_on = true };

enum xr_status
op_begin(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_future **future,
	struct xr_error *err)
{
	struct op *op = op_make(team, plan, call);
	enum xr_status status = XR_E_NOMEM;

	if (op != NULL)
		op->future = future_new(&maker, NULL);
	if (op == NULL || op->future == NULL) {
		if (op != NULL)
			op_free(op);
		return fail(err, status, "out of memory");
	}
	op->check ^= CHECK_FUTURE;
	op->posted = true; /* nobody else carries it on, until it is sent */
	status = enter(op, err);
	if (status != XR_OK) {
		xr_future_unref(op->future);
		op_free(op);
		return status;
	}
	*future = xr_future_ref(op->future);
	if (op->deadline != INT64_MAX)
		lead_due(op->deadline);
	lead_asked();
	send_stage(op);
	if (!crew_post(&op->work)) {
		team_fail(team, XR_E_CLOSED, "the agent was shut down", false);
		run_work(&op->work);
	}
	/* What came before has rung nobody. */
	if (lead_delivers())
		lead_bell();
	else
		lead_poll();
	return XR_OK;
}
