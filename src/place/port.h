/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.h - TCP ports that nobody else can take before a rank listens on them.
 *
 * A held port is a socket that is bound, never listens, and has SO_REUSEADDR
 * set after binding. Bound first, so that another holder, or any program that
 * binds plainly, is refused by the kernel; the option after it, so that a
 * listener with SO_REUSEADDR succeeds, as all servers of torch, gRPC and XRT
 * are. It is the IPv6 wildcard where there is IPv6, which stands for IPv4 too.
 *
 * Ports come from outside of the range the kernel takes for connect() and
 * bind(0), and from outside of its reserved ones; where the range is everything
 * there is, from within it, which the holder makes as safe.
 */
#ifndef PLACE_PORT_H
#define PLACE_PORT_H

#include <stdint.h>

#include <xrun/error.h>

#include "base/buf.h"

/* What the kernel keeps for itself. */
struct port_limits {
	uint16_t low, high;     /* ip_local_port_range, both inclusive */
	uint8_t reserved[8192]; /* bit of each of ip_local_reserved_ports */
};

struct port {
	int fd; /* -1: not held */
	uint16_t number;
};

/*
 * port_limits_parse() - the texts of the two files of /proc.
 *
 * Pure. What is malformed is passed over: the limits choose among ports that
 * are all right, and must not keep a job from starting.
 */
void port_limits_parse(struct port_limits *limits, const char *range,
	const char *reserved);

/* port_limits_read() - of this machine; the kernel's defaults without /proc. */
void port_limits_read(struct port_limits *limits);

/*
 * port_choose() - a pure choice: the @nth candidate, starting from @seed.
 *
 * First the ports from 49152 that IANA gives to nobody, then those from 10240,
 * last the kernel's own. 0 when there is none left.
 */
uint16_t port_choose(const struct port_limits *limits, uint32_t seed,
	uint32_t nth);

/*
 * port_hold() - bind a free port and keep it.
 *
 * Returns  XR_OK, with a close-on-exec descriptor; XR_E_SYS; XR_E_NOTFOUND if
 *          every candidate is taken
 */
enum xr_status port_hold(struct port *port, const struct port_limits *limits,
	struct xr_error *err);

/* port_release() - close, if held. The number stays. port_hold() and this one
 * after the other are --port-hold never. */
void port_release(struct port *port);

#endif /* PLACE_PORT_H */
