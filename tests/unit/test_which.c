/* SPDX-License-Identifier: Apache-2.0 */
/* test_which.c - the job that a verb is about, named, in part or not at all. */
#include <stdarg.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/which.h"
#include "launcher/ctl/place.h"
#include "launcher/keeper/lost.h"
#include "tests/unit/verb_rig.h"

#define T0 (INT64_C(1795227240) * NS_PER_S) /* 2026-11-21T02:14:00Z */

#define AT(second) "\"2026-11-21T02:" second ".000000Z\""

int64_t __wrap_clock_wall(void);
struct cJSON *__wrap_dial_status_now(const struct which *job);
void __wrap_ctl_place_each(ctl_place_fn *fn, void *ctx);
void __wrap_lost_each_held(lost_fn *fn, void *ctx);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

static const char *status_now;
static const char *sockets[4]; /* ids of jobs that have one */
static struct {
	const char *id, *dir, *record;
} records[3];
static char words[400];

int64_t
__wrap_clock_wall(void)
{
	return T0;
}

struct cJSON *
__wrap_dial_status_now(const struct which *job)
{
	(void)job;
	return status_now != NULL ? cJSON_Parse(status_now) : NULL;
}

void
__wrap_ctl_place_each(ctl_place_fn *fn, void *ctx)
{
	for (int i = 0; sockets[i] != NULL && fn(ctx, sockets[i]); i++)
		continue;
}

void
__wrap_lost_each_held(lost_fn *fn, void *ctx)
{
	struct lost_facts facts = { 0 };
	cJSON *json;

	for (int i = 0; records[i].id != NULL; i++) {
		json = cJSON_Parse(records[i].record);
		facts.id = records[i].id;
		facts.dir = records[i].dir;
		facts.record = json;
		fn(ctx, &facts);
		cJSON_Delete(json);
	}
}

void
__wrap_words_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
}

TestSuite(which, .init = verb_rig_make, .fini = folder_remove, .timeout = 60);

static struct which job;
static struct xr_error err;

static enum xr_status
find(const char *text, enum which_none none)
{
	job = (struct which){ 0 };
	err = (struct xr_error){ 0 };
	words[0] = '\0';
	return which_job(text, none, &job, &err);
}

#define EXPECT_FOUND(name_, none, id_, words_) \
	do { \
		cr_expect_eq(find((name_), (none)), XR_OK, "%s", err.text); \
		cr_expect_str_eq(job.id, (id_)); \
		cr_expect_str_eq(words, (words_)); \
	} while (0)

#define EXPECT_NONE(name_, none, status, words_) \
	do { \
		cr_expect_eq(find((name_), (none)), (status)); \
		cr_expect_str_eq(err.text, (words_)); \
	} while (0)

Test(which, a_few_characters_are_enough)
{
	job_make("k7m2", false, NULL);
	job_make("k7p3", false, NULL);
	job_make("b", false, NULL);
	EXPECT_FOUND("b", WHICH_RUNNING, "b", "");
	EXPECT_FOUND("k7m", WHICH_RUNNING, "k7m2", "");
	cr_expect_not(job.running);
	cr_expect_not(job.past);
	cr_expect_str_eq(job.start, "");
	cr_expect_eq(strncmp(job.dir, folder, strlen(folder)), 0);
	EXPECT_NONE("k7m23", WHICH_RUNNING, XR_E_NOTFOUND,
		"there is no job 'k7m23'\txrun ps -a");
	EXPECT_NONE("", WHICH_RUNNING, XR_E_INVAL,
		"which job? the one named is ''\txrun ps");
	cr_expect_eq(find("k7", WHICH_RUNNING), XR_E_INVAL);
	cr_expect(
		strcmp(err.text,
			"'k7' may be any of 2 jobs: k7m2, k7p3\tmore of its id") ==
				0 ||
			strcmp(err.text,
				"'k7' may be any of 2 jobs: k7p3, k7m2\tmore of its id") ==
				0,
		"%s", err.text);
	/* A whole id is never the beginning of another. */
	job_make("k7", false, NULL);
	EXPECT_FOUND("k7", WHICH_RUNNING, "k7", "");
	/* Of several, one that runs. */
	job_make("b2", true, NULL);
	job_make("b3", false, NULL);
	job_make("k9", true, NULL);
	EXPECT_FOUND("b", WHICH_RUNNING, "b", "");
	EXPECT_FOUND("k", WHICH_RUNNING, "k9", "");
	cr_expect(job.running);
}

