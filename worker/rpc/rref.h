/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref.h - remote references inside the agent: what calls and values need of them.
 *
 * The owner has a table of values and, for each, of the forks: the handles that
 * others have of it. A handle goes into a message as a fork of its own, which is
 * known to the owner before the parent may end. What is said of forks
 * (rref_wire.c) does the same however often and in whatever order it comes.
 *
 * The references of a body stand in front of it, so that whoever drops the body
 * can give them back without reading it.
 */
#ifndef WORKER_RPC_RREF_H
#define WORKER_RPC_RREF_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>
#include <xrun/transport.h>
#include <xrun/value.h>

#include "wire/value/value_hooks.h"

struct peer;
struct xr_call;

/* Of a reference, or of a fork: who made it, in which life, and its number. */
struct rref_gid {
	uint64_t incarnation, local;
	uint32_t worker;
};

static inline bool
rref_same(const struct rref_gid *a, const struct rref_gid *b)
{
	return a->local == b->local && a->worker == b->worker &&
		a->incarnation == b->incarnation;
}

/* One reference in a message; little-endian. */
struct rref_wire {
	uint64_t id_incarnation, id_local;
	uint64_t fork_incarnation, fork_local;
	uint64_t owner_incarnation;
	uint32_t id_worker, fork_worker;
	uint32_t owner;
	uint32_t flags; /* enum rref_flags */
	uint64_t timeout;
};
_Static_assert(sizeof(struct rref_wire) == VALUE_RREF_BYTES, "its place");

enum rref_flags {
	RREF_CONFIRMED = 1,    /* the owner knows the fork already */
	RREF_UNMADE = 2,       /* the call that was to make the value failed */
	RREF_LATE = 4,         /* confirm it when the function has ended */
	RREF_ONLY_CREATED = 8, /* is it there? without the value */
};

/* --- the references of a body ---------------------------------------------- */

/* Of one that is sent. Zero is a good beginning. */
struct refs_out {
	struct peer *to;
	struct rref_wire birth; /* of a remote call: what it makes */
	bool has_birth;
	struct xr_rref *target; /* of a method: whose; borrowed */
	struct rref_wire *wire; /* [count], behind a head; NULL: none */
	uint32_t count, cap;
	bool lent; /* @wire is a parcel's */
};

/* refs_out_begin() - for a message to @to; the head, if there is one. */
enum xr_status refs_out_begin(struct refs_out *out, struct peer *to,
	struct xr_error *err);

/* refs_out_add() - as value_codec_ctx.rref_pack(), of struct refs_out. */
enum xr_status refs_out_add(struct refs_out *out, struct xr_rref *rref,
	uint8_t wire[VALUE_RREF_BYTES], struct xr_error *err);

/* refs_out_part() - what stands in front of the body; of no bytes: nothing. */
struct xr_part refs_out_part(const struct refs_out *out);

/* refs_out_undo() - it was not sent: nobody has them. Once. */
void refs_out_undo(struct refs_out *out);
void refs_out_fini(struct refs_out *out);

/* Of one that came; NULL where there are none. */
struct refs_in;

/* refs_take() - cuts them off @body, which came from @from. On failure there are
 * none. */
enum xr_status refs_take(struct xr_body *body, struct peer *from,
	struct refs_in **refs, struct xr_error *err);
void refs_free(struct refs_in *refs); /* NULL is fine */

/* refs_find() - as value_codec_ctx.rref_unpack(), of struct refs_in. */
enum xr_status refs_find(struct refs_in *refs,
	const uint8_t wire[VALUE_RREF_BYTES], struct xr_rref **rref,
	struct xr_error *err);

/* refs_birth(), refs_target() - of a remote call, of a method; NULL: it is
 * neither. */
const struct rref_wire *refs_birth(const struct refs_in *refs);
const struct rref_wire *refs_target(const struct refs_in *refs);

/* What is told when all of them are known to their owners: XR_OK, or why one never
 * will be. Any thread; it must not wait. */
typedef void refs_ready_fn(void *ctx, enum xr_status status, const char *why);

