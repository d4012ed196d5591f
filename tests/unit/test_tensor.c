/* SPDX-License-Identifier: Apache-2.0 */
/* test_tensor.c - tensors: where their elements lie, and whose the memory is. */
#include <math.h>

#include "tests/unit/short_memory.h"
#include "tests/unit/value_rig.h"
#include "wire/value/view.h"

TestSuite(tensor, .init = begin, .fini = end);

static struct xr_error err;

static struct xr_tensor_desc
desc_of(enum xr_dtype dtype, uint32_t ndim, const int64_t *shape)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = dtype,
		.ndim = ndim,
	};

	for (uint32_t i = 0; shape != NULL && i < ndim; i++)
		d.shape[i] = shape[i];
	return d;
}

#define SHAPE(...) \
	sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

/* A view of @of with these strides, in elements; NULL: it is refused. */
static struct xr_value *
view(struct xr_value *of, struct xr_tensor_desc d, const int64_t *strides,
	uint64_t offset)
{
	struct xr_value *v = NULL;

	for (uint32_t i = 0; i < d.ndim; i++)
		d.strides[i] = strides[i];
	d.offset = offset;
	if (xr_tensor_view(of, &d, &v, &err) != XR_OK)
		cr_assert_null(v);
	return v;
}

#define STRIDES(...) \
	(int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

/* --- types of elements ----------------------------------------------------- */

Test(tensor, each_dtype_has_name_and_size)
{
	static const struct {
		enum xr_dtype dtype;
		size_t size;
		const char *name;
	} rows[] = { { XR_DT_BOOL, 1, "bool" }, { XR_DT_I8, 1, "i8" },
		{ XR_DT_U16, 2, "u16" }, { XR_DT_BF16, 2, "bf16" },
		{ XR_DT_F16, 2, "f16" }, { XR_DT_I32, 4, "i32" },
		{ XR_DT_F32, 4, "f32" }, { XR_DT_F64, 8, "f64" },
		{ XR_DT_I64, 8, "i64" }, { XR_DT_C64, 8, "c64" },
		{ XR_DT_C128, 16, "c128" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect(eq(sz, xr_dtype_size(rows[i].dtype), rows[i].size));
		cr_expect_str_eq(xr_dtype_name(rows[i].dtype), rows[i].name);
	}
	cr_expect(eq(sz, xr_dtype_size((enum xr_dtype)0), 0));
	cr_expect(eq(sz, xr_dtype_size((enum xr_dtype)16), 0));
	cr_expect_str_eq(xr_dtype_name((enum xr_dtype)0), "?");
	cr_expect_str_eq(xr_dtype_name((enum xr_dtype) - 1), "?");
}

/* --- shapes ---------------------------------------------------------------- */

Test(tensor, dense_is_row_major)
{
	struct xr_tensor_desc d = desc_of(XR_DT_I8, SHAPE(2, 3, 4));

	d.offset = 9;
	xr_tensor_dense(&d);
	cr_expect_eq(d.strides[0], 12);
	cr_expect_eq(d.strides[1], 4);
	cr_expect_eq(d.strides[2], 1);
	cr_expect_eq(d.offset, 0);
	d = desc_of(XR_DT_I8, SHAPE(2, 0, INT64_MAX, INT64_MAX));
	xr_tensor_dense(&d);
	cr_expect_eq(d.strides[3], 1);
	cr_expect_eq(d.strides[2], INT64_MAX);
	cr_expect_eq(d.strides[0], INT64_MAX, "it does not overflow");
}

Test(tensor, elements_are_counted_up_to_the_limit)
{
	static const struct {
		uint32_t ndim;
		int64_t shape[3];
		int64_t want;
	} rows[] = {
		{ 0, { 0 }, 1 },
		{ 1, { 0 }, 0 },
		{ 3, { 2, 3, 4 }, 24 },
		{ 3, { INT64_MAX, INT64_MAX, 0 }, 0 },
		{ 2, { 1 << 20, 1 << 20 }, INT64_C(1) << 40 },
		{ 2, { 1 << 20, (1 << 20) + 1 }, -1 },
		{ 3, { INT64_MAX, 3, 1 }, -1 },
		{ 3, { INT64_C(1) << 32, INT64_C(1) << 32, 1 }, -1 },
		{ 2, { 0, -1 }, -1 },
		{ 9, { 1 }, -1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xr_tensor_desc d = { .ndim = rows[i].ndim };

		memcpy(d.shape, rows[i].shape, sizeof(rows[i].shape));
		cr_expect_eq(xr_tensor_elements(&d), rows[i].want, "%zu", i);
	}
}

/* --- making ---------------------------------------------------------------- */

Test(tensor, a_new_one_has_memory_of_its_own)
{
	struct xr_tensor_desc d = desc_of(XR_DT_F64, SHAPE(3, 5)), got;
	struct xr_value *v = NULL;
	size_t bytes;

	d.strides[0] = -7;
	d.offset = 3;
	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK);
	got.size = sizeof(got) + 8;
	cr_assert_eq(xr_tensor_desc(v, &got), XR_OK);
	cr_expect(eq(u32, got.size, sizeof(got) + 8));
	cr_expect_eq(got.dtype, XR_DT_F64);
	cr_expect(eq(u32, got.ndim, 2));
	cr_expect_eq(got.shape[0], 3);
	cr_expect_eq(got.shape[1], 5);
	cr_expect_eq(got.strides[0], 5);
	cr_expect_eq(got.strides[1], 1);
	cr_expect_eq(got.offset, 0);
	cr_expect_eq(got.device_kind, XR_DEVICE_CPU);
	cr_expect_eq((uintptr_t)xr_tensor_data(v, &bytes) % 64, 0);
	cr_expect(eq(sz, bytes, 120));
	memset(xr_tensor_data(v, NULL), 1, bytes);
	got.size = sizeof(got) - 1;
	cr_expect_eq(xr_tensor_desc(v, &got), XR_E_INVAL);
	xr_value_unref(v);
}

Test(tensor, none_and_one_element_are_tensors)
{
	struct xr_tensor_desc none = desc_of(XR_DT_I32, SHAPE(4, 0));
	struct xr_tensor_desc scalar = { .size = sizeof(scalar),
		.dtype = XR_DT_C128 };
	struct xr_value *v = NULL;
	size_t bytes = 1;

	cr_assert_eq(xr_tensor_new(&none, &v, &err), XR_OK);
	cr_expect_not_null(xr_tensor_data(v, &bytes));
	cr_expect(eq(sz, bytes, 0));
	xr_value_unref(v);
	cr_assert_eq(xr_tensor_new(&scalar, &v, &err), XR_OK);
	cr_expect_not_null(xr_tensor_data(v, &bytes));
	cr_expect(eq(sz, bytes, 16));
	xr_value_unref(v);
}

Test(tensor, what_is_no_tensor_is_refused)
{
	struct {
		struct xr_tensor_desc d;
		enum xr_status status;
		const char *text;
	} rows[] = {
		{ desc_of((enum xr_dtype)0, SHAPE(1)), XR_E_INVAL,
			"tensor: no dtype has number 0" },
		{ desc_of((enum xr_dtype)16, SHAPE(1)), XR_E_INVAL,
			"tensor: no dtype has number 16" },
		{ desc_of(XR_DT_I8, 9, NULL), XR_E_INVAL,
			"tensor: 9 dimensions, at most 8" },
		{ desc_of(XR_DT_I8, SHAPE(3, -1)), XR_E_INVAL,
			"tensor: dimension 1 is -1" },
		{ desc_of(XR_DT_I8, SHAPE(XR_VALUE_BYTES_MAX, 2)), XR_E_RANGE,
			"tensor: too many elements" },
		{ desc_of(XR_DT_I16, SHAPE(XR_VALUE_BYTES_MAX)), XR_E_RANGE,
			"tensor: too many bytes" },
		{ desc_of(XR_DT_I8, SHAPE(1)), XR_E_INVAL,
			"tensor: no device has number 6" },
		{ desc_of(XR_DT_I8, SHAPE(1)), XR_E_INVAL, "tensor: cuda:-1" },
		{ desc_of(XR_DT_I8, SHAPE(1)), XR_E_NODEV,
			"value: no platform for tpu here" },
		{ desc_of(XR_DT_I8, SHAPE(1)), XR_E_INVAL,
			"tensor: a description without its size" },
	};
	struct xr_value *v = NULL;

	rows[6].d.device_kind = (enum xr_device_kind)6;
	rows[7].d.device_kind = XR_DEVICE_CUDA;
	rows[7].d.device_index = -1;
	rows[8].d.device_kind = XR_DEVICE_TPU;
	rows[9].d.size--;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(xr_tensor_new(&rows[i].d, &v, &err),
			rows[i].status, "%zu", i);
		cr_expect_str_eq(err.text, rows[i].text);
		cr_expect_null(v);
	}
}

/* --- wrapping and viewing -------------------------------------------------- */

static struct xr_tensor_memory
memory_of(void *data, size_t bytes)
{
	return (struct xr_tensor_memory){
		.size = sizeof(struct xr_tensor_memory),
		.data = data,
		.bytes = bytes,
		.free_fn = count_free,
		.ctx = &one,
	};
}

Test(tensor, wrapped_memory_stays_where_it_is_and_is_freed_once)
{
	float data[6] = { 0 };
	struct xr_tensor_memory memory = memory_of(data, sizeof(data));
	struct xr_tensor_desc d = desc_of(XR_DT_F32, SHAPE(2, 2));
	struct xr_value *v = NULL, *other;
	size_t bytes;

	d.strides[0] = 3;
	d.strides[1] = 1;
	d.offset = 4;
	cr_assert_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_OK);
	cr_expect_eq(xr_tensor_data(v, &bytes), data);
	cr_expect(eq(sz, bytes, sizeof(data)));
	other = view(v, desc_of(XR_DT_U8, SHAPE(24)), STRIDES(1), 0);
	cr_expect(xr_tensor_same(v, other));
	cr_expect_not(xr_tensor_same(v, NULL));
	xr_value_unref(v);
	cr_expect(eq(int, freed, 0), "a view needs it");
	cr_expect_eq(xr_tensor_data(other, NULL), data);
	xr_value_unref(other);
	cr_expect(eq(int, freed, 1));
	memory.free_fn = NULL;
	cr_assert_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_OK);
	xr_value_unref(v);
}

