/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - see view.h; and xrun/tensor.h. */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/device_ops.h"
#include "wire/value/view.h"

#define ALIGN_MAX 8 /* bytes that an element is aligned to, at most */

static const struct {
	const char *name;
	size_t size;
} dtypes[] = {
	[XR_DT_BOOL] = { "bool", 1 },
	[XR_DT_U8] = { "u8", 1 },
	[XR_DT_I8] = { "i8", 1 },
	[XR_DT_U16] = { "u16", 2 },
	[XR_DT_I16] = { "i16", 2 },
	[XR_DT_U32] = { "u32", 4 },
	[XR_DT_I32] = { "i32", 4 },
	[XR_DT_U64] = { "u64", 8 },
	[XR_DT_I64] = { "i64", 8 },
	[XR_DT_F16] = { "f16", 2 },
	[XR_DT_BF16] = { "bf16", 2 },
	[XR_DT_F32] = { "f32", 4 },
	[XR_DT_F64] = { "f64", 8 },
	[XR_DT_C64] = { "c64", 8 },
	[XR_DT_C128] = { "c128", 16 },
};

#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

XR_EXPORT size_t
xr_dtype_size(enum xr_dtype dtype)
{
	return (size_t)dtype < DTYPES ? dtypes[dtype].size : 0;
}

XR_EXPORT const char *
xr_dtype_name(enum xr_dtype dtype)
{
	return xr_dtype_size(dtype) > 0 ? dtypes[dtype].name : "?";
}

XR_EXPORT void
xr_tensor_dense(struct xr_tensor_desc *desc)
{
	int64_t stride = 1;

	desc->offset = 0;
	for (uint32_t i = desc->ndim; i-- > 0;) {
		if (i >= XR_TENSOR_DIMS)
			continue;
		desc->strides[i] = stride;
		if (desc->shape[i] > 0 &&
			__builtin_mul_overflow(stride, desc->shape[i], &stride))
			stride = INT64_MAX;
	}
}

XR_EXPORT int64_t
xr_tensor_elements(const struct xr_tensor_desc *desc)
{
	int64_t product = 1;
	bool empty = false;

	if (desc->ndim > XR_TENSOR_DIMS)
		return -1;
	for (uint32_t i = 0; i < desc->ndim; i++) {
		if (desc->shape[i] < 0)
			return -1;
		empty = empty || desc->shape[i] == 0;
	}
	for (uint32_t i = 0; i < desc->ndim && !empty; i++)
		if (__builtin_mul_overflow(product, desc->shape[i], &product) ||
			product > XR_VALUE_BYTES_MAX)
			return -1;
	return empty ? 0 : product;
}

/* --- checks ---------------------------------------------------------------- */

enum xr_status
view_check_kind(const struct xr_tensor_desc *d, struct xr_error *err)
{
	if (d->size < sizeof(*d))
		return fail(err, XR_E_INVAL,
			"tensor: a description without its size");
	if (xr_dtype_size(d->dtype) == 0)
		return fail(err, XR_E_INVAL, "tensor: no dtype has number %u",
			(unsigned)d->dtype);
	if (d->ndim > XR_TENSOR_DIMS)
		return fail(err, XR_E_INVAL,
			"tensor: %" PRIu32 " dimensions, at most %d", d->ndim,
			XR_TENSOR_DIMS);
	if (device_kind_name(d->device_kind) == NULL)
		return fail(err, XR_E_INVAL, "tensor: no device has number %u",
			(unsigned)d->device_kind);
	if (d->device_kind != XR_DEVICE_CPU && d->device_index < 0)
		return fail(err, XR_E_INVAL, "tensor: %s:%" PRId32,
			device_kind_name(d->device_kind), d->device_index);
	for (uint32_t i = 0; i < d->ndim; i++)
		if (d->shape[i] < 0)
			return fail(err, XR_E_INVAL,
				"tensor: dimension %" PRIu32 " is %" PRId64, i,
				d->shape[i]);
	if (xr_tensor_elements(d) < 0)
		return fail(err, XR_E_RANGE, "tensor: too many elements");
	return XR_OK;
}

/* The byte behind the last element; false: no number has it. */
static bool
find_end(const struct xr_tensor_desc *d, uint64_t *end)
{
	uint64_t last = 0, step;

	for (uint32_t i = 0; i < d->ndim; i++)
		if (__builtin_mul_overflow((uint64_t)d->shape[i] - 1,
			    (uint64_t)d->strides[i], &step) ||
			__builtin_add_overflow(last, step, &last))
			return false;
	return !__builtin_mul_overflow(last, xr_dtype_size(d->dtype), &last) &&
		!__builtin_add_overflow(last, xr_dtype_size(d->dtype), &last) &&
		!__builtin_add_overflow(last, d->offset, end);
}

