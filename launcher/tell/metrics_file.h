/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_file.h - --metrics-file: the job as metrics, in a file that is new
 * every five seconds, and once more at the end of the job.
 *
 * The loop makes the JSON that a client would get, and a thread all else: what
 * /proc says, the text, a file beside it, and its name. It is not the helper
 * thread, since its disk may be another, and slow. Where it fails that is said
 * once, and tried again. Nothing is done without the option.
 */
#ifndef LAUNCHER_TELL_METRICS_FILE_H
#define LAUNCHER_TELL_METRICS_FILE_H

#include "launcher/job/job.h"

/* metrics_file_check() - before the first rank: can it be there? */
enum xr_status metrics_file_check(const char *path, struct xr_error *err);

/* metrics_file_begin() - the job is no short one. */
void metrics_file_begin(struct job *job);

/* metrics_file_last() - how it ended; handed to the thread. */
void metrics_file_last(struct job *job);

/* metrics_file_end() - after the loop: waits for that a second at most, and says
 * if it could not be written. */
void metrics_file_end(struct job *job);

#endif /* LAUNCHER_TELL_METRICS_FILE_H */
