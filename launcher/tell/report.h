/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the job as one JSON object: job.json in its folder, and --report.
 *
 * The text is made on the loop and written by the helper thread.
 */
#ifndef LAUNCHER_TELL_REPORT_H
#define LAUNCHER_TELL_REPORT_H

#include <stdbool.h>

#include "launcher/job/job.h"

/* report_job() - job.json of a running job, with -d at its start already. */
void report_job(struct job *job);

/* report_put_now() - the job as it is, one object: what job.json begins with,
 * "phase", and of each rank its state and what is counted by now. */
void report_put_now(struct job *job, struct buf *out);

/* report_begin() - job.json of a running job, and `latest`, once it has written
 * a byte. A timer_fn: jobs that are over at once never get there. */
void report_begin(void *job);

/* report_latest() - `latest` is to point to the job; once. */
void report_latest(struct job *job);

/*
 * report_next() - the last event, the final job.json if sup->writing.keep, and
 * the file of --report.
 *
 * In stages, between which the loop goes on: to be called again at each
 * NOTE_WRITTEN, and when sup->patience, which it arms, ends (writing.late).
 * True when all is written or given up. What was asked for and is not complete
 * is said, and is job->unwritten.
 */
bool report_next(struct job *job);

/*
 * report_wait() - will NOTE_WRITTEN come, when the helper thread has done what it
 * has to? Not if it has nothing to do, and not for ever: the first call arms
 * sup->patience, for all that is waited for at the end.
 */
bool report_wait(struct job *job);

/* report_written() - NOTE_WRITTEN: something that report_next() waits for is done.
 * A work_fn, and for the loop. */
void report_written(void *job);

/* report_lost_text() - why a file of the end is not complete, or not there: as
 * strerror(), and ETIMEDOUT is the disk's, not a connection's. */
const char *report_lost_text(const struct job *job, int sys);

/* report_refused() - to --report: no rank was started, or the supervisor ended
 * without a verdict. @why: ends at a tab. Not on the loop: it writes. */
void report_refused(const struct job *job, int exit_status, const char *why);

#endif /* LAUNCHER_TELL_REPORT_H */
