/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/prof.h - what calls took, here and where they ran.
 *
 * A profile records the calls that its thread makes between begin and end, and
 * what ran for them elsewhere, at any depth. A process-wide one records what runs
 * in this process for whomever. Without any, nothing of it is on the wire.
 */
#ifndef XRUN_PROF_H
#define XRUN_PROF_H

#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xr_prof_flags {
	XR_PROF_THREAD = 0,
	XR_PROF_PROCESS =
		1, /* they nest: what an inner one sees the outer does */
};

/* xr_prof_begin() - from now on. XR_E_STATE: this thread has one already. */
enum xr_status xr_prof_begin(uint32_t flags, struct xr_error *err);

/* xr_prof_end() - @events: a LIST of DICTs, in the order of their begin: "key",
 * "start" and "end" in ns of the recording worker's clock, "worker", "remote". */
enum xr_status xr_prof_end(uint32_t flags, struct xr_value **events,
	struct xr_error *err);

/* xr_prof_trace() - the same as Chrome's trace, in JSON: a TEXT. */
enum xr_status xr_prof_trace(const struct xr_value *events,
	struct xr_value **json, struct xr_error *err);

/* xr_prof_mark_begin(), xr_prof_mark_end() - a part of the program's own, named
 * @key, where a profile is recorded. They nest in a thread. */
void xr_prof_mark_begin(const char *key);
void xr_prof_mark_end(void);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_PROF_H */
