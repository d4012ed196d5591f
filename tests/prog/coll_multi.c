/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_multi.c - ranks with two devices each that do things together.
 *
 *   xrun -n N coll_multi CASE [tcp]
 *
 * The library is compiled in, as its devices are none that a program could bring.
 * What a case did not expect ends it with status 1, and a line that says what.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xrun/coll.h>
#include <xrun/job.h>

#include "tests/prog/coll_ref.h"
#include "tests/unit/value_device.h"

#define EACH     2 /* tensors of a rank */
#define RANKS    8
#define ENTRIES  (RANKS * EACH)
#define HOST     (-1) /* a device: its memory */
#define PATIENCE XR_SECONDS(20)

static uint32_t rank, size;
static struct xr_world *world;
static struct xr_coll *all;
static struct xr_error err;

#define EXPECT(x) \
	do { \
		if (!(x)) \
			give_up(#x, __LINE__); \
	} while (0)

static void
give_up(const char *what, int line)
{
	fprintf(stderr, "rank %u: line %d: %s: %s\n", rank, line, what,
		err.text);
	_exit(1);
}

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Of all. */
static struct xr_coll *
group(void)
{
	struct xr_coll *coll = NULL;

	EXPECT(xr_coll_new(world,
		       &(struct xr_coll_opts){
			       .size = sizeof(struct xr_coll_opts),
			       .timeout = PATIENCE },
		       &coll, &err) == XR_OK);
	return coll;
}

/* --- a device that breaks -------------------------------------------------------- */

static struct {
	bool reads, writes;
	int32_t index;
	int good; /* copies before */
} breaks;

static bool
is_broken(bool is_broken, int32_t index)
{
	return is_broken && index == breaks.index && breaks.good-- <= 0;
}

static enum xr_status
to_host(void *ctx, void *host, const struct device_memory *from,
	struct xr_error *e)
{
	if (is_broken(breaks.reads, from->index))
		return fail(e, XR_E_DEVICE, "it fell off");
	return device_to_host(ctx, host, from, e);
}

static enum xr_status
from_host(void *ctx, const void *host, const struct device_memory *to,
	struct xr_error *e)
{
	if (is_broken(breaks.writes, to->index))
		return fail(e, XR_E_DEVICE, "it is full of dust");
	return device_from_host(ctx, host, to, e);
}

static const struct device_ops platform = {
	.alloc = device_alloc,
	.free = device_free,
	.copy_to_host = to_host,
	.copy_from_host = from_host,
};

/* --- memory that is short, of one thread ------------------------------------------ */

static _Thread_local unsigned until_short; /* allocations; 0: there is enough */
static bool was_short;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

static bool
is_short(void)
{
	if (until_short == 0 || --until_short > 0)
		return false;
	was_short = true;
	return true;
}

void *
__wrap_malloc(size_t bytes)
{
	return is_short() ? NULL : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t n, size_t bytes)
{
	return is_short() ? NULL : __real_calloc(n, bytes);
}

void *
__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return is_short() ? NULL : __real_aligned_alloc(align, bytes);
}

/* --- tensors ------------------------------------------------------------------------ */

#define MULTI(...) \
	(&(struct xr_coll_multi){ .size = sizeof(struct xr_coll_multi), \
		__VA_ARGS__ })
#define LIST(list, n) .tensors = (list), .count = (n)

static struct xr_value *
tensor(int32_t device, size_t count, enum xr_dtype dtype)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = dtype,
		.ndim = 1,
		.device_kind = device == HOST ? XR_DEVICE_CPU : XR_DEVICE_FAKE,
		.device_index = device == HOST ? 0 : device,
		.shape = { (int64_t)count },
	};
	struct xr_value *v = NULL;

	EXPECT(xr_tensor_new(&d, &v, &err) == XR_OK);
	return v;
}

/* Where its numbers can be seen. */
static void *
numbers_of(const struct xr_value *v, size_t *bytes)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	void *data = xr_tensor_data(v, NULL);

	EXPECT(xr_tensor_desc(v, &d) == XR_OK);
	*bytes = (size_t)xr_tensor_elements(&d) * xr_dtype_size(d.dtype);
	return d.device_kind == XR_DEVICE_CPU ? data : near(data);
}

