/* SPDX-License-Identifier: Apache-2.0 */
/*
 * renew.h - a job begins again: what its next supervisor finds.
 *
 * The keeper's struct job is as it was before the first supervisor was made,
 * and the next one is made from it. What they share is made new here: the
 * table of descriptors, in which what the dead one opened still stands, the
 * page, the pipes' slots, the folder of the attempt. No heap.
 */
#ifndef LAUNCHER_KEEPER_RENEW_H
#define LAUNCHER_KEEPER_RENEW_H

#include "launcher/job/job.h"

/* renew_note() - what is open now is the job's, and stays; once, before the
 * first supervisor. */
void renew_note(const struct job *job);

/*
 * renew_job() - after the end of a supervisor that left a job which begins
 * again.
 *
 * Returns  0, or -1 with errno, @what receiving a constant: what failed
 */
int renew_job(struct job *job, const char **what);

#endif /* LAUNCHER_KEEPER_RENEW_H */
