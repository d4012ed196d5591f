/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/tensor.h - values that are arrays of numbers, and the memory behind them.
 *
 * A tensor is a view of a storage: so many elements of a type, found by shape
 * and strides from an offset. Several tensors may view one storage, also in a
 * message, where it stays one. Storage made here lies in memory that other ranks
 * of the machine can map, so that to hand it over costs the same whatever its
 * size; what is wrapped stays where it is.
 *
 * Outside of a job, storage of 4 KiB and more is a memfd, as long as half of the
 * descriptors that the process may have are not in use for it.
 */
#ifndef XRUN_TENSOR_H
#define XRUN_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/device.h"
#include "xrun/error.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_TENSOR_DIMS 8

/* Numbers are on the wire, and are never reused. */
enum xr_dtype {
	XR_DT_BOOL = 1,
	XR_DT_U8 = 2,
	XR_DT_I8 = 3,
	XR_DT_U16 = 4,
	XR_DT_I16 = 5,
	XR_DT_U32 = 6,
	XR_DT_I32 = 7,
	XR_DT_U64 = 8,
	XR_DT_I64 = 9,
	XR_DT_F16 = 10,
	XR_DT_BF16 = 11,
	XR_DT_F32 = 12,
	XR_DT_F64 = 13,
	XR_DT_C64 = 14,
	XR_DT_C128 = 15,
};

struct xr_tensor_desc {
	uint32_t size; /* sizeof(struct xr_tensor_desc) */
	enum xr_dtype dtype;
	uint32_t ndim; /* 0: one element */
	enum xr_device_kind device_kind;
	int32_t device_index;
	int64_t shape[XR_TENSOR_DIMS];   /* elements, each 0 or more */
	int64_t strides[XR_TENSOR_DIMS]; /* elements, each 0 or more */
	uint64_t offset; /* bytes into the storage, a multiple of an element's
			  * size, or of 8 if that is less */
};

/* xr_dtype_size() - bytes of an element; 0: no such type. */
size_t xr_dtype_size(enum xr_dtype dtype);
const char *xr_dtype_name(enum xr_dtype dtype); /* "f32"; "?" */

/* xr_tensor_dense() - fill in row-major strides and offset 0. */
void xr_tensor_dense(struct xr_tensor_desc *desc);

/* xr_tensor_elements() - product of the shape; -1: beyond XR_VALUE_BYTES_MAX. */
int64_t xr_tensor_elements(const struct xr_tensor_desc *desc);

/*
 * xr_tensor_new() - a tensor with storage of its own, whose content is undefined.
 *
 * @desc: strides and offset are set as by xr_tensor_dense()
 *
 * Returns  XR_OK; XR_E_INVAL: dtype, ndim, a negative number; XR_E_RANGE: too
 *          large; XR_E_NODEV, XR_E_DEVICE; XR_E_NOMEM
 */
enum xr_status xr_tensor_new(const struct xr_tensor_desc *desc,
	struct xr_value **value, struct xr_error *err);

/* Memory of the program's, on the device that a tensor's description names. */
struct xr_tensor_memory {
	uint32_t size; /* sizeof(struct xr_tensor_memory) */
	void *data;
	size_t bytes;
	xr_free_fn *free_fn; /* called with @data, on any thread, when nobody */
	void *ctx; /* needs it any more; NULL: it outlives all that see it */
};

/*
 * xr_tensor_wrap() - a tensor over @memory, which stays where it is.
 *
 * Returns  as xr_tensor_new(); XR_E_RANGE: some element is outside of it. Nothing
 *          is freed on failure.
 */
enum xr_status xr_tensor_wrap(const struct xr_tensor_desc *desc,
	const struct xr_tensor_memory *memory, struct xr_value **value,
	struct xr_error *err);

/* xr_tensor_view() - another tensor over the storage of @of. */
enum xr_status xr_tensor_view(struct xr_value *of,
	const struct xr_tensor_desc *desc, struct xr_value **value,
	struct xr_error *err);

/* xr_tensor_desc() - XR_E_SCHEMA: no tensor. @desc->size is set by the caller. */
enum xr_status xr_tensor_desc(const struct xr_value *value,
	struct xr_tensor_desc *desc);

/* xr_tensor_data() - where the storage begins, and how many bytes it has; an
 * address of the device. NULL: no tensor. To write to it while others may read
 * is the program's own affair. */
void *xr_tensor_data(const struct xr_value *value, size_t *bytes);

/* xr_tensor_same() - do both view one storage? */
bool xr_tensor_same(const struct xr_value *a, const struct xr_value *b);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_TENSOR_H */
