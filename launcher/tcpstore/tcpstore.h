/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcpstore.h - the protocol of PyTorch's TCPStore, as an engine without I/O.
 *
 * PyTorch's process groups exchange addresses through a key-value store at
 * MASTER_PORT. If TORCHELASTIC_USE_AGENT_STORE is "True", every rank is a client and
 * the launcher serves the store, so the store outlives rank 0. The server
 * (tcpstore_server.h) has one client here for each connection. It passes the bytes
 * that it receives to tcpstore_take(), and sends what tcpstore_out() holds.
 *
 * Two dialects exist. Since version 2.2 a client begins with the request VALIDATE and
 * a magic number. Before, it begins with its first request, and the numbers of the
 * requests differ. The first bytes of a connection tell which one it is. Not served:
 * WATCH_KEY (removed in version 2.1).
 *
 * Keys and values are limited as by store.h; what exceeds a limit ends the connection,
 * as an exception in PyTorch's own server does. One thread.
 *
 * Source: PyTorch, torch/csrc/distributed/c10d/TCPStoreBackend.hpp (2.2 to 2.9) and
 * TCPStore.cpp (1.13).
 */
#ifndef LAUNCHER_TCPSTORE_TCPSTORE_H
#define LAUNCHER_TCPSTORE_TCPSTORE_H

#include "base/buf.h"
#include "xrun/error.h"

struct tcpstore;
struct tcpstore_client;

/* tcpstore_ready_fn - @client has output that does not answer its own request: what it
 * waits for exists now. @of: of tcpstore_enter(). It calls no function of the engine
 * but tcpstore_out(). */
typedef void tcpstore_ready_fn(struct tcpstore_client *client, void *of);

/* tcpstore_new() - an empty store. Returns NULL if memory is exhausted. */
struct tcpstore *tcpstore_new(tcpstore_ready_fn *ready);

/* tcpstore_free() - all clients have left. NULL is fine. */
void tcpstore_free(struct tcpstore *store);

/* tcpstore_enter() - a new connection. Returns NULL if memory is exhausted. */
struct tcpstore_client *tcpstore_enter(struct tcpstore *store, void *of);

/* tcpstore_leave() - frees @client and forgets what it waits for. */
void tcpstore_leave(struct tcpstore_client *client);

enum tcpstore_verdict {
	TCPSTORE_DONE, /* one request was handled */
	TCPSTORE_MORE, /* the request is incomplete */
	TCPSTORE_BAD,  /* the connection has to be closed */
};

/*
 * tcpstore_take() - handles the request at the beginning of @in.
 *
 * @used:   receives the length of the request, if TCPSTORE_DONE
 * @err:    receives the reason, if TCPSTORE_BAD; may be NULL
 * Returns  what has become of the request
 */
enum tcpstore_verdict tcpstore_take(struct tcpstore_client *client,
	struct span in, size_t *used, struct xr_error *err);

/* tcpstore_out() - bytes for the client; the caller clears what it has sent. */
struct buf *tcpstore_out(struct tcpstore_client *client);

#endif /* LAUNCHER_TCPSTORE_TCPSTORE_H */
