/* SPDX-License-Identifier: Apache-2.0 */
/* test_attempts.c - what is told of other attempts of a job, and of ranks that hung. */
#include <stdio.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/attempts.h"
#include "launcher/tell/hung.h"

#define S NS_PER_S

static struct rank ranks[3];
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.page = &page,
	.rank = ranks,
	.plan = { .size = 13, .first = 10, .local_size = 3 },
	.state = { .number = 4 },
	.opt = { .restarts = 5 },
};
static struct buf out;

static const char *
words(void)
{
	buf_clear(&out);
	attempts_put(&job, &out);
	return buf_text(&out);
}

Test(attempts, the_next_one_is_announced)
{
	cr_expect_str_eq(words(), "");
	page.again.due = 1;
	page.again.counted = 2;
	cr_expect_str_eq(words(), "xrun: restart 2 of 5: attempt 5 begins\n");
	page.again.pause_ns = 2 * S;
	cr_expect_str_eq(words(),
		"xrun: restart 2 of 5: attempt 5 begins in 2.0 s\n");
	job.cause = CAUSE_RESTART;
	cr_expect_str_eq(words(),
		"xrun: restart, as asked for: attempt 5 begins\n");
}

static void
note_past(void)
{
	again_note(&page.again,
		&(struct again_past){ .number = 3,
			.exit_status = 9,
			.culprit = 7,
			.reason = "failure",
			.begun_wall = 10 * S,
			.ended_wall = 13 * S });
	again_note(&page.again,
		&(struct again_past){ .number = 4,
			.exit_status = 1,
			.culprit = UINT32_MAX,
			.reason = "timeout",
			.begun_wall = 20 * S,
			.ended_wall = 20 * S + 500 * NS_PER_MS });
}

Test(attempts, those_that_were_are_listed_if_there_are_no_more)
{
	page.again.spent = 1;
	cr_expect_str_eq(words(), "xrun: --restarts 5 is used up:\n");
	note_past();
	job.opt.restart_window = 60 * S;
	cr_expect_str_eq(words(),
		"xrun: --restarts 5 is used up within 60.0 s:\n"
		"  attempt 3: exit 9 after 3.0 s, rank 7 first\n"
		"  attempt 4: exit 1 after 0.5 s\n");
	page.again.due = 1;
	cr_expect_str_eq(words(), "xrun: restart 0 of 5: attempt 5 begins\n");
}

static struct json j;

static void
open_json(void)
{
	buf_clear(&out);
	json_init(&j, &out);
	json_open_object(&j, NULL);
}

static const char *
close_json(void)
{
	json_close_object(&j);
	return buf_text(&out);
}

Test(attempts, events_tell_of_the_next)
{
	page.again.pause_ns = 1500 * NS_PER_MS;
	open_json();
	attempts_put_event(&j, &job);
	cr_expect_str_eq(close_json(), "{\"next\":5,\"pause\":1.5}");
}

Test(attempts, reports_tell_of_those_before)
{
	open_json();
	attempts_put_past(&j, &job);
	cr_expect_str_eq(close_json(), "{}");
	note_past();
	page.again.restarts = 1;
	open_json();
	attempts_put_past(&j, &job);
	cr_expect_str_eq(close_json(),
		"{\"restarts\":1,\"attempts\":[{\"attempt\":3,"
		"\"start\":\"1970-01-01T00:00:10.000000Z\","
		"\"end\":\"1970-01-01T00:00:13.000000Z\",\"exit\":9,"
		"\"reason\":\"failure\",\"culprit\":7}]}");
	job.state.number = 3;
	open_json();
	attempts_put_past(&j, &job);
	cr_expect_str_eq(close_json(),
		"{\"restarts\":1,\"attempts\":[{\"attempt\":4,"
		"\"start\":\"1970-01-01T00:00:20.000000Z\","
		"\"end\":\"1970-01-01T00:00:20.500000Z\",\"exit\":1,"
		"\"reason\":\"timeout\"}]}");
}

Test(attempts, ranks_that_hung_are_listed)
{
	static const char *const names[] = { "", "silent", "uneven", "even" };
	char want[100];

	open_json();
	hung_put(&j, &job);
	cr_expect_str_eq(close_json(), "{}");
	ranks[0].hung = ranks[2].hung = true;
	open_json();
	hung_put(&j, &job);
	cr_expect_str_eq(close_json(), "{\"hung\":[10,12]}");
	sup.hung.silent_ns = 2500 * NS_PER_MS;
	for (int rule = 0; rule < 4; rule++) {
		sup.hung.rule = (enum hang)rule;
		open_json();
		hung_put_event(&j, &job);
		snprintf(want, sizeof(want),
			"{\"rule\":\"%s\",\"seconds\":2.5,\"hung\":[10,12]}",
			names[rule]);
		cr_expect_str_eq(close_json(), want);
	}
}
