/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detach.h - a job that goes on without the xrun that was called (-d).
 *
 * That xrun, the caller, makes a child, which runs the job: in a session of its
 * own, with nothing of the caller's but one pipe as its standard error. What
 * goes wrong at the start is said there and copied by the caller. Once every
 * rank was started the supervisor says so in a shared page, turns standard error
 * to a file in the attempt's folder, and ends the pipe when job.json is written.
 * A pipe that ends while the page says nothing is a job that never came to run.
 */
#ifndef LAUNCHER_SUP_DETACH_H
#define LAUNCHER_SUP_DETACH_H

#include <stdbool.h>

#include "launcher/job/detach.h"
#include "launcher/job/job.h"

/* detach_new() - NULL with errno. */
struct detach *detach_new(void);

/* detach_open() - the file, and an eye on the caller; before the keeper. */
enum xr_status detach_open(struct job *job, struct xr_error *err);

/* detach_watch() - a caller that dies first takes the job with it: nobody would
 * know of it. False: out of memory. */
bool detach_watch(struct job *job);

/* detach_started() - all ranks were started, or failed to. */
void detach_started(struct job *job);

#endif /* LAUNCHER_SUP_DETACH_H */
