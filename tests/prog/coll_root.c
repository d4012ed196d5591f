/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_root.c - ranks of a machine where a root goes on alone, and where all go on as fast
 * as they can.
 *
 *   xrun -n N coll_root CASE [SEED]
 *
 * What a case did not expect ends it with status 1, and a line that says what.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/coll.h>
#include <xrun/job.h>

#include "tests/prog/expect.h"

static struct xr_world *world;
static struct xr_coll *all;
static uint64_t seed = 1;

#define OP(...) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), __VA_ARGS__ })
#define I32(at, n) .data = (at), .count = (n), .dtype = XR_DT_I32

static void
fill(int32_t *x, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		x[i] = (int32_t)(i * 7919 + number * 104729);
}

static int32_t *
numbers(size_t count, uint32_t number)
{
	int32_t *x = malloc(count * sizeof(*x) + 1);

	EXPECT(x != NULL);
	fill(x, count, number);
	return x;
}

static void
expect_numbers(const int32_t *x, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		EXPECT(x[i] == (int32_t)(i * 7919 + number * 104729));
}

/* --- a root that others find, or do not find ---------------------------------------- */

/* Who calls another than the root hears of it there, the root with what it calls next. */
static void
other_broadcast(void)
{
	int32_t *x = numbers(8, rank);
	enum xr_status status =
		xr_coll_bcast(all, OP(I32(x, rank == 1 ? 5 : 4)), &err);

	EXPECT(rank != 0 || status == XR_OK);
	EXPECT(rank != 1 || status == XR_E_CONFLICT);
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
	free(x);
}

/* Each takes itself for the root, and hears of others with what it calls next. */
static void
two_roots(void)
{
	int32_t *x = numbers(4, rank);

	EXPECT(xr_coll_bcast(all, OP(I32(x, 4), .rank = rank), &err) == XR_OK);
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
	free(x);
}

/* The others begin when they have heard that it is gone. */
static void
root_ends(void)
{
	int32_t *x = numbers(5000, rank + 100), none;

	if (rank > 0)
		EXPECT(xr_coll_recv(all, OP(I32(&none, 1), .rank = 0), NULL,
			       &err) == XR_E_PEER_LOST);
	EXPECT(xr_coll_bcast(all, OP(I32(x, 5000), .rank = 0), &err) == XR_OK);
	expect_numbers(x, 5000, 100);
	if (rank == 0)
		_exit(0);
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_E_PEER_LOST);
	printf("rank %u: %s\n", rank, err.text);
	fflush(stdout);
	_exit(0);
}

/* --- one after the other --------------------------------------------------------------- */

#define STEPS 600
#define MOST  150000 /* elements */
#define RANKS 16

/* The same on all ranks: splitmix64. */
static uint32_t
draw(uint32_t below)
{
	uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) % below);
}

/* Buffers of a rank. */
struct desk {
	int32_t *data, *want, *list[RANKS];
};

static void
bcast_step(struct desk *d, uint32_t root, size_t count, uint32_t number)
{
	fill(d->data, count, rank == root ? number : number + 1);
	EXPECT(xr_coll_bcast(all, OP(I32(d->data, count), .rank = root),
		       &err) == XR_OK);
	expect_numbers(d->data, count, number);
}

static void
scatter_step(struct desk *d, uint32_t root, size_t count, uint32_t number)
{
	for (uint32_t r = 0; r < size && rank == root; r++)
		fill(d->list[r], count, number + r);
	EXPECT(xr_coll_scatter(all,
		       OP(I32(d->data, count), .rank = root,
			       .list = rank == root ? (void **)d->list : NULL),
		       &err) == XR_OK);
	expect_numbers(d->data, count, number + rank);
}

static void
gather_step(struct desk *d, uint32_t root, size_t count, uint32_t number)
{
	fill(d->data, count, number + rank);
	EXPECT(xr_coll_gather(all,
		       OP(I32(d->data, count), .rank = root,
			       .list = rank == root ? (void **)d->list : NULL),
		       &err) == XR_OK);
	for (uint32_t r = 0; r < size && rank == root; r++)
		expect_numbers(d->list[r], count, number + r);
}

/* Integers wrap, in whatever order. */
static void
sum_step(struct desk *d, uint32_t root, size_t count, uint32_t number)
{
	bool reduces = root % 2 == 0;

	fill(d->data, count, number + rank);
	EXPECT((reduces ? xr_coll_reduce : xr_coll_allreduce)(all,
		       OP(I32(d->data, count), .rank = reduces ? root : 0,
			       .op = XR_SUM),
		       &err) == XR_OK);
	if (reduces && rank != root)
		return;
	for (size_t i = 0; i < count; i++) {
		uint32_t sum = 0;

		for (uint32_t r = 0; r < size; r++)
			sum += (uint32_t)(i * 7919 + (number + r) * 104729);
		EXPECT((uint32_t)d->data[i] == sum);
	}
}

/* By messages, between what goes by shared memory. */
static void
future_step(struct desk *d, uint32_t root, size_t count, uint32_t number)
{
	struct xr_future *f = NULL;

	fill(d->data, count, rank == root ? number : number + 1);
	EXPECT(xr_coll_ibcast(all, OP(I32(d->data, count), .rank = root), &f,
		       &err) == XR_OK);
	EXPECT(xr_future_wait(f, XR_SECONDS(20), NULL, &err) == XR_OK);
	xr_future_unref(f);
	expect_numbers(d->data, count, number);
}

/* All kinds, with any root, of any length, and nothing between them. */
static void
mixed(void)
{
	static void (*const steps[])(struct desk *, uint32_t, size_t,
		uint32_t) = { bcast_step, bcast_step, scatter_step,
		scatter_step, gather_step, sum_step, future_step };
	struct desk d = { .data = numbers(MOST, 0) };
	uint32_t what, root, count;

	EXPECT(size <= RANKS);
	for (uint32_t r = 0; r < size; r++)
		d.list[r] = numbers(MOST, 0);
	for (uint32_t i = 0; i < STEPS; i++) {
		what = draw(sizeof(steps) / sizeof(steps[0]));
		root = draw(size);
		count = draw(4) > 0 ? draw(200) : draw(MOST);
		steps[what](&d, root, count, i);
	}
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	for (uint32_t r = 0; r < size; r++)
		free(d.list[r]);
	free(d.data);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "other-broadcast", other_broadcast },
	{ "two-roots", two_roots },
	{ "root-ends", root_ends },
	{ "mixed", mixed },
};

int
main(int argc, char **argv)
{
	bool known = false;

	rank = (uint32_t)xr_job_rank();
	size = (uint32_t)xr_job_size();
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	EXPECT(xr_world_new(NULL, &world, &err) == XR_OK);
	EXPECT(xr_coll_new(world, NULL, &all, &err) == XR_OK);
	/* One that ended before all have the group would be its failure. */
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]);
		i++)
		if (strcmp(argv[1], cases[i].name) == 0) {
			known = true;
			cases[i].run();
		}
	EXPECT(known);
	xr_coll_free(all);
	xr_world_free(world);
	return 0;
}
