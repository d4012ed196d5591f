/* SPDX-License-Identifier: Apache-2.0 */
/* for.c - see xr_pool_for(): a loop that a pool of threads takes part in. */
#include "base/status.h"
#include "worker/gang/gang.h"
#include "worker/pool/pool.h"

struct run {
	const struct xr_pool_loop *loop;
	struct gang *gang;
	_Atomic bool cut; /* something was not run */
};

static void
run_part(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	struct run *run = ctx;

	if (gang_stops(run->gang))
		atomic_store(&run->cut, true);
	else
		run->loop->fn(begin, end,
			seat == GANG_NOBODY ? XR_POOL_WORKERS_MAX : seat,
			run->loop->ctx);
}

XR_EXPORT enum xr_status
xr_pool_for(struct xr_pool *pool, const struct xr_pool_loop *loop,
	struct xr_error *err)
{
	struct run run = { .loop = loop, .gang = pool->gang };
	const struct gang_loop parts = { .run = run_part,
		.ctx = &run,
		.count = loop->count,
		.grain = loop->grain,
		.site = (const void *)loop->fn };
	enum xr_status status = pool_forked(pool, err);

	if (status != XR_OK)
		return status;
	if (loop->size < sizeof(*loop) || loop->fn == NULL)
		return fail(err, XR_E_INVAL,
			"struct xr_pool_loop: its size, and a function");
	if (run.gang == NULL)
		return fail(err, XR_E_INVAL,
			"a loop is for a pool of threads, whose workers are its own");
	if (xr_pool_state(pool) != XR_POOL_RUNNING)
		return fail(err, XR_E_STATE, "the pool was closed");
	gang_for(run.gang, &parts);
	return atomic_load(&run.cut) ?
		fail(err, XR_E_CANCELLED, "the pool was terminated") :
		XR_OK;
}
