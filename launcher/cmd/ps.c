/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c - see ps.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/ps.h"
#include "launcher/cmd/ps_ranks.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/table.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/cmd/which.h"
#include "launcher/job/outcome.h"
#include "launcher/state/history.h"
#include "launcher/state/jobs.h"
#include "proc/descend.h"

struct settings {
	bool all, quiet, json;
};

#define AT(field) .offset = offsetof(struct settings, field)

const struct opt ps_options[] = {
	{ .name = "all",
		.letter = 'a',
		.type = OPT_FLAG,
		VERB_ROW,
		AT(all),
		.help = "jobs that have ended, too, as long as they are kept" },
	{ .name = "quiet",
		.letter = 'q',
		.type = OPT_FLAG,
		VERB_ROW,
		AT(quiet),
		.help = "their ids and nothing else" },
	{ .name = "json",
		.type = OPT_FLAG,
		VERB_ROW,
		AT(json),
		.help = "as JSON: an array of jobs, or one job with its ranks" },
	{ 0 },
};

/* One job: what its folder or, where it has none there, it says itself. */
struct row {
	struct which job;
	cJSON *json;    /* NULL: it is too young to have said anything */
	int64_t start;  /* wall ns; INT64_MAX: not known, so now */
	bool stuck;     /* the supervisor does not answer */
	bool suspended; /* Ctrl-Z or SIGSTOP stopped keeper and supervisor */
	bool dialed;    /* by a thread, which is to be joined */
	pthread_t thread;
};

struct rows {
	struct row *row;
	size_t count;
	bool all, quiet;
	struct history past; /* read if all are listed */
};

static bool
add_row(void *ctx, const struct which *job)
{
	struct rows *rows = ctx;
	struct row *r;

	if (!job->running && !rows->all)
		return true;
	rows->row = xrealloc(rows->row, (rows->count + 1) * sizeof(*r));
	r = &rows->row[rows->count++];
	*r = (struct row){ .job = *job, .start = INT64_MAX };
	if (job->dir[0] != '\0')
		r->json = jobs_read(job->dir);
	if (r->json == NULL && job->past)
		r->json = cJSON_Duplicate(history_find(&rows->past, job->id),
			true);
	return true;
}

static void *
ps_dial(void *arg)
{
	struct row *r = arg;

	r->stuck = dial_is_stuck(r->job.id);
	return NULL;
}

/* All at once: a supervisor that is stuck takes two seconds. */
static void
ps_dial_all(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct row *r = &rows->row[i];

		r->dialed = r->job.running &&
			pthread_create(&r->thread, NULL, ps_dial, r) == 0;
		if (r->job.running && !r->dialed)
			ps_dial(r);
	}
	for (size_t i = 0; i < rows->count; i++)
		if (rows->row[i].dialed)
			pthread_join(rows->row[i].thread, NULL);
}

static bool
ps_is_suspended(const struct row *r)
{
	pid_t keeper = (pid_t)jobs_number(r->json, "pid", 0);
	struct proc_stat st;

	return keeper > 1 && proc_stat_read(keeper, &st) && st.state == 'T';
}

static void
ps_complete(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct row *r = &rows->row[i];

		if (r->json == NULL && !r->stuck)
			r->json = dial_status_now(&r->job);
		if (r->json != NULL)
			r->start = clock_parse(jobs_text(r->json, "start"));
		r->suspended = r->stuck && ps_is_suspended(r);
		r->stuck = r->stuck && !r->suspended;
	}
}

/* Those that run, then those that have ended; the youngest of each last. */
static int
compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->job.running != y->job.running)
		return x->job.running ? 1 : -1;
	return x->start < y->start ? -1 : x->start > y->start;
}

#define WAITING_DISK "waiting: disk" /* the only reason there is */

static const char *
state_of(const struct row *r)
{
	static const struct {
		const char *reason, *state;
	} names[] = {
		{ "ok", "done" },
		{ "failure", "failed" },
		{ "signal", "stopped" },
		{ "supervisor lost", "lost" },
	};
	const char *reason = jobs_text(r->json, "reason");

	if (r->job.running && r->suspended)
		return "suspended";
	if (r->job.running && r->stuck)
		return "stuck";
	if (r->job.running)
		return jobs_text(r->json, "waiting") != NULL ? WAITING_DISK :
							       "running";
	for (size_t i = 0; reason != NULL && i < 4; i++)
		if (strcmp(reason, names[i].reason) == 0)
			return names[i].state;
	return reason != NULL ? reason : "lost";
}

static void
put_time(struct buf *out, const struct row *r)
{
	int64_t end = r->job.running ? clock_wall() :
				       clock_parse(jobs_text(r->json, "end"));
	char text[32];

	if (r->json == NULL || r->start == -1 || end < r->start)
		buf_fmt(out, "%-8s", "-");
	else
		buf_fmt(out, "%-8s",
			clock_rough(end - r->start, text, sizeof(text)));
}