/* Those of array @number. */
static void
fill(struct xr_value *v, uint32_t number)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	size_t bytes;
	void *data = numbers_of(v, &bytes);

	EXPECT(xr_tensor_desc(v, &d) == XR_OK);
	ref_fill(data, (size_t)d.shape[0], d.dtype, number);
}

static bool
has(const struct xr_value *v, const void *want)
{
	size_t bytes;
	void *data = numbers_of(v, &bytes);

	return bytes == 0 || memcmp(data, want, bytes) == 0;
}

static bool
has_array(const struct xr_value *v, uint32_t number)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	size_t bytes;
	bool good;
	void *want;

	EXPECT(xr_tensor_desc(v, &d) == XR_OK);
	numbers_of(v, &bytes);
	want = malloc(bytes + 1);
	EXPECT(want != NULL);
	ref_fill(want, (size_t)d.shape[0], d.dtype, number);
	good = has(v, want);
	free(want);
	return good;
}

/* This rank's, filled. */
static void
make(struct xr_value *list[EACH], size_t count, enum xr_dtype dtype)
{
	for (uint32_t j = 0; j < EACH; j++) {
		list[j] = tensor((int32_t)j, count, dtype);
		fill(list[j], rank * EACH + j);
	}
}

static void
drop(struct xr_value **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		xr_value_unref(list[i]);
}

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

/* --- what is refused ------------------------------------------------------------------ */

static struct xr_value *
with_gaps(void)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = XR_DT_I32,
		.ndim = 2,
		.device_kind = XR_DEVICE_FAKE,
		.device_index = 1,
		.shape = { 2, 2 },
		.strides = { 1, 2 },
	};
	struct xr_value *whole = tensor(1, 4, XR_DT_I32), *v = NULL;

	EXPECT(xr_tensor_view(whole, &d, &v, &err) == XR_OK);
	xr_value_unref(whole);
	return v;
}

static struct xr_value *
on_cuda(void)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = XR_DT_I32,
		.ndim = 1,
		.device_kind = XR_DEVICE_CUDA,
		.shape = { 4 },
		.strides = { 1 },
	};
	struct xr_tensor_memory memory = {
		.size = sizeof(memory),
		.data = (void *)4096,
		.bytes = 16,
	};
	struct xr_value *v = NULL;

	EXPECT(xr_tensor_wrap(&d, &memory, &v, &err) == XR_OK);
	return v;
}

/* Takes @b. */
static void
refuse_list(struct xr_value *a, struct xr_value *b, enum xr_status status,
	const char *why)
{
	struct xr_value *list[EACH] = { a, b };

	EXPECT(xr_coll_allreduce_multi(all,
		       MULTI(LIST(list, EACH), .op = XR_SUM), &err) == status);
	if (strstr(err.text, why) == NULL)
		fprintf(stderr, "rank %u: not '%s'\n", rank, why);
	EXPECT(strstr(err.text, why) != NULL);
	xr_value_unref(b);
}

static void
refuse_bcast(const struct xr_coll_multi *multi, const char *why)
{
	EXPECT(xr_coll_bcast_multi(all, multi, &err) == XR_E_INVAL);
	if (strstr(err.text, why) == NULL)
		fprintf(stderr, "rank %u: not '%s'\n", rank, why);
	EXPECT(strstr(err.text, why) != NULL);
}

