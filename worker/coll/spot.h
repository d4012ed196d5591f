/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spot.h - where the numbers of a tensor lie, on whichever device.
 *
 * They are read and written by way of the host: of a device by its platform
 * (device_ops.h), of the host itself as they stand. Nothing is kept of the tensor,
 * which is the caller's.
 */
#ifndef WORKER_COLL_SPOT_H
#define WORKER_COLL_SPOT_H

#include <stdbool.h>
#include <stddef.h>

#include <xrun/tensor.h>

#include "wire/value/device_ops.h"

struct spot {
	enum xr_dtype dtype;
	size_t elements; /* row-major, without gaps */
	enum xr_device_kind kind;
	struct device_memory all;
	const struct device_ops *ops; /* NULL: the host's memory */
};

/*
 * spot_init() - that of @tensor, which may be NULL.
 *
 * Returns  XR_OK; XR_E_INVAL: it is no tensor, or has gaps; XR_E_NODEV: nobody
 *          knows its device here
 */
enum xr_status spot_init(struct spot *spot, const struct xr_value *tensor,
	struct xr_error *err);

/* spot_is_near() - do both lie on one device? */
bool spot_is_near(const struct spot *a, const struct spot *b);

/* What is copied of it: bytes. */
struct spot_piece {
	size_t at, len;
};

/* spot_read(), spot_write() - to memory of the host and from it; they may wait for
 * the device, and fail as that does, with its name in @err. */
enum xr_status spot_read(const struct spot *spot, struct spot_piece piece,
	void *host, struct xr_error *err);
enum xr_status spot_write(const struct spot *spot, struct spot_piece piece,
	const void *host, struct xr_error *err);

#endif /* WORKER_COLL_SPOT_H */
