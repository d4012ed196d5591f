/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - all ranks are reaped: what they left behind is ended, and named.
 *
 * In rounds, between which the loop hears what else happens: who is in an
 * uninterruptible sleep may need half a minute, or never end.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"
#include "proc/descend.h"

#define SWEEP_PATIENCE (30 * NS_PER_S) /* for uninterruptible sleeps */
#define STUCK_PATIENCE NS_PER_S        /* where some are known already */
#define A_TURN         3 /* looks; mostly the last is among them */
#define SOON_NS        NS_PER_MS
#define SOON_LOOKS     100
#define LATER_NS       (50 * NS_PER_MS)

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

static bool
is_of_no_rank(pid_t pid, void *ctx)
{
	struct job *job = ctx;

	if (aide_is(job, pid))
		return true;
	if (!hook_left(job, pid))
		return false;
	job->sup->sweep.spared = true;
	return true;
}

static void
note_leftover(pid_t pid, const char *comm, void *ctx)
{
	struct sweep *s = &((struct job *)ctx)->sup->sweep;
	int n;

	s->count++;
	if (s->len > sizeof(s->text) - 64)
		return;
	n = snprintf(s->text + s->len, sizeof(s->text) - s->len,
		"%s%s (pid %d)", s->len > 0 ? ", " : "", comm, (int)pid);
	/* A name that would begin a line; what else it may hold, logs_say()
	 * tames. */
	for (char *p = s->text + s->len; (p = strchr(p, '\n')) != NULL;)
		*p = '?';
	s->len += (size_t)n;
}

static void
say_ended(struct job *job)
{
	const struct sweep *s = &job->sup->sweep;

	job->left += s->count;
	if (s->count > 0 && job->stop_ns == 0 && !job->opt.quiet)
		logs_say(job->sup->logs,
			"xrun: %u process%s outlived %s and %s ended: %s",
			s->count, s->count == 1 ? "" : "es",
			job_size(job) == 1 ? "its rank" : "the ranks",
			s->count == 1 ? "was" : "were", s->text);
}

static void
say_stuck(struct job *job, uint32_t alive)
{
	struct sup *sup = job->sup;
	uint32_t more = alive > sup->stuck ? alive - sup->stuck : 0;

	if (alive == 0 && !aide_any(job) && !sup->sweep.spared &&
		descend_hidden())
		logs_say(sup->logs,
			"xrun: /proc is not mounted: processes that the ranks left behind cannot be found");
	sup->stuck += more;
	if (more > 0)
		logs_say(sup->logs,
			"xrun: %u process%s cannot be ended, not even with SIGKILL, and %s left; look at: ps -eo pid,stat,wchan,comm",
			more, more == 1 ? "" : "es", more == 1 ? "is" : "are");
}

/* Those that become children later belonged to those that were told of. */
static void
look(struct job *job)
{
	struct sweep *s = &job->sup->sweep;
	struct descend d = { .keep = is_of_no_rank, .ctx = job };
	uint32_t alive = 0, met = 1;

	for (int i = 0; i < A_TURN && met > 0; i++) {
		d.tell = s->looks++ == 0 ? note_leftover : NULL;
		met = descend_look(&d, &alive);
		if (d.tell != NULL && job->page->leaves.on)
			leaf_kill(&job->page->leaves);
	}
	if (met == 0 && s->looks < SOON_LOOKS)
		met = !leaf_remove(&job->page->leaves);
	if (met > 0 && clock_now() < s->deadline) {
		timer_arm(s->timer, s->looks < SOON_LOOKS ? SOON_NS : LATER_NS);
		return;
	}
	s->state = SWEEP_OVER;
	say_ended(job);
	say_stuck(job, alive);
}

void
sweep_again(void *ctx)
{
	struct job *job = ctx;

	look(job);
	if (job->sup->sweep.state == SWEEP_OVER)
		finish_if_over(job);
}

bool
sweep_leftovers(struct job *job)
{
	struct sweep *s = &job->sup->sweep;
	int64_t patience =
		job->sup->stuck > 0 ? STUCK_PATIENCE : SWEEP_PATIENCE;

	if (s->state == SWEEP_NONE) {
		s->state = SWEEP_RUNS;
		fault(FAULT_SWEEP, FAULT_ANY);
		s->deadline = clock_now() + patience;
		look(job);
	}
	return s->state == SWEEP_OVER;
}
