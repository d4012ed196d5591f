/* SPDX-License-Identifier: Apache-2.0 */
/* test_attempt.c - what is known of an attempt, and who tells of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#include <sys/file.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/cmd/attempt.h"
#include "launcher/cmd/dial.h"
#include "tests/unit/folder.h"

#define STAMP(second) "2026-11-21T02:14:" second ".000000Z"

static struct attempt a;
static const char *said; /* by the job itself; NULL: it does not answer */
static unsigned asked;

struct cJSON *__wrap_dial_status_now(const struct which *job);

struct cJSON *
__wrap_dial_status_now(const struct which *job)
{
	cr_expect_eq(job, &a.job);
	asked++;
	return said != NULL ? cJSON_Parse(said) : NULL;
}

static void
begin(void)
{
	folder_make();
	cr_assert_eq(mkdir("job", 0700), 0);
	cr_assert_eq(mkdir("job/0", 0700), 0);
	cr_assert_eq(mkdir("job/1", 0700), 0);
	folder_write("job/lock", "", 0600);
	a = ATTEMPT_NONE;
	cr_assert_eq(attempt_find_job("./job", "output", &a, NULL), XR_OK);
}

static void
end(void)
{
	attempt_close(&a);
	folder_remove();
}

TestSuite(attempt, .init = begin, .fini = end, .timeout = 60);

static void
reopen(int64_t number)
{
	struct which job = a.job;

	attempt_close(&a);
	a.job = job;
	asked = 0;
	cr_assert_eq(attempt_open(&a, number, NULL), XR_OK);
}

static int64_t
at(const char *stamp)
{
	int64_t ns = clock_parse(stamp);

	cr_assert_neq(ns, -1);
	return ns;
}

Test(attempt, the_job_that_runs_tells_of_its_attempt_where_no_file_does)
{
	int64_t before = clock_wall();

	said = "{\"attempt\": 1, \"ranks\": 3, \"start\": \"" STAMP(
		"21") "\", \"end\": \"" STAMP("22") "\"}";
	a.job.running = true;
	reopen(1);
	cr_expect(a.known);
	cr_expect_eq(asked, 1);
	cr_expect_eq(a.ranks, 3);
	cr_expect_eq(a.start, at(STAMP("21")));
	cr_expect_geq(a.end, before, "it goes on");
	cr_expect(attempt_is_known(&a));
	cr_expect_eq(asked, 1, "once");
	/* It tells of another one. */
	reopen(0);
	cr_expect_not(a.known);
	cr_expect_eq(asked, 1);
	cr_expect_eq(a.ranks, 1);
	cr_expect_geq(a.start, before);
}

Test(attempt, job_json_tells_of_the_last_attempt_alone)
{
	folder_write("job/job.json",
		"{\"attempt\": 1, \"ranks\": 5, \"start\": \"" STAMP(
			"31") "\", \"end\": \"" STAMP("32") "\"}",
		0600);
	reopen(ATTEMPT_LAST);
	cr_expect_eq(a.number, 1);
	cr_expect(a.known);
	cr_expect_eq(asked, 0);
	cr_expect_eq(a.ranks, 5);
	cr_expect_eq(a.start, at(STAMP("31")));
	cr_expect_eq(a.end, at(STAMP("32")));
	reopen(0);
	cr_expect_not(a.known);
	cr_expect_eq(a.ranks, 1);
}

Test(attempt, events_tell_of_each_attempt)
{
	folder_write("job/events.jsonl",
		"{\"event\": \"job.start\", \"attempt\": 0, \"ranks\": 2, \"time\": \"" STAMP(
			"41") "\"}\n"
			      "{\"event\": \"rank.end\", \"time\": \"" STAMP(
				      "42") "\"}\n"
					    "{\"event\": \"job.restart\", \"time\": \"" STAMP(
						    "43") "\"}\n"
							  "{\"event\": \"job.start\", \"attempt\": 1, \"ranks\": 4, \"time\": \"" STAMP(
								  "44") "\"}\n"
									"{\"event\": \"job.end\", \"time\": \"" STAMP(
										"45") "\"}\n",
		0600);
	reopen(0);
	cr_expect(a.known);
	cr_expect_eq(a.ranks, 2);
	cr_expect_eq(a.start, at(STAMP("41")));
	cr_expect_eq(a.end, at(STAMP("43")));
	reopen(1);
	cr_expect(a.known);
	cr_expect_eq(a.ranks, 4);
	cr_expect_eq(a.start, at(STAMP("44")));
	cr_expect_eq(a.end, at(STAMP("45")));
	cr_expect_eq(asked, 0);
}

