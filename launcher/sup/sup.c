/* SPDX-License-Identifier: Apache-2.0 */
/* sup.c - see sup.h. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/answer.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/detach.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/next.h"
#include "launcher/sup/stdin_all.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/tcpstore/tcpstore_server.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/report.h"
#include "launcher/tell/screen.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/stacks.h"
#include "launcher/tell/why.h"

#define LATE_NS         NS_PER_S /* more is no scheduling any more */
#define SILENCE_NS      (10 * NS_PER_S)
#define TCPSTORE_A_RANK 8  /* connections to the store at MASTER_PORT */
#define TCPSTORE_SPARE  64 /* and of programs that a rank starts */
#define PUBLISH_NS      (20 * NS_PER_MS) /* shorter jobs need no job.json yet */
#define PUBLISH_MAX     (500 * NS_PER_MS) /* while ranks are being started */

/* What the pipes of the dead have more time for: xrun stood still, or has no
 * thread that reads them. */
static int64_t
drain_pause(const struct job *job)
{
	int64_t late = timer_late(job->sup->drain);

	if (start_lacks_output(job))
		return DRAIN_NS;
	return late >= LATE_NS ? late : 0;
}

/* Pipes that nobody of the job should hold open any more. */
static void
on_drain(void *ctx)
{
	struct job *job = ctx;
	int64_t now = clock_now(), next = INT64_MAX;
	int64_t pause = drain_pause(job);

	for (uint32_t i = 0; i < job_size(job); i++) {
		struct rank *r = &job->rank[i];

		if (r->drain_ns != 0)
			r->drain_ns += pause;
		if (r->state != RANK_ENDED || r->dropped || r->full != 0)
			continue;
		if (r->drain_ns <= now)
			step_rank(job, i, RANK_EV_TIMEOUT);
		else if (r->drain_ns < next)
			next = r->drain_ns;
	}
	if (next != INT64_MAX)
		timer_arm(job->sup->drain, next - now);
	finish_if_over(job);
}

/* Files that are open, or need no name, go on. */
static void
on_gone(struct job *job)
{
	logs_say(job->sup->logs,
		"xrun: the folder of the job was removed (%s): the job goes on; what ranks write is shown, but kept no more",
		job->state.attempt);
}

/* Once a sink; finish_note_sink() tells it again. */
static void
on_unread(struct job *job, uint32_t stream, int sys)
{
	logs_say(job->sup->logs,
		"xrun: rank %u: its log file cannot be read (%s): what it writes is not shown any more",
		job_rank(job, stream / RAW_STREAMS), strerror(sys));
}

static void
on_notes(int fd, void *ctx)
{
	struct job *job = ctx;
	struct note note[64];
	uint32_t n = notes_take(logs_notes(job->sup->logs), note, 64);

	(void)fd;
	for (uint32_t i = 0; i < n; i++)
		switch ((enum note_kind)note[i].kind) {
		case NOTE_EOF:
			step_eof(job, note[i].value);
			finish_if_over(job);
			break;
		case NOTE_LEFT_OPEN:
			step_left_open(job, note[i].value);
			break;
		case NOTE_FIRST:
			report_latest(job);
			break;
		case NOTE_FULL:
			disk_full(job, note[i].value, note[i].sys);
			break;
		case NOTE_ROOM:
			disk_room(job, note[i].value);
			break;
		case NOTE_RECLAIM:
			disk_reclaim(job);
			break;
		case NOTE_LARGE:
			disk_large(job, note[i].value);
			break;
		case NOTE_RECLAIMED:
			disk_reclaimed(job);
			break;
		case NOTE_GONE:
			on_gone(job);
			break;
		case NOTE_UNREAD:
			on_unread(job, note[i].value, note[i].sys);
			break;
		case NOTE_SINK_CLOSED:
			closed_sink(job, note[i].value, note[i].sys);
			break;
		case NOTE_SINK_DONE:
			finish_note_sink(job, note[i].value, note[i].sys);
			break;
		case NOTE_STEER:
			steer_made(job, (int)note[i].value);
			break;
		case NOTE_WRITTEN:
			finish_written(job, (enum phase)note[i].value);
			break;
		}
}

/* Nobody is left to clean up after us: end the job in order, now. */
static void
on_keeper_died(int fd, void *ctx)
{
	struct job *job = ctx;

	(void)fd;
	watch_pause(job->sup->keeper);
	again_cancel(&job->page->again);
	stop_fail(job, "the process that was started as xrun was killed");
	finish_hurry(job);
}

