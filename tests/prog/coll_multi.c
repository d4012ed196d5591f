/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_multi.c - ranks with two devices each that do things together.
 *
 *   xrun -n N coll_multi CASE [tcp]
 *
 * The library is compiled in, as its devices are none that a program could bring.
 * What a case did not expect ends it with status 1, and a line that says what.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/job.h>

#include "tests/prog/coll_multi.h"
#include "tests/prog/coll_ref.h"

/* --- reducing ----------------------------------------------------------------------- */

static void
reduce_to_one(enum xr_dtype d, enum xr_redop op, size_t count, const void *want)
{
	uint32_t root = (uint32_t)(count + op) % size, index = op % EACH;
	struct xr_value *list[EACH];

	make(list, count, d);
	EXPECT(xr_coll_reduce_multi(all,
		       MULTI(LIST(list, EACH), .op = op, .rank = root,
			       .index = index),
		       &err) == XR_OK);
	for (uint32_t j = 0; j < EACH; j++)
		EXPECT(rank == root && j == index ?
				has(list[j], want) :
				has_array(list[j], rank * EACH + j));
	drop(list, EACH);
}

static void
reduce_all(enum xr_dtype d, enum xr_redop op, size_t count)
{
	void *want = malloc(count * xr_dtype_size(d) + 1);
	struct xr_value *list[EACH];

	EXPECT(want != NULL);
	ref_reduce(want, count, d, op, (struct ref_ranks){ size, EACH });
	make(list, count, d);
	EXPECT(xr_coll_allreduce_multi(all, MULTI(LIST(list, EACH), .op = op),
		       &err) == XR_OK);
	for (uint32_t j = 0; j < EACH; j++) {
		if (!has(list[j], want))
			fprintf(stderr, "rank %u: %s %d of %zu differs\n", rank,
				xr_dtype_name(d), (int)op, count);
		EXPECT(has(list[j], want));
	}
	drop(list, EACH);
	reduce_to_one(d, op, count, want);
	free(want);
}

static void
refuse(enum xr_dtype d, enum xr_redop op)
{
	struct xr_value *list[EACH];

	make(list, 3, d);
	EXPECT(xr_coll_allreduce_multi(all, MULTI(LIST(list, EACH), .op = op),
		       &err) == XR_E_INVAL);
	EXPECT(has_array(list[0], rank * EACH));
	drop(list, EACH);
}

static void
every_type(void)
{
	static const size_t counts[] = { 0, 1, 37, 20011 };

	for (int d = XR_DT_BOOL; d <= XR_DT_C128; d++)
		for (int op = XR_SUM; op <= XR_AVG; op++)
			for (size_t i = 0; i < 4; i++) {
				if (ref_can(d, op))
					reduce_all(d, op, counts[i]);
				else
					refuse(d, op);
			}
	printf("rank %u of %u: every type\n", rank, size);
}

/* A single one; then one of the host between two. */
static void
with_the_host(void)
{
	struct xr_value *list[] = { tensor(1, 1000, XR_DT_BF16),
		tensor(HOST, 1000, XR_DT_BF16), tensor(0, 1000, XR_DT_BF16) };
	uint16_t want[1000];

	for (uint32_t each = 1; each <= 3; each += 2) {
		ref_reduce(want, 1000, XR_DT_BF16, XR_AVG,
			(struct ref_ranks){ size, each });
		for (uint32_t j = 0; j < each; j++)
			fill(list[j], rank * each + j);
		EXPECT(xr_coll_allreduce_multi(all,
			       MULTI(LIST(list, each), .op = XR_AVG),
			       &err) == XR_OK);
		for (uint32_t j = 0; j < each; j++)
			EXPECT(has(list[j], want));
	}
	drop(list, 3);
}

/* --- to all, of all ----------------------------------------------------------------- */

static void
broadcast_of(size_t count)
{
	struct xr_value *list[EACH];

	for (uint32_t root = 0; root < size; root++)
		for (uint32_t index = 0; index < EACH; index++) {
			make(list, count, XR_DT_F32);
			EXPECT(xr_coll_bcast_multi(all,
				       MULTI(LIST(list, EACH), .rank = root,
					       .index = index),
				       &err) == XR_OK);
			for (uint32_t j = 0; j < EACH; j++)
				EXPECT(has_array(list[j], root * EACH + index));
			drop(list, EACH);
		}
}

static void
broadcast(void)
{
	static const size_t counts[] = { 0, 1, 37, 20011 };

	for (size_t i = 0; i < 4; i++)
		broadcast_of(counts[i]);
}

