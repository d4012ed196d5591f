/* SPDX-License-Identifier: Apache-2.0 */
/* test_stop.c - how a job is brought to its end: what is done, and until when. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/screen.h"
#include "launcher/tell/stacks.h"
#include "proc/descend.h"
#include "proc/immune.h"
#include "tests/unit/noted.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define BEGIN (100 * S) /* of the clock */

struct timer {
	bool armed;
	int64_t ns;
};

static struct timer patience, immune, start;
static struct rank ranks[4];
static struct sup sup = { .patience = &patience,
	.immune = &immune,
	.start = &start };
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.plan = { .size = 14, .first = 10, .local_size = 4 },
	.opt = { .grace = 10 * S, .stop_signal = SIGUSR2 },
	.state = { .dir_fd = -1 },
};

/* --- what is done ----------------------------------------------------------- */

static int64_t now;
static bool ranks_gone;
static pid_t immune_pid;

int64_t __wrap_clock_now(void);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
bool __wrap_timer_armed(const struct timer *timer);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_step_rank(struct job *job_, uint32_t r, enum rank_event event);
void __wrap_step_drop(struct job *job_, uint32_t stream);
void __wrap_step_signal_all(struct job *job_, int sig);
void __wrap_screen_interrupt(struct job *job_);
void __wrap_screen_interrupt_again(struct job *job_);
void __wrap_stacks_cancel(struct job *job_);
void __wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg);
bool __wrap_sweep_due(const struct job *job_);
void __wrap_finish_if_over(struct job *job_);
void __wrap_children_remove(struct children *children, int pidfd);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *out);
bool __wrap_immune_session(pid_t leader, int sig);

int64_t
__wrap_clock_now(void)
{
	return now;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	*timer = (struct timer){ true, ns };
}

bool
__wrap_timer_armed(const struct timer *timer)
{
	return timer->armed;
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

void
__wrap_step_rank(struct job *job_, uint32_t r, enum rank_event event)
{
	cr_expect_eq(job_, &job);
	note("%u:%s ", r, rank_event_name(event));
}

void
__wrap_step_drop(struct job *job_, uint32_t stream)
{
	cr_expect_eq(job_, &job);
	note("drop:%u ", stream);
}

void
__wrap_step_signal_all(struct job *job_, int sig)
{
	cr_expect_eq(job_, &job);
	note("all:%d ", sig);
}

void
__wrap_screen_interrupt(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("screen ");
}

void
__wrap_screen_interrupt_again(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("again ");
}

void
__wrap_stacks_cancel(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("cancel ");
}

void
__wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg)
{
	(void)bus;
	cr_expect_eq(event, BUS_JOB_STOP);
	cr_expect_eq(arg, 0);
	note("bus ");
}

bool
__wrap_sweep_due(const struct job *job_)
{
	cr_expect_eq(job_, &job);
	return ranks_gone;
}

void
__wrap_finish_if_over(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("finish ");
}

void
__wrap_children_remove(struct children *children, int pidfd)
{
	(void)children;
	cr_expect_neq(fcntl(pidfd, F_GETFD), -1);
	note("remove ");
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *out)
{
	if (pid != 101)
		return false;
	out->state = 'D';
	return true;
}

bool
__wrap_immune_session(pid_t leader, int sig)
{
	cr_expect_eq(sig, SIGUSR2);
	return leader == immune_pid;
}

/* Two ranks live, one is dead, one was never started. */
static void
begin(void)
{
	now = BEGIN;
	for (uint32_t r = 0; r < 4; r++)
		ranks[r] = (struct rank){ .pid = r < 3 ? 100 + (pid_t)r : 0,
			.pidfd = -1,
			.state = RANK_RUNNING };
	ranks[0].pidfd = ranks[1].pidfd = 1000;
	ranks[2].state = RANK_ENDED;
	ranks[3].state = RANK_DONE;
}

