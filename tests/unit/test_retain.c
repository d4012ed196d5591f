/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_retain.c - which folders of ended jobs go, and that only those do.
 *
 * A run may take 100 ms. The clock that it reads stands still unless a test lets it go on:
 * else a loaded machine ends a run before its work is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/state/retain.h"
#include "tests/unit/folder.h"

#define MOST   64
#define DAY_NS (24 * 3600 * NS_PER_S)
#define GIB    (1LL << 30)
#define NOW    (1000 * DAY_NS)

static int64_t clock_ns = NS_PER_S, clock_step_ns;

int64_t __wrap_clock_now(void);

/* What is tested reads the clock with this. Each call moves it by clock_step_ns. */
int64_t
__wrap_clock_now(void)
{
	return clock_ns += clock_step_ns;
}

static struct retain_job
job(const char *id, int64_t days_ago, int64_t bytes, bool failed)
{
	struct retain_job j = {
		.ended = NOW - days_ago * DAY_NS,
		.bytes = bytes,
		.failed = failed,
	};

	snprintf(j.id, sizeof(j.id), "%s", id);
	return j;
}

/* The ids that stay, sorted, without anything between. */
static const char *
kept(struct retain_job *jobs, uint32_t n)
{
	static char text[MOST * 65];
	size_t len = 0;

	retain_choose(jobs, n, NOW);
	text[0] = '\0';
	for (char c = 'a'; c <= 'z'; c++)
		for (uint32_t i = 0; i < n; i++)
			if (jobs[i].id[0] == c && jobs[i].kept)
				len += (size_t)snprintf(text + len,
					sizeof(text) - len, "%s", jobs[i].id);
	return text;
}

Test(retain_choose, no_jobs_are_no_work)
{
	retain_choose(NULL, 0, NOW);
}

Test(retain_choose, a_week_is_kept)
{
	struct retain_job jobs[] = { job("a", 0, 1, false),
		job("b", 6, 1, false), job("c", 7, 1, false),
		job("d", 8, 1, true), job("e", 6, 1, true) };

	cr_expect_str_eq(kept(jobs, 5), "abe");
}

Test(retain_choose, a_nanosecond_decides)
{
	struct retain_job jobs[] = { job("a", 7, 1, false),
		job("b", 7, 1, false) };

	jobs[0].ended++;
	cr_expect_str_eq(kept(jobs, 2), "a");
}

Test(retain_choose, a_clock_that_went_back_removes_nothing)
{
	struct retain_job jobs[] = { job("a", -100, 1, false),
		job("b", -1, 1, true) };

	cr_expect_str_eq(kept(jobs, 2), "ab");
}

Test(retain_choose, two_gigabytes_are_kept_and_the_oldest_goes)
{
	struct retain_job jobs[] = { job("a", 3, GIB, false),
		job("b", 2, GIB, false), job("c", 1, GIB, false) };

	cr_expect_str_eq(kept(jobs, 2), "ab", "exactly as much as may be");
	cr_expect_str_eq(kept(jobs, 3), "bc");
}

Test(retain_choose, failed_jobs_go_last)
{
	struct retain_job jobs[] = { job("a", 6, GIB, true),
		job("b", 1, GIB, false), job("c", 2, GIB, true) };

	cr_expect_str_eq(kept(jobs, 3), "ac");
}

/* What goes anyway makes room. */
Test(retain_choose, old_jobs_take_no_room_from_young_ones)
{
	struct retain_job jobs[] = { job("a", 1, GIB, false),
		job("b", 2, GIB, false), job("c", 8, GIB, true) };

	cr_expect_str_eq(kept(jobs, 3), "ab");
}

Test(retain_choose, one_that_is_larger_than_all_may_be_goes)
{
	struct retain_job jobs[] = { job("a", 1, 3 * GIB, false),
		job("b", 2, 1, false) };

	cr_expect_str_eq(kept(jobs, 2), "");
	jobs[0] = job("a", 2, 3 * GIB, false);
	jobs[1] = job("b", 1, 1, false);
	cr_expect_str_eq(kept(jobs, 2), "b");
}

