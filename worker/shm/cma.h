/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cma.h - reading the memory of another process of this machine, with the
 * kernel's help: process_vm_readv(2).
 *
 * It may be refused (another user, a user namespace, Yama, a container's filter),
 * and a process id may mean another process here than there. So it is tried once
 * a peer: in each process stands a number that nobody guesses, and what it is and
 * where stands in its slot.
 */
#ifndef WORKER_SHM_CMA_H
#define WORKER_SHM_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/uio.h>

#include <xrun/transport.h>

#include "segment/layout.h"

#define CMA_PIECE (UINT64_C(512) << 10) /* in one go: others wait meanwhile */
#define CMA_PARTS 64
#define CMA_GONE  (-2)

/* cma_offer() - @slot says where this process can be tried. */
void cma_offer(struct segment_slot *slot);

/* cma_probe() - can the memory of who has @slot be read? */
bool cma_probe(const struct segment_slot *slot);

/* cma_forbid() - as if the kernel refused it: for tests of the other way. */
void cma_forbid(bool forbidden);

/*
 * cma_read() - up to @len bytes into @to, from @skip bytes into the @count parts
 * of the process's memory.
 *
 * Returns how many; CMA_GONE: its process has no memory any more; -1: it cannot be
 * read, whatever the reason
 */
int64_t cma_read(const struct segment_slot *slot, const struct xr_part *parts,
	uint32_t count, uint64_t skip, const struct iovec *to);

#endif /* WORKER_SHM_CMA_H */
