/* SPDX-License-Identifier: Apache-2.0 */
/* death.c - who died when, and what follows from it. */
#include <signal.h>
#include <stdlib.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/job/outcome.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/why.h"
#include "proc/descend.h"

#define LATE_NS (50 * NS_PER_MS)
#define TURNS   16 /* of words of the dead: more than their queue holds */

/* It died of a signal that nobody of us sent, and others had been told by then that
 * it is gone: they had it from the kernel, before we did. */
static bool
was_gone(const struct job *job, uint32_t r)
{
	const struct rank *rank = &job->rank[r];

	if (!WIFSIGNALED(rank->status) || WTERMSIG(rank->status) != SIGKILL ||
		rank->state == RANK_KILLED || job->opt.stop_signal == SIGKILL)
		return false;
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].blames == r + 1 && job->rank[i].death != 0)
			return true;
	return false;
}

void
death_of(uint32_t r, void *ctx)
{
	struct job *job = ctx;
	struct rank *rank = &job->rank[r];

	fault(FAULT_DEATH_SEEN, r);
	children_remove(job->sup->children, rank->pidfd);
	if (!child_reap(rank->pidfd, rank->pid, &rank->status, &rank->usage)) {
		death_look_for(job, r);
		return;
	}
	rank->late = false;
	fd_close(rank->pidfd);
	rank->pidfd = -1;
	rank->ended_ns = clock_now();
	rank->death = ++job->deaths;
	slots_reaped(job, r);
	rank->after_stop = job->stop_ns != 0 && !rank->was_exiting &&
		!rank->foreign && !was_gone(job, r);
	if (rank->status == 0 && job->sup->lifelines != NULL)
		lifelines_drop(job->sup->lifelines, r);
	why_note(job, r);
	bus_tell(job->sup->bus, BUS_RANK_EXIT, r);
	step_rank(job, r, RANK_EV_EXITED);
}

/* Nobody tells when rank @r dies. */
void
death_look_for(struct job *job, uint32_t r)
{
	job->rank[r].late = true;
	timer_arm(job->sup->late, LATE_NS);
}

/* A debugger sees its dead first, and may take its time. */
void
death_of_late(void *ctx)
{
	struct job *job = ctx;

	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].late && job->rank[i].pidfd != -1)
			death_of(i, job);
	death_judge(job);
}

/* A failure that is nobody's doing but the rank's. */
static bool
any_failure(const struct job *job)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (outcome_is_failure(&job->rank[i]) &&
			!job->rank[i].after_stop)
			return true;
	return false;
}

/* Was one who died told that another is gone? That one may not have come to begin
 * with its end. */
static bool
any_blame(const struct job *job)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].blames != 0)
			return true;
	return false;
}

/* Who is dying at this moment? They began before xrun could tell them to. */
static void
mark_exiting(struct job *job)
{
	const bool blamed = any_blame(job);
	struct proc_stat st;

	for (uint32_t i = 0; i < job_size(job); i++) {
		struct rank *r = &job->rank[i];

		if (r->pidfd == -1)
			continue;
		r->was_exiting = (proc_stat_read(r->pid, &st) && st.exiting) ||
			proc_dumps_core(r->pid) ||
			(blamed && proc_is_killed(r->pid));
	}
}

/* In which order the dead and dying let go of their lifelines. One that lives
 * has closed its own, and says nothing by it. */
static void
read_lifelines(struct job *job)
{
	uint32_t *order = calloc(job_size(job), sizeof(*order));

	if (order != NULL && job->sup->lifelines != NULL)
		lifelines_order(job->sup->lifelines, order);
	for (uint32_t i = 0; order != NULL && i < job_size(job); i++)
		job->rank[i].closed = order[i];
	free(order);
}

static void
take_evidence(struct job *job)
{
	read_lifelines(job);
	mark_exiting(job);
	for (uint32_t i = 0; i < job_size(job); i++) {
		struct rank *r = &job->rank[i];

		if (r->pidfd != -1 && !r->was_exiting)
			r->closed = 0;
	}
}

/*
 * Called after each batch of deaths. With the first failure the evidence is
 * taken and the others are told to stop; the verdict is found in the end, when
 * all are reaped, those that were already dying included: one of them may be
 * the cause.
 */
void
death_judge(void *ctx)
{
	struct job *job = ctx;
	struct sup *sup = job->sup;

	fault(FAULT_DEATH_JUDGE, FAULT_ANY);
	/* Some of them may say whose victims they are. */
	for (int i = 0; i < TURNS && !hear_turn(job); i++)
		continue;
	if (!sup->judged && job->stop_ns == 0 && any_failure(job)) {
		sup->judged = true;
		take_evidence(job);
		if (job->opt.on_failure == ON_FAILURE_STOP)
			stop_job(job, CAUSE_FAILURE);
	}
	stop_recount(job);
	finish_if_over(job);
}

/* Looks for a living rank from @at on, round the table. */
struct seek {
	const struct job *job;
	uint32_t at;
};

/* Children are listed as they were born, and so are ranks: the next one asked
 * for is nearly always the next one in the table. */
static bool
is_ours(pid_t pid, void *ctx)
{
	struct seek *seek = ctx;
	uint32_t n = job_size(seek->job);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t r = (seek->at + i) % n;
		const struct rank *rank = &seek->job->rank[r];

		if (rank->pid != pid || rank->pidfd == -1)
			continue;
		seek->at = r + 1;
		return true;
	}
	return aide_is(seek->job, pid);
}

/* Processes whose parents died were adopted; the dead among them are reaped,
 * by pid, never by waitpid(-1). */
void
death_reap_strangers(void *ctx)
{
	struct job *job = ctx;
	struct seek seek = { .job = job };
	struct descend d = { .keep = is_ours, .ctx = &seek };

	descend_reap(&d);
	slots_strangers(job);
}
