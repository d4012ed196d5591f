/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.c - see attempts.h. */
#include "base/clock.h"
#include "base/json.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/attempts.h"

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
attempts_put(const struct job *job, struct buf *out)
{
	if (again_is_due(&job->page->again))
		put_due(job, out);
	else if (job->page->again.spent != 0)
		put_spent(job, out);
}

void
attempts_put_event(struct json *j, const struct job *job)
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
attempts_put_past(struct json *j, const struct job *job)
{
	const struct again_past *p;

	if (job->page->again.restarts == 0)
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
