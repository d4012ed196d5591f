/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - ranks that do things together, a case at a time.
 *
 *   xrun -n N coll CASE [tcp]
 *
 * What a case did not expect ends it with status 1, and a line that says what.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/coll.h>
#include <xrun/job.h>

#include "tests/kit/backend.h"
#include "tests/prog/coll_ref.h"
#include "tests/prog/expect.h"
#include "tests/prog/late.h"

static struct xr_world *world;
static struct xr_coll *all;

#define OP(...) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), __VA_ARGS__ })
#define I32(at, n) .data = (at), .count = (n), .dtype = XR_DT_I32

static struct xr_coll *
group_of(const uint32_t *ranks, size_t count)
{
	struct xr_coll *coll = NULL;

	EXPECT(xr_coll_new(world,
		       &(struct xr_coll_opts){
			       .size = sizeof(struct xr_coll_opts),
			       .ranks = ranks,
			       .count = count },
		       &coll, &err) == XR_OK);
	return coll;
}

/* --- messages ----------------------------------------------------------------- */

static void
send_and_receive(void)
{
	int32_t x[3] = { 7, 8, 9 }, y[3] = { 0 };
	int64_t from = -2;

	if (rank == 0) {
		for (int64_t to = 1; to < size; to++)
			EXPECT(xr_coll_send(all, OP(I32(x, 3), .rank = to),
				       &err) == XR_OK);
		return;
	}
	EXPECT(xr_coll_recv(all, OP(I32(y, 3), .rank = XR_COLL_ANY), &from,
		       &err) == XR_OK);
	EXPECT(from == 0 && memcmp(x, y, sizeof(x)) == 0);
}

static int64_t
sender_of(struct xr_future *f)
{
	struct xr_value *v = NULL;
	int64_t n = -2;

	EXPECT(xr_future_wait(f, XR_SECONDS(20), &v, &err) == XR_OK);
	xr_value_get_i64(v, &n);
	xr_value_unref(v);
	xr_future_unref(f);
	return n;
}

static void
without_waiting(void)
{
	static int32_t x[100000], y[64][100000];
	struct xr_future *f[64];

	for (size_t i = 0; i < 100000; i++)
		x[i] = (int32_t)(i * 3 + rank);
	for (uint32_t r = 0; r < size; r++)
		if (r != rank)
			EXPECT(xr_coll_irecv(all,
				       OP(I32(y[r], 100000), .rank = r), &f[r],
				       &err) == XR_OK);
	for (uint32_t r = 0; r < size; r++) {
		struct xr_future *sent;

		if (r == rank)
			continue;
		EXPECT(xr_coll_isend(all, OP(I32(x, 100000), .rank = r), &sent,
			       &err) == XR_OK);
		EXPECT(xr_future_wait(sent, XR_SECONDS(20), NULL, &err) ==
			XR_OK);
		xr_future_unref(sent);
	}
	for (uint32_t r = 0; r < size; r++)
		if (r != rank) {
			EXPECT(sender_of(f[r]) == r);
			EXPECT(y[r][99999] == (int32_t)(99999 * 3 + r));
		}
}

static void
by_tag(void)
{
	int32_t one = 1, two = 2, got = 0;
	struct xr_future *f[2];

	if (rank == 0) {
		EXPECT(xr_coll_isend(all, OP(I32(&one, 1), .rank = 1, .tag = 1),
			       &f[0], &err) == XR_OK);
		EXPECT(xr_coll_isend(all, OP(I32(&two, 1), .rank = 1, .tag = 2),
			       &f[1], &err) == XR_OK);
		for (int i = 0; i < 2; i++) {
			EXPECT(xr_future_wait(f[i], XR_SECONDS(20), NULL,
				       &err) == XR_OK);
			xr_future_unref(f[i]);
		}
	} else if (rank == 1) {
		EXPECT(xr_coll_recv(all, OP(I32(&got, 1), .tag = 2), NULL,
			       &err) == XR_OK);
		EXPECT(got == 2);
		EXPECT(xr_coll_recv(all, OP(I32(&got, 1), .tag = 1), NULL,
			       &err) == XR_OK);
		EXPECT(got == 1);
	}
}

