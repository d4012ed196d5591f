/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board_root.c - what comes of a root.
 *
 * Of what it has for each:
 *
 *	read     it says where each share lies, and each reads its own there, all at once,
 *	         out of the root's memory. Where members wait for processors, the root
 *	         meanwhile writes to the pages of those who have not begun, and goes on
 *	         when nobody reads any more; else it waits for all
 *	written  it writes a piece of each to the page of whom that is for. For what is
 *	         short, and where the memory of others cannot be read
 *
 * What it has for all, where members wait for processors, is written over the windows of
 * all pages, so that the root need wait for nobody before they are full.
 */
#include <string.h>

#include "base/status.h"
#include "worker/coll/board_inner.h"
#include "worker/rpc/peer.h"

#define READ_SHARE (16U << 10) /* bytes that are worth a system call */

/* --- written ------------------------------------------------------------------------ */

/* Bytes of each share. */
struct cutting {
	size_t at, len;
};

static void
give_pieces(const struct board *b, const struct xr_coll_op *call,
	struct cutting cut)
{
	for (uint32_t i = 0; i < b->team->count; i++)
		if ((int64_t)i != b->team->me)
			memcpy(round_page(b, i)->window[b->number & 1],
				(char *)call->list[i] + cut.at, cut.len);
}

static enum xr_status
write_piece(struct board *b, const struct xr_coll_op *call, struct cutting cut,
	struct xr_error *err)
{
	bool gives = b->op->root == b->team->me;
	enum xr_status status = round_begin(b, err);

	if (status != XR_OK)
		return status;
	if (gives)
		give_pieces(b, call, cut);
	status = round_end(b, err);
	if (status == XR_OK && !gives)
		memcpy((char *)call->data + cut.at,
			round_own_page(b)->window[b->number & 1], cut.len);
	return status;
}

/* Only its root writes to pages, and of each window one reads. */
static enum xr_status
write_shares(struct board *b, const struct xr_coll_op *call,
	struct xr_error *err)
{
	size_t bytes = b->op->bytes;
	struct cutting cut = { .at = 0 };
	uint32_t check = b->op->check;
	enum xr_status status = XR_OK;

	for (; cut.at < bytes && status == XR_OK; cut.at += b->piece) {
		cut.len = bytes - cut.at < b->piece ? bytes - cut.at : b->piece;
		b->op->check = check + (uint32_t)(cut.at / b->piece);
		status = write_piece(b, call, cut, err);
	}
	return status;
}

/* --- read --------------------------------------------------------------------------- */

static bool
is_crowded(const struct board *b)
{
	return b->team->count > local_cpus();
}

/* Where that of each lies, in the root's window. */
static uint64_t *
addresses(const struct board *b)
{
	return (uint64_t *)round_page(b, b->op->root)->window[b->number & 1];
}

static void
say_where(const struct board *b, const struct xr_coll_op *call)
{
	for (uint32_t i = 0; i < b->team->count; i++)
		addresses(b)[i] = (uintptr_t)call->list[i];
}

static enum xr_status
read_own(struct board *b, const struct xr_coll_op *call, struct xr_error *err)
{
	struct peer *root = b->team->peer[b->op->root];
	uint64_t from = addresses(b)[b->team->me];

	if (local_read(root, from, call->data, b->op->bytes)) {
		round_taken(b, (uint32_t)b->team->me);
		return XR_OK;
	}
	if (atomic_load(&root->state) >= PEER_LOST)
		return peer_lost_error(root, err);
	fail(err, XR_E_INVAL, "%s: what rank %u gives is no memory of its own",
		b->op->plan->name, b->team->rank[b->op->root]);
	team_fail(b->team, err->status, err->text, true);
	return XR_E_INVAL;
}

