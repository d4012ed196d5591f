/* SPDX-License-Identifier: Apache-2.0 */
/* who.c - see who.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "base/ranks.h"
#include "base/signo.h"
#include "launcher/job/outcome.h"
#include "launcher/job/sup.h"
#include "launcher/tell/who.h"

#define FEW_RANKS 3 /* listed one by one */

const char *
who_plural(uint32_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "0, 1, 3"; beyond a few, ranges: "0-1, 3-63". */
static void
put_set(const struct ranks *set, uint32_t count, struct buf *out)
{
	struct buf list = { 0 };
	const char *comma = "";

	if (count <= FEW_RANKS) {
		RANKS_EACH(r, set) {
			buf_fmt(out, "%s%u", comma, r);
			comma = ", ";
		}
		return;
	}
	ranks_put(set, &list);
	for (const char *p = buf_text(&list); *p != '\0'; p++) {
		buf_put_char(out, *p);
		if (*p == ',')
			buf_put_char(out, ' ');
	}
	buf_fini(&list);
}

uint32_t
who_put(const struct job *job, who_fn *pick, uint32_t arg, struct buf *out)
{
	struct ranks set;
	uint32_t count;

	if (ranks_init(&set, job->plan.size) != XR_OK)
		return 0;
	for (uint32_t i = 0; i < job_size(job); i++)
		if (pick(job, i, arg))
			ranks_add(&set, job_rank(job, i));
	count = ranks_count(&set);
	buf_put_text(out, who_plural(count, "rank ", "ranks "));
	put_set(&set, count, out);
	ranks_fini(&set);
	return count;
}

static bool
was_stopped(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].after_stop;
}

bool
who_failed_too(const struct job *job, uint32_t r, uint32_t culprit)
{
	const struct rank *rank = &job->rank[r];

	return r != culprit && !rank->after_stop && outcome_is_failure(rank);
}

/* Which signals it took: the first alone, or SIGKILL, too. */
static const char *
means(const struct job *job, char *out, size_t cap)
{
	char name[16];
	bool killed = false;

	for (uint32_t i = 0; i < job_size(job); i++)
		killed = killed ||
			(job->rank[i].after_stop &&
				WIFSIGNALED(job->rank[i].status) &&
				WTERMSIG(job->rank[i].status) == SIGKILL);
	signo_short(job->ending == ENDING_INTERRUPTED ? SIGINT :
							job->opt.stop_signal,
		name, sizeof(name));
	killed = killed && strcmp(name, "KILL") != 0;
	snprintf(out, cap, "%s%s", name, killed ? ", then KILL" : "");
	return out;
}

bool
who_put_stopped(const struct job *job, struct buf *out)
{
	int64_t last = job->stop_ns;
	char time[32], how[64];
	struct buf who = { 0 };
	uint32_t n = who_put(job, was_stopped, 0, &who);

	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].after_stop && job->rank[i].ended_ns > last)
			last = job->rank[i].ended_ns;
	if (n > 0)
		buf_fmt(out, "%s %s stopped by xrun (%s, %s)", buf_text(&who),
			who_plural(n, "was", "were"),
			means(job, how, sizeof(how)),
			clock_text(last - job->stop_ns, time, sizeof(time)));
	buf_fini(&who);
	return n > 0;
}
