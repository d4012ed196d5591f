/* SPDX-License-Identifier: Apache-2.0 */
/* test_account.c - the account of a job: its output, its cause, its attempts. */
#include <errno.h>

#include "tests/unit/account_rig.h"

TestSuite(account, .init = folder_make, .fini = folder_remove);

/* --- the output ------------------------------------------------------------- */

Test(account, of_a_job_that_went_well_there_is_nothing_to_tell)
{
	make_ranks(3, 0);
	bytes[0] = 5;
	is_account(true, "");
	job_account(&job, true); /* it was told */
	cr_expect_eq(told, 1);
	cr_expect_not(job_account_needs_files(&job));
	ranks[2].status = EXITED(1);
	cr_expect(job_account_needs_files(&job));
	ranks[2].status = 0;
	ranks[1].failed_step = SPAWN_EXEC; /* its status is 0 */
	cr_expect(job_account_needs_files(&job));
}

Test(account, output_that_a_slow_reader_did_not_take_is_counted)
{
	make_ranks(1, 0);
	backlog[0] = 70;
	backlog[1] = 7;
	is_account(true, "");
	sup.delivery_over = true;
	is_account(true,
		"xrun: the reader of the output is slow: 77 bytes are only in the files (logs/k7m2)\n");
	sup.sink_closed[0] = true;
	is_account(true,
		"xrun: the reader of the output is slow: 7 bytes are only in the files (logs/k7m2)\n");
	job.state.attempt = NULL;
	is_account(true,
		"xrun: the reader of the output is slow: 7 bytes are only in the files ()\n");
	sup.sink_closed[1] = true;
	is_account(true, "");
}

Test(account, output_that_came_to_no_file_is_named_with_its_reason)
{
	make_ranks(3, 0);
	share.failed = 9;
	share.sys = ENOSPC;
	ranks[0].unsaved = ranks[2].unsaved = true;
	left = 1;
	is_account(true,
		"xrun: 9 bytes found no room on the disk and are lost\n"
		"xrun: no thread could read what ranks wrote last: it is not shown; it is saved in logs/k7m2\n"
		"xrun: ranks 20, 22: the file system of logs/k7m2 does not answer: what was written last may be lost\n");
	job.opt.logs = false;
	share.failed = 0;
	ranks[0].unsaved = ranks[2].unsaved = false;
	is_account(true,
		"xrun: no thread could read what ranks wrote last: it is not shown; it is lost\n");
}

Test(account, of_eight_ranks_the_bytes_without_room_are_told)
{
	char *end,
		want[1024] =
			"xrun: dropped, because the log file system was full: ";

	make_ranks(RANKS, 0);
	for (uint32_t i = 1; i < 9; i++) {
		dropped[2 * i] = 100 * i;
		dropped[2 * i + 1] = i;
		snprintf(want + strlen(want), 64, "%srank %u: %u bytes",
			i == 1 ? "" : ", ", FIRST + i, 101 * i);
	}
	unseen[1] = 3;
	end = want + strlen(want);
	snprintf(end, 128, "%s",
		"\nxrun: removed by --log-rotate before it was shown: rank 20: 3 bytes\n");
	is_account(true, want);
	unseen[1] = 0;
	dropped[2 * 9] = dropped[2 * 11] = 1;
	snprintf(end, 128, ", and of 2 more\n");
	is_account(true, want);
	sup.too_large = true;
	memset(dropped, 0, sizeof(dropped));
	dropped[3] = 1;
	is_account(true,
		"xrun: dropped, because log files could not grow: rank 21: 1 bytes\n");
}

Test(account, an_input_and_output_that_went_wrong_are_told)
{
	make_ranks(2, 0);
	ranks[1].left_open = true;
	sup.input_sys = EIO;
	is_account(true,
		"xrun: rank 21: a process left behind kept the output open; what it wrote after 2 s is not kept\n"
		"xrun: standard input cannot be read (Input/output error): the ranks saw its end\n");
	/* what was told to stop ends when it likes */
	job.stop_ns = 1;
	is_account(true,
		"xrun: standard input cannot be read (Input/output error): the ranks saw its end\n");
}

/* --- why xrun ended the job ------------------------------------------------- */

Test(account, the_cause_and_who_was_stopped_are_named)
{
	static const struct {
		enum cause cause;
		bool ctrl_c;
		const char *want;
	} rows[] = {
		{ CAUSE_NONE, false, "" },
		{ CAUSE_TIMEOUT, false, "xrun: --timeout reached after 3.0 s" },
		{ CAUSE_HANG, false, "xrun: --hang-timeout" },
		{ CAUSE_SIGNAL, false, "xrun: SIGUSR1" },
		{ CAUSE_SIGNAL, true, "xrun: Ctrl-C" },
		{ CAUSE_RESTART, false, "xrun: restart" },
		{ CAUSE_CLOSED, false, "xrun: the reader of stdout exited" },
	};
	char want[256];

	make_ranks(2, 0);
	be_stopped(1, 15, SIGTERM);
	job.opt.timeout = 3 * NS_PER_S;
	job.cause_signal = SIGUSR1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		job.cause = rows[i].cause;
		job.ctrl_c = rows[i].ctrl_c;
		snprintf(want, sizeof(want), "%s%s", rows[i].want,
			rows[i].want[0] == '\0' ?
				"" :
				": rank 21 was stopped by xrun (TERM, 15 ms)\n");
		is_account(true, want);
		job.opt.quiet = true;
		is_account(true, "");
		job.opt.quiet = false;
	}
}

