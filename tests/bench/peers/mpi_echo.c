/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_echo.c - a ping-pong between each two ranks of MPI: MPI_Send, MPI_Recv. */
#include <mpi.h>

#include "echo.h"

static void
ping(struct echo *e, int to, long calls)
{
	for (long i = 0; i < calls; i++) {
		int64_t begin;

		echo_fill(e, (uint64_t)i);
		begin = echo_now();
		MPI_Send(e->data, (int)e->bytes, MPI_BYTE, to, 1,
			MPI_COMM_WORLD);
		MPI_Recv(e->back, (int)e->bytes, MPI_BYTE, to, 1,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		echo_check(e);
		e->took[i] = echo_now() - begin;
	}
}

static void
pong(struct echo *e, int to, long calls)
{
	for (long i = 0; i < calls; i++) {
		MPI_Recv(e->back, (int)e->bytes, MPI_BYTE, to, 1,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(e->back, (int)e->bytes, MPI_BYTE, to, 1,
			MPI_COMM_WORLD);
	}
}

int
main(int argc, char **argv)
{
	struct echo e;
	double cpu;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	echo_init(&e, argv);
	if (rank % 2 == 1) {
		pong(&e, rank - 1, ECHO_WARM(e.calls) + e.calls);
	} else {
		ping(&e, rank + 1, ECHO_WARM(e.calls));
		cpu = echo_cpu();
		ping(&e, rank + 1, e.calls);
		echo_print(&e, echo_cpu() - cpu);
	}
	MPI_Finalize();
	return 0;
}
