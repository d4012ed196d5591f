/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - on which device of a peer a tensor arrives.
 *
 * What goes to a member follows this process's map to it; what comes back from a
 * call follows the other's map to us, the other way round. A tensor on an
 * accelerator needs an entry, or nothing is sent; one in memory of the host stays
 * there without. What a process sends to itself may stay where it is.
 */
#ifndef WORKER_RPC_DEVICES_H
#define WORKER_RPC_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/device.h>
#include <xrun/error.h>

#include "wire/value/value_hooks.h"

struct peer;

struct device_pair {
	int32_t from, dst; /* indices, or XR_DEVICE_MAP_CPU */
};

/* Between this process and a peer; never changes. */
struct peer_devices {
	enum xr_device_kind kind; /* of its accelerators; CPU: it has none */
	uint32_t there, back;
	struct device_pair pair[]; /* [there + back]: of calls, of answers */
};

/* devices_here() - what this process has: how many, and of which kind. Drivers are
 * up when it returns. */
uint32_t devices_here(enum xr_device_kind *kind);

/* devices_to(), devices_back() - device() of struct value_codec_ctx, whose ctx is
 * the struct peer: for what is asked of it, and for what it is answered. XR_E_DEVICE
 * says which of the two maps lacks the device. */
enum xr_status devices_to(void *peer, struct xr_tensor_desc *desc,
	struct xr_error *err);
enum xr_status devices_back(void *peer, struct xr_tensor_desc *desc,
	struct xr_error *err);

#endif /* WORKER_RPC_DEVICES_H */
