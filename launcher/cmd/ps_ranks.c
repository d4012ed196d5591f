/* SPDX-License-Identifier: Apache-2.0 */
/* ps_ranks.c - see ps_ranks.h. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/ps_pools.h"
#include "launcher/cmd/ps_ranks.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/table.h"
#include "launcher/stat/usage.h"
#include "launcher/state/jobs.h"

/* --- a table -------------------------------------------------------------- */

static double
real_of(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* "1.2G", three characters and a letter, for columns. */
static void
put_bytes(struct buf *out, double bytes)
{
	static const char units[] = "BKMGTP";
	int unit = 0;

	while (bytes >= 999.5 && unit < 5) {
		bytes /= 1024;
		unit++;
	}
	if (bytes < 9.95 && unit > 0)
		buf_fmt(out, "%5.1f%c ", bytes, units[unit]);
	else
		buf_fmt(out, "%5.0f%c ", bytes, units[unit]);
}

#define WAITING "waiting: "

/* "running", "exit 3", "SIGSEGV", "waiting: disk". */
static void
put_state(struct buf *out, const cJSON *rank, int width)
{
	const char *waiting = jobs_text(rank, "waiting");
	const char *state = jobs_text(rank, "state");
	const char *sig = jobs_text(rank, "signal");
	int64_t exit_status = jobs_number(rank, "exit", -1);
	char text[32];

	if (waiting != NULL)
		snprintf(text, sizeof(text), WAITING "%s", waiting);
	else if (sig != NULL)
		snprintf(text, sizeof(text), "%s", sig);
	else if (exit_status != -1)
		snprintf(text, sizeof(text), "exit %lld",
			(long long)exit_status);
	else
		snprintf(text, sizeof(text), "%s", state ? state : "new");
	buf_fmt(out, "%-*s ", width, text);
}

/* "  loss 0.214, accuracy 0.95": the numbers that the rank reported. */
static void
put_metrics(struct buf *out, const cJSON *metrics)
{
	const char *comma = "  ";
	const cJSON *one;

	cJSON_ArrayForEach(one, metrics)
	{
		if (!cJSON_IsNumber(one))
			continue;
		buf_put_text(out, comma);
		table_put_word(out, one->string);
		buf_fmt(out, " %.4g", one->valuedouble);
		comma = ", ";
	}
}

/* "120/500  loss 0.21", "120", "ready"; nothing if the rank reported nothing. */
static void
put_step(struct buf *out, const cJSON *rank)
{
	const cJSON *told = cJSON_GetObjectItemCaseSensitive(rank, "progress");
	int64_t step = jobs_number(told, "step", -1);
	int64_t total = jobs_number(told, "total", -1);

	if (step != -1 && total != -1)
		buf_fmt(out, "  %lld/%lld", (long long)step, (long long)total);
	else if (step != -1)
		buf_fmt(out, "  %lld", (long long)step);
	else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(rank, "ready")))
		buf_put_text(out, "  ready");
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(told, "slow")))
		buf_fmt(out, "  slow: %.3g s a step",
			real_of(told, "step_seconds"));
	put_metrics(out, cJSON_GetObjectItemCaseSensitive(told, "metrics"));
}

static void
put_rank(struct buf *out, const cJSON *rank, int width, uint32_t cols)
{
	const size_t at = out->len;
	double seconds = real_of(rank, "seconds");
	double cpu = real_of(rank, "cpu_seconds") + real_of(rank, "cpu_user") +
		real_of(rank, "cpu_system");
	const char *device = jobs_text(rank, "device");
	char time[32];

	buf_fmt(out, "%5lld %8lld ", (long long)jobs_number(rank, "rank", 0),
		(long long)jobs_number(rank, "pid", 0));
	put_state(out, rank, width);
	buf_fmt(out, "%-8s ",
		clock_rough((int64_t)(seconds * NS_PER_S), time, sizeof(time)));
	if (seconds > 0)
		buf_fmt(out, "%5.0f%% ", 100 * cpu / seconds);
	else
		buf_fmt(out, "%6s ", "-");
	put_bytes(out,
		real_of(rank, "rss_bytes") + real_of(rank, "rss_peak_bytes"));
	put_bytes(out,
		real_of(rank, "stdout_bytes") + real_of(rank, "stderr_bytes"));
	buf_fmt(out, " %-7s", device != NULL ? device : "-");
	put_step(out, rank);
	table_end_row(out, at, cols);
}

/* "running", "stopping"; "ended with 3 (failure)". */
static void
put_job_state(struct buf *out, const cJSON *json, bool running)
{
	const char *phase = jobs_text(json, "phase");
	const char *waiting = jobs_text(json, "waiting");
	const char *reason = jobs_text(json, "reason");
	int64_t exit_status = jobs_number(json, "exit", -1);

	if (running && waiting != NULL)
		buf_fmt(out, WAITING "%s", waiting);
	else if (running && exit_status == -1)
		buf_put_text(out, phase != NULL ? phase : "running");
	else if (exit_status == -1)
		buf_put_text(out, "lost");
	else
		buf_fmt(out, "ended with %lld (%s)", (long long)exit_status,
			reason != NULL ? reason : "-");
}

