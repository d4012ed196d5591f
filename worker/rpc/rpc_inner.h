/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_inner.h - the three calls, of functions and of methods. */
#ifndef WORKER_RPC_RPC_INNER_H
#define WORKER_RPC_RPC_INNER_H

#include <xrun/rpc.h>
#include <xrun/rref.h>

/* As xr_rpc_sync() and its like; @target: whose method @call->func is, of its
 * owner; NULL: it is a function. */
enum xr_status rpc_sync(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_value **value, struct xr_error *err);
enum xr_status rpc_async(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_future **future, struct xr_error *err);
enum xr_status rpc_remote(const struct xr_rpc_call *call,
	struct xr_rref *target, struct xr_rref **rref, struct xr_error *err);

/* rpc_ask() - as rpc_async(), and no xr_rpc_wait_end() hears of it. */
enum xr_status rpc_ask(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_future **future, struct xr_error *err);

#endif /* WORKER_RPC_RPC_INNER_H */
