/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/job.h - which rank of which job this is, and telling how far it is.
 *
 * A program that was started by hand is rank 0 of 1, and what it tells is told
 * to nobody: XR_OK all the same. `xrun ps JOB` shows what was told. Nothing here
 * allocates, starts a thread or touches a signal disposition; nothing fails
 * because xrun is gone. All ranks share a queue: where it is full of what others
 * told, what is told once, which is all but progress before the last step, waits
 * for room, at most 100 ms. Any thread, at any time.
 */
#ifndef XRUN_JOB_H
#define XRUN_JOB_H

#include <stdint.h>

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
 * At most ten times a second it is told; the last step, which is @progress's
 * total, always. What comes between, and finds no room, is passed over: XR_OK. A
 * step or total beyond 2^53 - 1 is told as that.
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

#ifdef __cplusplus
}
#endif

#endif /* XRUN_JOB_H */
