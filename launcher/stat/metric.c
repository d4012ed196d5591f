/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c - see metric.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "launcher/stat/metric.h"
#include "launcher/state/jobs.h"

/* Names: https://prometheus.io/docs/practices/naming/ - a prefix, base units,
 * _total for what only grows. A row a line, whatever its length. */
/* clang-format off */
const struct metric_row metric_rows[] = {
	{ "xrun_build_info", "gauge", METRIC_OF_JOB, NULL,
		"1; label version: which xrun runs the job" },
	{ "xrun_job_state", "gauge", METRIC_OF_STATES, "phase",
		"1 for the state the job is in, 0 for the others" },
	{ "xrun_job_start_time_seconds", "gauge", METRIC_OF_JOB, NULL,
		"When it was started, in seconds since 1970" },
	{ "xrun_job_attempt", "gauge", METRIC_OF_JOB, "attempt",
		"0, or how often the job was begun before" },
	{ "xrun_job_restarts_total", "counter", METRIC_OF_JOB, "restarts",
		"How often it was restarted" },
	{ "xrun_job_ranks", "gauge", METRIC_OF_JOB, "ranks",
		"How many ranks it has on this machine" },
	{ "xrun_job_exit_status", "gauge", METRIC_OF_JOB, "exit",
		"With what xrun ends, once the job has ended" },
	{ "xrun_ranks", "gauge", METRIC_OF_STATES, "rank.state",
		"Ranks in each state of their life" },
	{ "xrun_ranks_waiting", "gauge", METRIC_OF_WAITS, "waiting",
		"Ranks that wait, for room on the disk of their output" },
	{ "xrun_rank_run_seconds", "gauge", METRIC_OF_RANK, "seconds",
		"Since it was started, or how long it ran" },
	{ "xrun_rank_exit_status", "gauge", METRIC_OF_RANK, "exit",
		"How it ended, as a shell sees it, once it has" },
	{ "xrun_rank_cpu_seconds_total", "counter", METRIC_OF_RANK, "cpu_seconds|cpu_user+cpu_system",
		"Processor time of its processes" },
	{ "xrun_rank_resident_memory_bytes", "gauge", METRIC_OF_RANK, "rss_bytes",
		"Memory of its processes, shared pages counted in each" },
	{ "xrun_rank_processes", "gauge", METRIC_OF_RANK, "processes",
		"Its processes: its own and their descendants" },
	{ "xrun_rank_output_bytes_total", "counter", METRIC_OF_STREAM, NULL,
		"Bytes that it wrote" },
	{ "xrun_rank_ready", "gauge", METRIC_OF_RANK, "ready",
		"1 if it said that it is ready" },
	{ "xrun_rank_step", "gauge", METRIC_OF_RANK, "progress.step",
		"Steps that it said are done" },
	{ "xrun_rank_steps_planned", "gauge", METRIC_OF_RANK, "progress.total",
		"Steps that it said there are" },
	{ "xrun_rank_step_seconds", "gauge", METRIC_OF_RANK, "progress.step_seconds",
		"Median time of its last steps" },
	{ "xrun_rank_slow", "gauge", METRIC_OF_RANK, "progress.slow",
		"1 if its steps take much longer than those of other ranks" },
	{ "xrun_rank_silence_seconds", "gauge", METRIC_OF_RANK, "progress.seconds_ago",
		"Since it last told anything" },
	{ "xrun_rank_calls_total", "counter", METRIC_OF_RANK, "rpc.calls",
		"Calls of other ranks that have ended, of one with an agent" },
	{ "xrun_rank_call_errors_total", "counter", METRIC_OF_RANK, "rpc.errors",
		"Those that failed" },
	{ "xrun_rank_call_timeouts_total", "counter", METRIC_OF_RANK, "rpc.timeouts",
		"Those that found no answer in time" },
	{ "xrun_rank_calls_served_total", "counter", METRIC_OF_RANK, "rpc.served",
		"Calls of others that came" },
	{ "xrun_rank_call_sent_bytes_total", "counter", METRIC_OF_RANK, "rpc.bytes_out",
		"Bytes of calls and answers that it sent" },
	{ "xrun_rank_call_received_bytes_total", "counter", METRIC_OF_RANK, "rpc.bytes_in",
		"Bytes of calls and answers that came" },
	{ "xrun_rank_call_seconds", "histogram", METRIC_OF_TIMES, "rpc",
		"How long its calls took" },
	{ "xrun_pool_workers", "gauge", METRIC_OF_POOL, "workers",
		"Workers that the pool is to have" },
	{ "xrun_pool_tasks_waiting", "gauge", METRIC_OF_POOL, "waiting",
		"Tasks that no worker has begun" },
	{ "xrun_pool_tasks_running", "gauge", METRIC_OF_POOL, "running",
		"Tasks that workers have in hand" },
	{ "xrun_pool_tasks_total", "counter", METRIC_OF_POOL, "done",
		"Tasks that are over" },
	{ "xrun_pool_task_errors_total", "counter", METRIC_OF_POOL, "failed",
		"Those that failed" },
	{ "xrun_pool_busy_seconds_total", "counter", METRIC_OF_POOL, "busy_seconds",
		"Time that workers spent in tasks" },
	{ "xrun_pool_worker_seconds_total", "counter", METRIC_OF_POOL, "worker_seconds",
		"Time that there were workers: what is busy of it is the busy share" },
	{ "xrun_pool_task_seconds", "histogram", METRIC_OF_TASKS, NULL,
		"How long its tasks took" },
	{ "xrun_queue_items", "gauge", METRIC_OF_QUEUE, "items",
		"Items in the queue" },
	{ "xrun_queue_room", "gauge", METRIC_OF_QUEUE, "room",
		"Items that may be in it" },
	{ "xrun_queue_put_total", "counter", METRIC_OF_QUEUE, "put",
		"Items that were put, by whatever process" },
	{ "xrun_queue_got_total", "counter", METRIC_OF_QUEUE, "got",
		"Items that were got" },
	{ "xrun_rank_told", "gauge", METRIC_OF_NAMES, "progress.metrics",
		"What it told of itself: a number for each name" },
	{ "xrun_job_told_dropped", "gauge", METRIC_OF_JOB, NULL,
		"Such numbers that are left out, as there are too many" },
	{ 0 },
};
/* clang-format on */

