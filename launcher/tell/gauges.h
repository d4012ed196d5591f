/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauges.h - how the pools and queues of ranks are: what waits, what is done, how busy
 * workers are.
 *
 * They are read in the job's segment (segment/gauge.h), or in memory that a rank without a
 * slot has sent, when somebody asks, and when the rank has ended. On the loop.
 */
#ifndef LAUNCHER_TELL_GAUGES_H
#define LAUNCHER_TELL_GAUGES_H

#include "launcher/job/job.h"

struct json;

/* gauges_look() - those of rank @r, as they are now, are in job->rank[r]. */
void gauges_look(struct job *job, uint32_t r);

/* gauges_reaped() - the same for the last time: it has none any more, and what they have
 * done stays. */
void gauges_reaped(struct job *job, uint32_t r);

/* gauges_sent() - process @pid of rank @r, 0: not known, tells in @fd; it is taken. False:
 * it is not, as another one does already, or it is no such memory. */
bool gauges_sent(struct job *job, uint32_t r, pid_t pid, int fd);

/* gauges_free() - nothing is known of the rank. */
void gauges_free(struct rank *rank);

/* gauges_put() - the members "pools", "queues" and "unlisted" of a rank; nothing where
 * it has, and had, none. */
void gauges_put(struct json *j, const struct rank *rank);

#endif /* LAUNCHER_TELL_GAUGES_H */
