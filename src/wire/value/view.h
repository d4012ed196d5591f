/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - where the elements of a tensor lie: pure arithmetic on descriptions.
 *
 * Inside of src/wire/value only. A description that passed view_check() is safe
 * for all the others.
 */
#ifndef WIRE_VALUE_VIEW_H
#define WIRE_VALUE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/tensor.h>

/*
 * view_check() - is it a tensor, and within @bytes of storage?
 *
 * Returns  XR_OK; XR_E_INVAL: dtype, ndim, device, a negative number, an offset
 *          between elements; XR_E_RANGE: too large, or outside
 */
enum xr_status view_check(const struct xr_tensor_desc *desc, uint64_t bytes,
	struct xr_error *err);

/* view_check_kind() - the part of it that strides and storage have no say in. */
enum xr_status view_check_kind(const struct xr_tensor_desc *desc,
	struct xr_error *err);

/* view_extent() - the bytes [*@begin, *@end) that its elements are within; both 0
 * if it has none. */
void view_extent(const struct xr_tensor_desc *desc, uint64_t *begin,
	uint64_t *end);

/* view_pack() - its elements, row-major; @base is what offset 0 means. */
void view_pack(const struct xr_tensor_desc *desc, const void *base, void *out);

/* view_equal() - the same elements, bit by bit, of two that have dtype and shape
 * in common. */
bool view_equal(const struct xr_tensor_desc *a, const void *a_base,
	const struct xr_tensor_desc *b, const void *b_base);

#endif /* WIRE_VALUE_VIEW_H */
