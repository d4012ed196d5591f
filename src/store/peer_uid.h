/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.h - the user at the other end of a TCP connection within this machine,
 * as the kernel's table of sockets has it (sock_diag(7)). */
#ifndef STORE_PEER_UID_H
#define STORE_PEER_UID_H

#include <stdbool.h>

#include <sys/types.h>

/* peer_uid() - Returns true and sets @uid if the other end of @fd is a socket of
 * this machine's network namespace that a process has. Any thread; does not block. */
bool peer_uid(int fd, uid_t *uid);

/* peer_is_foreign() - Returns true if the other end of @fd is of this machine and
 * belongs to a user who is neither ours nor root. */
bool peer_is_foreign(int fd);

#endif /* STORE_PEER_UID_H */
