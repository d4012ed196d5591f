/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_ops.h - memory of devices, by whoever knows the device.
 *
 * This library never reads memory of a device: a platform registers how to. What
 * lies on a device without a platform can be wrapped and viewed, and no more.
 */
#ifndef WIRE_VALUE_DEVICE_OPS_H
#define WIRE_VALUE_DEVICE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/device.h>
#include <xrun/error.h>

/* Bytes on a device. */
struct device_memory {
	int32_t index; /* of the device */
	void *data;
	size_t len;
};

/* Functions of a platform: on any thread, and they may wait for the device. A
 * failure is XR_E_NODEV, XR_E_DEVICE or XR_E_NOMEM, with @err filled. */
struct device_ops {
	void *ctx;
	/* count() - how many there are, 0 to count - 1; what they need is up when
	 * it returns. NULL: nobody counts them, and no device map names them. */
	uint32_t (*count)(void *ctx);
	/* alloc() - @memory->len bytes, aligned to 64 at least. */
	enum xr_status (*alloc)(void *ctx, struct device_memory *memory,
		struct xr_error *err);
	void (*free)(void *ctx, const struct device_memory *memory);
	enum xr_status (*copy_to_host)(void *ctx, void *host,
		const struct device_memory *from, struct xr_error *err);
	enum xr_status (*copy_from_host)(void *ctx, const void *host,
		const struct device_memory *to, struct xr_error *err);
};

/* device_kind_name() - "cuda"; NULL for a number of no row. */
const char *device_kind_name(enum xr_device_kind kind);

/* device_set_ops() - a platform for a kind, before the first memory on it; it
 * stays for the process. XR_E_INVAL: the CPU, or no kind; XR_E_EXISTS. */
enum xr_status device_set_ops(enum xr_device_kind kind,
	const struct device_ops *ops);

/* device_ops_of() - NULL: nobody knows such devices here. */
const struct device_ops *device_ops_of(enum xr_device_kind kind);

#endif /* WIRE_VALUE_DEVICE_OPS_H */
