/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.h - before a job is ended that should have ended itself: where its ranks
 * are, in stacks.txt beside their output.
 *
 * An aide looks: "xrun stacks --pids", the same program as this one. The loop goes
 * on meanwhile, and whatever else ends the job does not wait for it.
 */
#ifndef LAUNCHER_TELL_STACKS_H
#define LAUNCHER_TELL_STACKS_H

#include <stdbool.h>

#include "launcher/job/job.h"

#define STACKS_PATIENCE (8 * NS_PER_S)

/* Behind the ranks of a line of the summary, as launcher/stacks/differ.h writes it. */
#define STACKS_DIFFERS " differs: "
#define STACKS_DIFFER  " differ: "

/*
 * On the loop, once, at most STACKS_PATIENCE and some milliseconds later: to go
 * on with what was about to be done. The job may have begun to end meanwhile.
 *
 * @taken:   they were, and it was said
 * @path:    where they are; NULL: not taken, or the job keeps no files
 * @summary: "rank 3: main > train > ...", the oddest, a line each; or ""
 */
typedef void stacks_fn(struct job *job, bool taken, const char *path,
	const char *summary);

/*
 * stacks_begin() - of all ranks that live.
 *
 * @why: for the file: "--timeout"; kept
 * Returns false, and @fn is not called: not possible, or it is being done, or the
 *         job is being ended already
 */
bool stacks_begin(struct job *job, const char *why, stacks_fn *fn);

/* stacks_cancel() - the job is to end now: @fn is called in the next turn. */
void stacks_cancel(struct job *job);

/* stacks_path() - where they are; NULL: none were taken, or kept. */
const char *stacks_path(const struct job *job);

/* stacks_put_event() - members of job.stacks: why, ranks, path; they were taken. */
struct json;
void stacks_put_event(struct json *j, const struct job *job);

void stacks_close(struct job *job); /* at the end */

#endif /* LAUNCHER_TELL_STACKS_H */
