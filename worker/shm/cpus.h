/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus.h - which CPU this thread is on, and how many the job may keep busy.
 */
#ifndef WORKER_SHM_CPUS_H
#define WORKER_SHM_CPUS_H

#include <stddef.h>
#include <stdint.h>

#include "segment/layout.h"

/* How the kernel's restartable sequences say it, in each thread's memory, where
 * glibc (2.35 and later) asked them to. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct cpus_rseq { /* linux/rseq.h */
	uint32_t cpu_id_start;
	uint32_t cpu_id;
};

uint32_t cpus_ask(void); /* the same, by a call */

/*
 * cpus_here() - 1 and the CPU that the calling thread is on; 0: nobody knows.
 *
 * Cost: a load, where there is rseq; else some 20 ns.
 */
static inline uint32_t
cpus_here(void)
{
	const volatile struct cpus_rseq *area;
	uint32_t cpu;

	if (&__rseq_size == NULL || __rseq_size == 0)
		return cpus_ask();
	area = (const void *)((const char *)__builtin_thread_pointer() +
		__rseq_offset);
	cpu = area->cpu_id;
	return (int32_t)cpu < 0 ? cpus_ask() : cpu + 1;
}

/*
 * cpus_quota() - how many CPUs the control group of this process allows, rounded
 * up, 1 at least; UINT32_MAX: all.
 *
 * @root: of the file system, "" outside of tests
 * Cost: some 50 us: a few files of /proc and /sys
 */
uint32_t cpus_quota(const char *root);

/* cpus_add() - this process is one of the segment's: where it may run, and, if it
 * is the first, what its control group allows. */
void cpus_add(struct segment_shared *shared);

/* cpus_count() - how many its processes may keep busy together: those that one of
 * them may run on, within the quota. */
uint32_t cpus_count(const struct segment_shared *shared);

#endif /* WORKER_SHM_CPUS_H */
