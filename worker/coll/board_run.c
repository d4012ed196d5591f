/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board_run.c - the ways in which an operation is done on a board.
 *
 *	whole   in one round: each reads all that the others show
 *	pieces  so, a piece after the other
 *	slices  a reduction by three or more: in a round each shows a piece, and what it
 *	        worked out of its slice of the one before, which the others read
 *	        meanwhile; so a round more than there are pieces
 *
 * And what comes of a root: board_root.c.
 */
#include <string.h>

#include "base/status.h"
#include "worker/coll/board_inner.h"
#include "worker/coll/kernel.h"

static bool
is_sliced(const struct board *b, const struct plan *plan)
{
	return plan->reduces && b->team->count > 2;
}

/* --- whole ------------------------------------------------------------------------ */

/* Where member @place shows it. */
static void *
room_of(const struct board *b, uint32_t place)
{
	return plan_line(b->op) <= LINE_DATA ?
		round_line(b, place)->data :
		round_page(b, place)->window[b->number & 1];
}

static enum xr_status
run_whole(struct board *b, struct xr_error *err)
{
	enum xr_status status = round_begin(b, err);

	if (status != XR_OK)
		return status;
	plan_show(b->op, room_of(b, (uint32_t)b->team->me));
	status = round_end(b, err);
	if (status != XR_OK)
		return status;
	for (uint32_t i = 0; i < b->team->count; i++)
		plan_see(b->op, i, room_of(b, i));
	return b->op->plan->work(b->op, 0);
}

/* --- pieces ----------------------------------------------------------------------- */

/* Elements of a piece. */
static size_t
piece_count(const struct board *b, const struct xr_coll_op *call)
{
	size_t bytes = b->op->plan->reduces ? plan_whole(b->team) : b->piece;

	return bytes / xr_dtype_size(call->dtype);
}

/* Of @call, @count elements from @at on. */
static void
cut(const struct board *b, const struct xr_coll_op *call, size_t at,
	size_t count, struct xr_coll_op *piece)
{
	size_t offset = at * xr_dtype_size(call->dtype);
	void **list = (void **)b->op->src;

	*piece = *call;
	piece->data = (char *)call->data + offset;
	piece->count = count;
	if (call->list == NULL)
		return;
	piece->list = list;
	for (uint32_t i = 0; i < b->team->count; i++)
		list[i] = (char *)call->list[i] + offset;
}

/* All of them say what the whole is, and which piece. */
static enum xr_status
run_pieces(struct board *b, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *err)
{
	size_t most = piece_count(b, call), left;
	uint32_t check = b->op->check;
	enum xr_status status = XR_OK;
	struct xr_coll_op piece;

	for (size_t at = 0; at < call->count && status == XR_OK; at += most) {
		left = call->count - at;
		cut(b, call, at, left < most ? left : most, &piece);
		op_set(b->op, plan, &piece);
		b->op->check = check + (uint32_t)(at / most);
		status = run_whole(b, err);
	}
	return status;
}

/* --- slices ----------------------------------------------------------------------- */

/* A piece of what is reduced. */
struct piece {
	char *data;
	size_t count; /* elements */
	size_t one;   /* bytes of an element */
};

static struct piece
piece_at(const struct xr_coll_op *call, size_t number, size_t most)
{
	size_t one = xr_dtype_size(call->dtype), at = number * most,
	       left = call->count - at;

	return (struct piece){ (char *)call->data + at * one,
		left < most ? left : most, one };
}

static struct slice
own_slice(const struct board *b, const struct piece *p)
{
	return plan_slice(p->count, p->one, b->team->count,
		(uint32_t)b->team->me);
}

/* All but what this member works out itself. */
static void
show_slices(struct board *b, const struct piece *p)
{
	uint8_t *window = round_own_page(b)->window[b->number & 1];
	struct slice s = own_slice(b, p);
	size_t end = s.at + s.len;

	memcpy(window, p->data, s.at);
	memcpy(window + end, p->data + end, p->count * p->one - end);
}

/* What this member works out of @p, which all show in @half, is shown with what
 * follows. */
static void
reduce_slice(struct board *b, const struct piece *p, uint32_t half)
{
	struct slice s = own_slice(b, p);
	for (uint32_t i = 0; i < b->team->count; i++)
		b->op->src[i] = round_page(b, i)->window[half] + s.at;
	b->op->src[b->team->me] = p->data + s.at;
	kernel_reduce(&(struct kernel_job){
		.dst = round_own_page(b)->result[half ^ 1],
		.src = b->op->src,
		.count = b->team->count,
		.n = s.count,
		.dtype = b->op->call.dtype,
		.op = b->op->call.op,
	});
}

