/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transports.h - the carriers that this process knows, by name: those of the
 * library, and what the program registers (xrun/transport.h).
 *
 * A row is copied and never goes away, so that who found one may keep it. Any
 * thread.
 */
#ifndef WORKER_RPC_TRANSPORTS_H
#define WORKER_RPC_TRANSPORTS_H

#include <stddef.h>
#include <stdint.h>

#include <xrun/transport.h>

struct buf;

#define TRANSPORTS_MAX 32

/* transport_find() - NULL: there is none of that name. */
const struct xr_carrier *transport_find(const char *name);

/* transport_all() - the highest priority first, of equals who came first; up to
 * @cap. Gives how many there are. */
uint32_t transport_all(const struct xr_carrier **carriers, uint32_t cap);

/* transport_names() - "shm, tcp", in the same order, at the end of @out. */
void transport_names(struct buf *out);

#endif /* WORKER_RPC_TRANSPORTS_H */