TestSuite(stop, .init = begin);

static void
is_done(const char *want)
{
	cr_expect_str_eq(done, want, "got:  %s\nwant: %s", done, want);
	done[0] = '\0';
}

static void
is_armed(const struct timer *timer, int64_t ns)
{
	cr_expect(timer->armed);
	cr_expect_eq(timer->ns, ns, "%lld", (long long)timer->ns);
}

#define ALL(what) "0:" what " 1:" what " 2:" what " 3:" what " "

/* --- the time that is left -------------------------------------------------- */

Test(stop, a_deadline_is_grace_from_the_first_word)
{
	stop_bound(&job);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	now += S;
	stop_bound(&job);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	cr_expect_eq(stop_seconds(&job), 9.0 + 6.0);
}

/* A quarter of the grace is the readers', between 0.1 s and 0.5 s. */
Test(stop, the_time_for_readers_has_a_least)
{
	static const struct {
		int64_t grace, least;
	} rows[] = { { 0, 100 * MS }, { 400 * MS, 100 * MS },
		{ 404 * MS, 101 * MS }, { 1996 * MS, 499 * MS },
		{ 2 * S, 500 * MS }, { 10 * S, 500 * MS } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t least = rows[i].least;

		job.opt.grace = rows[i].grace;
		sup.until_ns = BEGIN + 3 * least;
		cr_expect_eq(stop_left(&job, true), 3 * least);
		cr_expect_eq(stop_left(&job, false), 2 * least);
		sup.until_ns = BEGIN + least;
		cr_expect_eq(stop_left(&job, true), least);
		cr_expect_eq(stop_left(&job, false), least);
		sup.until_ns = BEGIN - 20 * S;
		cr_expect_eq(stop_left(&job, true), least);
		cr_expect_eq(stop_left(&job, false), least);
	}
}

Test(stop, a_disk_has_a_second_past_the_deadline)
{
	cr_expect_eq(stop_within(&job, 5 * S), 5 * S);
	sup.until_ns = BEGIN + 6 * S;
	cr_expect_eq(stop_within(&job, 5 * S), 5 * S);
	cr_expect_eq(stop_within(&job, INT64_MAX), 6 * S);
	sup.until_ns = BEGIN + 4 * S;
	cr_expect_eq(stop_within(&job, 5 * S), 4 * S);
	sup.until_ns = BEGIN + S / 2;
	cr_expect_eq(stop_within(&job, 5 * S), S);
	cr_expect_eq(stop_within(&job, S / 4), S / 4);
	sup.until_ns = BEGIN - S;
	cr_expect_eq(stop_within(&job, 5 * S), S);
}

/* --- down the ladder -------------------------------------------------------- */

Test(stop, who_is_told_to_end_has_the_grace_and_then_is_killed)
{
	ranks[0].pidfd = ranks[1].pidfd = -1;
	stop_by_signal(&job, SIGHUP);
	is_done("cancel bus " ALL("stop"));
	is_armed(&patience, 10 * S);
	is_armed(&immune, S / 2);
	cr_expect_not(start.armed, "no rank is to come");
	cr_expect_eq(sup.grace_ns, BEGIN + 10 * S);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	cr_expect_eq(job.cause, CAUSE_SIGNAL);
	cr_expect_eq(job.cause_signal, SIGHUP);
	cr_expect_eq(job.stop_ns, BEGIN);
	cr_expect_eq(job.ending, ENDING_STOPPING);
	cr_expect(sup.told && sup.final && !job.ctrl_c);
	now += S;
	stop_by_signal(&job, SIGTERM);
	is_done("");
	cr_expect_eq(job.cause_signal, SIGHUP);
	cr_expect_eq(job.stop_ns, BEGIN);
	stop_now(&job);
	is_done(ALL("kill") "finish ");
	is_armed(&patience, 30 * S);
	stop_now(&job);
	is_done("finish ");
	cr_expect_eq(sup.stuck, 0);
}

