/* SPDX-License-Identifier: Apache-2.0 */
/* device_ops.c - see device_ops.h. */
#include <stdatomic.h>

#include "wire/value/device_ops.h"

static const char *const names[] = {
	[XR_DEVICE_CPU] = "cpu",
	[XR_DEVICE_CUDA] = "cuda",
	[XR_DEVICE_ROCM] = "rocm",
	[XR_DEVICE_TPU] = "tpu",
	[XR_DEVICE_NEURON] = "neuron",
	[XR_DEVICE_FAKE] = "fake",
};

#define KINDS (sizeof(names) / sizeof(names[0]))

static _Atomic(const struct device_ops *) platforms[KINDS];

const char *
device_kind_name(enum xr_device_kind kind)
{
	return (size_t)kind < KINDS ? names[kind] : NULL;
}

enum xr_status
device_set_ops(enum xr_device_kind kind, const struct device_ops *ops)
{
	const struct device_ops *none = NULL;

	if (kind == XR_DEVICE_CPU || (size_t)kind >= KINDS || ops == NULL)
		return XR_E_INVAL;
	return atomic_compare_exchange_strong(&platforms[kind], &none, ops) ?
		XR_OK :
		XR_E_EXISTS;
}

const struct device_ops *
device_ops_of(enum xr_device_kind kind)
{
	return (size_t)kind < KINDS ?
		atomic_load_explicit(&platforms[kind], memory_order_acquire) :
		NULL;
}
