/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the store of a tcp:// address, served by rank 0's own process.
 *
 * One thread serves all who connect; the handles of a process that name the same
 * place share it, and with the last of them it ends. What is at the place is
 * whoever's who can reach it: no secret is asked for. So it listens on the
 * address that was named, never on all.
 */
#ifndef WORKER_STORE_HOST_H
#define WORKER_STORE_HOST_H

#include <netdb.h>

#include "store/address.h"

struct host;

/*
 * host_open() - serve the store at @address.
 *
 * @at:    where that is
 * Returns  XR_OK; XR_E_EXISTS: somebody listens there; XR_E_SYS, XR_E_NOMEM
 */
enum xr_status host_open(const struct store_address *address,
	const struct addrinfo *at, struct host **host, struct xr_error *err);

/* host_close() - once for each host_open(). NULL is fine. */
void host_close(struct host *host);

#endif /* WORKER_STORE_HOST_H */
