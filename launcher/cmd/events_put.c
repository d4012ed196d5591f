/* SPDX-License-Identifier: Apache-2.0 */
/* events_put.c - see events_put.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/gate.h"
#include "launcher/cmd/events_put.h"
#include "launcher/log/prefix.h"
#include "launcher/state/jobs.h"

#define ROW "%-23s  %-10s %4s  "

typedef void what_fn(struct buf *out, const cJSON *event);

static bool
is_true(const cJSON *event, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(event, key));
}

static const char *
text_of(const cJSON *event, const char *key)
{
	const char *text = jobs_text(event, key);

	return text == NULL ? "?" : text;
}

static void
put_job_start(struct buf *out, const cJSON *event)
{
	const cJSON *word;
	int64_t ranks = jobs_number(event, "ranks", 0);

	buf_fmt(out, "%s, attempt %lld: %lld rank%s on %s, pid %lld:",
		text_of(event, "job"),
		(long long)jobs_number(event, "attempt", 0), (long long)ranks,
		ranks == 1 ? "" : "s", text_of(event, "host"),
		(long long)jobs_number(event, "pid", 0));
	cJSON_ArrayForEach(word,
		cJSON_GetObjectItemCaseSensitive(event, "argv"))
	{
		if (cJSON_IsString(word))
			buf_fmt(out, " %s", word->valuestring);
	}
}

static void
put_rank_start(struct buf *out, const cJSON *event)
{
	buf_fmt(out, "pid %lld", (long long)jobs_number(event, "pid", 0));
}

static void
put_rank_error(struct buf *out, const cJSON *event)
{
	buf_fmt(out, "%s: %s", text_of(event, "step"), text_of(event, "error"));
}

static void
put_rank_exit(struct buf *out, const cJSON *event)
{
	const char *sig = jobs_text(event, "signal");
	const char *oom = jobs_text(event, "oom");

	if (sig != NULL)
		buf_put_text(out, sig);
	else
		buf_fmt(out, "exit %lld",
			(long long)jobs_number(event, "exit", 0));
	if (is_true(event, "core"))
		buf_put_text(out, ", core");
	if (oom != NULL)
		buf_fmt(out, ", out of memory (%s)", oom);
	if (is_true(event, "stopped"))
		buf_put_text(out, ", stopped by xrun");
}

static void
put_job_stop(struct buf *out, const cJSON *event)
{
	const char *sig = jobs_text(event, "signal");

	buf_fmt(out, "%s%s%s", text_of(event, "reason"), sig == NULL ? "" : " ",
		sig == NULL ? "" : sig);
}

static void
put_job_hang(struct buf *out, const cJSON *event)
{
	const cJSON *hung = cJSON_GetObjectItem(event, "hung"), *rank;
	const cJSON *seconds = cJSON_GetObjectItem(event, "seconds");
	const char *between = cJSON_GetArraySize(hung) == 1 ? "rank" : "ranks";

	buf_fmt(out, "%s, ", text_of(event, "rule"));
	cJSON_ArrayForEach(rank, hung)
	{
		buf_fmt(out, "%s %.0f", between, cJSON_GetNumberValue(rank));
		between = ",";
	}
	buf_fmt(out, ", after %.1f s",
		cJSON_IsNumber(seconds) ? seconds->valuedouble : 0);
}

static void
put_job_stacks(struct buf *out, const cJSON *event)
{
	int64_t ranks = jobs_number(event, "ranks", 0);
	const char *path = jobs_text(event, "path");

	buf_fmt(out, "%s, %lld rank%s%s%s", text_of(event, "why"),
		(long long)ranks, ranks == 1 ? "" : "s",
		path == NULL ? "" : ": ", path == NULL ? "" : path);
}

static void
put_log_full(struct buf *out, const cJSON *event)
{
	buf_fmt(out, "no room for its %s", text_of(event, "stream"));
}

static void
put_log_room(struct buf *out, const cJSON *event)
{
	buf_fmt(out, "room for its %s again", text_of(event, "stream"));
}

static void
put_job_end(struct buf *out, const cJSON *event)
{
	int64_t culprit = jobs_number(event, "culprit", -1);

	buf_fmt(out, "exit %lld, %s", (long long)jobs_number(event, "exit", 0),
		text_of(event, "reason"));
	if (culprit != -1)
		buf_fmt(out, ", rank %lld first", (long long)culprit);
}

/* What has a column of its own, or tells a person nothing. */
static bool
is_shown(const char *key)
{
	static const char *const names[] = { "v", "seq", "mono_ns", "time",
		"event", "rank" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(key, names[i]) == 0)
			return true;
	return false;
}

