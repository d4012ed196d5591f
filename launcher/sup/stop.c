/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - the ladder: stop signal to all, one grace period, SIGKILL to all,
 * and patience that comes to an end. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/sup/sup.h"
#include "proc/descend.h"

#define KILL_PATIENCE  (30 * NS_PER_S) /* for uninterruptible sleeps */
#define FILES_PATIENCE (5 * NS_PER_S)  /* for a full or frozen disk */

static void
each_rank(struct job *job, enum rank_event event)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		step_rank(job, i, event);
}

void
stop_job(struct job *job, enum cause cause)
{
	if (job->cause != CAUSE_NONE)
		return;
	job->cause = cause;
	job->stop_ns = clock_now();
	bus_tell(job->sup->bus, BUS_JOB_STOP, 0);
	each_rank(job, RANK_EV_STOP);
	if (job->opt.grace == 0)
		stop_kill(job);
	else
		timer_arm(job->sup->grace, job->opt.grace);
}

void
stop_fail(struct job *job, const char *fmt, ...)
{
	va_list ap;

	if (job->cause != CAUSE_NONE)
		return;
	va_start(ap, fmt);
	vsnprintf(job->cause_text, sizeof(job->cause_text), fmt, ap);
	va_end(ap);
	stop_job(job, CAUSE_XRUN);
}

void
stop_kill(void *ctx)
{
	struct job *job = ctx;

	if (job->stop_ns == 0)
		job->stop_ns = clock_now();
	job->sup->killed = true;
	each_rank(job, RANK_EV_KILL);
	timer_arm(job->sup->grace, KILL_PATIENCE);
	finish_if_over(job);
}

/* A sleep that no signal ends (a device, a file server), or another user's
 * process. Waiting on would only hide it. */
void
stop_give_up(struct job *job)
{
	struct proc_stat st = { .state = '?' };

	for (uint32_t i = 0; i < job_size(job); i++) {
		struct rank *r = &job->rank[i];

		if (r->pidfd == -1)
			continue;
		proc_stat_read(r->pid, &st);
		logs_say(job->sup->logs,
			"xrun: rank %u (pid %d, state %c) cannot be ended, not even with SIGKILL, and is left; look at: cat /proc/%d/wchan /proc/%d/stack",
			job_rank(job, i), (int)r->pid, st.state, (int)r->pid,
			(int)r->pid);
		children_remove(job->sup->children, r->pidfd);
		fd_close(r->pidfd);
		r->pidfd = -1;
		r->lost = true;
		job->sup->stuck++;
		step_rank(job, i, RANK_EV_LOST);
	}
	finish_if_over(job);
}

/*
 * The ranks are gone, and their last bytes are not where they should be: the
 * disk is full, or nobody reads. Files get five more seconds; then what is left
 * is counted as lost, and said.
 */
void
stop_output(struct job *job)
{
	struct sup *sup = job->sup;
	bool files = job->state.dir_fd != -1;

	for (uint32_t i = 0; i < job_size(job); i++) {
		if (job->rank[i].state != RANK_ENDED)
			continue;
		if (sup->output_dropped || !files)
			step_rank(job, i, RANK_EV_LOST);
		for (uint32_t k = 0; k < 2 * RAW_STREAMS && files; k++)
			logs_drop(sup->logs, i * RAW_STREAMS + k % RAW_STREAMS);
	}
	if (!sup->output_dropped && files)
		timer_arm(sup->grace, FILES_PATIENCE);
	sup->output_dropped = true;
	finish_if_over(job);
}
