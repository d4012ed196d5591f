/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphan.h - jobs whose xrun did not live to end them.
 *
 * When keeper and supervisor are killed at once, nobody is left to sweep. The
 * next job of the same user does: it looks for folders whose lock is free and
 * whose lock file says that the job is not closed (state.h), ends what is left
 * of the job (proc/stray.h), and closes the record: job.json with "exit": 125
 * and "reason": "supervisor lost" (where only the supervisor was killed, the
 * keeper has done so). It runs on the helper thread, after the
 * ranks have started, and costs one look at each folder. For an xrun that was
 * killed and is not gone yet, it looks again for half a second.
 */
#ifndef LAUNCHER_KEEPER_ORPHAN_H
#define LAUNCHER_KEEPER_ORPHAN_H

#include "launcher/state/state.h"

/* orphan_end() - the same for one job, whose lock @state holds: of its name is
 * the next attempt. Blocks for seconds if somebody is left of it. */
void orphan_end(const struct state *state);

/* orphan_run() - work_fn: all below the root folder @path, which it frees. */
void orphan_run(void *path);

#endif /* LAUNCHER_KEEPER_ORPHAN_H */
