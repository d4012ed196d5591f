/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane.h - the ring of cells of a queue: one item in, one item out, and no waiting.
 *
 * Who puts looks from the tail on for a cell that is free, who gets from the head on for
 * one that is full; both move the hint that they began at. Who gets passes over a cell
 * that a writer has claimed and not filled: its writer may have been stopped; of one
 * writer none is passed over that way, as it puts one after the other. Who puts does not
 * pass over one that is being read: a reader takes a free cell for the end.
 *
 * With XR_QUEUE_P2P nobody claims: there is one who writes, and its cell is free till it
 * is full, and one who reads.
 */
#ifndef WORKER_QUEUE_LANE_H
#define WORKER_QUEUE_LANE_H

#include "worker/queue/crate.h"
#include "worker/queue/hall.h"

/* An item that is put. */
struct letter {
	const struct xr_part *parts; /* [count] */
	size_t count;
	size_t len;
	enum cell_kind kind;
	struct crate crate; /* once it is packed */
	uint64_t ticket;    /* once it is put */
	struct lane *lane;
	bool is_offer; /* it stays claimed: lane_return(), or lane_release() */
};

/* Why not: what was met. */
struct lane_met {
	uint32_t who;   /* whose claim is in the way; 0: nobody's */
	bool is_memory; /* there is a cell, and no memory */
	bool is_coming; /* somebody is about to put something */
};

/*
 * lane_put() - @letter, by user @who.
 *
 * Returns  XR_OK; XR_E_AGAIN: there is no room, see @met; XR_E_CLOSED; XR_E_RANGE;
 *          XR_E_SYS
 */
enum xr_status lane_put(struct hall *h, struct lane *lane, uint32_t who,
	struct letter *letter, struct lane_met *met);

/* lane_unpack() - it is not put: what it was packed into is free. */
void lane_unpack(struct hall *h, struct letter *letter);

/* Who gets, and where it goes. */
struct taker {
	uint32_t who;
	struct xr_queue_buf *buf; /* data NULL: memory is made for it */
	void *made;               /* by malloc(): spare, of an earlier try */
	size_t made_room;
	uint64_t over; /* of that: so many bytes do not fit; 0: any do */
	enum cell_kind kind;
	struct hall_hand hand; /* of a hall that keeps */
	/* What is to be done before others hear that it was taken; NULL. */
	void (*before)(struct taker *t);
	void *ctx;
};

/*
 * lane_get() - the first item.
 *
 * Returns  XR_OK; XR_E_AGAIN: there is none, see @met; XR_E_RANGE: it does not fit, and
 *          stays; XR_E_NOMEM: the same; XR_E_PROTO, XR_E_SYS: it cannot be read, and is
 *          gone
 */
enum xr_status lane_get(struct hall *h, struct lane *lane, struct taker *t,
	struct lane_met *met);

/*
 * lane_shut() - of XR_QUEUE_P2P, by its reader, who has found it closed, and empty; false: it
 * was known. lane_withdraw() - by its writer, who put @letter, and has found that it was closed
 * meanwhile; false: it was got, or will be.
 *
 * Such a writer claims nothing, so what it puts may come behind that look. But behind both is a
 * fence: either he sees `shut`, or the reader, who looks once more, what he has put. With `shut`
 * it is the one's whose exchange of the cell comes first.
 */
bool lane_shut(struct lane *lane);
bool lane_withdraw(struct hall *h, struct letter *letter);

/* lane_release() - what was got as @ticket is done; what was offered is not put. */
void lane_release(struct hall *h, struct lane *lane, uint64_t ticket);

/* lane_return() - what was got as @ticket is there to be got again; what was offered is
 * put. */
void lane_return(struct hall *h, struct lane *lane, uint64_t ticket);

/* lane_has() - is the item of @ticket still there? */
bool lane_has(const struct hall *h, const struct lane *lane, uint64_t ticket);

/* lane_count() - about how many there are. lane_is_empty() - is none to be got? */
size_t lane_count(const struct hall *h, const struct lane *lane);
bool lane_is_empty(const struct hall *h, struct lane *lane);

/* lane_void() - the claim that @who, who is dead, has on cell @index; false: it has
 * none. */
bool lane_void(struct hall *h, struct lane *lane, uint32_t index, uint32_t who);

/* lane_names() - is there an item whose memory has the word @owner? */
bool lane_names(const struct hall *h, const struct lane *lane, uint64_t owner);

/* lane_cell() - of @ticket; @lap receives its lap. */
static inline struct cell *
lane_cell(const struct hall *h, const struct lane *lane, uint64_t ticket,
	uint64_t *lap)
{
	if (__builtin_expect(h->shift != 0, true)) {
		*lap = ticket >> h->shift & LAP_MASK;
		return &lane->cell[ticket & (h->plan.items - 1)];
	}
	*lap = ticket / h->plan.items & LAP_MASK;
	return &lane->cell[ticket % h->plan.items];
}

#endif /* WORKER_QUEUE_LANE_H */
