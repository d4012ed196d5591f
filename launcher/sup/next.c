/* SPDX-License-Identifier: Apache-2.0 */
/* next.c - see next.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/next.h"
#include "launcher/sup/report.h"
#include "launcher/sup/sup.h"
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

void
next_decide(struct job *job)
{
	struct again *a = &job->page->again;
	struct outcome o = outcome_of(job);
	const struct again_rule rule = {
		.most = (uint32_t)job->opt.restarts,
		.window_ns = job->opt.restart_window,
	};

	a->due = a->spent = 0;
	if (job->sup->final || is_anybody_left(job))
		;
	else if (job->cause == CAUSE_RESTART)
		again_asked(a);
	else if (may_begin_again(job, &o))
		again_judge(a, &rule, job->ended_ns, best_step(job),
			(uint32_t)(job->ended_ns / NS_PER_US));
	if (a->due != 0 || a->restarts > 0)
		note_past(job, &o);
	/* A reader of the output may keep the next attempt waiting so long. */
	if (a->due == 0)
		return;
	timer_arm(job->sup->patience, job->opt.grace);
	remove_shared_memory(job);
}

bool
next_is_due(const struct job *job)
{
	return job->page->again.due != 0;
}

void
next_told(struct job *job, int sig)
{
	if (!next_is_due(job))
		return;
	if (job->sup->phase == PHASE_DELIVER)
		next_cancel(job); /* nothing was said of it yet */
	else
		job->page->again.told = sig;
}

bool
next_restart(struct job *job)
{
	struct sup *sup = job->sup;

	if (sup->phase != PHASE_RUN && next_is_due(job)) {
		job->page->again.pause_ns = 0;
		return true;
	}
	if (sup->phase != PHASE_RUN || sup->final ||
		(job->stop_ns != 0 && job->cause != CAUSE_RESTART))
		return false;
	if (job->started == 0 && job->page->again.restarts > 0)
		timer_arm(sup->start, 0);
	else if (job->cause != CAUSE_RESTART)
		stop_job(job, CAUSE_RESTART);
	return true;
}

void
next_cancel(struct job *job)
{
	job->page->again.due = 0;
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

void
next_start(void *ctx)
{
	struct job *job = ctx;

	/* Who sees the header may type; in a pause the keys are xrun's. */
	if (job->interactive && job->started == 0 && job->stop_ns == 0)
		own_tty_raw(&job->page->own);
	start_turn(job);
}

/* On the helper thread. */
static void
make_folder(void *ctx)
{
	struct job *job = ctx;
	uint32_t number = job->state.number;
	int fd = state_make_next(&job->state, &number);

	job->page->next_number = number;
	__atomic_store_n(&job->page->next, fd == -1 ? -errno : fd,
		__ATOMIC_SEQ_CST);
}

bool
next_prepare(struct job *job)
{
	if (!next_is_due(job) || job->state.dir_fd == -1)
		return false;
	__atomic_store_n(&job->page->next, -ETIMEDOUT, __ATOMIC_SEQ_CST);
	if (work_post(job->sup->work, make_folder, job))
		return true;
	job->page->next = -ENOMEM;
	return false;
}

void
next_check(struct job *job)
{
	int fd = __atomic_load_n(&job->page->next, __ATOMIC_SEQ_CST);

	if (!next_is_due(job) || job->state.dir_fd == -1 || fd >= 0)
		return;
	next_cancel(job);
	words_line(
		"the job cannot begin again: the folder of attempt %u in %s: %s",
		job->state.number + 1, job->state.dir, strerror(-fd));
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
	arm_timeout(job);
	if (a->restarts > 0 && a->pause_ns > 0 && told == 0)
		timer_arm(job->sup->start, a->pause_ns);
	else if (told == 0)
		next_start(job);
	if (told != 0) {
		timer_arm(job->sup->start, 0);
		stop_by_signal(job, told);
	}
	a->pause_ns = 0;
}

static void
put_due(const struct job *job, struct buf *out)
{
	const struct again *a = &job->page->again;
	uint32_t next = job->state.number + 1;
	char time[32];

	if (job->cause == CAUSE_RESTART)
		buf_fmt(out, "xrun: restart, as asked for: attempt %u begins\n",
			next);
	else if (a->pause_ns == 0)
		buf_fmt(out, "xrun: restart %u of %lld: attempt %u begins\n",
			a->counted, (long long)job->opt.restarts, next);
	else
		buf_fmt(out,
			"xrun: restart %u of %lld: attempt %u begins in %s\n",
			a->counted, (long long)job->opt.restarts, next,
			clock_text(a->pause_ns, time, sizeof(time)));
}

static void
put_one(const struct again_past *p, struct buf *out)
{
	char time[32];

	buf_fmt(out, "  attempt %u: exit %d after %s", p->number,
		(int)p->exit_status,
		clock_text(p->ended_wall - p->begun_wall, time, sizeof(time)));
	if (p->culprit != UINT32_MAX)
		buf_fmt(out, ", rank %u first", p->culprit);
	buf_put_char(out, '\n');
}

static void
put_spent(const struct job *job, struct buf *out)
{
	const struct again_past *p;
	char time[32];

	buf_fmt(out, "xrun: --restarts %lld is used up",
		(long long)job->opt.restarts);
	if (job->opt.restart_window > 0)
		buf_fmt(out, " within %s",
			clock_text(job->opt.restart_window, time,
				sizeof(time)));
	buf_put_text(out, ":\n");
	for (uint32_t i = 0; (p = again_each(&job->page->again, i)) != NULL;
		i++)
		put_one(p, out);
}

void
next_put(const struct job *job, struct buf *out)
{
	if (next_is_due(job))
		put_due(job, out);
	else if (job->page->again.spent != 0)
		put_spent(job, out);
}

void
next_put_event(struct json *j, const struct job *job)
{
	json_int(j, "next", job->state.number + 1);
	json_real(j, "pause", (double)job->page->again.pause_ns / NS_PER_S);
}

static void
put_time(struct json *j, const char *key, int64_t wall_ns)
{
	char stamp[40];

	json_text(j, key, clock_stamp(wall_ns, stamp, sizeof(stamp)));
}

/* This attempt is told of by all the rest. */
void
next_put_past(struct json *j, const struct job *job)
{
	const struct again_past *p;

	if (again_each(&job->page->again, 0) == NULL)
		return;
	json_int(j, "restarts", job->page->again.restarts);
	json_open_array(j, "attempts");
	for (uint32_t i = 0; (p = again_each(&job->page->again, i)) != NULL;
		i++) {
		if (p->number == job->state.number)
			continue;
		json_open_object(j, NULL);
		json_int(j, "attempt", p->number);
		put_time(j, "start", p->begun_wall);
		put_time(j, "end", p->ended_wall);
		json_int(j, "exit", p->exit_status);
		json_text(j, "reason", p->reason);
		if (p->culprit != UINT32_MAX)
			json_int(j, "culprit", p->culprit);
		json_close_object(j);
	}
	json_close_array(j);
}
