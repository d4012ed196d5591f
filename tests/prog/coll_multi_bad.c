/* SPDX-License-Identifier: Apache-2.0 */
/* coll_multi_bad.c - lists that are refused, members that differ, devices and memory that
 * fail; see coll_multi.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prog/coll_multi.h"

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

void
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

void
other_length(void)
{
	other(rank == 1 ? 1 : 2, 0, 4);
}

void
other_index(void)
{
	other(2, rank == 1, 4);
}

void
other_count(void)
{
	other(2, 0, rank == 1 ? 4300001 : 4);
}

/* A list is none to those who call it as one. */
void
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

void
broken_read(void)
{
	breaks.reads = rank == 1;
	break_device(4);
}

void
broken_write(void)
{
	breaks.writes = rank == 1;
	break_device(4);
}

void
broken_piece(void)
{
	breaks.reads = rank == 1;
	break_device(750001);
}

void
late(void)
{
	struct xr_value *list[EACH];
	int32_t x = 0;

	make(list, 4, XR_DT_F32);
	if (rank != 2) {
		EXPECT(xr_coll_bcast_multi(all,
			       MULTI(LIST(list, EACH),
				       .timeout = XR_SECONDS(1)),
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
	struct xr_coll *coll = new_group();
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

void
short_of_memory(void)
{
	uint32_t failed = 0;
	unsigned which = 1;

	while (once_short(which, &failed))
		which++;
	EXPECT(failed >= 6);
	printf("rank %u: %u of %u had no memory\n", rank, failed, which - 1);
}
