/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_multi.c - operations of members that have several tensors each: what they
 * ask of the group, and what comes of it; the group's own operations are the test's. */
#include "tests/unit/at_end.h"
#include "tests/unit/coll_rig.h"

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/value_device.h"

#include "base/clock.h"
#include "base/hash.h"
#include "worker/coll/board.h"
#include "worker/coll/spot.h"
#include "worker/rpc/lead.h"

#define HOUR XR_SECONDS(3600)
#define SEEN 8

/* --- operations of the group (--wrap) ------------------------------------------------ */

static struct {
	char name[128];
	uint64_t code;
	bool is_barrier;
	struct xr_coll_op op;
	uint8_t data[64]; /* before it */
} seen[SEEN];

static unsigned seen_count, by_board;
static enum xr_status answer[SEEN];
static uint8_t result[64]; /* of the first; over its data */
static size_t result_bytes;
static bool gathers;
static bool heard; /* others are to hear that the group has failed */

enum xr_status __wrap_op_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *why);
enum xr_status __wrap_board_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *why);
void __wrap_team_tell(struct xr_coll *team);
void __real_free(void *p);
void __wrap_free(void *p);

static __thread unsigned freed; /* by this thread */

void
__wrap_free(void *p)
{
	freed += p != NULL;
	__real_free(p);
}

/* Element e of what place k has is 100 * k + e. */
static void
gather(const struct xr_coll_op *call)
{
	for (int32_t k = 0; k < 4; k++)
		for (int32_t e = 0; e < (int32_t)call->count; e++)
			((int32_t *)call->list[k])[e] = 100 * k + e;
}

enum xr_status
__wrap_op_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *why)
{
	unsigned i = seen_count++;
	size_t len = call->count * xr_dtype_size(call->dtype);

	cr_assert_lt(i, SEEN);
	cr_expect_eq(team, group);
	snprintf(seen[i].name, sizeof(seen[i].name), "%s", plan->name);
	seen[i].code = plan->code;
	seen[i].is_barrier = plan->shows == SHOWS_NOTHING;
	seen[i].op = *call;
	if (len > sizeof(seen[i].data))
		len = sizeof(seen[i].data);
	if (len > 0)
		memcpy(seen[i].data, call->data, len);
	if (i == 0 && gathers)
		gather(call);
	else if (i == 0 && result_bytes > 0)
		memcpy(call->data, result, result_bytes);
	return answer[i] == XR_OK ? XR_OK : fail(why, answer[i], "not so");
}

enum xr_status
__wrap_board_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *why)
{
	by_board++;
	return __wrap_op_run(team, plan, call, why);
}

void
__wrap_team_tell(struct xr_coll *team)
{
	cr_expect_eq(team, group);
	heard = true;
}

/* --- tensors ------------------------------------------------------------------------- */

#define HOST (-1)

static struct xr_value *tensors[3];
static struct xr_coll_multi multi;

static struct xr_value *
tensor(int32_t device, int64_t count, enum xr_dtype dtype)
{
	struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = dtype,
		.ndim = 1,
		.device_kind = device == HOST ? XR_DEVICE_CPU : XR_DEVICE_FAKE,
		.device_index = device == HOST ? 0 : device,
		.shape = { count } };
	struct xr_value *v = NULL;

	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK, "%s", err.text);
	return v;
}

static void *
numbers(const struct xr_value *v)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };
	void *data = xr_tensor_data(v, NULL);

	cr_assert_eq(xr_tensor_desc(v, &d), XR_OK);
	return d.device_kind == XR_DEVICE_CPU ? data : near(data);
}

/* Two of three elements each: 1 2 3 and 11 12 13. */
static void
make(enum xr_dtype dtype)
{
	for (int32_t j = 0; j < 2; j++) {
		xr_value_unref(tensors[j]);
		tensors[j] = tensor(j, 3, dtype);
		for (int32_t e = 0; e < 3; e++)
			if (dtype == XR_DT_I32)
				((int32_t *)numbers(tensors[j]))[e] =
					10 * j + e + 1;
			else
				((float *)numbers(tensors[j]))[e] =
					(float)(10 * j + e + 1);
	}
	device_copies = 0;
}