static void
other_length(void)
{
	int32_t x[5] = { 0 };
	enum xr_status status;

	if (rank > 1)
		return;
	status = rank == 0 ?
		xr_coll_send(all, OP(I32(x, 4), .rank = 1), &err) :
		xr_coll_recv(all, OP(I32(x, 5), .rank = 0), NULL, &err);
	EXPECT(status == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
}

static void
nothing_comes(void)
{
	int32_t x;

	EXPECT(xr_coll_recv(all,
		       OP(I32(&x, 1), .rank = (rank + 1) % size, .tag = 3,
			       .timeout = XR_SECONDS(0.1)),
		       NULL, &err) == XR_E_TIMEOUT);
	printf("rank %u: %s\n", rank, err.text);
	/* That is of the one call only. */
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
}

/* --- from one, to one, to all ---------------------------------------------------- */

static const size_t lengths[] = { 0, 1, 3, 100, 5000, 70000, 600001 };
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

#define MANY 80 /* ranks */

static void
broadcast(void)
{
	for (size_t l = 0; l < LENGTHS; l++)
		for (uint32_t root = 0; root < size; root++) {
			int32_t *x = ref_numbers(lengths[l], rank + 100);

			EXPECT(xr_coll_bcast(all,
				       OP(I32(x, lengths[l]), .rank = root),
				       &err) == XR_OK);
			EXPECT(ref_holds(x, lengths[l], root + 100));
			free(x);
		}
}

static void
all_gather(void)
{
	int32_t *list[MANY], *x;

	for (size_t l = 0; l < LENGTHS; l++) {
		for (uint32_t r = 0; r < size; r++)
			list[r] = ref_numbers(lengths[l], 0);
		x = ref_numbers(lengths[l], rank + 7);
		EXPECT(xr_coll_allgather(all,
			       OP(I32(x, lengths[l]), .list = (void **)list),
			       &err) == XR_OK);
		for (uint32_t r = 0; r < size; r++)
			EXPECT(ref_holds(list[r], lengths[l], r + 7));
		ref_free(size, list);
		free(x);
	}
}

static void
gather(void)
{
	int32_t *list[MANY], *x, one;
	void *const *mine;

	for (size_t l = 0; l < LENGTHS; l++)
		for (uint32_t root = 0; root < size; root++) {
			for (uint32_t r = 0; r < size; r++)
				list[r] = ref_numbers(lengths[l], 0);
			mine = rank == root ? (void **)list : NULL;
			x = ref_numbers(lengths[l], rank + 9);
			EXPECT(xr_coll_gather(all,
				       OP(I32(x, lengths[l]), .rank = root,
					       .list = mine),
				       &err) == XR_OK);
			for (uint32_t r = 0; r < size && rank == root; r++)
				EXPECT(ref_holds(list[r], lengths[l], r + 9));
			ref_free(size, list);
			free(x);
		}
	/* One that is missing, and one that is too much; for both. */
	mine = rank == 0 ? NULL : (void **)list;
	EXPECT(xr_coll_gather(all, OP(I32(&one, 1), .list = mine), &err) ==
		XR_E_INVAL);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(xr_coll_scatter(all, OP(I32(&one, 1), .list = mine), &err) ==
		XR_E_INVAL);
	printf("rank %u: %s\n", rank, err.text);
}

static void
scatter(void)
{
	int32_t *list[MANY], *x;

	for (size_t l = 0; l < LENGTHS; l++)
		for (uint32_t root = 0; root < size; root++) {
			for (uint32_t r = 0; r < size; r++)
				list[r] =
					ref_numbers(lengths[l], r + 10 * root);
			x = ref_numbers(lengths[l], 1000);
			EXPECT(xr_coll_scatter(all,
				       OP(I32(x, lengths[l]), .rank = root,
					       .list = rank == root ?
						       (void **)list :
						       NULL),
				       &err) == XR_OK);
			EXPECT(ref_holds(x, lengths[l], rank + 10 * root));
			ref_free(size, list);
			free(x);
		}
}

/* More than a page has room for, if each is to have a piece worth a round. */
static void
scatter_wide(void)
{
	size_t count = 20000;
	int32_t *list[MANY], *x = ref_numbers(count, 1000);

	EXPECT(size > 64 && size <= MANY);
	for (uint32_t r = 0; r < size; r++)
		list[r] = rank == 3 ? ref_numbers(count, r) : NULL;
	EXPECT(xr_coll_scatter(all,
		       OP(I32(x, count), .rank = 3,
			       .list = rank == 3 ? (void **)list : NULL),
		       &err) == XR_OK);
	EXPECT(ref_holds(x, count, rank));
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	ref_free(size, list);
	free(x);
}

/* --- reducing ----------------------------------------------------------------------- */

/* What it should be only the root works out, for it takes longer than all else; the
 * others have what the root has. */
static void
reduce_all(enum xr_dtype d, enum xr_redop op, size_t count)
{
	size_t bytes = count * xr_dtype_size(d);
	void *x = malloc(bytes + 1), *want = malloc(bytes + 1);
	void *was = malloc(bytes + 1);
	int64_t root = (int64_t)(count % size);
	bool mine = rank == root;

	EXPECT(x != NULL && want != NULL && was != NULL);
	ref_fill(x, count, d, rank);
	memcpy(was, x, bytes);
	if (mine)
		ref_reduce(want, count, d, op, (struct ref_ranks){ size, 1 });
	EXPECT(xr_coll_reduce(all,
		       OP(.data = x, .count = count, .dtype = d, .op = op,
			       .rank = root),
		       &err) == XR_OK);
	EXPECT(memcmp(x, mine ? want : was, bytes) == 0);
	memcpy(x, was, bytes);
	EXPECT(xr_coll_allreduce(all,
		       OP(.data = x, .count = count, .dtype = d, .op = op),
		       &err) == XR_OK);
	EXPECT(xr_coll_bcast(all,
		       OP(.data = want, .count = count, .dtype = d,
			       .rank = root),
		       &err) == XR_OK);
	if (memcmp(x, want, bytes) != 0)
		fprintf(stderr, "rank %u: %s %d of %zu differs\n", rank,
			xr_dtype_name(d), (int)op, count);
	EXPECT(memcmp(x, want, bytes) == 0);
	free(x);
	free(want);
	free(was);
}

static const size_t reduced[] = { 0, 1, 37, 40007 };

static void
every_type(void)
{
	for (int d = XR_DT_BOOL; d <= XR_DT_C128; d++)
		for (int op = XR_SUM; op <= XR_AVG; op++)
			for (size_t i = 0; i < 4; i++) {
				if (ref_can(d, op))
					reduce_all(d, op, reduced[i]);
				else
					EXPECT(xr_coll_allreduce(all,
						       OP(.dtype = d, .op = op),
						       &err) == XR_E_INVAL);
			}
	printf("rank %u of %u: every type\n", rank, size);
}

/* Sums of numbers that are rounded: of any order but one they have other bits. */
static void
floats(void)
{
	for (int d = XR_DT_BOOL; d <= XR_DT_C128; d++)
		for (size_t i = 1; i < 4 && ref_can(d, XR_AVG); i++)
			reduce_all(d, XR_SUM, reduced[i]);
	printf("rank %u of %u: every float\n", rank, size);
}

static void
sum_of_ranks(void)
{
	float x = (float)rank;

	EXPECT(xr_coll_allreduce(all,
		       OP(.data = &x, .count = 1, .dtype = XR_DT_F32,
			       .op = XR_SUM),
		       &err) == XR_OK);
	EXPECT(x == (float)(size * (size - 1) / 2));
}

/* --- meeting -------------------------------------------------------------------------- */

static void
barriers(void)
{
	int64_t in, out, *list[64], times[64][2];
	struct timespec nap = { 0 };

	for (int i = 0; i < 30; i++) {
		nap.tv_nsec =
			(long)((rank * 7 + (uint32_t)i * 3) % 11) * 1000000;
		nanosleep(&nap, NULL);
		in = now();
		EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
		out = now();
		times[rank][0] = in;
		times[rank][1] = out;
		for (uint32_t r = 0; r < size; r++)
			list[r] = times[r];
		EXPECT(xr_coll_allgather(all,
			       OP(.data = (int64_t[]){ in, out }, .count = 2,
				       .dtype = XR_DT_I64,
				       .list = (void **)list),
			       &err) == XR_OK);
		for (uint32_t r = 0; r < size; r++)
			EXPECT(times[r][0] <= out);
	}
}

static void
some_of_all(void)
{
	const uint32_t ranks[] = { 2, 0 };
	struct xr_coll *two = group_of(ranks, 2);
	int32_t x = (int32_t)rank + 1;
	bool in = rank == 0 || rank == 2;

	EXPECT(xr_coll_size(two) == 2);
	EXPECT(xr_coll_index(two) == (rank == 0 ? 0 : rank == 2 ? 1 : -1));
	if (in) {
		EXPECT(xr_coll_bcast(two, OP(I32(&x, 1), .rank = 2), &err) ==
			XR_OK);
		EXPECT(x == 3);
		EXPECT(xr_coll_bcast(two, OP(I32(&x, 1), .rank = 1), &err) ==
			XR_E_INVAL);
		printf("rank %u: %s\n", rank, err.text);
	} else {
		EXPECT(xr_coll_barrier(two, NULL, &err) == XR_E_NOTMEMBER);
		EXPECT(xr_coll_bcast(two, OP(I32(&x, 1)), &err) ==
			XR_E_NOTMEMBER);
		EXPECT(xr_coll_recv(two, OP(I32(&x, 1)), NULL, &err) ==
			XR_E_NOTMEMBER);
	}
	xr_coll_close(two);
	xr_coll_close(two);
	if (in)
		EXPECT(xr_coll_barrier(two, NULL, &err) == XR_E_CLOSED);
	xr_coll_free(two);
}

static void
handles(void)
{
	int32_t *x = ref_numbers(70000, rank), *y = ref_numbers(70000, rank);
	struct xr_future *a = NULL, *b = NULL;

	EXPECT(xr_coll_iallreduce(all, OP(I32(x, 70000), .op = XR_MAX), &a,
		       &err) == XR_OK);
	EXPECT(xr_coll_ibcast(all, OP(I32(y, 70000), .rank = 1), &b, &err) ==
		XR_OK);
	EXPECT(xr_future_wait(b, XR_SECONDS(20), NULL, &err) == XR_OK);
	EXPECT(xr_future_wait(a, XR_SECONDS(20), NULL, &err) == XR_OK);
	EXPECT(xr_future_wait(a, 0, NULL, &err) == XR_OK);
	EXPECT(ref_holds(y, 70000, 1));
	xr_future_unref(a);
	xr_future_unref(b);
	if (rank == 0) { /* the others come later */
		EXPECT(xr_coll_ibarrier(all, NULL, &a, &err) == XR_OK);
		EXPECT(xr_future_wait(a, XR_SECONDS(0.1), NULL, &err) ==
			XR_E_TIMEOUT);
		EXPECT(xr_future_cancel(a) == XR_E_STATE);
		EXPECT(xr_coll_send(all, OP(I32(x, 1), .rank = 1), &err) ==
			XR_OK);
	} else {
		if (rank == 1)
			EXPECT(xr_coll_recv(all, OP(I32(x, 1)), NULL, &err) ==
				XR_OK);
		EXPECT(xr_coll_ibarrier(all, NULL, &a, &err) == XR_OK);
	}
	EXPECT(xr_future_wait(a, XR_SECONDS(20), NULL, &err) == XR_OK);
	xr_future_unref(a);
	free(x);
	free(y);
}

/* --- going wrong ---------------------------------------------------------------------- */

static void
other_count(void)
{
	struct late late;
	int32_t x[8] = { 0 };

	late_begin(&late);
	EXPECT(xr_coll_allreduce(all,
		       OP(I32(x, rank == 1 ? 5 : 4), .op = XR_SUM),
		       &err) == XR_E_CONFLICT);
	EXPECT(late_end(&late) < XR_SECONDS(1));
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_E_CONFLICT);
}

