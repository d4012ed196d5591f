/* SPDX-License-Identifier: Apache-2.0 */
/* test_hang_watch.c - the looks of --hang-timeout at ranks that are made up. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/hang_rig.h"

#define HEAD "    rank      step  last line      life   CPU  waits in\n"

TestSuite(hang_watch, .fini = fini);

/* --- its life ---------------------------------------------------------------- */

Test(hang_watch, it_is_there_if_it_was_asked_for_and_once)
{
	struct hang_watch *watch;

	job.sup = &sup;
	job.plan.local_size = 2;
	hang_begin(&job);
	cr_expect_null(sup.hang);
	hang_stood(&job, S);
	begin(2);
	watch = sup.hang;
	armed = -1;
	hang_begin(&job);
	cr_expect_eq(sup.hang, watch);
	cr_expect_eq(armed, -1);
	hang_close(&job);
	cr_expect_null(sup.hang);
	cr_expect_str_eq(done, "close ");
	hang_close(&job);
	cr_expect_str_eq(done, "close ");
	done[0] = '\0';
	no_timer = true;
	hang_begin(&job);
	cr_expect_null(sup.hang);
	cr_expect_str_eq(done, "none fail:no memory for --hang-timeout");
}

Test(hang_watch, without_memory_the_job_ends)
{
	begin(2);
	hang_close(&job);
	for (unsigned i = 1; i <= 4; i++) {
		done[0] = '\0';
		armed = -1;
		until_short = i;
		hang_begin(&job);
		until_short = 0;
		cr_expect_null(sup.hang);
		cr_expect_eq(armed, -1);
		cr_expect_str_eq(done,
			i == 1 ? "fail:no memory for --hang-timeout" :
				 "close fail:no memory for --hang-timeout");
	}
}

Test(hang_watch, a_job_that_ends_is_not_looked_at)
{
	begin(1);
	sup.phase = PHASE_DELIVER;
	cr_expect_str_eq(beat(60 * S), "");
	sup.phase = PHASE_RUN;
	job.stop_ns = 1;
	cr_expect_str_eq(beat(60 * S), "");
	cr_expect_eq(armed, -1);
}

/* --- signs of life ----------------------------------------------------------- */

Test(hang_watch, who_shows_no_life_for_so_long_hangs)
{
	begin(3);
	near[0].running = near[2].running = true;
	place[1] = "do_wait";
	place[0] = "0";
	cr_expect_str_eq(beat(9 * S + 300 * MS), "");
	cr_expect_eq(armed, 700 * MS);
	tree[0].running = true;
	cr_expect_str_eq(beat(10 * S - 1), "");
	cr_expect_eq(armed, 1);
	cr_expect_str_eq(beat(10 * S),
		"told:0 "
		"xrun: rank 11 hangs: no output, no progress and no processor time for 10.0 s\n" HEAD
		"  *   11         -         -    10.0 s     0%  do_wait\n"
		"      10         -         -      0 ms     0%  runs\n"
		"      12         -         -      0 ms     0%  -\n"
		"stop:0");
}

Test(hang_watch, what_a_rank_writes_or_tells_is_life)
{
	begin(4);
	near[3].running = true;
	beat(4 * S);
	bytes[1]++;
	tick[1]++;
	ranks[2].told++;
	cr_expect_str_eq(beat(5 * S), "");
	cr_expect_str_eq(beat(14 * S + 999 * MS), "");
	cr_expect_eq(armed, 1 * MS);
	beat(15 * S);
	cr_expect(ranks[0].hung && ranks[1].hung && ranks[2].hung);
	cr_expect_not(ranks[3].hung);
	cr_expect_eq(sup.hung.rule, HANG_SILENT);
	cr_expect_eq(sup.hung.silent_ns, 10 * S);
	cr_expect_not_null(strstr(done,
				   "xrun: ranks 10, 11, 12 hang: no output"),
		"%s", done);
	cr_expect_not_null(strstr(done, "*   10         -    10.0 s    10.0 s"),
		"%s", done);
	cr_expect_not_null(strstr(done, "*   11         -         -    10.0 s"),
		"%s", done);
}