/*
 * @timer fired late: xrun stood still (SIGSTOP, a machine that was suspended or
 * has no time for it), and the ranks may have, too. They get what it was late;
 * true if there is more to wait for.
 */
static bool
stood_still(struct timer *timer)
{
	int64_t late = timer_late(timer);

	if (late < LATE_NS)
		return false;
	timer_arm(timer, late);
	return true;
}

static void
end_by_timeout(struct job *job)
{
	if (job->sup->phase != PHASE_RUN)
		finish_hurry(job);
	else if (sweep_due(job)) {
		job->waited_out = true;
		stop_waiting(job);
	} else
		stop_job(job, CAUSE_TIMEOUT);
}

/* If Ctrl-C was pressed meanwhile, which cancels the stacks, the ranks have the grace to
 * react to it. */
static void
on_timeout_stacks(struct job *job, bool taken, const char *path,
	const char *summary)
{
	(void)taken;
	(void)path;
	(void)summary;
	if (job->ending == ENDING_INTERRUPTED)
		timer_arm(job->sup->timeout, job->opt.grace);
	else
		end_by_timeout(job);
}

/* Whoever died before is not stopped by it: xrun itself may have been stopped,
 * and timers are heard before deaths. */
static void
on_timeout(void *ctx)
{
	struct job *job = ctx;

	if (stood_still(job->sup->timeout))
		return;
	children_turn(job->sup->children);
	if (!(options_stacks_on(&job->opt) & STACKS_ON_TIMEOUT) ||
		!stacks_begin(job, "--timeout", on_timeout_stacks))
		end_by_timeout(job);
}

/* One timer: ranks that do not end, readers that do not read. */
static void
on_patience(void *ctx)
{
	struct job *job = ctx;

	if (stood_still(job->sup->patience))
		return;
	if (job->sup->phase != PHASE_RUN)
		finish_give_up(job);
	else if (!sweep_due(job))
		stop_now(job);
	else if (job->sup->told)
		stop_output(job);
}

static void
on_silence(void *ctx)
{
	struct job *job = ctx;
	char text[320], ask[128] = "";
	bool wants_pty =
		job_size(job) == 1 && !job->opt.pty && isatty(STDIN_FILENO);

	if (logs_total(job->sup->logs) > 0)
		return;
	if (job->sup->no_ctl[0] == '\0')
		snprintf(ask, sizeof(ask), "; xrun stacks %s shows where %s",
			job->state.id,
			job_size(job) == 1 ? "it is" : "they are");
	snprintf(text, sizeof(text),
		"\033[2mxrun: %u rank%s running, no output yet%s%s\033[0m",
		job_size(job), job_size(job) == 1 ? "" : "s", ask,
		wants_pty ? "; a program that needs a terminal: xrun --pty" :
			    "");
	logs_hint(job->sup->logs, text);
}

/* While ranks are being started, processors have better things to do. */
static bool
still_starts(const struct job *job)
{
	return job->stop_ns == 0 && job->started < job_size(job) &&
		clock_now() - job->begun_ns < PUBLISH_MAX;
}

/* The ranks run, and this job is no short one. */
static void
on_publish(void *ctx)
{
	struct job *job = ctx;

	if (still_starts(job)) {
		timer_arm(job->sup->publish, PUBLISH_NS);
		return;
	}
	report_begin(ctx);
	why_begin(ctx);
	steer_begin(ctx);
	metrics_file_begin(ctx);
}

static bool
open_timers(struct job *job)
{
	struct sup *s = job->sup;

	s->start = timer_open(s->loop, next_start, job);
	s->timeout = timer_open(s->loop, on_timeout, job);
	s->patience = timer_open(s->loop, on_patience, job);
	s->drain = timer_open(s->loop, on_drain, job);
	s->silence = timer_open(s->loop, on_silence, job);
	s->immune = timer_open(s->loop, stop_immune, job);
	s->late = timer_open(s->loop, death_of_late, job);
	s->strangers = timer_open(s->loop, death_reap_strangers, job);
	s->publish = timer_open(s->loop, on_publish, job);
	s->deliver = timer_open(s->loop, finish_turn, job);
	s->sweep.timer = timer_open(s->loop, sweep_again, job);
	return s->start != NULL && s->timeout != NULL && s->patience != NULL &&
		s->drain != NULL && s->silence != NULL && s->immune != NULL &&
		s->late != NULL && s->strangers != NULL && s->publish != NULL &&
		s->deliver != NULL && s->sweep.timer != NULL;
}

