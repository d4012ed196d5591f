/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.h - what this shell allows: counted before the first rank starts.
 */
#ifndef PROC_LIMIT_H
#define PROC_LIMIT_H

#include <stdint.h>

#include <sys/resource.h>

struct limits {
	struct rlimit files; /* as inherited; ranks get these back */
	uint64_t files_max;  /* what xrun itself may open, after raising */
	uint64_t processes;  /* how many more may be started; UINT64_MAX: any */
	const char *processes_by; /* "ulimit -u", "kernel.pid_max", ... */
	uint64_t memory; /* bytes available on this machine; UINT64_MAX: ? */
};

/* limit_read() - read them, and raise the soft descriptor limit to the hard
 * one. Cannot fail: what cannot be read is unlimited. */
void limit_read(struct limits *out);

#endif /* PROC_LIMIT_H */
