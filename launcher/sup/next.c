/* SPDX-License-Identifier: Apache-2.0 */
/* next.c - see next.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/ctl/errors.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/next.h"
#include "launcher/sup/stdin_all.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "proc/shm.h"

#define TICK_NS (20 * NS_PER_MS) /* so coarse may the clock of files be */

/* A program that is not there is not there the next time, either: neither by
 * our own exec nor by that of a shell or env(1), which say so with the same
 * statuses. */
static bool
is_final(int exit_status)
{
	return exit_status == EXIT_CANNOT || exit_status == EXIT_NOT_FOUND;
}

/* A failure of the job's own, and no decision of somebody's. */
static bool
may_begin_again(const struct job *job, const struct outcome *o)
{
	bool own = job->cause == CAUSE_NONE || job->cause == CAUSE_FAILURE;

	if (job->cause == CAUSE_HANG)
		return true;
	return own && o->culprit != OUTCOME_NOBODY && o->exit_status != 0 &&
		!is_final(outcome_rank_status(&job->rank[o->culprit]));
}

static int64_t
best_step(const struct job *job)
{
	int64_t best = -1;

	for (uint32_t r = 0; r < job_size(job); r++) {
		const struct rank *rank = &job->rank[r];

		if (rank->step != -1 && rank->best > best)
			best = rank->best;
	}
	return best;
}

/* Never two incarnations of a rank: one that cannot be ended holds what the next
 * would need. */
static bool
is_anybody_left(const struct job *job)
{
	return job->sup->stuck > 0;
}

/* Its first rank's start, which a pause may have been before. */
static int64_t
begun_wall(const struct job *job)
{
	int64_t first = job->rank[0].started_ns;

	return first == 0 ? job->begun_wall :
			    job->begun_wall + (first - job->begun_ns);
}

/* By number; UINT32_MAX: none. */
static uint32_t
culprit_of_past(const struct job *job, const struct outcome *o)
{
	for (uint32_t r = 0; r < job_size(job); r++)
		if (job->rank[r].hung)
			return job_rank(job, r);
	return o->culprit == OUTCOME_NOBODY ? UINT32_MAX :
					      job_rank(job, o->culprit);
}

static void
note_past(struct job *job, const struct outcome *o)
{
	struct again_past past = {
		.number = job->state.number,
		.exit_status = o->exit_status,
		.culprit = culprit_of_past(job, o),
		.begun_wall = begun_wall(job),
		.ended_wall = job->begun_wall + (job->ended_ns - job->begun_ns),
	};

	snprintf(past.reason, sizeof(past.reason), "%s", o->reason);
	again_note(&job->page->again, &past);
}

struct names {
	char text[400];
	size_t len;
};

static void
add_name(const char *name, void *ctx)
{
	struct names *n = ctx;

	if (n->len + strlen(name) + 3 < sizeof(n->text))
		n->len += (size_t)snprintf(n->text + n->len,
			sizeof(n->text) - n->len, "%s%s",
			n->len > 0 ? ", " : "", name);
}

/* Else a job that begins again all day fills the memory with them. */
static void
remove_shared_memory(struct job *job)
{
	struct names names = { .len = 0 };
	int64_t since = job->begun_wall - TICK_NS;
	uint32_t n = shm_sweep("/dev/shm", since, add_name, &names);

	if (n > 0)
		logs_say(job->sup->logs,
			"xrun: %u object%s that this attempt left in /dev/shm %s removed: %s",
			n, n == 1 ? "" : "s", n == 1 ? "was" : "were",
			names.text);
}

/* That somebody asked for it is why the attempt ended, not why the job does. */
void
next_cannot(struct job *job, const char *why)
{
	int told = job->page->again.told;

	again_cancel(&job->page->again);
	if (job->cause != CAUSE_RESTART)
		return;
	if (told != 0)
		stop_by_signal(job, told);
	else
		stop_fail(job, "%s", why);
}

void
next_decide(struct job *job)
{
	struct again *a = &job->page->again;
	struct outcome o;
	const struct again_rule rule = {
		.most = (uint32_t)job->opt.restarts,
		.window_ns = job->opt.restart_window,
	};
	bool may_follow = !job->sup->final && !is_anybody_left(job);

	a->due = a->spent = 0;
	if (!may_follow)
		next_cannot(job,
			"the job cannot begin again: a process of it cannot be ended");
	o = outcome_of(job);
	if (job->cause == CAUSE_RESTART)
		again_asked(a);
	else if (may_follow && may_begin_again(job, &o))
		again_judge(a, &rule, job->ended_ns, best_step(job),
			(uint32_t)(job->ended_ns / NS_PER_US));
	if (again_is_due(a) || a->restarts > 0)
		note_past(job, &o);
	/* A reader of the output may keep the next attempt waiting so long. */
	if (!again_is_due(a))
		return;
	timer_arm(job->sup->patience, job->opt.grace);
	remove_shared_memory(job);
}

void
next_told(struct job *job, int sig)
{
	struct again *a = &job->page->again;

	if (!again_is_due(a))
		return;
	if (job->sup->phase != PHASE_DELIVER) {
		a->told = sig;
		return;
	}
	again_cancel(a); /* nothing was said of it yet */
	if (job->cause == CAUSE_RESTART)
		stop_by_signal(job, sig);
}

static void
end_for_next(struct job *job)
{
	if (job->sup->stdin_all != NULL)
		stdin_all_keep(job->sup->stdin_all);
	stop_job(job, CAUSE_RESTART);
}

bool
next_restart(struct job *job)
{
	struct sup *sup = job->sup;

	if (sup->phase != PHASE_RUN && again_is_due(&job->page->again)) {
		job->page->again.pause_ns = 0;
		return true;
	}
	if (sup->phase != PHASE_RUN || sup->final ||
		(job->stop_ns != 0 && job->cause != CAUSE_RESTART))
		return false;
	if (job->started == 0 && job->page->again.restarts > 0)
		timer_arm(sup->start, 0);
	else if (job->cause != CAUSE_RESTART)
		end_for_next(job);
	return true;
}

/* --timeout is the whole job's. */
static void
arm_timeout(struct job *job)
{
	int64_t ran = clock_now() - job->page->again.begun_ns;

	if (job->opt.timeout > 0)
		timer_arm(job->sup->timeout,
			ran < job->opt.timeout ? job->opt.timeout - ran : 0);
}

static bool
pauses(const struct again *a)
{
	return a->restarts > 0 && a->pause_ns > 0;
}

/* The keys are the first rank's. */
static void
take_keys(struct job *job)
{
	if (job->interactive && job->started == 0 && job->stop_ns == 0)
		own_tty_raw(&job->page->own);
}

void
next_ready(struct job *job)
{
	const struct again *a = &job->page->again;

	if (a->told == 0 && !pauses(a))
		take_keys(job);
}

void
next_start(void *ctx)
{
	struct job *job = ctx;

	take_keys(job);
	start_turn(job);
}

void
next_begin(struct job *job)
{
	struct again *a = &job->page->again;
	int told = a->told;

	a->due = a->told = 0;
	if (a->restarts == 0)
		a->begun_ns = job->begun_ns;
	else if (job->state.dir_fd != -1)
		report_job(job); /* the file tells of another attempt */
	if (a->restarts > 0)
		errors_remove(job->errors);
	arm_timeout(job);
	if (pauses(a) && told == 0)
		timer_arm(job->sup->start, a->pause_ns);
	else if (told == 0)
		next_start(job);
	if (told != 0) {
		timer_arm(job->sup->start, 0);
		stop_by_signal(job, told);
	}
	a->pause_ns = 0;
}
