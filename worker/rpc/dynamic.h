/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dynamic.h - a group whose members come and go.
 *
 * Its members stand in the store (epoch.h). Each member has a thread that waits
 * there for the next state of the list, brings the peers of this process up to it,
 * and acknowledges. Who joins puts himself on the list, and has joined when all who
 * stand there have acknowledged, or are dead; so he can call all he sees, and they
 * him. Who leaves takes himself off.
 *
 * Nobody need be told that a member died: whoever loses its link to it looks
 * whether it is still there (agent_there()), and takes it off the list if not; so
 * does who joins, of those that do not acknowledge. A member that is stopped is
 * there.
 */
#ifndef WORKER_RPC_DYNAMIC_H
#define WORKER_RPC_DYNAMIC_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/rpc.h>
#include <xrun/store.h>

#include "worker/rpc/member.h"

/*
 * dynamic_join() - as xr_rpc_init() with a size of 0; it is agent_begin() then.
 *
 * @store: the caller's, who frees it after dynamic_end(), or a failure
 * @me:    addresses are found out
 */
enum xr_status dynamic_join(struct xr_store *store, const struct member *me,
	const struct xr_rpc_opts *opts, int64_t deadline, struct xr_error *err);

/* dynamic_is() - is this process a member of such a group? */
bool dynamic_is(void);

/* dynamic_leave() - off the list. @waits: until those who stay know it, for a
 * moment. */
void dynamic_leave(bool waits, int64_t deadline);

/* dynamic_end() - after it: the agent is closed, as by agent_close(). */
void dynamic_end(void (*look)(void *ctx), void *ctx);

#endif /* WORKER_RPC_DYNAMIC_H */
