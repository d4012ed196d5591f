/* SPDX-License-Identifier: Apache-2.0 */
/* settle.h - does any member of a group call another one? */
#ifndef WORKER_RPC_SETTLE_H
#define WORKER_RPC_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What all members have said at a meeting. Each reads how many calls it has begun since
 * it joined, and after that how many of them are active.
 */
struct call_sums {
	uint64_t active, begun;
};

/*
 * call_sums_settled() - true if no call can be active any more, by two meetings in a row.
 *
 * One meeting is not enough. A member that has said that it has none may then begin one to
 * serve another member's call, which is over before that member is asked. If no member has
 * begun any from its reading at @before to its reading at @now, and none had an active one
 * at @before, there was none at the moment when @before was over; and only a function
 * that serves a call, or a thread that is to be waited for, can begin another. That none
 * is active at @now is not enough: a call that was active at @before may have had another
 * begun after @now. (Mattern, Algorithms for distributed termination detection, 1987,
 * the four counter method.)
 */
static inline bool
call_sums_settled(const struct call_sums *before, const struct call_sums *now)
{
	return before->active == 0 && now->active == 0 &&
		before->begun == now->begun;
}

#endif /* WORKER_RPC_SETTLE_H */
