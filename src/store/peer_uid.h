/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.h - the user at the other end of a TCP connection within this machine,
 * as the kernel's tables of sockets have it (sock_diag(7), /proc/net/tcp). */
#ifndef STORE_PEER_UID_H
#define STORE_PEER_UID_H

#include <stdbool.h>

#include <sys/types.h>

/* peer_uid() - Returns true and sets @uid if the other end of @fd is a socket of
 * this machine's network namespace that a process has. Any thread; does not block. */
bool peer_uid(int fd, uid_t *uid);

/*
 * peer_is_foreign() - Returns true if the other end of the TCP connection @fd may
 * belong to a user who is neither ours nor root.
 *
 * That is so if its socket belongs to such a user; if it was closed or reset
 * already, since then the kernel names no user, while bytes that it sent can still be
 * read; and if it has an address of this machine, and the kernel does not find its
 * socket. A connection from another machine is not foreign. Any thread; does not
 * block.
 */
bool peer_is_foreign(int fd);

#endif /* STORE_PEER_UID_H */
