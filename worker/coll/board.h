/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board.h - what the members of a group on one machine show each other.
 *
 * It lies in the arena of the first member, who lends it to the others: a page for each,
 * with two of everything: for what is being done, and for what was done before. A member
 * writes its part to its page, shows it with a number and what it calls, waits until it
 * sees those of all others, and works on them where they stand: a round (board_inner.h).
 * Nobody writes to what somebody may read yet, because nobody is two ahead: who shows the
 * next has seen all of this. What a page cannot hold is done in several rounds
 * (board_run.c).
 *
 * Source: two lines and one synchronisation, performance.md 3.5 (DeepSpeed's symmetric
 * all-reduce, and its distributed one), 5.7.
 */
#ifndef WORKER_COLL_BOARD_H
#define WORKER_COLL_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/coll.h>

#include "worker/coll/conflict.h"

struct board;
struct plan;

/* board_new() - before the members meet. NULL: no memory, or nobody else is one.
 * board_free() - NULL is fine. */
struct board *board_new(struct xr_coll *team);
void board_free(struct board *board);

/* board_turns() - what this member thinks of how much is to be done at once, for the
 * others; 0: it can have none, and so nobody, and what they do goes by messages. */
uint32_t board_turns(const struct board *board);

/* board_hand() - what hands it over; to be entered before the members meet, by all of
 * them. board_open() - all have come, and none said 0: the group has it. @turns is the
 * least that they said. Returns as xr_coll_barrier(). */
enum xr_status board_hand(struct board *board, struct xr_error *err);
enum xr_status board_open(struct board *board, uint32_t turns,
	struct xr_error *err);

/* board_run() - as op_run(), of a group that has one. */
enum xr_status board_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *err);

/* board_look() - what is new there is of whoever waits; gives how much that is. The
 * group's lock is held; NULL: nothing. */
uint32_t board_look(struct board *board);

/* board_lacks() - is there somebody waiting for what @place shows, which it does not do?
 * The group's lock is held; NULL: nobody. */
bool board_lacks(const struct board *board, uint32_t place);

/* board_is_next() - does @place show a round that this member has not begun, while no
 * thread of this member uses the board? @text receives the call. The lock is held; NULL: no. */
bool board_is_next(const struct board *board, uint32_t place,
	char text[CONFLICT_CALL]);

/* board_judge() - fills @c: the member at @from has sent a message of operation @seq, and
 * this member waits for it on the board. The lock is held. */
void board_judge(const struct board *board, uint32_t from, uint32_t seq,
	struct conflict *c);

/* board_forget() - the agent is being closed. */
void board_forget(void);

#endif /* WORKER_COLL_BOARD_H */
