/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board_inner.h - what the files of a board share: its memory, and a round.
 *
 * A round is what all members do between two numbers: each writes to its page, shows
 * it, waits for those whose pages it reads, and reads them. What has the number n lies
 * in half n & 1 of a page, and is written to when all have shown n - 1, that is, have
 * read what lay there with n - 2. So nobody is more than one ahead of anybody.
 *
 * Of what a root has, only that root is waited for, and it waits for nobody: that all
 * have called the same is seen when the next round begins.
 */
#ifndef WORKER_COLL_BOARD_INNER_H
#define WORKER_COLL_BOARD_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include <sys/queue.h>

#include "worker/coll/board.h"
#include "worker/coll/conflict.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/rpc/local.h"

#define PIECE_BYTES  (64U << 10) /* stays in the caches of two processors */
#define LINE_DATA    112         /* bytes */
#define WINDOW_BYTES (256U << 10)
#define RESULT_BYTES \
	(WINDOW_BYTES / 2) /* of a slice of three members, or more */

struct held;
struct storage;

struct line {
	_Alignas(64) _Atomic uint32_t
		number; /* of what is shown; 0: nothing yet */
	uint32_t check;
	/* Of a root that has said where it lies what is for this member: the number
	 * of the round for which somebody sees to that, and of the last that is
	 * done. */
	_Atomic uint32_t claimed, taken;
	uint8_t data[LINE_DATA];
};

_Static_assert(sizeof(struct line) == 128, "what is fetched together");

/* What a member calls, for the error of another that calls something else. */
struct shown {
	_Alignas(64) uint64_t code;
	uint64_t count;
	uint32_t rank, op, dtype;
	char text[100]; /* if the code is PLAN_TOLD */
};

_Static_assert(sizeof(struct shown) == 128, "no member shares a cache line");

/* What a member shows beside its lines. */
struct page {
	uint8_t window[2][WINDOW_BYTES]; /* what is too long for a line */
	uint8_t result[2][RESULT_BYTES]; /* of the slice that it works out */
};

/* A board of @count members has a line of each half for each member, so that a member that
 * reads all lines finds them in few pages of memory. Then follow the calls, in the same
 * order, and a page for each member. Bytes. */
static inline size_t
board_pages_at(uint32_t count)
{
	return ((size_t)count * 2 *
			       (sizeof(struct line) + sizeof(struct shown)) +
		       4095) /
		4096 * 4096;
}

static inline size_t
board_bytes(uint32_t count)
{
	return board_pages_at(count) + (size_t)count * sizeof(struct page);
}

/* Can all others read the memory of a member? */
enum board_reach {
	REACH_UNKNOWN,
	REACH_NONE,
	REACH_ALL,
};

/* What is known of a member. */
struct seen {
	struct local_bell bell; /* NULL in it: it is not to be rung */
	uint32_t rang;          /* its nap that we have ended */
	enum board_reach reach; /* the same for all members */
};

enum board_turn {
	TURN_FREE,
	TURN_TAKEN,
	TURN_WANTED, /* it is taken, and others wait: team_await() */
};

struct board {
	LIST_ENTRY(board) list; /* of those where somebody waits */
	struct xr_coll *team;   /* borrowed */
	_Atomic uint32_t turn;  /* enum board_turn: of who does something */
	int64_t deadline;       /* of all of it; 0: not worked out yet */
	bool possible;          /* as far as this member knows */
	bool counted;           /* among those that are open */
	bool told;              /* this member was, that the group has failed */
	struct op *handing;     /* not carried out yet; NULL */
	uint32_t number;        /* of what was shown last */
	bool met;               /* all have shown that, and call the same */
	const struct plan *plan;       /* of the program's call, .. */
	const struct xr_coll_op *call; /* .. and that, not a piece of it */
	bool lends;   /* what is taken is awaited, and not what is shown */
	size_t piece; /* bytes of what is done in a round; the same for all */
	void *memory; /* board_bytes() of it */
	struct storage *made; /* it lies in that, at the first member */
	struct held *held;    /* .. in that, at the others */
	struct op *op;        /* of who has the turn */
	struct seen seen[];   /* [count] */
};

/* round_begin() - the next, as soon as all show the last, and have called the same there;
 * this member may write to its page. Returns as xr_coll_barrier(). */
enum xr_status round_begin(struct board *b, struct xr_error *err);

/* round_end() - what was written is shown to all; when this returns those show theirs
 * who are waited for, and call the same. Returns as xr_coll_barrier(). */
enum xr_status round_end(struct board *b, struct xr_error *err);

/* round_meet() - the same, but all are waited for. */
enum xr_status round_meet(struct board *b, struct xr_error *err);

/* round_claim() - shall who asks see to it that member @place has its own of the root's?
 * The first who asks. round_taken() - it has. round_lent() - the root waits until all
 * have, another member until it has itself. Returns as xr_coll_barrier(). */
bool round_claim(struct board *b, uint32_t place);
void round_taken(struct board *b, uint32_t place);
enum xr_status round_lent(struct board *b, struct xr_error *err);

/* round_may_begin() - has the group not failed, or is all there that the next round of
 * the board's operation waits for? Who showed it may have ended since. But to whom it was
 * told that the group has failed, it has. */
enum xr_status round_may_begin(struct board *b, struct xr_error *err);

/* round_line_of() - what member @place shows in round @number; in turn one of two. */
static inline struct line *
round_line_of(const struct board *b, uint32_t place, uint32_t number)
{
	return (struct line *)b->memory + 2 * (size_t)place + (number & 1);
}

/* round_shown() - what member @place calls in round @number. */
static inline struct shown *
round_shown(const struct board *b, uint32_t place, uint32_t number)
{
	struct line *end =
		(struct line *)b->memory + 2 * (size_t)b->team->count;

	return (struct shown *)end + 2 * (size_t)place + (number & 1);
}

/* round_line() - in this round. */
static inline struct line *
round_line(const struct board *b, uint32_t place)
{
	return round_line_of(b, place, b->number);
}

/* round_page() - of member @place. */
static inline struct page *
round_page(const struct board *b, uint32_t place)
{
	return (struct page *)((char *)b->memory +
		       board_pages_at(b->team->count)) +
		place;
}

/* Of this member. */
static inline struct page *
round_own_page(const struct board *b)
{
	return round_page(b, (uint32_t)b->team->me);
}

/* board_shares() - as board_run(): what a root has for each, but its own. */
enum xr_status board_shares(struct board *b, const struct xr_coll_op *call,
	struct xr_error *err);

/* board_same() - as board_run(): what a root has for all, where they wait for their turn
 * of a processor. */
enum xr_status board_same(struct board *b, const struct xr_coll_op *call,
	struct xr_error *err);

/* round_read() - whoever waits on a board is looked for by who reads; round_unread():
 * the agent is being closed. */
void round_read(void);
void round_unread(void);

#endif /* WORKER_COLL_BOARD_INNER_H */
