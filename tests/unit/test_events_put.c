/* SPDX-License-Identifier: Apache-2.0 */
/* test_events_put.c - lines of events.jsonl as rows for people (launcher/cmd/events_put.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "launcher/cmd/events_put.h"

static void
zone_set(void)
{
	setenv("TZ", "UTC0", 1);
	tzset();
}

TestSuite(events_put, .init = zone_set);

static void
row_is(const char *line, const char *want)
{
	struct buf out = { 0 };

	buf_put_text(&out, "\t\n");
	events_put_row(&out, span_of(line));
	cr_expect(strncmp(buf_text(&out), "\t\n", 2) == 0);
	cr_expect_str_eq(buf_text(&out) + 2, want, "%s: %s", line,
		buf_text(&out));
	buf_fini(&out);
}

/* The last column of an event with the members @members. */
static void
what_is(const char *event, const char *members, const char *want)
{
	char line[1024], row[1024];

	snprintf(line, sizeof(line), "{\"event\":\"%s\"%s%s}", event,
		members[0] != '\0' ? "," : "", members);
	snprintf(row, sizeof(row), "%-23s  %-10s %4s  %s\n", "-", event, "",
		want);
	row_is(line, row);
}

Test(events_put, a_row_has_time_event_and_rank)
{
	struct buf out = { 0 };

	events_put_head(&out);
	cr_expect_str_eq(buf_text(&out),
		"TIME                     EVENT      RANK  WHAT\n");
	buf_fini(&out);
	row_is("{\"time\":\"2026-11-21T12:34:56.789012345Z\",\"event\":\"rank.start\",\"rank\":12,\"pid\":7}",
		"2026-11-21 12:34:56.789  rank.start   12  pid 7\n");
	row_is("{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"rank.start\",\"rank\":0,\"pid\":7}",
		"1970-01-01 00:00:00.000  rank.start    0  pid 7\n");
	row_is("{}", "-                        ?                \n");
	row_is("[1]", "");
	row_is("1", "");
	row_is("{\"event\":\"a\"", "");
	row_is("", "");
}

Test(events_put, a_job_begins_with_its_words_and_ends_with_a_reason)
{
	what_is("job.start",
		"\"job\":\"a\",\"attempt\":2,\"ranks\":1,\"host\":\"h\",\"pid\":9,\"argv\":[\"x\",3,\"y z\"]",
		"a, attempt 2: 1 rank on h, pid 9: x y z");
	what_is("job.start", "\"ranks\":2",
		"?, attempt 0: 2 ranks on ?, pid 0:");
	what_is("job.start", "", "?, attempt 0: 0 ranks on ?, pid 0:");
	what_is("rank.start", "", "pid 0");
	what_is("job.stop", "\"reason\":\"signal\",\"signal\":\"SIGINT\"",
		"signal SIGINT");
	what_is("job.stop", "\"reason\":\"timeout\"", "timeout");
	what_is("job.stop", "", "?");
	what_is("job.end", "\"exit\":3,\"reason\":\"failed\",\"culprit\":0",
		"exit 3, failed, rank 0 first");
	what_is("job.end", "\"reason\":\"ok\"", "exit 0, ok");
	what_is("job.restart",
		"\"exit\":3,\"reason\":\"failed\",\"culprit\":2,\"next\":1",
		"exit 3, failed, rank 2 first; attempt 1 follows");
	what_is("job.restart", "", "exit 0, ?; attempt 0 follows");
}

Test(events_put, a_rank_ends_by_status_or_signal)
{
	what_is("rank.error", "\"step\":\"chdir\",\"error\":\"no\"",
		"chdir: no");
	what_is("rank.error", "", "?: ?");
	what_is("rank.exit", "\"exit\":4", "exit 4");
	what_is("rank.exit", "", "exit 0");
	what_is("rank.exit",
		"\"exit\":4,\"signal\":\"SIGKILL\",\"core\":true,\"oom\":\"kernel\",\"stopped\":true",
		"SIGKILL, core, out of memory (kernel), stopped by xrun");
	what_is("rank.exit", "\"core\":false,\"stopped\":false", "exit 0");
	what_is("rank.exit", "\"core\":1,\"stopped\":\"true\"", "exit 0");
}

Test(events_put, a_job_that_hangs_names_its_ranks)
{
	what_is("job.hang", "\"rule\":\"idle\",\"hung\":[7],\"seconds\":1.25",
		"idle, rank 7, after 1.2 s");
	what_is("job.hang", "\"rule\":\"idle\",\"hung\":[0,2,9],\"seconds\":30",
		"idle, ranks 0, 2, 9, after 30.0 s");
	what_is("job.hang", "", "?, , after 0.0 s");
	what_is("job.hang", "\"seconds\":\"5\"", "?, , after 0.0 s");
	what_is("job.stacks", "\"why\":\"hang\",\"ranks\":1,\"path\":\"/x/y\"",
		"hang, 1 rank: /x/y");
	what_is("job.stacks", "\"ranks\":2", "?, 2 ranks");
	what_is("job.stacks", "", "?, 0 ranks");
}

Test(events_put, a_stream_without_room_is_named)
{
	what_is("log.full", "\"stream\":\"stdout\"", "no room for its stdout");
	what_is("log.full", "", "no room for its ?");
	what_is("log.room", "\"stream\":\"stderr\"",
		"room for its stderr again");
	what_is("log.room", "", "room for its ? again");
}

Test(events_put, an_unknown_event_shows_all_members_without_a_column)
{
	what_is("new", "", "");
	what_is("new",
		"\"v\":1,\"seq\":2,\"mono_ns\":3,\"a\":\"text\",\"b\":[1,\"x\"],\"c\":null,\"d\":{\"e\":-2}",
		"a text, b [1,\"x\"], c null, d {\"e\":-2}");
	row_is("{\"event\":\"x\",\"rank\":1,\"time\":\"t\",\"z\":true}",
		"-                        x             1  z true\n");
}

Test(events_put, a_row_is_one_line)
{
	what_is("rank.error",
		"\"step\":\"a\\nb\\u001fc d\",\"error\":\"\303\244\\t~\\u007f\"",
		"a b c d: \303\244 ~\177");
}
