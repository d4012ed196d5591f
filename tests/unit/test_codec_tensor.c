/* SPDX-License-Identifier: Apache-2.0 */
/* test_codec_tensor.c - tensors in messages: views, what is sent of a storage, and
 * what it costs. */
#include <time.h>

#include <sys/resource.h>

#include "tests/unit/codec_rig.h"

TestSuite(codec_tensor, .init = begin, .fini = end);

/* --- tensors --------------------------------------------------------------- */

static struct xr_value *
tensor_of_dtype(enum xr_dtype dtype, uint32_t ndim, int64_t rows)
{
	struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = dtype,
		.ndim = ndim,
		.shape = { rows, 3, 2 } };
	struct xr_value *v = NULL;
	size_t bytes;
	char *data;

	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK);
	data = xr_tensor_data(v, &bytes);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)(3 * i + 1);
	return v;
}

/* The same elements, seen in the same way. */
static void
same_tensor(struct xr_value *v, struct xr_value *got)
{
	struct xr_tensor_desc a = { .size = sizeof(a) };
	struct xr_tensor_desc b = { .size = sizeof(b) };

	cr_expect(xr_value_equal(v, got));
	cr_assert_eq(xr_tensor_desc(v, &a), XR_OK);
	cr_assert_eq(xr_tensor_desc(got, &b), XR_OK);
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	cr_expect_eq((uintptr_t)xr_tensor_data(got, NULL) % 64, 0);
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(codec_tensor, AC_K2_tensors_of_every_dtype_and_size_come_back)
{
	for (int dtype = XR_DT_BOOL; dtype <= XR_DT_C128; dtype++)
		for (uint32_t ndim = 0; ndim < 4; ndim++) {
			struct xr_value *v =
				tensor_of_dtype((enum xr_dtype)dtype, ndim, 5);

			same_tensor(v, again(v));
			v = tensor_of_dtype((enum xr_dtype)dtype, ndim, 0);
			same_tensor(v, again(v));
		}
}

Test(codec_tensor, AC_K2_views_keep_their_strides)
{
	struct xr_value *of = numbers(6, 5), *v;

	v = view(of, PAIR(5, 6), PAIR(1, 5), 0);
	same_tensor(v, again(v));
	v = view(of, PAIR(2, 2), PAIR(10, 3), 8);
	same_tensor(v, again(v));
	v = view(of, PAIR(7, 9), PAIR(0, 0), 12);
	same_tensor(v, again(v));
	v = view(of, PAIR(0, 9), PAIR(3, 1), 12);
	same_tensor(v, again(v));
	xr_value_unref(of);
}

/* A message of one f32 of a storage of 64 bytes. */
static struct message
hand_tensor(uint64_t offset, int64_t dim, int64_t stride)
{
	hand_begin();
	hand_entry(FORMAT_HERE, FORMAT_TENSOR, 64);
	hand8(XR_TENSOR);
	hand8(XR_DT_F32);
	hand8(1);
	hand32(0);
	hand64(offset);
	hand64((uint64_t)dim);
	hand64((uint64_t)stride);
	return hand_finish(64);
}

Test(codec_tensor, AC_K2_views_outside_of_their_storage_are_refused)
{
	struct xr_value *v = NULL;

	cr_assert_eq(read_message(hand_tensor(4, 15, 1), &v), XR_OK, "%s",
		err.text);
	xr_value_unref(v);
	refused_as(hand_tensor((uint64_t)-4, 1, 1), XR_E_DECODE,
		"offset 18446744073709551612 is outside of 64 bytes");
	refused_as(hand_tensor(64, 1, 1), XR_E_DECODE, "elements outside");
	refused_as(hand_tensor(2, 1, 1), XR_E_DECODE, "between two f32");
	refused_as(hand_tensor(0, 17, 1), XR_E_DECODE, "elements outside");
	refused_as(hand_tensor(0, 2, 16), XR_E_DECODE, "elements outside");
	refused_as(hand_tensor(60, 2, -1), XR_E_DECODE, "stride 0 is -1");
	refused_as(hand_tensor(0, -1, 1), XR_E_DECODE, "dimension 0 is -1");
}

Test(codec_tensor, AC_K2_storage_stays_shared_within_a_message)
{
	struct xr_value *of = numbers(6, 5), *other = numbers(6, 5);
	struct xr_value *items[] = {
		view(of, PAIR(1, 5), PAIR(5, 1), 20),
		of,
		other,
		view(of, PAIR(6, 1), PAIR(5, 1), 0),
		xr_value_ref(of),
	};
	struct xr_value *v = xr_value_new_list_of(items, 5), *got = again(v);
	float *data = xr_tensor_data(xr_value_at(got, 0), NULL);

	cr_expect(xr_value_equal(v, got));
	cr_expect(xr_tensor_same(xr_value_at(got, 0), xr_value_at(got, 1)));
	cr_expect(xr_tensor_same(xr_value_at(got, 0), xr_value_at(got, 3)));
	cr_expect_not(xr_tensor_same(xr_value_at(got, 0), xr_value_at(got, 2)));
	cr_expect_eq(xr_value_at(got, 1), xr_value_at(got, 4),
		"the same tensor twice is one");
	data[5] = 99;
	cr_expect_eq(*(float *)xr_tensor_data(xr_value_at(got, 3), NULL), 0);
	cr_expect_eq(((float *)xr_tensor_data(xr_value_at(got, 1), NULL))[5],
		99);
	xr_value_unref(v);
	xr_value_unref(got);
}

/* --- what is written ------------------------------------------------------- */

/* Bytes of the message of one tensor, which is let go. */
static size_t
size_of(struct xr_value *v, struct xr_value **got)
{
	struct message m = message_of(v, NULL);

	cr_assert_eq(read_message(m, got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, *got));
	free(m.data);
	xr_value_unref(v);
	return m.len;
}

Test(codec_tensor, AC_R16_ten_elements_of_a_mebibyte_are_less_than_a_kibibyte)
{
	struct xr_value *of = numbers(512, 512), *got;
	struct xr_tensor_desc d = { .size = sizeof(d) };

	cr_expect(lt(sz,
		size_of(view(of, PAIR(1, 10), PAIR(1, 1), 400000), &got),
		1024));
	xr_value_unref(got);
	cr_expect(lt(sz,
		size_of(view(of, PAIR(1, 10), PAIR(1, 25000), 0), &got), 1024));
	xr_value_unref(got);
	cr_expect(lt(sz, size_of(view(of, PAIR(5, 2), PAIR(3, 1), 2052), &got),
		1024));
	xr_tensor_desc(got, &d);
	cr_expect_eq(d.strides[0], 3, "small gaps are kept");
	xr_value_unref(got);
	cr_expect(lt(sz, size_of(view(of, PAIR(0, 2), PAIR(2, 1), 2052), &got),
		1024));
	xr_value_unref(got);
	xr_value_unref(of);
}

Test(codec_tensor, AC_R16_a_view_that_is_not_contiguous_keeps_its_strides)
{
	struct xr_value *of = numbers(64, 64), *got;
	struct xr_tensor_desc d = { .size = sizeof(d) };
	size_t len = size_of(view(of, PAIR(64, 64), PAIR(1, 64), 0), &got);

	cr_expect(gt(sz, len, 64 * 64 * 4));
	xr_tensor_desc(got, &d);
	cr_expect_eq(d.strides[0], 1);
	cr_expect_eq(d.strides[1], 64);
	xr_value_unref(got);
	xr_value_unref(of);
}

Test(codec_tensor, a_storage_is_trimmed_from_8_kib_and_half_of_it_on)
{
	static const struct {
		int64_t rows, used;
		bool trimmed;
	} rows[] = {
		{ 2047, 1, false },
		{ 2048, 1, true },
		{ 2048, 1024, true },
		{ 2048, 1025, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xr_value *of = numbers(1, rows[i].rows), *got;
		size_t bytes;

		size_of(view(of, PAIR(1, rows[i].used), PAIR(1, 1), 0), &got);
		xr_tensor_data(got, &bytes);
		cr_expect_eq(bytes,
			(size_t)(rows[i].trimmed ? rows[i].used :
						   rows[i].rows) *
				4,
			"%zu: %zu", i, bytes);
		xr_value_unref(got);
		xr_value_unref(of);
	}
}

Test(codec_tensor, views_that_share_a_storage_share_what_is_sent_of_it)
{
	struct xr_value *of = numbers(512, 512);
	struct xr_value *items[] = {
		view(of, PAIR(1, 10), PAIR(1, 1), 4000),
		view(of, PAIR(1, 10), PAIR(1, 30), 4020),
		view(of, PAIR(1, 0), PAIR(1, 1), 1000000),
	};
	struct xr_value *v = xr_value_new_list_of(items, 3), *got;

	cr_expect(lt(sz, size_of(v, &got), 2048));
	cr_expect(xr_tensor_same(xr_value_at(got, 0), xr_value_at(got, 1)));
	cr_expect(xr_tensor_same(xr_value_at(got, 0), xr_value_at(got, 2)));
	((float *)xr_tensor_data(xr_value_at(got, 0), NULL))[0] = 1;
	xr_value_unref(got);
	xr_value_unref(of);
}

Test(codec_tensor, each_storage_is_packed_by_its_own_view)
{
	struct xr_value *of[] = { numbers(512, 512), numbers(512, 512) };
	struct xr_value *items[] = {
		view(of[0], PAIR(1, 4), PAIR(1, 60000), 0),
		view(of[1], PAIR(1, 10), PAIR(1, 25000), 4),
	};
	struct xr_value *v = xr_value_new_list_of(items, 2), *got;
	size_t bytes;

	cr_expect(lt(sz, size_of(v, &got), 1024));
	xr_tensor_data(xr_value_at(got, 0), &bytes);
	cr_expect(eq(sz, bytes, 4 * sizeof(float)));
	xr_tensor_data(xr_value_at(got, 1), &bytes);
	cr_expect(eq(sz, bytes, 10 * sizeof(float)));
	xr_value_unref(got);
	xr_value_unref(of[0]);
	xr_value_unref(of[1]);
}

Test(codec_tensor, AC_K3_what_changes_after_the_copy_is_not_seen)
{
	struct xr_value *v = numbers(100, 100), *got = NULL;
	struct message m = message_of(v, NULL);
	float *data = xr_tensor_data(v, NULL);

	cr_expect_eq(data[7], 1.75F);
	data[7] = -1;
	cr_assert_eq(read_message(m, &got), XR_OK);
	cr_expect_eq(((float *)xr_tensor_data(got, NULL))[7], 1.75F);
	memset(m.data, 0, m.len);
	cr_expect_eq(((float *)xr_tensor_data(got, NULL))[7], 1.75F,
		"it has memory of its own");
	free(m.data);
	xr_value_unref(v);
	xr_value_unref(got);
}

static long
faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

Test(codec_tensor, AC_K12_a_gibibyte_is_encoded_without_a_copy)
{
	struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.shape = { 1 << 28 } };
	struct xr_encoded *e = NULL;
	const struct xr_part *parts;
	struct timespec from, to;
	struct xr_value *v = NULL;
	size_t count;
	long met;

	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK);
	most_asked = 0;
	met = faults();
	clock_gettime(CLOCK_MONOTONIC, &from);
	cr_assert_eq(xr_encode(v, NULL, &e, &err), XR_OK);
	clock_gettime(CLOCK_MONOTONIC, &to);
	met = faults() - met;
	parts = xr_encoded_parts(e, &count);
	cr_assert(eq(sz, count, 2));
	cr_expect_eq(parts[1].data, xr_tensor_data(v, NULL));
	cr_expect(eq(sz, parts[1].len, 1 << 30));
	cr_expect(lt(sz, most_asked, 4096));
	/* A sanitizer has pages of its own. */
	cr_expect_lt(met, 1024, "a copy of it touches 262144 pages");
	fprintf(stderr, "1 GiB: encoded in %ld ns\n",
		(long)(to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec -
			from.tv_nsec);
	xr_encoded_free(e);
	xr_value_unref(v);
}
