/* SPDX-License-Identifier: Apache-2.0 */
/* test_remove.c - xrun rm and xrun prune: which jobs go, and what is said of them. */
#include <stdint.h>

#include "base/clock.h"
#include "base/host.h"
#include "launcher/state/history.h"
#include "launcher/state/retain.h"
#include "tests/unit/verb_rig.h"

#define T0 (INT64_C(1795227240) * NS_PER_S) /* 2026-11-21T02:14:00Z */

int64_t __wrap_clock_wall(void);
bool __real_retain_remove(const char *root, const char *id);
bool __wrap_retain_remove(const char *root, const char *id);
int __real_history_remove(const char *root, history_is_fn *is, void *ctx);
int __wrap_history_remove(const char *root, history_is_fn *is, void *ctx);

static const char *stuck; /* a job whose folder stays */
static bool lines_stay;   /* of the history */

int64_t
__wrap_clock_wall(void)
{
	return T0;
}

bool
__wrap_retain_remove(const char *root, const char *id)
{
	return (stuck == NULL || strcmp(id, stuck) != 0) &&
		__real_retain_remove(root, id);
}

int
__wrap_history_remove(const char *root, history_is_fn *is, void *ctx)
{
	return lines_stay ? -1 : __real_history_remove(root, is, ctx);
}

TestSuite(remove, .init = verb_rig_make, .fini = folder_remove, .timeout = 60);

static bool
is_there(const char *id)
{
	return access(job_path(id, ""), F_OK) == 0;
}

Test(remove, a_job_is_removed_by_its_whole_name)
{
	job_make("k7m2", false, "{}");
	job_make("k8", false, "{}");
	CALL("rm", "k7");
	EXPECT_SAID(125, "",
		"xrun: rm: 'k7' is only the beginning of k7m2   try: xrun rm k7m2\n");
	CALL("rm", "--dry-run", "k7m2");
	EXPECT_SAID(0, "k7m2\n", "");
	cr_expect(is_there("k7m2"));
	CALL("rm", "k7m2");
	EXPECT_SAID(0, "k7m2\n", "");
	cr_expect_not(is_there("k7m2"));
	cr_expect(is_there("k8"));
	CALL("rm");
	EXPECT_SAID(125, "",
		"xrun: rm: a job must be named   try: xrun rm JOB, or xrun prune -h\n");
}

Test(remove, one_that_cannot_be_removed_keeps_no_other)
{
	job_make("a", false, "{}");
	job_make("b", true, "{}");
	job_make("c", false, "{}");
	CALL("rm", "x", "a", "b", "c");
	EXPECT_SAID(125, "a\nc\n",
		"xrun: there is no job 'x'   try: xrun ps -a\n"
		"xrun: rm: b runs   try: xrun stop b\n");
	cr_expect_not(is_there("a"));
	cr_expect(is_there("b"));
	job_make("c", false, "{}");
	stuck = "c";
	CALL("rm", "c");
	cr_expect_eq(said.status, 125);
	cr_expect_str_eq(said.out, "");
	cr_expect_eq(
		strncmp(said.err,
			"xrun: rm: c could not be removed as a whole from /",
			49),
		0, "%s", said.err);
	stuck = NULL;
	lines_stay = true;
	CALL("rm", "c");
	cr_expect_eq(said.status, 125);
	cr_expect_not(is_there("c"));
}

Test(remove, a_job_of_the_history_has_a_line)
{
	job_make("a", false, "{}");
	cr_assert_eq(rename(job_path("a", ""), "a"), 0);
	past_make("{\"job\":\"b\",\"start\":\"2026-11-20T00:00:00.000000Z\"}");
	past_make("{\"job\":\"a\",\"start\":\"2026-11-20T00:00:00.000000Z\"}");
	CALL("rm", "b");
	EXPECT_SAID(0, "b\n", "");
	CALL("rm", "b");
	EXPECT_SAID(125, "", "xrun: there is no job 'b'   try: xrun ps -a\n");
	CALL("rm", "a");
	EXPECT_SAID(0, "a\n", "");
}

