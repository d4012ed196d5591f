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

/* "running", "exit 3", "SIGSEGV". */
static void
put_state(struct buf *out, const cJSON *rank)
{
	const char *state = jobs_text(rank, "state");
	const char *sig = jobs_text(rank, "signal");
	int64_t exit_status = jobs_number(rank, "exit", -1);
	char text[32];

	if (sig != NULL)
		snprintf(text, sizeof(text), "%s", sig);
	else if (exit_status != -1)
		snprintf(text, sizeof(text), "exit %lld",
			(long long)exit_status);
	else
		snprintf(text, sizeof(text), "%s", state ? state : "new");
	buf_fmt(out, "%-9s ", text);
}

/* "120/500", "120"; "ready"; nothing where it told nothing. */
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
}

static void
put_rank(struct buf *out, const cJSON *rank, uint32_t cols)
{
	const size_t at = out->len;
	double seconds = real_of(rank, "seconds");
	double cpu = real_of(rank, "cpu_seconds") + real_of(rank, "cpu_user") +
		real_of(rank, "cpu_system");
	const char *device = jobs_text(rank, "device");
	char time[32];

	buf_fmt(out, "%5lld %8lld ", (long long)jobs_number(rank, "rank", 0),
		(long long)jobs_number(rank, "pid", 0));
	put_state(out, rank);
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

static void
put_table(struct buf *out, const cJSON *json)
{
	const uint32_t cols = table_columns();
	const cJSON *rank;

	buf_fmt(out, "%5s %8s %-9s %-8s %6s %6s %6s  %-7s  %s", "RANK", "PID",
		"STATE", "TIME", "CPU", "RSS", "OUT", "DEVICE", "STEP");
	table_end_row(out, 0, cols);
	cJSON_ArrayForEach(rank, cJSON_GetObjectItemCaseSensitive(json, "rank"))
		put_rank(out, rank, cols);
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
	*json = job->dir[0] != '\0' ? jobs_read(job->dir) : NULL;
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
		put_table(&out, all);
		put_agents(&out, all);
		ps_put_pools(&out, all);
	}
	if (json && text == NULL)
		out.bad = XR_E_NOMEM;
	cJSON_free(text);
	cJSON_Delete(all);
	return say(&out);
}
