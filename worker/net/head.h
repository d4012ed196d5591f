/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head.h - what stands in front of each message of a TCP connection.
 *
 *	struct xr_record   u64 length of the body   u32 CRC-32C of the 24 bytes
 *
 * All of it is little-endian; the body follows. The checksum is there because a
 * length that was read from the wrong place is believed for a very long time.
 */
#ifndef WORKER_NET_HEAD_H
#define WORKER_NET_HEAD_H

#include <xrun/transport.h>

#define NET_HEAD 28 /* bytes */

struct net_head {
	struct xr_record record;
	uint64_t len; /* of the body, at most XR_MESSAGE_MAX */
};

void net_head_put(char out[NET_HEAD], const struct net_head *head);

/* net_head_get() - XR_E_PROTO: that is none. */
enum xr_status net_head_get(const char in[NET_HEAD], struct net_head *head,
	struct xr_error *err);

#endif /* WORKER_NET_HEAD_H */
