/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mesh.h - the ranks of a job and one operation: adding arrays up.
 *
 * Who is who comes from the environment that xrun and torchrun give a rank:
 * RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 listens there, the
 * others connect; it adds in the order of the ranks, so that every run gives
 * the same bits. A single rank needs no socket and none of the variables.
 *
 * What goes wrong here ends the program: one line on stderr, exit status 1.
 */
#ifndef EXAMPLES_MESH_H
#define EXAMPLES_MESH_H

#include <stddef.h>

struct mesh {
	int rank, size;
	int *fd;     /* rank 0: of every rank, from 1; others: [0] of rank 0 */
	float *room; /* rank 0: what a peer sent */
	size_t cap;  /* floats in room */
};

/* mesh_open() - read the environment and meet the others. */
void mesh_open(struct mesh *mesh);

/* mesh_sum() - every rank's @value becomes the sum over all ranks. */
void mesh_sum(struct mesh *mesh, float *value, size_t count);

void mesh_close(struct mesh *mesh);

#endif /* EXAMPLES_MESH_H */
