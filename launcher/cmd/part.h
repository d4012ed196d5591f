/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - the programs of a job: one, or several with ':' between them.
 *
 * Each has ranks, a directory, a file, an agent or a reason for none, and an
 * environment of its own. All of it stands before the first rank; whatever
 * concerns the machine or the job as a whole is in prepare.h.
 */
#ifndef LAUNCHER_CMD_PART_H
#define LAUNCHER_CMD_PART_H

#include <stdint.h>

#include "launcher/job/job.h"
#include "place/env.h"
#include "xrun/error.h"

/* parts_init() - job->parts from what was read. Borrows job->opt and @found. */
void parts_init(struct job *job, const struct options_found *found);
void parts_fini(struct job *job);

/* parts_ranks() - what -n says in all; 0: nothing, of a single program. One of
 * several programs has one rank unless it says otherwise. */
int64_t parts_ranks(const struct job *job);

/*
 * parts_find() - once there is a plan: ranks, directories, files, agents.
 *
 * @exit_status: of xrun, on failure
 * Returns  XR_OK; XR_E_SYS (--chdir), or as program_find()
 */
enum xr_status parts_find(struct job *job, int *exit_status,
	struct xr_error *err);

/* parts_needs() - the ports that any program's variables will name. */
struct env_needs parts_needs(const struct job *job,
	const struct env_facts *common);

/* parts_env() - the environments, and the arguments of --template; @common is
 * what they have in common, and outlives them. Returns as env_new(). */
enum xr_status parts_env(struct job *job, const struct env_facts *common,
	struct xr_error *err);

#endif /* LAUNCHER_CMD_PART_H */
