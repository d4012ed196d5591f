/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane.h - what stands behind shm.h and the carrier: one a process.
 */
#ifndef WORKER_SHM_PLANE_H
#define WORKER_SHM_PLANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/member.h"
#include "worker/shm/alive.h"
#include "worker/shm/arena.h"
#include "worker/shm/bell.h"
#include "worker/shm/wait.h"

struct carrier;
struct out;

struct shm {
	struct segment_map map;
	int fd;
	uint64_t inode;
	bool of_job;   /* not of a job of one */
	char boot[40]; /* the id of this start of the machine */
	uint32_t slot, gen;
	uint32_t opened; /* times */
	struct segment_slot *mine;
	struct bell bell;
	struct wait_env wait;
	struct arena arena;
	struct alive alive;
	bool own; /* made by us: there is no supervisor that sweeps */
	_Atomic uint64_t
		*attached;       /* [slots]: rings to here that are read, as the
				     * directory has them; 0: none */
	pthread_mutex_t lock;    /* of what follows */
	struct carrier *carrier; /* that is open; NULL */
	struct out *limbo; /* rings that their readers may still look at */
};

/* plane_closed() - in a child of fork(): nothing of it may be touched. */
bool plane_closed(void);

/* plane_open() - others may make rings to here; gives the number of this opening.
 * 0: it is open already. */
uint32_t plane_open(struct shm *shm, struct carrier *c);

/* plane_close() - and what was kept from being swept until now is, or @sweep. */
void plane_close(struct shm *shm, bool sweep);

/* plane_refuse() - the ring of @writer that @word says is never looked at. True: what
 * the writer had is to be swept. */
bool plane_refuse(struct shm *shm, uint32_t writer, uint64_t word);

enum plane_swept {
	PLANE_CLEAN,
	PLANE_MORE,  /* there is some, or may be */
	PLANE_LATER, /* somebody died whose process is not gone yet */
};

/* plane_sweep() - give back some of what the dead had. Cost: 1 ms. */
enum plane_swept plane_sweep(struct shm *shm);

#endif /* WORKER_SHM_PLANE_H */