/* Of equal worth or better: it ought to go before @b. */
static bool
worth_less(const struct retain_job *a, const struct retain_job *b)
{
	if (a->failed != b->failed)
		return b->failed;
	return a->ended < b->ended;
}

static uint32_t
invent(struct retain_job *jobs, int64_t unit)
{
	uint32_t n = (uint32_t)random() % MOST;

	for (uint32_t i = 0; i < n; i++) {
		jobs[i] = job("", random() % 10, random() % 8 * unit,
			random() % 3 == 0);
		jobs[i].ended += random();
		snprintf(jobs[i].id, sizeof(jobs[i].id), "%u", i);
	}
	return n;
}

/* The best of the young ones that went; they stand in the order of worth. */
static const struct retain_job *
dearest_gone(const struct retain_job *jobs, uint32_t n)
{
	const struct retain_job *best = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (!jobs[i].kept && NOW - jobs[i].ended < RETAIN_AGE_NS)
			best = &jobs[i];
	return best;
}

static void
expect_sound(const struct retain_job *jobs, uint32_t n)
{
	const struct retain_job *dearest = dearest_gone(jobs, n);
	int64_t total = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!jobs[i].kept)
			continue;
		total += jobs[i].bytes;
		cr_assert_lt(NOW - jobs[i].ended, RETAIN_AGE_NS);
		for (uint32_t k = 0; k < n; k++)
			cr_assert(jobs[k].kept ||
					NOW - jobs[k].ended >= RETAIN_AGE_NS ||
					!worth_less(&jobs[i], &jobs[k]),
				"a younger or failed one went before");
	}
	cr_assert_leq(total, RETAIN_BYTES);
	if (dearest != NULL)
		cr_assert_gt(total + dearest->bytes, RETAIN_BYTES,
			"there was room for it");
}

/* The order in which they would go is the order in which they stand. */
static void
expect_sorted(const struct retain_job *jobs, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		cr_assert_not(worth_less(&jobs[i], &jobs[i - 1]));
}

static void
expect_nobody_is_lost(const struct retain_job *jobs, uint32_t n)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < n; i++)
		seen |= 1ULL << strtol(jobs[i].id, NULL, 10);
	cr_assert_eq(seen, n == 64 ? UINT64_MAX : (1ULL << n) - 1);
}

Test(retain_choose, random_tables_are_judged_soundly)
{
	static const int64_t units[] = { 1, 20LL << 20, 200LL << 20, GIB };
	struct retain_job jobs[MOST];
	uint32_t n;

	srandom(20261121);
	for (int i = 0; i < 20000; i++) {
		n = invent(jobs, units[i % 4]);
		retain_choose(jobs, n, NOW);
		expect_sound(jobs, n);
		expect_sorted(jobs, n);
		expect_nobody_is_lost(jobs, n);
	}
}

/* From here on with folders. */

static char host[256];

static void
prepare(void)
{
	folder_make();
	gethostname(host, sizeof(host) - 1);
}

TestSuite(retain, .init = prepare, .fini = folder_remove);

/* A job that ended so long ago, with a rank's output. */
static void
make_job(const char *id, const char *json, int days)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char path[256];

	times[1].tv_sec = clock_wall() / NS_PER_S - days * 24 * 3600L;
	cr_assert_eq(mkdir(id, 0700), 0);
	snprintf(path, sizeof(path), "%s/0", id);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/0/rank-0000", id);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/0/rank-0000/stdout", id);
	folder_write(path, "hello\n", 0600);
	snprintf(path, sizeof(path), "%s/lock", id);
	folder_write(path, "", 0600);
	snprintf(path, sizeof(path), "%s/job.json", id);
	if (json != NULL)
		folder_write(path, json, 0600);
	cr_assert_eq(utimensat(AT_FDCWD, id, times, 0), 0);
}

