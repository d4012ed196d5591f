/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.h - addresses of TCP as text: "tcp:10.0.0.3:4711", "tcp:[fd00::3]:4711".
 *
 * They are numbers, never names: who connects asks nobody where that is.
 */
#ifndef WORKER_NET_WHERE_H
#define WORKER_NET_WHERE_H

#include <netinet/in.h>

#include "xrun/error.h"

#define WHERE_TEXT 64 /* bytes, with the NUL */

struct where {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	socklen_t len;
};

/* where_parse() - XR_E_NODEV: it is no address of TCP; XR_E_INVAL: a bad one. */
enum xr_status where_parse(const char *text, struct where *where,
	struct xr_error *err);

/* where_of_host() - a number of IPv4 or IPv6 alone, port 0; false: it is none. */
bool where_of_host(const char *host, struct where *where);

/* where_is_any() - does it stand for all interfaces? */
bool where_is_any(const struct where *where);
bool where_is_loopback(const struct where *where);

/* where_text() - "10.0.0.3:4711". Returns @out. */
const char *where_text(const struct where *where, char out[WHERE_TEXT]);

/* where_host() - "10.0.0.3". Returns @out. */
const char *where_host(const struct where *where, char out[WHERE_TEXT]);

#endif /* WORKER_NET_WHERE_H */
