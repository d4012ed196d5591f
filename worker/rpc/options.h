/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - single options of xr_rpc_init(), checked: pure functions.
 *
 * Each gives XR_OK, or XR_E_INVAL with an @err that names the option, what it was,
 * and what would be right.
 */
#ifndef WORKER_RPC_OPTIONS_H
#define WORKER_RPC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/device.h>
#include <xrun/error.h>
#include <xrun/rpc.h>

struct suggest;

/* 16 times what a machine of 256 processors would use: a slip of the pen. */
#define OPTIONS_THREADS_MAX 4096

/* worker_name_check() - 1 to XR_WORKER_NAME_MAX of A-Z a-z 0-9 - _ : */
enum xr_status worker_name_check(const char *name, struct xr_error *err);

enum xr_status options_threads_check(int64_t threads, struct xr_error *err);
enum xr_status options_transport_check(const char *name, struct xr_error *err);

/* options_pair_check() - of a device map: indices, and the name. */
enum xr_status options_pair_check(const struct xr_device_pair *pair,
	struct xr_error *err);

/* options_clash() - do they map one device of this worker to two of the other's?
 * Two that say the same do not. */
bool options_clash(const struct xr_device_pair *a,
	const struct xr_device_pair *b);
enum xr_status options_clash_error(const struct xr_device_pair *a,
	const struct xr_device_pair *b, struct xr_error *err);

/* options_device_check() - an accelerator, of a list of them. */
enum xr_status options_device_check(int32_t device, struct xr_error *err);

/* options_offer() - the names of options that all backends have. */
void options_offer(struct suggest *near);

#endif /* WORKER_RPC_OPTIONS_H */