static bool
open_watches(struct job *job)
{
	struct sup *s = job->sup;

	s->signal_fd = signals_open();
	s->children = children_open(s->loop, death_of, death_judge, job);
	if (s->children == NULL || s->signal_fd == -1)
		return false;
	s->signals =
		watch_open(s->loop, s->signal_fd, false, signals_read, job);
	s->keeper = watch_open(s->loop, job->page->keeper, false,
		on_keeper_died, job);
	s->notes = watch_open(s->loop, logs_notes(s->logs)->rd, false, on_notes,
		job);
	if (logs_first(s->logs) != -1)
		s->output = watch_open(s->loop, logs_first(s->logs), false,
			start_output, job);
	return s->signals != NULL && s->keeper != NULL && s->notes != NULL &&
		(s->output != NULL || logs_first(s->logs) == -1) &&
		closed_watch(job) && detach_watch(job);
}

static bool
open_all(struct job *job)
{
	struct sup *s = job->sup;
	struct logs_config logs = {
		.ranks = job_size(job),
		.share = job->share,
		.route = job->route,
		.carriage = job->interactive && job->errors_are_tty,
		.reclaim = true,
		.drop = job->opt.log_full == LOG_FULL_DROP,
		.files_max = job->files_max,
		.modes = job->page->screen,
	};

	s->loop = loop_new();
	s->work = work_new();
	s->logs = logs_open(&logs);
	if (s->loop == NULL || s->work == NULL || s->logs == NULL)
		return false;
	if (job->spare_files)
		s->lifelines = lifelines_open(job_size(job));
	if (job->input_all)
		s->stdin_all = stdin_all_open(job_size(job), STDIN_FILENO);
	if (job->input_all && s->stdin_all == NULL)
		return false;
	s->bus = bus_new(job, s->loop, s->work, job->events_fd);
	return s->bus != NULL && open_timers(job) && open_watches(job);
}

/* Once a job: the rest is most likely the same. */
static void
on_tcpstore_bad(void *ctx, const struct xr_error *why)
{
	struct job *job = ctx;

	if (!job->sup->tcpstore_bad)
		logs_say(job->sup->logs,
			"xrun: the store at MASTER_PORT closed a connection of a rank: %s",
			why->text);
	job->sup->tcpstore_bad = true;
}

/* Connections that the ranks make before this wait in the queue of the socket. */
static void
open_tcpstore(struct job *job)
{
	struct tcpstore_server_config config = {
		.loop = job->sup->loop,
		.fd = job->tcpstore_fd,
		.most = job_size(job) * TCPSTORE_A_RANK + TCPSTORE_SPARE,
		.bad = on_tcpstore_bad,
		.ctx = job,
	};

	if (job->tcpstore_fd == -1)
		return;
	if (config.most > job->limits.files_max / 4)
		config.most = (uint32_t)(job->limits.files_max / 4);
	job->sup->tcpstore = tcpstore_server_open(&config);
	if (job->sup->tcpstore == NULL)
		logs_say(job->sup->logs,
			"xrun: the store at MASTER_PORT is not served: out of memory");
}

static void
begin(struct job *job)
{
	struct sup *s = job->sup;

	if (leaf_look())
		leaf_open(&job->page->leaves, job->state.id);
	next_ready(job);
	screen_header(job);
	hook_begin(job);
	bus_tell(s->bus, BUS_JOB_START, 0);
	steer_resume(job);
	hear_begin(job);
	slots_open(job);
	open_tcpstore(job);
	next_begin(job);
	if (job->hints)
		timer_arm(s->silence, SILENCE_NS);
	timer_arm(s->publish, PUBLISH_NS);
}

int
supervise(struct job *job)
{
	struct sup sup = { 0 };

	job->sup = &sup;
	/* An arena for each thread costs it more than what it asks for. */
	mallopt(M_ARENA_MAX, 1);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1 || !open_all(job)) {
		dprintf(STDERR_FILENO, "xrun: cannot start: %s\n",
			strerror(errno));
		state_remove(&job->state);
		return EXIT_XRUN;
	}
	begin(job);
	loop_run(sup.loop);
	answer_note(job->page); /* it reads no signal from now on */
	oom_end(&sup.oom);
	pids_end(&sup.pids);
	if (keeper_is_dead(job->page))
		again_cancel(&job->page->again);
	hang_close(job);
	stacks_close(job);
	metrics_file_end(job);
	aide_end_all(job);
	hook_end(job);
	steer_end(job);
	hear_close(job);
	tcpstore_server_close(sup.tcpstore);
	if (sup.phase == PHASE_END)
		return outcome_of(job).exit_status;
	dprintf(STDERR_FILENO, "xrun: its event loop failed (%s)\n",
		strerror(errno));
	return KEEPER_NO_VERDICT;
}
