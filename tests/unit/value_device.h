/* SPDX-License-Identifier: Apache-2.0 */
/* value_device.h - devices of tests: fake:0 and fake:1, whose memory is at another
 * address than what its bytes can be read at. */
#ifndef TESTS_UNIT_VALUE_DEVICE_H
#define TESTS_UNIT_VALUE_DEVICE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/device_ops.h"

/* Whoever reads there without the platform is caught. */
#define FAR (UINT64_C(1) << 62)

static int device_blocks; /* that were not freed */
static int device_copies; /* to the host and from it */
static bool device_broken;

static inline void *
near(const void *data)
{
	return (void *)((uintptr_t)data - FAR);
}

static int32_t device_last = 1;

static enum xr_status
device_alloc(void *ctx, struct device_memory *memory, struct xr_error *e)
{
	void *block;

	(void)ctx;
	if (memory->index > device_last)
		return fail(e, XR_E_NODEV, "fake:%d is not there",
			memory->index);
	if (device_broken)
		return fail(e, XR_E_DEVICE, "fake:%d fell off", memory->index);
	block = calloc(1, memory->len);
	if (block == NULL)
		return fail(e, XR_E_NOMEM, "fake: out of memory");
	device_blocks++;
	memory->data = (void *)((uintptr_t)block + FAR);
	return XR_OK;
}

static void
device_free(void *ctx, const struct device_memory *memory)
{
	(void)ctx;
	device_blocks--;
	free(near(memory->data));
}

static enum xr_status
device_to_host(void *ctx, void *host, const struct device_memory *from,
	struct xr_error *e)
{
	(void)ctx;
	if (device_broken)
		return fail(e, XR_E_DEVICE, "fake:%d fell off", from->index);
	device_copies++;
	memcpy(host, near(from->data), from->len);
	return XR_OK;
}

static enum xr_status
device_from_host(void *ctx, const void *host, const struct device_memory *to,
	struct xr_error *e)
{
	(void)ctx;
	if (device_broken)
		return fail(e, XR_E_DEVICE, "fake:%d fell off", to->index);
	device_copies++;
	memcpy(near(to->data), host, to->len);
	return XR_OK;
}

static const struct device_ops device_ops = {
	.alloc = device_alloc,
	.free = device_free,
	.copy_to_host = device_to_host,
	.copy_from_host = device_from_host,
};

#endif /* TESTS_UNIT_VALUE_DEVICE_H */
