/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - what the table of job/ending.h asks for is done, and patience with
 * pipes and disks comes to an end. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/screen.h"
#include "launcher/tell/stacks.h"
#include "proc/descend.h"
#include "proc/immune.h"

#define KILL_PATIENCE  (30 * NS_PER_S) /* for uninterruptible sleeps */
#define GRACE_MAX_S    600.0           /* that a rank can ask for at once */
#define FILES_PATIENCE (5 * NS_PER_S)  /* for a full or frozen disk */
#define IMMUNE_FIRST   (NS_PER_S / 2)  /* for processes to take the signal */
#define IMMUNE_AGAIN   NS_PER_S
#define READ_MIN       (NS_PER_S / 10) /* for a reader, past the deadline */
#define READ_MAX       (NS_PER_S / 2)
#define PHASE_MIN      NS_PER_S       /* for a slow disk, past the deadline */
#define END_ALLOWANCE  (6 * NS_PER_S) /* beyond --grace, in the worst case */

static void
each_rank(struct job *job, enum rank_event event)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		step_rank(job, i, event);
}

/* A sleep that no signal ends (a device, a file server), or another user's
 * process. Waiting on would only hide it. */
static void
leave_rank(struct job *job, uint32_t i)
{
	struct rank *r = &job->rank[i];
	struct proc_stat st = { .state = '?' };

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

static void
leave_all(struct job *job)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].pidfd != -1)
			leave_rank(job, i);
}

void
stop_bound(struct job *job)
{
	if (job->sup->until_ns == 0)
		job->sup->until_ns = clock_now() + job->opt.grace;
}

int64_t
stop_left(const struct job *job, bool last)
{
	int64_t least = job->opt.grace / 4, left;

	least = least < READ_MIN ? READ_MIN : least;
	least = least > READ_MAX ? READ_MAX : least;
	left = job->sup->until_ns - clock_now() - (last ? 0 : least);
	return left > least ? left : least;
}

int64_t
stop_within(const struct job *job, int64_t most)
{
	int64_t left;

	if (job->sup->until_ns == 0)
		return most;
	left = job->sup->until_ns - clock_now();
	left = left < PHASE_MIN ? PHASE_MIN : left;
	return left < most ? left : most;
}

double
stop_seconds(const struct job *job)
{
	int64_t left = job->sup->until_ns - clock_now();

	return (double)(left + END_ALLOWANCE) / NS_PER_S;
}

static void
advance(struct job *job, enum ending_event event)
{
	unsigned what;

	job->ending = ending_next(job->ending, event, &what);
	if (what & ENDING_DO_SHOW)
		screen_interrupt(job);
	if (what & ENDING_DO_TELL)
		screen_interrupt_again(job);
	if (what & ENDING_DO_INT)
		step_signal_all(job, SIGINT);
	if (what & ENDING_DO_STOP) {
		each_rank(job, RANK_EV_STOP);
		job->sup->grace_ns = clock_now() + job->opt.grace;
		timer_arm(job->sup->patience, job->opt.grace);
		timer_arm(job->sup->immune, IMMUNE_FIRST);
	}
	if ((what & ENDING_DO_STOP) && job->sup->told)
		stop_bound(job);
	if (what & ENDING_DO_KILL) {
		each_rank(job, RANK_EV_KILL);
		timer_arm(job->sup->patience, KILL_PATIENCE);
	}
	if (what & ENDING_DO_LEAVE)
		leave_all(job);
	if (what & (ENDING_DO_KILL | ENDING_DO_LEAVE))
		finish_if_over(job);
}

/* Somebody's decision, or nothing that another attempt would mend. */
static bool
is_final(enum cause cause)
{
	return cause != CAUSE_FAILURE && cause != CAUSE_HANG &&
		cause != CAUSE_RESTART;
}

/* The first cause stays, whatever comes after it; but who wants another attempt
 * has no say against who wants none. */
static bool
is_first(const struct job *job, enum cause cause)
{
	return job->cause == CAUSE_NONE ||
		(job->cause == CAUSE_RESTART && is_final(cause));
}

static void
set_cause(struct job *job, enum cause cause, int sig)
{
	job->sup->final = job->sup->final || is_final(cause);
	if (!is_first(job, cause))
		return;
	stacks_cancel(job);
	job->cause = cause;
	job->cause_signal = sig;
	if (job->stop_ns == 0)
		job->stop_ns = clock_now();
	/* Ranks that were to come do not, now. */
	if (timer_armed(job->sup->start))
		timer_arm(job->sup->start, 0);
	bus_tell(job->sup->bus, BUS_JOB_STOP, 0);
}

/* The job is to end now, whatever began its end: with the ranks gone, patience
 * with readers and disks is measured from here. */
void
stop_waiting(struct job *job)
{
	struct sup *sup = job->sup;

	sup->told = true;
	/* After one Ctrl-C the ranks have all the time that they need. */
	if (job->ending >= ENDING_STOPPING)
		stop_bound(job);
	if (sup->phase == PHASE_RUN && sweep_due(job) &&
		!timer_armed(sup->patience))
		timer_arm(sup->patience, job->opt.grace);
}

