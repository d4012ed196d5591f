/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphan.h - jobs whose xrun did not live to end them.
 *
 * When keeper and supervisor are killed at once, nobody is left to sweep. The
 * next job of the same user does: it looks for folders whose lock is free and
 * whose lock file says that the job is not closed (state.h), ends what is left
 * of the job (proc/stray.h), and closes the record: job.json with "exit": 125
 * and "reason": "supervisor lost" (where only the supervisor was killed, the
 * keeper has done so). Of a job that kept no folder, the folder of its control socket
 * is what is found (ctl/place.h). It runs on the helper thread, after the
 * ranks have started, and costs one look at each folder. For an xrun that was
 * killed and is not gone yet, it looks again for two seconds; then the folders of
 * control sockets are swept once more.
 */
#ifndef LAUNCHER_KEEPER_ORPHAN_H
#define LAUNCHER_KEEPER_ORPHAN_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/state/state.h"
#include "proc/stray.h"

/* orphan_end() - the same for one job, whose lock @state holds: of its name is
 * the next attempt. Blocks for seconds if somebody is left of it. */
void orphan_end(const struct state *state);

/* orphan_run() - work_fn: all below the root folder @path, which it frees. */
void orphan_run(void *path);

/*
 * orphan_end_bare() - ctl_dead_fn: those of job @id that bear its name, which is
 * all there is where it kept no folder.
 *
 * @root: the root folder; nothing is done if it has a folder there, since that
 *        knows more
 */
void orphan_end_bare(void *root, const char *id, int64_t since);

/* A job whose xrun did not live to end it. */
struct orphan_facts {
	const char *dir;      /* its folder */
	struct stray_job job; /* what its processes bear */
	bool this_boot;       /* else there are none */
	bool groups;          /* it has control groups still */
};

/* orphan_each() - look for them below @root, and change nothing. */
typedef void orphan_fn(void *ctx, const struct orphan_facts *facts);
void orphan_each(const char *root, orphan_fn *fn, void *ctx);

#endif /* LAUNCHER_KEEPER_ORPHAN_H */
