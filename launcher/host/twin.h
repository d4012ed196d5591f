/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twin.h - xrun-dynamic: this program once more, with shared libraries.
 *
 * A program that is one file without shared libraries cannot open one at run
 * time either, as a driver's. For what needs that, its twin takes over before
 * anything has been started.
 */
#ifndef LAUNCHER_HOST_TWIN_H
#define LAUNCHER_HOST_TWIN_H

#include <xrun/error.h>
#include <xrun/status.h>

/*
 * twin_take_over() - XR_OK at once in a program that can open libraries; else
 * the twin is executed with @argv in our place, and it returns only if that
 * failed.
 *
 * @why: what it is needed for, "--devices GPU-1b5c"; for the error
 */
enum xr_status twin_take_over(char *const *argv, const char *why,
	struct xr_error *err);

#endif /* LAUNCHER_HOST_TWIN_H */
