/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seat.h - where threads of this process run tasks.
 *
 * What belongs to a seat is used by one thread at a time.
 *
 * A task's function may end the thread (pthread_exit(3)) instead of returning. So what is
 * known of a task is not on the stack of who runs it: when that is gone it is ended all the
 * same, and has failed.
 */
#ifndef WORKER_POOL_SEAT_H
#define WORKER_POOL_SEAT_H

#include "worker/pool/hand.h"
#include "worker/pool/job.h"
#include "worker/pool/run.h"

/* A task on a seat. */
struct help;
struct stint {
	struct hand hand;
	struct xr_pool *pool;
	struct seat *seat;
	uint32_t place;      /* the seat's number */
	uint32_t index, gen; /* of the task */
	struct job_part part;
	int64_t began, since; /* of what was told of the seat; 0: nothing */
	struct stint *outer;  /* which waits for this one; NULL: none */
	struct job
		*loose; /* whose items it has, and no task; NULL, and under the
			       * pool's lock */
};

struct seat {
	struct stint *now; /* NULL: none */
	struct stint own;
	struct xr_value *nil, *none; /* NIL, and an empty LIST */
	struct help *helps;          /* that are not used (help.h) */
	char name[140];
	/* Tasks of calls that are over: added by who sits here, taken all at once. */
	_Alignas(128) _Atomic(struct task *) done;
};

/* stint_begin() - until stint_end() it can be seen from outside, and cancelled. */
struct stint *stint_begin(struct xr_pool *pool, struct task *t, uint32_t i);
void stint_end(struct stint *s);

/* stint_begin_inside() - the same on our seat, in the middle of what runs there (help.h). @s: the
 * caller's memory. */
void stint_begin_inside(struct stint *s, struct xr_pool *pool, struct task *t);

/* stint_run() - all of its calls: s->part. stint_call() - of a job with one; as
 * hand_run(). */
void stint_run(struct stint *s);
bool stint_call(struct stint *s, struct xr_value **result);

/* stint_left(), stint_call_left() - it has not returned, for a function has ended the thread:
 * as if that had failed, and nothing after it was run. */
void stint_left(struct stint *s);
bool stint_call_left(struct stint *s, struct xr_value **result);

/* What a task gave, where its worker is a mate (mate.h): seat_run() - task @index, on seat
 * @i, and leave its part there. */
void seat_run(struct xr_pool *pool, uint32_t index, uint32_t i);

/* seat_left() - the mate on seat @i has ended in a function: what that had is let go. */
void seat_left(struct xr_pool *pool, uint32_t i);

/* seat_initialise() - what a worker calls first, on its thread; the seat is not used. */
enum xr_status seat_initialise(struct xr_pool *pool, uint32_t i,
	struct xr_error *err);

/* seat_is_ours() - does this thread sit on one, in a function of the pool, or a loop? */
bool seat_is_ours(const struct xr_pool *pool);

/* seat_call() - what is asked for, without callbacks, by @entry, at once, on the seat that is
 * ours, in the middle of what runs there; as xr_pool_apply() and its kin. */
enum xr_status seat_call(struct xr_pool *pool, const struct job_ask *ask,
	const struct entry *entry, struct xr_value **value,
	struct xr_error *err);

/* seats_new() - those of all workers; seats_free() - NULL is fine. */
enum xr_status seats_new(struct xr_pool *pool, struct xr_error *err);
void seats_free(struct xr_pool *pool);

#endif /* WORKER_POOL_SEAT_H */