/* Two lines: the job, its state, time, ranks and host; its command. */
static void
put_header(struct buf *out, const struct which *job, const cJSON *json,
	uint32_t cols)
{
	int64_t start = clock_parse(jobs_text(json, "start"));
	int64_t end = clock_parse(jobs_text(json, "end"));
	int64_t ranks = jobs_number(json, "ranks", 0);
	const char *host = jobs_text(json, "host");
	const cJSON *word;
	char time[32];
	size_t at = out->len;

	buf_fmt(out, "job %s: ", job->id);
	put_job_state(out, json, job->running);
	end = end == -1 ? clock_wall() : end;
	if (start != -1 && end >= start)
		buf_fmt(out, ", %s",
			clock_rough(end - start, time, sizeof(time)));
	buf_fmt(out, ", %lld rank%s", (long long)ranks, ranks == 1 ? "" : "s");
	if (host != NULL) {
		buf_put_text(out, " on ");
		table_put_word(out, host);
	}
	if (jobs_number(json, "attempt", 0) > 0)
		buf_fmt(out, ", attempt %lld",
			(long long)jobs_number(json, "attempt", 0));
	table_end_row(out, at, cols);
	at = out->len;
	buf_put_char(out, ' ');
	cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(json, "argv"))
	{
		buf_put_char(out, ' ');
		table_put_word(out,
			cJSON_IsString(word) ? word->valuestring : "?");
	}
	table_end_row(out, at, cols);
	buf_put_char(out, '\n');
}

static void
put_table(struct buf *out, const struct which *job, const cJSON *json)
{
	const uint32_t cols = table_columns();
	const cJSON *rank, *ranks;
	int width = 9;
	size_t at;

	ranks = cJSON_GetObjectItemCaseSensitive(json, "rank");
	cJSON_ArrayForEach(rank, ranks) if (jobs_text(rank, "waiting") != NULL)
		width = (int)sizeof(WAITING "disk") - 1;
	put_header(out, job, json, cols);
	at = out->len;
	buf_fmt(out, "%5s %8s %-*s %-8s %6s %6s %6s  %-7s  %s", "RANK", "PID",
		width, "STATE", "TIME", "CPU", "RSS", "OUT", "DEVICE", "STEP");
	table_end_row(out, at, cols);
	cJSON_ArrayForEach(rank, ranks) put_rank(out, rank, width, cols);
}

/* --- calls ---------------------------------------------------------------- */

static const cJSON *
rpc_of(const cJSON *rank)
{
	return cJSON_GetObjectItemCaseSensitive(rank, "rpc");
}

static void
put_calls(struct buf *out, const cJSON *rank, uint32_t cols)
{
	const cJSON *rpc = rpc_of(rank);
	const size_t at = out->len;

	buf_fmt(out, "%5lld %9lld %9lld %7lld ",
		(long long)jobs_number(rank, "rank", 0),
		(long long)jobs_number(rpc, "calls", 0),
		(long long)jobs_number(rpc, "served", 0),
		(long long)jobs_number(rpc, "errors", 0));
	put_bytes(out, real_of(rpc, "bytes_out"));
	put_bytes(out, real_of(rpc, "bytes_in"));
	if (jobs_number(rpc, "calls", 0) > 0) {
		ps_put_short(out,
			real_of(rpc, "seconds") / real_of(rpc, "calls"));
		ps_put_short(out, real_of(rpc, "p50"));
		ps_put_short(out, real_of(rpc, "p99"));
	}
	table_end_row(out, at, cols);
}

/* Of ranks that have an agent; a job without any has no second table. */
static void
put_agents(struct buf *out, const cJSON *json)
{
	const uint32_t cols = table_columns();
	const cJSON *rank;
	bool any = false;
	size_t at;

	cJSON_ArrayForEach(rank, cJSON_GetObjectItemCaseSensitive(json, "rank"))
	{
		if (rpc_of(rank) == NULL)
			continue;
		at = out->len + 1;
		if (!any) {
			buf_fmt(out, "\n%5s %9s %9s %7s %6s %6s  %6s %6s %6s",
				"RANK", "CALLS", "SERVED", "ERRORS", "SENT",
				"GOT", "MEAN", "P50", "P99");
			table_end_row(out, at, cols);
		}
		any = true;
		put_calls(out, rank, cols);
	}
}

/* What a job that runs says of itself, and nothing else: its folder does not
 * know how its ranks are. What one that has ended left. */
static enum xr_status
read_job(struct which *job, cJSON **json, struct xr_error *err)
{
	enum xr_status status = dial_status(job, json, err);

	if (status == XR_OK || job->running)
		return status;
	*json = which_said(job);
	return *json != NULL ?
		XR_OK :
		fail(err, XR_E_NOTFOUND, "%s has ended, and left no files",
			job->id);
}

int
ps_ranks(struct which *job, bool json)
{
	cJSON *all = NULL;
	struct buf out = { 0 };
	struct xr_error err = { 0 };
	char *text = NULL;

	if (read_job(job, &all, &err) != XR_OK) {
		cJSON_Delete(all);
		return say_error(&err);
	}
	usage_add(all);
	if (json) {
		cJSON_AddBoolToObject(all, "running", job->running);
		text = cJSON_PrintUnformatted(all);
		buf_fmt(&out, "%s\n", text != NULL ? text : "");
	} else {
		put_table(&out, job, all);
		put_agents(&out, all);
		ps_put_pools(&out, all);
	}
	if (json && text == NULL)
		out.bad = XR_E_NOMEM;
	cJSON_free(text);
	cJSON_Delete(all);
	return say(&out);
}
