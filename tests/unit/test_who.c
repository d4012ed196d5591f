/* SPDX-License-Identifier: Apache-2.0 */
/* test_who.c - ranks by number in words and in JSON: several, stopped, hung. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/job/sup.h"
#include "launcher/tell/hung.h"
#include "launcher/tell/who.h"

#define MOST 8
#define S    NS_PER_S

static struct rank ranks[MOST + 1] = {
	/* is none of the job */
	[MOST] = { .hung = true,
		.after_stop = true,
		.status = SIGKILL,
		.ended_ns = 99 * S },
};
static struct sup sup;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.plan = { .first = 3, .local_size = MOST, .size = 3 + MOST },
	.opt = { .stop_signal = SIGTERM },
};

static bool
picked(const struct job *job_, uint32_t r, uint32_t set)
{
	cr_expect_eq(job_, &job);
	return (set >> r & 1) != 0;
}

Test(who, a_few_ranks_are_listed_and_many_are_ranges)
{
	static const struct {
		uint32_t set, count;
		const char *text;
	} rows[] = {
		{ 0x00, 0, "ranks " },
		{ 0x01, 1, "rank 3" },
		{ 0x80, 1, "rank 10" },
		{ 0x03, 2, "ranks 3, 4" },
		{ 0x07, 3, "ranks 3, 4, 5" },
		{ 0x0f, 4, "ranks 3-6" },
		{ 0xed, 6, "ranks 3, 5-6, 8-10" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = { 0 };

		cr_expect_eq(who_put(&job, picked, rows[i].set, &out),
			rows[i].count);
		cr_expect_str_eq(buf_text(&out), rows[i].text);
		buf_fini(&out);
	}
	cr_expect_str_eq(who_plural(0, "is", "are"), "are");
	cr_expect_str_eq(who_plural(1, "is", "are"), "is");
	cr_expect_str_eq(who_plural(2, "is", "are"), "are");
}

Test(who, who_died_of_itself_failed_too)
{
	ranks[0].death = ranks[1].death = ranks[2].death = 1;
	ranks[0].status = ranks[1].status = SIGSEGV;
	ranks[3].status = SIGSEGV; /* lives */
	cr_expect(who_failed_too(&job, 0, 1));
	cr_expect(who_failed_too(&job, 1, 0));
	cr_expect_not(who_failed_too(&job, 1, 1));
	cr_expect_not(who_failed_too(&job, 2, 1));
	cr_expect_not(who_failed_too(&job, 3, 1));
	ranks[0].after_stop = true;
	cr_expect_not(who_failed_too(&job, 0, 1));
}

static void
expect_stopped(const char *want)
{
	struct buf out = { 0 };

	cr_expect_eq(who_put_stopped(&job, &out), want[0] != '\0');
	cr_expect_str_eq(buf_text(&out), want);
	buf_fini(&out);
}

Test(who, ranks_were_stopped_by_signals_and_in_so_long)
{
	job.stop_ns = 10 * S;
	ranks[0].ended_ns = 90 * S; /* of itself */
	ranks[0].status = ranks[3].status = SIGKILL;
	expect_stopped("");
	ranks[2].after_stop = true;
	ranks[2].ended_ns = 9 * S; /* before, as far as the clocks tell */
	expect_stopped("rank 5 was stopped by xrun (TERM, 0 ms)");
	ranks[2].ended_ns = 12 * S;
	ranks[2].status = SIGTERM;
	ranks[5].after_stop = true;
	ranks[5].ended_ns = 11 * S;
	ranks[5].status = 9 << 8;
	expect_stopped("ranks 5, 8 were stopped by xrun (TERM, 2.0 s)");
	ranks[5].status = SIGKILL;
	expect_stopped(
		"ranks 5, 8 were stopped by xrun (TERM, then KILL, 2.0 s)");
	job.ending = ENDING_INTERRUPTED;
	expect_stopped(
		"ranks 5, 8 were stopped by xrun (INT, then KILL, 2.0 s)");
	job.ending = ENDING_RUNNING;
	job.opt.stop_signal = SIGKILL;
	expect_stopped("ranks 5, 8 were stopped by xrun (KILL, 2.0 s)");
	ranks[2].after_stop = ranks[5].after_stop = false;
	ranks[0].after_stop = true;
	ranks[0].ended_ns = 10 * S;
	job.opt.stop_signal = SIGUSR1;
	expect_stopped("rank 3 was stopped by xrun (USR1, then KILL, 0 ms)");
}

/* --- hung.h ------------------------------------------------------------------ */

static void
expect_hung(bool event, const char *want)
{
	struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_open_object(&j, NULL);
	if (event)
		hung_put_event(&j, &job);
	else
		hung_put(&j, &job);
	json_close_object(&j);
	cr_expect_str_eq(buf_text(&out), want);
	buf_fini(&out);
}

Test(who, ranks_that_hung_are_named_with_the_rule)
{
	static const char *const rules[] = { [HANG_SILENT] = "silent",
		[HANG_UNEVEN] = "uneven",
		[HANG_EVEN] = "even" };
	char want[100];

	expect_hung(false, "{}");
	ranks[0].hung = true;
	expect_hung(false, "{\"hung\":[3]}");
	ranks[7].hung = true;
	expect_hung(false, "{\"hung\":[3,10]}");
	sup.hung.silent_ns = 2 * S + S / 2;
	for (enum hang rule = HANG_SILENT; rule <= HANG_EVEN; rule++) {
		sup.hung.rule = rule;
		snprintf(want, sizeof(want),
			"{\"rule\":\"%s\",\"seconds\":2.5,\"hung\":[3,10]}",
			rules[rule]);
		expect_hung(true, want);
	}
}
