/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphan.h - jobs whose xrun did not live to end them.
 *
 * When keeper and supervisor are killed at once, nobody is left to sweep. The
 * next xrun of the same user does. It takes the records whose lock is free
 * (lost.h), ends the processes of these jobs and closes what they left:
 * job.json with "exit": 125 and "reason": "supervisor lost". (Where only the
 * supervisor was killed, the keeper has done so.) Then it looks for folders of
 * jobs whose lock is free and whose lock file says that the job is not closed
 * (state.h): their records are gone, as after a new boot.
 *
 * A job does that on the helper thread, after its ranks have started. For an
 * xrun that was killed and is not gone yet, it looks again for two seconds; then
 * the folders of control sockets are swept once more. A verb does it before
 * anything else, with less patience.
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

/* orphan_run() - work_fn: ends all lost jobs, and all below the root folder @path,
 * which may be NULL. Frees @path. */
void orphan_run(void *path);

/* orphan_run_now() - the same for a verb of this user: waits a moment only for an
 * xrun that was killed. */
void orphan_run_now(void);

/*
 * orphan_close_recorded() - closes the record of a lost job whose processes were ended.
 *
 * @record:  of the running job, lost.h
 * @ended:   how many of its processes were ended
 * Returns   false if its folder is locked; the caller tries later
 */
struct cJSON;
bool orphan_close_recorded(const struct cJSON *record, uint32_t ended);

/* A job whose xrun did not live to end it. */
struct orphan_facts {
	const char *id;
	const char *dir;      /* its folder */
	struct stray_job job; /* its processes */
	bool groups;          /* it has control groups still */
};

/* orphan_each() - look for them below @root, and change nothing. */
typedef void orphan_fn(void *ctx, const struct orphan_facts *facts);
void orphan_each(const char *root, orphan_fn *fn, void *ctx);

#endif /* LAUNCHER_KEEPER_ORPHAN_H */
