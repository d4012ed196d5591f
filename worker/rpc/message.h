/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - what agents say to each other: one row a kind.
 *
 * Each has a record (xrun/transport.h) and a body. @corr names the question, as
 * the asker numbered it; an answer repeats it. Numbers are on the wire, and are
 * never reused.
 */
#ifndef WORKER_RPC_MESSAGE_H
#define WORKER_RPC_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/transport.h>

struct agent_carrier;
struct peer;

/* M(NAME, number, handler, "what it is") */
#define MESSAGE_TABLE(M) \
	M(REQUEST, 1, serve_request, "a call") \
	M(REPLY, 2, ask_answered, "what a question gave") \
	M(ERROR, 3, ask_answered, "an ERROR instead") \
	M(ONEWAY, 4, serve_request, "a call that nobody waits for") \
	M(CANCEL, 5, serve_cancel, "nobody waits for that call any more") \
	M(MEET, 10, meet_on_report, "a member's part of a meeting") \
	M(RREF_CONFIRM, 20, rref_on_control, "its owner knows a handle") \
	M(RREF_FORK_REQUEST, 21, rref_on_control, "there is a handle more") \
	M(RREF_CHILD_ACCEPT, 22, rref_on_control, \
		"what was passed on is known") \
	M(RREF_USER_DELETE, 23, rref_on_control, "a handle has ended") \
	M(RREF_FETCH, 24, rref_on_fetch, "asks for a value that stays here") \
	M(EVENTS, 30, prof_arrived, "what ran for a call that is recorded") \
	M(GUEST, 40, guest_arrived, "of who stands on the agent: guest.h")

enum message_kind {
#define M(name, number, handler, text) MESSAGE_##name = number,
	MESSAGE_TABLE(M)
#undef M
		MESSAGE_KINDS,
};

/* Beside a kind: it came as a message of the group of all: way.h. */
#define MESSAGE_CARRIED 0x80
_Static_assert(MESSAGE_KINDS <= MESSAGE_CARRIED, "a bit of its own");

enum message_flags {
	MESSAGE_VALUE = 1,  /* the body is a value, not bytes */
	MESSAGE_NAMED = 2,  /* it begins with the function's name: u16, bytes */
	MESSAGE_REMOTE = 4, /* what it gives stays: ids in front, see rref.h */
	MESSAGE_METHOD = 16, /* of a value: its reference in front, too */
	MESSAGE_PROFILE = 8, /* record what it does */
};

/* message_deliver() - hand it to its handler; what is of no kind is refused. Of
 * struct xr_carrier_host. */
void message_deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body);

/* message_hand() - the same, of a message that message_deliver() gave to the way. */
void message_hand(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* message_carrier() - the one that delivers at this moment, on this thread. */
const struct agent_carrier *message_carrier(void);

#endif /* WORKER_RPC_MESSAGE_H */
