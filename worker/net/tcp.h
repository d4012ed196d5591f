/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - messages between machines over TCP: a carrier of xrun/transport.h.
 *
 * It has a thread, which sleeps while there is nothing to do, and listens on one
 * interface. There is one connection to a peer, whoever opened it; both ends
 * prove that they know the job's secret (greet.h), which needs libcrypto at run
 * time. What is sent afterwards is neither hidden nor protected: it is meant for
 * networks that are trusted. XR_CARRIER_TLS is the place for those that are not.
 *
 * A peer is lost when its end of the connection is closed, when it breaks the
 * protocol, when it was started again, or when it has acknowledged nothing for ten
 * seconds (fifteen, if there is nothing to acknowledge). One that is stopped is
 * not lost.
 *
 * What its functions do beyond xrun/transport.h:
 *
 * connect()     gives the link there is already, if there is one to this
 *               incarnation, from connect() or accepted(). XR_E_NODEV: no address
 *               of TCP, no secret, no libcrypto; XR_E_INVAL: a bad one, or this
 *               worker's own id; XR_E_FENCED: a later incarnation was seen
 * send()        never waits; XR_E_INVAL: a message with loans. Before the link is up messages are kept like those
 *               that do not fit the socket: up to 4 MiB of them, and one more
 * link_close()  waits while the thread calls the host with this link, but not on
 *               that thread itself. Messages that are pending are dropped, others
 *               still arrive
 * free()        waits up to a second for what was sent to arrive. All links were
 *               closed, and all buffers given back
 */
#ifndef WORKER_NET_TCP_H
#define WORKER_NET_TCP_H

#include <xrun/transport.h>

extern const struct xr_carrier tcp_carrier;

/* net_catch_up() - waits until the thread has delivered all messages that have arrived
 * at this process. It waits for NET_CATCH_UP_NS at most: the thread may be in a function
 * of the host. @self: the transport. Any thread; that of the transport returns at once. */
void net_catch_up(void *self);

#endif /* WORKER_NET_TCP_H */
