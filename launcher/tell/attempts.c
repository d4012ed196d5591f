/* SPDX-License-Identifier: Apache-2.0 */
/* attempts.c - see attempts.h. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/attempts.h"

bool
attempts_follow(const struct job *job)
{
	return job->page->again.due != 0;
}

void
attempts_end(struct job *job)
{
	job->page->again.due = 0;
}

/* --- the folder of the next --------------------------------------------- */

/* On the helper thread. */
static void
make_folder(void *ctx)
{
	struct job *job = ctx;
	uint32_t number = job->state.number;
	int fd = state_make_next(&job->state, &number);

	job->page->next_number = number;
	__atomic_store_n(&job->page->next, fd == -1 ? -errno : fd,
		__ATOMIC_SEQ_CST);
}

bool
attempts_prepare(struct job *job)
{
	if (!attempts_follow(job) || job->state.dir_fd == -1)
		return false;
	__atomic_store_n(&job->page->next, -ETIMEDOUT, __ATOMIC_SEQ_CST);
	if (work_post(job->sup->work, make_folder, job))
		return true;
	job->page->next = -ENOMEM;
	return false;
}

void
attempts_check(struct job *job)
{
	int fd = __atomic_load_n(&job->page->next, __ATOMIC_SEQ_CST);

	if (!attempts_follow(job) || job->state.dir_fd == -1 || fd >= 0)
		return;
	attempts_end(job);
	words_line(
		"the job cannot begin again: the folder of attempt %u in %s: %s",
		job->state.number + 1, job->state.dir, strerror(-fd));
}

/* --- words ---------------------------------------------------------------- */

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
	if (attempts_follow(job))
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

	if (again_each(&job->page->again, 0) == NULL)
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
