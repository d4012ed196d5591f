/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - what this process is a member of, for those who join and leave.
 */
#ifndef WORKER_RPC_GROUP_H
#define WORKER_RPC_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/store.h>

struct group {
	pthread_mutex_t changing; /* joining and leaving, one at a time */
	struct xr_store *store;
	uint32_t cycle; /* how often this process met in a static group */
};

extern struct group group;

#endif /* WORKER_RPC_GROUP_H */
