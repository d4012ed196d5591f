/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lineage.h - a mark that all descendants of a process inherit.
 *
 * A process that leaves its session, closes its descriptors, replaces its
 * environment and loses its parents looks like any other process. The
 * mark survives all of that: it is the soft limit RLIMIT_RTTIME, which fork(2)
 * and execve(2) pass on. It is so large that it limits nothing, and it holds 62
 * random bits. No environment that is copied carries it to another process.
 *
 * If that limit was set before, the mark is the soft limit RLIMIT_LOCKS, which
 * Linux does not enforce. If both were set, or if a sandbox refuses the call, there
 * is no mark.
 */
#ifndef PROC_LINEAGE_H
#define PROC_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#define LINEAGE_NONE 0

/* lineage_new() - returns a random mark, never LINEAGE_NONE. */
uint64_t lineage_new(void);

/* lineage_set() - marks this process and all processes that it starts from now
 * on. Returns false if no limit can be used for that. */
bool lineage_set(uint64_t lineage);

/* lineage_of() - returns the mark of process @pid; LINEAGE_NONE if it has none
 * or is gone. */
uint64_t lineage_of(pid_t pid);

/* lineage_ticks() - returns the present time as clock ticks since boot, as
 * field 22 of /proc/PID/stat counts them. */
uint64_t lineage_ticks(void);

/* lineage_ticks_of() - returns the start time of process @pid in clock ticks
 * since boot; 0 if there is no such process. */
uint64_t lineage_ticks_of(pid_t pid);

#endif /* PROC_LINEAGE_H */
