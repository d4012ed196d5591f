/* SPDX-License-Identifier: Apache-2.0 */
/* test_why.c - why the kernel ended a rank: memory, or a limit. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <sys/resource.h>

#include <criterion/criterion.h>

#include "launcher/keeper/keeper.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/why.h"
#include "proc/leaf.h"
#include "tests/unit/noted.h"

static struct rank ranks[3];
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.page = &page,
	.rank = ranks,
	.plan = { .size = 13, .first = 10, .local_size = 3 },
	.opt = { .stop_signal = SIGTERM },
};
static enum oom_kind killed, unexplained;
static uint64_t kills, refused, refused_own;
static struct rlimit limit;
static int limit_sys;

bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
void __wrap_oom_begin(struct oom *oom, const char *root);
void __wrap_pids_begin(struct pids *pids, const char *root);
enum oom_kind __wrap_oom_killed(struct oom *oom);
enum oom_kind __wrap_oom_unexplained(const struct oom *oom);
void __wrap_oom_put(struct buf *out, enum oom_kind kind, const char *root);
uint64_t __wrap_leaf_kills(const struct leaves *leaves, uint32_t rank);
uint64_t __wrap_leaf_refused(const struct leaves *leaves, uint32_t rank);
uint64_t __wrap_pids_refused(const struct pids *pids);
void __wrap_pids_put(struct buf *out, uint64_t n, const char *root);
int __wrap_getrlimit64(int resource, struct rlimit *out);

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	cr_expect_eq(work, (struct work *)&job);
	fn(ctx);
	return true;
}

void
__wrap_oom_begin(struct oom *oom, const char *root)
{
	cr_expect_eq(oom, &sup.oom);
	note("oom:%s ", root);
}

void
__wrap_pids_begin(struct pids *pids, const char *root)
{
	cr_expect_eq(pids, &sup.pids);
	note("pids:%s ", root);
}

enum oom_kind
__wrap_oom_killed(struct oom *oom)
{
	cr_expect_eq(oom, &sup.oom);
	note("killed ");
	return killed;
}

enum oom_kind
__wrap_oom_unexplained(const struct oom *oom)
{
	cr_expect_eq(oom, &sup.oom);
	return unexplained;
}

void
__wrap_oom_put(struct buf *out, enum oom_kind kind, const char *root)
{
	buf_fmt(out, "memory:%d%s", (int)kind, root);
}

uint64_t
__wrap_leaf_kills(const struct leaves *leaves, uint32_t rank)
{
	cr_expect_eq(leaves, &page.leaves);
	cr_expect_eq(rank, 11);
	return kills;
}

uint64_t
__wrap_leaf_refused(const struct leaves *leaves, uint32_t rank)
{
	cr_expect_eq(leaves, &page.leaves);
	cr_expect_eq(rank, 11);
	return refused_own;
}

uint64_t
__wrap_pids_refused(const struct pids *pids)
{
	cr_expect_eq(pids, &sup.pids);
	return refused;
}

void
__wrap_pids_put(struct buf *out, uint64_t n, const char *root)
{
	buf_fmt(out, "refused:%llu%s", (unsigned long long)n, root);
}

static int asked; /* of getrlimit() */

int
__wrap_getrlimit64(int resource, struct rlimit *out)
{
	asked = resource;
	*out = limit;
	errno = limit_sys;
	return limit_sys != 0 ? -1 : 0;
}

Test(why, counters_are_looked_at_while_ranks_run)
{
	sup.work = (struct work *)&job;
	sup.phase = PHASE_DELIVER;
	why_begin(&job);
	cr_expect_str_eq(done, "");
	sup.phase = PHASE_RUN;
	why_begin(&job);
	cr_expect_str_eq(done, "oom: pids: ");
}

/* Of a rank that ended so. */
static enum oom_kind
noted(int status, enum rank_state state, bool looks)
{
	ranks[1].status = status;
	ranks[1].state = state;
	ranks[1].oom = OOM_NO;
	done[0] = '\0';
	why_note(&job, 1);
	cr_expect_str_eq(done, looks ? "killed " : "");
	return ranks[1].oom;
}