/* job.json of this machine. */
static const char *
ended(int status, long long bytes)
{
	static char text[512];

	snprintf(text, sizeof(text),
		"{\"host\": \"%s\", \"exit\": %d, \"bytes\": %lld}", host,
		status, bytes);
	return text;
}

static void
run(void)
{
	retain_run(strdup(folder));
}

static bool
is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

Test(retain, old_jobs_go_with_all_they_hold)
{
	make_job("aaaa", ended(0, 6), 8);
	make_job("bbbb", ended(0, 6), 6);
	make_job("cccc", ended(1, 6), 30);
	run();
	cr_expect_not(is_there("aaaa"));
	cr_expect(is_there("bbbb/0/rank-0000/stdout"));
	cr_expect_not(is_there("cccc"));
}

Test(retain, jobs_over_two_gigabytes_go)
{
	make_job("aaaa", ended(0, 3LL << 29), 3);
	make_job("bbbb", ended(0, 3LL << 29), 2);
	make_job("cccc", ended(7, 1LL << 29), 4);
	run();
	cr_expect_not(is_there("aaaa"));
	cr_expect(is_there("bbbb"));
	cr_expect(is_there("cccc"));
}

/* Calls of enough() that return false. */
static int not_enough;

static bool
enough(void *ctx)
{
	(void)ctx;
	return not_enough-- <= 0;
}

Test(retain, a_full_disk_removes_the_oldest_first)
{
	struct retain_freed freed;

	make_job("aaaa", ended(0, 6), 1);
	make_job("bbbb", ended(1, 7), 4);
	make_job("cccc", ended(0, 8), 2);
	make_job("dddd", ended(0, 0), 5);
	not_enough = 2;
	freed = retain_free(folder, enough, NULL);
	cr_expect_eq(freed.jobs, 2);
	cr_expect_eq(freed.bytes, 15);
	cr_expect(is_there("aaaa/0/rank-0000/stdout"));
	cr_expect_not(is_there("bbbb"));
	cr_expect_not(is_there("cccc"));
	cr_expect(is_there("dddd"), "it has no output");
}

