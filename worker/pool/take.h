/* SPDX-License-Identifier: Apache-2.0 */
/* take.h - one result, wherever it came from. */
#ifndef WORKER_POOL_TAKE_H
#define WORKER_POOL_TAKE_H

#include "worker/pool/pool.h"

/* take_result() - of @len bytes; take_shared() - of XR_ENC_SHARE. */
void take_result(struct xr_pool *pool, const char *data, size_t len);
void take_shared(struct xr_pool *pool, const struct xr_value *item);

/* hook_take() - by the program's outqueue_get(): one. False: there was none in time, or
 * there never will be, and the pool has given up. */
bool hook_take(struct xr_pool *pool, int64_t timeout);

#endif /* WORKER_POOL_TAKE_H */
