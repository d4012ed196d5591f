/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - see xrun/tensor.h, and tensor.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/device_ops.h"
#include "wire/value/tensor.h"
#include "wire/value/view.h"

static enum xr_status
no_memory(struct xr_error *err)
{
	return fail(err, XR_E_NOMEM, "tensor: out of memory");
}

struct xr_value *
tensor_new(const struct xr_tensor_desc *desc, struct storage *storage)
{
	struct value_tensor *t;

	t = node_new(XR_TENSOR,
		sizeof(*t) + 2 * (size_t)desc->ndim * sizeof(t->dims[0]));
	if (t == NULL)
		return NULL;
	t->storage = storage_ref(storage);
	t->offset = desc->offset;
	t->dtype = (uint8_t)desc->dtype;
	t->ndim = (uint8_t)desc->ndim;
	for (uint32_t i = 0; i < desc->ndim; i++) {
		t->dims[i] = desc->shape[i];
		t->dims[desc->ndim + i] = desc->strides[i];
	}
	return &t->head;
}

void
tensor_fini(struct xr_value *value)
{
	storage_unref(((struct value_tensor *)value)->storage);
}

void
tensor_describe(const struct value_tensor *t, struct xr_tensor_desc *desc)
{
	*desc = (struct xr_tensor_desc){
		.size = sizeof(*desc),
		.dtype = (enum xr_dtype)t->dtype,
		.ndim = t->ndim,
		.device_kind = t->storage->device_kind,
		.device_index = t->storage->device_index,
		.offset = t->offset,
	};
	for (uint32_t i = 0; i < t->ndim; i++) {
		desc->shape[i] = t->dims[i];
		desc->strides[i] = t->dims[t->ndim + i];
	}
}

/* --- making ---------------------------------------------------------------- */

static enum xr_status
finish(const struct xr_tensor_desc *desc, struct storage *storage,
	struct xr_value **value, struct xr_error *err)
{
	struct xr_value *made = tensor_new(desc, storage);

	storage_unref(storage);
	if (made == NULL)
		return no_memory(err);
	*value = made;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_tensor_new(const struct xr_tensor_desc *desc, struct xr_value **value,
	struct xr_error *err)
{
	enum xr_status status = view_check_kind(desc, err);
	struct storage_memory where = { 0 };
	struct xr_tensor_desc d;
	struct storage *s;

	if (status != XR_OK)
		return status;
	d = *desc;
	xr_tensor_dense(&d);
	where.bytes = (size_t)xr_tensor_elements(&d) * xr_dtype_size(d.dtype);
	where.device_kind = d.device_kind;
	where.device_index = d.device_index;
	if (where.bytes > XR_VALUE_BYTES_MAX)
		return fail(err, XR_E_RANGE, "tensor: too many bytes");
	if (d.device_kind != XR_DEVICE_CPU) {
		status = storage_on_device(&where, &s, err);
		return status == XR_OK ? finish(&d, s, value, err) : status;
	}
	s = storage_for_tensor(where.bytes);
	return s == NULL ? no_memory(err) : finish(&d, s, value, err);
}

XR_EXPORT enum xr_status
xr_tensor_wrap(const struct xr_tensor_desc *desc,
	const struct xr_tensor_memory *memory, struct xr_value **value,
	struct xr_error *err)
{
	struct storage_memory where = {
		.device_kind = desc->device_kind,
		.device_index = desc->device_index,
	};
	enum xr_status status;
	struct storage *s;