struct put {
	struct buf *out;
	const struct metric_row *row;
	const cJSON *status, *ranks;
	const char *job;
	bool named;       /* HELP and TYPE are put */
	uint32_t told;    /* samples of METRIC_OF_NAMES */
	uint32_t dropped; /* that found no place */
};

const char *
metric_labels(enum metric_of of)
{
	static const char *const labels[] = {
		[METRIC_OF_JOB] = "job",
		[METRIC_OF_RANK] = "job, rank",
		[METRIC_OF_STATES] = "job, state",
		[METRIC_OF_WAITS] = "job, for",
		[METRIC_OF_STREAM] = "job, rank, stream",
		[METRIC_OF_NAMES] = "job, rank, name",
		[METRIC_OF_TIMES] = "job, rank, le",
		[METRIC_OF_POOL] = "job, rank, pool",
		[METRIC_OF_TASKS] = "job, rank, pool, le",
		[METRIC_OF_QUEUE] = "job, rank, queue",
	};

	return labels[of];
}

/* --- samples -------------------------------------------------------------- */

/* A label's value may be any text; these three would end it. */
static void
put_escaped(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\n')
			buf_put_text(out, "\\n");
		else if (*text == '"' || *text == '\\')
			buf_fmt(out, "\\%c", *text);
		else
			buf_put_char(out, *text);
}

