/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_coll_all.c - each operation of a group of processes, of each length and form, in
 * memory that they share and by messages; and what members that differ, or are late, are
 * told.
 */
#include <stdlib.h>

#include <xrun/coll.h>

#include "tests/kit/shm_rig.h"
#include "tests/unit/group_rig.h"
#include "worker/coll/plan.h"
#include "worker/coll/team.h"

#define RANKS 3
#define MOST  70001 /* elements */

static struct xr_world *world;
static struct xr_coll *group;
static bool by_future; /* the form of all operations */

TestSuite(coll_all, .init = rig_begin, .fini = rig_end, .timeout = 120);

static void
begin_group(int rank)
{
	static const char *const names[] = { "zero", "one", "two" };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = usual();
	char text[16];

	snprintf(text, sizeof(text), "%d", rank);
	setenv("XRUN_LOCAL_RANK", text, 1);
	opts.name = names[rank];
	opts.rank = rank;
	opts.world_size = RANKS;
	opts.rpc = &rpc;
	NEED(xr_world_new(&opts, &world, &err) == XR_OK);
	NEED(xr_coll_new(world, NULL, &group, &err) == XR_OK);
	EXPECT(xr_coll_size(group) == RANKS);
	EXPECT(xr_coll_index(group) == rank);
}

static void
end_group(void)
{
	xr_coll_free(group);
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60),
		       &err) == XR_OK);
	xr_world_free(world);
}

/* --- values ------------------------------------------------------------------------- */

static int32_t data[MOST + 1], lists[RANKS][MOST + 1];

/* Element @i of rank @rank in a call whose number is @turn. */
static int32_t
value(int rank, size_t i, int turn)
{
	return (int32_t)(1000003 * (rank + 1) + 7 * i + 131 * (size_t)turn);
}

/* What stands behind the last element. */
#define MARK (-77)

static void
fill(int32_t *to, size_t count, int rank, int turn)
{
	for (size_t i = 0; i < count; i++)
		to[i] = value(rank, i, turn);
	to[count] = MARK;
}

static bool
is(const int32_t *got, size_t count, int rank, int turn)
{
	for (size_t i = 0; i < count; i++)
		if (got[i] != value(rank, i, turn))
			return false;
	return got[count] == MARK;
}

static bool
is_sum(const int32_t *got, size_t count, int turn)
{
	for (size_t i = 0; i < count; i++) {
		int64_t sum = 0;

		for (int r = 0; r < RANKS; r++)
			sum += value(r, i, turn);
		if (got[i] != (int32_t)sum)
			return false;
	}
	return got[count] == MARK;
}

/* --- operations ---------------------------------------------------------------------- */

