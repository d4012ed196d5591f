/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - the backends that this process knows, and what options of one come
 * to: checked, whole, and its carriers.
 *
 * A backend's number is given once, and stays good whatever is registered later.
 * Those of the library have numbers 1 to 3. Any thread.
 */
#ifndef WORKER_RPC_BACKEND_H
#define WORKER_RPC_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/rpc.h>
#include <xrun/transport.h>

struct suggest;

#define BACKENDS_MAX  256
#define BACKEND_AUTO  1
#define BACKEND_GROUP 2 /* process_group */

/* backend_of() - 0 is that of BACKEND_AUTO; NULL: nobody registered it. */
const struct xr_backend *backend_of(xr_backend_id id);

/* backend_offer() - names of options that are this backend's own; only those of
 * the library tell. */
void backend_offer(const struct xr_backend *backend, struct suggest *near);

/*
 * backend_check() - @opts as an older program may have them, whole in @all, and
 * fit for their backend: with a number of it that is not 0, a timeout that is
 * XR_TIMEOUT_NEVER where that was 0, and the threads that its own options say.
 *
 * @all: borrows what @opts does
 *
 * Returns  XR_OK; XR_E_INVAL: @err names the option, and what would be right; what
 *          the backend's own check gives
 */
enum xr_status backend_check(const struct xr_rpc_opts *opts,
	struct xr_rpc_opts *all, struct xr_error *err);

/* backend_is_group() - do messages go over a group (way.h)? */
static inline bool
backend_is_group(const struct xr_rpc_opts *opts)
{
	return opts->backend == BACKEND_GROUP;
}

/*
 * backend_carriers() - those that @opts ask for, best first; up to @cap.
 *
 * @opts: as backend_check() left them
 *
 * Returns  XR_OK; XR_E_INVAL: @err names one that nobody registered; XR_E_RANGE
 */
enum xr_status backend_carriers(const struct xr_rpc_opts *opts,
	const struct xr_carrier **carriers, uint32_t cap, uint32_t *count,
	struct xr_error *err);

#endif /* WORKER_RPC_BACKEND_H */
