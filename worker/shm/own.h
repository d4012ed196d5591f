/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.h - what stands for memory that was given away: one word for three kinds.
 *
 * A block of the arena, private memory, or a hold on what a peer has lent. The
 * word is the address with the kind in its low bits; hosts have it as `own` or as
 * a struct xr_body_buffer.
 */
#ifndef WORKER_SHM_OWN_H
#define WORKER_SHM_OWN_H

#include <stddef.h>
#include <stdint.h>

#include "worker/shm/hold.h"
#include "worker/shm/plane.h"

enum own_kind {
	OWN_HOLD,
	OWN_BLOCK,
	OWN_PRIVATE, /* one reference, no more */
	OWN_KINDS
};

static inline void *
own_word(const void *at, enum own_kind kind)
{
	return (void *)((uintptr_t)at | (uintptr_t)kind);
}

static inline enum own_kind
own_kind(const void *own)
{
	return (enum own_kind)((uintptr_t)own & 3);
}

static inline void *
own_at(const void *own)
{
	return (void *)((uintptr_t)own & ~(uintptr_t)3);
}

/* own_new() - memory for @len bytes, aligned to 64: of the arena, else private;
 * NULL: there is none. */
void *own_new(struct shm *shm, size_t len, void **own);

void own_ref(struct shm *shm, void *own); /* not of PRIVATE */
void own_unref(struct shm *shm, void *own);

#endif /* WORKER_SHM_OWN_H */
