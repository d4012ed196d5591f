/* SPDX-License-Identifier: Apache-2.0 */
/* test_sup.c - what the supervisor does when one of its timers fires. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/work.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/report.h"
#include "launcher/tell/stacks.h"
#include "launcher/tell/why.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define BEGIN (100 * S) /* of the clock */

struct timer {
	timer_fn *fn;
	void *ctx;
	int64_t ns; /* that it is armed for; -1: it is not */
	int64_t late;
};

static struct timer timers[16];
static uint32_t timers_open;
static struct rank ranks[3];
static struct keeper_page page;
static struct sup sup;
static struct job job;

/* --- what is done ----------------------------------------------------------- */

static char done[400]; /* one word for each action */
static char hint[400];
static bool due, stacks, no_output, is_tty;
static uint64_t total;
static int64_t now = BEGIN;
static stacks_fn *on_stacks;
static enum { PART_NONE, PART_LOOP, PART_WORK, PART_LOGS, PART_BUS } lacks;
static uint32_t lacks_timer; /* the one of this number; 0: none */
static bool asked_signals, asked_bus;

static void
note(const char *word)
{
	size_t len = strlen(done);

	snprintf(done + len, sizeof(done) - len, "%s%s", len > 0 ? " " : "",
		word);
}

static void
expect_done(const char *want)
{
	cr_expect_str_eq(done, want);
	done[0] = '\0';
}

