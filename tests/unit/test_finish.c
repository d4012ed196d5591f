/* SPDX-License-Identifier: Apache-2.0 */
/* test_finish.c - after the last rank: what follows what, and with how much time. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/work.h"
#include "launcher/job/words.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/next.h"
#include "launcher/sup/next_folder.h"
#include "launcher/sup/stdin_all.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/account.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/report.h"
#include "tests/unit/noted.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define BEGIN (100 * S) /* of the clock */

struct timer {
	bool armed;
	int64_t ns;
};

static struct timer timeout, patience, silence, deliver;
static struct rank ranks[2];
static struct keeper_page page;
static struct sup sup = { .timeout = &timeout,
	.patience = &patience,
	.silence = &silence,
	.deliver = &deliver };
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.page = &page,
	.plan = { .size = 2, .local_size = 2 },
	.opt = { .grace = 10 * S, .logs = true },
	.state = { .dir_fd = -1, .attempt = (char *)"logs/k7m2" },
	.settled = 2,
};

/* --- what is done ----------------------------------------------------------- */

static bool due, leftovers, needs_files, posts = true, unknown, waits;
static uint32_t sinks = 2, left, asked_sink;
static uint64_t total, backlog;
static enum sink_end end;
static int end_sys;
static work_fn *posted;

int64_t __wrap_clock_now(void);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
void __wrap_timer_disarm(struct timer *timer);
bool __wrap_timer_armed(const struct timer *timer);
int64_t __wrap_timer_left(const struct timer *timer);
uint32_t __wrap_logs_sinks(const struct logs *logs);
uint32_t __wrap_logs_left(const struct logs *logs);
uint64_t __wrap_logs_total(const struct logs *logs);
uint64_t __wrap_logs_backlog(const struct logs *logs, uint32_t sink);
enum sink_end __wrap_logs_finish(struct logs *logs, uint32_t sink, int *sys);
const struct notes *__wrap_logs_notes(const struct logs *logs);
void __wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
void __wrap_work_push(struct work *work);
void __wrap_job_account(struct job *job_, bool files);
bool __wrap_job_account_needs_files(const struct job *job_);
void __wrap_hook_bound(struct job *job_);
void __wrap_hook_hurry(struct job *job_);
bool __wrap_sweep_due(const struct job *job_);
bool __wrap_sweep_leftovers(struct job *job_);
void __wrap_next_decide(struct job *job_);
bool __wrap_next_folder_known(struct job *job_);
bool __wrap_report_next(struct job *job_);
void __wrap_tty_in_close(struct tty_in *in);
void __wrap_own_tty_restore(struct own_tty *tty);
int __wrap_stdin_all_sys(const struct stdin_all *all);
void __wrap_loop_stop(struct loop *loop);

int64_t
__wrap_clock_now(void)
{
	return BEGIN;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	*timer = (struct timer){ true, ns };
}

void
__wrap_timer_disarm(struct timer *timer)
{
	timer->armed = false;
}

bool
__wrap_timer_armed(const struct timer *timer)
{
	return timer->armed;
}

int64_t
__wrap_timer_left(const struct timer *timer)
{
	return timer->ns;
}

uint32_t
__wrap_logs_sinks(const struct logs *logs)
{
	(void)logs;
	return sinks;
}

uint32_t
__wrap_logs_left(const struct logs *logs)
{
	(void)logs;
	return left;
}

uint64_t
__wrap_logs_total(const struct logs *logs)
{
	(void)logs;
	return total;
}

uint64_t
__wrap_logs_backlog(const struct logs *logs, uint32_t sink)
{
	(void)logs;
	asked_sink = sink;
	return backlog;
}

enum sink_end
__wrap_logs_finish(struct logs *logs, uint32_t sink, int *sys)
{
	(void)logs;
	*sys = end_sys;
	note("sink:%u ", sink);
	return end;
}

const struct notes *
__wrap_logs_notes(const struct logs *logs)
{
	(void)logs;
	return NULL;
}

void
__wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys)
{
	(void)notes;
	cr_expect_eq(kind, NOTE_WRITTEN);
	cr_expect_eq(sys, 0);
	note("note:%u ", value);
}

