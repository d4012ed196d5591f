/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heir.h - what a forked child must not keep of a carrier: its descriptors.
 *
 * A connection whose process died ends at once, and that is how its peer learns
 * of it, unless a child of that process has it open, too. So every descriptor is
 * noted here, and a child that fork() makes closes them before it does anything
 * else. The rest of the carrier it has, and does not touch: heir_generation()
 * tells that it is a child's.
 *
 * What vfork() and clone() make runs none of this; it is expected to exec, and
 * the descriptors are closed then.
 */
#ifndef WORKER_NET_HEIR_H
#define WORKER_NET_HEIR_H

#include <stdbool.h>

#include <sys/socket.h>

/* heir_generation() - another number in every child; cheap. */
unsigned heir_generation(void);

/* heir_note() - @fd is to be closed in children; false: no memory to remember it.
 * -1 is fine. */
bool heir_note(int fd);

/* heir_socket(), heir_accept() - socket(2) and accept4(2), close-on-exec and without
 * waits, and noted: no fork() comes between. -1 with errno. */
int heir_socket(int family);
int heir_accept(int door, struct sockaddr *at, socklen_t *len);

/* heir_close() - forget it and close it, in one step as a child sees it. -1 is
 * fine, and what was not noted. errno survives. */
void heir_close(int fd);

#endif /* WORKER_NET_HEIR_H */
