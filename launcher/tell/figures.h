/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.h - what the agents of ranks have counted: calls, bytes, how long they
 * took, and who was lost to whom.
 *
 * A rank with a slot counts in the job's segment, which is read when somebody
 * asks, and when the rank has ended. One without tells by messages
 * (launcher/sup/hear.h). Of a rank without an agent nothing is known, and nothing
 * is shown. On the loop.
 */
#ifndef LAUNCHER_TELL_FIGURES_H
#define LAUNCHER_TELL_FIGURES_H

#include "launcher/job/job.h"

struct figures_view;
struct json;

/* figures_look() - what rank @r has counted by now is in job->rank[r]. */
void figures_look(struct job *job, uint32_t r);

/* figures_reaped() - the same for the last time; its slot has none. */
void figures_reaped(struct job *job, uint32_t r);

/* figures_told() - the rank said so. */
void figures_told(struct rank *rank, const struct figures_view *view);

/* figures_blame() - rank @r was told that rank @peer of the job is gone; the first
 * one counts. */
void figures_blame(struct job *job, uint32_t r, int64_t peer);

/* figures_put() - the member "rpc" of a rank; nothing if it has no agent. */
void figures_put(struct json *j, const struct rank *rank);

#endif /* LAUNCHER_TELL_FIGURES_H */
