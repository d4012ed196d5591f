/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - calls that others make: run the function, answer once.
 *
 * A short function runs where its call is read, over the bytes as they came; any
 * other is posted to the crew, with the body kept. A call is counted: its
 * function has a reference, and whoever deferred it.
 */
#ifndef WORKER_RPC_SERVE_H
#define WORKER_RPC_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/func.h>
#include <xrun/transport.h>

struct peer;

/* Handlers of messages. */
void serve_request(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);
void serve_cancel(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* serve_count() - calls that are not answered yet; of those, the ones whose
 * function has returned. */
uint32_t serve_count(bool deferred);

/* serve_tell_running() - on standard error: which functions run yet, and for whom. */
void serve_tell_running(void);

/* serve_lost() - nobody waits for the answers of @peer's calls. */
void serve_lost(const struct peer *peer);

/* serve_forget_all() - nor for any other's: the agent ends, and no function runs any
 * more. Those that were deferred are their owners'. */
void serve_forget_all(void);

#endif /* WORKER_RPC_SERVE_H */