Test(tensor, what_lies_outside_is_refused)
{
	static const struct {
		int64_t shape[2], strides[2];
		uint64_t offset;
		enum xr_status status;
	} rows[] = {
		{ { 2, 3 }, { 3, 1 }, 0, XR_OK },
		{ { 2, 3 }, { 3, 1 }, 4, XR_E_RANGE },
		{ { 2, 3 }, { 4, 1 }, 0, XR_E_RANGE },
		{ { 2, 3 }, { 0, 0 }, 20, XR_OK },
		{ { 1, 1 }, { INT64_MAX, INT64_MAX }, 20, XR_OK },
		{ { 2, 1 }, { INT64_MAX, 1 }, 0, XR_E_RANGE },
		{ { 3, 3 }, { INT64_MAX, INT64_MAX }, 0, XR_E_RANGE },
		{ { 2, 1 }, { INT64_C(1) << 62, 1 }, 0, XR_E_RANGE },
		{ { 2, 3 }, { -3, 1 }, 12, XR_E_INVAL },
		{ { 2, 3 }, { 3, -1 }, 8, XR_E_INVAL },
		{ { 1, 1 }, { 1, 1 }, (uint64_t)-4, XR_E_RANGE },
		{ { 1, 1 }, { 1, 1 }, 2, XR_E_INVAL },
		{ { 0, 3 }, { INT64_MAX, INT64_MAX }, 24, XR_OK },
		{ { 0, 3 }, { 1, 1 }, 28, XR_E_RANGE },
		{ { 6, 1 }, { 1, 1 }, 0, XR_OK },
		{ { 7, 1 }, { 1, 1 }, 0, XR_E_RANGE },
	};
	float data[6] = { 0 };
	struct xr_tensor_memory memory = memory_of(data, sizeof(data));
	struct xr_value *whole = numbers(2, 3);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xr_tensor_desc d = desc_of(XR_DT_F32, 2, rows[i].shape);
		struct xr_value *v = NULL;

		freed = 0;
		memcpy(d.strides, rows[i].strides, sizeof(rows[i].strides));
		d.offset = rows[i].offset;
		cr_expect_eq(xr_tensor_wrap(&d, &memory, &v, &err),
			rows[i].status, "%zu", i);
		cr_expect_eq(v != NULL, rows[i].status == XR_OK);
		xr_value_unref(v);
		cr_expect_eq(freed, rows[i].status == XR_OK, "%zu", i);
		v = NULL;
		cr_expect_eq(xr_tensor_view(whole, &d, &v, &err),
			rows[i].status, "%zu", i);
		xr_value_unref(v);
	}
	xr_value_unref(whole);
}