Test(stop, ranks_to_come_are_settled_at_once)
{
	start = (struct timer){ true, S };
	stop_job(&job, CAUSE_TIMEOUT);
	is_armed(&start, 0);
}

Test(stop, who_is_not_killed_is_named_and_left)
{
	job.ending = ENDING_KILLED;
	ranks[0].pidfd = dup(1);
	ranks[1].pidfd = dup(1);
	stop_now(&job);
	is_done("[xrun: rank 10 (pid 100, state ?) cannot be ended, not even with SIGKILL, and is left; look at: cat /proc/100/wchan /proc/100/stack] "
		"remove 0:lost "
		"[xrun: rank 11 (pid 101, state D) cannot be ended, not even with SIGKILL, and is left; look at: cat /proc/101/wchan /proc/101/stack] "
		"remove 1:lost finish ");
	cr_expect_eq(sup.stuck, 2);
	cr_expect(ranks[0].lost && ranks[1].lost && !ranks[2].lost);
	cr_expect_eq(ranks[0].pidfd, -1);
}

Test(stop, the_descriptor_of_who_is_left_is_closed)
{
	int fd = ranks[0].pidfd = dup(1);

	ranks[1].pidfd = -1;
	job.ending = ENDING_KILLED;
	stop_now(&job);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

Test(stop, a_failure_ends_the_ranks_and_bounds_no_reader)
{
	stop_job(&job, CAUSE_FAILURE);
	is_done("cancel bus " ALL("stop"));
	cr_expect_eq(job.cause, CAUSE_FAILURE);
	cr_expect_not(sup.told);
	cr_expect_not(sup.final);
	cr_expect_eq(sup.until_ns, 0);
	is_armed(&patience, 10 * S);
	/* And then somebody does not want to wait. */
	now += S;
	stop_by_signal(&job, SIGTERM);
	is_done("");
	cr_expect(sup.told && sup.final);
	cr_expect_eq(job.cause, CAUSE_FAILURE);
	cr_expect_eq(sup.until_ns, BEGIN + 11 * S);
	is_armed(&patience, 10 * S);
}

Test(stop, a_restart_gives_way_to_who_wants_none)
{
	stop_job(&job, CAUSE_RESTART);
	cr_expect_not(sup.final);
	stop_job(&job, CAUSE_HANG);
	cr_expect_eq(job.cause, CAUSE_RESTART);
	cr_expect_not(sup.final);
	now += S;
	stop_fail(&job, "no %s", "memory");
	cr_expect_eq(job.cause, CAUSE_XRUN);
	cr_expect_str_eq(job.cause_text, "no memory");
	cr_expect_eq(job.stop_ns, BEGIN, "the first stop");
	cr_expect(sup.final);
	stop_fail(&job, "other");
	cr_expect_str_eq(job.cause_text, "no memory");
	is_done("cancel bus " ALL("stop") "cancel bus ");
}

Test(stop, ctrl_c_interrupts_then_stops_then_kills)
{
	stop_by_ctrl_c(&job);
	is_done("cancel bus screen all:2 ");
	cr_expect(job.ctrl_c && sup.told && sup.final);
	cr_expect_eq(job.cause, CAUSE_SIGNAL);
	cr_expect_eq(job.cause_signal, SIGINT);
	cr_expect_eq(sup.until_ns, 0, "the ranks have all the time");
	cr_expect_not(patience.armed);
	now += S;
	stop_by_ctrl_c(&job);
	is_done("again " ALL("stop"));
	is_armed(&patience, 10 * S);
	cr_expect_eq(sup.until_ns, BEGIN + 11 * S);
	stop_by_ctrl_c(&job);
	is_done("again " ALL("kill") "finish ");
	is_armed(&patience, 30 * S);
}

Test(stop, ctrl_c_asks_first_where_that_is_wanted)
{
	job.opt.interrupt = INTERRUPT_ASK;
	stop_by_ctrl_c(&job);
	is_done("screen ");
	cr_expect_eq(job.cause, CAUSE_NONE);
	cr_expect_not(job.ctrl_c);
	cr_expect_not(sup.told);
	stop_by_ctrl_c(&job);
	is_done("cancel bus again " ALL("stop"));
	cr_expect(job.ctrl_c && sup.told);
}

Test(stop, ctrl_c_is_no_cause_behind_another)
{
	stop_job(&job, CAUSE_FAILURE);
	stop_by_ctrl_c(&job);
	cr_expect_not(job.ctrl_c);
	cr_expect_eq(job.cause, CAUSE_FAILURE);
}

/* --- ranks are gone, and readers or what they left are not ------------------ */

Test(stop, patience_begins_for_what_outlives_the_ranks)
{
	stop_waiting(&job);
	cr_expect(sup.told);
	cr_expect_not(patience.armed, "ranks live");
	cr_expect_eq(sup.until_ns, 0, "nobody is stopped");
	ranks_gone = true;
	sup.phase = PHASE_DELIVER;
	stop_waiting(&job);
	cr_expect_not(patience.armed);
	sup.phase = PHASE_RUN;
	patience = (struct timer){ true, 3 * S };
	stop_waiting(&job);
	is_armed(&patience, 3 * S);
	patience.armed = false;
	stop_waiting(&job);
	is_armed(&patience, 10 * S);
	job.ending = ENDING_STOPPING;
	stop_waiting(&job);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
}

Test(stop, pipes_of_the_dead_are_given_up)
{
	job.state.dir_fd = 5;
	stop_output(&job);
	is_done("drop:4 drop:5 drop:4 drop:5 finish ");
	cr_expect(sup.output_dropped);
	is_armed(&patience, 5 * S);
	cr_expect_not(ranks[2].unsaved);
	patience.armed = false;
	stop_output(&job);
	is_done("2:lost drop:4 drop:5 drop:4 drop:5 finish ");
	cr_expect(ranks[2].unsaved && !ranks[1].unsaved);
	cr_expect_not(patience.armed);
}

Test(stop, a_near_deadline_leaves_files_less_time)
{
	job.state.dir_fd = 5;
	sup.until_ns = BEGIN + 3 * S;
	stop_output(&job);
	is_armed(&patience, 3 * S);
}

Test(stop, without_files_pipes_of_the_dead_are_lost_at_once)
{
	stop_output(&job);
	is_done("2:lost finish ");
	cr_expect_not(ranks[2].unsaved);
	cr_expect_not(patience.armed);
	cr_expect(sup.output_dropped);
}

/* --- ranks that ask for more time ------------------------------------------- */

/* Ranks have until BEGIN + 10 s. */
static void
stopping(void)
{
	stop_by_signal(&job, SIGTERM);
	done[0] = '\0';
	patience.ns = -1;
}

Test(stop, who_asks_for_time_has_it)
{
	stopping();
	now += 2 * S;
	stop_later(&job, 1, 8);
	is_done("");
	is_armed(&patience, -1);
	stop_later(&job, 1, 8.5);
	is_done("[xrun: rank 11 asks for 8.5 s more to end] ");
	cr_expect_eq(ranks[1].grace_ns, BEGIN + 10 * S + 500 * MS);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S + 500 * MS);
	is_armed(&patience, 8 * S + 500 * MS);
	patience.ns = -1;
	stop_later(&job, 1, 8.5);
	is_armed(&patience, -1);
	stop_later(&job, 1, 20);
	is_done("");
	cr_expect_eq(sup.until_ns, BEGIN + 22 * S);
	is_armed(&patience, 20 * S);
	stop_later(&job, 0, 10);
	is_done("[xrun: rank 10 asks for 10 s more to end] ");
	cr_expect_eq(sup.until_ns, BEGIN + 22 * S);
	is_armed(&patience, 20 * S);
	cr_expect_eq(sup.grace_ns, BEGIN + 10 * S);
}