Test(account, a_timeout_that_waited_for_output_is_told_if_some_is_lost)
{
	make_ranks(2, 0);
	job.opt.timeout = 3 * NS_PER_S;
	job.waited_out = true;
	is_account(true, "");
	share.failed = 1;
	is_account(true,
		"xrun: 1 bytes could not be written to their files (Success) and are lost\n"
		"xrun: --timeout reached after 3.0 s: all ranks had ended; their last output was waited for no longer\n");
	job.waited_out = false;
	is_account(true,
		"xrun: 1 bytes could not be written to their files (Success) and are lost\n");
	share.failed = 0;
	job.cause = CAUSE_TIMEOUT;
	is_account(true,
		"xrun: --timeout reached after 3.0 s: all ranks had ended by themselves\n");
	job.started = 3;
	is_account(true,
		"xrun: --timeout reached after 3.0 s: no rank was ended by it\n");
	job.started = job.deaths = 0;
	is_account(true,
		"xrun: --timeout reached after 3.0 s: no rank was ended by it\n");
}

Test(account, a_failure_of_xrun_is_told_with_q_too)
{
	make_ranks(2, 0);
	be_stopped(0, 15, SIGKILL);
	job.cause = CAUSE_XRUN;
	snprintf(job.cause_text, sizeof(job.cause_text), "no room");
	job.opt.quiet = true;
	is_account(true,
		"xrun: no room\nxrun: rank 20 was stopped by xrun (TERM, then KILL, 15 ms)\n");
	ranks[0].after_stop = false;
	ranks[0].status = 0;
	is_account(true, "xrun: no room\n");
	ranks[0].after_stop = true;
	job.deaths = 0;
	is_account(true, "xrun: no room\n");
}

/* --- the end ---------------------------------------------------------------- */

Test(account, a_long_run_on_a_terminal_has_a_closing_line)
{
	make_ranks(2, 0);
	job.errors_are_tty = true;
	job.begun_ns = 5;
	job.ended_ns = job.begun_ns + 10 * NS_PER_S;
	is_account(true, "xrun: job k7m2: 2 ranks ended well after 10.0 s\n");
	job.ended_ns--;
	is_account(true, "");
	job.ended_ns++;
	job.errors_are_tty = false;
	is_account(true, "");
	job.errors_are_tty = job.opt.quiet = true;
	is_account(true, "");
	job.opt.quiet = false;
	make_ranks(1, 0);
	is_account(true, "xrun: job k7m2: 1 rank ended well after 10.0 s\n");
	job.unshown = true; /* then xrun exits with 125 */
	is_account(true, "");
}

Test(account, verbose_ends_with_what_each_rank_used)
{
	make_ranks(4, 0);
	ranks[0].usage.ru_utime = (struct timeval){ 12, 500000 };
	ranks[0].usage.ru_stime = (struct timeval){ 3, 250000 };
	ranks[0].usage.ru_maxrss = 1536;
	bytes[0] = 700;
	bytes[1] = 7;
	bytes[3] = 8;
	ranks[1].ended_ns = 0;
	ranks[2] = (struct rank){ 0 };
	be_stopped(3, 500, SIGKILL);
	job.opt.verbose = true;
	is_account(true,
		"  rank  exit     wall s    user s     sys s  peak MiB    bytes logged\n"
		"    20     0      1.500    12.500     3.250       1.5             707\n"
		"    21     0      0.000     0.000     0.000       0.0               8\n"
		"    22     -\n"
		"    23   137      2.000     0.000     0.000       0.0               0\n");
}

Test(account, the_next_attempt_is_announced)
{
	make_ranks(1, 0);
	job.opt.restarts = 5;
	job.state.number = 2;
	page.again.due = 1;
	page.again.counted = 1;
	is_account(true, "xrun: restart 1 of 5: attempt 3 begins\n");
	page.again.pause_ns = 2 * NS_PER_S;
	is_account(true, "xrun: restart 1 of 5: attempt 3 begins in 2.0 s\n");
	job.opt.quiet = true;
	is_account(true, "");
	job.cause = CAUSE_RESTART;
	is_account(true, "");
	job.opt.quiet = false;
	is_account(true,
		"xrun: restart: all ranks had ended by themselves\n"
		"xrun: restart, as asked for: attempt 3 begins\n");
}

Test(account, attempts_are_listed_if_none_is_left)
{
	const struct again_past past[] = {
		{ .number = 0,
			.exit_status = 3,
			.culprit = 7,
			.begun_wall = 1,
			.ended_wall = 1 + 2 * NS_PER_S },
		{ .number = 1, .exit_status = 1, .culprit = UINT32_MAX },
	};

	make_ranks(1, 0);
	job.opt.restarts = 1;
	for (size_t i = 0; i < 2; i++)
		again_note(&page.again, &past[i]);
	is_account(true, "");
	page.again.spent = 1;
	is_account(true,
		"xrun: --restarts 1 is used up:\n"
		"  attempt 0: exit 3 after 2.0 s, rank 7 first\n"
		"  attempt 1: exit 1 after 0 ms\n");
	job.opt.restart_window = 60 * NS_PER_S;
	again_note(&page.again, &past[0]);
	is_account(true,
		"xrun: --restarts 1 is used up within 60.0 s:\n"
		"  attempt 0: exit 3 after 2.0 s, rank 7 first\n"
		"  attempt 1: exit 1 after 0 ms\n"
		"  attempt 0: exit 3 after 2.0 s, rank 7 first\n");
}
