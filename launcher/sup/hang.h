/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.h - the watch for ranks that hang (--hang-timeout).
 *
 * Nothing of it is there unless it was asked for. Then the loop looks once a
 * heartbeat: at what ranks wrote and told, which costs nothing, and at the
 * processor time of those that were silent. When xrun itself stood still, the
 * ranks may have, too: their time begins anew by as much.
 *
 * A hang is told (event job.hang, a table, stacks), and ends the job with 121.
 */
#ifndef LAUNCHER_SUP_HANG_H
#define LAUNCHER_SUP_HANG_H

#include <stdint.h>

#include "launcher/job/job.h"

/* hang_begin() - all ranks were started. */
void hang_begin(struct job *job);

/* hang_stood() - the job was stopped for @ns, by Ctrl-Z. */
void hang_stood(struct job *job, int64_t ns);

void hang_close(struct job *job);

#endif /* LAUNCHER_SUP_HANG_H */