/* refs_await() - false: they are already; @fn is not called. */
bool refs_await(struct refs_in *refs, refs_ready_fn *fn, void *ctx);

/* refs_known() - are they already? */
bool refs_known(const struct refs_in *refs);

/* refs_discard() - a message that nobody will read. */
void refs_discard(struct peer *from, const struct xr_body *body);

/* --- calls that make values ------------------------------------------------ */

/* rref_owner_peer() - who has the value; why the handle is good for nothing. */
enum xr_status rref_owner_peer(struct xr_rref *rref, struct peer **peer,
	struct xr_error *err);

/* rref_birth() - a handle of what a call to @to will make, and its ids. */
enum xr_status rref_birth(struct peer *to, struct rref_wire *birth,
	struct xr_rref **rref, struct xr_error *err);

/* rref_unborn() - the call was not made; takes the handle. */
void rref_unborn(struct xr_rref *rref);

/* rref_asked() - the call was sent, or failed, as @future tells, whose reference
 * is taken. @timeout: ns, INT64_MAX: never: for the owner's word. XR_E_NOMEM:
 * what becomes of it will not be known. */
enum xr_status rref_asked(struct xr_rref *rref, struct xr_future *future,
	int64_t timeout);

/* rref_begin() - on the owner: @from's call is here. XR_E_EXISTS: it was before,
 * and is not to be made again; XR_E_NOMEM. */
enum xr_status rref_begin(struct peer *from, const struct rref_wire *birth);

/* rref_made() - on the owner: what it gave, borrowed; NULL: no memory. */
void rref_made(const struct rref_wire *birth, struct xr_value *value,
	bool failed);

/* What is told when a method's object is there, or @error instead; both
 * references. By the thread that made it; it must not wait. */
typedef void rref_object_fn(void *ctx, struct xr_value *object,
	struct xr_value *error);

/* rref_object() - on the owner: of @from's @target. @fn may be called before this
 * returns. */
void rref_object(struct peer *from, const struct rref_wire *target,
	rref_object_fn *fn, void *ctx);

/* --- messages --------------------------------------------------------------- */

/* Handlers of them. */
void rref_on_control(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);
void rref_on_fetch(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* --- the agent's life ------------------------------------------------------- */

/* rref_open() - of this agent's life; @flags: enum xr_rref_flags. */
void rref_open(void);
void rref_set_flags(uint32_t flags);

/* rref_cancel() - nobody waits for the answer to this fetch any more. */
void rref_cancel(const struct peer *peer, uint64_t corr);

/* rref_lost() - @peer's handles are gone, and what it owns. */
void rref_lost(struct peer *peer);

/* rref_expire() - of those that wait, and what is to be sent again; gives when it
 * is to be called next, or INT64_MAX. */
int64_t rref_expire(int64_t now);

/*
 * rref_settle() - of a graceful shutdown, when no call is under way: release what
 * this process holds, and wait until nobody holds what it owns; @all: the others
 * leave, too, else they keep what they have, and it is lost to them.
 *
 * Returns  XR_OK; XR_E_TIMEOUT: @err says what is left
 */
enum xr_status rref_settle(bool all, int64_t deadline, struct xr_error *err);

/* rref_leaks() - handles that the program has not released, and forks that others
 * have not, as text, which is cut at @cap; gives how many. */
uint32_t rref_leaks(char *text, size_t cap);

/* rref_abandon() - whoever waits for a value here hears that the agent is shut
 * down. rref_close() - all tables are emptied; nobody is in the agent. */
void rref_abandon(void);
void rref_close(void);

enum rref_figure {
	RREF_OWNERS,        /* values that others have handles of */
	RREF_FORKS,         /* those handles */
	RREF_USERS,         /* handles of others' values */
	RREF_PENDING_USERS, /* of those, which their owner has not confirmed */
	RREF_PENDING_CHILDREN, /* forks that were sent, not accepted yet */
	RREF_PENDING_FUTURES,  /* values that are waited for */
	RREF_FIGURES,
};

uint32_t rref_figure(enum rref_figure which);

#endif /* WORKER_RPC_RREF_H */
