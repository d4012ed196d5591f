/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_coll.c - collective steps of an MPI; see coll.h. */
#include <mpi.h>

#include "coll.h"

static void
run(struct step *s)
{
	int n = (int)s->count;

	switch (s->what) {
	case BARRIER:
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	case ALLREDUCE:
		MPI_Allreduce(MPI_IN_PLACE, s->out, n, MPI_FLOAT, MPI_SUM,
			MPI_COMM_WORLD);
		break;
	case BCAST:
		MPI_Bcast(s->out, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
		break;
	case ALLGATHER:
		MPI_Allgather(s->in, n, MPI_FLOAT, s->all, n, MPI_FLOAT,
			MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(s->in, s->out, n, MPI_FLOAT, MPI_SUM, 0,
			MPI_COMM_WORLD);
		break;
	case GATHER:
		MPI_Gather(s->in, n, MPI_FLOAT, s->all, n, MPI_FLOAT, 0,
			MPI_COMM_WORLD);
		break;
	case SCATTER:
		MPI_Scatter(s->all, n, MPI_FLOAT, s->out, n, MPI_FLOAT, 0,
			MPI_COMM_WORLD);
		break;
	}
}

int
main(int argc, char **argv)
{
	struct step s = { 0 };
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	step_init(&s, argv, (uint32_t)rank, (uint32_t)ranks);
	step_all(&s, run, "mpi");
	MPI_Finalize();
	return 0;
}
