/* SPDX-License-Identifier: Apache-2.0 */
/* test_disk.c - what the supervisor does about output files without room. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/work.h"
#include "launcher/log/reserve.h"
#include "launcher/state/retain.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "tests/unit/folder.h"
#include "tests/unit/noted.h"

#define BEGIN (100 * NS_PER_S) /* of the clock */
#define MIB   (1ULL << 20)

static struct rank ranks[3];
static struct raw_share share = { .dir = 7, .reserve = 9 };
static struct sup sup;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.share = &share,
	.plan = { .size = 13, .first = 10, .local_size = 3 },
	.state = { .dir_fd = 7,
		.dir = (char *)"/home/k",
		.attempt = (char *)"logs/k7m2" },
};

/* --- what is done ----------------------------------------------------------- */

static int64_t now = BEGIN;
static uint64_t keeps, above, bytes[6];
static bool posts = true, no_home;
static work_fn *posted;
static void *posted_ctx;
static struct retain_freed freed;
static const char *freed_root;

int64_t __wrap_clock_now(void);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t __wrap_logs_bytes(const struct logs *logs, uint32_t stream);
const struct notes *__wrap_logs_notes(const struct logs *logs);
void __wrap_logs_reclaimed(struct logs *logs, bool any);
void __wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys);
bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
struct retain_freed __wrap_retain_free(const char *root,
	retain_enough_fn *enough, void *ctx);
uint64_t __wrap_reserve_size(int dir, uint64_t size);
uint64_t __wrap_reserve_above(int dir, uint64_t size);
const char *__wrap_state_mount(const char *path, char at[static PATH_MAX]);
char *__wrap_state_home(void);
void __wrap_report_job(struct job *job_);
void __wrap_step_drain(struct job *job_, struct rank *rank);
void __wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg);
void __wrap_stop_fail(struct job *job_, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

int64_t
__wrap_clock_now(void)
{
	return now;
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

uint64_t
__wrap_logs_bytes(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return bytes[stream];
}

const struct notes *
__wrap_logs_notes(const struct logs *logs)
{
	(void)logs;
	return (const struct notes *)&sup;
}

void
__wrap_logs_reclaimed(struct logs *logs, bool any)
{
	(void)logs;
	note("reclaimed:%d ", any);
}

void
__wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys)
{
	cr_expect_eq(notes, (const struct notes *)&sup);
	cr_expect_eq(kind, NOTE_RECLAIMED);
	cr_expect_eq(value, 0);
	cr_expect_eq(sys, 0);
	note("note ");
}

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	(void)work;
	posted = fn;
	posted_ctx = ctx;
	note("post ");
	return posts;
}

/* @above bytes are free at first, and 1 MiB more after each job. */
struct retain_freed
__wrap_retain_free(const char *root, retain_enough_fn *enough, void *ctx)
{
	cr_expect_str_eq(root, freed_root);
	for (; !enough(ctx) && freed.jobs < 5; above += MIB) {
		freed.jobs++;
		freed.bytes += (int64_t)MIB;
	}
	return freed;
}

uint64_t
__wrap_reserve_size(int dir, uint64_t size)
{
	cr_expect_eq(dir, share.dir);
	cr_expect_eq(size, 9);
	return keeps;
}

uint64_t
__wrap_reserve_above(int dir, uint64_t size)
{
	cr_expect_eq(dir, share.dir);
	cr_expect_eq(size, 9);
	return above;
}

const char *
__wrap_state_mount(const char *path, char at[static PATH_MAX])
{
	cr_expect_str_eq(path, "/home/k");
	(void)at;
	return "/home";
}

char *
__wrap_state_home(void)
{
	return no_home ? NULL : strdup(folder);
}

void
__wrap_report_job(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("job.json ");
}

void
__wrap_step_drain(struct job *job_, struct rank *rank)
{
	cr_expect_eq(job_, &job);
	note("drain:%ld ", (long)(rank - ranks));
}

void
__wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg)
{
	(void)bus;
	note("%s:%u ", event == BUS_LOG_FULL ? "full" : "room", arg);
}