Test(hang_watch, so_is_processor_time_if_it_is_more_than_who_waits_burns)
{
	begin(2);
	near[1].running = true;
	near[0].cpu_ns = 10 * MS + 40 * MS + 1; /* in 4 s */
	cr_expect_str_eq(beat(4 * S), "");
	near[0].cpu_ns += 10 * MS + 20 * MS + 1; /* in 2 s */
	cr_expect_str_eq(beat(6 * S), "");
	cr_expect_str_eq(beat(14 * S), "");
	near[0].cpu_ns += 1 * MS; /* in 9 s */
	cr_expect_str_eq(beat(15 * S), "");
	near[0].cpu_ns += 10 * MS + 99 * MS; /* in 10 s: just not */
	cr_expect_not_null(strstr(beat(16 * S), "told:0 xrun: rank 10 hangs"),
		"%s", done);
	/* 0.11 s in 1 s */
	cr_expect_not_null(strstr(done, "    10.0 s    11%  -\n"), "%s", done);
}

Test(hang_watch, who_was_not_to_be_asked_is_not_judged_by_it)
{
	begin(2);
	near[0].running = near[1].running = gone[0] = true;
	beat(9 * S);
	cr_expect_not_null(strstr(beat(10 * S), "xrun: rank 10 hangs"));
}

/* Each of these holds up rank 0, and whoever waits for it. */
static void
hold(int how, bool on)
{
	near[0].stopped = how == 0 && on;
	ranks[0].full = how == 1 && on;
	waiting[1] = how == 2 && on ? 32 << 10 : (32 << 10) - 1;
	job.state.dir_fd = how >= 3 && on ? -1 : 3;
	room[0] = how != 3 ? POLLOUT : 0;
	room[1] = how != 4 ? POLLOUT : 0;
}

Test(hang_watch, who_is_held_up_excuses_all_ranks)
{
	begin(2);
	polled = 1;
	for (int how = 0; how < 5; how++) {
		int64_t at = 100 * S * how;

		hold(how, true);
		cr_expect_str_eq(beat(at + 20 * S), "", "%d: %s", how, done);
		hold(how, false);
		cr_expect_str_eq(beat(at + 29 * S + 999 * MS), "", "%d: %s",
			how, done);
		cr_expect_eq(armed, 1 * MS, "%d", how);
		cr_expect_not_null(strstr(beat(at + 30 * S), "ranks 10, 11"),
			"%d: %s", how, done);
	}
	job.share->slot[1].pipe = -1; /* of its stdout alone, then */
	waiting[0] = 32 << 10;
	cr_expect_str_eq(beat(500 * S), "", "%s", done);
	waiting[0] = 0;
	hold(5, true);
	beat(510 * S);
	cr_expect_not_null(strstr(done, "ranks 10, 11"), "%s", done);
	room[0] = 0;
	polled = -1; /* not to be known */
	beat(511 * S);
	cr_expect_not_null(strstr(done, "ranks 10, 11"), "%s", done);
}

Test(hang_watch, who_is_traced_excuses_all_when_they_would_hang)
{
	begin(3);
	ranks[2].pidfd = -1; /* its number is another's now */
	status[2] = "Name:\tx\nTracerPid:\t9\n";
	status[1] = "Name:\tx\nTracerPid:\t7\nUid:\t0\n";
	near[0].running = true;
	cr_expect_str_eq(beat(9 * S), "");
	cr_expect_str_eq(beat(10 * S), "");
	cr_expect_eq(sup.hung.rule, HANG_NO);
	status[1] = "Name:\tx\nTracerPid:\t0\nUid:\t7\n";
	cr_expect_str_eq(beat(19 * S), "");
	cr_expect_not_null(strstr(beat(20 * S), "rank 11 hangs"), "%s", done);
}

/* --- threads that may have children ------------------------------------------- */

Test(hang_watch,
	what_other_threads_started_is_asked_in_the_middle_and_at_the_end)
{
	begin(2);
	near[1].running = true;
	near[0].others = tree[0].others = 3;
	cr_expect_str_eq(beat(5 * S - 1), "");
	cr_expect_eq(armed, 1 * S);
	cr_expect_str_eq(beat(5 * S), "tree:0 ");
	cr_expect_str_eq(beat(6 * S), "");
	cr_expect_str_eq(beat(9 * S + 500 * MS), "");
	cr_expect_eq(armed, 500 * MS);
	tree[0].cpu_ns = 10 * MS + 50 * MS; /* in 5 s: just not */
	cr_expect_not_null(strstr(beat(10 * S), "tree:0 told:0 xrun: rank 10"),
		"%s", done);
}