Test(tensor, what_cannot_be_wrapped_is_not_freed)
{
	float data[1];
	struct xr_tensor_memory memory = memory_of(NULL, 4);
	struct xr_tensor_desc d = desc_of(XR_DT_F32, SHAPE(0));
	struct xr_value *v = NULL;

	d.strides[0] = 1;
	cr_expect_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_E_INVAL);
	memory = memory_of(data, 4);
	memory.size--;
	cr_expect_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_E_INVAL);
	memory = memory_of(data, (size_t)XR_VALUE_BYTES_MAX + 1);
	cr_expect_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_E_RANGE);
	cr_expect(eq(int, freed, 0));
	memory = memory_of(NULL, 0);
	cr_expect_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_OK);
	xr_value_unref(v);
}

Test(tensor, only_a_tensor_is_viewed_and_where_it_is)
{
	struct xr_value *v = numbers(2, 3), *number = i64(1), *got = NULL;
	struct xr_tensor_desc d = desc_of(XR_DT_F32, SHAPE(1));

	cr_expect_eq(xr_tensor_view(number, &d, &got, &err), XR_E_SCHEMA);
	cr_expect_eq(xr_tensor_view(NULL, &d, &got, &err), XR_E_SCHEMA);
	cr_expect_eq(xr_tensor_desc(number, &d), XR_E_SCHEMA);
	d.device_kind = XR_DEVICE_FAKE;
	cr_expect_eq(xr_tensor_view(v, &d, &got, &err), XR_E_INVAL);
	cr_expect_null(got);
	xr_value_unref(v);
	xr_value_unref(number);
}

