/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the store of a tcp:// address, served by rank 0's own process.
 *
 * One thread serves all connections; the handles of a process that name the same
 * place share it, and it ends with the last of them. It listens on the address
 * that was named, never on all.
 *
 * A client has to prove that it knows the secret (auth.h), unless the address has
 * auth=none. A client on this machine that belongs to another user is rejected
 * when it connects. The number of connections is limited, so that the process
 * keeps most of its descriptors: 64 without a proof, of which the oldest makes
 * room for a new one, and 8 for each member and 64 more with a proof; never more
 * than an eighth and a half of RLIMIT_NOFILE.
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
 * Returns  XR_OK; XR_E_EXISTS: the address is already in use; XR_E_SYS,
 *          XR_E_NOMEM; those of store_auth_open()
 */
enum xr_status host_open(const struct store_address *address,
	const struct addrinfo *at, struct host **host, struct xr_error *err);

/* host_close() - once for each host_open(). NULL is fine. */
void host_close(struct host *host);

#endif /* WORKER_STORE_HOST_H */
