/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lost.h - jobs whose keeper and supervisor were killed, by their records.
 *
 * The next xrun of the same user ends their processes, closes the record that
 * their folder has or adds a line to the history, and removes the record of the
 * running job. It knows the processes by their mark (proc/stray.h).
 */
#ifndef LAUNCHER_KEEPER_LOST_H
#define LAUNCHER_KEEPER_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/stray.h"

struct cJSON;

/* lost_end_all() - does so for all of them.
 * @dying: receives true if one was killed and is not gone yet
 * Returns true if there was one. Blocks for seconds if a process does not end. */
bool lost_end_all(bool *dying);

/* One of them, or a job that runs. */
struct lost_facts {
	const char *id;
	const char *dir;      /* of its output; may be NULL */
	struct stray_job job; /* its processes; no mark: none can be here */
	const struct cJSON *record;
};

/* lost_each() - calls @fn for each of them. Changes nothing. */
typedef void lost_fn(void *ctx, const struct lost_facts *facts);
void lost_each(lost_fn *fn, void *ctx);

/* lost_each_held() - calls @fn for each job of this user that runs, as far as verbs
 * look for jobs. */
void lost_each_held(lost_fn *fn, void *ctx);

/* lost_stray() - the processes that the members "lineage", "ticks" and "boot" of
 * @record describe; without a mark if they are of another boot. */
struct stray_job lost_stray(const struct cJSON *record);

/* lost_is_own() - returns true if @record, or job.json, is that of the job whose
 * supervisor calls this. If its keeper was killed, nothing waits for the end of the
 * job but the supervisor itself. */
bool lost_is_own(const struct cJSON *record);

#endif /* LAUNCHER_KEEPER_LOST_H */
