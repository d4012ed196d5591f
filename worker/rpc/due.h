/* SPDX-License-Identifier: Apache-2.0 */
/*
 * due.h - until when something is waited for, worked out when somebody asks.
 *
 * To look at the clock takes longer than to send a message, and most go at once.
 */
#ifndef WORKER_RPC_DUE_H
#define WORKER_RPC_DUE_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/rpc/future.h"

struct due {
	int64_t timeout; /* ns; INT64_MAX: never */
	int64_t at;      /* of CLOCK_MONOTONIC; 0: not worked out yet */
	bool no_room;    /* peer_send(): there was none until then */
};

/* due_at() - the timeout counts from the first time that this is asked. @due NULL:
 * never. */
static inline int64_t
due_at(struct due *due)
{
	if (due == NULL || due->timeout == INT64_MAX)
		return INT64_MAX;
	if (due->at == 0)
		future_deadline(due->timeout, &due->at);
	return due->at;
}

#endif /* WORKER_RPC_DUE_H */