static void
begin(void)
{
	coll_begin();
	device_set_ops(XR_DEVICE_FAKE, &device_ops);
	make(XR_DT_I32);
	multi = (struct xr_coll_multi){ .size = sizeof(multi),
		.count = 2,
		.tensors = tensors,
		.rank = 10,
		.index = 1,
		.op = XR_SUM };
	err = (struct xr_error){ 0 };
	heard = false;
}

static void
end(void)
{
	for (int j = 0; j < 3; j++)
		xr_value_unref(tensors[j]);
	AT_END(device_blocks == 0);
	coll_end();
}

TestSuite(coll_multi, .timeout = 20, .init = begin, .fini = end);

static void
expect_numbers(const struct xr_value *v, int32_t a, int32_t b, int32_t c)
{
	const int32_t *n = numbers(v);

	cr_expect(n[0] == a && n[1] == b && n[2] == c, "%d %d %d", n[0], n[1],
		n[2]);
}

static void
set_result(int32_t a, int32_t b, int32_t c)
{
	const int32_t n[] = { a, b, c };

	memcpy(result, n, sizeof(n));
	result_bytes = sizeof(n);
}

/* All was done, in so many operations and the last one, in which all meet. */
static void
expect_done(unsigned pieces, const char *text)
{
	const struct hash_seed seed = { { 0 } };
	uint64_t hash = hash_bytes(&seed, text, strlen(text));

	cr_expect(!heard);
	cr_assert_eq(seen_count, pieces + 1);
	for (unsigned i = 0; i <= pieces; i++) {
		cr_expect_str_eq(seen[i].name, text);
		cr_expect_eq(seen[i].code, PLAN_TOLD | (hash + i));
		cr_expect_eq(seen[i].is_barrier, i == pieces);
		cr_expect_eq(seen[i].op.size, sizeof(seen[i].op));
		cr_expect_eq(seen[i].op.rank, multi.rank);
		cr_expect_eq(seen[i].op.timeout, XR_TIMEOUT_NEVER);
	}
	cr_expect_eq(seen[pieces].op.dtype, XR_DT_U8);
	cr_expect_eq(seen[pieces].op.count, 0);
	cr_expect_eq(group->failed, XR_OK);
}

/* --- what is done -------------------------------------------------------------------- */

Test(coll_multi, a_root_broadcasts_one_of_its_own)
{
	static const int32_t want[] = { 11, 12, 13 };

	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK, "%s",
		err.text);
	expect_done(1, "broadcast_multi of 2 x 3 i32, rank 10, tensor 1");
	cr_expect_eq(seen[0].op.count, 3);
	cr_expect_eq(seen[0].op.dtype, XR_DT_I32);
	cr_expect_eq(memcmp(seen[0].data, want, sizeof(want)), 0);
	expect_numbers(tensors[0], 11, 12, 13);
	expect_numbers(tensors[1], 11, 12, 13);
	cr_expect_eq(device_copies, 2, "one read, one written");
	cr_expect_eq(by_board, 0);
}

Test(coll_multi, all_tensors_get_what_another_broadcasts)
{
	multi.rank = 12;
	set_result(7, 8, 9);
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	expect_done(1, "broadcast_multi of 2 x 3 i32, rank 12, tensor 1");
	expect_numbers(tensors[0], 7, 8, 9);
	expect_numbers(tensors[1], 7, 8, 9);
	cr_expect_eq(device_copies, 2);
}

Test(coll_multi, what_a_board_can_do_goes_by_that)
{
	group->board = (void *)&multi;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	group->board = NULL;
	cr_expect_eq(by_board, 2);
}

Test(coll_multi, all_are_combined)
{
	static const int32_t want[] = { 12, 14, 16 };

	set_result(70, 80, 90);
	cr_expect_eq(xr_coll_allreduce_multi(group, &multi, &err), XR_OK);
	expect_done(1, "all_reduce_multi of 2 x 3 i32, sum");
	cr_expect_eq(memcmp(seen[0].data, want, sizeof(want)), 0);
	cr_expect_eq(seen[0].op.op, XR_SUM);
	cr_expect_eq(seen[0].op.dtype, XR_DT_I32);
	expect_numbers(tensors[0], 70, 80, 90);
	expect_numbers(tensors[1], 70, 80, 90);
	cr_expect_eq(device_copies, 4);
}