Test(which, of_many_three_are_named)
{
	sockets[0] = "a1";
	sockets[1] = "a2";
	sockets[2] = "a3";
	EXPECT_NONE(NULL, WHICH_RUNNING, XR_E_INVAL,
		"which job? 3 run: a1, a2, a3\txrun ps");
	EXPECT_NONE("a", WHICH_RUNNING, XR_E_INVAL,
		"'a' may be any of 3 jobs: a1, a2, a3\tmore of its id");
	records[0].id = "a4";
	EXPECT_NONE("a", WHICH_RUNNING, XR_E_INVAL,
		"'a' may be any of 4 jobs: a1, a2, a3, ...\tmore of its id");
	sockets[0] = "b1";
	EXPECT_NONE(NULL, WHICH_LATEST, XR_E_INVAL,
		"which job? 4 run: b1, a2, a3, ...\txrun ps");
	/* Those that do not run are not meant then. */
	job_make("a5", false, NULL);
	sockets[0] = "a1";
	EXPECT_NONE("a", WHICH_RUNNING, XR_E_INVAL,
		"'a' may be any of 4 jobs: a1, a2, a3, ...\tmore of its id");
}

Test(which, without_a_name_the_only_one_that_runs)
{
	EXPECT_NONE(NULL, WHICH_RUNNING, XR_E_NOTFOUND,
		"no job runs\txrun ps -a, for those that have ended");
	EXPECT_NONE(NULL, WHICH_LATEST, XR_E_NOTFOUND,
		"there is no job yet\txrun ps -a");
	job_make("old", false, "{\"start\":" AT("10:00") "}");
	EXPECT_NONE(NULL, WHICH_RUNNING, XR_E_NOTFOUND,
		"no job runs\txrun ps -a, for those that have ended");
	job_make("k7m2", true,
		"{\"start\":" AT("13:00") ",\"end\":" AT("13:30") "}");
	EXPECT_FOUND(NULL, WHICH_RUNNING, "k7m2",
		"job k7m2, started 1 min ago");
	EXPECT_FOUND(NULL, WHICH_LATEST, "k7m2", "job k7m2, started 1 min ago");
}

Test(which, a_job_that_is_young_says_itself_when_it_began)
{
	job_make("k7m2", true, NULL);
	EXPECT_FOUND(NULL, WHICH_RUNNING, "k7m2", "job k7m2");
	status_now = "{\"start\":" AT("13:57") "}";
	EXPECT_FOUND(NULL, WHICH_RUNNING, "k7m2", "job k7m2, started 3 s ago");
	status_now = "{\"start\":" AT("14:00") "}";
	EXPECT_FOUND(NULL, WHICH_RUNNING, "k7m2", "job k7m2, started 0 s ago");
	status_now = "{\"start\":" AT("14:01") "}";
	EXPECT_FOUND(NULL, WHICH_RUNNING, "k7m2", "job k7m2");
	/* Or its record. */
	records[0].id = "k7m2";
	records[0].dir = "/elsewhere";
	records[0].record = "{\"start\":" AT("13:55") "}";
	EXPECT_FOUND(NULL, WHICH_RUNNING, "k7m2", "job k7m2, started 5 s ago");
	cr_expect_str_eq(job.start, "2026-11-21T02:13:55.000000Z");
	cr_expect_str_neq(job.dir, "/elsewhere");
}

Test(which, a_record_names_the_folder)
{
	records[0].id = "rec";
	records[0].dir = "/elsewhere/rec";
	records[0].record = "{}";
	EXPECT_FOUND("r", WHICH_RUNNING, "rec", "");
	cr_expect(job.running);
	cr_expect_str_eq(job.dir, "/elsewhere/rec");
	cr_expect_str_eq(job.start, "");
	records[0].dir = NULL;
	EXPECT_FOUND("r", WHICH_RUNNING, "rec", "");
	cr_expect_str_eq(job.dir, "");
}

Test(which, the_latest_is_the_one_that_began_last)
{
	job_make("old", false,
		"{\"start\":" AT("10:00") ",\"end\":" AT("11:00") "}");
	job_make("new", false,
		"{\"start\":" AT("10:30") ",\"end\":" AT("10:40") "}");
	EXPECT_NONE(NULL, WHICH_LATEST, XR_E_NOTFOUND,
		"there is no job yet\txrun ps -a");
	cr_assert_eq(symlink("new", ROOT "/latest"), 0);
	EXPECT_FOUND(NULL, WHICH_LATEST, "new", "job new, 3 min ago");
	past_make("{\"job\":\"past\",\"start\":" AT("10:30") ",\"end\":" AT(
		"12:00") "}");
	EXPECT_FOUND(NULL, WHICH_LATEST, "new", "job new, 3 min ago");
	past_make("{\"job\":\"past2\",\"start\":" AT("10:31") ",\"end\":" AT(
		"12:00") "}");
	past_make("{\"job\":\"past3\",\"start\":" AT("10:20") ",\"end\":" AT(
		"13:00") "}");
	EXPECT_FOUND(NULL, WHICH_LATEST, "past2", "job past2, 2 min ago");
	cr_expect(job.past);
	cr_assert_eq(unlink(ROOT "/latest"), 0);
	cr_assert_eq(symlink("gone", ROOT "/latest"), 0);
	EXPECT_FOUND(NULL, WHICH_LATEST, "past2", "job past2, 2 min ago");
	cr_assert_eq(unlink(ROOT "/latest"), 0);
	EXPECT_FOUND(NULL, WHICH_LATEST, "past2", "job past2, 2 min ago");
}

