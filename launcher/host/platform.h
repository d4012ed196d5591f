/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform.h - which accelerators this job uses, and who hands them out.
 *
 * The platform plug-ins that are built in stand in one table. Choosing asks
 * each what it can find without opening a driver, takes an inherited mask such
 * as CUDA_VISIBLE_DEVICES into account, and keeps the one of highest
 * preference that has a device left. The driver is asked only by
 * platform_list(), which costs time.
 *
 * Settings of a plug-in are variables, XRUN_<PLUGIN>_<SETTING>:
 * XRUN_CUDA_ROOT=/tmp/x lets it look for /tmp/x/dev/nvidia0.
 *
 * Launcher's main thread, before the first rank. One choice at a time: what
 * plug-ins ask of their host is answered from the latest one.
 */
#ifndef LAUNCHER_HOST_PLATFORM_H
#define LAUNCHER_HOST_PLATFORM_H

#include <xrun/plugin.h>

#include "base/buf.h"
#include "place/env.h"
#include "place/plan.h"

struct platform_choice {
	const struct xr_plugin *plugin; /* never NULL after success */
	struct xr_device *devices;      /* visible, in the order of the mask */
	uint32_t count;                 /* 0 for cpu */
	uint32_t most; /* devices one rank can use; 0: any number */
};

/*
 * platform_choose() - find out.
 *
 * @name: "auto", or one that must work and have a device (cpu has none)
 * @vars: the environment xrun was started in; kept till platform_fini()
 *
 * Returns  XR_OK; XR_E_NOTFOUND (no such platform), XR_E_NODEV (it has no
 *          device here), what the plug-in said; or XR_E_INVAL, XR_E_RANGE,
 *          XR_E_EXISTS for a mask that is wrong
 */
enum xr_status platform_choose(const char *name, char *const *vars,
	struct platform_choice *out, struct xr_error *err);
void platform_fini(struct platform_choice *choice);

/*
 * platform_list() - ask the driver; devices get UUID, memory, PCI address.
 *
 * Needed before plan_make() if mask_needs_driver(--devices), and by whoever
 * wants to show them. May take seconds.
 */
enum xr_status platform_list(struct platform_choice *choice,
	struct xr_error *err);

/*
 * platform_give() - the variables of each deal of @plan, for env_facts.given.
 *
 * @given: receives plan->deal_count elements in one allocation, or NULL where
 *         the platform gives none; platform_given_free()
 */
enum xr_status platform_give(const struct platform_choice *choice,
	const struct plan *plan, struct env_given **given,
	struct xr_error *err);
void platform_given_free(struct env_given *given, uint32_t deals);

/* platform_put() - "cuda:0-3", "cuda:3,0"; nothing for no device. */
void platform_put(struct buf *out, const struct xr_device *devices,
	uint32_t count);

/* platform_is_setting() - is it XRUN_<PLUGIN>_<SETTING>? Ranks do not get it. */
bool platform_is_setting(struct span name);

/* platform_next() - the built-in platforms one by one; NULL starts and ends. */
const struct xr_plugin *platform_next(const struct xr_plugin *last);

#endif /* LAUNCHER_HOST_PLATFORM_H */
