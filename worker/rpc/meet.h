/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - several members bring a value each, and all get all of them.
 *
 * The member with the first name collects. A meeting is known by the set of its
 * members, by what it is for, and by how many such there were before, in this
 * process: those of the program and those of leaving do not meet each other, also
 * when one rank gave up the former before another came to the latter. Each
 * member tells the collector for how long it will wait, and is told when that is
 * over who is missing; so all hear the same, also when the collector's own program
 * never comes.
 */
#ifndef WORKER_RPC_MEET_H
#define WORKER_RPC_MEET_H

#include <stddef.h>
#include <stdint.h>

#include <xrun/rpc.h>
#include <xrun/transport.h>

struct peer;

enum meet_for {
	MEET_PROGRAM, /* xr_rpc_allgather() */
	MEET_LEAVING,
	MEET_GROUP, /* xr_group_new(), xr_group_barrier() */
	MEET_TEAM,  /* meet_least() */
};

/* Meetings of the same members meet only under the same label. */
struct meet_label {
	enum meet_for what;
	const char *salt; /* any text; NULL: none */
	/* How many there were under this label, which nobody else has: the caller's,
	 * and gone with it. NULL: they are counted here, by members and salt, for as
	 * long as there is an agent. */
	_Atomic uint64_t *past;
};

/* meet() - as xr_rpc_allgather(); @meeting: names are given, and the timeout is in ns,
 * INT64_MAX never. */
enum xr_status meet(const struct xr_rpc_meeting *meeting, enum meet_for what,
	struct xr_value *value, struct xr_value **all, struct xr_error *err);

/* meet_as() - the same, of those who say the same @label. */
enum xr_status meet_as(const struct meet_label *label,
	const struct xr_rpc_meeting *meeting, struct xr_value *value,
	struct xr_value **all, struct xr_error *err);

/* A meeting of peers, which all its members know in this order. */
struct meet_team {
	uint64_t id; /* no other meeting of theirs has it */
	struct peer *const *peer;
	uint32_t count;
	int64_t timeout; /* ns; INT64_MAX */
};

/* meet_least() - each brings a number, and all get the least. Returns as meet(). */
enum xr_status meet_least(const struct meet_team *team, uint64_t *number,
	struct xr_error *err);

/* A handler of messages. */
void meet_on_report(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* meet_expire() - tells those whose time is over by @now; gives when the next is,
 * or INT64_MAX. */
int64_t meet_expire(int64_t now);

/* meet_lost() - @peer will not come to any, and what it reported to those that are not
 * complete counts no more: others may know of it, and not come. */
void meet_lost(const struct peer *peer);

/* meet_forget_all() - the agent is closed. */
void meet_forget_all(void);

#endif /* WORKER_RPC_MEET_H */