	if (memory->size < sizeof(*memory) ||
		(memory->data == NULL && memory->bytes > 0))
		return fail(err, XR_E_INVAL, "tensor: no memory to wrap");
	if (memory->bytes > XR_VALUE_BYTES_MAX)
		return fail(err, XR_E_RANGE, "tensor: too many bytes");
	status = view_check(desc, memory->bytes, err);
	if (status != XR_OK)
		return status;
	where.data = memory->data;
	where.bytes = memory->bytes;
	s = storage_wrap(&where);
	if (s == NULL)
		return no_memory(err);
	status = finish(desc, storage_ref(s), value, err);
	if (status == XR_OK) {
		s->free_fn = memory->free_fn;
		s->ctx = memory->ctx;
	}
	storage_unref(s);
	return status;
}

XR_EXPORT enum xr_status
xr_tensor_view(struct xr_value *of, const struct xr_tensor_desc *desc,
	struct xr_value **value, struct xr_error *err)
{
	const struct value_tensor *t = tensor_of(of);
	const struct storage *s;
	enum xr_status status;

	if (t == NULL)
		return fail(err, XR_E_SCHEMA, "tensor: a view of no tensor");
	s = t->storage;
	status = view_check(desc, s->bytes, err);
	if (status != XR_OK)
		return status;
	if (desc->device_kind != s->device_kind ||
		(s->device_kind != XR_DEVICE_CPU &&
			desc->device_index != s->device_index))
		return fail(err, XR_E_INVAL,
			"tensor: a view on another device than its storage");
	return finish(desc, storage_ref(t->storage), value, err);
}

/* --- asking ---------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_tensor_desc(const struct xr_value *value, struct xr_tensor_desc *desc)
{
	const struct value_tensor *t = tensor_of(value);
	uint32_t size;

	if (t == NULL)
		return XR_E_SCHEMA;
	size = desc->size;
	if (size < sizeof(*desc))
		return XR_E_INVAL;
	tensor_describe(t, desc);
	desc->size = size;
	return XR_OK;
}

XR_EXPORT void *
xr_tensor_data(const struct xr_value *value, size_t *bytes)
{
	const struct value_tensor *t = tensor_of(value);

	if (bytes != NULL)
		*bytes = t == NULL ? 0 : t->storage->bytes;
	return t == NULL ? NULL : t->storage->data;
}

XR_EXPORT bool
xr_tensor_same(const struct xr_value *a, const struct xr_value *b)
{
	return tensor_of(a) != NULL && tensor_of(b) != NULL &&
		tensor_of(a)->storage == tensor_of(b)->storage;
}

/* --- comparing ------------------------------------------------------------- */

/* Where the host can read a tensor: @desc, with what offset 0 means. */
struct readable {
	struct xr_tensor_desc desc;
	const void *base;
	void *own; /* a copy of device memory; NULL: none was needed */
};

static bool
make_readable(const struct value_tensor *t, struct readable *r)
{
	uint64_t begin, end;

	tensor_describe(t, &r->desc);
	r->own = NULL;
	r->base = t->storage->data;
	if (t->storage->device_kind == XR_DEVICE_CPU)
		return true;
	view_extent(&r->desc, &begin, &end);
	r->own = malloc(end > begin ? end - begin : 1);
	if (r->own == NULL ||
		storage_read(t->storage, begin, r->own, end - begin, NULL) !=
			XR_OK) {
		free(r->own);
		return false;
	}
	r->base = r->own;
	r->desc.offset -= begin;
	return true;
}

/* The same bytes seen in the same way: nobody need read them. */
static bool
same_view(const struct value_tensor *a, const struct value_tensor *b)
{
	return a->storage == b->storage && a->offset == b->offset &&
		memcmp(a->dims, b->dims,
			2 * (size_t)a->ndim * sizeof(a->dims[0])) == 0;
}

bool
tensor_equal(const struct value_tensor *a, const struct value_tensor *b)
{
	struct readable x, y;
	bool equal;

	if (a->dtype != b->dtype || a->ndim != b->ndim ||
		memcmp(a->dims, b->dims, a->ndim * sizeof(a->dims[0])) != 0)
		return false;
	if (same_view(a, b))
		return true;
	if (!make_readable(a, &x))
		return false;
	if (!make_readable(b, &y)) {
		free(x.own);
		return false;
	}
	equal = view_equal(&x.desc, x.base, &y.desc, y.base);
	free(x.own);
	free(y.own);
	return equal;
}
