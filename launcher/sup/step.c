/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - something happened to a rank: its next state, and what is due. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/sup/sup.h"

/* Once a rank. kill(2) gives EPERM only if no process of the group may be
 * signalled. */
static void
note_foreign(struct job *job, uint32_t r)
{
	struct rank *rank = &job->rank[r];

	if (rank->foreign)
		return;
	rank->foreign = true;
	logs_say(job->sup->logs,
		"xrun: rank %u (pid %d) is another user's by now and cannot be signalled (%s)",
		job_rank(job, r), (int)rank->pid, strerror(EPERM));
}

/* The leader is not reaped yet, so its number is its own. */
void
step_signal(struct job *job, uint32_t r, int sig)
{
	const struct rank *rank = &job->rank[r];

	if (rank->pidfd == -1)
		return;
	fault(FAULT_STOP_SIGNAL, r);
	if (kill(-rank->pid, sig) == -1 && errno == EPERM)
		note_foreign(job, r);
	if (sig != SIGSTOP && sig != SIGCONT && sig != SIGKILL)
		kill(-rank->pid, SIGCONT); /* a stopped one would not hear it */
}

void
step_signal_all(struct job *job, int sig)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		step_signal(job, i, sig);
}

/* Its pipes may be open for ever: give them up after a while. */
void
step_drain(struct job *job, struct rank *rank)
{
	if (rank->open == 0)
		return;
	rank->drain_ns = clock_now() + DRAIN_NS;
	if (!timer_armed(job->sup->drain))
		timer_arm(job->sup->drain, DRAIN_NS);
}

static void
act(struct job *job, uint32_t r, unsigned what)
{
	struct rank *rank = &job->rank[r];

	if (what & RANK_DO_STOP)
		step_signal(job, r, job->opt.stop_signal);
	if (what & RANK_DO_KILL)
		step_signal(job, r, SIGKILL);
	if (what & RANK_DO_DRAIN)
		step_drain(job, rank);
	if (what & RANK_DO_CLOSE) {
		rank->dropped = true;
		for (uint32_t k = 0; k < RAW_STREAMS; k++)
			step_drop(job, r * RAW_STREAMS + k);
	}
	if (what & RANK_DO_SETTLE) {
		job->settled++;
		pty_close_if_over(job, r);
	}
}

void
step_rank(struct job *job, uint32_t r, enum rank_event event)
{
	struct rank *rank = &job->rank[r];
	enum rank_state to;
	unsigned what;

	if (!rank_next(rank->state, event, &to, &what)) {
		logs_say(job->sup->logs,
			"xrun: bug: rank %u: %s while %s; please report it",
			job_rank(job, r), rank_event_name(event),
			rank_state_name(rank->state));
		return;
	}
	rank->state = to;
	act(job, r, what);
	/* Dead, and the pipes were at their end before. */
	if (to == RANK_ENDED && event == RANK_EV_EXITED && rank->open == 0)
		step_rank(job, r, RANK_EV_CLOSED);
}

void
step_left_open(struct job *job, uint32_t stream)
{
	job->rank[stream / RAW_STREAMS].left_open = true;
}

void
step_drop(struct job *job, uint32_t stream)
{
	enum drop_end end = logs_drop(job->sup->logs, stream);

	if (end == DROP_LEFT_OPEN)
		step_left_open(job, stream);
	if (end != DROP_LATER)
		step_eof(job, stream);
}

void
step_eof(struct job *job, uint32_t stream)
{
	uint32_t r = stream / RAW_STREAMS;
	struct rank *rank = &job->rank[r];

	if (rank->open > 0)
		rank->open--;
	if (rank->open == 0 && rank->state != RANK_DONE)
		step_rank(job, r, RANK_EV_CLOSED);
	pty_close_if_over(job, r);
}
