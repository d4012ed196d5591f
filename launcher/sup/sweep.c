/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - all ranks are reaped: what they left behind is ended, and named. */
#include <stdio.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/sup/sup.h"
#include "proc/descend.h"

#define SWEEP_PATIENCE (30 * NS_PER_S) /* for uninterruptible sleeps */
#define STUCK_PATIENCE NS_PER_S        /* where some are known already */

bool
sweep_due(const struct job *job)
{
	if (job->started < job_size(job) && job->stop_ns == 0)
		return false;
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].pidfd != -1)
			return false;
	return true;
}

struct leftover {
	struct job *job;
	char text[1024];
	size_t len;
	uint32_t count;
};

static void
note_leftover(pid_t pid, const char *comm, void *ctx)
{
	struct leftover *l = ctx;
	int n;

	l->count++;
	if (l->len > sizeof(l->text) - 64)
		return;
	n = snprintf(l->text + l->len, sizeof(l->text) - l->len,
		"%s%s (pid %d)", l->len > 0 ? ", " : "", comm, (int)pid);
	l->len += (size_t)n;
}

/* All ranks are reaped: every child that is left is one they left behind. */
void
sweep_leftovers(struct job *job)
{
	struct leftover l = { .job = job };
	struct descend d = { .tell = note_leftover, .ctx = &l };
	struct sup *sup = job->sup;
	int64_t patience = sup->stuck > 0 ? STUCK_PATIENCE : SWEEP_PATIENCE;
	uint32_t alive, more;

	fault(FAULT_SWEEP, FAULT_ANY);
	alive = descend_end(&d, clock_now() + patience);
	job->left += l.count;
	if (l.count > 0 && job->stop_ns == 0 && !job->opt.quiet)
		logs_say(job->sup->logs,
			"xrun: %u process%s outlived %s and %s ended: %s",
			l.count, l.count == 1 ? "" : "es",
			job_size(job) == 1 ? "its rank" : "the ranks",
			l.count == 1 ? "was" : "were", l.text);
	if (alive == 0 && descend_hidden())
		logs_say(job->sup->logs,
			"xrun: /proc is not mounted: processes that the ranks left behind cannot be found");
	more = alive > sup->stuck ? alive - sup->stuck : 0;
	sup->stuck += more;
	if (more > 0)
		logs_say(sup->logs,
			"xrun: %u process%s cannot be ended, not even with SIGKILL, and %s left; look at: ps -eo pid,stat,wchan,comm",
			more, more == 1 ? "" : "es", more == 1 ? "is" : "are");
}
