/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.h - what this shell and this machine allow: counted before the first
 * rank starts, and looked up again when one could not.
 */
#ifndef PROC_LIMIT_H
#define PROC_LIMIT_H

#include <stdint.h>

#include <sys/resource.h>

#include "base/buf.h"

#define LIMIT_FEW 16 /* ranks for which nothing is read from files */

struct limits {
	struct rlimit files; /* as inherited; ranks get these back */
	uint64_t files_max;  /* what xrun itself may open, after raising */
	uint64_t held;       /* descriptors above the slots, open already */
	uint64_t processes;  /* how many more may be started; UINT64_MAX: any */
	const char *processes_by; /* "ulimit -u", "kernel.pid_max", ... */
	uint64_t memory;          /* bytes that can be had; UINT64_MAX: ? */
};

/* limit_read() - read what a system call tells, and raise the soft descriptor
 * limit to the hard one. Cannot fail: what cannot be read is unlimited. */
void limit_read(struct limits *out);

/*
 * limit_count() - add what it takes files to know, as far as it can matter to
 * so many ranks: descriptors that were inherited, where they may be too many
 * beside @files of our own; the machine's and the control group's processes
 * and memory, for more than a few ranks.
 */
void limit_count(struct limits *l, uint32_t ranks, uint64_t files);

/*
 * limit_put_why() - " (pids.max of cgroup /x is 20, and 20 are used)": which
 * limit it was that refused a process just now; all that may have been it where
 * none can be seen to be at its end. @root: "" outside of tests. Reads /proc,
 * all of it for a user who is limited in processes.
 */
void limit_put_why(struct buf *out, const char *root);

#endif /* PROC_LIMIT_H */
