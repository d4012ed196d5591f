/* SPDX-License-Identifier: Apache-2.0 */
/* for.c - see xr_pool_for(): a loop that a pool of threads takes part in. */
#include "base/status.h"
#include "worker/gang/gang.h"
#include "worker/pool/pool.h"
#include "worker/pool/tell.h"

struct run {
	const struct xr_pool_loop *loop;
	struct xr_pool *pool;
	struct gang *gang;
	_Atomic bool cut;  /* something was not run */
	_Atomic bool left; /* something has not returned */
};

static bool
is_cut(struct run *run)
{
	if (!gang_stops(run->gang))
		return false;
	atomic_store(&run->cut, true);
	return true;
}

static void
call(const struct run *run, uint64_t begin, uint64_t end, uint32_t seat)
{
	run->loop->fn(begin, end,
		seat == GANG_NOBODY ? XR_POOL_WORKERS_MAX : seat,
		run->loop->ctx);
}

struct part {
	struct run *run;
	struct tell_part told;
};

static void
part_left(void *ctx)
{
	struct part *part = ctx;

	atomic_store(&part->run->left, true);
	tell_part_end(&part->told, part->run->pool);
}

static void
run_part(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	struct part part = { .run = ctx };

	if (is_cut(part.run))
		return;
	tell_part_begin(&part.told, part.run->pool, seat);
	pthread_cleanup_push(part_left, &part);
	call(part.run, begin, end, seat);
	pthread_cleanup_pop(0);
	tell_part_end(&part.told, part.run->pool);
}

/* It is counted, and that is all. */
static void
run_brief(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	struct run *run = ctx;
	const struct tell_part part = { .row = run->pool->gauge };

	if (is_cut(run))
		return;
	call(run, begin, end, seat);
	tell_part_end(&part, run->pool);
}

XR_EXPORT enum xr_status
xr_pool_for(struct xr_pool *pool, const struct xr_pool_loop *loop,
	struct xr_error *err)
{
	struct run run = { .loop = loop, .pool = pool };
	struct gang_loop parts = { .run = run_part,
		.brief = run_brief,
		.ctx = &run };
	enum xr_status status;

	if (pool == NULL)
		return fail(err, XR_E_INVAL, "no pool");
	status = pool_forked(pool, err);
	if (status != XR_OK)
		return status;
	if (loop == NULL || loop->size < sizeof(*loop) || loop->fn == NULL)
		return fail(err, XR_E_INVAL,
			"struct xr_pool_loop: its size, and a function");
	parts.count = loop->count;
	parts.grain = loop->grain;
	parts.site = (const void *)loop->fn;
	run.gang = pool->gang;
	if (run.gang == NULL)
		return fail(err, XR_E_INVAL,
			"a loop is for a pool of threads, whose workers are its own");
	if (xr_pool_state(pool) != XR_POOL_RUNNING)
		return fail(err, XR_E_STATE, "the pool was closed");
	gang_for(run.gang, &parts);
	if (atomic_load(&run.left))
		return fail(err, XR_E_STATE,
			"it has ended its thread (pthread_exit), which is the pool's");
	return atomic_load(&run.cut) ?
		fail(err, XR_E_CANCELLED, "the pool was terminated") :
		XR_OK;
}