Test(remove, output_elsewhere_stays)
{
	char line[2 * PATH_MAX], words[2 * PATH_MAX];

	job_make("a", false, "{}");
	cr_assert_eq(rename(job_path("a", ""), "a"), 0);
	snprintf(line, sizeof(line),
		"{\"job\":\"a\",\"start\":\"2026-11-20T00:00:00.000000Z\",\"dir\":\"%s/a\"}",
		folder);
	past_make(line);
	CALL("rm", "a");
	snprintf(words, sizeof(words), "xrun: a: its output stays in %s/a\n",
		folder);
	EXPECT_SAID(0, "a\n", words);
	cr_expect_eq(access("a/lock", F_OK), 0);
}

Test(remove, who_means_the_other_rm_is_told)
{
	CALL("rm", "-rf", "x");
	cr_expect_eq(said.status, 125);
	cr_expect(strstr(said.err,
			  "xrun: to run rm(1)   try: xrun -- rm -rf ...\n") !=
			NULL,
		"%s", said.err);
	CALL("rm", "x", "-v");
	cr_expect(strstr(said.err, "-- rm -v ...\n") != NULL, "%s", said.err);
	CALL("rm", "-rx");
	cr_expect(strstr(said.err, "rm(1)") == NULL, "%s", said.err);
	CALL("rm", "--rfi");
	cr_expect(strstr(said.err, "rm(1)") == NULL, "%s", said.err);
}

/* --- prune ------------------------------------------------------------------ */

/* @bytes: of output; both are in job.json */
static void
make_ended(const char *id, int64_t ago, int64_t bytes)
{
	char json[300], stamp[40];

	snprintf(json, sizeof(json),
		"{\"end\":\"%s\",\"start\":\"2026-11-01T00:00:00.000000Z\",\"bytes\":%lld,\"bytes_before\":%lld}",
		clock_stamp(T0 - ago, stamp, sizeof(stamp)),
		(long long)bytes - 1, 1LL);
	job_make(id, false, json);
}

Test(remove, a_condition_is_needed)
{
	CALL("prune");
	EXPECT_SAID(125, "",
		"xrun: prune: a condition is missing   try: --older-than 7d, --keep 10 or --all\n");
	CALL("prune", "--all", "--keep", "0");
	EXPECT_SAID(125, "",
		"xrun: prune: --all leaves no job for --older-than and --keep   try: one of them\n");
	CALL("prune", "--all", "--older-than", "1d");
	EXPECT_SAID(125, "",
		"xrun: prune: --all leaves no job for --older-than and --keep   try: one of them\n");
	CALL("prune", "--older-than", "7w");
	EXPECT_SAID(125, "",
		"xrun: prune: --older-than: '7w' is no time such as 12h or 7d\n");
	CALL("prune", "--older-than", "-1d");
	cr_expect_eq(said.status, 125);
	CALL("prune", "--older-than", "+1d");
	cr_expect_eq(said.status, 125);
	CALL("prune", "--all");
	EXPECT_SAID(0, "", "xrun: 0 jobs, 0.0 MiB of output removed\n");
	CALL("prune", "--all", "x");
	cr_expect_eq(said.status, 125);
}

Test(remove, jobs_that_ended_longer_ago)
{
	make_ended("day", 24 * 3600 * NS_PER_S, 1 << 20);
	make_ended("more", 24 * 3600 * NS_PER_S + 1000, 3 << 19);
	make_ended("week", 7 * 24 * 3600 * NS_PER_S, 1 << 20);
	job_make("runs", true, "{\"start\":\"2020-01-01T00:00:00.000000Z\"}");
	CALL("prune", "--older-than", "1d", "--dry-run");
	EXPECT_SAID(0, "more\nweek\n",
		"xrun: 2 jobs, 2.5 MiB of output would be removed\n");
	cr_expect(is_there("more") && is_there("week"));
	CALL("prune", "--older-than", "36h");
	EXPECT_SAID(0, "week\n", "xrun: 1 job, 1.0 MiB of output removed\n");
	cr_expect_not(is_there("week"));
	CALL("prune", "--older-than", "36501d");
	EXPECT_SAID(0, "", "xrun: 0 jobs, 0.0 MiB of output removed\n");
	make_ended("old", 36500 * (int64_t)24 * 3600 * NS_PER_S + 1000, 1);
	CALL("prune", "--older-than", "36500d");
	EXPECT_SAID(0, "old\n", "xrun: 1 job, 0.0 MiB of output removed\n");
	CALL("prune", "--older-than", "0d");
	EXPECT_SAID(0, "day\nmore\n",
		"xrun: 2 jobs, 2.5 MiB of output removed\n");
	cr_expect(is_there("runs"));
}

