/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/time.h - how long: nanoseconds, everywhere.
 *
 * A time is an int64_t. 0 means "do not wait" of a local wait; a function where
 * it means something else says so. What is negative, and not
 * XR_TIMEOUT_DEFAULT, is refused. Deadlines are monotonic: setting the clock of
 * the machine moves none.
 */
#ifndef XRUN_TIME_H
#define XRUN_TIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XR_SECONDS() - 1.5 s is XR_SECONDS(1.5). */
#define XR_SECONDS(s) ((int64_t)((s)*1e9))

#define XR_TIMEOUT_DEFAULT INT64_C(-1) /* as the object says that is asked */
#define XR_TIMEOUT_NEVER   INT64_MAX   /* wait for ever */

#ifdef __cplusplus
}
#endif

#endif /* XRUN_TIME_H */