Test(hang_watch, what_they_burn_is_life)
{
	begin(2);
	near[1].running = true;
	near[0].others = tree[0].others = 3;
	cr_expect_str_eq(beat(5 * S), "tree:0 ");
	tree[0].cpu_ns = 10 * MS + 50 * MS + 1;
	cr_expect_str_eq(beat(10 * S), "tree:0 ");
	cr_expect_str_eq(beat(15 * S - 1), "");
	tree[0].running = true;
	cr_expect_str_eq(beat(15 * S), "tree:0 ");
	tree[0].running = false;
	cr_expect_str_eq(beat(20 * S - 1), "");
	cr_expect_str_eq(beat(20 * S), "tree:0 ");
}

Test(hang_watch, between_two_questions_is_a_quarter_of_the_time)
{
	begin(2);
	near[1].running = true;
	near[0].others = tree[0].others = 3;
	cr_expect_str_eq(beat(9 * S), "tree:0 ");
	cr_expect_str_eq(beat(10 * S), "");
	cr_expect_eq(armed, 1 * S);
	cr_expect_str_eq(beat(11 * S), "");
	cr_expect_eq(armed, 500 * MS);
	cr_expect_str_eq(beat(11 * S + 500 * MS - 1), "");
	cr_expect_eq(armed, 1);
	cr_expect_not_null(strstr(beat(11 * S + 500 * MS),
				   "tree:0 told:0 xrun: rank 10 hangs"),
		"%s", done);
}

Test(hang_watch, so_many_threads_are_asked_in_one_look)
{
	begin(3);
	for (int r = 0; r < 3; r++) {
		near[r].others = tree[r].others = 3;
		tree[r].asked = 512;
	}
	cr_expect_str_eq(beat(6 * S), "tree:0 tree:1 ");
	cr_expect_eq(armed, 10 * MS);
	tree[0].asked = 1023;
	cr_expect_str_eq(beat(6 * S + 10 * MS), "tree:2 ");
	cr_expect_eq(armed, 1 * S);
	cr_expect_str_eq(beat(9 * S), "");
	cr_expect_str_eq(beat(10 * S), "tree:0 tree:1 ");
	cr_expect_eq(armed, 10 * MS);
	cr_expect_not_null(strstr(beat(10 * S + 10 * MS),
				   "tree:2 told:0 xrun: ranks 10, 11, 12 hang"),
		"%s", done);
}

/* --- standing still ----------------------------------------------------------- */

Test(hang_watch, when_xrun_stood_still_the_ranks_may_have_too)
{
	begin(2);
	near[1].running = true;
	beat(9 * S);
	timer.late = 1 * S - 1;
	sup.hung.rule = HANG_NO;
	timer.late = 1 * S;
	cr_expect_str_eq(beat(10 * S), "");
	timer.late = 0;
	cr_expect_eq(armed, 1 * S);
	hang_stood(&job, 5 * S);
	timer.late = 1 * S - 1; /* scheduling */
	cr_expect_str_eq(beat(16 * S - 1), "");
	cr_expect_eq(armed, 1);
	cr_expect_not_null(strstr(beat(16 * S), "rank 10 hangs"), "%s", done);
}

/* --- progress ----------------------------------------------------------------- */

Test(hang_watch, where_all_tell_their_steps_who_is_behind_hangs)
{
	begin(3);
	for (int r = 0; r < 3; r++) {
		near[r].running = tree[r].running = true;
		ranks[r].step = r == 1 ? 6 : 7;
		ranks[r].told = r == 1 ? 9 : 8;
	}
	cr_expect_str_eq(beat(1 * S), "");
	cr_expect_str_eq(beat(11 * S - 1), "");
	cr_expect_eq(armed, 1);
	cr_expect_str_eq(beat(11 * S),
		"told:0 "
		"xrun: rank 11 hangs: behind the others, and told of no progress for 10.0 s\n" HEAD
		"  *   11         6         -      0 ms     0%  runs\n"
		"      10         7         -      0 ms     0%  runs\n"
		"      12         7         -      0 ms     0%  runs\n"
		"stop:0");
	cr_expect_eq(sup.hung.rule, HANG_UNEVEN);
}

Test(hang_watch, where_one_tells_none_reports_count)
{
	begin(2);
	for (int r = 0; r < 2; r++)
		near[r].running = true;
	ranks[0].step = 7;
	ranks[0].told = ranks[1].told = 2;
	tick[1] = 3;
	beat(1 * S);
	beat(11 * S);
	cr_expect_eq(sup.hung.rule, HANG_UNEVEN);
	cr_expect(ranks[0].hung);
	cr_expect_not(ranks[1].hung);
}