Test(attempt, where_nobody_tells_its_folders_are_counted)
{
	reopen(1);
	cr_expect_not(a.known);
	cr_expect_eq(a.ranks, 1);
	cr_assert_eq(mkdir("job/1/rank-0", 0700), 0);
	cr_assert_eq(mkdir("job/1/rank-0006", 0700), 0);
	cr_assert_eq(mkdir("job/1/rank-0002", 0700), 0);
	cr_assert_eq(mkdir("job/1/rank-1073741823", 0700), 0); /* too many */
	cr_assert_eq(mkdir("job/1/ranks-9", 0700), 0);
	reopen(1);
	cr_expect_not(a.known);
	cr_expect_eq(a.ranks, 7);
	cr_assert_eq(mkdir("job/1/rank-1073741822", 0700), 0);
	reopen(1);
	cr_expect_eq(a.ranks, 1073741823);
	/* It is over, since nobody holds the lock. */
	cr_expect(attempt_is_known(&a));
}

Test(attempt, more_ranks_than_can_be_are_not_believed)
{
	said = "{\"attempt\": 0, \"ranks\": 1073741823}";
	reopen(0);
	cr_expect(a.known);
	cr_expect_eq(a.ranks, 1073741823);
	said = "{\"attempt\": 0, \"ranks\": 1073741824}";
	reopen(0);
	cr_expect_not(a.known);
	cr_expect_eq(a.ranks, 1);
}

Test(attempt, one_that_runs_is_known_once_it_has_told)
{
	int lock = open("job/lock", O_RDWR | O_CLOEXEC);

	cr_assert_eq(flock(lock, LOCK_EX), 0);
	reopen(1);
	cr_expect(attempt_job_runs(&a));
	cr_expect_not(attempt_is_over(&a));
	cr_expect_not(attempt_is_known(&a));
	cr_expect_eq(asked, 2);
	said = "{\"attempt\": 1, \"ranks\": 2}";
	cr_expect(attempt_is_known(&a));
	cr_expect(a.known);
	cr_expect_eq(a.ranks, 2);
	/* There is one behind it. */
	said = NULL;
	reopen(0);
	cr_expect(attempt_is_followed(&a));
	cr_expect(attempt_is_over(&a));
	cr_expect(attempt_is_known(&a));
	cr_expect_not(a.known);
	cr_expect(attempt_next(&a));
	cr_expect_eq(a.number, 1);
	cr_expect_not(attempt_next(&a));
	cr_expect_eq(a.number, 1);
	fd_close(lock);
}

Test(attempt, silent_attempts_are_gone_back_behind)
{
	reopen(1);
	cr_expect_not(attempt_back(&a), "nobody wrote anything");
	cr_expect_eq(a.number, 1);
	cr_assert_eq(mkdir("job/2", 0700), 0);
	cr_assert_eq(mkdir("job/0/rank-3", 0700), 0);
	reopen(2);
	cr_expect(attempt_back(&a));
	cr_expect_eq(a.number, 0);
	cr_expect_eq(a.ranks, 4);
	cr_expect_not(attempt_back(&a));
	cr_expect_eq(a.number, 0);
	cr_assert_eq(mkdir("job/1/rank-0", 0700), 0);
	reopen(2);
	cr_expect(attempt_back(&a));
	cr_expect_eq(a.number, 1);
	cr_assert_eq(rename("job/0", "elsewhere"), 0);
	cr_assert_eq(rmdir("job/1/rank-0"), 0);
	reopen(2);
	cr_expect_not(attempt_back(&a), "0 is gone");
	cr_expect_eq(a.number, 2);
}

static void
expect_no_job(const char *text, enum xr_status status, const char *words)
{
	struct attempt other = ATTEMPT_NONE;
	struct xr_error err = { 0 };

	cr_expect_eq(attempt_find_job(text, "output", &other, &err), status);
	cr_expect_str_eq(err.text, words);
	attempt_close(&other);
}

Test(attempt, a_path_is_that_of_a_folder_of_a_job)
{
	struct attempt other = ATTEMPT_NONE;
	struct xr_error err = { 0 };
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/job", folder);
	cr_expect_str_eq(a.job.dir, path);
	cr_expect_str_eq(a.job.id, "job");
	cr_expect_not(a.job.running);
	expect_no_job("./none", XR_E_NOTFOUND,
		"./none: No such file or directory");
	expect_no_job("./job/0", XR_E_INVAL,
		"./job/0: is not the folder of a job: it has no lock");
	other.job = a.job;
	snprintf(other.job.dir, sizeof(other.job.dir), "/none/job");
	cr_expect_eq(attempt_open(&other, 0, &err), XR_E_SYS);
	cr_expect_str_eq(err.text, "/none/job: No such file or directory");
	attempt_close(&other);
	other.job = a.job;
	cr_expect_eq(attempt_open(&other, 2, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text,
		"job has no attempt 2\t--attempt 1, its last");
	attempt_close(&other);
	cr_expect_eq(other.folder, -1);
	cr_expect_eq(other.dir, -1);
}
