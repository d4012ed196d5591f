/* SPDX-License-Identifier: Apache-2.0 */
/* op_room.c - how many operations are under way, and how far ahead members are; see
 * op.h. */
#include <stdio.h>

#include "base/status.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/rpc/lead.h"

static const struct load most = { TEAM_OPS_MAX, TEAM_OPS_BYTES };

/* --- of others -------------------------------------------------------------------- */

/* How far from the next to begin is operation @seq? Numbers go round. */
static uint32_t
ahead(const struct xr_coll *team, uint32_t seq)
{
	return (seq - team->next) & 0xffffff;
}

bool
op_is_to_come(const struct xr_coll *team, uint32_t seq)
{
	return ahead(team, seq) < 0x800000;
}

/* Each of its operations needs all members in its first stage, so it is no further than
 * with what it may begin without waiting. */
bool
op_may_be_ahead(const struct xr_coll *team, const struct early *e)
{
	return e->stage == 0 && ahead(team, e->seq) < TEAM_OPS_MAX &&
		load_takes(&team->account[e->from].early, e->bytes, &most);
}

void
op_ahead_text(const struct xr_coll *team, const struct early *e, char *text,
	size_t cap)
{
	snprintf(text, cap,
		"rank %u is %u operations ahead of rank %u, with %llu bytes: there can be %u, with %llu",
		team->rank[e->from], ahead(team, e->seq) + 1,
		team->rank[team->me],
		(unsigned long long)(team->account[e->from].early.bytes +
			e->bytes),
		TEAM_OPS_MAX, (unsigned long long)TEAM_OPS_BYTES);
}

/* --- our own ---------------------------------------------------------------------- */

/* Numbers of operations that are under way are not further apart than that. */
static bool
has_room(const struct xr_coll *team, const struct op *op)
{
	const struct op *first;

	TAILQ_FOREACH(first, &team->ops, list)
	if (first->seq != OP_SHOWN)
		break;
	return first == NULL ||
		(((team->next - first->seq) & 0xffffff) < TEAM_OPS_MAX &&
			load_takes(&team->load, op->bytes, &most));
}

/* Until so much is not under way any more, or the group has failed. The lock is held. */
enum xr_status
op_await_room(struct op *op, struct xr_error *err)
{
	struct xr_coll *team = op->team;
	enum xr_status status = team_failed(team, err);
	bool in_time = true;

	while (status == XR_OK && !has_room(team, op)) {
		if (lead_delivers())
			return fail(err, XR_E_AGAIN,
				"%u operations of the group are under way, with %llu bytes",
				team->load.count,
				(unsigned long long)team->load.bytes);
		if (!in_time)
			return fail(err, XR_E_TIMEOUT,
				"%s: %u operations of the group, with %llu bytes, have not ended in time",
				op->plan->name, team->load.count,
				(unsigned long long)team->load.bytes);
		in_time = team_await(team, op->deadline);
		status = team_failed(team, err);
	}
	return status;
}