#define NOTED(name, ...) \
	void __wrap_##name(__VA_ARGS__); \
	void __wrap_##name(__VA_ARGS__) \
	{ \
		note(#name); \
	}

NOTED(children_turn, struct children *c __attribute__((unused)))
NOTED(finish_hurry, struct job *j __attribute__((unused)))
NOTED(finish_give_up, void *j __attribute__((unused)))
NOTED(finish_if_over, struct job *j __attribute__((unused)))
NOTED(stop_waiting, struct job *j __attribute__((unused)))
NOTED(stop_now, struct job *j __attribute__((unused)))
NOTED(stop_output, struct job *j __attribute__((unused)))
NOTED(report_begin, void *j __attribute__((unused)))
NOTED(why_begin, void *j __attribute__((unused)))
NOTED(steer_begin, struct job *j __attribute__((unused)))
NOTED(metrics_file_begin, struct job *j __attribute__((unused)))

struct loop *__wrap_loop_new(void);
struct work *__wrap_work_new(void);
struct logs *__wrap_logs_open(const struct logs_config *config);
struct bus *__wrap_bus_new(struct job *j, struct loop *loop, struct work *work,
	int file);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
int64_t __wrap_timer_late(const struct timer *timer);
int __wrap_signals_open(void);
struct children *__wrap_children_open(struct loop *loop, child_fn *fn,
	child_after_fn *after, void *ctx);
bool __wrap_state_remove(const struct state *state);
uint64_t __wrap_logs_total(const struct logs *logs);
void __wrap_logs_hint(struct logs *logs, const char *text);
int __wrap_isatty(int fd);
bool __wrap_stacks_begin(struct job *j, const char *why, stacks_fn *fn);
bool __wrap_sweep_due(const struct job *j);
void __wrap_stop_job(struct job *j, enum cause cause);
void __wrap_step_rank(struct job *j, uint32_t r, enum rank_event event);
bool __wrap_start_lacks_output(const struct job *j);
int64_t __wrap_clock_now(void);

struct loop *
__wrap_loop_new(void)
{
	return lacks == PART_LOOP ? NULL : (struct loop *)&now;
}

struct work *
__wrap_work_new(void)
{
	return lacks == PART_WORK ? NULL : (struct work *)&now;
}

struct logs *
__wrap_logs_open(const struct logs_config *config)
{
	cr_expect_eq(config->ranks, 3);
	return lacks == PART_LOGS ? NULL : (struct logs *)&total;
}

struct bus *
__wrap_bus_new(struct job *j, struct loop *loop, struct work *work, int file)
{
	(void)loop;
	(void)work;
	cr_expect_eq(file, -1);
	asked_bus = true;
	return lacks == PART_BUS ? NULL : (struct bus *)j;
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	struct timer *timer = &timers[timers_open++];

	(void)loop;
	*timer = (struct timer){ fn, ctx, -1, 0 };
	return timers_open == lacks_timer ? NULL : timer;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	timer->ns = ns;
}

int64_t
__wrap_timer_late(const struct timer *timer)
{
	return timer->late;
}

int
__wrap_signals_open(void)
{
	asked_signals = true;
	errno = EMFILE;
	return -1;
}

struct children *
__wrap_children_open(struct loop *loop, child_fn *fn, child_after_fn *after,
	void *ctx)
{
	(void)loop;
	(void)fn;
	(void)after;
	(void)ctx;
	return (struct children *)&now;
}

/* The last that a supervisor does that cannot start: its timers are kept. */
bool
__wrap_state_remove(const struct state *state)
{
	cr_expect_eq(state, &job.state);
	note("state_remove");
	sup = *job.sup;
	return true;
}

uint64_t
__wrap_logs_total(const struct logs *logs)
{
	cr_expect_eq(logs, (struct logs *)&total);
	return total;
}

void
__wrap_logs_hint(struct logs *logs, const char *text)
{
	cr_expect_eq(logs, (struct logs *)&total);
	snprintf(hint, sizeof(hint), "%s", text);
}

int
__wrap_isatty(int fd)
{
	return fd == STDIN_FILENO && is_tty;
}

bool
__wrap_stacks_begin(struct job *j, const char *why, stacks_fn *fn)
{
	(void)j;
	cr_expect_str_eq(why, "--timeout");
	note("stacks_begin");
	on_stacks = fn;
	return stacks;
}

bool
__wrap_sweep_due(const struct job *j)
{
	(void)j;
	return due;
}

void
__wrap_stop_job(struct job *j, enum cause cause)
{
	(void)j;
	cr_expect_eq(cause, CAUSE_TIMEOUT);
	note("stop_job");
}

void
__wrap_step_rank(struct job *j, uint32_t r, enum rank_event event)
{
	char word[16];

	(void)j;
	cr_expect_eq(event, RANK_EV_TIMEOUT);
	snprintf(word, sizeof(word), "rank%u", r);
	note(word);
}

bool
__wrap_start_lacks_output(const struct job *j)
{
	(void)j;
	return no_output;
}

int64_t
__wrap_clock_now(void)
{
	return now;
}

/* --- a supervisor that has its timers --------------------------------------- */

static void
begin(void)
{
	job = (struct job){
		.rank = ranks,
		.page = &page,
		.plan = { .size = 3, .local_size = 3 },
		.opt = { .grace = 7 * S, .stacks_on = "none" },
		.state = { .dir_fd = -1, .id = "k7m2" },
		.events_fd = -1,
	};
	cr_assert_eq(supervise(&job), EXIT_XRUN);
	expect_done("state_remove");
	job.sup = &sup;
}

TestSuite(sup, .init = begin);

static void
fire(struct timer *timer)
{
	timer->fn(timer->ctx);
}

static void
expect_no_start(void)
{
	timers_open = 0;
	asked_signals = asked_bus = false;
	done[0] = '\0';
	cr_expect_eq(supervise(&job), EXIT_XRUN);
	expect_done("state_remove");
}

Test(sup, nothing_begins_without_a_part_of_it)
{
	cr_expect(asked_signals);
	cr_expect_eq(timers_open, 11);
	for (lacks = PART_LOOP; lacks <= PART_BUS; lacks++) {
		expect_no_start();
		cr_expect_eq(timers_open, 0, "part %d", lacks);
		cr_expect_eq(asked_bus, lacks == PART_BUS, "part %d", lacks);
		cr_expect_not(asked_signals, "part %d", lacks);
	}
	lacks = PART_NONE;
	for (lacks_timer = 1; lacks_timer <= 11; lacks_timer++) {
		expect_no_start();
		cr_expect_not(asked_signals, "timer %u", lacks_timer);
	}
	lacks_timer = 0;
	expect_no_start();
	cr_expect(asked_signals);
}

static void
expect_hint(const char *want)
{
	hint[0] = '\0';
	fire(sup.silence);
	cr_expect_str_eq(hint, want);
}

Test(sup, a_silent_job_has_a_hint)
{
	expect_hint(
		"\033[2mxrun: 3 ranks running, no output yet; xrun stacks k7m2 shows where they are\033[0m");
	total = 1;
	expect_hint("");
	total = 0;
	is_tty = true; /* several ranks share no terminal */
	snprintf(sup.no_ctl, sizeof(sup.no_ctl), "no room");
	expect_hint("\033[2mxrun: 3 ranks running, no output yet\033[0m");
}

Test(sup, a_silent_program_may_need_a_terminal)
{
	job.plan.local_size = 1;
	expect_hint(
		"\033[2mxrun: 1 rank running, no output yet; xrun stacks k7m2 shows where it is\033[0m");
	is_tty = true;
	expect_hint(
		"\033[2mxrun: 1 rank running, no output yet; xrun stacks k7m2 shows where it is; a program that needs a terminal: xrun --pty\033[0m");
	snprintf(sup.no_ctl, sizeof(sup.no_ctl), "no room");
	job.opt.pty = true;
	expect_hint("\033[2mxrun: 1 rank running, no output yet\033[0m");
}

Test(sup, patience_ends_with_what_it_was_for)
{
	fire(sup.patience);
	expect_done("stop_now");
	due = true;
	fire(sup.patience);
	expect_done("");
	sup.told = true;
	fire(sup.patience);
	expect_done("stop_output");
	due = false;
	fire(sup.patience);
	expect_done("stop_now");
	sup.phase = PHASE_DELIVER;
	fire(sup.patience);
	expect_done("finish_give_up");
}

Test(sup, who_stood_still_gives_the_time_back)
{
	sup.patience->late = sup.timeout->late = S - 1;
	fire(sup.patience);
	fire(sup.timeout);
	expect_done("stop_now children_turn stop_job");
	cr_expect_eq(sup.patience->ns, -1);
	cr_expect_eq(sup.timeout->ns, -1);
	sup.patience->late = S;
	sup.timeout->late = 3 * S;
	fire(sup.patience);
	fire(sup.timeout);
	expect_done("");
	cr_expect_eq(sup.patience->ns, S);
	cr_expect_eq(sup.timeout->ns, 3 * S);
}

Test(sup, a_timeout_ends_what_is_left)
{
	fire(sup.timeout);
	expect_done("children_turn stop_job");
	cr_expect_not(job.waited_out);
	due = true;
	fire(sup.timeout);
	expect_done("children_turn stop_waiting");
	cr_expect(job.waited_out);
	sup.phase = PHASE_DELIVER;
	fire(sup.timeout);
	expect_done("children_turn finish_hurry");
}

Test(sup, stacks_are_taken_before_the_timeout_if_asked_for)
{
	job.opt.stacks_on = "hang,crash";
	fire(sup.timeout);
	expect_done("children_turn stop_job");
	job.opt.stacks_on = "timeout";
	fire(sup.timeout); /* it is not possible */
	expect_done("children_turn stacks_begin stop_job");
	stacks = true;
	fire(sup.timeout);
	expect_done("children_turn stacks_begin");
	on_stacks(&job, true, "stacks", "");
	expect_done("stop_job");
	cr_expect_eq(sup.timeout->ns, -1);
	/* Ctrl-C was pressed meanwhile. */
	job.ending = ENDING_INTERRUPTED;
	on_stacks(&job, false, NULL, NULL);
	expect_done("");
	cr_expect_eq(sup.timeout->ns, 7 * S);
}

#define PUBLISHED "report_begin why_begin steer_begin metrics_file_begin"

Test(sup, a_job_is_published_when_its_ranks_run)
{
	job.begun_ns = BEGIN;
	job.started = 2;
	now = BEGIN + 500 * MS - 1;
	fire(sup.publish);
	expect_done("");
	cr_expect_eq(sup.publish->ns, 20 * MS);
	sup.publish->ns = -1;
	job.started = 3;
	fire(sup.publish);
	expect_done(PUBLISHED);
	job.started = 2;
	now++;
	fire(sup.publish);
	expect_done(PUBLISHED);
	now--;
	job.stop_ns = 1;
	fire(sup.publish);
	expect_done(PUBLISHED);
	cr_expect_eq(sup.publish->ns, -1);
}

static void
set_ranks(int64_t a, int64_t b, int64_t c)
{
	const int64_t drain[] = { a, b, c };

	for (int i = 0; i < 3; i++)
		ranks[i] = (struct rank){ .state = RANK_ENDED,
			.drain_ns = drain[i] };
	sup.drain->ns = -1;
}

Test(sup, pipes_of_the_dead_have_their_time)
{
	set_ranks(BEGIN, BEGIN + 9, BEGIN + 5);
	fire(sup.drain);
	expect_done("rank0 finish_if_over");
	cr_expect_eq(sup.drain->ns, 5);
	set_ranks(BEGIN, BEGIN - 1, BEGIN);
	fire(sup.drain);
	expect_done("rank0 rank1 rank2 finish_if_over");
	cr_expect_eq(sup.drain->ns, -1);
	/* One that lives, one that is given up, and one without room. */
	set_ranks(BEGIN, BEGIN, BEGIN);
	ranks[0].state = RANK_RUNNING;
	ranks[1].dropped = true;
	ranks[2].full = 1;
	fire(sup.drain);
	expect_done("finish_if_over");
	cr_expect_eq(sup.drain->ns, -1);
}

Test(sup, pipes_of_the_dead_have_more_time_if_xrun_stood_still)
{
	set_ranks(BEGIN, BEGIN - 2 * S, 0);
	ranks[2].state = RANK_RUNNING;
	sup.drain->late = S - 1;
	fire(sup.drain);
	expect_done("rank0 rank1 finish_if_over");
	sup.drain->late = S;
	fire(sup.drain);
	expect_done("rank1 finish_if_over");
	cr_expect_eq(sup.drain->ns, S);
	cr_expect_eq(ranks[0].drain_ns, BEGIN + S);
	cr_expect_eq(ranks[2].drain_ns, 0);
	/* Nobody reads them: for want of a thread. */
	set_ranks(BEGIN, BEGIN, BEGIN);
	sup.drain->late = 0;
	no_output = true;
	fire(sup.drain);
	expect_done("finish_if_over");
	cr_expect_eq(sup.drain->ns, DRAIN_NS);
}