/* Of four members with two each. */
Test(coll_multi, an_average_is_of_all_tensors)
{
	const float sum[] = { 8, 16, 24 }, want[] = { 1, 2, 3 };

	make(XR_DT_F32);
	multi.op = XR_AVG;
	memcpy(result, sum, sizeof(sum));
	result_bytes = sizeof(sum);
	cr_expect_eq(xr_coll_allreduce_multi(group, &multi, &err), XR_OK);
	expect_done(1, "all_reduce_multi of 2 x 3 f32, average");
	cr_expect_eq(seen[0].op.op, XR_SUM);
	for (int j = 0; j < 2; j++)
		cr_expect_eq(memcmp(numbers(tensors[j]), want, sizeof(want)),
			0);
}

Test(coll_multi, what_is_short_is_combined_as_what_is_wide)
{
	const float sum[] = { 8, 16, 24 };
	const uint16_t want[] = { 0x3f80, 0x4000, 0x4040 };

	for (int j = 0; j < 2; j++) {
		xr_value_unref(tensors[j]);
		tensors[j] = tensor(j, 3, XR_DT_BF16);
		memset(numbers(tensors[j]), 0, 6);
	}
	multi.op = XR_AVG;
	memcpy(result, sum, sizeof(sum));
	result_bytes = sizeof(sum);
	cr_expect_eq(xr_coll_allreduce_multi(group, &multi, &err), XR_OK);
	cr_expect_eq(seen[0].op.dtype, XR_DT_F32);
	for (int j = 0; j < 2; j++)
		cr_expect_eq(memcmp(numbers(tensors[j]), want, sizeof(want)),
			0);
}

Test(coll_multi, only_the_root_gets_what_is_reduced_to_it)
{
	set_result(70, 80, 90);
	multi.op = XR_MAX;
	cr_expect_eq(xr_coll_reduce_multi(group, &multi, &err), XR_OK);
	expect_done(1, "reduce_multi of 2 x 3 i32, max, rank 10, tensor 1");
	expect_numbers(tensors[0], 1, 2, 3);
	expect_numbers(tensors[1], 70, 80, 90);
	cr_expect_eq(device_copies, 3);
	seen_count = 0;
	device_copies = 0;
	multi.rank = 13;
	cr_expect_eq(xr_coll_reduce_multi(group, &multi, &err), XR_OK);
	expect_numbers(tensors[0], 1, 2, 3);
	expect_numbers(tensors[1], 70, 80, 90);
	cr_expect_eq(device_copies, 2);
}

Test(coll_multi, what_is_gathered_is_in_the_order_of_members_and_tensors)
{
	static const int32_t want[] = { 1, 2, 3, 11, 12, 13 };
	struct xr_value *list[8];
	struct xr_value *const *lists[] = { NULL, list };
	struct xr_value *const *first_only[] = { list, NULL };

	for (int i = 0; i < 8; i++)
		list[i] = tensor(HOST, 3, XR_DT_I32);
	multi.lists = lists;
	gathers = true;
	cr_expect_eq(xr_coll_allgather_multi(group, &multi, &err), XR_OK, "%s",
		err.text);
	expect_done(1, "all_gather_multi of 2 x 3 i32");
	cr_expect_eq(seen[0].op.count, 6);
	cr_expect_eq(seen[0].op.dtype, XR_DT_I32);
	cr_expect_eq(memcmp(seen[0].data, want, sizeof(want)), 0);
	for (int32_t i = 0; i < 8; i++) {
		int32_t first = 100 * (i / 2) + 3 * (i % 2);

		expect_numbers(list[i], first, first + 1, first + 2);
		memset(numbers(list[i]), 0, 12);
	}
	expect_numbers(tensors[0], 1, 2, 3);
	seen_count = 0;
	multi.lists = first_only;
	cr_expect_eq(xr_coll_allgather_multi(group, &multi, &err), XR_OK);
	for (int32_t i = 0; i < 8; i++) {
		int32_t first = 100 * (i / 2) + 3 * (i % 2);

		expect_numbers(list[i], first, first + 1, first + 2);
		xr_value_unref(list[i]);
	}
}