void
__wrap_words_line(const char *fmt, ...)
{
	char text[500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	(void)work;
	cr_expect_eq(ctx, &job);
	posted = fn;
	return posts;
}

void
__wrap_work_push(struct work *work)
{
	(void)work;
	note("push ");
}

void
__wrap_job_account(struct job *job_, bool files)
{
	cr_expect_eq(job_, &job);
	note(files ? "account:files " : "account ");
}

bool
__wrap_job_account_needs_files(const struct job *job_)
{
	cr_expect_eq(job_, &job);
	return needs_files;
}

void
__wrap_hook_bound(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("bound ");
}

void
__wrap_hook_hurry(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("hurry ");
}

bool
__wrap_sweep_due(const struct job *job_)
{
	cr_expect_eq(job_, &job);
	return due;
}

bool
__wrap_sweep_leftovers(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("sweep ");
	return !leftovers;
}

void
__wrap_next_decide(struct job *job_)
{
	cr_expect_eq(job_->ended_ns, BEGIN);
	note("next ");
}

bool
__wrap_next_folder_known(struct job *job_)
{
	cr_expect_eq(job_, &job);
	return !unknown;
}

bool
__wrap_report_next(struct job *job_)
{
	cr_expect_eq(job_, &job);
	note("report ");
	return !waits;
}

void
__wrap_tty_in_close(struct tty_in *in)
{
	cr_expect_eq(in, (struct tty_in *)&sup);
	note("tty ");
}

void
__wrap_own_tty_restore(struct own_tty *tty)
{
	cr_expect_eq(tty, &page.own);
	note("modes ");
}

int
__wrap_stdin_all_sys(const struct stdin_all *all)
{
	cr_expect_eq(all, (struct stdin_all *)&sup);
	return EIO;
}

void
__wrap_loop_stop(struct loop *loop)
{
	(void)loop;
	note("stop ");
}

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

/* All timers run but that of the sinks. */
static void
begin(void)
{
	timeout = patience = silence = (struct timer){ true, 70 * S };
	end = SINK_LATER;
	sup.tty_in = (struct tty_in *)&sup;
}

TestSuite(finish, .init = begin);

/* --- when the ranks are over ------------------------------------------------ */

Test(finish, a_job_goes_on_while_a_rank_or_what_it_left_is_there)
{
	job.settled = 1;
	finish_if_over(&job);
	is_done("");
	due = true;
	finish_if_over(&job);
	is_done("");
	job.stop_ns = BEGIN;
	due = false;
	finish_if_over(&job);
	is_done("");
	due = true;
	finish_if_over(&job);
	is_done("sweep ");
	job.settled = 2;
	due = false;
	leftovers = true;
	finish_if_over(&job);
	is_done("sweep ");
	cr_expect_eq(sup.phase, PHASE_RUN);
	cr_expect(patience.armed && silence.armed);
	cr_expect_eq(job.ended_ns, 0);
	sup.phase = PHASE_DELIVER;
	finish_if_over(&job);
	is_done("");
}

Test(finish, output_goes_out_first)
{
	finish_if_over(&job);
	is_done("sweep next tty modes sink:0 ");
	cr_expect_eq(sup.phase, PHASE_DELIVER);
	cr_expect_eq(job.ended_ns, BEGIN);
	cr_expect_null(sup.tty_in);
	cr_expect_not(patience.armed, "a reader has all the time");
	cr_expect_not(silence.armed);
	cr_expect(timeout.armed);
	cr_expect_not(deliver.armed);
	cr_expect_not(sup.sink_over);
}

Test(finish, a_job_that_was_told_to_end_has_a_deadline_for_its_readers)
{
	sup.told = true;
	finish_if_over(&job);
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	is_armed(&patience, 9 * S + 500 * MS);
}

Test(finish, with_one_sink_the_account_is_next)
{
	sinks = 1;
	finish_if_over(&job);
	is_done("sweep next tty modes account sink:0 ");
	cr_expect_eq(sup.phase, PHASE_ACCOUNT);
	cr_expect_not(timeout.armed);
}

/* --- sinks ------------------------------------------------------------------ */

Test(finish, a_sink_that_is_over_is_heard_of_in_the_next_turn)
{
	end = SINK_OVER;
	end_sys = EPIPE;
	finish_if_over(&job);
	cr_expect_eq(sup.phase, PHASE_DELIVER);
	cr_expect(sup.sink_over);
	is_armed(&deliver, 0);
	is_done("sweep next tty modes sink:0 ");
	backlog = 0;
	sup.not_shown = true;
	end = SINK_LATER;
	finish_turn(&job);
	is_done("account sink:1 ");
	cr_expect_not(sup.sink_over);
}

Test(finish, a_sink_whose_words_wait_is_asked_again)
{
	end = SINK_AGAIN;
	finish_if_over(&job);
	is_done("sweep next tty modes sink:0 ");
	is_armed(&deliver, 20 * MS);
	cr_expect_not(sup.sink_over);
	finish_turn(&job);
	is_done("sink:0 ");
	sup.phase = PHASE_ACCOUNT;
	finish_turn(&job);
	is_done("sink:1 ");
	sup.phase = PHASE_WRITE;
	finish_turn(&job);
	sup.phase = PHASE_RUN;
	finish_turn(&job);
	is_done("");
}

Test(finish, each_sink_ends_its_own_phase)
{
	sup.phase = PHASE_DELIVER;
	finish_note_sink(&job, 1, 0);
	is_done("");
	finish_note_sink(&job, 0, 0);
	is_done("account sink:1 ");
	finish_note_sink(&job, 0, 0);
	is_done("");
	finish_note_sink(&job, 1, 0);
	is_done("report stop ");
	cr_expect_eq(sup.phase, PHASE_END);
}

Test(finish, what_is_not_shown_is_said)
{
	backlog = 7;
	finish_note_sink(&job, 1, EPIPE);
	cr_expect_eq(asked_sink, 1);
	is_done("[7 bytes of output could not be shown (Broken pipe); it is in logs/k7m2] ");
	cr_expect(job.unshown && sup.not_shown);
	backlog = 1;
	finish_note_sink(&job, 1, ENOENT);
	is_done("[1 bytes of output could not be shown (No such file or directory); it was removed from logs/k7m2] ");
	finish_note_sink(&job, 1, ENODATA);
	is_done("[1 bytes of output could not be shown (No data available); it was removed from logs/k7m2] ");
	backlog = 0;
	finish_note_sink(&job, 1, EIO);
	is_done("");
	sup.not_shown = false;
	job.opt.logs = false;
	finish_note_sink(&job, 1, ENOMEM);
	is_done("[some output could not be shown (Cannot allocate memory); it is lost] ");
}

/* --- the account ------------------------------------------------------------ */

static void
account(void)
{
	sup.phase = PHASE_DELIVER;
	finish_note_sink(&job, 0, 0);
}

Test(finish, an_account_has_no_limit_where_nobody_hurries)
{
	patience.armed = false;
	account();
	cr_expect_not(sup.hurried);
	cr_expect_not(patience.armed);
	cr_expect_not(sup.accounting);
	cr_expect_eq(sup.input_sys, 0);
	cr_expect_eq(sup.until_ns, 0);
}

Test(finish, an_account_after_a_hurried_delivery_has_the_grace)
{
	account();
	cr_expect(sup.hurried);
	is_armed(&patience, 10 * S);
}

Test(finish, so_it_has_after_a_delivery_that_was_given_up)
{
	patience.armed = false;
	sup.delivery_over = true;
	account();
	cr_expect(sup.hurried);
	is_armed(&patience, 10 * S);
}

Test(finish, an_account_has_what_is_left_before_the_deadline)
{
	sup.stdin_all = (struct stdin_all *)&sup;
	sup.until_ns = BEGIN + 3 * S;
	account();
	is_armed(&patience, 3 * S);
	cr_expect_eq(sup.input_sys, EIO);
}

Test(finish, who_is_told_to_end_has_a_deadline_by_then)
{
	patience.armed = false;
	sup.told = true;
	account();
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	is_armed(&patience, 10 * S);
}

Test(finish, files_are_read_by_the_helper_thread)
{
	needs_files = true;
	account();
	is_done("push ");
	cr_expect(sup.accounting);
	cr_expect_eq(sup.phase, PHASE_ACCOUNT);
	is_armed(&patience, 5 * S);
	posted(&job);
	is_done("account:files note:2 ");
	finish_written(&job, PHASE_DELIVER);
	is_done("");
	finish_written(&job, PHASE_ACCOUNT);
	is_done("sink:1 ");
	cr_expect_not(sup.accounting);
	finish_written(&job, PHASE_ACCOUNT);
	is_done("");
}

Test(finish, files_that_take_too_long_are_not_waited_for)
{
	needs_files = true;
	sup.until_ns = BEGIN + 2 * S;
	account();
	is_done("push ");
	is_armed(&patience, 2 * S);
	finish_give_up(&job);
	is_done("account sink:1 ");
	cr_expect_not(sup.accounting);
	cr_expect_not(sup.delivery_over);
	cr_expect_eq(sup.phase, PHASE_ACCOUNT);
}

Test(finish, without_memory_for_the_thread_the_account_has_no_files)
{
	needs_files = true;
	posts = false;
	account();
	is_done("account sink:1 ");
	cr_expect_not(sup.accounting);
}

/* --- the files -------------------------------------------------------------- */

static bool
keeps(void)
{
	sup.phase = PHASE_ACCOUNT;
	sup.writing.keep = false;
	page.silent = false;
	finish_note_sink(&job, 1, 0);
	cr_expect_eq(page.silent, job.state.dir != NULL && !sup.writing.keep);
	return sup.writing.keep;
}

Test(finish, a_folder_stays_if_it_tells_of_something)
{
	total = 1;
	cr_expect_not(keeps(), "there is none");
	job.state.dir = (char *)"d";
	cr_expect(keeps());
	total = 0;
	cr_expect_not(keeps());
	left = 1;
	cr_expect(keeps());
	left = 0;
	job.state.number = 1;
	cr_expect(keeps());
	job.state.number = 0;
	job.opt.job = "name";
	cr_expect(keeps());
	job.opt.job = NULL;
	page.kept = true;
	cr_expect(keeps());
	page.kept = false;
	again_asked(&page.again);
	cr_expect(keeps());
	again_cancel(&page.again);
	cr_expect_not(keeps());
}

Test(finish, files_are_written_until_all_are)
{
	unknown = true;
	sup.phase = PHASE_ACCOUNT;
	patience.ns = -1;
	finish_note_sink(&job, 1, 0);
	is_done("");
	cr_expect_eq(sup.phase, PHASE_WRITE);
	cr_expect_eq(patience.ns, -1, "nobody was told to end");
	unknown = false;
	waits = true;
	finish_written(&job, PHASE_ACCOUNT);
	is_done("");
	finish_written(&job, PHASE_WRITE);
	is_done("report ");
	waits = false;
	finish_written(&job, PHASE_WRITE);
	is_done("report stop ");
	cr_expect_eq(sup.phase, PHASE_END);
}

Test(finish, files_have_the_deadline)
{
	sup.until_ns = BEGIN + 3 * S;
	waits = true;
	sup.phase = PHASE_ACCOUNT;
	finish_note_sink(&job, 1, 0);
	is_armed(&patience, 3 * S);
}

/* --- no more patience ------------------------------------------------------- */

Test(finish, each_phase_can_be_given_up)
{
	sup.phase = PHASE_DELIVER;
	finish_give_up(&job);
	is_done("account sink:1 ");
	cr_expect(sup.delivery_over);
	waits = true;
	finish_give_up(&job);
	is_done("report ");
	cr_expect_eq(sup.phase, PHASE_WRITE);
	cr_expect_not(sup.writing.late);
	finish_give_up(&job);
	is_done("report ");
	cr_expect(sup.writing.late);
	sup.until_ns = BEGIN;
	finish_give_up(&job);
	is_done("hurry report ");
	sup.phase = PHASE_RUN;
	finish_give_up(&job);
	is_done("");
}

Test(finish, who_is_told_to_hurry_has_what_is_left)
{
	sup.phase = PHASE_DELIVER;
	finish_hurry(&job);
	is_done("bound ");
	cr_expect_eq(sup.until_ns, BEGIN + 10 * S);
	is_armed(&patience, 10 * S);
	patience.ns = 3 * S;
	finish_hurry(&job);
	is_armed(&patience, 3 * S);
	patience.armed = false;
	finish_hurry(&job);
	is_armed(&patience, 9 * S + 500 * MS);
	patience.armed = false;
	sup.phase = PHASE_ACCOUNT;
	finish_hurry(&job);
	is_armed(&patience, 10 * S);
	patience.armed = false;
	sup.delivery_over = true;
	finish_hurry(&job);
	cr_expect_not(patience.armed);
}
