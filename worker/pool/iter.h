/* SPDX-License-Identifier: Apache-2.0 */
/* iter.h - results one by one. */
#ifndef WORKER_POOL_ITER_H
#define WORKER_POOL_ITER_H

#include <xrun/pool.h>

struct job;

/* iter_new() - takes @job, also on failure. */
enum xr_status iter_new(struct job *job, struct xr_pool_iter **iter,
	struct xr_error *err);

#endif /* WORKER_POOL_ITER_H */