Test(retain, a_full_disk_leaves_running_jobs_and_those_of_other_machines)
{
	int lock;

	make_job("aaaa", "{\"host\": \"elsewhere\", \"exit\": 0, \"bytes\": 5}",
		3);
	make_job("bbbb", ended(0, 6), 3);
	lock = open("bbbb/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(flock(lock, LOCK_EX | LOCK_NB), 0);
	not_enough = 9;
	cr_expect_eq(retain_free(folder, enough, NULL).jobs, 0);
	cr_expect(is_there("aaaa"));
	cr_expect(is_there("bbbb"));
}

Test(retain, a_running_job_is_left_alone)
{
	int lock;

	make_job("aaaa", ended(0, 6), 100);
	lock = open("aaaa/lock", O_RDWR | O_CLOEXEC);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	run();
	cr_expect(is_there("aaaa/0/rank-0000/stdout"));
	close(lock);
	cr_assert_eq(unlink(".retained"), 0);
	run();
	cr_expect_not(is_there("aaaa"));
}

Test(retain, what_is_not_a_job_of_ours_is_left_alone)
{
	make_job("other", "{\"host\": \"another\", \"exit\": 0}", 100);
	make_job("nojson", NULL, 6);
	make_job("broken", "{\"host\": ", 100);
	make_job("nohost", "{\"exit\": 0}", 100);
	make_job("number", "{\"host\": 3, \"exit\": 0}", 100);
	make_job("list", "[]", 100);
	make_job(".hidden", ended(0, 6), 100);
	make_job("nolock", ended(0, 6), 100);
	cr_assert_eq(unlink("nolock/lock"), 0);
	folder_write("file", "x", 0600);
	run();
	cr_expect_eq(folder_entries("."), 10, "nine and the stamp");
}

Test(retain, what_was_lost_before_it_had_a_record_goes_by_age)
{
	make_job("lost", NULL, 8);
	make_job("young", NULL, 6);
	run();
	cr_expect(!is_there("lost"));
	cr_expect(is_there("young"));
}

Test(retain, a_link_to_a_job_is_not_followed)
{
	cr_assert_eq(mkdir("elsewhere", 0700), 0);
	cr_assert_eq(mkdir("root", 0700), 0);
	make_job("elsewhere/aaaa", ended(0, 6), 100);
	cr_assert_eq(symlink("../elsewhere/aaaa", "root/latest"), 0);
	cr_assert_eq(symlink("../elsewhere/aaaa", "root/bbbb"), 0);
	retain_run(strdup("root"));
	cr_expect(is_there("elsewhere/aaaa/0/rank-0000/stdout"));
	cr_expect(is_there("root/latest"));
	cr_expect(is_there("root/bbbb"));
}

Test(retain, links_in_a_job_are_removed_and_not_followed)
{
	folder_write("precious", "x", 0600);
	cr_assert_eq(mkdir("folder", 0700), 0);
	folder_write("folder/precious", "x", 0600);
	make_job("aaaa", ended(0, 6), 0);
	cr_assert_eq(symlink("../precious", "aaaa/file"), 0);
	cr_assert_eq(symlink("../../folder", "aaaa/0/dir"), 0);
	cr_assert_eq(utimensat(AT_FDCWD, "aaaa",
			     (struct timespec[2]){ { 0 }, { 0 } }, 0),
		0);
	run();
	cr_expect_not(is_there("aaaa"));
	cr_expect(is_there("precious"));
	cr_expect(is_there("folder/precious"));
}

Test(retain, once_in_ten_minutes_is_enough)
{
	run();
	cr_expect(is_there(".retained"));
	make_job("aaaa", ended(0, 6), 100);
	run();
	cr_expect(is_there("aaaa"));
	cr_assert_eq(utimensat(AT_FDCWD, ".retained",
			     (struct timespec[2]){ { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = clock_wall() / NS_PER_S -
						     601 } },
			     0),
		0);
	run();
	cr_expect_not(is_there("aaaa"));
}

Test(retain, after_much_was_written_the_next_job_looks_at_once)
{
	run();
	make_job("aaaa", ended(0, 6), 100);
	retain_soon(".");
	run();
	cr_expect_not(is_there("aaaa"));
	retain_soon("/nowhere/at/all");
}

/* A job that xrun did not live to end counts as failed. */
Test(retain, a_job_without_an_end_goes_after_those_with_one)
{
	char json[300];

	snprintf(json, sizeof(json), "{\"host\": \"%s\", \"bytes\": %lld}",
		host, 3LL << 29);
	make_job("aaaa", json, 5);
	make_job("bbbb", ended(0, 3LL << 29), 1);
	run();
	cr_expect(is_there("aaaa"));
	cr_expect_not(is_there("bbbb"));
}

Test(retain, what_a_job_without_an_end_wrote_is_counted_itself)
{
	char json[300];

	snprintf(json, sizeof(json), "{\"host\": \"%s\"}", host);
	make_job("aaaa", json, 2);
	make_job("bbbb", ended(1, 6), 3);
	cr_assert_eq(truncate("aaaa/0/rank-0000/stdout", 3LL << 30), 0);
	run();
	cr_expect_not(is_there("aaaa"));
	cr_expect_not(is_there("bbbb"), "the older of those that failed first");
}

static void
set_end(const char *json, int days)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	times[1].tv_sec = clock_wall() / NS_PER_S - days * 24 * 3600L;
	cr_assert_eq(utimensat(AT_FDCWD, json, times, 0), 0);
}

/* Or the next run would not know it for a job. */
Test(retain, a_job_that_cannot_be_removed_whole_stays_one)
{
	make_job("aaaa", ended(0, 6), 8);
	cr_assert_eq(mkdir("aaaa/1", 0700), 0);
	cr_assert_eq(mkdir("aaaa/1/2", 0700), 0);
	cr_assert_eq(mkdir("aaaa/1/2/3", 0700), 0);
	cr_assert_eq(mkdir("aaaa/1/2/3/4", 0700), 0);
	cr_assert_eq(mkdir("aaaa/1/2/3/4/5", 0700), 0);
	set_end("aaaa/job.json", 8);
	run();
	cr_expect(is_there("aaaa/job.json"));
	cr_expect(is_there("aaaa/lock"));
	cr_expect_not(is_there("aaaa/0"));
}