Test(coll_multi, what_is_long_goes_in_pieces)
{
	static const size_t most = (16U << 20) / 4;
	struct xr_value *list[1] = { tensor(0, (int64_t)most + 2, XR_DT_I32) };
	int32_t *n = numbers(list[0]);

	n[0] = 3;
	n[most] = 4;
	n[most + 1] = 5;
	multi.tensors = list;
	multi.count = 1;
	multi.index = 0;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	expect_done(2, "broadcast_multi of 1 x 4194306 i32, rank 10, tensor 0");
	cr_expect_eq(seen[0].op.count, most);
	cr_expect_eq(seen[1].op.count, 2);
	cr_expect_eq(((int32_t *)seen[0].data)[0], 3);
	cr_expect_eq(((int32_t *)seen[1].data)[0], 4);
	cr_expect_eq(((int32_t *)seen[1].data)[1], 5);
	/* None follows one that failed. */
	seen_count = 0;
	answer[0] = XR_E_CONFLICT;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_CONFLICT);
	cr_expect_eq(seen_count, 1);
	xr_value_unref(list[0]);
}

Test(coll_multi, tensors_of_nothing_meet)
{
	struct xr_value *list[1] = { tensor(0, 0, XR_DT_I32) };

	multi.tensors = list;
	multi.count = 1;
	multi.index = 0;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	expect_done(1, "broadcast_multi of 1 x 0 i32, rank 10, tensor 0");
	cr_expect_eq(seen[0].op.count, 0);
	xr_value_unref(list[0]);
}

Test(coll_multi, a_tensor_can_be_one_byte)
{
	struct xr_value *list[2] = { tensor(0, 1, XR_DT_U8),
		tensor(1, 1, XR_DT_U8) };

	*(uint8_t *)numbers(list[0]) = 0;
	*(uint8_t *)numbers(list[1]) = 200;
	multi.tensors = list;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	cr_expect_eq(*(uint8_t *)numbers(list[0]), 200);
	cr_expect_eq(seen[0].data[0], 200);
	xr_value_unref(list[0]);
	xr_value_unref(list[1]);
}

Test(coll_multi, all_pieces_have_one_time)
{
	multi.timeout = HOUR;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	cr_expect(seen[0].op.timeout > 0 && seen[0].op.timeout <= HOUR);
	cr_expect(seen[1].op.timeout > 0 &&
		seen[1].op.timeout <= seen[0].op.timeout);
	seen_count = 0;
	multi.timeout = 1;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	cr_expect_eq(seen[1].op.timeout, 1, "what is over is no default");
}

Test(coll_multi, memory_of_a_call_is_given_back)
{
	struct xr_value *list[8];
	struct xr_value *const *lists[] = { list, list };

	for (int i = 0; i < 8; i++)
		list[i] = tensor(HOST, 3, XR_DT_I32);
	multi.lists = lists;
	/* What is made once is made now. */
	cr_expect_eq(xr_coll_allgather_multi(group, &multi, &err), XR_OK);
	until_short = 1000;
	freed = 0;
	cr_expect_eq(xr_coll_allgather_multi(group, &multi, &err), XR_OK);
	cr_expect_eq(freed, 1000 - until_short, "%u of %u", freed,
		1000 - until_short);
	until_short = 0;
	cr_expect_eq(atomic_load(&group->refs), 1);
	for (int i = 0; i < 8; i++)
		xr_value_unref(list[i]);
}

/* --- what fails ---------------------------------------------------------------------- */

Test(coll_multi, a_device_that_fails_fails_the_group)
{
	device_broken = true;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_DEVICE);
	device_broken = false;
	cr_expect_str_eq(err.text,
		"rank 10: broadcast_multi of 2 x 3 i32, rank 10, tensor 1: fake:1: fake:1 fell off");
	cr_expect_eq(group->failed, XR_E_DEVICE);
	cr_expect_str_eq(group->why, err.text);
	cr_expect(heard);
	cr_expect_eq(seen_count, 0);
}

Test(coll_multi, what_the_group_says_is_passed_on)
{
	answer[0] = XR_E_CONFLICT;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "not so");
	cr_expect_eq(group->failed, XR_OK);
	cr_expect_eq(seen_count, 1);
	expect_numbers(tensors[0], 1, 2, 3);
	answer[0] = XR_OK;
	answer[2] = XR_E_TIMEOUT;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_TIMEOUT);
	cr_expect(heard);
}