/* Two lists, on whichever devices; then one. */
static void
gather_of(size_t count, enum xr_dtype dtype)
{
	struct xr_value *list[EACH], *out[EACH][ENTRIES];
	struct xr_value *const *lists[EACH] = { out[0], out[1] };
	uint32_t entries = size * EACH;

	make(list, count, dtype);
	for (uint32_t i = 0; i < EACH; i++)
		for (uint32_t e = 0; e < entries; e++)
			out[i][e] = tensor((int32_t)e % 3 - 1, count, dtype);
	EXPECT(xr_coll_allgather_multi(all,
		       MULTI(LIST(list, EACH), .lists = lists), &err) == XR_OK);
	for (uint32_t k = 0; k < size; k++)
		for (uint32_t j = 0; j < EACH; j++)
			for (uint32_t i = 0; i < EACH; i++)
				EXPECT(has_array(out[i][k * EACH + j],
					k * EACH + j));
	for (uint32_t e = 0; e < entries; e++)
		for (uint32_t i = 0; i < EACH; i++)
			fill(out[i][e], 99);
	lists[1] = NULL;
	EXPECT(xr_coll_allgather_multi(all,
		       MULTI(LIST(list, EACH), .lists = lists), &err) == XR_OK);
	for (uint32_t e = 0; e < entries; e++)
		EXPECT(has_array(out[0][e], e) && has_array(out[1][e], 99));
	for (uint32_t i = 0; i < EACH; i++)
		drop(out[i], entries);
	drop(list, EACH);
}

static void
gather(void)
{
	EXPECT(size == 3);
	gather_of(0, XR_DT_F32);
	gather_of(1, XR_DT_U8);
	gather_of(37, XR_DT_C128);
	gather_of(20011, XR_DT_F16);
}

/* More than is brought to the host at once. */
static void
in_pieces(void)
{
	reduce_all(XR_DT_F64, XR_AVG, 750001);
	reduce_all(XR_DT_BF16, XR_SUM, 2150001);
	gather_of(550001, XR_DT_F32);
	for (uint32_t i = 0; i < 2; i++) {
		struct xr_value *list[EACH];

		make(list, 2150001, XR_DT_F64);
		EXPECT(xr_coll_bcast_multi(all,
			       MULTI(LIST(list, EACH), .rank = 2, .index = i),
			       &err) == XR_OK);
		for (uint32_t j = 0; j < EACH; j++)
			EXPECT(has_array(list[j], 2 * EACH + i));
		drop(list, EACH);
	}
}

/* Ranks are the world's, and their order is. */
static void
some_of_all(void)
{
	const uint32_t ranks[] = { 2, 0 };
	struct xr_value *list[EACH], *out[2 * EACH];
	struct xr_value *const *lists[EACH] = { NULL, out };
	struct xr_coll *two = NULL;

	EXPECT(xr_coll_new(world,
		       &(struct xr_coll_opts){
			       .size = sizeof(struct xr_coll_opts),
			       .ranks = ranks,
			       .count = 2 },
		       &two, &err) == XR_OK);
	make(list, 5, XR_DT_I32);
	for (int e = 0; e < 2 * EACH; e++)
		out[e] = tensor(0, 5, XR_DT_I32);
	if (rank == 1) {
		EXPECT(xr_coll_bcast_multi(two,
			       MULTI(LIST(list, EACH), .rank = 2),
			       &err) == XR_E_NOTMEMBER);
	} else {
		EXPECT(xr_coll_allgather_multi(two,
			       MULTI(LIST(list, EACH), .lists = lists),
			       &err) == XR_OK);
		for (uint32_t e = 0; e < 2 * EACH; e++)
			EXPECT(has_array(out[e],
				e < EACH ? e : 2 * EACH + e - EACH));
		EXPECT(xr_coll_bcast_multi(two,
			       MULTI(LIST(list, EACH), .rank = 2, .index = 1),
			       &err) == XR_OK);
		EXPECT(has_array(list[0], 2 * EACH + 1));
		EXPECT(xr_coll_bcast_multi(two,
			       MULTI(LIST(list, EACH), .rank = 1),
			       &err) == XR_E_INVAL);
	}
	drop(list, EACH);
	drop(out, 2 * EACH);
	xr_coll_free(two);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "types", every_type },
	{ "host", with_the_host },
	{ "bcast", broadcast },
	{ "gather", gather },
	{ "pieces", in_pieces },
	{ "some", some_of_all },
	{ "refused", refused },
	{ "other-length", other_length },
	{ "other-index", other_index },
	{ "other-count", other_count },
	{ "other-form", other_form },
	{ "broken-read", broken_read },
	{ "broken-write", broken_write },
	{ "broken-piece", broken_piece },
	{ "late", late },
	{ "memory", short_of_memory },
};

int
main(int argc, char **argv)
{
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	const char *const tcp[] = { "tcp" };
	size_t i = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
		EXPECT(++i < sizeof(cases) / sizeof(cases[0]));
	devices_begin();
	EXPECT(xr_rpc_opts_init(0, &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 2;
	opts.rpc = &rpc;
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
	EXPECT(size <= RANKS);
	all = new_group();
	cases[i].run();
	EXPECT(devices_left() == 0);
	xr_coll_free(all);
	all = NULL; /* what is not freed is seen to be lost */
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	return 0;
}
