/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - see why.h. Ranks have xrun's own limits, but for descriptors. */
#include <signal.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/why.h"

static void
look(void *ctx)
{
	struct sup *sup = ctx;

	oom_begin(&sup->oom, "");
	pids_begin(&sup->pids, "");
}

void
why_begin(void *ctx)
{
	struct job *job = ctx;

	if (job->sup->phase == PHASE_RUN)
		work_post(job->sup->work, look, job->sup);
}

static uint64_t
kills_of(const struct job *job, uint32_t r)
{
	const struct leaves *leaves = &job->page->leaves;

	return leaves->on ? leaf_kills(leaves, job_rank(job, r)) : CGROUP_NONE;
}

void
why_note(struct job *job, uint32_t r)
{
	struct rank *rank = &job->rank[r];
	bool sent = rank->state == RANK_KILLED ||
		(rank->state == RANK_STOPPING &&
			job->opt.stop_signal == SIGKILL);
	uint64_t kills;

	if (!WIFSIGNALED(rank->status) || WTERMSIG(rank->status) != SIGKILL ||
		sent)
		return;
	rank->oom = oom_killed(&job->sup->oom);
	/* Its own group, where that counts, knows better. */
	kills = kills_of(job, r);
	if (kills != CGROUP_NONE)
		rank->oom = kills > 0 ? OOM_CGROUP : OOM_NO;
}

/* Of the soft or the hard one; RLIM_INFINITY if there is none. */
static rlim_t
limit_of(int resource, bool hard)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)resource, &r) == -1)
		return RLIM_INFINITY;
	return hard ? r.rlim_max : r.rlim_cur;
}

/* SIGXCPU at the soft limit, and once a second; SIGKILL at the hard one. */
static void
put_cpu(const struct rank *r, bool hard, struct buf *out)
{
	double used = clock_seconds(r->usage.ru_utime) +
		clock_seconds(r->usage.ru_stime);
	rlim_t limit = limit_of(RLIMIT_CPU, hard);

	if (limit != RLIM_INFINITY && used + 0.5 >= (double)limit)
		buf_fmt(out, ", ulimit -%s is %llu s", hard ? "Ht" : "t",
			(unsigned long long)limit);
}

static void
put_file_size(struct buf *out)
{
	rlim_t limit = limit_of(RLIMIT_FSIZE, false);

	if (limit != RLIM_INFINITY)
		buf_fmt(out, ", ulimit -f is %llu KiB",
			(unsigned long long)(limit / 1024));
}

static void
put_memory(const struct rank *r, struct buf *out)
{
	buf_put_text(out, ", ");
	oom_put(out, r->oom, "");
	buf_put_text(out, ", the rank's peak ");
	oom_put_size(out, (uint64_t)r->usage.ru_maxrss * 1024);
}

/* A worker of the rank was killed, perhaps, and the rank ended for that. */
static void
put_others_memory(const struct job *job, struct buf *out)
{
	enum oom_kind kind = oom_unexplained(&job->sup->oom);

	if (kind != OOM_CGROUP)
		return;
	buf_put_text(out, ", and the kernel killed another process, ");
	oom_put(out, kind, "");
}

void
why_put(const struct job *job, const struct rank *rank, struct buf *out)
{
	if (rank->status != 0 && WIFEXITED(rank->status))
		put_others_memory(job, out);
	if (!WIFSIGNALED(rank->status))
		return;
	switch (WTERMSIG(rank->status)) {
	case SIGXCPU:
		put_cpu(rank, false, out);
		break;
	case SIGXFSZ:
		put_file_size(out);
		break;
	case SIGKILL:
		if (rank->oom != OOM_NO)
			put_memory(rank, out);
		else if (!rank->after_stop)
			put_cpu(rank, true, out);
		break;
	default:
		break;
	}
}

void
why_put_refused(const struct job *job, uint32_t r, struct buf *out)
{
	const struct leaves *leaves = &job->page->leaves;
	uint64_t own = leaves->on ? leaf_refused(leaves, job_rank(job, r)) :
				    CGROUP_NONE;
	uint64_t refused = own != CGROUP_NONE && own > 0 ?
		own :
		pids_refused(&job->sup->pids);

	if (refused == 0)
		return;
	buf_put_text(out, "  ");
	pids_put(out, refused, "");
	buf_put_char(out, '\n');
}
