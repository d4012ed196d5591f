/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_echo.c - a ping-pong between each two ranks of MPI: MPI_Send, MPI_Recv. With
 * MPI_ECHO_THREADS set, by a library that any thread may call, as it may libxrun. */
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

static void
ping_windows(struct echo *e, int to, long calls)
{
	MPI_Request *in = malloc(sizeof(MPI_Request) * (size_t)e->window);
	MPI_Request *out = malloc(sizeof(MPI_Request) * (size_t)e->window);

	for (long i = 0; i < calls; i += e->window) {
		echo_fill(e, (uint64_t)i);
		for (long k = 0; k < e->window; k++) {
			MPI_Irecv(echo_back(e, k), (int)e->bytes, MPI_BYTE, to,
				1, MPI_COMM_WORLD, &in[k]);
			MPI_Isend(e->data, (int)e->bytes, MPI_BYTE, to, 1,
				MPI_COMM_WORLD, &out[k]);
		}
		MPI_Waitall((int)e->window, in, MPI_STATUSES_IGNORE);
		MPI_Waitall((int)e->window, out, MPI_STATUSES_IGNORE);
		for (long k = 0; k < e->window; k++)
			echo_check_at(e, k);
	}
	free(in);
	free(out);
}

static void
measure_windows(struct echo *e, int to)
{
	double cpu;
	int64_t begin;

	ping_windows(e, to, e->window);
	cpu = echo_cpu();
	begin = echo_now();
	ping_windows(e, to, e->calls);
	echo_print_rate(e, echo_now() - begin, echo_cpu() - cpu);
}

int
main(int argc, char **argv)
{
	struct echo e;
	double cpu;
	int rank, level;

	MPI_Init_thread(&argc, &argv,
		getenv("MPI_ECHO_THREADS") != NULL ? MPI_THREAD_MULTIPLE :
						     MPI_THREAD_SINGLE,
		&level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	echo_init(&e, argv);
	if (e.window > 0)
		e.calls -= e.calls % e.window;
	if (e.window > 0 && rank % 2 == 0) {
		measure_windows(&e, rank + 1);
	} else if (e.window > 0) {
		pong(&e, rank - 1, e.window + e.calls);
	} else if (rank % 2 == 1) {
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