Test(stop, nobody_has_more_than_ten_minutes_more)
{
	stopping();
	now += S;
	stop_later(&job, 0, 605);
	is_done("[xrun: rank 10 asks for 600 s more to end] ");
	cr_expect_eq(ranks[0].grace_ns, BEGIN + 601 * S);
	now += 12 * S;
	stop_later(&job, 0, 600);
	cr_expect_eq(ranks[0].grace_ns, BEGIN + 610 * S);
	is_armed(&patience, 597 * S);
}

Test(stop, time_is_only_for_ranks_that_are_stopping)
{
	patience = (struct timer){ true, -1 };
	stop_later(&job, 0, 60);
	job.ending = ENDING_KILLED;
	stop_later(&job, 0, 60);
	job.ending = ENDING_STOPPING;
	stop_later(&job, 2, 60);
	stop_later(&job, 0, 0);
	stop_later(&job, 0, -1);
	patience.armed = false;
	stop_later(&job, 0, 60);
	is_done("");
	cr_expect_eq(ranks[0].grace_ns, 0);
	cr_expect_eq(ranks[2].grace_ns, 0);
	cr_expect_eq(patience.ns, -1);
}

Test(stop, a_job_without_a_deadline_gets_none_by_a_wish)
{
	stop_job(&job, CAUSE_FAILURE);
	stop_later(&job, 0, 60);
	cr_expect_eq(sup.until_ns, 0);
	is_armed(&patience, 60 * S);
}

