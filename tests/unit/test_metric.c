/* SPDX-License-Identifier: Apache-2.0 */
/* test_metric.c - a job as Prometheus reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "launcher/stat/metric.h"

/* The text of @json; the caller frees it. */
static char *
text_of(const char *json)
{
	cJSON *status = cJSON_Parse(json);
	struct buf out = { 0 };

	cr_assert_not_null(status, "%s", json);
	metric_put(&out, status);
	cr_assert_eq(out.bad, XR_OK);
	cJSON_Delete(status);
	return out.data != NULL ? out.data : strdup("");
}

#define RANK(members) \
	"{\"job\":\"k7m2\",\"ranks\":1,\"rank\":[{\"rank\":3," members "}]}"

static void
assert_line(const char *json, const char *line)
{
	char *text = text_of(json), want[400];

	snprintf(want, sizeof(want), "\n%s\n", line);
	cr_assert_not_null(strstr(text, want), "no '%s' in\n%s", line, text);
	free(text);
}

static void
assert_lacks(const char *json, const char *word)
{
	char *text = text_of(json);

	cr_assert_null(strstr(text, word), "'%s' in\n%s", word, text);
	free(text);
}

Test(metric, of_nothing_there_is_nothing)
{
	struct buf out = { 0 };

	metric_put(&out, NULL);
	cr_assert_eq(out.len, 0);
	assert_lacks("{}", "xrun");
	assert_lacks("[]", "xrun");
}

Test(metric, each_has_its_help_and_type_once_before_its_samples)
{
	char *text =
		text_of("{\"job\":\"a\",\"rank\":[{\"rank\":0,\"seconds\":1},"
			"{\"rank\":1,\"seconds\":2.5}]}");

	cr_assert_not_null(strstr(text,
		"# HELP xrun_rank_run_seconds Since it was started, or how long it ran.\n"
		"# TYPE xrun_rank_run_seconds gauge\n"
		"xrun_rank_run_seconds{job=\"a\",rank=\"0\"} 1\n"
		"xrun_rank_run_seconds{job=\"a\",rank=\"1\"} 2.5\n"));
	free(text);
}

Test(metric, what_is_not_known_has_no_sample_and_no_help)
{
	assert_lacks(RANK("\"state\":\"running\""), "cpu_seconds");
	assert_lacks(RANK("\"state\":\"running\""), "xrun_rank_step");
	assert_lacks(RANK("\"exit\":null"), "xrun_rank_exit_status");
}

Test(metric, every_state_has_a_sample)
{
	const char *json = RANK("\"state\":\"running\"");

	assert_line(json, "xrun_ranks{job=\"k7m2\",state=\"running\"} 1");
	assert_line(json, "xrun_ranks{job=\"k7m2\",state=\"done\"} 0");
	assert_line("{\"job\":\"a\",\"phase\":\"stopping\"}",
		"xrun_job_state{job=\"a\",state=\"stopping\"} 1");
	assert_line("{\"job\":\"a\",\"phase\":\"stopping\"}",
		"xrun_job_state{job=\"a\",state=\"running\"} 0");
}

Test(metric, processor_time_is_that_of_now_or_of_the_end)
{
	assert_line(RANK("\"cpu_seconds\":1.5"),
		"xrun_rank_cpu_seconds_total{job=\"k7m2\",rank=\"3\"} 1.5");
	assert_line(RANK("\"cpu_user\":1.25,\"cpu_system\":0.5"),
		"xrun_rank_cpu_seconds_total{job=\"k7m2\",rank=\"3\"} 1.75");
}

Test(metric, truth_is_one)
{
	assert_line(RANK("\"ready\":true"),
		"xrun_rank_ready{job=\"k7m2\",rank=\"3\"} 1");
	assert_line(RANK("\"progress\":{\"slow\":false}"),
		"xrun_rank_slow{job=\"k7m2\",rank=\"3\"} 0");
}

Test(metric, bytes_bear_their_stream)
{
	assert_line(
		RANK("\"stdout_bytes\":7,\"stderr_bytes\":9007199254740991"),
		"xrun_rank_output_bytes_total{job=\"k7m2\",rank=\"3\",stream=\"stderr\"} 9007199254740991");
}