/* Its folder is as young as what was removed from it last. */
Test(retain, a_job_whose_removal_was_begun_is_as_old_as_it_was)
{
	make_job("aaaa", ended(0, 6), 0);
	set_end("aaaa/job.json", 8);
	run();
	cr_expect_not(is_there("aaaa"));
}

Test(retain, a_run_without_time_to_look_removes_nothing)
{
	make_job("aaaa", ended(0, 6), 8);
	clock_step_ns = RETAIN_LOOK_NS;
	run();
	cr_expect(is_there("aaaa/0/rank-0000/stdout"));
	cr_expect(is_there(".retained"), "the next job does not look at once");
}

/* The look reads the clock three times, and the removal of a job several times. */
Test(retain, the_next_run_removes_what_a_run_had_no_time_for)
{
	make_job("aaaa", ended(0, 6), 9);
	make_job("bbbb", ended(0, 6), 8);
	clock_step_ns = RETAIN_LOOK_NS / 3;
	run();
	cr_expect(is_there("aaaa/job.json"));
	cr_expect(is_there("bbbb/job.json"));
	cr_expect_not(is_there(".retained"), "the next job looks at once");
	clock_step_ns = 0;
	run();
	cr_expect_not(is_there("aaaa"));
	cr_expect_not(is_there("bbbb"));
}

Test(retain, removal_has_the_time_of_a_turn_and_not_that_of_a_look)
{
	int64_t reads = clock_ns;

	make_job("aaaa", ended(0, 6), 9);
	clock_step_ns = 1;
	run();
	cr_assert_not(is_there("aaaa"));
	reads = clock_ns - reads;
	retain_soon(folder);
	make_job("bbbb", ended(0, 6), 9);
	clock_step_ns = RETAIN_TURN_NS / reads;
	run();
	cr_expect_not(is_there("bbbb"));
	cr_expect(is_there(".retained"), "there was time enough");
	retain_soon(folder);
	make_job("cccc", ended(0, 6), 9);
	clock_step_ns = RETAIN_TURN_NS / (reads - 1) + 1;
	run();
	cr_expect_not(is_there(".retained"), "the last look was too late");
}

/* The number that the next descriptor has. */
static int
next_fd(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

Test(retain, no_folder_stays_open)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), before;

	dup2(fd, STDIN_FILENO);
	close(fd);
	before = next_fd();
	make_job("aaaa", ended(0, 6), 8);
	make_job("bbbb", "{}", 1);
	run();
	cr_expect_eq(next_fd(), before);
	not_enough = 9;
	retain_free(folder, enough, NULL);
	cr_expect_eq(next_fd(), before);
	cr_expect_eq(retain_bytes("/nowhere", INT64_MAX), 0);
	make_job("cccc", ended(0, 6), 1);
	cr_expect_eq(retain_bytes("cccc", INT64_MAX),
		6 + (int64_t)strlen(ended(0, 6)));
	cr_expect_eq(next_fd(), before);
	cr_expect(retain_remove(folder, "cccc"));
	cr_expect_not(is_there("cccc"));
	cr_expect(retain_remove("/nowhere", "cccc"));
	cr_expect_eq(next_fd(), before);
}

Test(retain, a_full_disk_has_its_time_as_well)
{
	make_job("aaaa", ended(0, 6), 1);
	clock_step_ns = RETAIN_FREE_NS;
	not_enough = 9;
	cr_expect_eq(retain_free(folder, enough, NULL).jobs, 0);
	cr_expect(is_there("aaaa/0/rank-0000/stdout"));
}

Test(retain, a_root_that_is_not_there_is_no_work)
{
	retain_run(strdup("/nowhere/at/all"));
}
