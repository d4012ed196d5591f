/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.h - what ranks tell by a store: their slots of the job's segment.
 *
 * The segment is made before the first rank of an attempt, and only for a job that can use it:
 * one of whose programs is linked with libxrun, or one that is watched for
 * hanging. So an unmodified program pays nothing for it. Ranks have it at
 * SLOTS_FD, and tell of it by XRUN_SEGMENT_FD; where it cannot be made, or a
 * rank's limit leaves no room for the descriptor, they use messages (hear.h).
 *
 * All of this does nothing in a job without a segment. On the loop.
 */
#ifndef LAUNCHER_TELL_SLOTS_H
#define LAUNCHER_TELL_SLOTS_H

#include "launcher/job/job.h"

#define SLOTS_FD 98

/* slots_wanted() - will it be made? Once the programs are known. */
bool slots_wanted(const struct job *job);

/* slots_open() - make it, before the first rank: each attempt has its own. */
void slots_open(struct job *job);

/* slots_started() - rank @r has its process. */
void slots_started(struct job *job, uint32_t r);

/*
 * slots_tick() - changes whenever rank @r made progress that it told by a store:
 * xr_heartbeat(), xr_job_progress(). 0 where it told nothing. A rank that tells by
 * messages moves job->rank[r].told_ns.
 */
uint64_t slots_tick(const struct job *job, uint32_t r);

/* slots_look() - what rank @r told last, by a store or a message, whichever is
 * newer, is in job->rank[r]: step, total, told_ns. */
void slots_look(struct job *job, uint32_t r);

/* slots_reaped() - the same for the last time. The slot is free, unless another
 * process has it, and lives yet; others hear of it, if they have not; and what the
 * rank had is given back, by the helper thread. */
void slots_reaped(struct job *job, uint32_t r);

/* slots_strangers() - processes were reaped that ranks left behind: the same. */
void slots_strangers(struct job *job);

#endif /* LAUNCHER_TELL_SLOTS_H */
