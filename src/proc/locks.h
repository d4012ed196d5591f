/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.h - who locked a file (/proc/locks, proc_locks(5)).
 */
#ifndef PROC_LOCKS_H
#define PROC_LOCKS_H

#include <sys/types.h>

/*
 * locks_owner() - the process that took the flock(2) on a file.
 *
 * @inode:  of the file; that of its device is not compared, since overlays and
 *          btrfs show another one there
 *
 * It need not live: whoever has the open file from it holds the lock as well.
 * Returns  0 if that cannot be told: no such lock, two files of that number,
 *          no /proc, or an owner outside of our PID namespace, which one that
 *          is dead is, too
 * Memory   asks for some, and does without
 * Blocks   not for a disk
 */
pid_t locks_owner(ino_t inode);

#endif /* PROC_LOCKS_H */