typedef enum xr_status op_fn(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err);
typedef enum xr_status begin_fn(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

static enum xr_status
run(op_fn *fn, begin_fn *begin, const struct xr_coll_op *op)
{
	struct xr_future *future = NULL;
	enum xr_status status;

	err = (struct xr_error){ 0 };
	if (!by_future)
		return fn(group, op, &err);
	status = begin(group, op, &future, &err);
	if (status == XR_OK)
		status = xr_future_wait(future, XR_TIMEOUT_NEVER, NULL, &err);
	xr_future_unref(future);
	return status;
}

#define RUN(name, ...) \
	run(xr_coll_##name, xr_coll_i##name, \
		&(const struct xr_coll_op){ .size = sizeof(struct xr_coll_op), \
			.dtype = XR_DT_I32, \
			__VA_ARGS__ })

static void *at[RANKS] = { lists[0], lists[1], lists[2] };

static void
clear_lists(size_t count)
{
	for (int r = 0; r < RANKS; r++) {
		memset(lists[r], 0x55, count * sizeof(lists[r][0]));
		lists[r][count] = MARK;
	}
}

static void
broadcast(int rank, size_t count, int turn)
{
	for (int root = 0; root < RANKS; root++) {
		fill(data, count, rank, turn);
		EXPECT(RUN(bcast, .data = data, .count = count, .rank = root) ==
			XR_OK);
		EXPECT(is(data, count, root, turn));
	}
}

static void
reduce(int rank, size_t count, int turn)
{
	for (int root = 0; root < RANKS; root++) {
		fill(data, count, rank, turn);
		EXPECT(RUN(reduce, .data = data, .count = count, .op = XR_SUM,
			       .rank = root) == XR_OK);
		if (rank == root)
			EXPECT(is_sum(data, count, turn));
		else
			EXPECT(is(data, count, rank, turn));
	}
	fill(data, count, rank, turn);
	EXPECT(RUN(allreduce, .data = data, .count = count, .op = XR_SUM) ==
		XR_OK);
	EXPECT(is_sum(data, count, turn));
	fill(data, count, rank, turn);
	EXPECT(RUN(allreduce, .data = data, .count = count, .op = XR_MAX) ==
		XR_OK);
	EXPECT(is(data, count, RANKS - 1, turn));
}

static void
gather(int rank, size_t count, int turn)
{
	int32_t *own = count > 0 ? data : NULL;

	for (int root = 0; root < RANKS; root++) {
		fill(data, count, rank, turn);
		clear_lists(count);
		EXPECT(RUN(gather, .data = own, .count = count, .rank = root,
			       .list = rank == root ? at : NULL) == XR_OK);
		for (int r = 0; r < RANKS && rank == root; r++)
			EXPECT(is(lists[r], count, r, turn));
		EXPECT(is(data, count, rank, turn));
	}
	clear_lists(count);
	EXPECT(RUN(allgather, .data = own, .count = count, .list = at) ==
		XR_OK);
	for (int r = 0; r < RANKS; r++)
		EXPECT(is(lists[r], count, r, turn));
}

static void
scatter(int rank, size_t count, int turn)
{
	for (int root = 0; root < RANKS; root++) {
		for (int r = 0; r < RANKS; r++)
			fill(lists[r], count, r, turn + root);
		memset(data, 0x55, count * sizeof(data[0]));
		data[count] = MARK;
		EXPECT(RUN(scatter, .data = data, .count = count, .rank = root,
			       .list = rank == root ? at : NULL) == XR_OK);
		EXPECT(is(data, count, rank, turn + root));
	}
}

/* To the next rank, with a tag of its own. */
static void
messages(int rank, size_t count, int turn)
{
	int next = (rank + 1) % RANKS, before = (rank + RANKS - 1) % RANKS;
	struct xr_coll_op op = { .size = sizeof(op),
		.dtype = XR_DT_I32,
		.data = lists[0],
		.count = count,
		.rank = next,
		.tag = (uint32_t)turn };
	struct xr_future *sent = NULL;
	int64_t from = -1;

	fill(lists[0], count, rank, turn);
	data[count] = MARK;
	EXPECT(xr_coll_isend(group, &op, &sent, &err) == XR_OK);
	op.data = data;
	op.rank = turn % 2 == 0 ? before : XR_COLL_ANY;
	EXPECT(xr_coll_recv(group, &op, &from, &err) == XR_OK);
	EXPECT(from == before);
	EXPECT(is(data, count, before, turn));
	EXPECT(xr_future_wait(sent, XR_TIMEOUT_NEVER, NULL, &err) == XR_OK);
	xr_future_unref(sent);
}

static enum xr_status
barrier(void)
{
	return run(xr_coll_barrier, xr_coll_ibarrier, NULL);
}

/* Of 0 to 9 bytes. */
static void
bytes(int rank)
{
	uint8_t own[10], all[RANKS][10];
	void *to[RANKS] = { all[0], all[1], all[2] };
	struct xr_coll_op op = { .size = sizeof(op),
		.dtype = XR_DT_U8,
		.data = own,
		.list = to };

	for (op.count = 0; op.count < 10; op.count++) {
		memset(own, rank + 1, sizeof(own));
		memset(all, 0x55, sizeof(all));
		EXPECT(run(xr_coll_allgather, xr_coll_iallgather, &op) ==
			XR_OK);
		for (size_t r = 0; r < RANKS; r++)
			for (size_t i = 0; i < sizeof(own); i++)
				EXPECT(all[r][i] ==
					(i < op.count ? r + 1 : 0x55));
	}
}

static void
all_of_all(int rank)
{
	/* Of 64 bytes and below and above; of up to a whole and above; and long. */
	static const size_t counts[] = { 0, 1, 16, 17, 300, 1024, 2048, 2049,
		4096, 4097, 8192, 8193, 16384, 16385, MOST };
	int turn = 0;

	begin_group(rank);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (int form = 0; form < 2; form++) {
			by_future = form == 1;
			broadcast(rank, counts[i], ++turn);
			reduce(rank, counts[i], ++turn);
			gather(rank, counts[i], ++turn);
			scatter(rank, counts[i], ++turn);
			messages(rank, counts[i], ++turn);
			EXPECT(barrier() == XR_OK);
			if (i == 0)
				bytes(rank);
		}
	end_group();
}

Test(coll_all, each_gives_what_it_is_to_give_in_shared_memory)
{
	rig_segment(RANKS, 0);
	together(RANKS, all_of_all);
}

Test(coll_all, each_gives_what_it_is_to_give_by_messages)
{
	together(RANKS, all_of_all);
}

/* --- texts -------------------------------------------------------------------------------- */

static void
expect_text(const struct plan *plan, enum xr_redop op, const char *want)
{
	const struct xr_coll_op call = { .dtype = XR_DT_F32,
		.count = 4,
		.op = op,
		.rank = 7 };
	char text[64];

	plan_text(plan, &call, text, sizeof(text));
	cr_expect_str_eq(text, want);
	for (size_t cap = 1; cap <= strlen(want); cap++) {
		plan_text(plan, &call, text, cap);
		cr_expect_eq(strlen(text), cap - 1);
		cr_expect_eq(strncmp(text, want, cap - 1), 0);
	}
	cr_expect_eq(plan_find(plan->code), plan);
}

Test(coll_all, a_call_has_a_text)
{
	static const char *const names[] = { "?", "sum", "product", "min",
		"max", "band", "bor", "bxor", "average", "?" };
	const struct xr_coll_op call = { .count = 1 };
	struct plan told = plan_bcast;
	char text[64];

	expect_text(&plan_barrier, XR_SUM, "barrier");
	expect_text(&plan_bcast, XR_SUM, "broadcast of 4 f32, rank 7");
	expect_text(&plan_allreduce, XR_MIN, "all_reduce of 4 f32, min");
	expect_text(&plan_reduce, XR_AVG, "reduce of 4 f32, average, rank 7");
	expect_text(&plan_allgather, XR_SUM, "all_gather of 4 f32");
	expect_text(&plan_gather, XR_SUM, "gather of 4 f32, rank 7");
	expect_text(&plan_scatter, XR_SUM, "scatter of 4 f32, rank 7");
	for (int i = 0; i < 10; i++)
		cr_expect_str_eq(plan_redop_name((enum xr_redop)i), names[i]);
	cr_expect_null(plan_find(0));
	cr_expect_null(plan_find(8));
	told.code |= PLAN_TOLD;
	plan_text(&told, &call, text, sizeof(text));
	cr_expect_str_eq(text, "broadcast");
}

Test(coll_all, slices_have_all_and_begin_where_they_may)
{
	for (size_t count = 0; count < 200; count++)
		for (uint32_t members = 1; members < 6; members++) {
			size_t next = 0;

			for (uint32_t i = 0; i < members; i++) {
				struct slice s =
					plan_slice(count, 4, members, i);

				cr_assert_eq(s.first, next);
				cr_assert(s.count == 0 || s.first % 16 == 0);
				cr_assert_eq(s.at, 4 * s.first);
				cr_assert_eq(s.len, 4 * s.count);
				cr_assert(s.count <= count / members + 16);
				next = s.first + s.count;
			}
			cr_assert_eq(next, count);
		}
	cr_expect_eq(plan_slice(10, 64, 2, 0).count, 6);
	cr_expect_eq(plan_slice(10, 128, 2, 0).count, 6);
	cr_expect_eq(plan_slice(10, 128, 2, 1).at, 6 * 128);
	cr_expect_eq(plan_slice(32, 2, 2, 0).count, 32);
	cr_expect_eq(plan_slice(31, 1, 1, 0).count, 31);
}

/* --- who leaves, and when ---------------------------------------------------------------- */

static void
last_to_enter(int rank)
{
	begin_group(rank);
	for (int form = 0; form < 2; form++)
		for (uint32_t last = 0; last < RANKS; last++) {
			by_future = form == 1;
			if ((uint32_t)rank == last)
				atomic_fetch_add(&shared->count, 1);
			EXPECT(barrier() == XR_OK);
			EXPECT(atomic_load(&shared->count) ==
				1 + last + (uint32_t)form * RANKS);
			EXPECT(barrier() == XR_OK);
		}
	end_group();
}

Test(coll_all, nobody_leaves_a_barrier_before_all_have_entered)
{
	atomic_store(&shared->count, 0);
	rig_segment(RANKS, 0);
	together(RANKS, last_to_enter);
}

/* --- who differs ---------------------------------------------------------------------------- */

static enum xr_status
reduce_some(size_t count, enum xr_redop op)
{
	memset(data, 0, (count + 1) * sizeof(data[0]));
	return RUN(allreduce, .data = data, .count = count, .op = op,
		.timeout = XR_SECONDS(60));
}

/* Rank 2 calls something else. All hear of a pair that differs. */
static void
one_differs(int rank)
{
	by_future = shared->text_of[0][0] == 'f';
	begin_group(rank);
	EXPECT(reduce_some(8, XR_SUM) == XR_OK);
	EXPECT(reduce_some(rank == 2 ? 9 : 8, XR_SUM) == XR_E_CONFLICT);
	EXPECT(strstr(err.text, " do not call the same: rank ") != NULL);
	EXPECT(strstr(err.text, "ranks ") == err.text);
	EXPECT(strstr(err.text, "rank 2 calls all_reduce") != NULL ||
		rank != 2);
	/* It stays so. */
	EXPECT(reduce_some(8, XR_SUM) == XR_E_CONFLICT);
	EXPECT(strstr(err.text, " do not call the same: rank ") != NULL);
	end_group();
}

static void
expect_conflicts(void)
{
	together(RANKS, one_differs);
	rig_fresh();
	shared->text_of[0][0] = 'f';
	together(RANKS, one_differs);
}

Test(coll_all, members_that_differ_are_told_in_shared_memory)
{
	rig_segment(RANKS, 0);
	expect_conflicts();
}

Test(coll_all, members_that_differ_are_told_by_messages)
{
	expect_conflicts();
}

/* --- who is late ------------------------------------------------------------------------------ */

#define LATE "all_reduce: these ranks did not come in time: "

/* Rank 1 calls only when the others have given up; rank 2 has more time than rank 0, and
 * with a future it is known to have called before. */
static void
one_is_late(int rank)
{
	struct xr_coll_op op = { .size = sizeof(op),
		.dtype = XR_DT_I32,
		.data = data,
		.count = 10,
		.op = XR_SUM,
		.timeout = rank == 0 ? XR_SECONDS(0.1) : XR_SECONDS(60) };
	struct xr_future *future = NULL;
	enum xr_status status;

	by_future = shared->text_of[0][0] == 'f';
	begin_group(rank);
	EXPECT(barrier() == XR_OK);
	if (rank == 1)
		stage_await(2);
	else if (rank == 0 && by_future)
		stage_await(1);
	if (rank == 2 && by_future) {
		EXPECT(xr_coll_iallreduce(group, &op, &future, &err) == XR_OK);
		stage_set(1);
		status = xr_future_wait(future, XR_TIMEOUT_NEVER, NULL, &err);
		xr_future_unref(future);
	} else {
		status = run(xr_coll_allreduce, xr_coll_iallreduce, &op);
	}
	if (rank == 0)
		stage_set(2);
	/* What rank 0 sent may be all that the others waited for. */
	EXPECT(status == XR_E_TIMEOUT || (rank != 0 && status == XR_OK));
	EXPECT(status == XR_OK || strcmp(err.text, LATE "1") == 0 ||
		(!by_future && strcmp(err.text, LATE "1, 2") == 0));
	end_group();
}

static void
expect_late(void)
{
	together(RANKS, one_is_late);
	rig_fresh();
	shared->text_of[0][0] = 'f';
	together(RANKS, one_is_late);
}

Test(coll_all, who_is_late_is_named_in_shared_memory)
{
	rig_segment(RANKS, 0);
	expect_late();
}

Test(coll_all, who_is_late_is_named_by_messages)
{
	expect_late();
}
