/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - the carrier to this process itself: a queue. */
#ifndef WORKER_RPC_LOOP_H
#define WORKER_RPC_LOOP_H

#include <xrun/transport.h>

extern const struct xr_carrier loop_carrier;

#endif /* WORKER_RPC_LOOP_H */
