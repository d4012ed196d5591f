/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - see screen.h. */
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/signo.h"
#include "launcher/host/platform.h"
#include "launcher/job/sup.h"
#include "launcher/tell/screen.h"
#include "launcher/tell/who.h"
#include "place/environ.h"
#include "proc/descend.h"

#define LIST_MAX 16 /* ranks shown one by one */

static bool
lives(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].pidfd != -1;
}

static void
say(struct job *job, const struct buf *text)
{
	logs_put(job->sup->logs, buf_text(text), text->len);
}

/* "cuda:0-3", "tpu:8-15", "cpu". */
static void
put_devices(const struct plan *plan, struct buf *out)
{
	uint32_t last = plan->local_size - 1;

	if (plan_by_list(plan)) {
		buf_put_text(out, plan_deal(plan, 0)->text);
		if (last > 0)
			buf_fmt(out, "-%u", plan->first + last);
	} else if (plan->device_count == 0) {
		buf_put_text(out, "cpu");
	} else {
		platform_put(out, plan->devices, plan->device_count);
	}
}

/* " on 2 CPUs (OMP_NUM_THREADS=1)", where not all that runs can run at once. */
static void
put_crowd(const struct job *job, struct buf *out)
{
	char *const *vars =
		env_of_rank(job->parts[0].env, &(struct env_rank){ 0 });
	const char *text = environ_get(vars, "OMP_NUM_THREADS");
	unsigned long threads = text == NULL ? 1 : strtoul(text, NULL, 10);
	uint32_t cpus = processors_count();

	if (job_size(job) * (uint64_t)(threads == 0 ? 1 : threads) <= cpus)
		return;
	buf_fmt(out, " on %u %s", cpus, who_plural(cpus, "CPU", "CPUs"));
	if (text != NULL)
		buf_fmt(out, " (OMP_NUM_THREADS=%.20s)", text);
}

/* Said wherever stderr is if --bind asked for it. */
static void
say_taken(struct job *job)
{
	const struct processors *p = &job->processors;

	if (p->taken && (job->errors_are_tty || !p->unasked) && !job->opt.quiet)
		logs_say(job->sup->logs,
			"xrun: other jobs of xrun have all the processors: ranks %s",
			p->unasked ? "are not bound" : "share them");
}

void
screen_header(struct job *job)
{
	uint32_t n = job_size(job);
	struct buf out = { 0 };
	char dir[PATH_MAX];

	say_taken(job);
	if (!job->errors_are_tty || job->opt.quiet)
		return;
	buf_fmt(&out, "xrun: job %s: %u %s", job->state.id, n,
		who_plural(n, "rank", "ranks"));
	if (job->part_count > 1)
		buf_fmt(&out, " of %u programs", job->part_count);
	put_crowd(job, &out);
	if (job->plan.reason == PLAN_ACCELERATORS)
		buf_put_text(&out, " (one an accelerator)");
	else if (job->plan.reason == PLAN_WORKER_LIST)
		buf_put_text(&out, " (from the TPU worker list)");
	buf_put_text(&out, ", ");
	put_devices(&job->plan, &out);
	if (job->state.dir != NULL)
		buf_fmt(&out, ", logs %s\n",
			state_tilde(job->state.dir, dir, sizeof(dir)));
	else
		buf_put_text(&out, ", no logs\n");
	if (job->route.reduced)
		buf_fmt(&out,
			"xrun: %u ranks: showing rank 0's stdout and everybody's stderr; --show all shows the rest\n",
			n);
	say(job, &out);
	buf_fini(&out);
}

/* Nobody's fault if it says nothing. */
static bool
is_stopped(const struct rank *rank)
{
	struct proc_stat st;

	return rank->state == RANK_RUNNING && proc_stat_read(rank->pid, &st) &&
		(st.state == 'T' || st.state == 't');
}

static void
put_rank_now(const struct job *job, uint32_t r, struct buf *out)
{
	const struct rank *rank = &job->rank[r];
	int64_t last = 0, one;
	const char *name = job_part(job, r)->argv[0];
	char time[32];

	for (uint32_t k = 0; k < RAW_STREAMS; k++) {
		one = logs_last(job->sup->logs, r * RAW_STREAMS + k);
		last = one > last ? one : last;
	}
	buf_fmt(out, "  rank %-5u %-9s ", job_rank(job, r),
		is_stopped(rank) ? "stopped" : rank_state_name(rank->state));
	if (last == 0)
		buf_put_text(out,
			logs_bytes(job->sup->logs, r * RAW_STREAMS) > 0 ?
				"has written output" :
				"no output yet");
	else
		buf_fmt(out, "last output %s ago",
			clock_text(clock_wall() - last, time, sizeof(time)));
	if (job->part_count > 1)
		buf_fmt(out, ", %s", name);
	buf_put_char(out, '\n');
}

/* The terminal has just echoed "^C": what follows stands over it. */
static const char *
over_echo(const struct job *job)
{
	return job->errors_are_tty ? "\r" : "";
}

/* At a rank's own terminal ^C is the program's, see tty_in.c. */
static const char *
way_out(const struct job *job)
{
	return job->interactive ? "Ctrl-] three times" : "Ctrl-C";
}

void
screen_interrupt(struct job *job)
{
	struct buf out = { 0 }, who = { 0 };
	uint32_t alive = who_put(job, lives, 0, &who), shown = 0;

	buf_put_text(&out, over_echo(job));
	for (uint32_t i = 0; i < job_size(job) && shown < LIST_MAX; i++) {
		if (job->rank[i].pidfd == -1 && alive > 0)
			continue;
		put_rank_now(job, i, &out);
		shown++;
	}
	if (alive > shown)
		buf_fmt(&out, "  ... and %u more\n", alive - shown);
	buf_fmt(&out,
		job->opt.interrupt == INTERRUPT_ASK ?
			"xrun: %u %s running; %s again: stop\n" :
			"xrun: stopping %u %s; %s again: terminate now\n",
		alive, who_plural(alive, "rank", "ranks"), way_out(job));
	say(job, &out);
	buf_fini(&out);
	buf_fini(&who);
}

void
screen_interrupt_again(struct job *job)
{
	char time[32], name[16];

	if (job->ending == ENDING_STOPPING)
		logs_say(job->sup->logs,
			"%sxrun: %s to all ranks, KILL after %s; %s again: kill now",
			over_echo(job),
			signo_short(job->opt.stop_signal, name, sizeof(name)),
			clock_text(job->opt.grace, time, sizeof(time)),
			way_out(job));
	else
		logs_say(job->sup->logs, "%sxrun: killing all ranks",
			over_echo(job));
}