void
stop_job(struct job *job, enum cause cause)
{
	set_cause(job, cause, 0);
	advance(job, ENDING_EV_STOP);
	if (cause != CAUSE_FAILURE)
		stop_waiting(job);
}

void
stop_by_signal(struct job *job, int sig)
{
	set_cause(job, CAUSE_SIGNAL, sig);
	advance(job, ENDING_EV_STOP);
	stop_waiting(job);
}

void
stop_by_ctrl_c(struct job *job)
{
	bool ask = job->opt.interrupt == INTERRUPT_ASK;

	if (!ask || job->ending != ENDING_RUNNING) {
		job->ctrl_c = job->ctrl_c || is_first(job, CAUSE_SIGNAL);
		set_cause(job, CAUSE_SIGNAL, SIGINT);
		stop_waiting(job);
	}
	advance(job, ask ? ENDING_EV_CTRL_C_ASK : ENDING_EV_CTRL_C);
}

void
stop_fail(struct job *job, const char *fmt, ...)
{
	va_list ap;

	if (is_first(job, CAUSE_XRUN)) {
		va_start(ap, fmt);
		vsnprintf(job->cause_text, sizeof(job->cause_text), fmt, ap);
		va_end(ap);
	}
	stop_job(job, CAUSE_XRUN);
}

/* How long living ranks have: as --grace says, or as the last of those who asked
 * for more; none beyond GRACE_MAX_S. */
static int64_t
last_deadline(const struct job *job)
{
	int64_t last = job->sup->grace_ns;

	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].pidfd != -1 && job->rank[i].grace_ns > last)
			last = job->rank[i].grace_ns;
	return last;
}

/* Only while ranks have their time to end: who was told to hurry (SIGKILL is
 * under way) does not wait. */
void
stop_later(struct job *job, uint32_t r, double seconds)
{
	struct sup *sup = job->sup;
	struct rank *rank = &job->rank[r];
	int64_t until, most;

	if (job->ending != ENDING_STOPPING || rank->pidfd == -1 ||
		!timer_armed(sup->patience) || !(seconds > 0))
		return;
	most = sup->grace_ns + (int64_t)(GRACE_MAX_S * NS_PER_S);
	until = clock_now() +
		(int64_t)((seconds < GRACE_MAX_S ? seconds : GRACE_MAX_S) *
			NS_PER_S);
	if (until > most)
		until = most;
	if (until <= rank->grace_ns || until <= sup->grace_ns)
		return;
	if (rank->grace_ns == 0)
		logs_say(sup->logs, "xrun: rank %u asks for %.3g s more to end",
			job_rank(job, r),
			(double)(until - clock_now()) / NS_PER_S);
	rank->grace_ns = until;
	if (sup->until_ns != 0 && sup->until_ns < until)
		sup->until_ns = until;
	timer_arm(sup->patience, last_deadline(job) - clock_now());
}

void
stop_recount(struct job *job)
{
	int64_t left;

	/* All ranks are dead: the time of SIGKILL no longer applies. */
	if (job->ending == ENDING_KILLED && job->sup->told &&
		job->sup->phase == PHASE_RUN && sweep_due(job)) {
		stop_bound(job);
		timer_arm(job->sup->patience, stop_left(job, false));
	}
	if (job->ending != ENDING_STOPPING ||
		!timer_armed(job->sup->patience) ||
		job->sup->phase != PHASE_RUN || sweep_due(job))
		return;
	left = last_deadline(job) - clock_now();
	timer_arm(job->sup->patience, left > 0 ? left : 0);
}

void
stop_now(struct job *job)
{
	advance(job, ENDING_EV_PATIENCE);
}

/* A rank on which the stop signal has no effect is killed at once. */
void
stop_immune(void *ctx)
{
	struct job *job = ctx;
	bool more = false;

	if (job->ending != ENDING_STOPPING)
		return;
	for (uint32_t i = 0; i < job_size(job); i++) {
		const struct rank *rank = &job->rank[i];

		if (rank->pidfd == -1 || rank->state != RANK_STOPPING)
			continue;
		if (immune_session(rank->pid, job->opt.stop_signal))
			step_rank(job, i, RANK_EV_KILL);
		else
			more = true;
	}
	if (more)
		timer_arm(job->sup->immune, IMMUNE_AGAIN);
}

/*
 * The ranks are gone, and their last bytes are not where they should be: the
 * disk is full, or nobody reads. What has no room is counted as lost, and said.
 * A mover that does not answer for five seconds, or by the deadline, sleeps on the
 * disk.
 */
void
stop_output(struct job *job)
{
	struct sup *sup = job->sup;
	bool files = job->state.dir_fd != -1;

	for (uint32_t i = 0; i < job_size(job); i++) {
		if (job->rank[i].state != RANK_ENDED)
			continue;
		if (sup->output_dropped || !files) {
			job->rank[i].unsaved = files;
			step_rank(job, i, RANK_EV_LOST);
		}
		for (uint32_t k = 0; k < 2 * RAW_STREAMS && files; k++)
			step_drop(job, i * RAW_STREAMS + k % RAW_STREAMS);
	}
	if (!sup->output_dropped && files)
		timer_arm(sup->patience, stop_within(job, FILES_PATIENCE));
	sup->output_dropped = true;
	finish_if_over(job);
}
