/* SPDX-License-Identifier: Apache-2.0 */
/* board.c - how a board comes to be; see board.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/coll/board_inner.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
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
lend_page(struct op *op)
{
	op->made = op->team->opening->own;
	storage_ref(op->made);
}

static struct xr_part
give_page(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	(void)to;
	return (struct xr_part){ op->made->data, op->made->bytes };
}

static size_t
want_page(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)op;
	(void)stage;
	(void)from;
	return sizeof(struct page);
}

/* What came of each, and is our own, stays. */
static enum xr_status
take_pages(struct op *op, uint32_t stage)
{
	struct board *b = op->team->opening;

	(void)stage;
	for (uint32_t i = 0; i < op->team->count; i++) {
		struct part *p = op_part(op, 0, i);

		b->seen[i].held = p->held;
		p->held = NULL;
		b->seen[i].page =
			(int64_t)i == op->team->me ? op->made->data : p->data;
	}
	return XR_OK;
}

static const struct plan plan_pages = { "new", 20, false, false, SHOWS_NOTHING,
	one_stage, give_page, want_page, take_pages, lend_page };

/* --- its life ------------------------------------------------------------------------ */

static struct board *
board_new(struct xr_coll *team)
{
	struct board *b =
		calloc(1, sizeof(*b) + team->count * sizeof(b->seen[0]));

	if (b == NULL)
		return NULL;
	b->team = team;
	b->own = storage_new(sizeof(struct page));
	b->op = op_new(team);
	if (b->op != NULL) /* it is the board's, which is the group's */
		team_unref(team);
	if (b->own == NULL || b->op == NULL) {
		board_free(b);
		return NULL;
	}
	memset(b->own->data, 0, offsetof(struct page, window));
	return b;
}

void
board_free(struct board *b)
{
	if (b == NULL)
		return;
	for (uint32_t i = 0; i < b->team->count; i++)
		held_unref(b->seen[i].held);
	storage_unref(b->own);
	free(b->op); /* what came of others were their lines */
	if (b->counted)
		atomic_fetch_sub(&open_boards, 1);
	free(b);
}

/* Whether the pages that came are those which the others write to, and they can be rung;
 * and there are not too many: each takes a loan of those that a ring has, and calls need
 * some, too. */
static bool
is_good(struct board *b)
{
	bool good =
		local_env() != NULL && atomic_load(&open_boards) < BOARDS_MAX;

	for (uint32_t i = 0; i < b->team->count; i++) {
		struct peer *p = b->team->peer[i];
		struct seen *s = &b->seen[i];

		if ((int64_t)i != b->team->me)
			good &= local_bell_of(p, &s->bell) &&
				local_shares(p, s->page, sizeof(struct page));
	}
	return good;
}

/* Where processors are fewer than members a round takes as many turns, and a piece is as
 * much longer; as this member sees it. */
static uint8_t
turns(const struct board *b)
{
	uint32_t turns = b->team->count / local_cpus();

	if (turns > WINDOW_BYTES / PIECE_BYTES)
		turns = WINDOW_BYTES / PIECE_BYTES;
	return turns > 0 ? (uint8_t)turns : 1;
}

/* All of them come to the same b->piece; 0: it is not to be used. Who finds the board good
 * sees what all others show of it; who does not says so, to whom it can ring, and need not
 * look. */
static enum xr_status
agree(struct board *b, struct xr_error *err)
{
	struct line *line = round_begin(b);
	uint8_t least = is_good(b) ? turns(b) : 0;
	enum xr_status status;

	line->data[0] = least;
	if (least == 0) {
		round_show(b);
		return XR_OK;
	}
	status = round_end(b, err);
	for (uint32_t i = 0; i < b->team->count && status == XR_OK; i++)
		if (round_line(b, i)->data[0] < least)
			least = round_line(b, i)->data[0];
	b->piece = (size_t)least * PIECE_BYTES;
	return status;
}

/* Who fails looks at it, from here on. */
static void
set_board(struct xr_coll *team, struct board *b)
{
	pthread_mutex_lock(&team->lock);
	team->board = b;
	pthread_mutex_unlock(&team->lock);
}

static enum xr_status
make(struct board *b, struct xr_error *err)
{
	const struct xr_coll_op op = { .size = sizeof(op), .dtype = XR_DT_U8 };
	enum xr_status status = op_run(b->team, &plan_pages, &op, err);

	if (status != XR_OK)
		return status;
	op_set(b->op, &plan_pages, &op);
	set_board(b->team, b);
	return agree(b, err);
}

enum xr_status
board_open(struct xr_coll *team, struct xr_error *err)
{
	enum xr_status status;
	struct board *b;

	if (team->count == 1)
		return XR_OK;
	b = board_new(team);
	if (b == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	round_read();
	team->opening = b;
	status = make(b, err);
	team->opening = NULL;
	if (status != XR_OK || b->piece == 0) {
		set_board(team, NULL);
		board_free(b);
		return status;
	}
	b->counted = true;
	atomic_fetch_add(&open_boards, 1);
	return XR_OK;
}

void
board_forget(void)
{
	round_unread();
}
