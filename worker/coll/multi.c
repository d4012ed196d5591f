/* SPDX-License-Identifier: Apache-2.0 */
/* multi.c - see multi.h, and xrun/coll.h for what a program calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "worker/coll/board.h"
#include "worker/coll/kernel.h"
#include "worker/coll/multi.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/coll/team.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/lead.h"

#define STAGE_MOST  ((size_t)16 << 20) /* bytes of the host's memory */
#define PIECE_LEAST 4096 /* bytes of a tensor, though it be more */

/* --- the piece ------------------------------------------------------------------ */

static enum xr_dtype
dtype_of(const struct multi *m)
{
	return m->spot[0].dtype;
}

static size_t
bytes_of(const struct multi *m)
{
	return m->n * xr_dtype_size(dtype_of(m));
}

static bool
is_root(const struct multi *m)
{
	return team_place_of_rank(m->team, m->call->rank) == m->team->me;
}

static enum xr_status
fetch(struct multi *m, uint32_t i, void *host, struct xr_error *err)
{
	size_t one = xr_dtype_size(dtype_of(m));

	return spot_read(&m->spot[i],
		(struct spot_piece){ m->at * one, m->n * one }, host, err);
}

static enum xr_status
store(struct multi *m, const struct spot *spot, const void *host,
	struct xr_error *err)
{
	size_t one = xr_dtype_size(dtype_of(m));

	return spot_write(spot, (struct spot_piece){ m->at * one, m->n * one },
		host, err);
}

/* All of a member's have what one has; but @except, which has it. */
static enum xr_status
store_to_all(struct multi *m, const void *host, int64_t except,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < m->call->count && status == XR_OK; i++)
		if (i != except)
			status = store(m, &m->spot[i], host, err);
	return status;
}

/* --- broadcasting ---------------------------------------------------------------- */

static size_t
room_for_one(const struct multi *m)
{
	return xr_dtype_size(dtype_of(m));
}

static enum xr_status
before_bcast(struct multi *m, struct xr_coll_op *op, struct xr_error *err)
{
	op->data = m->stage;
	op->count = m->n;
	op->dtype = dtype_of(m);
	return is_root(m) ? fetch(m, m->call->index, m->stage, err) : XR_OK;
}

static enum xr_status
after_bcast(struct multi *m, struct xr_error *err)
{
	return store_to_all(m, m->stage,
		is_root(m) ? (int64_t)m->call->index : -1, err);
}

/* --- reducing ---------------------------------------------------------------------- */

/* First what they are combined to, in a type that may be wider; then each. */
static size_t
room_to_reduce(const struct multi *m)
{
	return xr_dtype_size(kernel_wide(dtype_of(m))) +
		m->call->count * xr_dtype_size(dtype_of(m));
}

static uint8_t *
tensors_to_reduce(const struct multi *m)
{
	return m->stage + m->n * xr_dtype_size(kernel_wide(dtype_of(m)));
}

static enum xr_status
before_reduce(struct multi *m, struct xr_coll_op *op, struct xr_error *err)
{
	uint8_t *tensors = tensors_to_reduce(m);
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < m->call->count && status == XR_OK; i++) {
		m->list[i] = tensors + i * bytes_of(m);
		status = fetch(m, i, m->list[i], err);
	}
	if (status != XR_OK)
		return status;
	kernel_begin(&(struct kernel_job){
		.dst = m->stage,
		.src = (const void *const *)m->list,
		.count = m->call->count,
		.n = m->n,
		.dtype = dtype_of(m),
		.op = m->call->op,
	});
	op->data = m->stage;
	op->count = m->n;
	op->dtype = kernel_wide(dtype_of(m));
	op->op = kernel_step(m->call->op);
	return XR_OK;
}

/* Over what it is made of, or where the tensors were, which are of its type. */
static enum xr_status
after_reduce(struct multi *m, struct xr_error *err)
{
	bool is_wide = kernel_wide(dtype_of(m)) != dtype_of(m);
	const void *src = m->stage;
	const struct kernel_job job = {
		.dst = is_wide ? tensors_to_reduce(m) : m->stage,
		.src = &src,
		.count = 1,
		.n = m->n,
		.dtype = dtype_of(m),
		.op = m->call->op,
	};

	if (m->form->plan->has_root && !is_root(m))
		return XR_OK;
	kernel_end(&job, (uint32_t)m->all);
	return m->form->plan->has_root ?
		store(m, &m->spot[m->call->index], job.dst, err) :
		store_to_all(m, job.dst, -1, err);
}

/* --- gathering ----------------------------------------------------------------------- */

/* First a member's own, then those of all. */
static size_t
room_to_gather(const struct multi *m)
{
	return (m->call->count + m->all) * xr_dtype_size(dtype_of(m));
}

static enum xr_status
before_gather(struct multi *m, struct xr_coll_op *op, struct xr_error *err)
{
	size_t mine = m->call->count * bytes_of(m);
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < m->call->count && status == XR_OK; i++)
		status = fetch(m, i, m->stage + i * bytes_of(m), err);
	for (uint32_t k = 0; k < m->team->count; k++)
		m->list[k] = m->stage + (k + 1) * mine;
	op->data = m->stage;
	op->count = m->call->count * m->n;
	op->dtype = dtype_of(m);
	op->list = m->list;
	return status;
}

static enum xr_status
after_gather(struct multi *m, struct xr_error *err)
{
	const uint8_t *all = m->stage + m->call->count * bytes_of(m);
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < m->call->count; i++)
		for (size_t e = 0; e < m->all && status == XR_OK &&
			m->call->lists[i] != NULL;
			e++)
			status = store(m, &m->out[i * m->all + e],
				all + e * bytes_of(m), err);
	return status;
}

