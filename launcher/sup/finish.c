/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - after the last rank: output delivered, files closed, account. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/next.h"
#include "launcher/sup/next_folder.h"
#include "launcher/sup/stdin_all.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/account.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/report.h"

#define AGAIN_NS         (20 * NS_PER_MS) /* for a reader of words */
#define ACCOUNT_PATIENCE (5 * NS_PER_S)   /* with a frozen file system */

/* A sink that is over at once is heard of in the next turn of the loop, as any
 * other: who asked may still have work to do. */
static void
finish_sink(struct job *job, uint32_t sink)
{
	struct sup *sup = job->sup;
	enum sink_end end = logs_finish(sup->logs, sink, &sup->sink_sys);

	sup->sink_over = end == SINK_OVER;
	if (end != SINK_LATER)
		timer_arm(sup->deliver, end == SINK_OVER ? 0 : AGAIN_NS);
}

/* The account has its own time: the ranks' output used up the other. */
static void
deliver_account(struct job *job)
{
	struct sup *sup = job->sup;

	sup->accounting = false;
	if (sup->told)
		stop_bound(job);
	if (sup->until_ns != 0)
		timer_arm(sup->patience, stop_left(job, true));
	else if (sup->hurried)
		timer_arm(sup->patience, job->opt.grace);
	else
		timer_disarm(sup->patience);
	finish_sink(job, logs_sinks(sup->logs) - 1);
}

/* On the helper thread. */
static void
make_account(void *ctx)
{
	struct job *job = ctx;

	job_account(job, true);
	notes_send(logs_notes(job->sup->logs), NOTE_WRITTEN, PHASE_ACCOUNT, 0);
}

static void
begin_account(struct job *job)
{
	struct sup *sup = job->sup;

	sup->phase = PHASE_ACCOUNT;
	sup->hurried = sup->delivery_over || timer_armed(sup->patience);
	fault(FAULT_ACCOUNT, FAULT_ANY);
	timer_disarm(sup->timeout);
	if (sup->stdin_all != NULL)
		sup->input_sys = stdin_all_sys(sup->stdin_all);
	if (job_account_needs_files(job) &&
		work_post(sup->work, make_account, job)) {
		sup->accounting = true;
		timer_arm(sup->patience, stop_within(job, ACCOUNT_PATIENCE));
		work_push(sup->work);
		return;
	}
	job_account(job, false);
	deliver_account(job);
}

void
finish_if_over(struct job *job)
{
	struct sup *sup = job->sup;

	if (sup->phase != PHASE_RUN)
		return;
	/* The ranks were told to end and are gone: nobody may hold their pipes
	 * any longer. Otherwise those get two seconds to say what they have
	 * to. */
	if (job->stop_ns != 0 && sweep_due(job))
		sweep_leftovers(job);
	if (job->settled < job_size(job) || !sweep_leftovers(job))
		return;
	sup->phase = PHASE_DELIVER;
	fault(FAULT_DELIVER, FAULT_ANY);
	job->ended_ns = clock_now();
	timer_disarm(sup->patience);
	timer_disarm(sup->silence);
	if (sup->told) {
		stop_bound(job);
		timer_arm(sup->patience, stop_left(job, false));
	}
	next_decide(job);
	tty_in_close(sup->tty_in);
	sup->tty_in = NULL;
	own_tty_restore(&job->page->own);
	if (logs_sinks(sup->logs) == 2)
		finish_sink(job, 0);
	else
		begin_account(job);
}

static void
write_next(struct job *job)
{
	if (!next_folder_known(job) || !report_next(job))
		return;
	job->sup->phase = PHASE_END;
	loop_stop(job->sup->loop);
}

void
finish_written(struct job *job, enum phase phase)
{
	/* Not what was given up meanwhile. */
	if (phase != job->sup->phase)
		return;
	if (job->sup->accounting)
		deliver_account(job);
	else if (phase == PHASE_WRITE)
		write_next(job);
}

/* The files are complete; what remains is small and may be given up on. */
static void
end(struct job *job)
{
	struct sup *sup = job->sup;
	/* The folder of a further attempt tells of those before, too, and that
	 * of a named job counts them; and of a job that was left to itself
	 * nothing else does. */
	bool keep = job->state.dir != NULL &&
		(logs_total(sup->logs) > 0 || logs_left(sup->logs) > 0 ||
			job->state.number > 0 || job->opt.job != NULL ||
			job->page->kept || again_is_due(&job->page->again));

	sup->phase = PHASE_WRITE;
	fault(FAULT_END, FAULT_ANY);
	if (sup->until_ns != 0)
		timer_arm(sup->patience, stop_within(job, INT64_MAX));
	sup->writing.keep = keep;
	job->page->silent = job->state.dir != NULL && !keep;
	write_next(job);
}

/* Where it is instead. */
static const char *
not_shown_where(const struct job *job, int sys)
{
	if (!job->opt.logs)
		return "it is lost";
	return sys == ENOENT || sys == ENODATA ? "it was removed from " :
						 "it is in ";
}

/* No sink has room for a word: nobody else can say it. */
static void
say_not_shown(struct job *job, uint32_t sink, int sys)
{
	uint64_t bytes = logs_backlog(job->sup->logs, sink);
	char count[40] = "some";

	if (bytes > 0)
		snprintf(count, sizeof(count), "%llu bytes of",
			(unsigned long long)bytes);
	else if (job->sup->not_shown)
		return;
	job->sup->not_shown = job->unshown = true;
	words_line("%s output could not be shown (%s); %s%s", count,
		strerror(sys), not_shown_where(job, sys),
		job->opt.logs ? job->state.attempt : "");
}

void
finish_note_sink(struct job *job, uint32_t sink, int sys)
{
	struct sup *sup = job->sup;

	if (sys != 0)
		say_not_shown(job, sink, sys);
	if (sup->phase == PHASE_DELIVER && sink == 0)
		begin_account(job);
	else if (sup->phase == PHASE_ACCOUNT &&
		sink + 1 == logs_sinks(sup->logs))
		end(job);
}

void
finish_turn(void *ctx)
{
	struct job *job = ctx;
	struct sup *sup = job->sup;
	uint32_t sink = 0;

	if (sup->phase != PHASE_DELIVER && sup->phase != PHASE_ACCOUNT)
		return;
	if (sup->phase == PHASE_ACCOUNT)
		sink = logs_sinks(sup->logs) - 1;
	if (sup->sink_over)
		finish_note_sink(job, sink, sup->sink_sys);
	else
		finish_sink(job, sink);
}

void
finish_hurry(struct job *job)
{
	struct sup *sup = job->sup;

	stop_bound(job);
	hook_bound(job);
	if (timer_armed(sup->patience))
		timer_arm(sup->patience,
			stop_within(job, timer_left(sup->patience)));
	else if (!sup->delivery_over)
		timer_arm(sup->patience,
			stop_left(job, sup->phase != PHASE_DELIVER));
}

/* The reader of stdout or stderr had its time. Its sink's thread sleeps in
 * write(2) and ends with the process. */
void
finish_give_up(void *ctx)
{
	struct job *job = ctx;
	struct sup *sup = job->sup;

	if (sup->accounting) {
		job_account(job, false);
		deliver_account(job);
		return;
	}
	sup->delivery_over = true;
	if (sup->phase == PHASE_DELIVER)
		begin_account(job);
	else if (sup->phase == PHASE_ACCOUNT)
		end(job);
	else if (sup->phase == PHASE_WRITE) {
		sup->writing.late = true;
		if (sup->until_ns != 0)
			hook_hurry(job);
		write_next(job);
	}
}
