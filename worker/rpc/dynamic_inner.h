/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_inner.h - a group that changes, for dynamic.c and those beside it. */
#ifndef WORKER_RPC_DYNAMIC_INNER_H
#define WORKER_RPC_DYNAMIC_INNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/store.h>
#include <xrun/value.h>

#include "base/clock.h"
#include "worker/rpc/epoch.h"
#include "worker/rpc/member.h"

#define LEASE_NS      (10 * NS_PER_S) /* of one that nothing answers for */
#define LEASE_LOOK_NS (3 * NS_PER_S)  /* of it, between two looks at most */

/* For how long nothing has answered for a member. Zero is the beginning. */
struct dynamic_lease {
	int64_t last;   /* look, clock_now(); 0: there was none */
	int64_t silent; /* ns */
};

/* dynamic_lease_over() - nothing answered now. Returns true if that is so for
 * LEASE_NS. Time in which this process could not look does not count. */
static inline bool
dynamic_lease_over(struct dynamic_lease *l)
{
	int64_t now = clock_now(), since = l->last != 0 ? now - l->last : 0;

	l->silent += since < LEASE_LOOK_NS ? since : LEASE_LOOK_NS;
	l->last = now;
	return l->silent > LEASE_NS;
}

struct peer;

struct dynamic {
	pthread_mutex_t lock;  /* of what follows */
	uint64_t applied;      /* the record that the peers are of */
	struct peer **present; /* [count]: without this process */
	size_t count, cap;

	/* From joining to leaving. */
	struct xr_store *store; /* NULL: this process is no member of one */
	struct xr_value *info;  /* what it tells, and read: */
	struct member self;
	pthread_t watch;
	bool watched;
	_Atomic bool leaving;
};

extern struct dynamic dynamic;

/* dynamic_is_self() - this process, in this life. */
bool dynamic_is_self(const struct member *m);

/* --- peers as the list has them (roll.c) ------------------------------------ */

/* roll_place() - of that life in a LIST of members; -1: it is not there. */
long roll_place(const struct xr_value *members, uint32_t id,
	uint64_t incarnation);

/* roll_learn() - all members of @e are peers. False: no memory. */
bool roll_learn(const struct epoch *e);

/* roll_has() - is that life a member, as far as is known here? */
bool roll_has(const struct member *m);

/* roll_apply() - peers are as @e has them; those who wait for answers of one that
 * is gone are told. False: no memory, or it is not new. */
bool roll_apply(const struct epoch *e);

/* roll_acknowledge() - this process has all records behind @before, up to @e. Of
 * those that it did not read it cannot know whether that was asked for. */
void roll_acknowledge(uint64_t before, const struct epoch *e);

/* roll_watch() - a thread brings the peers up to each new state of the list, until
 * this process is off it, or the store is closed. */
enum xr_status roll_watch(struct xr_error *err);

/* --- who is dead (dead.c) ---------------------------------------------------- */

/* dead_copy() - two new lists in @next: those of @now, but for the member at
 * @without (-1: none), which is noted as lost if it is @lost. */
struct dead_copy {
	long without;
	bool lost;
};
enum xr_status dead_copy(const struct epoch *now, struct dead_copy how,
	struct epoch *next, struct xr_error *err);

/* A life that is to be off the list. */
struct dead_one {
	uint32_t id;
	uint64_t incarnation;
	bool lost;
	bool asks;
};

/* dead_take_off() - of struct epoch_change; the ctx is a struct dead_one. */
enum xr_status dead_take_off(const struct epoch *now, struct epoch *next,
	void *one, struct xr_error *err);

/* dead_bury() - it died: off the list, if that can be. */
void dead_bury(uint32_t id, uint64_t incarnation);

/* dead_lost() - lost() of struct agent_wish. */
void dead_lost(struct peer *p);

/* --- acknowledgements (acks.c) ------------------------------------------------ */

/* acks_await() - until all others of @mine, which was written here, have it, or are
 * gone; the dead among them are buried. XR_E_TIMEOUT names them. */
enum xr_status acks_await(const struct epoch *mine, int64_t deadline,
	struct xr_error *err);

#endif /* WORKER_RPC_DYNAMIC_INNER_H */
