/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.h - the file of --report: one object, whoever lives to write it.
 *
 * The supervisor puts the whole text into a file without a name and copies from
 * there. Keeper and supervisor share their descriptors, and so its place in that
 * file: where the supervisor is killed amid it, the keeper goes on with the next
 * byte. What the text says of the exit status stands in the page before the
 * first one (page->told).
 */
#ifndef LAUNCHER_KEEPER_REPORT_FILE_H
#define LAUNCHER_KEEPER_REPORT_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "launcher/job/job.h"

/* report_file_prepare() - the keeper could write @text from now on. False where
 * there is no room for a second copy. */
bool report_file_prepare(struct job *job, const struct buf *text);

/* report_file_write() - the text that was prepared; any thread. 0, or an
 * errno. */
int report_file_write(struct job *job);

/* report_file_put() - @text, which nobody else could go on with. */
int report_file_put(int fd, const struct buf *text);

/* report_file_finish() - in the keeper, whose supervisor is dead: what is missing
 * of the text that was prepared. 0, or an errno. No heap. */
int report_file_finish(struct job *job);

#endif /* LAUNCHER_KEEPER_REPORT_FILE_H */