Test(why, who_was_killed_may_have_been_by_the_kernel)
{
	killed = OOM_MACHINE;
	cr_expect_eq(noted(SIGKILL, RANK_RUNNING, true), OOM_MACHINE);
	cr_expect_eq(noted(SIGKILL, RANK_STOPPING, true), OOM_MACHINE);
	cr_expect_eq(noted(SIGTERM, RANK_RUNNING, false), OOM_NO);
	cr_expect_eq(noted(SIGKILL << 8, RANK_RUNNING, false), OOM_NO);
	/* Not by xrun. */
	cr_expect_eq(noted(SIGKILL, RANK_KILLED, false), OOM_NO);
	job.opt.stop_signal = SIGKILL;
	cr_expect_eq(noted(SIGKILL, RANK_STOPPING, false), OOM_NO);
	cr_expect_eq(noted(SIGKILL, RANK_RUNNING, true), OOM_MACHINE);
	/* Its own group knows better. */
	kills = 1;
	cr_expect_eq(noted(SIGKILL, RANK_RUNNING, true), OOM_MACHINE);
	page.leaves.on = true;
	cr_expect_eq(noted(SIGKILL, RANK_RUNNING, true), OOM_CGROUP);
	kills = 0;
	cr_expect_eq(noted(SIGKILL, RANK_RUNNING, true), OOM_NO);
	kills = CGROUP_NONE;
	cr_expect_eq(noted(SIGKILL, RANK_RUNNING, true), OOM_MACHINE);
}

static struct buf out;

static const char *
words(int status)
{
	ranks[1].status = status;
	buf_clear(&out);
	why_put(&job, &ranks[1], &out);
	return buf_text(&out);
}

Test(why, memory_is_named_with_the_ranks_peak)
{
	limit = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	ranks[1].usage.ru_maxrss = 20 * 1024;
	ranks[1].oom = OOM_MACHINE;
	cr_expect_str_eq(words(SIGKILL), ", memory:2, the rank's peak 20 MiB");
	cr_expect_str_eq(words(SIGTERM), "");
	cr_expect_str_eq(words(0), "");
	cr_expect_str_eq(words(1 << 8), "");
	/* One that it has made, maybe. */
	unexplained = OOM_MACHINE;
	cr_expect_str_eq(words(1 << 8), "");
	unexplained = OOM_CGROUP;
	cr_expect_str_eq(words(1 << 8),
		", and the kernel killed another process, memory:1");
	cr_expect_str_eq(words(0), "");
	cr_expect_str_eq(words(SIGTERM), "");
}

Test(why, limits_are_named)
{
	limit = (struct rlimit){ 5, 9 };
	ranks[1].usage.ru_utime = (struct timeval){ 3, 250000 };
	ranks[1].usage.ru_stime = (struct timeval){ 1, 250000 };
	cr_expect_str_eq(words(SIGXCPU), ", ulimit -t is 5 s");
	cr_expect_eq(asked, RLIMIT_CPU);
	cr_expect_str_eq(words(SIGKILL), "");
	ranks[1].usage.ru_stime = (struct timeval){ 1, 249000 };
	cr_expect_str_eq(words(SIGXCPU), "");
	ranks[1].usage.ru_stime = (struct timeval){ 5, 250000 };
	cr_expect_str_eq(words(SIGKILL), ", ulimit -Ht is 9 s");
	ranks[1].after_stop = true;
	cr_expect_str_eq(words(SIGKILL), "");
	ranks[1].after_stop = false;
	limit = (struct rlimit){ 4096, 5000 };
	cr_expect_str_eq(words(SIGXFSZ), ", ulimit -f is 4 KiB");
	cr_expect_eq(asked, RLIMIT_FSIZE);
	limit.rlim_cur = RLIM_INFINITY;
	cr_expect_str_eq(words(SIGXFSZ), "");
	cr_expect_str_eq(words(SIGXCPU), "");
	limit.rlim_cur = 1;
	limit_sys = EINVAL;
	cr_expect_str_eq(words(SIGXFSZ), "");
	cr_expect_str_eq(words(SIGXCPU), "");
	cr_expect_str_eq(words(SIGTERM), "");
}

static const char *
words_refused(void)
{
	buf_clear(&out);
	why_put_refused(&job, 1, &out);
	return buf_text(&out);
}

Test(why, processes_that_were_refused_are_named)
{
	refused_own = 3;
	cr_expect_str_eq(words_refused(), "");
	refused = 5;
	cr_expect_str_eq(words_refused(), "  refused:5\n");
	page.leaves.on = true;
	cr_expect_str_eq(words_refused(), "  refused:3\n");
	refused_own = 0;
	cr_expect_str_eq(words_refused(), "  refused:5\n");
	refused_own = CGROUP_NONE;
	cr_expect_str_eq(words_refused(), "  refused:5\n");
	refused_own = refused = 0;
	cr_expect_str_eq(words_refused(), "");
}
