/* SPDX-License-Identifier: Apache-2.0 */
/* board.c - how a board comes to be; see board.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/coll/board_inner.h"
#include "worker/rpc/held.h"
#include "worker/rpc/peer.h"

#define BOARDS_MAX 64 /* of a process; 512 loans has a ring, RING_LOANS */

static _Atomic uint32_t open_boards;

/* --- what is handed over ----------------------------------------------------------- */

static uint32_t
one_stage(const struct op *op)
{
	(void)op;
	return 1;
}

static void
lend_board(struct op *op)
{
	op->made = op->team->opening->made;
	if (op->made != NULL)
		storage_ref(op->made);
}

static struct xr_part
give_board(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	(void)to;
	return op->made == NULL ?
		(struct xr_part){ NULL, PLAN_NONE } :
		(struct xr_part){ op->made->data, op->made->bytes };
}

static size_t
want_board(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)stage;
	return from == 0 ? board_bytes(op->team->count) : PLAN_NONE;
}

/* What the first member lends is the board from now on. */
static enum xr_status
take_board(struct op *op, uint32_t stage)
{
	struct board *b = op->team->opening;
	struct part *p = op_part(op, 0, 0);

	(void)stage;
	if (op->made != NULL)
		return XR_OK;
	b->held = p->held;
	b->memory = (void *)p->data;
	p->held = NULL;
	return XR_OK;
}

static const struct plan plan_board = { "new", 20, false, false, SHOWS_NOTHING,
	one_stage, give_board, want_board, take_board, lend_board };

/* --- its life ------------------------------------------------------------------------ */

/* Of the first member, for all: in the arena, or it would be sent as a copy. */
static bool
make_memory(struct board *b)
{
	size_t bytes = board_bytes(b->team->count);

	b->made = storage_new(bytes);
	if (b->made == NULL || !local_can_lend(b->made->data, bytes))
		return false;
	b->memory = b->made->data;
	memset(b->memory, 0, board_pages_at(b->team->count));
	return true;
}

/* Whether all members are on this machine, and can be rung; and there are not too many
 * boards: each takes a loan of those that a ring has, and calls need some, too. */
static bool
is_possible(struct board *b)
{
	const struct xr_coll *team = b->team;
	bool possible =
		local_env() != NULL && atomic_load(&open_boards) < BOARDS_MAX;

	for (uint32_t i = 0; i < team->count && possible; i++)
		if ((int64_t)i != team->me)
			possible =
				local_bell_of(team->peer[i], &b->seen[i].bell);
	return possible;
}

struct board *
board_new(struct xr_coll *team)
{
	struct board *b =
		calloc(1, sizeof(*b) + team->count * sizeof(b->seen[0]));

	if (b == NULL || team->count == 1) {
		free(b);
		return NULL;
	}
	b->team = team;
	b->op = op_new(team);
	if (b->op == NULL) {
		free(b);
		return NULL;
	}
	team_unref(
		team); /* the operation is the board's, which is the group's */
	b->possible = is_possible(b) && (team->me != 0 || make_memory(b));
	return b;
}

void
board_free(struct board *b)
{
	if (b == NULL)
		return;
	if (b->handing != NULL)
		op_drop(b->handing);
	held_unref(b->held);
	storage_unref(b->made);
	free(b->op); /* what came of others were their lines */
	if (b->counted)
		atomic_fetch_sub(&open_boards, 1);
	free(b);
}

/* Where processors are fewer than members a round takes as many turns, and a piece is as
 * much longer; as this member sees it. */
uint32_t
board_turns(const struct board *b)
{
	uint32_t turns;

	if (!b->possible)
		return 0;
	turns = b->team->count / local_cpus();
	if (turns > WINDOW_BYTES / PIECE_BYTES)
		turns = WINDOW_BYTES / PIECE_BYTES;
	return turns > 0 ? turns : 1;
}

/* Who fails looks at it, from here on. */
static void
set_board(struct xr_coll *team, struct board *b)
{
	pthread_mutex_lock(&team->lock);
	team->board = b;
	pthread_mutex_unlock(&team->lock);
}

enum xr_status
board_hand(struct board *b, struct xr_error *err)
{
	const struct xr_coll_op op = { .size = sizeof(op), .dtype = XR_DT_U8 };
	enum xr_status status;

	b->team->opening = b;
	status = op_enter(b->team, &plan_board, &op, &b->handing, err);
	if (status == XR_OK)
		op_set(b->op, &plan_board, &op);
	return status;
}

/* It is memory of the first member, and no copy; or that has ended since. */
static enum xr_status
check_memory(const struct board *b, struct xr_error *err)
{
	struct peer *first = b->team->peer[0];

	if (b->made != NULL ||
		local_shares(first, b->memory, board_bytes(b->team->count)))
		return XR_OK;
	if (atomic_load(&first->state) >= PEER_LOST)
		return peer_lost_error(first, err);
	return fail(err, XR_E_PROTO,
		"what rank %u shows is not in the memory that it shares",
		b->team->rank[0]);
}

static enum xr_status
hand_over(struct board *b, struct xr_error *err)
{
	enum xr_status status = op_carry(b->handing, err);

	b->handing = NULL;
	return status == XR_OK ? check_memory(b, err) : status;
}

enum xr_status
board_open(struct board *b, uint32_t turns, struct xr_error *err)
{
	enum xr_status status;

	b->counted = true;
	atomic_fetch_add(&open_boards, 1);
	b->piece = (size_t)turns * PIECE_BYTES;
	b->met = true;
	round_read();
	status = hand_over(b, err);
	if (status == XR_OK)
		set_board(b->team, b);
	return status;
}

void
board_forget(void)
{
	round_unread();
}
