/* SPDX-License-Identifier: Apache-2.0 */
/* ps_pools.h - xrun ps JOB: the pools and queues of its ranks. */
#ifndef LAUNCHER_CMD_PS_POOLS_H
#define LAUNCHER_CMD_PS_POOLS_H

#include "base/buf.h"

struct cJSON;

/* ps_put_pools() - a table of pools and one of queues, of status @json; nothing where
 * there are none. */
void ps_put_pools(struct buf *out, const struct cJSON *json);

/* ps_put_short() - "850ns", "12us", "1.2ms", "3.4s", in a column. */
void ps_put_short(struct buf *out, double seconds);

#endif /* LAUNCHER_CMD_PS_POOLS_H */
