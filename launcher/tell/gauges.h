/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauges.h - how the pools and queues of ranks are: what waits, what is done, how busy
 * workers are.
 *
 * They are read in the job's segment (segment/gauge.h), when somebody asks, and when the
 * rank has ended. Of a rank without a slot nothing is known. On the loop.
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

/* gauges_put() - the members "pools", "queues" and "unlisted" of a rank; nothing where
 * it has, and had, none. */
void gauges_put(struct json *j, const struct rank *rank);

#endif /* LAUNCHER_TELL_GAUGES_H */
