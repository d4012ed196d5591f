/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/time.h - timeouts, in nanoseconds.
 *
 * A timeout is an int64_t. Two rules hold for every function and every option struct:
 *
 *	as an argument, 0 does not wait
 *	as a field of a struct, 0 selects the default of the field
 *
 * XR_TIMEOUT_NEVER waits without limit, and XR_TIMEOUT_DEFAULT selects the default of
 * the object: that of the agent for calls, references and xr_rpc_shutdown(), and that
 * of the world, group or store for their functions. Futures, events, processes,
 * threads, queues and pools have no timeout of their own; by default a wait for them
 * has no limit. Other negative values are XR_E_INVAL. Deadlines are monotonic:
 * setting the clock of the machine moves none.
 */
#ifndef XRUN_TIME_H
#define XRUN_TIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XR_SECONDS() - 1.5 s is XR_SECONDS(1.5). */
#define XR_SECONDS(s) ((int64_t)((s) * 1e9))

#define XR_TIMEOUT_DEFAULT INT64_C(-1) /* the default of the object */
#define XR_TIMEOUT_NEVER   INT64_MAX   /* no limit */

#ifdef __cplusplus
}
#endif

#endif /* XRUN_TIME_H */