static void
past_in(const char *start, const char *rest)
{
	char line[2 * PATH_MAX];

	unlink(ROOT "/.history");
	snprintf(line, sizeof(line),
		"{\"job\":\"a\",\"start\":\"2026-11-21T02:%s.000000Z\"%s}",
		start, rest);
	past_make(line);
}

Test(which, a_later_run_of_the_history_hides_the_folder)
{
	char rest[PATH_MAX + 32], dir[PATH_MAX + 16];
	cJSON *json;

	job_make("a", false, "{\"start\":" AT("10:00") "}");
	past_in("10:00", "");
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect_not(job.past);
	past_in("09:59", "");
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect_not(job.past);
	past_in("10:01", ",\"exit\":7");
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect(job.past);
	cr_expect_not(job.kept);
	cr_expect_str_eq(job.dir, "");
	cr_expect_str_eq(job.start, "2026-11-21T02:10:01.000000Z");
	/* Its output is elsewhere, or was. */
	past_in("10:01", ",\"dir\":\"/nowhere/a\"");
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect(job.past && job.kept);
	cr_expect_str_eq(job.dir, "");
	past_in("10:01", ",\"dir\":\"/nowhere/a\",\"bytes\":1");
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect(job.kept);
	past_in("10:01", ",\"dir\":\"/nowhere/a\",\"bytes\":0");
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect_not(job.kept);
	cr_assert_eq(mkdir("b", 0700), 0);
	folder_write("b/lock", "0", 0600);
	snprintf(dir, sizeof(dir), "%s/b", folder);
	snprintf(rest, sizeof(rest), ",\"dir\":\"%s\"", dir);
	past_in("10:01", rest);
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect_str_eq(job.dir, dir);
	folder_write("b/job.json", "{\"exit\":5}", 0600);
	json = which_said(&job);
	cr_expect_eq(cJSON_GetObjectItem(json, "exit")->valueint, 5);
	cJSON_Delete(json);
	/* One that runs is not past. */
	sockets[0] = "a";
	EXPECT_FOUND("a", WHICH_RUNNING, "a", "");
	cr_expect_not(job.past);
	cr_expect(job.running);
}

Test(which, what_is_known_of_it_is_in_its_folder_or_the_history)
{
	cJSON *json;

	job_make("a", false, "{\"start\":" AT("10:00") ",\"exit\":1}");
	past_make("{\"job\":\"b\",\"exit\":2}");
	job_make("c", false, NULL);
	cr_assert_eq(find("a", WHICH_RUNNING), XR_OK);
	json = which_said(&job);
	cr_expect_eq(cJSON_GetObjectItem(json, "exit")->valueint, 1);
	cJSON_Delete(json);
	cr_assert_eq(find("b", WHICH_RUNNING), XR_OK);
	json = which_said(&job);
	cr_expect_eq(cJSON_GetObjectItem(json, "exit")->valueint, 2);
	cJSON_Delete(json);
	job.past = false;
	cr_expect_null(which_said(&job));
	cr_assert_eq(find("c", WHICH_RUNNING), XR_OK);
	cr_expect_null(which_said(&job));
	job.past = true;
	snprintf(job.id, sizeof(job.id), "d");
	cr_expect_null(which_said(&job));
}

static unsigned met;

static bool
count_two(void *ctx, const struct which *w)
{
	(void)w;
	cr_expect_eq(ctx, &met);
	return ++met < 2;
}

Test(which, each_job_once_until_it_is_enough)
{
	job_make("a", true, NULL);
	sockets[0] = "a";
	records[0].id = "a";
	which_each(count_two, &met);
	cr_expect_eq(met, 1);
	sockets[1] = "b";
	sockets[2] = "c";
	met = 0;
	which_each(count_two, &met);
	cr_expect_eq(met, 2);
}

Test(which, whether_a_job_still_runs)
{
	job_make("a", true, NULL);
	cr_assert_eq(find("a", WHICH_RUNNING), XR_OK);
	cr_expect(which_runs(&job));
	job_end("a");
	cr_expect(job.running);
	cr_expect_not(which_runs(&job));
	cr_expect_not(job.running);
	/* By its socket. */
	sockets[0] = "bb";
	sockets[1] = "b";
	cr_assert_eq(find("b", WHICH_RUNNING), XR_OK);
	cr_expect(which_runs(&job));
	job.past = job.kept = true;
	cr_expect(which_runs(&job));
	cr_expect_not(job.past || job.kept);
	sockets[1] = NULL;
	past_make("{\"job\":\"b\",\"dir\":\"/nowhere/b\"}");
	cr_expect_not(which_runs(&job));
	cr_expect(job.past && job.kept);
	cr_expect_not(job.running);
}