/* --- elements -------------------------------------------------------------- */

/* 2 x 3 numbers the other way round: 3 x 2. */
static struct xr_value *
transposed(struct xr_value *of)
{
	return view(of, desc_of(XR_DT_F32, SHAPE(3, 2)), STRIDES(1, 3), 0);
}

Test(tensor, elements_are_compared_wherever_they_lie)
{
	static const float turned[] = { 0, 0.75F, 0.25F, 1, 0.5F, 1.25F };
	struct xr_value *v = numbers(2, 3), *t = transposed(v);
	struct xr_value *dense = numbers(3, 2), *other = numbers(6, 1);

	cr_expect_not(xr_value_equal(t, dense));
	memcpy(xr_tensor_data(dense, NULL), turned, sizeof(turned));
	cr_expect(xr_value_equal(t, dense));
	cr_expect(xr_value_equal(dense, t));
	cr_expect_not(xr_value_equal(v, other), "another shape");
	((float *)xr_tensor_data(dense, NULL))[5] = NAN;
	cr_expect_not(xr_value_equal(t, dense));
	((float *)xr_tensor_data(v, NULL))[5] = NAN;
	cr_expect(xr_value_equal(t, dense), "bit by bit");
	xr_value_unref(other);
	other = view(v, desc_of(XR_DT_I32, SHAPE(2, 3)), STRIDES(3, 1), 0);
	cr_expect_not(xr_value_equal(v, other), "another dtype");
	xr_value_unref(v);
	xr_value_unref(t);
	xr_value_unref(dense);
	xr_value_unref(other);
}

