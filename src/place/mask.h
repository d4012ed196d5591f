/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.h - lists of devices as people and other launchers write them.
 *
 * Two dialects of one grammar, pieces split by commas. A mask is what stands
 * in CUDA_VISIBLE_DEVICES and its like: indices, UUIDs, beginnings of UUIDs,
 * MIG slices. It was written for the driver, so it may name devices that
 * cannot be found without it. A selection is what --devices says: indices and
 * ranges ("0,2-3"), UUIDs and their beginnings, and each must be one of the
 * devices that were found.
 *
 * Both refuse a device named twice, one that is not there, and what is no
 * device at all, with the piece and its byte. Both give a new array, in the
 * order of the text, which the caller frees.
 */
#ifndef PLACE_MASK_H
#define PLACE_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/plugin.h>

/* Devices, and what to call their list in an error: "CUDA_VISIBLE_DEVICES". */
struct mask_from {
	const char *name;
	const struct xr_device *devices;
	uint32_t count;
};

/*
 * mask_apply() - the devices that @text leaves visible.
 *
 * "", "none", "void" and "NoDevFiles" leave none; -1 ends the list, as CUDA
 * has it. A UUID that matches no known one becomes a device of its own, with
 * index UINT32_MAX: the driver knows it, nobody has asked.
 *
 * Returns  XR_OK; XR_E_INVAL (no device), XR_E_RANGE (not there), XR_E_EXISTS
 *          (twice)
 */
enum xr_status mask_apply(const struct mask_from *from, const char *text,
	struct xr_device **out, uint32_t *count, struct xr_error *err);

/*
 * mask_select() - the devices that @text names.
 *
 * Returns  as mask_apply(); XR_E_CONFLICT if a beginning fits several
 */
enum xr_status mask_select(const struct mask_from *from, const char *text,
	struct xr_device **out, uint32_t *count, struct xr_error *err);

/* mask_check() - could it be a selection, whatever devices there are? With the
 * piece and its byte. */
enum xr_status mask_check(const char *text, struct xr_error *err);

/* mask_needs_driver() - does @text, of --devices, name UUIDs? "auto" and "none"
 * do not. */
bool mask_needs_driver(const char *text);

#endif /* PLACE_MASK_H */
