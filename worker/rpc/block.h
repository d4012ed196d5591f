/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - the futures of this thread's calls, between xr_rpc_wait_begin() and
 * xr_rpc_wait_end(). */
#ifndef WORKER_RPC_BLOCK_H
#define WORKER_RPC_BLOCK_H

struct xr_future;

/* block_add() - if this thread is in such a block. */
void block_add(struct xr_future *future);

#endif /* WORKER_RPC_BLOCK_H */
