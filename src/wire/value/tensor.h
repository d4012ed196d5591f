/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - tensors and their descriptions, inside of src/wire/value only. */
#ifndef WIRE_VALUE_TENSOR_H
#define WIRE_VALUE_TENSOR_H

#include <stdbool.h>

#include <xrun/tensor.h>

#include "wire/value/node.h"
#include "wire/value/storage.h"

/* tensor_new() - a view of @storage, of which it takes a reference of its own;
 * @desc has passed view_check(). NULL: no memory. */
struct xr_value *tensor_new(const struct xr_tensor_desc *desc,
	struct storage *storage);

/* tensor_describe() - all of it. */
void tensor_describe(const struct value_tensor *tensor,
	struct xr_tensor_desc *desc);

/* tensor_equal() - by dtype, shape and elements; device memory is read through
 * its platform, and equal to nothing where there is none, or no memory. */
bool tensor_equal(const struct value_tensor *a, const struct value_tensor *b);

static inline const struct value_tensor *
tensor_of(const struct xr_value *value)
{
	return node_is(value, XR_TENSOR) ? (const struct value_tensor *)value :
					   NULL;
}

#endif /* WIRE_VALUE_TENSOR_H */