static void
put_command(struct buf *out, const cJSON *json)
{
	const cJSON *word;

	cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(json, "argv"))
	{
		if (cJSON_IsString(word)) {
			buf_put_char(out, ' ');
			table_put_word(out, word->valuestring);
		}
	}
}

static void
put_row(struct buf *out, const struct row *r, int width, uint32_t cols)
{
	const size_t at = out->len;
	int64_t ranks = jobs_number(r->json, "ranks", -1);
	int64_t exit_status = jobs_number(r->json, "exit", -1);

	buf_fmt(out, "%-8s ", r->job.id);
	if (ranks == -1)
		buf_fmt(out, "%5s  ", "-");
	else
		buf_fmt(out, "%5lld  ", (long long)ranks);
	buf_fmt(out, "%-*s ", width, state_of(r));
	put_time(out, r);
	if (r->job.running || exit_status == -1)
		buf_fmt(out, " %4s ", "");
	else
		buf_fmt(out, " %4lld ", (long long)exit_status);
	put_command(out, r->json);
	table_end_row(out, at, cols);
}

static void
put_rows(struct buf *out, const struct rows *rows, const struct settings *s)
{
	const uint32_t cols = table_columns();
	int width = 8, len;

	for (size_t i = 0; i < rows->count; i++) {
		len = (int)strlen(state_of(&rows->row[i]));
		width = len > width ? len : width;
	}
	if (!s->quiet && rows->count > 0) {
		buf_fmt(out, "%-8s %5s  %-*s %-8s %4s  %s", "JOB", "RANKS",
			width, "STATE", "TIME", "EXIT", "COMMAND");
		table_end_row(out, 0, cols);
	}
	for (size_t i = 0; i < rows->count; i++)
		if (s->quiet)
			buf_fmt(out, "%s\n", rows->row[i].job.id);
		else
			put_row(out, &rows->row[i], width, cols);
}

/* Each with what it said, and whether it runs. */
static void
put_json(struct buf *out, const struct rows *rows)
{
	cJSON *all = cJSON_CreateArray(), *one;
	char *text;

	for (size_t i = 0; i < rows->count; i++) {
		one = rows->row[i].json != NULL ?
			cJSON_Duplicate(rows->row[i].json, true) :
			cJSON_CreateObject();
		cJSON_DeleteItemFromObjectCaseSensitive(one, "rank");
		if (!cJSON_HasObjectItem(one, "job"))
			cJSON_AddStringToObject(one, "job",
				rows->row[i].job.id);
		cJSON_AddBoolToObject(one, "running", rows->row[i].job.running);
		if (rows->row[i].stuck)
			cJSON_AddBoolToObject(one, "stuck", true);
		if (rows->row[i].suspended)
			cJSON_AddBoolToObject(one, "suspended", true);
		cJSON_AddItemToArray(all, one);
	}
	text = cJSON_PrintUnformatted(all);
	if (text == NULL)
		out->bad = XR_E_NOMEM;
	else
		buf_fmt(out, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(all);
}

/* To stderr: a script that reads the list sees the same columns. */
static void
say_stuck(const struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->row[i].stuck)
			say_no("%s: the supervisor does not answer   try: xrun stop %s",
				rows->row[i].job.id, rows->row[i].job.id);
}

static int
list_jobs(const struct settings *s)
{
	struct rows rows = { .all = s->all, .quiet = s->quiet };
	struct buf out = { 0 };
	char *root;

	root = s->all ? state_home() : NULL;
	history_read(&rows.past, root);
	which_each(add_row, &rows);
	if (!s->quiet)
		ps_dial_all(&rows);
	ps_complete(&rows);
	history_fini(&rows.past);
	free(root);
	if (rows.count > 1)
		qsort(rows.row, rows.count, sizeof(*rows.row), compare);
	if (s->json)
		put_json(&out, &rows);
	else
		put_rows(&out, &rows, s);
	say_stuck(&rows);
	for (size_t i = 0; i < rows.count; i++)
		cJSON_Delete(rows.row[i].json);
	free(rows.row);
	return say(&out);
}

int
cmd_ps(int argc, char **argv)
{
	struct settings s = { 0 };
	struct verb_args args;
	struct which job;
	struct xr_error err = { 0 };

	(void)argc;
	if (!verb_args_read(&args, ps_options, &s, 1, argv))
		return EXIT_XRUN;
	if (args.count == 0)
		return list_jobs(&s);
	if (which_job(args.operand[0], WHICH_RUNNING, &job, &err) != XR_OK)
		return say_error(&err);
	if (s.quiet)
		return say_no("ps: -q is for a list of jobs");
	return ps_ranks(&job, s.json);
}