/* The fewest digits that read back as the same number. */
static void
put_value(struct buf *out, double value)
{
	char text[40], *comma;

	if (!isfinite(value)) {
		buf_put_text(out,
			isnan(value)      ? " NaN\n" :
				value > 0 ? " +Inf\n" :
					    " -Inf\n");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	comma = strchr(text, ','); /* the decimal sign of some locales */
	if (comma != NULL)
		*comma = '.';
	buf_fmt(out, " %s\n", text);
}

/* What a sample is told apart by, beside the job. */
struct labels {
	int64_t rank;            /* -1: none */
	const char *key, *value; /* one more; or NULL */
	const char *suffix;      /* of the name; NULL */
	const char *pool;        /* of which; NULL */
};

static void
put_sample(struct put *p, const struct labels *l, double value)
{
	if (!p->named)
		buf_fmt(p->out, "# HELP %s %s.\n# TYPE %s %s\n", p->row->name,
			p->row->help, p->row->name, p->row->type);
	p->named = true;
	buf_fmt(p->out, "%s%s{job=\"", p->row->name,
		l->suffix != NULL ? l->suffix : "");
	put_escaped(p->out, p->job);
	if (l->rank != -1)
		buf_fmt(p->out, "\",rank=\"%lld", (long long)l->rank);
	if (l->pool != NULL) {
		buf_put_text(p->out, "\",pool=\"");
		put_escaped(p->out, l->pool);
	}
	if (l->key != NULL) {
		buf_fmt(p->out, "\",%s=\"", l->key);
		put_escaped(p->out, l->value);
	}
	buf_put_text(p->out, "\"}");
	put_value(p->out, value);
}

/* --- where values are ----------------------------------------------------- */

/* The member that @path names; NULL: it is not there. */
static const cJSON *
member_of(const cJSON *of, const char *path, size_t len)
{
	char name[64];
	size_t n;

	while (of != NULL && len > 0) {
		n = strcspn(path, ".");
		n = n < len ? n : len;
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		of = cJSON_GetObjectItemCaseSensitive(of, name);
		n += n < len;
		path += n;
		len -= n;
	}
	return of;
}

/* The sum of members with '+' between their names; false: none is there. */
static bool
sum_of(const cJSON *of, const char *from, size_t len, double *value)
{
	const cJSON *item;
	bool any = false;
	size_t n;

	*value = 0;
	while (len > 0) {
		n = strcspn(from, "+");
		n = n < len ? n : len;
		item = member_of(of, from, n);
		if (cJSON_IsNumber(item))
			*value += item->valuedouble;
		else if (cJSON_IsBool(item))
			*value += cJSON_IsTrue(item);
		any = any || cJSON_IsNumber(item) || cJSON_IsBool(item);
		n += n < len;
		from += n;
		len -= n;
	}
	return any;
}

static bool
value_of(const cJSON *of, const char *from, double *value)
{
	size_t n = strcspn(from, "|");

	if (sum_of(of, from, n, value))
		return true;
	return from[n] == '|' &&
		sum_of(of, from + n + 1, strlen(from + n + 1), value);
}

/* --- rows ----------------------------------------------------------------- */

/* Every state that there is has a sample, also when nobody is in it. */
static void
put_states(struct put *p)
{
	static const char *const phases[] = { "waiting", "running", "stopping",
		"ending", "ended", NULL };
	static const char *const states[] = { "new", "running", "stopped",
		"stopping", "killed", "ended", "done", NULL };
	const bool of_ranks = strchr(p->row->from, '.') != NULL;
	const char *const *all = of_ranks ? states : phases, *is;
	const cJSON *rank;
	double n;

	for (; *all != NULL; all++) {
		is = jobs_text(p->status, "phase");
		n = !of_ranks && is != NULL && strcmp(is, *all) == 0;
		if (of_ranks)
			cJSON_ArrayForEach(rank, p->ranks)
			{
				is = jobs_text(rank, "state");
				n += is != NULL && strcmp(is, *all) == 0;
			}
		put_sample(p,
			&(struct labels){ .rank = -1,
				.key = "state",
				.value = *all },
			n);
	}
}

/* Every reason has a sample, even if no rank waits for it. */
static void
metric_put_waits(struct put *p)
{
	const cJSON *rank;
	const char *is;
	double n = 0;

	cJSON_ArrayForEach(rank, p->ranks)
	{
		is = jobs_text(rank, p->row->from);
		n += is != NULL && strcmp(is, "disk") == 0;
	}
	put_sample(p,
		&(struct labels){ .rank = -1, .key = "for", .value = "disk" },
		n);
}

static void
put_streams(struct put *p)
{
	static const char *const streams[] = { "stdout", "stderr" };
	const cJSON *rank;
	char member[32];
	double value;

	cJSON_ArrayForEach(rank, p->ranks)
	{
		for (int i = 0; i < 2; i++) {
			snprintf(member, sizeof(member), "%s_bytes",
				streams[i]);
			if (value_of(rank, member, &value))
				put_sample(p,
					&(struct labels){
						.rank = jobs_number(rank,
							"rank", 0),
						.key = "stream",
						.value = streams[i] },
					value);
		}
	}
}

/* A series for each name costs whoever collects them: they are counted. */
static void
put_names(struct put *p)
{
	const cJSON *rank, *item;
	uint32_t names;

	cJSON_ArrayForEach(rank, p->ranks)
	{
		names = 0;
		cJSON_ArrayForEach(item,
			member_of(rank, p->row->from, strlen(p->row->from)))
		{
			if (!cJSON_IsNumber(item))
				continue;
			if (names == METRIC_NAMES_MAX ||
				p->told == METRIC_SAMPLES_MAX) {
				p->dropped++;
				continue;
			}
			names++;
			p->told++;
			put_sample(p,
				&(struct labels){
					.rank = jobs_number(rank, "rank", 0),
					.key = "name",
					.value = item->string },
				item->valuedouble);
		}
	}
}

/* Below how many ns a call took, of the buckets that are told: 1 us, and 4 times
 * as much from one to the next. All are told of each rank, so that they add up. */
#define TIMES_FIRST (INT64_C(1) << 10)
#define TIMES_LAST  (INT64_C(1) << 34)
#define TASKS_LAST  (INT64_C(1) << 40)

/* A histogram, of which the object says how often each time was. */
struct times {
	const cJSON *of;
	const char *list, *each; /* members: buckets; how often, in one */
	const char *count;
	const char *sum; /* seconds */
	int64_t last;    /* ns */
};

/* A boundary that is not one of the list's has those of that below it. */
static double
times_below(const struct times *t, int64_t ns)
{
	const cJSON *item, *below;
	double n = 0;

	cJSON_ArrayForEach(item,
		cJSON_GetObjectItemCaseSensitive(t->of, t->list))
	{
		below = cJSON_GetObjectItemCaseSensitive(item, "below");
		if (cJSON_IsNumber(below) &&
			below->valuedouble <= (double)ns * 1.0000001 / NS_PER_S)
			n += (double)jobs_number(item, t->each, 0);
	}
	return n;
}

/* @of: what the samples have in common. */
static void
put_histogram(struct put *p, const struct labels *of, const struct times *t)
{
	struct labels l = *of;
	double value = 0;
	char le[32];

	if (!value_of(t->of, t->count, &value))
		return;
	l.key = "le";
	l.value = le;
	l.suffix = "_bucket";
	for (int64_t ns = TIMES_FIRST; ns <= t->last; ns *= 4) {
		snprintf(le, sizeof(le), "%lld.%09lld",
			(long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
		put_sample(p, &l, times_below(t, ns));
	}
	snprintf(le, sizeof(le), "+Inf");
	put_sample(p, &l, value);
	l = *of;
	l.suffix = "_count";
	put_sample(p, &l, value);
	l.suffix = "_sum";
	if (value_of(t->of, t->sum, &value))
		put_sample(p, &l, value);
}

static void
put_times(struct put *p)
{
	struct times t = { NULL, "latency", "calls", "calls", "seconds",
		TIMES_LAST };
	const cJSON *rank;

	cJSON_ArrayForEach(rank, p->ranks)
	{
		t.of = member_of(rank, p->row->from, strlen(p->row->from));
		put_histogram(p,
			&(struct labels){
				.rank = jobs_number(rank, "rank", 0) },
			&t);
	}
}

/* --- pools and queues ----------------------------------------------------- */

static void
put_pools(struct put *p)
{
	struct times t = { NULL, "times", "tasks", "timed", "task_seconds",
		TASKS_LAST };
	const cJSON *rank, *pool;
	double value;

	cJSON_ArrayForEach(rank, p->ranks)
	{
		struct labels l = { .rank = jobs_number(rank, "rank", 0) };

		cJSON_ArrayForEach(pool,
			cJSON_GetObjectItemCaseSensitive(rank, "pools"))
		{
			l.pool = jobs_text(pool, "name");
			t.of = pool;
			if (p->row->from == NULL)
				put_histogram(p, &l, &t);
			else if (value_of(pool, p->row->from, &value))
				put_sample(p, &l, value);
		}
	}
}

static void
put_queues(struct put *p)
{
	const cJSON *rank, *queue;
	double value;

	cJSON_ArrayForEach(rank, p->ranks)
	{
		struct labels l = { .rank = jobs_number(rank, "rank", 0),
			.key = "queue" };

		cJSON_ArrayForEach(queue,
			cJSON_GetObjectItemCaseSensitive(rank, "queues"))
		{
			l.value = jobs_text(queue, "name");
			if (l.value != NULL &&
				value_of(queue, p->row->from, &value))
				put_sample(p, &l, value);
		}
	}
}

static void
put_ranks(struct put *p)
{
	const cJSON *rank;
	double value;

	cJSON_ArrayForEach(rank, p->ranks) if (value_of(rank, p->row->from,
						       &value)) put_sample(p,
		&(struct labels){ .rank = jobs_number(rank, "rank", 0) },
		value);
}

static void
put_job(struct put *p)
{
	struct labels l = { .rank = -1 };
	const char *start = jobs_text(p->status, "start");
	double value = 0;

	if (p->row->from != NULL) {
		if (value_of(p->status, p->row->from, &value))
			put_sample(p, &l, value);
	} else if (strcmp(p->row->name, "xrun_build_info") == 0) {
		l.key = "version";
		l.value = XRUN_VERSION;
		put_sample(p, &l, 1);
	} else if (strcmp(p->row->name, "xrun_job_told_dropped") == 0) {
		if (p->told > 0)
			put_sample(p, &l, p->dropped);
	} else if (start != NULL && clock_parse(start) != -1) {
		put_sample(p, &l, (double)clock_parse(start) / NS_PER_S);
	}
}

void
metric_put(struct buf *out, const cJSON *status)
{
	static void (*const kinds[])(struct put *) = {
		[METRIC_OF_JOB] = put_job,
		[METRIC_OF_RANK] = put_ranks,
		[METRIC_OF_STATES] = put_states,
		[METRIC_OF_WAITS] = metric_put_waits,
		[METRIC_OF_STREAM] = put_streams,
		[METRIC_OF_NAMES] = put_names,
		[METRIC_OF_TIMES] = put_times,
		[METRIC_OF_POOL] = put_pools,
		[METRIC_OF_TASKS] = put_pools,
		[METRIC_OF_QUEUE] = put_queues,
	};
	struct put p = {
		.out = out,
		.status = status,
		.ranks = cJSON_GetObjectItemCaseSensitive(status, "rank"),
		.job = jobs_text(status, "job"),
	};

	if (p.job == NULL)
		return;
	for (p.row = metric_rows; p.row->name != NULL; p.row++) {
		p.named = false;
		kinds[p.row->of](&p);
	}
}
