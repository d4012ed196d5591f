/* SPDX-License-Identifier: Apache-2.0 */
/* conflict.c - see conflict.h. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "worker/coll/board.h"
#include "worker/coll/conflict.h"
#include "worker/coll/mail.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/coll/team.h"

/* @other: "" if it is not known. */
static void
conflict_why(const struct xr_coll *team, const char *own, uint32_t from,
	const char *other, char why[232])
{
	uint32_t me = team->rank[team->me], peer = team->rank[from];
	int n = snprintf(why, 232,
		"ranks %u and %u do not call the same: rank %u calls %s", peer,
		me, me, own);

	if (other[0] != '\0' && n < 232)
		snprintf(why + n, 232 - (size_t)n, "; rank %u calls %s", peer,
			other);
}

void
conflict_text(const struct plan *plan, const struct xr_coll_op *call,
	bool future, char *text, size_t cap)
{
	size_t n;

	plan_text(plan, call, text, cap);
	n = strlen(text);
	if (future)
		snprintf(text + n, cap - n, ", with a future");
}

static void
conflict_text_of(const struct op *op, char text[CONFLICT_CALL])
{
	conflict_text(op->plan, &op->call, op->future != NULL, text,
		CONFLICT_CALL);
}

void
conflict_judge_call(const struct xr_coll *team, const char *own, uint32_t from,
	uint32_t seq, struct conflict *c)
{
	*c = (struct conflict){ XR_E_CONFLICT, .from = from, .seq = seq };
	snprintf(c->call, sizeof(c->call), "%s", own);
	conflict_why(team, own, from, "", c->why);
}

void
conflict_judge(const struct op *op, uint32_t from, uint32_t seq,
	enum xr_status status, struct conflict *c)
{
	char own[CONFLICT_CALL];

	c->status = status;
	if (status == XR_OK)
		return;
	conflict_text_of(op, own);
	if (status == XR_E_CONFLICT)
		conflict_judge_call(op->team, own, from, seq, c);
	else
		snprintf(c->why, sizeof(c->why),
			"%s: rank %u sent what nobody asked for", own,
			op->team->rank[from]);
}

bool
conflict_shown(const struct op *op, uint32_t from, char why[232])
{
	char own[CONFLICT_CALL], other[CONFLICT_CALL];

	if (op->seq == OP_SHOWN || !board_is_next(op->team->board, from, other))
		return false;
	conflict_text_of(op, own);
	conflict_why(op->team, own, from, other, why);
	return true;
}

/* If the other member does not answer, the operation ends at its deadline, and the error
 * states the call of this member only. */
static void
conflict_ask(struct xr_coll *team, const struct conflict *c)
{
	pthread_mutex_lock(&team->lock);
	if (team->differs[0] == '\0')
		memcpy(team->differs, c->why, sizeof(team->differs));
	pthread_mutex_unlock(&team->lock);
	mail_call(team, c->from, c->seq, c->call);
}

void
conflict_settle(struct xr_coll *team, const struct conflict *c)
{
	if (c->status == XR_E_CONFLICT)
		conflict_ask(team, c);
	else if (c->status != XR_OK)
		team_fail(team, c->status, c->why, true);
}

/* The operation that the other member asks about has ended here, and the group fails of
 * the difference, or has failed: the other member is to know. */
static void
conflict_over(struct xr_coll *team, uint32_t from, uint32_t seq,
	const char *call)
{
	conflict_fail(team, "an operation that has ended", from, call, NULL);
	mail_failed(team, seq);
}

void
conflict_arrived(struct xr_coll *team, uint32_t from, uint32_t seq,
	const char *call)
{
	char own[CONFLICT_CALL] = "";
	const struct op *op;
	bool is_over;

	pthread_mutex_lock(&team->lock);
	op = op_find(team, seq);
	is_over = op == NULL && !op_is_to_come(team, seq);
	if (op != NULL)
		conflict_text_of(op, own);
	pthread_mutex_unlock(&team->lock);
	if (own[0] != '\0')
		conflict_fail(team, own, from, call, NULL);
	else if (is_over)
		conflict_over(team, from, seq, call);
}

enum xr_status
conflict_fail(struct xr_coll *team, const char *own, uint32_t from,
	const char *other, struct xr_error *err)
{
	char why[232];

	conflict_why(team, own, from, other, why);
	team_fail(team, XR_E_CONFLICT, why, true);
	return fail(err, XR_E_CONFLICT, "%s", why);
}
