/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h - the jobs of this user on this machine, by their folders. */
#ifndef LAUNCHER_JOBS_H
#define LAUNCHER_JOBS_H

#include <stdbool.h>
#include <stdint.h>

/* Told of each job's folder; @running: its lock is held. */
typedef void jobs_fn(void *ctx, const char *dir, const char *id, bool running);

/* jobs_each() - every folder of the state root @root that is a job's. */
void jobs_each(const char *root, jobs_fn *fn, void *ctx);

/* jobs_running() - how many run now. */
uint32_t jobs_running(void);

#endif /* LAUNCHER_JOBS_H */
