/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcpstore_server.h - serves the store of PyTorch's process groups at MASTER_PORT.
 *
 * The protocol has no authentication. So the server listens on 127.0.0.1 only, and
 * closes a connection of another user (sock_diag(7)); root is accepted. All of it runs
 * on the loop, a bounded amount of work a turn. A client that does not read its replies
 * is asked nothing more.
 */
#ifndef LAUNCHER_TCPSTORE_TCPSTORE_SERVER_H
#define LAUNCHER_TCPSTORE_TCPSTORE_SERVER_H

#include <stdint.h>

#include "event/loop.h"
#include "xrun/error.h"

struct tcpstore_server;

struct tcpstore_server_config {
	struct loop *loop;
	int fd;        /* listens, non-blocking; borrowed */
	uint32_t most; /* connections at a time; others wait until one ends */
	/* bad() - a connection was closed for this reason. */
	void (*bad)(void *ctx, const struct xr_error *why);
	void *ctx;
};

/* tcpstore_server_listen() - listens on 127.0.0.1 at @port, which this process holds
 * (place/port.h). Returns a descriptor, or -1 with errno. */
int tcpstore_server_listen(uint16_t port);

/* tcpstore_server_open() - returns NULL if memory is exhausted. */
struct tcpstore_server *tcpstore_server_open(const struct tcpstore_server_config
		*config);

/* tcpstore_server_close() - closes all connections. NULL is fine. */
void tcpstore_server_close(struct tcpstore_server *server);

#endif /* LAUNCHER_TCPSTORE_TCPSTORE_SERVER_H */
