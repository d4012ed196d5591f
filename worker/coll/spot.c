/* SPDX-License-Identifier: Apache-2.0 */
/* spot.c - see spot.h. */
#include <string.h>

#include "base/status.h"
#include "worker/coll/spot.h"

/* Of one element or none a stride says nothing. */
static bool
has_gaps(const struct xr_tensor_desc *d)
{
	int64_t step = 1;

	for (uint32_t i = d->ndim; i-- > 0;) {
		if (d->shape[i] > 1 && d->strides[i] != step)
			return true;
		step *= d->shape[i];
	}
	return false;
}

static enum xr_status
find_platform(struct spot *spot, struct xr_error *err)
{
	if (spot->kind == XR_DEVICE_CPU)
		return XR_OK;
	spot->ops = device_ops_of(spot->kind);
	return spot->ops != NULL ?
		XR_OK :
		fail(err, XR_E_NODEV, "lies on %s:%d, which nobody knows here",
			device_kind_name(spot->kind), spot->all.index);
}

enum xr_status
spot_init(struct spot *spot, const struct xr_value *tensor,
	struct xr_error *err)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };

	if (tensor == NULL || xr_tensor_desc(tensor, &d) != XR_OK)
		return fail(err, XR_E_INVAL, "is no tensor");
	*spot = (struct spot){ .dtype = d.dtype, .kind = d.device_kind };
	spot->elements = (size_t)xr_tensor_elements(&d);
	if (spot->elements > 0 && has_gaps(&d))
		return fail(err, XR_E_INVAL,
			"has gaps, or is not row-major: its elements are to follow each other");
	spot->all.index = d.device_index;
	spot->all.data = (char *)xr_tensor_data(tensor, NULL) + d.offset;
	spot->all.len = spot->elements * xr_dtype_size(d.dtype);
	return find_platform(spot, err);
}

bool
spot_is_near(const struct spot *a, const struct spot *b)
{
	return a->kind == b->kind &&
		(a->kind == XR_DEVICE_CPU || a->all.index == b->all.index);
}

static struct device_memory
memory_of(const struct spot *spot, struct spot_piece piece)
{
	return (struct device_memory){ spot->all.index,
		(char *)spot->all.data + piece.at, piece.len };
}

/* What a device says of itself, with its name in front. */
static enum xr_status
name_device(const struct spot *spot, enum xr_status status,
	const struct xr_error *why, struct xr_error *err)
{
	if (status == XR_OK)
		return XR_OK;
	return fail(err, status, "%s:%d: %.180s", device_kind_name(spot->kind),
		spot->all.index, why->text);
}

enum xr_status
spot_read(const struct spot *spot, struct spot_piece piece, void *host,
	struct xr_error *err)
{
	const struct device_memory from = memory_of(spot, piece);
	struct xr_error why = { 0 };
	enum xr_status status;

	if (piece.len == 0)
		return XR_OK;
	if (spot->ops == NULL) {
		memcpy(host, from.data, from.len);
		return XR_OK;
	}
	status = spot->ops->copy_to_host(spot->ops->ctx, host, &from, &why);
	return name_device(spot, status, &why, err);
}

enum xr_status
spot_write(const struct spot *spot, struct spot_piece piece, const void *host,
	struct xr_error *err)
{
	const struct device_memory to = memory_of(spot, piece);
	struct xr_error why = { 0 };
	enum xr_status status;

	if (piece.len == 0)
		return XR_OK;
	if (spot->ops == NULL) {
		memcpy(to.data, host, to.len);
		return XR_OK;
	}
	status = spot->ops->copy_from_host(spot->ops->ctx, host, &to, &why);
	return name_device(spot, status, &why, err);
}
