/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door.h - where a carrier listens: on one interface, never on all of them.
 */
#ifndef WORKER_NET_DOOR_H
#define WORKER_NET_DOOR_H

#include "worker/net/where.h"

/*
 * door_open() - a socket that listens on a port of the kernel's choice.
 *
 * @interface:  its name ("eth0") or its address; NULL: the one from which @host
 *              is reached
 * @host:       name or address of the store's host; NULL: this machine is all
 *              there is, so on the loopback
 * @fd, @where: receive the socket, close-on-exec and non-blocking, and where it
 *              listens
 *
 * Returns  XR_OK; XR_E_INVAL: @interface is all of them; XR_E_NODEV: no such
 *          interface, and @err lists those there are, or no way to @host;
 *          XR_E_NOTFOUND: @host has no address; XR_E_SYS
 * Thread   any.  Blocks: to look @host up.
 */
enum xr_status door_open(const char *interface, const char *host, int *fd,
	struct where *where, struct xr_error *err);

#endif /* WORKER_NET_DOOR_H */
