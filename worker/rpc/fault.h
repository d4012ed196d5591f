/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - messages that fail on purpose: the backend "faulty".
 *
 * What fails is said by the backend's options and by XRUN_FAULT, in the
 * environment of the process; both count only with this backend. Rules stand in
 * the order in which they were said, and the first that fits a message is its:
 *
 *	fail:KIND[:K]      sending it fails with XR_E_INJECTED
 *	drop:KIND[:K]      it seems to be sent, and is not
 *	dup:KIND[:K]       it is sent twice
 *	reorder:KIND[:K]   it is sent behind the next one to the same peer, or
 *	                   20 ms later
 *	delay:KIND:TIME    the thread that sends it sleeps first; seconds, or as 20ms
 *
 * K: the first K sends of each message, as its receiver and its bytes tell it from
 * others; without, all. So what is sent again in the end arrives. KIND is a row of
 * message.h, or what torch calls it: a CALL is a REQUEST.
 */
#ifndef WORKER_RPC_FAULT_H
#define WORKER_RPC_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/rpc.h>
#include <xrun/transport.h>

#include "base/span.h"

struct due;
struct parcel;
struct peer;

enum fault_what {
	FAULT_NONE, /* send it */
	FAULT_FAIL,
	FAULT_DROP,
	FAULT_DUP,
	FAULT_REORDER,
	FAULT_DELAY, /* of rules only */
};

/* --- rules ---------------------------------------------------------------- */

#define FAULT_RULES  32
#define FAULT_ALWAYS UINT32_MAX

struct fault_rule {
	enum fault_what what;
	uint8_t kind;             /* 0: nothing that this library sends */
	uint8_t flags, flags_are; /* of the record: those of @flags are these */
	uint32_t count;           /* FAULT_ALWAYS */
	int64_t delay;            /* ns */
};

struct fault_rules {
	struct fault_rule rule[FAULT_RULES];
	uint32_t count;
};

/* fault_is_kind() - is it the name of a kind of message? */
bool fault_is_kind(struct span name);

/* fault_read() - add what @text says, as XRUN_FAULT. XR_E_INVAL: @err has what of
 * it, and what would be right; XR_E_RANGE: more than FAULT_RULES. */
enum xr_status fault_read(struct fault_rules *rules, const char *text,
	struct xr_error *err);

/* fault_read_opts() - the same of the backend's own: "messages_to_fail=KIND,KIND",
 * of which "num_fail_sends=K" fail, and "messages_to_delay=KIND:TIME,...". */
enum xr_status fault_read_opts(struct fault_rules *rules,
	const struct xr_rpc_opts *opts, struct xr_error *err);

/* --- sending -------------------------------------------------------------- */

extern _Atomic bool fault_rules_are __attribute__((visibility("hidden")));

/* fault_open() - before an agent with these options: its rules, or none. */
enum xr_status fault_open(const struct xr_rpc_opts *opts, struct xr_error *err);

/* fault_is_on() - are there any? */
static inline bool
fault_is_on(void)
{
	return atomic_load_explicit(&fault_rules_are, memory_order_relaxed);
}

/* fault_of() - what is to become of @m, which is about to be sent to @p: once a send,
 * with no lock held, and only if fault_is_on(). A delay is over when it returns. */
enum fault_what fault_of(const struct peer *p, const struct xr_message *m);

/* fault_post() - peer_post(), with what the rules say, but delays sleep. */
enum xr_status fault_post(struct peer *p, const struct xr_message *message);

/* fault_send() - peer_send(), with what the rules say. */
enum xr_status fault_send(struct peer *p, const struct xr_message *message,
	struct due *due, struct parcel *parcel, struct xr_error *err);

/* fault_expire() - send what was kept until @now; gives when the next is due, or
 * INT64_MAX. */
int64_t fault_expire(int64_t now);

/* fault_hold() - keep a copy of @m for later; false: it cannot be kept. */
bool fault_hold(struct peer *p, const struct xr_message *m);

/* One that was kept. */
struct fault_held {
	struct fault_held *next;
	struct peer *to;
	int64_t due; /* clock_now() */
	struct xr_message message;
	struct xr_part part;
	uint8_t data[];
};

/* fault_take() - the first that was kept for @p, NULL: for whomever, and that is due
 * by @now; the caller frees it. NULL: there is none. */
struct fault_held *fault_take(const struct peer *p, int64_t now);

/* fault_due() - when the first is due; INT64_MAX. */
int64_t fault_due(void);

/* fault_close() - nothing is kept any more. */
void fault_close(void);

#endif /* WORKER_RPC_FAULT_H */
