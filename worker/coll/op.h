/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - one operation of a group, on one of its members.
 *
 * It goes in stages. In each a member sends what others need of it, waits for what
 * it needs of them, and works on that. In the first each member hears of each, if
 * only of what it calls: so all know when they differ. What an operation sends and
 * works is its plan's (plan.h).
 *
 * One thread carries it through: whoever called, or, where that has a future, one of
 * the crew whenever a stage is complete. Who delivers only puts down what came.
 */
#ifndef WORKER_COLL_OP_H
#define WORKER_COLL_OP_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/coll.h>
#include <xrun/transport.h>

#include "base/clock.h"
#include "worker/coll/team.h"
#include "worker/rpc/crew.h"

struct held;
struct plan;
struct storage;
struct waiter;

#define OP_STAGES 2
#define OP_SHOWN  UINT32_MAX /* number of what goes by no message */
#define OP_SMALL  64         /* bytes that are copied where they come */

/* A turn among those who wait takes less, who each look and let the next one run. Where
 * one took as long somebody computes meanwhile, and keeps the processor for a slice of the
 * kernel's: then there are better ways to wait. */
#define OP_SLICE_NS (500 * NS_PER_US)

/* What came of one member in one stage. */
struct part {
	const void *data;
	size_t len;
	struct held *held; /* what it lies in; NULL: @small */
	bool here;
	_Alignas(16) uint8_t small[OP_SMALL];
};

struct op {
	TAILQ_ENTRY(op) list;
	struct xr_coll *team; /* a reference */
	const struct plan *plan;
	struct xr_coll_op call;
	size_t bytes;   /* of its data */
	uint32_t root;  /* place of its rank */
	uint32_t check; /* of what is called, for others */
	uint32_t seq;
	int64_t deadline;
	_Atomic uint32_t
		sent; /* stages of which the others have all they need */

	/* Under the group's lock. */
	uint32_t stage, stages;
	uint32_t missing[OP_STAGES];
	struct waiter *waiter;    /* whoever waits; NULL */
	struct xr_future *future; /* NULL: somebody waits */
	bool posted;              /* the crew has it */
	bool is_over;             /* it failed, as @status and @why say */
	enum xr_status status;
	char why[232];

	struct work work;
	struct storage *made; /* this member's share of a reduction */
	const void **src;     /* [count]: for who reduces */
	struct part part[];   /* [stages][count] */
};

/* What came for an operation that has not begun here. */
struct early {
	TAILQ_ENTRY(early) list;
	uint32_t seq, stage, from, check;
	size_t bytes; /* of @part, as it came */
	struct part part;
};

/* op_part() - what came of @from in @stage. */
static inline struct part *
op_part(struct op *op, uint32_t stage, uint32_t from)
{
	return &op->part[(size_t)stage * op->team->count + from];
}

/* op_run() - @call, which is checked, from its beginning to its end. Returns as
 * xr_coll_barrier(). */
enum xr_status op_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *err);

/* op_enter() - only so far that what comes for it is its own: from now on it ends if the
 * group fails only where it needs who failed. op_carry() - to its end; it is freed.
 * op_drop() - nobody carries it out. */
enum xr_status op_enter(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct op **op, struct xr_error *err);
enum xr_status op_carry(struct op *op, struct xr_error *err);
void op_drop(struct op *op);

/* op_begin() - as op_run(), and @future receives a reference. */
enum xr_status op_begin(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_future **future,
	struct xr_error *err);

/* op_new() - of @call; NULL: no memory. op_set() - another @call; what came is
 * forgotten. op_free() - it is in no group's list. */
struct op *op_new(struct xr_coll *team);
void op_set(struct op *op, const struct plan *plan,
	const struct xr_coll_op *call);
void op_free(struct op *op);

/* op_await() - of one that is in its group's list: until its stage is complete; then it
 * is in there no more. */
enum xr_status op_await(struct op *op, struct xr_error *err);

/* op_stir() - its stage is complete: whoever carries it on is to look; the lock is
 * held. */
void op_stir(struct op *op);

/* op_find() - the operation with number @seq that is under way; NULL: none is. The lock is
 * held. */
struct op *op_find(struct xr_coll *team, uint32_t seq);

/* op_arrived() - what @from, a place, sent for one, as the record says. Called by who
 * delivers. */
void op_arrived(struct xr_coll *team, uint32_t from,
	const struct xr_record *record, const struct xr_body *body);

/* Who sends nothing more: from which operation on. */
struct op_reach {
	int64_t place; /* -1: nobody does, of any */
	uint32_t seq;
};

/* op_fail_all() - those of a group that has failed which need something yet that does not
 * come. op_first_to_fail() - the number of the first of them, or of the next to begin;
 * @any: are there any? The group's lock is held. */
void op_fail_all(struct xr_coll *team, const struct op_reach *reach);
uint32_t op_first_to_fail(struct xr_coll *team, const struct op_reach *reach,
	bool *any);

/* op_await_room() - until so much is under way that @op may begin, or the group has
 * failed. The same. */
enum xr_status op_await_room(struct op *op, struct xr_error *err);

/* op_is_to_come() - is that the number of one that has not begun here? op_may_be_ahead() -
 * may a member have sent that of one? op_ahead_text() - if not, why. The same. */
bool op_is_to_come(const struct xr_coll *team, uint32_t seq);
bool op_may_be_ahead(const struct xr_coll *team, const struct early *e);
void op_ahead_text(const struct xr_coll *team, const struct early *e,
	char *text, size_t cap);

/* op_is_ahead() - returns true if @from has sent something for an operation that has not
 * begun here. @seq receives its number. The same. */
bool op_is_ahead(const struct xr_coll *team, uint32_t from, uint32_t *seq);

/* op_forget_early() - what came for operations that will not begin. The same. */
void op_forget_early(struct xr_coll *team);

/* op_overdue() - is one over its time by @now? @next: when the next is. The same. */
struct op *op_overdue(struct xr_coll *team, int64_t now, int64_t *next);

/* op_finish_left() - of a group that has failed: those with a future for which there is
 * no crew any more. */
void op_finish_left(struct xr_coll *team);

/* op_late() - why it is not complete when its time is over. Returns XR_E_TIMEOUT, and @text
 * names the ranks that are missing; or XR_E_CONFLICT, if a member calls something else
 * and has not answered with what, or shows it. The same. */
enum xr_status op_late(const struct op *op, char *text, size_t cap);

#endif /* WORKER_COLL_OP_H */