Test(tensor, a_few_bytes_that_claim_to_be_many_elements_are_compared_at_once)
{
	struct xr_value *of = numbers(16, 16), *other = numbers(16, 16);
	const int64_t shape[] = { 32, 32, 32, 32, 32, 32, 32, 32 };
	struct xr_tensor_desc d = desc_of(XR_DT_F32, 8, shape);
	struct xr_value *a, *b;

	a = view(of, d, STRIDES(1, 1, 1, 1, 1, 1, 1, 1), 0);
	b = view(other, d, STRIDES(1, 1, 1, 1, 1, 1, 1, 1), 0);
	cr_expect(xr_value_equal(a, b));
	xr_value_unref(a);
	xr_value_unref(b);
	a = view(of, d, STRIDES(0, 0, 0, 0, 0, 0, 0, 1), 0);
	b = view(other, d, STRIDES(0, 0, 0, 0, 0, 0, 0, 2), 0);
	cr_expect_not(xr_value_equal(a, b));
	((float *)xr_tensor_data(of, NULL))[31] = 99;
	xr_value_unref(b);
	b = view(other, d, STRIDES(0, 0, 0, 0, 0, 0, 0, 1), 0);
	cr_expect_not(xr_value_equal(a, b), "the last of a row differs");
	xr_value_unref(a);
	xr_value_unref(b);
	xr_value_unref(of);
	xr_value_unref(other);
}

Test(tensor, elements_are_packed_in_their_order)
{
	uint16_t data[2 * 3 * 4 * 5], out[60];
	struct xr_tensor_desc d = desc_of(XR_DT_U16, SHAPE(4, 3, 5));
	size_t n = 0;

	for (uint16_t i = 0; i < 120; i++)
		data[i] = i;
	d.strides[0] = 1;
	d.strides[1] = 20;
	d.strides[2] = 4;
	d.offset = 2;
	view_pack(&d, data, out);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 3; k++)
			for (size_t l = 0; l < 5; l++)
				cr_assert_eq(out[n++], 1 + i + 20 * k + 4 * l);
	d = desc_of(XR_DT_U16, SHAPE(3, 5));
	d.strides[0] = 7;
	d.strides[1] = 1;
	view_pack(&d, data, out);
	for (n = 0; n < 15; n++)
		cr_assert_eq(out[n], 7 * (n / 5) + n % 5);
	d = desc_of(XR_DT_U16, 0, NULL);
	d.offset = 6;
	view_pack(&d, data, out);
	cr_expect_eq(out[0], 3);
	cr_expect_eq(out[1], 1, "one element and no more");
}

Test(tensor, without_memory_there_is_no_tensor_and_nothing_is_freed)
{
	float data[2];
	struct xr_tensor_memory memory = memory_of(data, sizeof(data));
	struct xr_tensor_desc d = desc_of(XR_DT_F32, SHAPE(2));
	struct xr_value *v;
	unsigned n = 0, kinds = 0;

	d.strides[0] = 1;
	do {
		enum xr_status status;

		was_short = false;
		v = NULL;
		until_short = ++n;
		status = kinds == 0 ? xr_tensor_new(&d, &v, &err) :
				      xr_tensor_wrap(&d, &memory, &v, &err);
		until_short = 0;
		cr_assert_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		cr_assert_eq(v == NULL, was_short);
		cr_expect(eq(int, freed, 0));
		xr_value_unref(v);
		if (!was_short && kinds++ == 0)
			n = 0;
	} while (kinds < 2);
	cr_expect(eq(u32, n, 3), "a storage and a tensor");
	cr_expect(eq(int, freed, 1));
}