Test(stop, patience_is_counted_again_when_one_that_asked_dies)
{
	stopping();
	stop_later(&job, 0, 60);
	stop_later(&job, 1, 30);
	now += S;
	ranks[0].pidfd = -1;
	stop_recount(&job);
	is_armed(&patience, 29 * S);
	ranks[1].pidfd = -1;
	stop_recount(&job);
	is_armed(&patience, 9 * S);
	now += 11 * S;
	stop_recount(&job);
	is_armed(&patience, 0);
}

Test(stop, patience_is_not_counted_again_for_others)
{
	stopping();
	sup.phase = PHASE_DELIVER;
	stop_recount(&job);
	sup.phase = PHASE_RUN;
	ranks_gone = true;
	stop_recount(&job);
	ranks_gone = false;
	job.ending = ENDING_KILLED;
	stop_recount(&job);
	is_armed(&patience, -1);
	job.ending = ENDING_STOPPING;
	patience.armed = false;
	stop_recount(&job);
	cr_expect_not(patience.armed);
}

/* The 30 s were for SIGKILL. */
Test(stop, after_sigkill_readers_have_the_deadline)
{
	job.ending = ENDING_KILLED;
	ranks_gone = true;
	stop_recount(&job);
	cr_expect_not(patience.armed, "a failure has no deadline");
	sup.told = true;
	sup.phase = PHASE_DELIVER;
	stop_recount(&job);
	cr_expect_not(patience.armed);
	sup.phase = PHASE_RUN;
	stop_recount(&job);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	is_armed(&patience, 9 * S + 500 * MS);
}

/* --- ranks on which the stop signal has no effect --------------------------- */

Test(stop, the_immune_are_killed_and_others_looked_at_again)
{
	ranks[0].state = ranks[1].state = ranks[3].state = RANK_STOPPING;
	immune_pid = 100;
	stop_immune(&job);
	is_done("");
	cr_expect_not(immune.armed, "nobody is stopping");
	job.ending = ENDING_STOPPING;
	stop_immune(&job);
	is_done("0:kill ");
	is_armed(&immune, S);
	immune.armed = false;
	ranks[1].state = RANK_RUNNING;
	stop_immune(&job);
	is_done("0:kill ");
	cr_expect_not(immune.armed, "nobody else is left");
}
