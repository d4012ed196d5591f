/* SPDX-License-Identifier: Apache-2.0 */
/* collstep.c - collective steps of libxrun; see peers/coll.h. */
#include <xrun/coll.h>

#include "tests/bench/peers/coll.h"

static struct xr_coll *coll;
static void **list;

static void
run(struct step *s)
{
	struct xr_coll_op op = {
		.size = sizeof(op),
		.dtype = s->is_bf16 ? XR_DT_BF16 : XR_DT_F32,
		.count = s->count,
		.data = s->what == ALLGATHER || s->what == GATHER ? s->in :
								    s->out,
		.op = s->is_max ? XR_MAX : XR_SUM,
		.list = s->what == ALLGATHER ||
				(s->rank == 0 &&
					(s->what == GATHER ||
						s->what == SCATTER)) ?
			list :
			NULL,
	};
	enum xr_status (*const calls[])(struct xr_coll *coll,
		const struct xr_coll_op *op, struct xr_error *err) = {
		[BARRIER] = xr_coll_barrier,
		[ALLREDUCE] = xr_coll_allreduce,
		[BCAST] = xr_coll_bcast,
		[ALLGATHER] = xr_coll_allgather,
		[REDUCE] = xr_coll_reduce,
		[GATHER] = xr_coll_gather,
		[SCATTER] = xr_coll_scatter,
	};
	struct xr_error err = { 0 };

	if (calls[s->what](coll, &op, &err) != XR_OK) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
}

static void
meet(void)
{
	xr_coll_barrier(coll, NULL, NULL);
}

int
main(int argc, char **argv)
{
	struct xr_error err = { 0 };
	struct xr_world *world = NULL;
	struct step s = { 0 };

	if (argc < 6 || xr_world_new(NULL, &world, &err) != XR_OK ||
		xr_coll_new(world, NULL, &coll, &err) != XR_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	step_init(&s, argv, (uint32_t)xr_rank(), xr_world_size(world));
	list = calloc(s.ranks, sizeof(*list));
	for (uint32_t r = 0; r < s.ranks; r++)
		list[r] = s.all + r * s.count * s.one;
	step_all(&s, run, meet);
	xr_coll_free(coll);
	xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30), NULL);
	xr_world_free(world);
	return 0;
}
