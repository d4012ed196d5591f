/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/world.h - all processes of a training: ranks with names.
 *
 * A process is in one world at a time. It has a rank, 0 to size - 1, and a name;
 * by these others are found in collective groups (xrun/coll.h), and in calls
 * (xrun/rpc.h), whose agent is the world's. Within xrun nothing need be said.
 *
 * Any thread may call at any time. After fork() it is the parent's: XR_E_STATE.
 */
#ifndef XRUN_WORLD_H
#define XRUN_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/rpc.h"
#include "xrun/time.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xr_world;

struct xr_world_opts {
	uint32_t size;      /* sizeof(struct xr_world_opts) */
	const char *name;   /* as xr_rpc_init(); NULL: "rank" and the rank */
	int64_t rank;       /* -1: as known; so is @world_size */
	int64_t world_size; /* ranks of the world */
	const struct xr_rpc_opts *rpc; /* borrowed; NULL: defaults */
	int64_t timeout; /* ns, of groups without one, and of xr_world_close(); 0
			  * and XR_TIMEOUT_DEFAULT: 60 s; XR_TIMEOUT_NEVER */
};

#define XR_WORLD_OPTS \
	{ sizeof(struct xr_world_opts), NULL, -1, -1, NULL, XR_TIMEOUT_DEFAULT }

/*
 * xr_world_new() - join, with all others; the agent runs afterwards.
 *
 * @opts:  borrowed; NULL: XR_WORLD_OPTS
 * @world: receives it; after xr_world_close() release it with xr_world_free()
 *
 * Returns  as xr_rpc_init(), with XR_E_STATE where there is a world, or an agent
 * Thread   any.  Blocks: until all have joined, or the timeout of calls.
 */
enum xr_status xr_world_new(const struct xr_world_opts *opts,
	struct xr_world **world, struct xr_error *err);

/*
 * xr_world_close() - leave, together with all others; as xr_rpc_shutdown().
 *
 * What is under way in collective groups ends with XR_E_CLOSED. The process may
 * make another world afterwards, whatever is returned.
 *
 * @flags:   enum xr_shutdown_flags
 * @timeout: ns; 0 does not wait for members and calls; XR_TIMEOUT_DEFAULT: that of
 *           the world; XR_TIMEOUT_NEVER
 *
 * Returns  as xr_rpc_shutdown(); XR_E_STATE: it was closed
 */
enum xr_status xr_world_close(struct xr_world *world, uint32_t flags,
	int64_t timeout, struct xr_error *err);

/* xr_world_free() - its memory, and xr_world_close() at once where that was not
 * called. NULL is fine. */
void xr_world_free(struct xr_world *world);

/* xr_world_get() - this process's, borrowed; NULL: it is in none. */
struct xr_world *xr_world_get(void);
bool xr_world_ready(void);

/* xr_rank(), xr_name() - of this process in its world; -1 and NULL without one.
 * The name is good until xr_world_free(). */
int64_t xr_rank(void);
const char *xr_name(void);

/* xr_world_size() - how many ranks; 0: it was closed. */
uint32_t xr_world_size(const struct xr_world *world);

/* xr_world_member() - the name of a rank, borrowed until xr_world_free(); NULL:
 * there is none. */
const char *xr_world_member(const struct xr_world *world, int64_t rank);

/* xr_world_members() - all names, sorted as strcmp(3) does; up to @cap are written,
 * borrowed until xr_world_free(). Gives how many there are. */
size_t xr_world_members(const struct xr_world *world, const char **names,
	size_t cap);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_WORLD_H */