/* If it has not failed already. */
Test(coll_multi, memory_that_is_short_in_the_group_fails_it)
{
	answer[0] = answer[1] = XR_E_NOMEM;
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text,
		"rank 10: broadcast_multi of 2 x 3 i32, rank 10, tensor 1: not so");
	cr_expect_eq(group->failed, XR_E_NOMEM);
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "not so");
}

Test(coll_multi, memory_that_is_short_here_fails_the_group)
{
	static const char *const texts[] = {
		NULL, "rank 10: broadcast_multi: out of memory",
		"rank 10: broadcast_multi of 2 x 3 i32, rank 10, tensor 1: out of memory",
		"rank 10: broadcast_multi of 2 x 3 i32, rank 10, tensor 1: out of memory"
	};

	/* What is made once is made now. */
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_OK);
	seen_count = 0;
	for (unsigned at = 1; at < 4; at++) {
		group->failed = XR_OK;
		until_short = at;
		cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err),
			XR_E_NOMEM);
		until_short = 0;
		cr_expect_str_eq(err.text, texts[at]);
		cr_expect_str_eq(group->why, texts[at]);
		cr_expect_eq(group->failed, XR_E_NOMEM);
	}
	cr_expect_eq(seen_count, 0);
}

Test(coll_multi, a_short_function_may_not_wait)
{
	lead_deliver_begin();
	cr_expect_eq(xr_coll_bcast_multi(group, &multi, &err), XR_E_STATE);
	lead_deliver_end();
	cr_expect_str_eq(err.text, "a short function or callback may not wait");
	cr_expect_eq(group->failed, XR_OK);
	cr_expect(heard);
	cr_expect_eq(seen_count, 0);
}

/* --- what may be called -------------------------------------------------------------- */

typedef enum xr_status multi_fn(struct xr_coll *coll,
	const struct xr_coll_multi *call, struct xr_error *why);

static void
expect_refused(multi_fn *fn, struct xr_coll_multi call, enum xr_status status,
	const char *text)
{
	err = (struct xr_error){ 0 };
	heard = false;
	cr_expect_eq(fn(group, &call, &err), status);
	cr_expect_str_eq(err.text, text);
	cr_expect(heard);
	cr_expect_eq(seen_count, 0);
	cr_expect_eq(group->failed, XR_OK);
}

#define REFUSED(name, field, value, text) \
	do { \
		struct xr_coll_multi with = multi; \
\
		with.field = (value); \
		expect_refused(xr_coll_##name##_multi, with, XR_E_INVAL, \
			text); \
	} while (0)

