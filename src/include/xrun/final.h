/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/final.h - what is to be done when the process ends.
 *
 * A finaliser is called once: by xr_final_run(), or by exit(3), also where main()
 * returns; those with a higher priority first, of equal ones who came last. In a
 * process that fork() made, its parent's are not called. Processes that were
 * started are waited for, or ended, at priority 0. Any thread.
 */
#ifndef XRUN_FINAL_H
#define XRUN_FINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "xrun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xr_final;

/* Called once, on the thread that calls xr_final_run() or exit(3). @ctx: that of
 * xr_final_new(). */
typedef void xr_final_fn(void *ctx);

/* xr_final_new() - XR_E_INVAL: no function; XR_E_NOMEM. @final is released by
 * xr_final_run() or xr_final_drop(); who keeps it till the end need not. */
enum xr_status xr_final_new(xr_final_fn *fn, void *ctx, int32_t priority,
	struct xr_final **final, struct xr_error *err);

/* xr_final_run() - call it now, and release it. False: it is another process's, or
 * exit(3) has begun to call it. */
bool xr_final_run(struct xr_final *final);

/* xr_final_drop() - it is not called any more, and released. NULL is fine. */
void xr_final_drop(struct xr_final *final);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_FINAL_H */
