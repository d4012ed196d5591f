/* SPDX-License-Identifier: Apache-2.0 */
/* test_outcome.c - what the end of a job means. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/job/outcome.h"
#include "tests/unit/short_memory.h"

#define MOST    4
#define CODE(n) ((n) << 8) /* of waitpid(2): ended with exit status n */
#define RULES   3

/* How the ranks of a job ended, and what that means under each rule. */
struct row {
	const char *claim;
	uint32_t n, culprit, failed;
	int status[RULES]; /* first, max, rank0 */
	struct rank rank[MOST];
};

#define NOT_BEGUN(e) .failed_step = SPAWN_EXEC, .failed_sys = (e)
#define STOPPED      .after_stop = true, .status = SIGTERM

static const struct row rows[] = {
	{ "all well", 2, OUTCOME_NOBODY, 0, { 0, 0, 0 },
		{ { .death = 1 }, { .death = 2 } } },
	{ "one failed", 3, 1, 1, { 3, 3, 0 },
		{ { .death = 2 }, { .death = 1, .status = CODE(3) },
			{ .death = 3 } } },
	{ "rank 0 failed", 2, 0, 1, { 9, 9, 9 },
		{ { .death = 1, .status = CODE(9) }, { .death = 2 } } },
	{ "the first is not the worst", 3, 2, 2, { 2, 255, 0 },
		{ { .death = 3 }, { .death = 2, .status = CODE(255) },
			{ .death = 1, .status = CODE(2) } } },
	{ "ended by a signal", 2, 1, 1, { 139, 139, 0 },
		{ { .death = 2 }, { .death = 1, .status = SIGSEGV | 0x80 } } },
	{ "what xrun stopped counts for nothing", 3, 1, 1, { 5, 5, 5 },
		{ { .death = 2, STOPPED }, { .death = 1, .status = CODE(5) },
			{ .death = 3, STOPPED } } },
	{ "all were stopped", 2, OUTCOME_NOBODY, 0, { 0, 0, 0 },
		{ { .death = 1, STOPPED }, { .death = 2, STOPPED } } },
	{ "stopped, and ended well", 2, OUTCOME_NOBODY, 0, { 0, 0, 0 },
		{ { .death = 1, .after_stop = true }, { .death = 2 } } },
	{ "the program is not there", 2, 0, 1, { 127, 127, 127 },
		{ { NOT_BEGUN(ENOENT) }, { 0 } } },
	{ "the program may not be run", 2, 0, 1, { 126, 126, 126 },
		{ { NOT_BEGUN(EACCES) }, { 0 } } },
	{ "the program is none", 1, 0, 1, { 126, 126, 126 },
		{ { NOT_BEGUN(ENOEXEC) } } },
	{ "not started comes before a death", 2, 1, 2, { 126, 126, 1 },
		{ { .death = 1, .status = CODE(1) }, { NOT_BEGUN(E2BIG) } } },
	{ "the others were never begun", 3, 0, 1, { 1, 1, 1 },
		{ { .death = 1, .status = CODE(1) }, { 0 }, { 0 } } },
	{ "a pipe was broken by another", 2, 1, 2, { 4, 141, 141 },
		{ { .death = 1, .status = SIGPIPE },
			{ .death = 2,
				.status = CODE(4),
				.was_exiting = true } } },
};

/* What xrun does to a job goes before what the ranks say. */
static const struct {
	enum cause cause;
	int signal, status; /* status -1: of the ranks */
	const char *reason; /* NULL: of the ranks */
} causes[] = {
	{ CAUSE_NONE, 0, -1, NULL },
	{ CAUSE_FAILURE, 0, -1, NULL },
	{ CAUSE_TIMEOUT, 0, 124, "timeout" },
	{ CAUSE_SIGNAL, SIGINT, 130, "signal" },
	{ CAUSE_SIGNAL, SIGTERM, 143, "signal" },
	{ CAUSE_SIGNAL, SIGHUP, 129, "signal" },
	{ CAUSE_CLOSED, 0, 141, "stdout closed" },
	{ CAUSE_XRUN, 0, 125, "xrun" },
};

static const enum exit_rule rules[RULES] = { EXIT_FIRST, EXIT_MAX, EXIT_RANK0 };

static void
try(const struct row *row, size_t cause, size_t rule)
{
	struct rank rank[MOST];
	struct job job = {
		.rank = rank,
		.plan.local_size = row->n,
		.cause = causes[cause].cause,
		.cause_signal = causes[cause].signal,
		.opt.exit_code = rules[rule],
	};
	const char *reason = causes[cause].reason;
	int status = causes[cause].status;
	struct outcome o;

	memcpy(rank, row->rank, sizeof(rank));
	if (status == -1)
		status = row->status[rule];
	if (reason == NULL)
		reason = row->culprit == OUTCOME_NOBODY ? "ok" : "failure";
	o = outcome_of(&job);
	cr_expect_eq(o.exit_status, status,
		"%s, cause %zu, rule %zu: %d, not %d", row->claim, cause, rule,
		o.exit_status, status);
	cr_expect_eq(o.culprit, row->culprit, "%s: rank %d", row->claim,
		(int)o.culprit);
	cr_expect_eq(o.failed, row->failed, "%s: %u", row->claim, o.failed);
	cr_expect_str_eq(o.reason, reason, "%s: %s", row->claim, o.reason);
	cr_expect_eq(memcmp(rank, row->rank, sizeof(rank)), 0);
}

Test(outcome, every_end_under_every_cause_and_rule)
{
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (size_t c = 0; c < sizeof(causes) / sizeof(causes[0]); c++)
			for (size_t k = 0; k < RULES; k++)
				try(&rows[r], c, k);
}