void
__wrap_stop_fail(struct job *job_, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	cr_expect_eq(job_, &job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("fail[%s] ", text);
}

static void
is_done(const char *want)
{
	cr_expect_str_eq(done, want, "got:  %s\nwant: %s", done, want);
	done[0] = '\0';
}

/* --- full, and room again --------------------------------------------------- */

#define WAITS "; nothing is lost while the job goes on"

Test(disk, ranks_wait_and_job_json_states_it_once)
{
	disk_full(&job, 3, ENOSPC);
	is_done("job.json full:3 [xrun: rank 11: log file system full (/home): ranks wait until there is room" WAITS
		"] ");
	disk_full(&job, 2, EDQUOT);
	is_done("full:2 ");
	cr_expect_eq(ranks[1].full, 3);
	disk_room(&job, 3);
	is_done("room:3 ");
	cr_expect_eq(ranks[1].full, 1);
	ranks[1].state = RANK_ENDED;
	disk_room(&job, 2);
	is_done("job.json drain:1 room:2 ");
	cr_expect_eq(ranks[1].full, 0);
}

Test(disk, job_json_is_not_written_where_there_is_none_or_the_ranks_are_over)
{
	job.state.dir_fd = -1;
	sup.full_ns = BEGIN;
	disk_full(&job, 0, ENOSPC);
	is_done("full:0 ");
	job.state.dir_fd = 7;
	sup.phase = PHASE_DELIVER;
	disk_room(&job, 0);
	is_done("room:0 ");
}

Test(disk, it_is_said_once_a_minute)
{
	keeps = 3 * MIB;
	disk_full(&job, 0, EDQUOT);
	is_done("job.json full:0 [xrun: rank 10: log file system full (/home; --log-reserve keeps 3.0 MiB free): ranks wait until there is room" WAITS
		"] ");
	now += 60 * NS_PER_S - 1;
	disk_full(&job, 0, EDQUOT);
	is_done("full:0 ");
	now += 1;
	disk_full(&job, 4, EIO);
	is_done("full:4 [xrun: rank 12: log file in logs/k7m2: Input/output error: ranks wait until it can be written" WAITS
		"] ");
	cr_expect_eq(sup.full_ns, now);
}

Test(disk, what_is_dropped_is_not_waited_for)
{
	job.opt.log_full = LOG_FULL_DROP;
	disk_full(&job, 0, ENOSPC);
	is_done("full:0 [xrun: rank 10: log file system full (/home): what ranks write is dropped until there is room] ");
	cr_expect_eq(ranks[0].full, 0);
	disk_full(&job, 0, EIO);
	is_done("job.json full:0 ");
	cr_expect_eq(ranks[0].full, 1, "only what has no room is dropped");
}

/* --- files that may not grow ------------------------------------------------ */

Test(disk, a_file_that_may_not_grow_ends_the_job)
{
	const struct rlimit limit = { 3ULL << 30, 3ULL << 30 };

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	disk_full(&job, 5, EFBIG);
	is_done("full:5 fail[rank 12: log file in logs/k7m2 cannot grow any more (ulimit -f is 3145728 KiB): raise the limit, or take --log-rotate SIZE, --log-full drop or --no-logs] ");
	cr_expect(sup.too_large);
	cr_expect_eq(ranks[2].full, 0);
}

Test(disk, or_what_it_does_not_take_is_dropped_and_that_is_said_once)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	if (limit.rlim_cur != RLIM_INFINITY)
		folder_skip("ulimit -f is set");
	job.opt.log_full = LOG_FULL_DROP;
	disk_full(&job, 5, EFBIG);
	is_done("full:5 [xrun: rank 12: log file cannot grow any more (File too large): what such ranks write is dropped] ");
	disk_full(&job, 4, EFBIG);
	is_done("full:4 ");
}

/* --- ended jobs make room --------------------------------------------------- */

static void
open_share(void)
{
	folder_make();
	share.dir = open(".", O_RDONLY | O_DIRECTORY);
	cr_assert_neq(share.dir, -1);
	freed_root = folder;
}

static void
reclaim(void)
{
	disk_reclaim(&job);
	is_done("post ");
	cr_expect_not_null(sup.reclaim);
	disk_reclaim(&job);
	is_done("");
	cr_expect_eq(posted_ctx, sup.reclaim);
	posted(posted_ctx);
	is_done("note ");
	disk_reclaimed(&job);
	cr_expect_null(sup.reclaim);
}

Test(disk, ended_jobs_go_until_a_mib_is_free, .init = open_share,
	.fini = folder_remove)
{
	keeps = 4 * MIB + 3;
	above = 1;
	reclaim();
	is_done("[xrun: log file system full (/home; --log-reserve keeps 4.0 MiB free): removed 1 ended job, the oldest first, 1.0 MiB] reclaimed:1 ");
}

Test(disk, or_until_a_quarter_of_the_reserve_is, .init = open_share,
	.fini = folder_remove)
{
	keeps = 12 * MIB;
	above = MIB + 1;
	reclaim();
	is_done("[xrun: log file system full (/home; --log-reserve keeps 12 MiB free): removed 2 ended jobs, the oldest first, 2.0 MiB] reclaimed:1 ");
	cr_expect_eq(above, 3 * MIB + 1);
}

Test(disk, no_job_goes_where_enough_is_free, .init = open_share,
	.fini = folder_remove)
{
	keeps = 12 * MIB;
	above = 3 * MIB;
	reclaim();
	is_done("reclaimed:0 ");
}

Test(disk, the_folder_of_the_job_s_own_jobs_is_looked_at, .init = open_share,
	.fini = folder_remove)
{
	cr_assert_eq(mkdir("root", 0700), 0);
	freed_root = job.state.root = (char *)"root";
	reclaim();
	is_done("[xrun: log file system full (/home): removed 1 ended job, the oldest first, 1.0 MiB] reclaimed:1 ");
	freed_root = job.state.root = (char *)"none";
	freed = (struct retain_freed){ 0 };
	above = 0;
	reclaim();
	is_done("reclaimed:0 ");
	/* On another file system they would make no room. */
	freed_root = job.state.root = (char *)"/proc";
	reclaim();
	is_done("reclaimed:0 ");
}

Test(disk, nothing_is_waited_for_that_cannot_be_asked, .init = open_share,
	.fini = folder_remove)
{
	posts = false;
	disk_reclaim(&job);
	is_done("post reclaimed:0 ");
	cr_expect_null(sup.reclaim);
	no_home = true;
	disk_reclaim(&job);
	is_done("reclaimed:0 ");
	cr_expect_null(sup.reclaim);
}

/* --- very much output ------------------------------------------------------- */

Test(disk, who_wrote_most_is_named)
{
	bytes[0] = bytes[3] = bytes[4] = 3 * MIB;
	bytes[5] = 1 * MIB;
	disk_large(&job, 10);
	is_done("[xrun: warning: the output of the job has reached 10 GiB (logs/k7m2); rank 12 wrote most, 4.0 MiB; --log-rotate SIZE,COUNT limits the files] ");
	bytes[5] = 0;
	disk_large(&job, 100);
	is_done("[xrun: warning: the output of the job has reached 100 GiB (logs/k7m2); rank 10 wrote most, 3.0 MiB; --log-rotate SIZE,COUNT limits the files] ");
}