Test(remove, the_jobs_that_ended_last_are_kept)
{
	make_ended("c", 3 * NS_PER_S, 1);
	make_ended("a", 1 * NS_PER_S, 1);
	make_ended("b", 2 * NS_PER_S, 1);
	/* One that did not tell its end is as old as its start. */
	job_make("d", false, "{\"start\":\"2026-11-21T02:13:30.000000Z\"}");
	job_make("e", false, NULL);
	CALL("prune", "--keep", "2", "--dry-run");
	EXPECT_SAID(0, "c\nd\ne\n",
		"xrun: 3 jobs, 0.0 MiB of output would be removed\n");
	CALL("prune", "--keep", "2", "--older-than", "4s", "--dry-run");
	EXPECT_SAID(0, "d\ne\n",
		"xrun: 2 jobs, 0.0 MiB of output would be removed\n");
	CALL("prune", "--keep", "4");
	EXPECT_SAID(0, "e\n", "xrun: 1 job, 0.0 MiB of output removed\n");
	CALL("prune", "--all");
	EXPECT_SAID(0, "a\nb\nc\nd\n",
		"xrun: 4 jobs, 0.0 MiB of output removed\n");
}

Test(remove, jobs_of_another_machine_stay)
{
	char here[256], json[400];

	job_make("far", false, "{\"host\":\"far-away\"}");
	snprintf(json, sizeof(json), "{\"host\":\"%s\"}",
		host_name(here, sizeof(here)));
	job_make("near", false, json);
	CALL("prune", "--all");
	EXPECT_SAID(0, "near\n", "xrun: 1 job, 0.0 MiB of output removed\n");
	cr_expect(is_there("far"));
}

Test(remove, lines_of_the_history_go_with_their_jobs)
{
	make_ended("a", 9 * NS_PER_S, 1 << 20);
	past_make(
		"{\"job\":\"b\",\"bytes\":1048576,\"start\":\"2026-11-21T02:13:00.000000Z\"}");
	past_make(
		"{\"job\":\"c\",\"end\":\"2026-11-21T02:13:59.000000Z\",\"start\":\"2026-11-21T02:13:00.000000Z\"}");
	CALL("prune", "--older-than", "5s");
	EXPECT_SAID(0, "a\nb\n", "xrun: 2 jobs, 1.0 MiB of output removed\n");
	CALL("prune", "--all", "--dry-run");
	EXPECT_SAID(0, "c\n",
		"xrun: 1 job, 0.0 MiB of output would be removed\n");
}

Test(remove, what_stays_is_said)
{
	make_ended("a", 1 * NS_PER_S, 1 << 20);
	make_ended("b", 2 * NS_PER_S, 1 << 21);
	stuck = "a";
	CALL("prune", "--all");
	EXPECT_SAID(125, "b\n",
		"xrun: 1 job could not be removed as a whole\n"
		"xrun: 1 job, 2.0 MiB of output removed\n");
	stuck = NULL;
	make_ended("c", 2 * NS_PER_S, 1 << 21);
	lines_stay = true;
	CALL("prune", "--all");
	EXPECT_SAID(125, "",
		"xrun: 2 jobs could not be removed as a whole\n"
		"xrun: 0 jobs, 0.0 MiB of output removed\n");
}