Test(metric, names_that_ranks_choose_are_escaped)
{
	assert_line(RANK("\"progress\":{\"metrics\":"
			 "{\"a \\\"b\\\" \\\\ \\n c\":-0.1}}"),
		"xrun_rank_told{job=\"k7m2\",rank=\"3\",name=\"a \\\"b\\\" \\\\ \\n c\"} -0.1");
	assert_line("{\"job\":\"a\\\"b\",\"ranks\":2}",
		"xrun_job_ranks{job=\"a\\\"b\"} 2");
}

Test(metric, numbers_without_end_have_the_words_of_prometheus)
{
	assert_line(RANK("\"progress\":{\"metrics\":{\"x\":1e999}}"),
		"xrun_rank_told{job=\"k7m2\",rank=\"3\",name=\"x\"} +Inf");
	assert_line(RANK("\"progress\":{\"metrics\":{\"x\":-1e999}}"),
		"xrun_rank_told{job=\"k7m2\",rank=\"3\",name=\"x\"} -Inf");
}

Test(metric, only_numbers_are_told)
{
	assert_lacks(RANK("\"progress\":{\"metrics\":{\"x\":\"1\",\"y\":[1]}}"),
		"xrun_rank_told");
}

/* @count names of one rank. */
static void
put_names(struct buf *out, int rank, int count)
{
	buf_fmt(out, "{\"rank\":%d,\"progress\":{\"metrics\":{", rank);
	for (int i = 0; i < count; i++)
		buf_fmt(out, "%s\"n%d\":%d", i > 0 ? "," : "", i, i);
	buf_put_text(out, "}}}");
}

static int
count_of(const char *text, const char *word)
{
	int n = 0;

	for (; (text = strstr(text, word)) != NULL; text++)
		n++;
	return n;
}

Test(metric, too_many_names_are_counted_and_left_out)
{
	struct buf json = { 0 };
	char *text;

	buf_put_text(&json, "{\"job\":\"a\",\"rank\":[");
	put_names(&json, 0, METRIC_NAMES_MAX + 3);
	buf_put_text(&json, "]}");
	text = text_of(json.data);
	cr_assert_eq(count_of(text, "xrun_rank_told{"), METRIC_NAMES_MAX);
	cr_assert_not_null(strstr(text,
		"xrun_job_told_dropped{job=\"a\"} 3\n"));
	free(text);
	buf_fini(&json);
}

Test(metric, so_are_those_of_too_many_ranks)
{
	const int ranks = METRIC_SAMPLES_MAX / 50 + 1;
	struct buf json = { 0 };
	char *text;

	buf_put_text(&json, "{\"job\":\"a\",\"rank\":[");
	for (int i = 0; i < ranks; i++) {
		if (i > 0)
			buf_put_char(&json, ',');
		put_names(&json, i, 50);
	}
	buf_put_text(&json, "]}");
	text = text_of(json.data);
	cr_assert_eq(count_of(text, "xrun_rank_told{"), METRIC_SAMPLES_MAX);
	cr_assert_not_null(strstr(text,
		"xrun_job_told_dropped{job=\"a\"} 50\n"));
	free(text);
	buf_fini(&json);
}

/* https://prometheus.io/docs/practices/naming/ */
Test(metric, names_follow_the_conventions)
{
	for (const struct metric_row *r = metric_rows; r->name != NULL; r++) {
		size_t len = strlen(r->name);
		bool total =
			len > 6 && strcmp(r->name + len - 6, "_total") == 0;

		cr_assert_eq(strncmp(r->name, "xrun_", 5), 0);
		cr_assert_eq(strspn(r->name, "abcdefghijklmnopqrstuvwxyz_"),
			len);
		cr_assert_eq(total, strcmp(r->type, "counter") == 0, "%s",
			r->name);
		cr_assert_neq(r->help[strlen(r->help) - 1], '.');
		cr_assert_not_null(metric_labels(r->of));
	}
}

#define RPC(latency) \
	RANK("\"rpc\":{\"calls\":7,\"errors\":2,\"seconds\":0.5,\"latency\":[" latency \
	     "]}")
#define CALLS "xrun_rank_call_seconds"