enum xr_status
view_check(const struct xr_tensor_desc *d, uint64_t bytes, struct xr_error *err)
{
	enum xr_status status = view_check_kind(d, err);
	uint64_t end = 0, align;

	if (status != XR_OK)
		return status;
	for (uint32_t i = 0; i < d->ndim; i++)
		if (d->strides[i] < 0)
			return fail(err, XR_E_INVAL,
				"tensor: stride %" PRIu32 " is %" PRId64, i,
				d->strides[i]);
	align = xr_dtype_size(d->dtype);
	if (align > ALIGN_MAX)
		align = ALIGN_MAX;
	if (d->offset > bytes)
		return fail(err, XR_E_RANGE,
			"tensor: offset %" PRIu64 " is outside of %" PRIu64
			" bytes",
			d->offset, bytes);
	if (d->offset % align != 0)
		return fail(err, XR_E_INVAL,
			"tensor: offset %" PRIu64 " is between two %s",
			d->offset, xr_dtype_name(d->dtype));
	if (xr_tensor_elements(d) > 0 && (!find_end(d, &end) || end > bytes))
		return fail(err, XR_E_RANGE,
			"tensor: elements outside of %" PRIu64 " bytes", bytes);
	return XR_OK;
}

void
view_extent(const struct xr_tensor_desc *d, uint64_t *begin, uint64_t *end)
{
	*begin = *end = 0;
	if (xr_tensor_elements(d) == 0)
		return;
	*begin = d->offset;
	find_end(d, end);
}

/* --- walking --------------------------------------------------------------- */

/* The last dimension is a row; this is the way from row to row of a tensor that
 * has elements. */
struct rows {
	const struct xr_tensor_desc *d;
	uint32_t outer; /* dimensions but the last */
	int64_t at[XR_TENSOR_DIMS];
	uint64_t offset; /* bytes, of the row's first element */
	size_t size;     /* of an element */
	int64_t len;     /* elements of a row */
	uint64_t step;   /* bytes from one to the next */
};

static struct rows
rows_of(const struct xr_tensor_desc *d)
{
	struct rows r = {
		.d = d,
		.outer = d->ndim > 0 ? d->ndim - 1 : 0,
		.offset = d->offset,
		.size = xr_dtype_size(d->dtype),
		.len = 1,
	};

	r.step = r.size;
	if (d->ndim > 0)
		r.len = d->shape[r.outer];
	if (r.len > 1)
		r.step = r.size * (uint64_t)d->strides[r.outer];
	return r;
}

/* False: that was the last. */
static bool
next_row(struct rows *r)
{
	for (uint32_t i = r->outer; i-- > 0;) {
		uint64_t step = r->size * (uint64_t)r->d->strides[i];

		if (++r->at[i] < r->d->shape[i]) {
			r->offset += step;
			return true;
		}
		r->offset -= step * (uint64_t)(r->d->shape[i] - 1);
		r->at[i] = 0;
	}
	return false;
}

static char *
pack_row(const struct rows *r, const char *row, char *out)
{
	if (r->step == r->size) {
		memcpy(out, row, r->size * (size_t)r->len);
		return out + r->size * (size_t)r->len;
	}
	for (int64_t i = 0; i < r->len; i++) {
		memcpy(out, row, r->size);
		out += r->size;
		row += r->step;
	}
	return out;
}

void
view_pack(const struct xr_tensor_desc *d, const void *base, void *out)
{
	struct rows r = rows_of(d);
	char *p = out;

	if (xr_tensor_elements(d) == 0)
		return;
	do
		p = pack_row(&r, (const char *)base + r.offset, p);
	while (next_row(&r));
}

static bool
same_row(const struct rows *a, const char *x, const struct rows *b,
	const char *y)
{
	if (a->step == a->size && b->step == b->size)
		return memcmp(x, y, a->size * (size_t)a->len) == 0;
	for (int64_t i = 0; i < a->len; i++) {
		if (memcmp(x, y, a->size) != 0)
			return false;
		x += a->step;
		y += b->step;
	}
	return true;
}

/* Seen in the same way, and nothing differs between the first element and the
 * last? */
static bool
same_range(const struct xr_tensor_desc *a, const void *a_base,
	const struct xr_tensor_desc *b, const void *b_base)
{
	uint64_t begin, end;

	view_extent(a, &begin, &end);
	return memcmp(a->strides, b->strides,
		       a->ndim * sizeof(a->strides[0])) == 0 &&
		memcmp((const char *)a_base + a->offset,
			(const char *)b_base + b->offset, end - begin) == 0;
}

/* What is the same element again and again in both is compared once: a few bytes
 * may claim to be very many. */
static void
drop_repeats(struct xr_tensor_desc *a, struct xr_tensor_desc *b)
{
	for (uint32_t i = 0; i < a->ndim; i++)
		if (a->strides[i] == 0 && b->strides[i] == 0)
			a->shape[i] = b->shape[i] = 1;
}

bool
view_equal(const struct xr_tensor_desc *a, const void *a_base,
	const struct xr_tensor_desc *b, const void *b_base)
{
	struct xr_tensor_desc first = *a, second = *b;
	struct rows x, y;

	if (xr_tensor_elements(a) == 0 || same_range(a, a_base, b, b_base))
		return true;
	drop_repeats(&first, &second);
	x = rows_of(&first);
	y = rows_of(&second);
	do {
		if (!same_row(&x, (const char *)a_base + x.offset, &y,
			    (const char *)b_base + y.offset))
			return false;
	} while (next_row(&x) && next_row(&y));
	return true;
}
