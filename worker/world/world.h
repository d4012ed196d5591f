/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - inside of xrun/world.h.
 */
#ifndef WORKER_WORLD_WORLD_H
#define WORKER_WORLD_WORLD_H

#include <stdint.h>

#include <xrun/world.h>

/* world_timeout() - of groups that say none: ns, INT64_MAX never. */
int64_t world_timeout(const struct xr_world *world);

#endif /* WORKER_WORLD_WORLD_H */