Test(coll_multi, what_makes_no_sense_is_refused)
{
	struct xr_value *const *lists[] = { NULL, NULL };
	struct xr_value *list[8] = { tensors[0] };
	char text[64];

	snprintf(text, sizeof(text), "struct xr_coll_multi: its size is %zu",
		sizeof(multi) - 1);
	REFUSED(bcast, size, sizeof(multi) - 1, text);
	cr_expect_eq(xr_coll_bcast_multi(group, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "struct xr_coll_multi: its size is 0");
	REFUSED(bcast, timeout, XR_TIMEOUT_DEFAULT - 1, "a timeout of -2 ns");
	REFUSED(bcast, count, 0,
		"broadcast_multi: 0 tensors: 1 to 1024 are fine");
	REFUSED(bcast, count, 1025,
		"broadcast_multi: 1025 tensors: 1 to 1024 are fine");
	REFUSED(bcast, tensors, NULL, "broadcast_multi: tensors is NULL");
	REFUSED(reduce, lists, lists, "reduce_multi: there are to be no lists");
	REFUSED(allgather, lists, NULL, "all_gather_multi: there are no lists");
	REFUSED(bcast, rank, 4, "rank 4 is no member of the group");
	REFUSED(reduce, index, 2, "reduce_multi: tensor 2 of 2: there is none");
	REFUSED(allreduce, op, XR_AVG,
		"all_reduce_multi: there is no average of i32");
	multi.count = 1;
	REFUSED(allreduce, op, XR_AVG,
		"all_reduce_multi: there is no average of i32");
	multi.count = 2;
	multi.lists = lists;
	lists[1] = list;
	expect_refused(xr_coll_allgather_multi, multi, XR_E_INVAL,
		"all_gather_multi: lists[1][1] is no tensor");
	group->me = -1;
	expect_refused(xr_coll_bcast_multi, multi, XR_E_NOTMEMBER,
		"this rank is no member of the group");
	group->me = 0;
}

Test(coll_multi, tensors_that_are_not_alike_are_refused)
{
	struct xr_value *list[3] = { tensors[0], NULL, tensors[0] };

	multi.tensors = list;
	expect_refused(xr_coll_bcast_multi, multi, XR_E_INVAL,
		"broadcast_multi: tensors[1] is no tensor");
	tensors[2] = list[1] = tensor(1, 4, XR_DT_I32);
	expect_refused(xr_coll_bcast_multi, multi, XR_E_INVAL,
		"broadcast_multi: tensors[1] has 4 i32, and tensors[0] 3 i32");
	xr_value_unref(tensors[2]);
	tensors[2] = list[1] = tensor(HOST, 3, XR_DT_F32);
	expect_refused(xr_coll_bcast_multi, multi, XR_E_INVAL,
		"broadcast_multi: tensors[1] has 3 f32, and tensors[0] 3 i32");
	list[1] = tensors[1];
	multi.count = 3;
	expect_refused(xr_coll_bcast_multi, multi, XR_E_INVAL,
		"broadcast_multi: tensors 0 and 2 lie on one device, fake:0");
}

/* --- where tensors lie --------------------------------------------------------------- */

/* Of a view of the host's memory, with these lengths and strides. */
static enum xr_status
look_at(const int64_t shape[2], const int64_t strides[2], uint64_t offset,
	struct spot *spot)
{
	struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = XR_DT_I32,
		.ndim = 2,
		.device_kind = XR_DEVICE_CPU,
		.shape = { shape[0], shape[1] },
		.strides = { strides[0], strides[1] },
		.offset = offset };
	struct xr_value *of = tensor(HOST, 64, XR_DT_I32), *view = NULL;
	enum xr_status status;

	cr_assert_eq(xr_tensor_view(of, &d, &view, &err), XR_OK, "%s",
		err.text);
	status = spot_init(spot, view, &err);
	if (status == XR_OK)
		cr_expect_eq(spot->all.data, (char *)numbers(of) + offset);
	xr_value_unref(view);
	xr_value_unref(of);
	return status;
}

#define LOOK(a, b, c, d) \
	look_at((const int64_t[]){ a, b }, (const int64_t[]){ c, d }, 8, &spot)

Test(coll_multi, elements_follow_each_other)
{
	struct spot spot;

	cr_expect_eq(LOOK(2, 3, 3, 1), XR_OK);
	cr_expect_eq(spot.elements, 6);
	cr_expect_eq(spot.all.len, 24);
	cr_expect_eq(LOOK(2, 3, 4, 1), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"has gaps, or is not row-major: its elements are to follow each other");
	cr_expect_eq(LOOK(3, 2, 1, 3), XR_E_INVAL);
	cr_expect_eq(LOOK(3, 2, 2, 2), XR_E_INVAL);
	cr_expect_eq(LOOK(1, 3, 7, 1), XR_OK);
	cr_expect_eq(LOOK(3, 1, 1, 7), XR_OK);
	cr_expect_eq(LOOK(0, 3, 4, 2), XR_OK);
	cr_expect_eq(spot.elements, 0);
}

Test(coll_multi, the_host_is_one_device_among_others)
{
	struct spot a = { .kind = XR_DEVICE_CPU }, b = a;

	b.all.index = 1;
	cr_expect(spot_is_near(&a, &b));
	a.kind = XR_DEVICE_FAKE;
	cr_expect(!spot_is_near(&a, &b));
	cr_expect(!spot_is_near(&b, &a));
	b.kind = XR_DEVICE_FAKE;
	cr_expect(!spot_is_near(&a, &b));
	a.all.index = 1;
	cr_expect(spot_is_near(&a, &b));
}
