/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - see mesh.h. */
#include <stdio.h>
#include <stdlib.h>

#include "mesh.h"

static _Noreturn void
give_up(const struct mesh *mesh, const char *what, const struct xr_error *err)
{
	fprintf(stderr, "rank %d: %s: %s\n", mesh->rank, what, err->text);
	exit(1);
}

/* One that waits for somebody who does not come waits until it is stopped: xrun's
 * --hang-timeout says who holds the others up. */
void
mesh_open(struct mesh *mesh)
{
	const struct xr_coll_opts patient = { .size = sizeof(patient),
		.timeout = XR_TIMEOUT_NEVER };
	struct xr_error err = { 0 };

	*mesh = (struct mesh){ .size = 1 };
	if (getenv("RANK") == NULL)
		return;
	if (xr_world_new(NULL, &mesh->world, &err) != XR_OK)
		give_up(mesh, "no world", &err);
	mesh->rank = (int)xr_rank();
	mesh->size = (int)xr_world_size(mesh->world);
	if (xr_coll_new(mesh->world, &patient, &mesh->coll, &err) != XR_OK)
		give_up(mesh, "no group", &err);
}

void
mesh_sum(struct mesh *mesh, float *value, size_t count)
{
	const struct xr_coll_op sum = { .size = sizeof(sum),
		.data = value,
		.count = count,
		.dtype = XR_DT_F32,
		.op = XR_SUM };
	struct xr_error err = { 0 };

	if (mesh->coll != NULL &&
		xr_coll_allreduce(mesh->coll, &sum, &err) != XR_OK)
		give_up(mesh, "adding up", &err);
}

void
mesh_close(struct mesh *mesh)
{
	struct xr_error err = { 0 };

	if (mesh->world == NULL)
		return;
	xr_coll_free(mesh->coll);
	if (xr_world_close(mesh->world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60),
		    &err) != XR_OK)
		give_up(mesh, "leaving", &err);
	xr_world_free(mesh->world);
}
