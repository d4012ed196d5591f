/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mate.h - workers that are threads, where the program has replaced some of what a pool
 * does: they are started, take tasks from a queue, end and are replaced as processes are.
 *
 * What stands in queues are the numbers of tasks; values stay where they are.
 */
#ifndef WORKER_POOL_MATE_H
#define WORKER_POOL_MATE_H

#include "worker/pool/pool.h"

/* mate_start() - at place @i; @fd: readable when it has ended. */
enum xr_status mate_start(struct xr_pool *pool, uint32_t i, int *fd,
	struct xr_error *err);

/* mate_has_ended() - the one at @i. */
bool mate_has_ended(struct mate *m);
int mate_fd(const struct mate *m);

/* mate_free() - of one that has ended; @err: what it ended with, XR_OK: well. */
enum xr_status mate_free(struct mate *m, struct xr_error *err);

/* mate_work() - as xr_pool_worker(), of such a one. */
enum xr_status mate_work(struct xr_pool *pool, uint32_t i,
	struct xr_error *err);

#endif /* WORKER_POOL_MATE_H */
