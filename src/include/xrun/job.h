/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/job.h - which rank of which job this is, and telling how far it is.
 *
 * A program that was started by hand is rank 0 of 1, and what it tells is told
 * to nobody: XR_OK all the same. `xrun ps JOB` shows what was told. Nothing here
 * starts a thread, and nothing but xr_job_report_crashes() allocates; nothing fails because xrun is gone; functions
 * that touch a signal disposition say so. Any thread, at any time.
 *
 * How far a rank is, it tells by a store where the job has a segment, which it
 * has if one of its programs is linked with this library; all else is a message.
 * All ranks share a queue of those: where it is full of what others told, what
 * is told once, which is all but progress before the last step, waits for room,
 * at most 100 ms.
 */
#ifndef XRUN_JOB_H
#define XRUN_JOB_H

#include <stdint.h>

#include "xrun/error.h"
#include "xrun/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* xr_job_id() - "k7m2"; "" outside of a job. Good as long as the environment. */
const char *xr_job_id(void);

/* xr_job_attempt() - how often the job was started before; 0 at first. */
uint32_t xr_job_attempt(void);

uint32_t xr_job_rank(void);       /* 0 .. size - 1 */
uint32_t xr_job_size(void);       /* at least 1 */
uint32_t xr_job_local_rank(void); /* on this machine */
uint32_t xr_job_local_size(void); /* at least 1 */
uint32_t xr_job_node(void);       /* this machine, 0 .. nodes - 1 */
uint32_t xr_job_nodes(void);      /* at least 1 */

/* xr_job_device() - "cpu", "cuda:3", "tpu:11"; several with commas between.
 * Good as long as the environment. */
const char *xr_job_device(void);

/*
 * xr_job_ready() - it has what it needs, and begins to work.
 *
 * Returns  XR_OK; XR_E_AGAIN: no room for 100 ms, it was not told
 */
enum xr_status xr_job_ready(void);

#define XR_METRICS_MAX 40

/* A number by name. */
struct xr_metric {
	const char *name; /* [A-Za-z0-9_.-]{1,64} */
	double value;     /* finite, or it is left out */
};

struct xr_progress {
	uint32_t size;                   /* sizeof(struct xr_progress) */
	uint32_t metric_count;           /* at most XR_METRICS_MAX */
	int64_t step;                    /* steps done, from 0 */
	int64_t total;                   /* steps there are; 0: not known */
	const struct xr_metric *metrics; /* [metric_count]; or NULL */
};

/*
 * xr_job_progress() - how far this rank is.
 *
 * Step and total are a store, each time. By message they and the metrics are told
 * ten times a second at most; the last step, which is @progress's total, always.
 * What comes between, and finds no room, is passed over: XR_OK. A step or total
 * beyond 2^53 - 1 is told as that.
 *
 * Returns  XR_OK; XR_E_INVAL: a negative number, a name that is none, too many
 *          metrics; XR_E_AGAIN: no room for the last step for 100 ms. Nothing
 *          was told then.
 */
enum xr_status xr_job_progress(const struct xr_progress *progress);

/*
 * xr_job_extend() - this rank saves what it has, and needs @ns from now on to
 * end. xrun, once it has told the ranks to stop, waits that long before it
 * kills, though --grace be less; 600 s beyond that are the most in all. Before, it does
 * nothing.
 *
 * Returns  XR_OK; XR_E_INVAL: not above 0; XR_E_AGAIN: no room for 100 ms, it
 *          was not told
 */
enum xr_status xr_job_extend(int64_t ns);

/*
 * xr_heartbeat() - this rank makes progress, of which it can say no more.
 *
 * A store; without a segment a message, once a second at most. What hangs
 * should not call it: so not from a timer.
 *
 * Thread   any, a signal handler too.  Blocks: no.
 */
void xr_heartbeat(void);

/*
 * xr_job_attach() - this process is the rank.
 *
 * One at a time is, of all the processes that a rank may consist of. It stays so
 * until it ends, executes another program, or calls xr_job_detach(). A child made
 * by fork is another process. Telling needs none of this.
 *
 * Returns  XR_OK: it is, or was; outside of a job always
 *          XR_E_EXISTS: another process is, which @err names
 *          XR_E_NOTFOUND: the job has no segment
 */
enum xr_status xr_job_attach(struct xr_error *err);

/* xr_job_detach() - it is no more; nothing if it was not. */
void xr_job_detach(void);

/* Called in a signal handler, in whichever thread has the signal: only what is
 * async-signal-safe may be called from it. */
typedef void xr_stop_fn(void *ctx);

/*
 * xr_job_on_stop() - have @fn called when the rank is told to stop, by SIGTERM.
 *
 * Installs a handler for SIGTERM, which no more ends the process then: it has
 * xrun's --grace to save what it has and to end. A handler that was there before
 * is called, too. Called again, it replaces @fn; @fn NULL: xr_job_stopping() alone
 * tells.
 *
 * Returns  XR_OK; XR_E_SYS
 */
enum xr_status xr_job_on_stop(xr_stop_fn *fn, void *ctx, struct xr_error *err);

/* xr_job_stopping() - 1 once the rank was told to stop; asked for by
 * xr_job_on_stop(). Any thread, a signal handler too. */
int xr_job_stopping(void);

/*
 * xr_job_report_crashes() - a fatal signal is told, with address and backtrace.
 *
 * Installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, and a stack
 * for them in the calling thread. Exit status, core dump and handlers that were
 * there before stay as they were. xrun shows it with the rank that failed; outside
 * of a job it is written to stderr. Call it early, in the main thread: it loads
 * what backtrace(3) needs.
 *
 * Returns  XR_OK; XR_E_SYS: no stack
 */
enum xr_status xr_job_report_crashes(struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_JOB_H */
