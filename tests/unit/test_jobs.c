/* SPDX-License-Identifier: Apache-2.0 */
/* test_jobs.c - the jobs of this user, by their folders. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "base/buf.h"
#include "launcher/state/jobs.h"
#include "tests/unit/folder.h"

#define ROOT "state/xrun"

int64_t __wrap_clock_now(void);

static int64_t now;

int64_t
__wrap_clock_now(void)
{
	return now;
}

static void
prepare(void)
{
	char path[PATH_MAX + 8];

	folder_make();
	snprintf(path, sizeof(path), "%s/state", folder);
	setenv("XDG_STATE_HOME", path, 1);
	cr_assert_eq(mkdir("state", 0700), 0);
	cr_assert_eq(mkdir(ROOT, 0700), 0);
}

TestSuite(jobs, .init = prepare, .fini = folder_remove);

static const char *
path_of(const char *id, const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), ROOT "/%s%s%s", id,
		name[0] == '\0' ? "" : "/", name);
	return path;
}

/* A job's folder. Its lock, unless it has ended, is held until the test is over. */
static void
make_job(const char *id, bool runs)
{
	int fd;

	cr_assert_eq(mkdir(path_of(id, ""), 0700), 0);
	fd = open(path_of(id, "lock"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	cr_assert_neq(fd, -1);
	if (runs)
		cr_assert_eq(flock(fd, LOCK_EX), 0);
	else
		close(fd);
}

/* The folder of the job, by a path of @len bytes. */
static const char *
long_path(const char *id, size_t len)
{
	static char path[PATH_MAX + 8];

	memset(path, '/', len);
	memcpy(path, ROOT, strlen(ROOT));
	memcpy(path + len - strlen(id), id, strlen(id) + 1);
	return path;
}

/* --- what is a job ---------------------------------------------------------- */

Test(jobs, a_folder_with_a_lock_is_a_job_and_runs_while_it_is_held)
{
	bool running = false;

	make_job("a", true);
	make_job("b", false);
	cr_assert_eq(mkdir(ROOT "/c", 0700), 0);
	cr_assert_eq(symlink("../a/lock", ROOT "/c/lock"), 0);
	cr_expect(jobs_is(ROOT "/a", &running));
	cr_expect(running);
	cr_expect(jobs_is(ROOT "/b", &running));
	cr_expect_not(running);
	running = true;
	cr_expect_not(jobs_is(ROOT "/c", &running), "a link is no lock");
	cr_expect_not(jobs_is(ROOT "/d", &running));
	/* The longest that fits; and one of which "lock" would be cut to "l". */
	cr_assert_eq(close(open(ROOT "/b/l", O_CREAT, 0600)), 0);
	cr_expect_not(jobs_is(long_path("b", PATH_MAX - 3), &running));
	cr_expect(running);
	cr_expect(jobs_is(long_path("b", PATH_MAX - 6), &running));
	cr_expect_not(running);
}

Test(jobs, who_looks_at_a_lock_does_not_hold_it_for_others)
{
	bool running;
	int fd;

	make_job("a", false);
	fd = open(ROOT "/a/lock", O_RDWR | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_SH), 0);
	cr_expect(jobs_is(ROOT "/a", &running));
	cr_expect_not(running);
	cr_expect_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

/* --- each of them ----------------------------------------------------------- */

struct met {
	char ids[100]; /* as "a+ b " with + if it runs */
	unsigned enough;
	unsigned count;
};

static bool
note(void *ctx, const char *dir, const char *id, bool running)
{
	struct met *met = ctx;
	size_t at = strlen(met->ids);

	cr_expect_str_eq(strrchr(dir, '/') + 1, id);
	snprintf(met->ids + at, sizeof(met->ids) - at, "%s%s ", id,
		running ? "+" : "");
	return ++met->count != met->enough;
}

Test(jobs, each_folder_of_a_job_is_told_of_and_nothing_else)
{
	struct met met = { .enough = 0 };

	make_job("a", true);
	make_job("b", false);
	make_job(".c", true);
	cr_assert_eq(mkdir(ROOT "/d", 0700), 0);
	cr_assert_eq(symlink("a", ROOT "/latest"), 0);
	folder_write(ROOT "/e", "", 0600);
	/* Everybody may write into it. */
	make_job("f", true);
	cr_assert_eq(chmod(ROOT "/f", 0777), 0);
	jobs_each(folder, note, &met);
	cr_expect_str_eq(met.ids, "");
	jobs_each(ROOT, note, &met);
	cr_expect_eq(met.count, 2, "%s", met.ids);
	cr_expect_not_null(strstr(met.ids, "a+ "));
	cr_expect_not_null(strstr(met.ids, "b "));
	met = (struct met){ .enough = 0 };
	jobs_each("nowhere", note, &met);
	jobs_each_anywhere("nowhere", note, &met);
	cr_expect_eq(met.count, 0);
}

Test(jobs, telling_ends_when_it_was_enough)
{
	struct met met = { .enough = 2 };

	make_job("a", true);
	make_job("b", false);
	make_job("c", true);
	jobs_each(ROOT, note, &met);
	cr_expect_eq(met.count, 2);
	for (now = 0; now < 10; now++) {
		met = (struct met){ .enough = 2 };
		jobs_each_anywhere(ROOT, note, &met);
		cr_expect_eq(met.count, 2, "%lld", (long long)now);
	}
}

/* The folder has 5 entries, "." and ".." among them: the clock chooses where it
 * begins. */
Test(jobs, each_job_is_the_first_some_time_and_told_of_once)
{
	struct met met = { .enough = 0 }, all = { .enough = 0 };
	bool first[3] = { 0 };

	make_job("a", false);
	make_job("b", false);
	make_job("c", false);
	jobs_each(ROOT, note, &all);
	for (now = 0; now < 5; now++) {
		met = (struct met){ .enough = 0 };
		jobs_each_anywhere(ROOT, note, &met);
		cr_expect_eq(met.count, 3, "%s", met.ids);
		for (const char *p = "abc"; *p != '\0'; p++)
			cr_expect_not_null(strchr(met.ids, *p), "%s", met.ids);
		first[met.ids[0] - 'a'] = true;
	}
	cr_expect(first[0] && first[1] && first[2]);
	met = (struct met){ .enough = 0 };
	jobs_each_anywhere(ROOT, note, &met);
	cr_expect_str_eq(met.ids, all.ids, "after 5 it begins anew");
}

/* --- job.json --------------------------------------------------------------- */

Test(jobs, job_json_is_read_if_it_is_whole)
{
	cJSON *json;

	make_job("a", false);
	cr_expect_null(jobs_read(ROOT "/a"));
	folder_write(ROOT "/a/job.json", "{\"ranks\":", 0600);
	cr_expect_null(jobs_read(ROOT "/a"));
	folder_write(ROOT "/a/job.json",
		"{\"job\":\"a\",\"n\":0,\"m\":-1,\"big\":9223372036854775808.0,"
		"\"below\":9223372036854774784.0,\"half\":1.5}",
		0600);
	json = jobs_read(ROOT "/a");
	cr_assert_not_null(json);
	cr_expect_str_eq(jobs_text(json, "job"), "a");
	cr_expect_null(jobs_text(json, "JOB"));
	cr_expect_null(jobs_text(json, "n"));
	cr_expect_eq(jobs_number(json, "n", 7), 0);
	cr_expect_eq(jobs_number(json, "m", 7), 7);
	cr_expect_eq(jobs_number(json, "big", 7), 7, "2^63");
	cr_expect_eq(jobs_number(json, "below", 7),
		INT64_C(9223372036854774784));
	cr_expect_eq(jobs_number(json, "half", 7), 1);
	cr_expect_eq(jobs_number(json, "job", 7), 7);
	cr_expect_eq(jobs_number(json, "none", -1), -1);
	cJSON_Delete(json);
	json = jobs_read(long_path("a", PATH_MAX - 10));
	cr_expect_not_null(json);
	cJSON_Delete(json);
	cr_assert_eq(link(ROOT "/a/job.json", ROOT "/a/j"), 0);
	cr_expect_null(jobs_read(long_path("a", PATH_MAX - 3)));
}

/* --- what runs -------------------------------------------------------------- */

/* Made @seconds ago. */
static void
make_running(const char *id, const char *json, int64_t seconds)
{
	struct timespec at[2] = { { .tv_sec = time(NULL) - seconds } };

	at[1] = at[0];
	make_job(id, true);
	if (json != NULL)
		folder_write(path_of(id, "job.json"), json, 0600);
	cr_assert_eq(utimensat(AT_FDCWD, path_of(id, "lock"), at, 0), 0);
}

static unsigned
parts_of(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

Test(jobs, three_that_run_are_named_and_all_are_counted)
{
	char id[8];
	struct buf out = { 0 };

	make_job("ended", false);
	cr_expect_eq(jobs_running(&out), 0);
	cr_expect_eq(out.len, 0);
	for (unsigned i = 1; i <= 6; i++) {
		snprintf(id, sizeof(id), "run%u", i);
		make_running(id, NULL, 3 * 3600);
		buf_clear(&out);
		cr_expect_eq(jobs_running(NULL), i);
		cr_expect_eq(jobs_running(&out), i);
		cr_expect_eq(parts_of(buf_text(&out), "run"), i < 3 ? i : 3,
			"%s", buf_text(&out));
		cr_expect_eq(parts_of(buf_text(&out), ", ..."), i > 3, "%s",
			buf_text(&out));
		cr_expect_eq(parts_of(buf_text(&out), ", run"),
			(i < 3 ? i : 3) - 1, "%s", buf_text(&out));
		cr_expect_eq(parts_of(buf_text(&out), "ended"), 0);
	}
	buf_fini(&out);
}

static void
expect_running(const char *id, const char *json, const char *want)
{
	struct buf out = { 0 };

	make_running(id, json, 3 * 3600 + 60);
	cr_expect_eq(jobs_running(&out), 1);
	cr_expect_str_eq(buf_text(&out), want);
	buf_fini(&out);
	cr_assert_eq(unlink(path_of(id, "lock")), 0);
}

Test(jobs, a_job_is_named_with_its_ranks_and_its_age)
{
	expect_running("a", NULL, "a (3 h)");
	expect_running("b", "{\"ranks\":1}", "b (1 rank, 3 h)");
	expect_running("c", "{\"ranks\":2}", "c (2 ranks, 3 h)");
	expect_running("d", "{\"ranks\":\"2\"}", "d (3 h)");
	expect_running("e", "{\"ranks\":0}", "e (0 ranks, 3 h)");
}
