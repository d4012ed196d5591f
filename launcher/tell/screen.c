/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - see screen.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ranks.h"
#include "base/signo.h"
#include "launcher/host/platform.h"
#include "launcher/job/sup.h"
#include "launcher/tell/screen.h"
#include "launcher/tell/who.h"
#include "place/environ.h"
#include "proc/descend.h"

#define LIST_MAX 16 /* rows */

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

/* A row of the screen without its rank. */
struct screen_row {
	bool used;  /* the rank is shown */
	bool wrote; /* on a stream whose last time is not known */
	const char *state;
	const char *program; /* NULL: the job has only one */
	char ago[32]; /* since the last output, whole seconds; "": none */
};

static void
screen_row_fill(const struct job *job, uint32_t r, struct screen_row *row)
{
	const struct rank *rank = &job->rank[r];
	int64_t last = 0, one;

	for (uint32_t k = 0; k < RAW_STREAMS; k++) {
		one = logs_last(job->sup->logs, r * RAW_STREAMS + k);
		last = one > last ? one : last;
	}
	row->used = true;
	row->state =
		is_stopped(rank) ? "stopped" : rank_state_name(rank->state);
	row->wrote = logs_bytes(job->sup->logs, r * RAW_STREAMS) > 0;
	if (job->part_count > 1)
		row->program = job_part(job, r)->argv[0];
	if (last != 0)
		clock_rough(clock_wall() - last, row->ago, sizeof(row->ago));
}

static bool
screen_row_equal(const struct screen_row *a, const struct screen_row *b)
{
	return a->used == b->used && a->wrote == b->wrote &&
		a->program == b->program && strcmp(a->state, b->state) == 0 &&
		strcmp(a->ago, b->ago) == 0;
}

static void
screen_row_put(const struct screen_row *row, const struct ranks *set,
	struct buf *out)
{
	struct buf who = { 0 };

	ranks_put(set, &who);
	buf_fmt(out, "  %s %-5s %-9s ",
		who_plural(ranks_count(set), "rank", "ranks"), buf_text(&who),
		row->state);
	if (row->ago[0] != '\0')
		buf_fmt(out, "last output %s ago", row->ago);
	else
		buf_put_text(out,
			row->wrote ? "has written output" : "no output yet");
	if (row->program != NULL)
		buf_fmt(out, ", %s", row->program);
	buf_put_char(out, '\n');
	buf_fini(&who);
}

/* Appends one row for @r and all later ranks whose rows are equal. Returns the
 * number of these ranks. */
static uint32_t
screen_row_put_equal(const struct job *job, struct screen_row *rows, uint32_t r,
	struct buf *out)
{
	const struct screen_row row = rows[r];
	struct ranks set;
	uint32_t count;

	if (ranks_init(&set, job->plan.size) != XR_OK)
		return 0;
	for (uint32_t i = r; i < job_size(job); i++)
		if (screen_row_equal(&row, &rows[i])) {
			ranks_add(&set, job_rank(job, i));
			rows[i].used = false;
		}
	screen_row_put(&row, &set, out);
	count = ranks_count(&set);
	ranks_fini(&set);
	return count;
}

/* Appends at most LIST_MAX rows: ranks with equal rows share one. @alive: ranks
 * that have not ended; if it is 0, all ranks are shown. */
static void
screen_rows_put(const struct job *job, uint32_t alive, struct buf *out)
{
	uint32_t n = job_size(job), shown = 0, rows_shown = 0;
	struct screen_row *rows = calloc(n, sizeof(*rows));

	for (uint32_t i = 0; rows != NULL && i < n; i++)
		if (job->rank[i].pidfd != -1 || alive == 0)
			screen_row_fill(job, i, &rows[i]);
	for (uint32_t i = 0; rows != NULL && i < n && rows_shown < LIST_MAX;
		i++)
		if (rows[i].used) {
			shown += screen_row_put_equal(job, rows, i, out);
			rows_shown++;
		}
	if (alive > shown)
		buf_fmt(out, "  ... and %u more\n", alive - shown);
	free(rows);
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
	uint32_t alive = who_put(job, lives, 0, &who);

	buf_put_text(&out, over_echo(job));
	screen_rows_put(job, alive, &out);
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
