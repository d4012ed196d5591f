/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h - the jobs of this user on this machine, by their folders. */
#ifndef LAUNCHER_STATE_JOBS_H
#define LAUNCHER_STATE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* jobs_is() - is @dir a job's folder? @running: its lock is held, as it is as
 * long as any process of its xrun lives. */
bool jobs_is(const char *dir, bool *running);

/* Told of each job's folder; @running: its lock is held. False: enough. */
typedef bool jobs_fn(void *ctx, const char *dir, const char *id, bool running);

/* jobs_each() - every folder of the state root @root that is a job's. */
void jobs_each(const char *root, jobs_fn *fn, void *ctx);

/* jobs_each_anywhere() - the same, beginning anywhere: for who has no time for
 * all of them, each has its turn some day. */
void jobs_each_anywhere(const char *root, jobs_fn *fn, void *ctx);

/* jobs_read() - job.json of the job's folder @dir; NULL if it has none yet, or
 * one that is not ours. The caller deletes it. */
struct cJSON *jobs_read(const char *dir);

/* jobs_text() - a member of such an object; NULL if it is no text. */
const char *jobs_text(const struct cJSON *json, const char *key);

/* jobs_number() - the same of a number from 0 on; else @otherwise. */
int64_t jobs_number(const struct cJSON *json, const char *key,
	int64_t otherwise);

/* jobs_running() - how many run now; @out, unless NULL, is told which:
 * "k7m2 (8 ranks, 3 min), b4kw (1 rank, 2 s)", the first three. */
uint32_t jobs_running(struct buf *out);

#endif /* LAUNCHER_STATE_JOBS_H */
