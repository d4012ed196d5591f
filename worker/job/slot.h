/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.h - this rank's slot of the job's segment, if there is one.
 *
 * Which one it is, is read from the environment when the library is loaded, and
 * no more: what signal handlers call reads no environment. The descriptor is
 * looked at, and the segment mapped, when it is first asked for. Outside of a
 * job, or where the job has no segment, all this does nothing.
 */
#ifndef WORKER_JOB_SLOT_H
#define WORKER_JOB_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

/* slot_init() - read the environment, again; what was mapped stays so, and is
 * forgotten. By the constructor, and by tests. */
void slot_init(void);

/*
 * slot_beat() - the rank makes progress.
 *
 * Returns  false: there is no slot
 * Thread   any, a signal handler too
 */
bool slot_beat(void);

/* slot_progress() - the same, with what it told: @total 0: not known. */
bool slot_progress(int64_t step, int64_t total);

/* slot_lost() - a message found no room. */
void slot_lost(void);

/*
 * slot_hold() - this process holds the slot.
 *
 * @holder: 0, or who holds it
 * Returns  false: there is no slot
 */
bool slot_hold(pid_t *holder);

/* slot_let_go() - nobody does, if this process did. */
void slot_let_go(void);

#endif /* WORKER_JOB_SLOT_H */
