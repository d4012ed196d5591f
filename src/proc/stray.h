/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stray.h - processes of a job whose keeper and supervisor were both killed.
 *
 * The ranks died with the supervisor. Processes that had left their sessions
 * continue to run without a parent of xrun. Such a process is known by
 * the mark that it inherited (lineage.h) and by its start time, in clock ticks
 * since boot. XRUN_JOB in an environment is no proof, since environments are
 * copied.
 *
 * A nested xrun among them receives SIGTERM and ends its job in order. All
 * others are killed. A process that is called xrun is one if it runs our own
 * executable. One of that name may be another build; it is killed if it still
 * runs half way to the deadline.
 */
#ifndef PROC_STRAY_H
#define PROC_STRAY_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct stray_job {
	uint64_t
		lineage; /* of lineage_new(); LINEAGE_NONE matches no process */
	uint64_t ticks;  /* since boot; its processes did not start earlier */
};

/*
 * stray_end() - end them, until none is found or @deadline (clock_now).
 *
 * @ended:  receives how many were killed, or received SIGTERM
 * Returns  true if none is left but such as received SIGTERM
 * Blocks   reads all of /proc several times
 */
bool stray_end(const struct stray_job *job, int64_t deadline, uint32_t *ended);

struct stray {
	pid_t pid;
	const char *job;  /* value of its XRUN_JOB, or NULL */
	const char *name; /* of its program, as ps(1) has it */
	bool watched;     /* a living xrun is an ancestor of it */
};

/* stray_each() - calls @fn for each process of this user that has a mark or an
 * XRUN_JOB. Ends no process. */
typedef void stray_fn(void *ctx, const struct stray *stray);
void stray_each(stray_fn *fn, void *ctx);

/* stray_fits() - returns true if stray_end() would end process @pid for @job. */
bool stray_fits(const struct stray_job *job, pid_t pid);

#endif /* PROC_STRAY_H */
