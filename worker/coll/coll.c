/* SPDX-License-Identifier: Apache-2.0 */
/* coll.c - what a program calls; see xrun/coll.h. */
#include "base/status.h"
#include "worker/coll/board.h"
#include "worker/coll/kernel.h"
#include "worker/coll/letter.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/coll/post.h"
#include "worker/coll/team.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/lead.h"

#include <xrun/coll.h>

/* --- checks -------------------------------------------------------------------- */

static enum xr_status
check_data(const struct xr_coll_op *op, struct xr_error *err)
{
	size_t one = xr_dtype_size(op->dtype);

	if (one == 0)
		return fail(err, XR_E_INVAL, "dtype %d: there is none",
			(int)op->dtype);
	if (op->count > (uint64_t)XR_VALUE_BYTES_MAX / one)
		return fail(err, XR_E_INVAL, "count %zu: at most 1 TiB",
			op->count);
	if (op->data == NULL && op->count > 0)
		return fail(err, XR_E_INVAL, "data is NULL, and count %zu",
			op->count);
	return XR_OK;
}

static enum xr_status
check_member(const struct xr_coll *team, int64_t rank, struct xr_error *err)
{
	return team_place_of_rank(team, rank) >= 0 ?
		XR_OK :
		fail(err, XR_E_INVAL, "rank %lld is no member of the group",
			(long long)rank);
}

/* Who is to have a list, and who not. */
static enum xr_status
check_list(const struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *op, struct xr_error *err)
{
	bool root = plan->has_root &&
		team_place_of_rank(team, op->rank) == team->me;
	bool wanted = plan == &plan_allgather ||
		(root && (plan == &plan_gather || plan == &plan_scatter));

	if (wanted && op->list == NULL)
		return fail(err, XR_E_INVAL, "%s: there is no list",
			plan->name);
	if (!wanted && op->list != NULL)
		return fail(err, XR_E_INVAL,
			"%s: rank %u has a list, and is not to have one",
			plan->name, team->rank[team->me]);
	for (uint32_t i = 0; wanted && i < team->count; i++)
		if (op->list[i] == NULL && op->count > 0)
			return fail(err, XR_E_INVAL, "%s: list[%u] is NULL",
				plan->name, i);
	return XR_OK;
}

static enum xr_status
check_begin(const struct xr_coll *team, const struct xr_coll_op *op,
	struct xr_error *err)
{
	if (team->me < 0)
		return fail(err, XR_E_NOTMEMBER,
			"this rank is no member of the group");
	if (op == NULL || op->size < sizeof(*op))
		return fail(err, XR_E_INVAL,
			"struct xr_coll_op: its size is %u",
			op != NULL ? op->size : 0);
	if (op->timeout < XR_TIMEOUT_DEFAULT)
		return fail(err, XR_E_INVAL, "a timeout of %lld ns",
			(long long)op->timeout);
	return XR_OK;
}

static enum xr_status
check(const struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *op, struct xr_error *err)
{
	enum xr_status status = check_begin(team, op, err);

	if (status != XR_OK || plan == &plan_barrier)
		return status;
	status = check_data(op, err);
	if (status == XR_OK && plan->has_root)
		status = check_member(team, op->rank, err);
	if (status == XR_OK)
		status = check_list(team, plan, op, err);
	if (status == XR_OK && plan->reduces && !kernel_can(op->dtype, op->op))
		status = fail(err, XR_E_INVAL, "%s: there is no %s of %s",
			plan->name, plan_redop_name(op->op),
			xr_dtype_name(op->dtype));
	return status;
}

/* --- operations ------------------------------------------------------------------ */

/* What a barrier reads of it. */
static struct xr_coll_op
time_of(const struct xr_coll_op *op)
{
	return (struct xr_coll_op){
		.size = op != NULL ? op->size : sizeof(*op),
		.dtype = XR_DT_U8,
		.timeout =
			op != NULL && op->size >= sizeof(*op) ? op->timeout : 0,
	};
}

static enum xr_status
may_wait(struct xr_error *err)
{
	return lead_delivers() ?
		fail(err, XR_E_STATE,
			"a short function or callback may not wait") :
		XR_OK;
}

static enum xr_status
run(struct xr_coll *team, const struct plan *plan, const struct xr_coll_op *op,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	status = may_wait(err);
	if (status == XR_OK)
		status = check(team, plan, op, err);
	if (status == XR_OK) {
		team_ref(team); /* another may free it */
		status = team->board != NULL ? board_run(team, plan, op, err) :
					       op_run(team, plan, op, err);
		team_heard(team, status);
		team_unref(team);
	}
	agent_leave();
	return status;
}

static enum xr_status
begin(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	status = check(team, plan, op, err);
	if (status == XR_OK)
		status = op_begin(team, plan, op, future, err);
	team_heard(team, status);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_coll_barrier(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err)
{
	const struct xr_coll_op time = time_of(op);

	return XR_KEEP_FRAME(run(coll, &plan_barrier, &time, err));
}

XR_EXPORT enum xr_status
xr_coll_ibarrier(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_future **future, struct xr_error *err)
{
	const struct xr_coll_op time = time_of(op);

	return begin(coll, &plan_barrier, &time, future, err);
}

/* O(NAME): the two forms of an operation. */
#define O(name) \
	XR_EXPORT enum xr_status xr_coll_##name(struct xr_coll *coll, \
		const struct xr_coll_op *op, struct xr_error *err) \
	{ \
		return XR_KEEP_FRAME(run(coll, &plan_##name, op, err)); \
	} \
	XR_EXPORT enum xr_status xr_coll_i##name(struct xr_coll *coll, \
		const struct xr_coll_op *op, struct xr_future **future, \
		struct xr_error *err) \
	{ \
		return begin(coll, &plan_##name, op, future, err); \
	}

O(bcast)
O(allreduce)
O(reduce)
O(allgather)
O(gather)
O(scatter)
#undef O

/* --- messages --------------------------------------------------------------------- */

static enum xr_status
check_post(const struct xr_coll *team, const struct xr_coll_op *op, bool any,
	struct xr_error *err)
{
	enum xr_status status = check_begin(team, op, err);

	if (status == XR_OK)
		status = check_data(op, err);
	if (status == XR_OK && !(any && op->rank == XR_COLL_ANY))
		status = check_member(team, op->rank, err);
	return status;
}

/* agent_leave() follows where it is XR_OK. @any: the rank may be XR_COLL_ANY. */
static enum xr_status
enter_post(const struct xr_coll *team, const struct xr_coll_op *op, bool any,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	status = check_post(team, op, any, err);
	if (status != XR_OK)
		agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_coll_send(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err)
{
	enum xr_status status = enter_post(coll, op, false, err);

	if (status != XR_OK)
		return status;
	status = letter_send(coll, op, err);
	team_heard(coll, status);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_coll_isend(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = enter_post(coll, op, false, err);

	if (status != XR_OK)
		return status;
	status = letter_isend(coll, op, future, err);
	team_heard(coll, status);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_coll_recv(struct xr_coll *coll, const struct xr_coll_op *op, int64_t *from,
	struct xr_error *err)
{
	enum xr_status status = enter_post(coll, op, true, err);

	if (status != XR_OK)
		return status;
	status = may_wait(err);
	if (status == XR_OK)
		status = post_recv(coll, op, from, err);
	team_heard(coll, status);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_coll_irecv(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = enter_post(coll, op, true, err);

	if (status != XR_OK)
		return status;
	status = post_irecv(coll, op, future, err);
	team_heard(coll, status);
	agent_leave();
	return status;
}