/* --- carrying it through ----------------------------------------------------------------- */

/* What is left of its time, which is one for all pieces. */
static int64_t
left(const struct multi *m)
{
	int64_t now;

	if (m->deadline == INT64_MAX)
		return XR_TIMEOUT_NEVER;
	now = clock_now();
	return m->deadline > now ? m->deadline - now : 1;
}

/* What only this member can know: the others would wait for it. */
static enum xr_status
give_up(struct multi *m, const struct xr_error *why, struct xr_error *err)
{
	struct xr_error named = { 0 };

	fail(&named, why->status, "rank %u: %s: %.160s",
		m->team->rank[m->team->me], m->text, why->text);
	team_fail(m->team, named.status, named.text, true);
	return fail(err, named.status, "%s", named.text);
}

/* An operation of the group, of which all have called what the text says, and came
 * as far. */
static enum xr_status
together(struct multi *m, const struct plan *like, struct xr_coll_op *op,
	struct xr_error *err)
{
	const struct hash_seed seed = { { 0 } };
	struct xr_error why = { 0 };
	struct plan plan = *like;
	enum xr_status status;

	plan.name = m->text;
	plan.code = PLAN_TOLD |
		(hash_bytes(&seed, m->text, strlen(m->text)) + m->step++);
	op->size = sizeof(*op);
	op->rank = m->call->rank;
	op->timeout = left(m);
	status = m->team->board != NULL ? board_run(m->team, &plan, op, &why) :
					  op_run(m->team, &plan, op, &why);
	if (status == XR_E_NOMEM && m->team->failed == XR_OK)
		return give_up(m, &why, err);
	return status == XR_OK ? XR_OK : fail(err, status, "%s", why.text);
}

static enum xr_status
carry_piece(struct multi *m, struct xr_error *err)
{
	struct xr_coll_op op = { 0 };
	struct xr_error why = { 0 };
	enum xr_status status = m->form->before(m, &op, &why);

	if (status != XR_OK)
		return give_up(m, &why, err);
	status = together(m, m->form->plan, &op, err);
	if (status != XR_OK)
		return status;
	status = m->form->after(m, &why);
	return status == XR_OK ? XR_OK : give_up(m, &why, err);
}

/* Elements of a piece, the same on all members. */
static size_t
piece_of(const struct multi *m)
{
	size_t least = PIECE_LEAST / xr_dtype_size(dtype_of(m));
	size_t most = STAGE_MOST / m->form->room(m);

	if (most < least)
		most = least;
	return m->spot[0].elements < most ? m->spot[0].elements : most;
}

static enum xr_status
make_room(struct multi *m, size_t piece, struct xr_error *err)
{
	size_t places = m->call->count + m->team->count;

	m->stage = malloc(piece * m->form->room(m) + 1);
	m->list = calloc(places, sizeof(*m->list));
	return m->stage != NULL && m->list != NULL ?
		XR_OK :
		fail(err, XR_E_NOMEM, "out of memory");
}

static enum xr_status
carry(struct multi *m, struct xr_error *err)
{
	size_t piece = piece_of(m), elements = m->spot[0].elements;
	struct xr_coll_op end = { .dtype = XR_DT_U8 };
	struct xr_error why = { 0 };
	enum xr_status status = make_room(m, piece, &why);

	if (status != XR_OK)
		return give_up(m, &why, err);
	do {
		m->n = elements - m->at < piece ? elements - m->at : piece;
		status = carry_piece(m, err);
		m->at += m->n;
	} while (status == XR_OK && m->at < elements);
	return status == XR_OK ? together(m, &plan_barrier, &end, err) : status;
}

/* What a member has no memory to look at the others wait for as well. */
static enum xr_status
check(struct multi *m, struct xr_error *err)
{
	struct xr_error why = { 0 };
	enum xr_status status = lead_delivers() ?
		fail(&why, XR_E_STATE,
			"a short function or callback may not wait") :
		multi_check(m, &why);

	if (status == XR_OK)
		return XR_OK;
	return status == XR_E_NOMEM ? give_up(m, &why, err) :
				      fail(err, status, "%s", why.text);
}

static enum xr_status
run(struct xr_coll *team, const struct form *form,
	const struct xr_coll_multi *call, struct xr_error *err)
{
	struct multi m = { .team = team, .form = form, .call = call };
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	team_ref(team); /* another may free it */
	snprintf(m.text, sizeof(m.text), "%s", form->name);
	status = check(&m, err);
	if (status == XR_OK) {
		m.deadline = team_deadline(team,
			&(struct xr_coll_op){ .timeout = call->timeout });
		status = carry(&m, err);
	}
	free(m.list);
	free(m.stage);
	free(m.out);
	free(m.spot);
	team_heard(team, status);
	team_unref(team);
	agent_leave();
	return status;
}

/* --- what a program calls ------------------------------------------------------------------ */

static const struct form bcast = { "broadcast_multi", &plan_bcast, false,
	room_for_one, before_bcast, after_bcast };
static const struct form allreduce = { "all_reduce_multi", &plan_allreduce,
	false, room_to_reduce, before_reduce, after_reduce };
static const struct form reduce = { "reduce_multi", &plan_reduce, false,
	room_to_reduce, before_reduce, after_reduce };
static const struct form allgather = { "all_gather_multi", &plan_allgather,
	true, room_to_gather, before_gather, after_gather };

#define F(name) \
	XR_EXPORT enum xr_status xr_coll_##name##_multi(struct xr_coll *coll, \
		const struct xr_coll_multi *multi, struct xr_error *err) \
	{ \
		return XR_KEEP_FRAME(run(coll, &name, multi, err)); \
	}

F(bcast)
F(allreduce)
F(reduce)
F(allgather)
#undef F
