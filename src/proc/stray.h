/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stray.h - processes of a job whose keeper and supervisor were both killed.
 *
 * Its ranks died with the supervisor; what had left their sessions lives on,
 * and nobody is its parent. Such a process bears the job's XRUN_JOB in its
 * environment. That alone could be said by a stranger, so all of this must
 * hold, too: it is this user's; it began after the job; it is in the job's
 * control group, where that is known; and no ancestor of it is an xrun that
 * lives, since then it is that one's to end.
 *
 * A nested xrun among them is told to end (SIGTERM) and ends its job in order;
 * all others are killed. What calls itself xrun is one if it runs our own
 * executable; one of that name may be another build, and is killed if it has
 * not gone half way to the deadline.
 */
#ifndef PROC_STRAY_H
#define PROC_STRAY_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct stray_job {
	const char *id;     /* what XRUN_JOB says */
	int64_t since;      /* clock_wall() when it began */
	const char *cgroup; /* of cgroup_path(), of its xrun; NULL: not known */
};

/*
 * stray_end() - end them, until none is found or @deadline (clock_now).
 *
 * @ended:  how many were ended, or told to
 * Returns  true if none is left but such as were told
 * Blocks   a look at all of /proc a round; for the helper thread
 */
bool stray_end(const struct stray_job *job, int64_t deadline, uint32_t *ended);

struct stray {
	pid_t pid;
	const char *job;  /* what its XRUN_JOB says */
	const char *name; /* of its program, as ps(1) has it */
};

/* stray_each() - tell of every process of this user that bears an XRUN_JOB and
 * has no living xrun above it. Ends nobody. */
typedef void stray_fn(void *ctx, const struct stray *stray);
void stray_each(stray_fn *fn, void *ctx);

/* stray_fits() - is @stray one that stray_end() would end for @job? */
bool stray_fits(const struct stray_job *job, const struct stray *stray);

#endif /* PROC_STRAY_H */
