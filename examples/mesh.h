/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mesh.h - the ranks of a training and one operation: adding arrays up.
 *
 * Who is who xrun tells, or the environment that torchrun gives a rank: RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Sums are libxrun's, in the order of the
 * ranks, so that every run gives the same bits. A program that was started by hand
 * is a single rank, and needs none of that.
 *
 * What goes wrong here ends the program: one line on stderr, exit status 1.
 */
#ifndef EXAMPLES_MESH_H
#define EXAMPLES_MESH_H

#include <stddef.h>

#include <xrun/coll.h>
#include <xrun/world.h>

struct mesh {
	int rank, size;
	struct xr_world *world; /* NULL: it is alone */
	struct xr_coll *coll;
};

/* mesh_open() - meet the others. */
void mesh_open(struct mesh *mesh);

/* mesh_sum() - every rank's @value becomes the sum over all ranks. */
void mesh_sum(struct mesh *mesh, float *value, size_t count);

void mesh_close(struct mesh *mesh);

#endif /* EXAMPLES_MESH_H */
