/* SPDX-License-Identifier: Apache-2.0 */
/*
 * along.h - bytes through a unix socket, and descriptors that go with them.
 *
 * A descriptor arrives with the bytes it was sent with, and they end what one
 * call receives. What is received is close-on-exec. Neither call waits, whatever
 * flags the socket has, or raises SIGPIPE.
 */
#ifndef BASE_ALONG_H
#define BASE_ALONG_H

#include <stddef.h>

#include <sys/types.h>

#define ALONG_MAX 16 /* descriptors of one call; the kernel closes others */

struct along {
	int fd[ALONG_MAX];
	unsigned count;
};

/* along_send() - as send(2); @fd goes with the first byte, unless it is -1. */
ssize_t along_send(int socket, const void *data, size_t len, int fd);

/* along_receive() - as recv(2); @got are the caller's, who closes them. None if
 * it fails. */
ssize_t along_receive(int socket, void *data, size_t room, struct along *got);

#endif /* BASE_ALONG_H */
