/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h - the words about the rank that failed first. */
#ifndef LAUNCHER_TELL_FAILURE_H
#define LAUNCHER_TELL_FAILURE_H

#include <stdint.h>

#include "base/buf.h"
#include "launcher/job/job.h"

/* failure_put() - local rank @culprit: how and when it ended, its core file,
 * its last lines, what became of the others, where its output is. @files: read
 * what only files tell, and wait for the disk. */
void failure_put(const struct job *job, uint32_t culprit, bool files,
	struct buf *out);

/* failure_restrict_files() - gives the error.json of each rank that failed mode 0600.
 * May wait for the disk. */
void failure_restrict_files(const struct job *job);

#endif /* LAUNCHER_TELL_FAILURE_H */
