/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_env.h - what a rank of xr_spawn() finds in its environment.
 *
 * Pure, but for reading variables that are handed in. The order is that of torch_xla's
 * launcher, where the ranks changed their own environment: the size of the world
 * first, and the list of workers goes only after the local worker was taken from it.
 */
#ifndef WORKER_PROC_RANK_ENV_H
#define WORKER_PROC_RANK_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>

#include "place/worker_list.h"

struct rank_job {
	struct worker_env workers; /* present: under a worker list */
	uint32_t count;            /* ranks of this host */
	uint16_t port;             /* 0: the service address stays */
};

/*
 * rank_job_init() - how many they are; @count as asked for, 0: nobody said.
 *
 * Returns  XR_OK; as worker_env_read(); XR_E_INVAL names what was asked for, and what
 *          can be. Release with rank_job_fini().
 */
enum xr_status rank_job_init(struct rank_job *job, char *const *vars,
	uint32_t count, struct xr_error *err);
void rank_job_fini(struct rank_job *job);

/* rank_needs_port() - is the service address missing, or empty? */
bool rank_needs_port(const struct rank_job *job, char *const *vars);

uint32_t rank_ordinal(const struct rank_job *job, uint32_t index);
uint32_t rank_world(const struct rank_job *job);

/* rank_env() - the environment of rank @index of this host; one piece of memory, to be
 * freed, which points into @vars. NULL: no memory. */
char **rank_env(const struct rank_job *job, uint32_t index, char *const *vars);

#endif /* WORKER_PROC_RANK_ENV_H */