static enum xr_status
take_own(struct board *b, const struct xr_coll_op *call, struct xr_error *err)
{
	enum xr_status status;

	if (round_claim(b, (uint32_t)b->team->me))
		return read_own(b, call, err);
	status = round_lent(b, err);
	if (status == XR_OK)
		memcpy(call->data, round_own_page(b)->window[b->number & 1],
			b->op->bytes);
	return status;
}

/* To those who have not begun to read. */
static void
give_rest(struct board *b, const struct xr_coll_op *call)
{
	for (uint32_t i = 0; i < b->team->count; i++) {
		if ((int64_t)i == b->team->me || !round_claim(b, i))
			continue;
		memcpy(round_page(b, i)->window[b->number & 1], call->list[i],
			b->op->bytes);
		round_taken(b, i);
	}
}

static enum xr_status
read_shares(struct board *b, const struct xr_coll_op *call,
	struct xr_error *err)
{
	bool gives = b->op->root == b->team->me;
	enum xr_status status = round_begin(b, err);

	if (status != XR_OK)
		return status;
	if (gives)
		say_where(b, call);
	status = round_end(b, err);
	if (status != XR_OK)
		return status;
	if (!gives)
		return take_own(b, call, err);
	if (b->op->bytes <= WINDOW_BYTES && is_crowded(b))
		give_rest(b, call);
	return round_lent(b, err);
}

/* All say whether they can read the root's memory; it is asked once of each root. */
static enum xr_status
agree(struct board *b, struct xr_error *err)
{
	struct seen *root = &b->seen[b->op->root];
	enum xr_status status;

	if (root->reach != REACH_UNKNOWN)
		return XR_OK;
	status = round_begin(b, err);
	if (status != XR_OK)
		return status;
	round_line(b, (uint32_t)b->team->me)->data[0] =
		b->op->root == b->team->me ||
		local_can_read(b->team->peer[b->op->root]);
	status = round_meet(b, err);
	if (status != XR_OK)
		return status;
	root->reach = REACH_ALL;
	for (uint32_t i = 0; i < b->team->count; i++)
		if (round_line(b, i)->data[0] == 0)
			root->reach = REACH_NONE;
	return XR_OK;
}

/* --- which -------------------------------------------------------------------------- */

enum xr_status
board_shares(struct board *b, const struct xr_coll_op *call,
	struct xr_error *err)
{
	bool is_long = b->op->bytes >= READ_SHARE;
	enum xr_status status = is_long ? agree(b, err) : XR_OK;

	if (status != XR_OK)
		return status;
	return is_long && b->seen[b->op->root].reach == REACH_ALL ?
		read_shares(b, call, err) :
		write_shares(b, call, err);
}

/* --- for all ------------------------------------------------------------------------ */

/* @len bytes lie in the windows of all pages, one after the other. */
static void
over_windows(const struct board *b, void *data, size_t len, bool gives)
{
	size_t done = 0, n;
	void *window;

	for (uint32_t i = 0; done < len; i++, done += n) {
		window = round_page(b, i)->window[b->number & 1];
		n = len - done < WINDOW_BYTES ? len - done : WINDOW_BYTES;
		if (gives)
			memcpy(window, (char *)data + done, n);
		else
			memcpy((char *)data + done, window, n);
	}
}

enum xr_status
board_same(struct board *b, const struct xr_coll_op *call, struct xr_error *err)
{
	bool gives = b->op->root == b->team->me;
	size_t most = (size_t)b->team->count * WINDOW_BYTES, len;
	uint32_t check = b->op->check;
	enum xr_status status = XR_OK;

	for (size_t at = 0; at < b->op->bytes && status == XR_OK; at += most) {
		len = b->op->bytes - at < most ? b->op->bytes - at : most;
		b->op->check = check + (uint32_t)(at / most);
		status = round_begin(b, err);
		if (status == XR_OK && gives)
			over_windows(b, (char *)call->data + at, len, true);
		if (status == XR_OK)
			status = round_end(b, err);
		if (status == XR_OK && !gives)
			over_windows(b, (char *)call->data + at, len, false);
	}
	return status;
}