static void
refused(void)
{
	struct xr_value *a = tensor(0, 4, XR_DT_I32), *host, *list[EACH];
	struct xr_value *out[ENTRIES] = { NULL };
	struct xr_value *const *lists[EACH] = { NULL, out };

	refuse_list(a, tensor(0, 4, XR_DT_I32), XR_E_INVAL,
		"tensors 0 and 1 lie on one device, fake:0");
	refuse_list(a, tensor(1, 5, XR_DT_I32), XR_E_INVAL,
		"tensors[1] has 5 i32, and tensors[0] 4 i32");
	refuse_list(a, tensor(1, 4, XR_DT_U32), XR_E_INVAL,
		"tensors[1] has 4 u32, and tensors[0] 4 i32");
	refuse_list(a, with_gaps(), XR_E_INVAL, "tensors[1] has gaps");
	refuse_list(a, xr_value_new_i64(3), XR_E_INVAL,
		"tensors[1] is no tensor");
	refuse_list(a, NULL, XR_E_INVAL, "tensors[1] is no tensor");
	refuse_list(a, on_cuda(), XR_E_NODEV, "tensors[1] lies on cuda:0");
	host = tensor(HOST, 4, XR_DT_I32);
	refuse_list(host, tensor(HOST, 4, XR_DT_I32), XR_E_INVAL,
		"one device, cpu:0");
	xr_value_unref(host);
	list[0] = a;
	list[1] = tensor(1, 4, XR_DT_I32);
	refuse_bcast(MULTI(LIST(list, EACH), .index = 2),
		"tensor 2 of 2: there is none");
	refuse_bcast(MULTI(LIST(list, EACH), .rank = 77),
		"rank 77 is no member");
	refuse_bcast(MULTI(LIST(list, 0)), "0 tensors");
	refuse_bcast(MULTI(LIST(NULL, EACH)), "tensors is NULL");
	refuse_bcast(MULTI(LIST(list, EACH), .lists = lists),
		"there are to be no lists");
	refuse_bcast(&(struct xr_coll_multi){ .size = 8, LIST(list, EACH) },
		"its size is 8");
	refuse_bcast(MULTI(LIST(list, EACH), .timeout = -9), "a timeout of -9");
	EXPECT(xr_coll_allgather_multi(all, MULTI(LIST(list, EACH)), &err) ==
		XR_E_INVAL);
	EXPECT(strstr(err.text, "there are no lists") != NULL);
	EXPECT(xr_coll_allgather_multi(all,
		       MULTI(LIST(list, EACH), .lists = lists),
		       &err) == XR_E_INVAL);
	EXPECT(strstr(err.text, "lists[1][0] is no tensor") != NULL);
	/* Nothing was done, and all goes on. */
	EXPECT(xr_coll_bcast_multi(all, MULTI(LIST(list, EACH)), &err) ==
		XR_OK);
	drop(list, EACH);
}

/* Each with another form of the same. */
static void
other(uint32_t count, uint32_t index, size_t elements)
{
	struct xr_value *list[EACH];
	int64_t begun;

	make(list, elements, XR_DT_F32);
	begun = now();
	EXPECT(xr_coll_bcast_multi(all,
		       MULTI(LIST(list, count), .index = index),
		       &err) == XR_E_CONFLICT);
	EXPECT(now() - begun < PATIENCE / 2);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_E_CONFLICT);
	drop(list, EACH);
}

static void
other_length(void)
{
	other(rank == 1 ? 1 : 2, 0, 4);
}

static void
other_index(void)
{
	other(2, rank == 1, 4);
}

static void
other_count(void)
{
	other(2, 0, rank == 1 ? 4300001 : 4);
}

/* A list is none to those who call it as one. */
static void
other_form(void)
{
	struct xr_value *list[EACH];
	float x[4] = { 0 };

	make(list, 4, XR_DT_F32);
	EXPECT((rank == 1 ? xr_coll_allreduce(all,
				    &(struct xr_coll_op){
					    .size = sizeof(struct xr_coll_op),
					    .dtype = XR_DT_F32,
					    .data = x,
					    .count = 4,
					    .op = XR_SUM },
				    &err) :
			    xr_coll_allreduce_multi(all,
				    MULTI(LIST(list, EACH), .op = XR_SUM),
				    &err)) == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
	drop(list, EACH);
}

/* --- going wrong -------------------------------------------------------------------------- */

/* Where @count is long, in the second piece. */
static void
break_device(size_t count)
{
	struct xr_value *list[EACH];
	int64_t begun;

	make(list, count, XR_DT_F64);
	begun = now();
	breaks.index = 1;
	breaks.good = count > 700000;
	EXPECT(xr_coll_allreduce_multi(all,
		       MULTI(LIST(list, EACH), .op = XR_SUM),
		       &err) == XR_E_DEVICE);
	EXPECT(now() - begun < PATIENCE / 2);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_E_DEVICE);
	drop(list, EACH);
}