static void
put_any(struct buf *out, const cJSON *event)
{
	const cJSON *item;
	bool some = false;
	char *text;

	cJSON_ArrayForEach(item, event)
	{
		if (is_shown(item->string))
			continue;
		text = cJSON_IsString(item) ? NULL :
					      cJSON_PrintUnformatted(item);
		buf_fmt(out, "%s%s %s", some ? ", " : "", item->string,
			text != NULL ? text : text_of(event, item->string));
		cJSON_free(text);
		some = true;
	}
}

static void
put_job_restart(struct buf *out, const cJSON *event)
{
	put_job_end(out, event);
	buf_fmt(out, "; attempt %lld follows",
		(long long)jobs_number(event, "next", 0));
}

static const struct {
	const char *event;
	what_fn *put;
} kinds[] = {
	{ "job.start", put_job_start },
	{ "rank.start", put_rank_start },
	{ "rank.error", put_rank_error },
	{ "rank.exit", put_rank_exit },
	{ "job.stop", put_job_stop },
	{ "job.hang", put_job_hang },
	{ "job.stacks", put_job_stacks },
	{ "log.full", put_log_full },
	{ "log.room", put_log_room },
	{ "job.restart", put_job_restart },
	{ "job.end", put_job_end },
};

static what_fn *
find_kind(const char *event)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].event, event) == 0)
			return kinds[i].put;
	return put_any;
}

/* "2026-11-21 12:34:56.789", in local time. */
static const char *
local_time(int64_t wall, char *out, size_t cap)
{
	struct prefix_clock clock = { 0 };
	time_t t = (time_t)(wall / NS_PER_S);
	struct tm tm = { 0 };

	if (wall < 0)
		return "-";
	localtime_r(&t, &tm);
	snprintf(out, cap, "%04d-%02d-%02d %s", tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, prefix_clock(&clock, wall));
	return out;
}

/* A row is one line, whatever is in words of people. */
static void
tame(char *row)
{
	for (; *row != '\0'; row++)
		if ((unsigned char)*row < ' ')
			*row = ' ';
}

void
events_put_head(struct buf *out)
{
	buf_fmt(out, ROW "%s\n", "TIME", "EVENT", "RANK", "WHAT");
}

void
events_put_row(struct buf *out, struct span line)
{
	char time[64], number[24] = "";
	size_t from = out->len;
	int64_t rank;
	cJSON *event = NULL;

	if (gate_check("", line.at, line.len, line.len, NULL) == XR_OK)
		event = cJSON_ParseWithLength(line.at, line.len);
	if (!cJSON_IsObject(event)) {
		cJSON_Delete(event);
		return;
	}
	rank = jobs_number(event, "rank", -1);
	if (rank != -1)
		snprintf(number, sizeof(number), "%lld", (long long)rank);
	buf_fmt(out, ROW,
		local_time(clock_parse(jobs_text(event, "time")), time,
			sizeof(time)),
		text_of(event, "event"), number);
	find_kind(text_of(event, "event"))(out, event);
	if (out->bad == XR_OK)
		tame(out->data + from);
	buf_put_char(out, '\n');
	cJSON_Delete(event);
}
