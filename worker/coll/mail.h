/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mail.h - what members of a group send each other.
 *
 * A message of an operation has no head but its record: the group's number and the
 * operation's in corr, the stage in aux, what is called in method; and its body is
 * the data, so that it can be handed over where it lies. Whatever else is said has
 * a flag.
 */
#ifndef WORKER_COLL_MAIL_H
#define WORKER_COLL_MAIL_H

#include <stdint.h>

#include <xrun/error.h>
#include <xrun/value.h>

struct op;
struct xr_coll;

enum mail_flags {
	MAIL_FAILED = 1, /* the body is a status, i32, and words */
	MAIL_POST = 2,   /* a message of the program's: post.h */
	MAIL_CALL = 4, /* the body is the sender's call, as text: conflict.h */
};

/* mail_stage() - what @op's plan gives in its stage, to all of them. Waits for room,
 * until the operation's deadline. Returns as peer_send(). */
enum xr_status mail_stage(struct op *op, struct xr_error *err);

/* mail_failed() - tell all other members that the group has failed: from operation @seq on
 * nothing comes of this one. */
void mail_failed(struct xr_coll *team, uint32_t seq);

/* mail_call() - tells place @to that this member calls @call, and not what @to sent for
 * operation @seq. */
void mail_call(struct xr_coll *team, uint32_t to, uint32_t seq,
	const char *call);

static inline uint64_t
mail_corr(uint64_t team, uint32_t seq)
{
	return team << 24 | (seq & 0xffffff);
}

#endif /* WORKER_COLL_MAIL_H */