static void
broken_read(void)
{
	breaks.reads = rank == 1;
	break_device(4);
}

static void
broken_write(void)
{
	breaks.writes = rank == 1;
	break_device(4);
}

static void
broken_piece(void)
{
	breaks.reads = rank == 1;
	break_device(750001);
}

static void
late(void)
{
	struct xr_value *list[EACH];
	int32_t x = 0;

	make(list, 4, XR_DT_F32);
	if (rank != 2) {
		EXPECT(xr_coll_bcast_multi(all,
			       MULTI(LIST(list, EACH),
				       .timeout = XR_SECONDS(0.2)),
			       &err) == XR_E_TIMEOUT);
	} else {
		/* Nobody sends, and the group is over. */
		EXPECT(xr_coll_recv(all,
			       &(struct xr_coll_op){
				       .size = sizeof(struct xr_coll_op),
				       .dtype = XR_DT_I32,
				       .data = &x,
				       .count = 1 },
			       NULL, &err) == XR_E_TIMEOUT);
	}
	printf("rank %u: %s\n", rank, err.text);
	drop(list, EACH);
}

/* What all have. */
static bool
agree(int32_t mine, int32_t of[RANKS])
{
	void *list[RANKS];
	bool same = true;

	for (uint32_t r = 0; r < size; r++)
		list[r] = &of[r];
	EXPECT(xr_coll_allgather(all,
		       &(struct xr_coll_op){ .size = sizeof(struct xr_coll_op),
			       .dtype = XR_DT_I32,
			       .data = &mine,
			       .count = 1,
			       .list = list },
		       &err) == XR_OK);
	for (uint32_t r = 0; r < size; r++)
		same &= of[r] == mine;
	return same;
}

/* In a group of its own, with one allocation of rank 1 failing. True: it was there. */
static bool
once_short(unsigned which, uint32_t *failed)
{
	struct xr_value *list[EACH], *out[ENTRIES];
	struct xr_value *const *lists[EACH] = { out, NULL };
	int32_t of[RANKS];
	struct xr_coll *coll = group();
	enum xr_status status;

	make(list, 20011, XR_DT_F16);
	for (uint32_t e = 0; e < size * EACH; e++)
		out[e] = tensor(0, 20011, XR_DT_F16);
	was_short = false;
	until_short = rank == 1 ? which : 0;
	status = xr_coll_allreduce_multi(coll,
		MULTI(LIST(list, EACH), .op = XR_SUM), &err);
	if (status == XR_OK)
		status = xr_coll_allgather_multi(coll,
			MULTI(LIST(list, EACH), .lists = lists), &err);
	until_short = 0;
	EXPECT(status == XR_OK || status == XR_E_NOMEM);
	EXPECT(agree(status, of));
	*failed += status == XR_E_NOMEM;
	drop(list, EACH);
	drop(out, size * EACH);
	xr_coll_free(coll);
	agree(was_short, of);
	return of[1] != 0;
}

static void
short_of_memory(void)
{
	uint32_t failed = 0;
	unsigned which = 1;

	while (once_short(which, &failed))
		which++;
	EXPECT(failed >= 6);
	printf("rank %u: %u of %u had no memory\n", rank, failed, which - 1);
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
	EXPECT(device_set_ops(XR_DEVICE_FAKE, &platform) == XR_OK);
	EXPECT(xr_rpc_opts_init(0, &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 2;
	opts.rpc = &rpc;
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
	EXPECT(size <= RANKS);
	all = group();
	cases[i].run();
	EXPECT(device_blocks == 0);
	xr_coll_free(all);
	all = NULL; /* what is not freed is seen to be lost */
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	return 0;
}
