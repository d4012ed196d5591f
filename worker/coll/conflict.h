/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conflict.h - members of a group that call different operations.
 *
 * The error states both calls. In shared memory each member shows its call, so the member
 * that detects the difference reads the other call there (board_round.c). A message of
 * an operation carries only a hash of the call. The member that detects a difference
 * there sends its own call to the other member; that member has both calls then, and
 * fails the group. Both do so if each has a message of the other.
 *
 * A call of the form with a future differs from one that waits, over every transport.
 */
#ifndef WORKER_COLL_CONFLICT_H
#define WORKER_COLL_CONFLICT_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/coll.h>

struct op;
struct plan;

#define CONFLICT_CALL 112 /* bytes of a call as text */

/* The fault of a message of an operation. */
struct conflict {
	enum xr_status status;    /* XR_OK: nothing; XR_E_CONFLICT; another */
	char why[232];            /* for the error */
	uint32_t from, seq;       /* of the message: place, number */
	char call[CONFLICT_CALL]; /* XR_E_CONFLICT: the call of this member */
};

/* conflict_text() - states a call: "all_reduce of 4 f32, sum, with a future". */
void conflict_text(const struct plan *plan, const struct xr_coll_op *call,
	bool future, char *text, size_t cap);

/* conflict_judge() - fills @c: the message of place @from, number @seq, does not fit @op
 * for the reason @status. The group's lock is held. */
void conflict_judge(const struct op *op, uint32_t from, uint32_t seq,
	enum xr_status status, struct conflict *c);

/* conflict_judge_call() - the same, if the member calls @own and @from something else. */
void conflict_judge_call(const struct xr_coll *team, const char *own,
	uint32_t from, uint32_t seq, struct conflict *c);

/* conflict_shown() - returns true if @op, which has a future, waits for place @from, and
 * that shows another call on the board. All that has arrived is read: a member that had
 * begun @op before would have sent its message first. The lock is held. */
bool conflict_shown(const struct op *op, uint32_t from, char why[232]);

/* conflict_settle() - acts on @c: sends this member's call to the other member, or fails
 * the group. The lock is not held. */
void conflict_settle(struct xr_coll *team, const struct conflict *c);

/* conflict_arrived() - place @from calls @call, which does not fit operation @seq of this
 * member: fails the group. Called by the thread that delivers. */
void conflict_arrived(struct xr_coll *team, uint32_t from, uint32_t seq,
	const char *call);

/* conflict_fail() - fails the group: this member calls @own, and place @from calls
 * @other. Returns XR_E_CONFLICT. */
enum xr_status conflict_fail(struct xr_coll *team, const char *own,
	uint32_t from, const char *other, struct xr_error *err);

#endif /* WORKER_COLL_CONFLICT_H */
