/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/device.h - devices, and which of mine is which of yours.
 *
 * A device map says for one destination on which of its devices a tensor of mine
 * is to arrive. The checks are pure functions over what all members told, so that
 * each member comes to the same verdict.
 */
#ifndef XRUN_DEVICE_H
#define XRUN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are on the wire, and are never reused. */
enum xr_device_kind {
	XR_DEVICE_CPU = 0,
	XR_DEVICE_CUDA = 1,
	XR_DEVICE_ROCM = 2,
	XR_DEVICE_TPU = 3,
	XR_DEVICE_NEURON = 4,
	XR_DEVICE_FAKE = 5, /* of tests */
};

/* An accelerator by its index, or the CPU. */
#define XR_DEVICE_MAP_CPU (-1)

/* One pair of a map to @to: mine is @from there @dst. */
struct xr_device_pair {
	const char *to; /* a worker's name */
	int32_t from;   /* index, or XR_DEVICE_MAP_CPU */
	int32_t dst;
};

/* What a member tells of its devices. All is borrowed. */
struct xr_device_info {
	uint32_t size;          /* sizeof(struct xr_device_info) */
	const char *name;       /* of the member */
	uint32_t count;         /* accelerators it has: 0 .. count - 1 */
	const int32_t *devices; /* [device_count]: its explicit list */
	uint32_t device_count;  /* 0: none */
	const struct xr_device_pair *pairs; /* [pair_count], by destination */
	uint32_t pair_count;
};

/*
 * xr_devmap_check() - do the maps of @count members fit together?
 *
 * Rules in this order, of which the first that is broken is told: no device
 * twice in a list; every listed one there; @is_static: every destination a
 * member; in one map no device of either side twice; the map's own side in the
 * source's list, or there; its other side in the destination's list, or there.
 * The CPU needs no list. Pairs may stand in any order.
 *
 * Returns  XR_OK; XR_E_INVAL: @err names member and destination; XR_E_NOMEM
 */
enum xr_status xr_devmap_check(const struct xr_device_info *members,
	size_t count, bool is_static, struct xr_error *err);

/*
 * xr_devmap_invert() - the maps of all members to @name, the other way round:
 * what comes back from there.
 *
 * @pairs: receives up to @cap; @to is the member that sent, @from the device
 *         here, @dst the device there
 *
 * Returns  how many there are
 */
size_t xr_devmap_invert(const struct xr_device_info *members, size_t count,
	const char *name, struct xr_device_pair *pairs, size_t cap);

/*
 * xr_devmap_devices() - the accelerators that member @name uses: its list, or
 * what its maps, and those to it, name; sorted, each once.
 *
 * Returns  how many there are; up to @cap are written
 */
size_t xr_devmap_devices(const struct xr_device_info *members, size_t count,
	const char *name, int32_t *devices, size_t cap);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_DEVICE_H */
