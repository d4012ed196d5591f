/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - a process and all that descend from it, as far as parents live. */
#ifndef PROC_TREE_H
#define PROC_TREE_H

#include <sys/types.h>

/*
 * tree_signal() - send @sig to all of them.
 *
 * They are stopped first, from the root on, until a look finds nobody new: so none
 * makes another one meanwhile that is not met; then signalled, and continued.
 *
 * @pidfd: of @root, which may be anybody's child, as long as it is not reaped
 * Returns  0, or errno: ESRCH: it has ended
 */
int tree_signal(pid_t root, int pidfd, int sig);

#endif /* PROC_TREE_H */