/* What all worked out of @p, and show in @half; beginning with our own, so that not all
 * read the same. */
static void
take_slices(const struct board *b, const struct piece *p, uint32_t half)
{
	uint32_t count = b->team->count, place;
	struct slice s;

	for (uint32_t i = 0; i < count; i++) {
		place = ((uint32_t)b->team->me + i) % count;
		s = plan_slice(p->count, p->one, count, place);
		memcpy(p->data + s.at, round_page(b, place)->result[half],
			s.len);
	}
}

static enum xr_status
run_slices(struct board *b, const struct xr_coll_op *call, struct xr_error *err)
{
	size_t most = b->piece / xr_dtype_size(call->dtype);
	size_t pieces = (call->count + most - 1) / most;
	bool takes = !b->op->plan->has_root || b->op->root == b->team->me;
	uint32_t check = b->op->check, half;
	enum xr_status status = XR_OK;
	struct piece p, before = { 0 };

	for (size_t i = 0; i <= pieces && status == XR_OK; i++) {
		status = round_begin(b, err);
		if (status != XR_OK)
			break;
		half = b->number & 1;
		if (i > 0)
			reduce_slice(b, &before, half ^ 1);
		p = i < pieces ? piece_at(call, i, most) : (struct piece){ 0 };
		if (i < pieces)
			show_slices(b, &p);
		b->op->check = check + (uint32_t)i;
		status = round_end(b, err);
		if (status == XR_OK && i > 0 && takes)
			take_slices(b, &before, half);
		before = p;
	}
	return status;
}

/* --- which ------------------------------------------------------------------------ */

/* Another thread may have it for as long as others are waited for.
 *
 * @deadline: receives that of @call, if it is known then; else 0 */
static enum xr_status
take_turn(struct board *b, const struct xr_coll_op *call, int64_t *deadline,
	struct xr_error *err)
{
	uint32_t was = TURN_FREE;
	enum xr_status status;
	bool in_time = true;

	*deadline = 0;
	if (atomic_compare_exchange_strong(&b->turn, &was, TURN_TAKEN))
		return XR_OK;
	*deadline = team_deadline(b->team, call);
	pthread_mutex_lock(&b->team->lock);
	status = team_failed(b->team, err);
	while (status == XR_OK &&
		atomic_exchange(&b->turn, TURN_WANTED) != TURN_FREE) {
		if (!in_time) {
			status = fail(err, XR_E_TIMEOUT,
				"another thread of rank %u has been in an operation of the group",
				b->team->rank[b->team->me]);
			break;
		}
		in_time = team_await(b->team, *deadline);
		status = team_failed(b->team, err);
	}
	pthread_mutex_unlock(&b->team->lock);
	return status;
}

static void
give_turn(struct board *b)
{
	if (atomic_exchange(&b->turn, TURN_FREE) != TURN_WANTED)
		return;
	pthread_mutex_lock(&b->team->lock);
	pthread_cond_broadcast(&b->team->changed);
	pthread_mutex_unlock(&b->team->lock);
}

static bool
is_whole(const struct board *b)
{
	return plan_line(b->op) <=
		(b->op->plan->reduces ? plan_whole(b->team) : b->piece);
}

static bool
is_shares(const struct board *b)
{
	return b->op->plan->shows == SHOWS_SHARES;
}

static enum xr_status
run_shares(struct board *b, const struct xr_coll_op *call, struct xr_error *err)
{
	enum xr_status status = board_shares(b, call, err);

	if (status == XR_OK && b->op->root == b->team->me)
		memmove(call->data, call->list[b->team->me], b->op->bytes);
	return status;
}

static enum xr_status
run(struct board *b, const struct plan *plan, const struct xr_coll_op *call,
	struct xr_error *err)
{
	if (is_shares(b) && plan_line(b->op) > LINE_DATA)
		return run_shares(b, call, err);
	if (is_whole(b))
		return run_whole(b, err);
	if (is_sliced(b, plan))
		return run_slices(b, call, err);
	return plan->shows == SHOWS_ROOT && b->piece > PIECE_BYTES ?
		board_same(b, call, err) :
		run_pieces(b, plan, call, err);
}

enum xr_status
board_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *err)
{
	struct board *b = team->board;
	int64_t deadline;
	enum xr_status status = take_turn(b, call, &deadline, err);

	if (status != XR_OK)
		return status;
	b->deadline = deadline;
	b->plan = plan;
	b->call = call;
	op_set(b->op, plan, call);
	status = round_may_begin(b, err);
	if (status == XR_OK)
		status = run(b, plan, call, err);
	if (status != XR_OK && atomic_load(&team->failed) != XR_OK)
		b->told = true;
	give_turn(b);
	return status;
}
