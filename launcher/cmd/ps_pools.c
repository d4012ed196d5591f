/* SPDX-License-Identifier: Apache-2.0 */
/* ps_pools.c - see ps_pools.h. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "launcher/cmd/ps_pools.h"
#include "launcher/cmd/table.h"
#include "launcher/state/jobs.h"

void
ps_put_short(struct buf *out, double seconds)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double n = seconds * 1e9;
	char text[32];
	int unit = 0;

	while (n >= 999.5 && unit < 3) {
		n /= 1000;
		unit++;
	}
	snprintf(text, sizeof(text), n < 9.95 && unit > 0 ? "%.1f%s" : "%.0f%s",
		n, units[unit]);
	buf_fmt(out, " %6s", text);
}

static double
real_of(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* "-": it cannot be seen. */
static void
put_count(struct buf *out, const cJSON *of, const char *key, int width)
{
	int64_t n = jobs_number(of, key, -1);

	if (n == -1)
		buf_fmt(out, " %*s", width, "-");
	else
		buf_fmt(out, " %*lld", width, (long long)n);
}

/* As wide as the heading, where it is no longer. */
static void
put_name(struct buf *out, const cJSON *rank, const cJSON *of)
{
	const char *name = jobs_text(of, "name");
	size_t at;

	buf_fmt(out, "%5lld ", (long long)jobs_number(rank, "rank", 0));
	at = out->len;
	table_put_word(out, name != NULL ? name : "?");
	while (out->bad == XR_OK && out->len < at + 12)
		buf_put_char(out, ' ');
}

static void
put_pool(struct buf *out, const cJSON *rank, const cJSON *pool)
{
	double timed = real_of(pool, "timed");

	put_name(out, rank, pool);
	put_count(out, pool, "workers", 7);
	put_count(out, pool, "waiting", 7);
	put_count(out, pool, "running", 7);
	put_count(out, pool, "done", 9);
	put_count(out, pool, "failed", 7);
	buf_fmt(out, " %4.0f%%", 100 * real_of(pool, "busy"));
	if (timed == 0)
		return;
	ps_put_short(out, real_of(pool, "task_seconds") / timed);
	ps_put_short(out, real_of(pool, "p50"));
	ps_put_short(out, real_of(pool, "p99"));
}

static void
put_queue(struct buf *out, const cJSON *rank, const cJSON *queue)
{
	put_name(out, rank, queue);
	put_count(out, queue, "items", 9);
	put_count(out, queue, "room", 9);
	put_count(out, queue, "put", 12);
	put_count(out, queue, "got", 12);
}

/* A table of one kind of them: the member of each rank, and what stands above. */
struct kind {
	const char *member, *heading;
	void (*put)(struct buf *out, const cJSON *rank, const cJSON *of);
};

static void
put_kind(struct buf *out, const cJSON *json, const struct kind *kind)
{
	const uint32_t cols = table_columns();
	const cJSON *rank, *of;
	bool any = false;
	size_t at;

	cJSON_ArrayForEach(rank, cJSON_GetObjectItemCaseSensitive(json, "rank"))
	{
		cJSON_ArrayForEach(of,
			cJSON_GetObjectItemCaseSensitive(rank, kind->member))
		{
			if (!any) {
				at = out->len + 1;
				buf_fmt(out, "\n%s", kind->heading);
				table_end_row(out, at, cols);
			}
			any = true;
			at = out->len;
			kind->put(out, rank, of);
			table_end_row(out, at, cols);
		}
	}
}

static void
put_unlisted(struct buf *out, const cJSON *json)
{
	const cJSON *rank;
	int64_t n;

	cJSON_ArrayForEach(rank, cJSON_GetObjectItemCaseSensitive(json, "rank"))
	{
		n = jobs_number(rank, "unlisted", 0);
		if (n > 0)
			buf_fmt(out,
				"\n%5lld %lld more, for which there is no room\n",
				(long long)jobs_number(rank, "rank", 0),
				(long long)n);
	}
}

void
ps_put_pools(struct buf *out, const cJSON *json)
{
	char heading[128];
	struct kind pools = { "pools", heading, put_pool };
	struct kind queues = { "queues", heading, put_queue };

	snprintf(heading, sizeof(heading),
		"%5s %-12s %7s %7s %7s %9s %7s %5s %6s %6s %6s", "RANK", "POOL",
		"WORKERS", "WAITING", "RUNNING", "DONE", "FAILED", "BUSY",
		"MEAN", "P50", "P99");
	put_kind(out, json, &pools);
	snprintf(heading, sizeof(heading), "%5s %-12s %9s %9s %12s %12s",
		"RANK", "QUEUE", "ITEMS", "ROOM", "PUT", "GOT");
	put_kind(out, json, &queues);
	put_unlisted(out, json);
}
