/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - the ladder: stop signal to all, one grace period, SIGKILL to all,
 * then whatever else descends from them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/sup.h"
#include "proc/descend.h"

#define SWEEP_PATIENCE (30 * NS_PER_S) /* for uninterruptible sleeps */
#define FILES_PATIENCE (5 * NS_PER_S)  /* for a full or frozen disk */

/* To its whole group. The leader is not reaped yet, so its number is its own;
 * a group that forbids it (setuid) is met when it is swept. */
void
stop_signal_rank(struct job *job, uint32_t r, int sig)
{
	const struct rank *rank = &job->rank[r];

	if (rank->pidfd == -1)
		return;
	kill(-rank->pid, sig);
	if (sig != SIGSTOP && sig != SIGCONT && sig != SIGKILL)
		kill(-rank->pid, SIGCONT); /* a stopped one would not hear it */
}

void
stop_signal_all(struct job *job, int sig)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		stop_signal_rank(job, i, sig);
}

static void
each_rank(struct job *job, enum rank_event event)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		sup_step(job, i, event);
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
stop_kill(void *ctx)
{
	struct job *job = ctx;

	if (job->stop_ns == 0)
		job->stop_ns = clock_now();
	job->sup->killed = true;
	each_rank(job, RANK_EV_KILL);
	timer_arm(job->sup->grace, SWEEP_PATIENCE);
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
		sup_step(job, i, RANK_EV_LOST);
	}
	finish_if_over(job);
}

bool
stop_all_reaped(const struct job *job)
{
	if (job->started < job_size(job) && job->stop_ns == 0)
		return false;
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].pidfd != -1)
			return false;
	return true;
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
			sup_step(job, i, RANK_EV_LOST);
		for (uint32_t k = 0; k < 2 * RAW_STREAMS && files; k++)
			logs_drop(sup->logs, i * RAW_STREAMS + k % RAW_STREAMS);
	}
	if (!sup->output_dropped && files)
		timer_arm(sup->grace, FILES_PATIENCE);
	sup->output_dropped = true;
	finish_if_over(job);
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
stop_sweep(struct job *job)
{
	struct leftover l = { .job = job };
	struct descend d = { .tell = note_leftover, .ctx = &l };
	uint32_t alive = descend_end(&d, clock_now() + SWEEP_PATIENCE);

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
	if (alive > 0)
		logs_say(job->sup->logs,
			"xrun: %u process%s cannot be ended (uninterruptible sleep); look at: ps -eo pid,stat,wchan,comm",
			alive, alive == 1 ? "" : "es");
}
