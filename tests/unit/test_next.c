/* SPDX-License-Identifier: Apache-2.0 */
/* test_next.c - whether another attempt of a job follows, and how it begins. */
#include <signal.h>
#include <stdarg.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/ctl/errors.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/next.h"
#include "launcher/sup/stdin_all.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "proc/shm.h"
#include "tests/unit/noted.h"

#define S     NS_PER_S
#define BEGIN (100 * S)
#define WALL  (5000 * S)

struct timer {
	char name;
};

static struct timer patience = { 'p' }, start = { 's' }, timeout = { 't' };
static struct rank ranks[3];
static struct sup sup;
static struct keeper_page page;
static struct job job;
static struct outcome outcome;
static const char *const *left; /* in /dev/shm */
static int64_t now;

int64_t __wrap_clock_now(void);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint32_t __wrap_shm_sweep(const char *dir, int64_t since, shm_fn *fn,
	void *ctx);
void __wrap_stop_by_signal(struct job *j, int sig);
void __wrap_stop_fail(struct job *j, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_stop_job(struct job *j, enum cause cause);
void __wrap_stdin_all_keep(struct stdin_all *all);
bool __wrap_own_tty_raw(struct own_tty *tty);
void __wrap_start_turn(void *j);
void __wrap_report_job(struct job *j);
bool __wrap_errors_remove(const char *prefix);
struct outcome __wrap_outcome_of(const struct job *j);

int64_t
__wrap_clock_now(void)
{
	return now;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	note("arm:%c,%lld ", timer->name, (long long)ns);
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[900];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

uint32_t
__wrap_shm_sweep(const char *dir, int64_t since, shm_fn *fn, void *ctx)
{
	uint32_t n = 0;

	cr_expect_eq(since, WALL - 20 * NS_PER_MS);
	note("sweep:%s ", dir);
	for (; left != NULL && left[n] != NULL; n++)
		fn(left[n], ctx);
	return n;
}

void
__wrap_stop_by_signal(struct job *j, int sig)
{
	cr_expect_eq(j, &job);
	note("stop:%d ", sig);
}

void
__wrap_stop_fail(struct job *j, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	cr_expect_eq(j, &job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("fail:%s ", text);
}

void
__wrap_stop_job(struct job *j, enum cause cause)
{
	cr_expect_eq(j, &job);
	note("stop_job:%d ", (int)cause);
}

void
__wrap_stdin_all_keep(struct stdin_all *all)
{
	cr_expect_eq(all, (struct stdin_all *)&job);
	note("keep ");
}

bool
__wrap_own_tty_raw(struct own_tty *tty)
{
	cr_expect_eq(tty, &page.own);
	note("raw ");
	return true;
}

void
__wrap_start_turn(void *j)
{
	cr_expect_eq(j, &job);
	note("start ");
}

void
__wrap_report_job(struct job *j)
{
	cr_expect_eq(j, &job);
	note("report ");
}

bool
__wrap_errors_remove(const char *prefix)
{
	note("errors:%s ", prefix);
	return true;
}

struct outcome
__wrap_outcome_of(const struct job *j)
{
	cr_expect_eq(j, &job);
	return outcome;
}

/* A job of three ranks, of which the second failed. */
static void
begin(void)
{
	now = BEGIN;
	memset(&page, 0, sizeof(page));
	page.again.best = -1;
	sup = (struct sup){ .patience = &patience,
		.start = &start,
		.timeout = &timeout,
		.phase = PHASE_DELIVER };
	job = (struct job){
		.sup = &sup,
		.rank = ranks,
		.page = &page,
		.plan = { .size = 13, .first = 10, .local_size = 3 },
		.opt = { .restarts = 2, .grace = 7 * S },
		.errors = (char *)"E",
		.state = { .number = 4, .dir_fd = -1 },
		.begun_wall = WALL,
		.begun_ns = BEGIN,
		.ended_ns = BEGIN + 3 * S,
		.cause = CAUSE_FAILURE,
	};
	for (int i = 0; i < 3; i++)
		ranks[i] = (struct rank){ .step = -1 };
	ranks[1].status = 9 << 8;
	outcome = (struct outcome){ .exit_status = 9,
		.culprit = 1,
		.reason = "failure" };
	left = NULL;
	done[0] = '\0';
}

TestSuite(next, .init = begin);

/* True if another one follows. */
static bool
decide(void)
{
	done[0] = '\0';
	page.again.restarts = 0;
	page.again.failures = 0;
	page.again.counted = 0;
	page.again.past_count = 0;
	next_decide(&job);
	cr_expect_eq(strncmp(done, "arm:p,7000000000 sweep:/dev/shm ", 32) == 0,
		again_is_due(&page.again), "%s", done);
	return again_is_due(&page.again);
}

Test(next, a_failure_of_a_rank_is_followed_by_another_attempt)
{
	cr_expect(decide());
	cr_expect_eq(page.again.spent, 0);
	job.cause = CAUSE_NONE;
	cr_expect(decide());
	job.cause = CAUSE_HANG;
	cr_expect(decide());
	outcome.culprit = OUTCOME_NOBODY;
	cr_expect(decide());
	job.cause = CAUSE_FAILURE;
	cr_expect(!decide());
	outcome.culprit = 1;
	outcome.exit_status = 0;
	cr_expect(!decide());
	outcome.exit_status = 9;
	job.cause = CAUSE_TIMEOUT;
	cr_expect(!decide());
	job.cause = CAUSE_SIGNAL;
	cr_expect(!decide());
	job.cause = CAUSE_FAILURE;
	for (int status = 125; status <= 128; status++) {
		ranks[1].status = status << 8;
		cr_expect_eq(decide(), status != 126 && status != 127);
	}
	sup.final = true;
	cr_expect(!decide());
	sup.final = false;
	sup.stuck = 1;
	cr_expect(!decide());
	cr_expect_str_eq(done, "");
	sup.stuck = 0;
	cr_expect(decide());
	job.opt.restarts = 0;
	cr_expect(!decide());
	cr_expect_eq(page.again.spent, 0);
}

Test(next, the_best_step_of_all_ranks_is_kept)
{
	ranks[0].step = 3;
	ranks[0].best = 5;
	ranks[1].best = 9; /* told nothing */
	ranks[2].step = 0;
	ranks[2].best = 4;
	cr_expect(decide());
	cr_expect_eq(page.again.best, 5);
	ranks[2].best = 6;
	cr_expect(decide());
	cr_expect_eq(page.again.best, 6);
}

static const struct again_past *
past(void)
{
	const struct again_past *p = again_each(&page.again, 0);

	cr_assert_not_null(p);
	cr_expect_null(again_each(&page.again, 1));
	return p;
}

Test(next, the_attempt_is_remembered)
{
	ranks[0].started_ns = BEGIN + S;
	cr_expect(decide());
	cr_expect_eq(past()->number, 4);
	cr_expect_eq(past()->exit_status, 9);
	cr_expect_eq(past()->culprit, 11);
	cr_expect_str_eq(past()->reason, "failure");
	cr_expect_eq(past()->begun_wall, WALL + S);
	cr_expect_eq(past()->ended_wall, WALL + 3 * S);
	ranks[0].started_ns = 0;
	ranks[2].hung = true;
	cr_expect(decide());
	cr_expect_eq(past()->begun_wall, WALL);
	cr_expect_eq(past()->culprit, 12);
	ranks[2].hung = false;
	job.cause = CAUSE_RESTART;
	outcome.culprit = OUTCOME_NOBODY;
	cr_expect(decide());
	cr_expect_eq(past()->culprit, UINT32_MAX);
	/* The last one, if there were others. */
	job.cause = CAUSE_NONE;
	outcome.exit_status = 0;
	cr_expect(!decide());
	cr_expect_null(again_each(&page.again, 0));
	page.again.restarts = 1;
	next_decide(&job);
	cr_expect_eq(past()->exit_status, 0);
}

#define LEFT_LEN \
	strlen("[xrun: 4 objects that this attempt left in /dev/shm were removed: ")

Test(next, memory_that_it_left_is_removed)
{
	static const char *one[] = { "a", NULL }, *two[] = { "a", "bc", NULL };
	static char long_name[400];
	const char *more[] = { long_name, "b", "", "d", NULL };

	left = one;
	cr_expect(decide());
	cr_expect_str_eq(done + 32,
		"[xrun: 1 object that this attempt left in /dev/shm was removed: a] ");
	left = two;
	cr_expect(decide());
	cr_expect_str_eq(done + 32,
		"[xrun: 2 objects that this attempt left in /dev/shm were removed: a, bc] ");
	/* What fits of them. */
	memset(long_name, 'n', 393);
	left = more;
	cr_expect(decide());
	cr_expect_str_eq(done + 32 + LEFT_LEN + 393, ", b, ] ");
	long_name[393] = long_name[394] = long_name[395] = 'n';
	cr_expect(decide());
	cr_expect_str_eq(done + 32 + LEFT_LEN + 396, ", ] ");
	long_name[396] = 'n';
	cr_expect(decide());
	cr_expect_str_eq(done + 32 + LEFT_LEN, "b, , d] ");
}

Test(next, one_that_was_wanted_and_cannot_be_is_told)
{
	job.cause = CAUSE_RESTART;
	cr_expect(decide());
	cr_expect_eq(page.again.pause_ns, 0);
	next_cannot(&job, "no folder");
	cr_expect(!again_is_due(&page.again));
	cr_expect_str_eq(done + 32, "fail:no folder ");
	done[0] = '\0';
	page.again.told = SIGTERM;
	next_cannot(&job, "no folder");
	cr_expect_str_eq(done, "stop:15 ");
	job.cause = CAUSE_FAILURE;
	done[0] = '\0';
	next_cannot(&job, "no folder");
	cr_expect_str_eq(done, "");
	job.cause = CAUSE_RESTART;
	page.again.told = 0;
	sup.stuck = 1;
	next_decide(&job);
	cr_expect_eq(strncmp(done,
			     "fail:the job cannot begin again: a process of "
			     "it cannot be ended ",
			     60),
		0, "%s", done);
}

Test(next, who_tells_to_end_is_heard)
{
	next_told(&job, SIGINT);
	cr_expect_eq(page.again.told, 0);
	cr_expect(decide());
	done[0] = '\0';
	next_told(&job, SIGINT);
	cr_expect(!again_is_due(&page.again));
	cr_expect_eq(page.again.told, 0);
	cr_expect_str_eq(done, "");
	job.cause = CAUSE_RESTART;
	cr_expect(decide());
	done[0] = '\0';
	next_told(&job, SIGINT);
	cr_expect_str_eq(done, "stop:2 ");
	cr_expect(decide());
	done[0] = '\0';
	sup.phase = PHASE_ACCOUNT; /* it was told that it begins again */
	next_told(&job, SIGTERM);
	cr_expect_eq(page.again.told, SIGTERM);
	cr_expect(again_is_due(&page.again));
	cr_expect_str_eq(done, "");
}

static bool
restart(void)
{
	done[0] = '\0';
	return next_restart(&job);
}

Test(next, somebody_may_want_another_attempt)
{
	char want[40];

	snprintf(want, sizeof(want), "stop_job:%d ", (int)CAUSE_RESTART);
	job.cause = CAUSE_NONE;
	sup.phase = PHASE_RUN;
	cr_expect(restart());
	cr_expect_str_eq(done, want);
	sup.stdin_all = (struct stdin_all *)&job;
	job.started = 1;
	page.again.restarts = 1;
	cr_expect(restart());
	cr_expect_eq(strncmp(done, "keep stop_job", 13), 0);
	job.cause = CAUSE_RESTART; /* it is wanted already */
	job.stop_ns = 5;
	cr_expect(restart());
	cr_expect_str_eq(done, "");
	job.cause = CAUSE_FAILURE;
	cr_expect(!restart());
	job.stop_ns = 0;
	sup.final = true;
	cr_expect(!restart());
	sup.final = false;
	job.started = 0; /* the pause before its first rank */
	cr_expect(restart());
	cr_expect_str_eq(done, "arm:s,0 ");
	page.again.restarts = 0;
	cr_expect(restart());
	cr_expect_eq(strncmp(done, "keep stop_job", 13), 0);
	/* One that is over. */
	sup.phase = PHASE_DELIVER;
	cr_expect(!restart());
	cr_expect(decide());
	page.again.pause_ns = 9;
	cr_expect(restart());
	cr_expect_eq(page.again.pause_ns, 0);
	cr_expect_str_eq(done, "");
}

Test(next, the_first_attempt_begins_at_once)
{
	page.again.pause_ns = 5;
	now = BEGIN + S;
	job.opt.timeout = 4 * S;
	job.state.dir_fd = 9;
	page.again.due = 1;
	next_begin(&job);
	cr_expect_str_eq(done, "arm:t,3000000000 start ");
	cr_expect_eq(page.again.begun_ns, BEGIN);
	cr_expect_eq(page.again.pause_ns, 0);
	cr_expect_eq(page.again.due, 0);
}

Test(next, another_attempt_has_the_time_that_is_left)
{
	page.again.restarts = 1;
	page.again.begun_ns = BEGIN - 3 * S;
	page.again.pause_ns = 5;
	job.opt.timeout = 4 * S;
	next_begin(&job);
	cr_expect_str_eq(done, "errors:E arm:t,1000000000 arm:s,5 ");
	cr_expect_eq(page.again.pause_ns, 0);
	cr_expect_eq(page.again.begun_ns, BEGIN - 3 * S);
	done[0] = '\0';
	job.state.dir_fd = 9;
	job.opt.timeout = 3 * S;
	next_begin(&job);
	cr_expect_str_eq(done, "report errors:E arm:t,0 start ");
	done[0] = '\0';
	job.opt.timeout = 2 * S;
	page.again.told = SIGTERM;
	page.again.pause_ns = 5;
	next_begin(&job);
	cr_expect_str_eq(done, "report errors:E arm:t,0 arm:s,0 stop:15 ");
	cr_expect_eq(page.again.told, 0);
	job.opt.timeout = 0;
	done[0] = '\0';
	next_begin(&job);
	cr_expect_str_eq(done, "report errors:E start ");
}

/* What next_ready() and next_start() do. */
static const char *
ready(void)
{
	done[0] = '\0';
	next_ready(&job);
	note("| ");
	next_start(&job);
	return done;
}

Test(next, keys_are_the_first_ranks)
{
	cr_expect_str_eq(ready(), "| start ");
	job.interactive = true;
	cr_expect_str_eq(ready(), "raw | raw start ");
	page.again.pause_ns = 5;
	cr_expect_str_eq(ready(), "raw | raw start ");
	page.again.restarts = 1;
	cr_expect_str_eq(ready(), "| raw start ");
	page.again.pause_ns = 0;
	cr_expect_str_eq(ready(), "raw | raw start ");
	page.again.told = SIGINT;
	cr_expect_str_eq(ready(), "| raw start ");
	page.again.told = 0;
	job.started = 1;
	cr_expect_str_eq(ready(), "| start ");
	job.started = 0;
	job.stop_ns = 1;
	cr_expect_str_eq(ready(), "| start ");
}