/* So long that a board does it in pieces: the whole is stated. */
static void
other_long_count(void)
{
	size_t count = rank == 1 ? 300001 : 300000;
	int32_t *x = calloc(count, sizeof(*x));

	EXPECT(x != NULL);
	EXPECT(xr_coll_allreduce(all, OP(I32(x, count), .op = XR_SUM), &err) ==
		XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
	free(x);
}

/* Rank 1 calls the form with a future, and the others wait. */
static void
other_form(void)
{
	struct xr_future *f = NULL;
	int32_t x[4] = { 0 };
	enum xr_status status;

	status = rank == 1 ?
		xr_coll_iallreduce(all, OP(I32(x, 4), .op = XR_SUM), &f, &err) :
		xr_coll_allreduce(all, OP(I32(x, 4), .op = XR_SUM), &err);
	if (status == XR_OK)
		status = xr_future_wait(f, XR_SECONDS(30), NULL, &err);
	xr_future_unref(f);
	EXPECT(status == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
}

static void
other_operation(void)
{
	int32_t x[8] = { 0 };
	struct xr_future *f = NULL;
	enum xr_status status;

	status = rank == 0 ?
		xr_coll_ibarrier(all, NULL, &f, &err) :
		xr_coll_ibcast(all, OP(I32(x, 8), .rank = rank), &f, &err);
	/* The others may have told before. */
	if (status == XR_OK)
		status = xr_future_wait(f, XR_SECONDS(20), NULL, &err);
	EXPECT(status == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
	xr_future_unref(f);
}

static void
late(void)
{
	enum xr_status status = XR_OK;

	if (rank != 2)
		status = xr_coll_barrier(all, OP(.timeout = XR_SECONDS(0.2)),
			&err);
	else
		while (status == XR_OK)
			status = xr_coll_send(all,
				OP(I32(NULL, 0), .rank = 0, .tag = 99), &err);
	EXPECT(status == XR_E_TIMEOUT);
	printf("rank %u: %s\n", rank, err.text);
}

/* Rank 1 is killed: @operation of the others fails, and within @limit. */
static void
lose_rank_1(enum xr_status (*operation)(void), int64_t limit)
{
	int64_t begun;

	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	if (rank == 1)
		kill(getpid(), SIGKILL);
	begun = now();
	EXPECT(operation() == XR_E_PEER_LOST);
	EXPECT(now() - begun < limit);
	printf("rank %u: %s\n", rank, err.text);
	_exit(0);
}

static enum xr_status
sum(void)
{
	int32_t *x = ref_numbers(70000, rank);

	return xr_coll_allreduce(all, OP(I32(x, 70000), .op = XR_SUM), &err);
}

static enum xr_status
meet(void)
{
	return xr_coll_barrier(all, OP(.timeout = XR_SECONDS(30)), &err);
}

static void
dead(void)
{
	lose_rank_1(sum, XR_SECONDS(5));
}

/* The others have sent all that they send. */
static void
dead_barrier(void)
{
	lose_rank_1(meet, XR_SECONDS(20));
}

/* Rank 2 never comes, and the others wait until the job is stopped. */
static void
hang(void)
{
	int32_t x = 1;

	if (rank == 2)
		pause();
	xr_coll_allreduce(all,
		OP(I32(&x, 1), .op = XR_SUM, .timeout = XR_TIMEOUT_NEVER),
		&err);
}

/* --- more than one ----------------------------------------------------------------------- */

static void
two_groups(void)
{
	struct xr_coll *other = group_of(NULL, 0);
	int32_t *x = ref_numbers(70000, rank), *y = ref_numbers(70000, rank);
	struct xr_future *f[2];

	for (int i = 0; i < 20; i++) {
		/* One begins with the one, the next with the other. */
		for (uint32_t k = 0; k < 2; k++)
			EXPECT(xr_coll_ibcast((k + rank) % 2 == 0 ? all : other,
				       OP(I32((k + rank) % 2 == 0 ? x : y,
						  70000),
					       .rank = (k + rank) % 2),
				       &f[k], &err) == XR_OK);
		for (int k = 0; k < 2; k++) {
			EXPECT(xr_future_wait(f[k], XR_SECONDS(20), NULL,
				       &err) == XR_OK);
			xr_future_unref(f[k]);
		}
		EXPECT(ref_holds(x, 70000, 0));
		EXPECT(ref_holds(y, 70000, 1));
	}
	xr_coll_free(other);
	free(x);
	free(y);
}

/* More than 2 GiB, of which each 1021st number is not 0. */
static void
huge(void)
{
	size_t count = ((size_t)256 << 20) + 1021;
	uint64_t *x = calloc(count, sizeof(*x));

	EXPECT(x != NULL);
	for (size_t i = 0; i < count && rank == 0; i += 1021)
		x[i] = i * 3 + 1;
	x[count - 1] = rank == 0;
	EXPECT(xr_coll_bcast(all,
		       OP(.data = x, .count = count, .dtype = XR_DT_U64),
		       &err) == XR_OK);
	for (size_t i = 0; i < count; i += 1021)
		EXPECT(x[i] == i * 3 + 1);
	EXPECT(x[count - 1] == 1);
	free(x);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "send", send_and_receive },
	{ "isend", without_waiting },
	{ "tags", by_tag },
	{ "other-length", other_length },
	{ "nothing", nothing_comes },
	{ "bcast", broadcast },
	{ "allgather", all_gather },
	{ "gather", gather },
	{ "scatter", scatter },
	{ "scatter-wide", scatter_wide },
	{ "types", every_type },
	{ "floats", floats },
	{ "sum", sum_of_ranks },
	{ "barriers", barriers },
	{ "some", some_of_all },
	{ "handles", handles },
	{ "other-count", other_count },
	{ "other-long-count", other_long_count },
	{ "other-form", other_form },
	{ "other-operation", other_operation },
	{ "late", late },
	{ "dead", dead },
	{ "dead-barrier", dead_barrier },
	{ "hang", hang },
	{ "two", two_groups },
	{ "huge", huge },
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
	EXPECT(xr_rpc_opts_init(tested_backend(), &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 2;
	opts.rpc = &rpc;
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
	all = group_of(NULL, 0);
	cases[i].run();
	xr_coll_free(all);
	all = NULL; /* what is not freed is seen to be lost */
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	return 0;
}
