/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_empty.c - ranks that send, gather and reduce tensors without elements.
 *
 *   xrun -n N coll_empty CASE [tcp]
 *
 * Each case runs with data and lists at NULL, and with data and lists at memory that
 * no operation may write. After each operation a sum of one element has to be right.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <xrun/coll.h>

#include "tests/kit/backend.h"
#include "tests/prog/expect.h"

static struct xr_world *world;
static struct xr_coll *all;

#define OP(...) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), __VA_ARGS__ })

#define RANKS 8

/* What an operation of no elements is given. */
static uint8_t guard[RANKS + 1][16];
static void *guards[RANKS];

/* A sum, and the guards are as they were. */
static void
expect_sound(void)
{
	int32_t x = (int32_t)rank + 1, n = (int32_t)size;

	EXPECT(xr_coll_allreduce(all,
		       OP(.data = &x, .count = 1, .dtype = XR_DT_I32,
			       .op = XR_SUM),
		       &err) == XR_OK);
	EXPECT(x == n * (n + 1) / 2);
	for (size_t k = 0; k <= RANKS; k++)
		for (size_t i = 0; i < sizeof(guard[k]); i++)
			EXPECT(guard[k][i] == 0x5a);
}

/* wait_for() - the value of a future of a receiver, else -2. */
static int64_t
wait_for(struct xr_future *f)
{
	struct xr_value *v = NULL;
	int64_t n = -2;

	EXPECT(xr_future_wait(f, XR_SECONDS(20), &v, &err) == XR_OK);
	xr_value_get_i64(v, &n);
	xr_value_unref(v);
	xr_future_unref(f);
	return n;
}

/* --- messages ------------------------------------------------------------------ */

/* Rank 0 to each other, between two messages that have an element. */
static void
sent(enum xr_dtype d, void *data)
{
	struct xr_coll_op empty = *OP(.data = data, .dtype = d);
	uint8_t one[16] = { 1 }, two[16] = { 2 };
	struct xr_future *f = NULL;

	for (empty.rank = 1; empty.rank < size && rank == 0; empty.rank++) {
		struct xr_coll_op full = empty;

		full.count = 1;
		full.data = one;
		EXPECT(xr_coll_send(all, &full, &err) == XR_OK);
		EXPECT(xr_coll_send(all, &empty, &err) == XR_OK);
		EXPECT(xr_coll_isend(all, &empty, &f, &err) == XR_OK);
		wait_for(f);
		full.data = two;
		EXPECT(xr_coll_send(all, &full, &err) == XR_OK);
	}
}

static void
received(enum xr_dtype d, void *data)
{
	struct xr_coll_op empty =
		*OP(.data = data, .dtype = d, .rank = XR_COLL_ANY);
	struct xr_coll_op full = *OP(.count = 1, .dtype = d);
	uint8_t x[16] = { 0 };
	struct xr_future *f = NULL;
	int64_t from = -2;

	full.data = x;
	EXPECT(xr_coll_recv(all, &full, NULL, &err) == XR_OK && x[0] == 1);
	EXPECT(xr_coll_recv(all, &empty, &from, &err) == XR_OK && from == 0);
	EXPECT(xr_coll_irecv(all, &empty, &f, &err) == XR_OK);
	EXPECT(wait_for(f) == 0);
	EXPECT(xr_coll_recv(all, &full, NULL, &err) == XR_OK && x[0] == 2);
}

static void
messages(enum xr_dtype d, void *data, void *const *list)
{
	if (rank == 0)
		sent(d, data);
	else
		received(d, data);
	expect_sound();
}

/* --- operations of all ----------------------------------------------------------- */

typedef enum xr_status call_fn(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_error *err);
typedef enum xr_status icall_fn(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* Both forms of an operation. */
static void
both_forms(const struct xr_coll_op *op, call_fn *call, icall_fn *icall)
{
	struct xr_future *f = NULL;

	EXPECT(call(all, op, &err) == XR_OK);
	expect_sound();
	EXPECT(icall(all, op, &f, &err) == XR_OK);
	wait_for(f);
	expect_sound();
}

static void
collectives(enum xr_dtype d, void *data, void *const *list)
{
	struct xr_coll_op op = *OP(.data = data, .dtype = d, .op = XR_SUM);

	if (d == XR_DT_BOOL)
		op.op = XR_BOR;
	both_forms(&op, xr_coll_allreduce, xr_coll_iallreduce);
	op.list = list;
	both_forms(&op, xr_coll_allgather, xr_coll_iallgather);
	for (op.rank = 0; op.rank < size; op.rank++) {
		op.list = NULL;
		both_forms(&op, xr_coll_bcast, xr_coll_ibcast);
		both_forms(&op, xr_coll_reduce, xr_coll_ireduce);
		op.list = op.rank == rank ? list : NULL;
		both_forms(&op, xr_coll_gather, xr_coll_igather);
		both_forms(&op, xr_coll_scatter, xr_coll_iscatter);
	}
}

/* Rank 1 awaits an element, or sends one, where the other has none. */
static void
other_length(enum xr_dtype d, void *data, void *const *list)
{
	uint8_t x[16] = { 0 };
	struct xr_coll_op op = *OP(.data = x, .count = rank, .dtype = d,
		.rank = 1 - (int64_t)rank);

	if (d != XR_DT_I32 || data == NULL)
		return;
	EXPECT(rank > 1 ||
		(rank == 0 ? xr_coll_send(all, &op, &err) :
			     xr_coll_recv(all, &op, NULL, &err)) ==
			XR_E_CONFLICT);
	if (rank < 2)
		printf("rank %u: %s\n", rank, err.text);
}

/* --- which ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(enum xr_dtype d, void *data, void *const *list);
} cases[] = {
	{ "messages", messages },
	{ "collectives", collectives },
	{ "other-length", other_length },
};

int
main(int argc, char **argv)
{
	static void *const nulls[RANKS];
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	const char *const tcp[] = { "tcp" };
	size_t i = 0;

	while (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
		EXPECT(++i < sizeof(cases) / sizeof(cases[0]));
	memset(guard, 0x5a, sizeof(guard));
	for (size_t k = 0; k < RANKS; k++)
		guards[k] = guard[k];
	EXPECT(xr_rpc_opts_init(tested_backend(), &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 2;
	opts.rpc = &rpc;
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
	EXPECT(size <= RANKS);
	EXPECT(xr_coll_new(world, NULL, &all, &err) == XR_OK);
	for (int d = XR_DT_BOOL; d <= XR_DT_C128; d++) {
		cases[i].run(d, NULL, nulls);
		cases[i].run(d, guard[RANKS], guards);
	}
	printf("rank %u of %u: %s of every type\n", rank, size, argv[1]);
	xr_coll_free(all);
	all = NULL;
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	return 0;
}
