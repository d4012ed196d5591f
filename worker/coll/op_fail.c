/* SPDX-License-Identifier: Apache-2.0 */
/* op_fail.c - which operations end when a group fails, and when they are late; see op.h. */
#include <stdio.h>

#include "worker/coll/board.h"
#include "worker/coll/conflict.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"

/* Returns true if member @i is waited for in the stage of @op. */
static bool
op_lacks(const struct op *op, uint32_t i)
{
	const struct xr_coll *team = op->team;

	return (int64_t)i != team->me &&
		!op->part[(size_t)op->stage * team->count + i].here &&
		op->plan->wants(op, op->stage, i) != PLAN_NONE;
}

/* Returns true if a member that is waited for shows another call. */
static bool
op_differs(const struct op *op, char *text, size_t cap)
{
	char why[232];

	for (uint32_t i = 0; i < op->team->count; i++)
		if (op_lacks(op, i) && conflict_shown(op, i, why)) {
			snprintf(text, cap, "%s", why);
			return true;
		}
	return false;
}

enum xr_status
op_late(const struct op *op, char *text, size_t cap)
{
	const struct xr_coll *team = op->team;
	size_t begin, n;

	if (team->differs[0] != '\0') {
		snprintf(text, cap, "%s", team->differs);
		return XR_E_CONFLICT;
	}
	if (op_differs(op, text, cap))
		return XR_E_CONFLICT;
	begin = n = (size_t)snprintf(text, cap,
		"%.100s: these ranks did not come in time: ", op->plan->name);
	for (uint32_t i = 0; i < team->count && n + 16 < cap; i++)
		if (op_lacks(op, i))
			n += (size_t)snprintf(text + n, cap - n, "%s%u",
				n > begin ? ", " : "", team->rank[i]);
	return XR_E_TIMEOUT;
}

/* And the others have all of it: what fails before that has to be told to them. */
static bool
has_all(const struct op *op)
{
	if (op->stage >= op->stages)
		return true;
	return op->stage == op->stages - 1 && op->missing[op->stage] == 0 &&
		(op->seq == OP_SHOWN || atomic_load(&op->sent) == op->stages);
}

static bool
is_older(uint32_t seq, uint32_t than)
{
	return ((seq - than) & 0xffffff) >= 0x800000;
}

/* Returns true if @op waits, or will wait, for a message that the member at @reach does
 * not send. */
static bool
needs(struct op *op, const struct op_reach *reach)
{
	uint32_t place = (uint32_t)reach->place;

	if (op->is_over || has_all(op))
		return false;
	if (reach->place < 0)
		return true;
	if (op->seq != OP_SHOWN && is_older(op->seq, reach->seq))
		return false;
	for (uint32_t s = op->stage; s < op->stages; s++)
		if (!op_part(op, s, place)->here &&
			op->plan->wants(op, s, place) != PLAN_NONE)
			return true;
	return false;
}

uint32_t
op_first_to_fail(struct xr_coll *team, const struct op_reach *reach, bool *any)
{
	uint32_t first = team->next & 0xffffff;
	struct op *op;

	*any = false;
	board_look(team->board);
	TAILQ_FOREACH(op, &team->ops, list)
	{
		if (!needs(op, reach))
			continue;
		*any = true;
		if (op->seq != OP_SHOWN && is_older(op->seq, first))
			first = op->seq;
	}
	return first;
}

void
op_fail_all(struct xr_coll *team, const struct op_reach *reach)
{
	struct op *op;

	board_look(team->board);
	TAILQ_FOREACH(op, &team->ops, list)
	{
		if (!needs(op, reach))
			continue;
		op->is_over = true;
		op->status = team->failed;
		snprintf(op->why, sizeof(op->why), "%s", team->why);
		op_stir(op);
	}
}

struct op *
op_overdue(struct xr_coll *team, int64_t now, int64_t *next)
{
	struct op *op;

	*next = INT64_MAX;
	TAILQ_FOREACH(op, &team->ops, list)
	{
		if (op->is_over || op->stage >= op->stages ||
			op->missing[op->stage] == 0)
			continue;
		if (op->deadline <= now)
			return op;
		if (op->deadline < *next)
			*next = op->deadline;
	}
	return NULL;
}