/* What it means that bytes came to no file, by what the job was else. */
Test(outcome, output_that_is_lost_is_no_success)
{
	struct raw_share *share = raw_share_new(1, 0, -1);
	struct rank rank = { .death = 1 };
	struct job job = { .rank = &rank, .plan.local_size = 1 };

	cr_assert_not_null(share);
	job.share = share;
	job.waited_out = true;
	cr_expect_eq(outcome_of(&job).exit_status, 0);
	raw_lose(share, 4, ENOSPC);
	cr_expect_eq(outcome_lost(&job), 4);
	cr_expect_eq(outcome_of(&job).exit_status, EXIT_TIMEOUT);
	cr_expect_str_eq(outcome_of(&job).reason, "timeout");
	job.waited_out = false;
	cr_expect_eq(outcome_of(&job).exit_status, EXIT_XRUN);
	cr_expect_str_eq(outcome_of(&job).reason, "xrun");
	rank.status = CODE(3);
	cr_expect_eq(outcome_of(&job).exit_status, 3);
	rank.status = 0;
	job.cause = CAUSE_SIGNAL;
	job.cause_signal = SIGINT;
	cr_expect_eq(outcome_of(&job).exit_status, 130);
}

Test(outcome, a_file_that_is_not_complete_is_no_success)
{
	struct rank rank = { .death = 1 };
	struct job job = { .rank = &rank,
		.plan.local_size = 1,
		.unwritten = "--events: full: No space left on device" };

	cr_expect_eq(outcome_of(&job).exit_status, EXIT_XRUN);
	cr_expect_str_eq(outcome_of(&job).reason, "xrun");
	rank.status = CODE(3);
	cr_expect_eq(outcome_of(&job).exit_status, 3);
	cr_expect_str_eq(outcome_of(&job).reason, "failure");
	rank.status = 0;
	job.cause = CAUSE_TIMEOUT;
	cr_expect_eq(outcome_of(&job).exit_status, EXIT_TIMEOUT);
	cr_expect_str_eq(outcome_of(&job).reason, "timeout");
}

Test(outcome, a_rank_ends_as_a_shell_would_say_it)
{
	struct rank r = { .death = 1 };

	for (int code = 0; code < 256; code++) {
		r.status = CODE(code);
		cr_expect_eq(outcome_rank_status(&r), code);
	}
	for (int sig = 1; sig < 65; sig++) {
		r.status = sig;
		cr_expect_eq(outcome_rank_status(&r), 128 + sig);
		r.status = sig | 0x80; /* with a core */
		cr_expect_eq(outcome_rank_status(&r), 128 + sig);
	}
}

Test(outcome, exit_statuses_are_those_of_the_manual)
{
	cr_expect_eq(EXIT_HANG, 121);
	cr_expect_eq(EXIT_TIMEOUT, 124);
	cr_expect_eq(EXIT_XRUN, 125);
	cr_expect_eq(EXIT_CANNOT, 126);
	cr_expect_eq(EXIT_NOT_FOUND, 127);
	cr_expect_eq(EXIT_CLOSED, 141);
}

Test(outcome, a_rank_that_was_never_started_is_unborn)
{
	cr_expect(outcome_is_unborn(&(struct rank){ .pid = 0 }));
	cr_expect(!outcome_is_unborn(&(struct rank){ .pid = 5 }));
	cr_expect(!outcome_is_unborn(&(struct rank){ NOT_BEGUN(ENOENT) }));
}

/* Its evidence does not fit into memory. */
static uint32_t
culprit_without_memory(struct rank rank[3])
{
	struct job job = { .plan.local_size = 3, .rank = rank };
	uint32_t culprit;

	until_short = 1;
	was_short = false;
	culprit = outcome_of(&job).culprit;
	until_short = 0;
	cr_expect(was_short);
	return culprit;
}

Test(outcome, without_memory_the_first_that_failed_of_itself_is_the_culprit)
{
	struct rank rank[3] = { { .death = 3, .status = CODE(1) },
		{ .death = 2, .status = CODE(1) },
		{ .death = 1, .status = CODE(1), .after_stop = true } };

	cr_expect_eq(culprit_without_memory(rank), 1);
	rank[0].death = 2;
	cr_expect_eq(culprit_without_memory(rank), 0);
	rank[0].status = 0;
	cr_expect_eq(culprit_without_memory(rank), 1);
	rank[1].after_stop = true;
	cr_expect_eq(culprit_without_memory(rank), OUTCOME_NOBODY);
}

Test(outcome, a_rank_that_is_lost_is_no_end_of_its_own)
{
	struct rank rank[2] = { { .death = 1 }, { .death = 1, .lost = true } };
	struct job job = { .plan.local_size = 2, .rank = rank };

	cr_expect_eq(outcome_of(&job).exit_status, EXIT_INFRA);
	job.cause = CAUSE_TIMEOUT;
	cr_expect_eq(outcome_of(&job).exit_status, EXIT_INFRA);
	rank[1].lost = false;
	cr_expect_eq(outcome_of(&job).exit_status, EXIT_TIMEOUT);
	job.cause = CAUSE_RESTART;
	cr_expect_str_eq(outcome_of(&job).reason, "restart");
	cr_expect_eq(outcome_of(&job).exit_status, 0);
	job.cause = CAUSE_HANG;
	cr_expect_str_eq(outcome_of(&job).reason, "hang");
	cr_expect_eq(outcome_of(&job).exit_status, EXIT_HANG);
}
