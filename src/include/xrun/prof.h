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

/* xr_prof_begin() - from now on. XR_E_STATE: this thread has one already, or, in
 * a function, has begun one there; XR_E_INVAL: @flags; XR_E_NOMEM. */
enum xr_status xr_prof_begin(uint32_t flags, struct xr_error *err);

/*
 * xr_prof_end() - up to now: that of this thread, or the process's that began last.
 *
 * @events: receives a LIST of DICTs; NULL: nobody wants them
 *
 *	"key"     rpc_sync#f(a -> b), rpc_async#, rpc_remote#: a call of f, from
 *	          worker a to b; to_here#(a)->(b): a reference was fetched; f: a
 *	          function that ran; what a mark says. What ran for a call elsewhere
 *	          has that call's key and "#remote_op: " in front, once a hop
 *	"start", "end"  ns, of the clock of the machine where it ran
 *	"worker", "thread"  where it ran: the worker's id, the thread's number
 *	"remote"  BOOL: it came back with an answer
 *
 * In the order in which they began; what ran for a call follows it. A call that has
 * not ended is not among them.
 *
 * Returns  XR_OK; XR_E_STATE: none was begun; XR_E_INVAL: @flags; XR_E_NOMEM: some
 *          found no room. It is over in any case.
 */
enum xr_status xr_prof_end(uint32_t flags, struct xr_value **events,
	struct xr_error *err);

/* xr_prof_trace() - the same as Chrome's trace, in JSON: a TEXT. XR_E_INVAL: these
 * are no events; XR_E_NOMEM. */
enum xr_status xr_prof_trace(const struct xr_value *events,
	struct xr_value **json, struct xr_error *err);

/* xr_prof_mark_begin(), xr_prof_mark_end() - a part of the program's own, named
 * @key, UTF-8, where a profile is recorded. They nest in a thread. */
void xr_prof_mark_begin(const char *key);
void xr_prof_mark_end(void);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_PROF_H */