Test(hang_watch, all_that_are_as_far_hang_after_twice_the_time)
{
	begin(2);
	for (int r = 0; r < 2; r++) {
		near[r].running = true;
		ranks[r].step = 0;
		ranks[r].told = 1;
	}
	beat(1 * S);
	cr_expect_str_eq(beat(20 * S), "");
	place[0] = place[1] = "pipe_read";
	cr_expect_str_eq(beat(21 * S),
		"told:0 xrun: ranks 10, 11 hang: nobody told of progress for 20.0 s\n" HEAD
		"  *   10         0         -      0 ms     0%  pipe_read\n"
		"  *   11         0         -      0 ms     0%  pipe_read\n"
		"stop:0");
	cr_expect_eq(sup.hung.rule, HANG_EVEN);
}

/* --- the words ---------------------------------------------------------------- */

Test(hang_watch, of_all_that_hang_who_sleeps_elsewhere_comes_first)
{
	begin(4);
	ranks[3].pidfd = -1; /* has ended */
	ranks[3].step = 5;
	place[0] = place[1] = "pipe_read";
	place[2] = "hrtimer";
	beat(9 * S);
	cr_expect_str_eq(beat(10 * S),
		"told:0 "
		"xrun: ranks 10, 11, 12 hang: no output, no progress and no processor time for 10.0 s\n" HEAD
		"  *   12         -         -    10.0 s     0%  hrtimer\n"
		"      10         -         -    10.0 s     0%  pipe_read\n"
		"      11         -         -    10.0 s     0%  pipe_read\n"
		"stop:0");
}

Test(hang_watch, stacks_come_before_the_table_and_say_who_differs)
{
	begin(3);
	place[0] = place[1] = "pipe_read";
	place[2] = "hrtimer";
	job.opt.stacks_on = "hang";
	has_stacks = true;
	beat(9 * S);
	beat(10 * S);
	cr_expect_not_null(strstr(done, "for 10.0 s\nstacks "));
	cr_expect_null(strstr(done, "stop"));
	done[0] = '\0';
	stacks_end(&job, true, NULL, "rank 11 differs: main\n");
	cr_expect_not_null(strstr(done, HEAD "  *   11  "), "%s", done);
	cr_expect_not_null(strstr(done, "pipe_read\n      10  "), "%s", done);
	done[0] = '\0';
	stacks_end(&job, true, NULL, "ranks 10-12: main\n"); /* all are there */
	cr_expect_not_null(strstr(done, HEAD "  *   10  "), "%s", done);
	cr_expect_not_null(strstr(done, "  *   12  "), "%s", done);
	done[0] = '\0';
	job.stop_ns = 1;
	stacks_end(&job, true, NULL, "");
	cr_expect_null(strstr(done, "stop"));
	done[0] = '\0';
	job.stop_ns = 0;
	sup.phase = PHASE_DELIVER;
	stacks_end(&job, true, NULL, "");
	cr_expect_str_eq(done, "");
	sup.phase = PHASE_RUN;
	hang_close(&job);
	done[0] = '\0';
	stacks_end(&job, true, NULL, "");
	cr_expect_str_eq(done, "stop:0");
}

Test(hang_watch, with_quiet_it_only_ends_the_job)
{
	begin(2);
	job.opt.quiet = true;
	job.opt.stacks_on = "hang"; /* nobody can take them */
	beat(9 * S);
	cr_expect_str_eq(beat(10 * S), "told:0 stacks stop:0");
}

Test(hang_watch, the_table_has_so_many_rows)
{
	unsigned rows = 0;

	begin(19);
	ranks[4].pidfd = -1;
	near[17].running = true;
	beat(9 * S);
	beat(10 * S);
	for (const char *p = done; (p = strstr(p, "\n  ")) != NULL; p++)
		rows++;
	cr_expect_eq(rows, 1 + 16 + 1, "%u: %s", rows, done);
	cr_expect_not_null(strstr(done, "    and 2 ranks more\nstop:0"), "%s",
		done);
	cr_expect_null(strstr(done, "      14  "), "%s", done);
	hang_close(&job);
	free(job.share);
	memset(near, 0, sizeof(near));
	begin(16);
	ranks[4].pidfd = 50;
	beat(9 * S);
	cr_expect_null(strstr(beat(10 * S), "more"));
}