Test(metric, how_long_calls_took_is_a_histogram_that_adds_up)
{
	static const char json[] =
		RPC("{\"below\":1.024e-06,\"calls\":1},"
		    "{\"below\":1.28e-06,\"calls\":2},"
		    "{\"below\":4.096e-06,\"calls\":3},{\"calls\":1}");

	assert_line(json, "# TYPE " CALLS " histogram");
	assert_line(json,
		CALLS
		"_bucket{job=\"k7m2\",rank=\"3\",le=\"0.000001024\"} 1\n" CALLS
		"_bucket{job=\"k7m2\",rank=\"3\",le=\"0.000004096\"} 6\n" CALLS
		"_bucket{job=\"k7m2\",rank=\"3\",le=\"0.000016384\"} 6");
	assert_line(json,
		CALLS
		"_bucket{job=\"k7m2\",rank=\"3\",le=\"17.179869184\"} 6\n" CALLS
		"_bucket{job=\"k7m2\",rank=\"3\",le=\"+Inf\"} 7\n" CALLS
		"_count{job=\"k7m2\",rank=\"3\"} 7\n" CALLS
		"_sum{job=\"k7m2\",rank=\"3\"} 0.5");
	assert_line(json,
		"xrun_rank_call_errors_total{job=\"k7m2\",rank=\"3\"} 2");
	assert_lacks(RANK("\"state\":\"running\""), CALLS);
}

#define TASKS "xrun_pool_task_seconds"

Test(metric, each_pool_has_a_histogram_of_its_tasks)
{
	static const char json[] = RANK(
		"\"pools\":[{\"name\":\"p\",\"timed\":3,\"task_seconds\":1.5,\"times\":"
		"[{\"below\":1.024e-06,\"tasks\":2},{\"tasks\":1}]},"
		"{\"name\":\"q\",\"timed\":1,\"task_seconds\":0.25,\"times\":[]}]");

	assert_line(json,
		TASKS
		"_bucket{job=\"k7m2\",rank=\"3\",pool=\"p\",le=\"0.000001024\"} 2");
	assert_line(json,
		TASKS
		"_bucket{job=\"k7m2\",rank=\"3\",pool=\"p\",le=\"+Inf\"} 3\n" TASKS
		"_count{job=\"k7m2\",rank=\"3\",pool=\"p\"} 3\n" TASKS
		"_sum{job=\"k7m2\",rank=\"3\",pool=\"p\"} 1.5");
	assert_line(json,
		TASKS "_count{job=\"k7m2\",rank=\"3\",pool=\"q\"} 1\n" TASKS
		      "_sum{job=\"k7m2\",rank=\"3\",pool=\"q\"} 0.25");
}

Test(metric, only_a_rank_that_waits_for_a_disk_is_counted)
{
	static const char job[] =
		"{\"job\":\"k7m2\",\"ranks\":3,\"rank\":[{\"rank\":0,\"waiting\":\"disk\"},"
		"{\"rank\":1,\"waiting\":\"tape\"},{\"rank\":2}]}";

	assert_line(job, "xrun_ranks_waiting{job=\"k7m2\",for=\"disk\"} 1");
}

Test(metric, a_member_that_is_missing_has_no_sample)
{
	assert_lacks("{\"job\":\"k7m2\",\"start\":\"yesterday\"}",
		"xrun_job_start");
	assert_line("{\"job\":\"k7m2\",\"start\":\"2026-01-02T03:04:05Z\"}",
		"xrun_job_start_time_seconds{job=\"k7m2\"} 1767323045");
	assert_lacks(RANK("\"pools\":[{\"name\":\"p\"}]"), "pool=\"p\"");
	assert_lacks(RANK("\"queues\":[{\"name\":\"q\"}]"), "queue=\"q\"");
	assert_lacks(RANK("\"queues\":[{\"items\":3,\"put\":4}]"), "queue=");
	assert_line(RANK("\"queues\":[{\"name\":\"q\",\"items\":3}]"),
		"xrun_queue_items{job=\"k7m2\",rank=\"3\",queue=\"q\"} 3");
	assert_lacks(RANK("\"rpc\":{\"calls\":2,\"latency\":[]}"),
		"_seconds_sum");
}
