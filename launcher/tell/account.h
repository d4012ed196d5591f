/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - xrun's last words: why it ended, who failed first, what is lost.
 *
 * All of them go to stderr, between whole lines of the ranks. Where stderr is
 * no terminal, a job that went well has none.
 */
#ifndef LAUNCHER_TELL_ACCOUNT_H
#define LAUNCHER_TELL_ACCOUNT_H

#include <stdint.h>

#include "launcher/job/job.h"

/*
 * job_account() - the end: who failed first, how, with its last lines; what
 * happened to the others; the table of resources with -v.
 *
 * @files: false leaves out what only files tell. With them it is for the helper
 *         thread, which alone may wait for a disk. The first account counts.
 */
void job_account(struct job *job, bool files);

/* job_account_needs_files() - Returns true if files are read, or their modes changed. */
bool job_account_needs_files(const struct job *job);

#endif /* LAUNCHER_TELL_ACCOUNT_H */
