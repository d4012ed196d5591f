/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_coll.c - collective steps of an MPI; see coll.h. MPI has no bf16: its reductions are
 * functions of this program, as users write them. */
#include <mpi.h>

#include "coll.h"

static MPI_Datatype type;
static MPI_Op op;

static float
widen(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float wide;

	memcpy(&wide, &bits, sizeof(wide));
	return wide;
}

static uint16_t
narrow(float wide)
{
	uint32_t bits;

	memcpy(&bits, &wide, sizeof(bits));
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void
sum(void *in, void *out, int *count, MPI_Datatype *unused)
{
	const uint16_t *restrict a = in;
	uint16_t *restrict b = out;

	(void)unused;
	for (int i = 0; i < *count; i++)
		b[i] = narrow(widen(a[i]) + widen(b[i]));
}

static void
max(void *in, void *out, int *count, MPI_Datatype *unused)
{
	const uint16_t *restrict a = in;
	uint16_t *restrict b = out;

	(void)unused;
	for (int i = 0; i < *count; i++)
		b[i] = widen(a[i]) > widen(b[i]) ? a[i] : b[i];
}

static void
choose(const struct step *s)
{
	type = s->is_bf16 ? MPI_UINT16_T : MPI_FLOAT;
	op = s->is_max ? MPI_MAX : MPI_SUM;
	if (s->is_bf16)
		MPI_Op_create(s->is_max ? max : sum, 1, &op);
}

static void
run(struct step *s)
{
	int n = (int)s->count;

	switch (s->what) {
	case BARRIER:
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	case ALLREDUCE:
		MPI_Allreduce(MPI_IN_PLACE, s->out, n, type, op,
			MPI_COMM_WORLD);
		break;
	case BCAST:
		MPI_Bcast(s->out, n, type, 0, MPI_COMM_WORLD);
		break;
	case ALLGATHER:
		MPI_Allgather(s->in, n, type, s->all, n, type, MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(s->in, s->out, n, type, op, 0, MPI_COMM_WORLD);
		break;
	case GATHER:
		MPI_Gather(s->in, n, type, s->all, n, type, 0, MPI_COMM_WORLD);
		break;
	case SCATTER:
		MPI_Scatter(s->all, n, type, s->out, n, type, 0,
			MPI_COMM_WORLD);
		break;
	}
}

static void
meet(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
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
	choose(&s);
	step_all(&s, run, meet);
	MPI_Finalize();
	return 0;
}
