/* SPDX-License-Identifier: Apache-2.0 */
/* test_signals.c - what the supervisor does when it is told something. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include <sys/signalfd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/next.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/hook.h"
#include "tests/unit/noted.h"

#define BEGIN 1000

struct timer {
	char name;
	bool armed;
	int64_t left;
};

static struct timer timers[SUP_DEADLINES], strangers = { .name = 'S' };
static struct rank ranks[3];
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.page = &page,
	.plan = { .local_size = 3 },
};
static int64_t now = BEGIN;

int64_t __wrap_clock_now(void);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
bool __wrap_timer_armed(const struct timer *timer);
int64_t __wrap_timer_left(const struct timer *timer);
int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);
int __wrap_raise(int sig);
void __wrap_next_told(struct job *j, int sig);
void __wrap_hook_hurry(struct job *j);
void __wrap_finish_give_up(void *j);
void __wrap_finish_hurry(struct job *j);
void __wrap_stop_by_ctrl_c(struct job *j);
void __wrap_stop_by_signal(struct job *j, int sig);
void __wrap_hang_stood(struct job *j, int64_t ns);
void __wrap_step_signal_all(struct job *j, int sig);
void __wrap_own_tty_restore(struct own_tty *tty);
void __wrap_tty_in_resume(struct tty_in *tty);
void __wrap_pty_resize(struct job *j);
void __wrap_logs_look(struct logs *logs, bool whole);

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

bool
__wrap_timer_armed(const struct timer *timer)
{
	return timer->armed;
}

int64_t
__wrap_timer_left(const struct timer *timer)
{
	return timer->left;
}

int
__wrap_kill(pid_t pid, int sig)
{
	note("kill:%d,%d ", pid, sig);
	return 0;
}

/* The supervisor is stopped for 50 ns. */
int
__wrap_raise(int sig)
{
	note("raise:%d,%d ", sig, page.follow);
	now += 50;
	return 0;
}

void
__wrap_next_told(struct job *j, int sig)
{
	cr_expect_eq(j, &job);
	note("next:%d ", sig);
}

void
__wrap_hook_hurry(struct job *j)
{
	cr_expect_eq(j, &job);
	note("hooks ");
}

void
__wrap_finish_give_up(void *j)
{
	cr_expect_eq(j, &job);
	note("give_up ");
}

void
__wrap_finish_hurry(struct job *j)
{
	cr_expect_eq(j, &job);
	note("hurry ");
}

void
__wrap_stop_by_ctrl_c(struct job *j)
{
	cr_expect_eq(j, &job);
	note("ctrl_c ");
}

void
__wrap_stop_by_signal(struct job *j, int sig)
{
	cr_expect_eq(j, &job);
	note("stop:%d ", sig);
}

void
__wrap_hang_stood(struct job *j, int64_t ns)
{
	cr_expect_eq(j, &job);
	note("stood:%lld ", (long long)ns);
}

void
__wrap_step_signal_all(struct job *j, int sig)
{
	cr_expect_eq(j, &job);
	note("all:%d ", sig);
}

void
__wrap_own_tty_restore(struct own_tty *tty)
{
	cr_expect_eq(tty, &page.own);
	note("tty ");
}

void
__wrap_tty_in_resume(struct tty_in *tty)
{
	cr_expect_eq(tty, (struct tty_in *)&job);
	note("keys ");
}

void
__wrap_pty_resize(struct job *j)
{
	cr_expect_eq(j, &job);
	note("resize ");
}

void
__wrap_logs_look(struct logs *logs, bool whole)
{
	cr_expect_eq(logs, (struct logs *)&sup);
	note("look:%d ", whole);
}

static int tell_fd[2];

static void
raise_real(int sig)
{
	cr_assert_eq(__real_kill(getpid(), sig), 0);
}

static void
begin(void)
{
	sup.logs = (struct logs *)&sup;
	sup.phase = PHASE_RUN;
	sup.strangers = &strangers;
	for (int i = 0; i < SUP_DEADLINES; i++) {
		timers[i].name = (char)('a' + i);
		sup.deadlines[i] = &timers[i];
	}
	for (int i = 0; i < 3; i++)
		ranks[i] = (struct rank){ .pid = 10 + i, .pidfd = 20 + i };
	cr_assert_eq(pipe2(tell_fd, O_NONBLOCK | O_CLOEXEC), 0);
}

TestSuite(signals, .init = begin);

static void
add(int sig, int code)
{
	const struct signalfd_siginfo info = { .ssi_signo = (uint32_t)sig,
		.ssi_code = code };

	cr_assert_eq(write(tell_fd[1], &info, sizeof(info)), sizeof(info));
}

/* What the supervisor does about them. */
static const char *
read_them(void)
{
	int heard = page.heard;

	done[0] = '\0';
	signals_read(tell_fd[0], &job);
	cr_expect_eq(page.heard, heard + 1);
	return done;
}

static const char *
told(int sig, int code)
{
	add(sig, code);
	return read_them();
}

Test(signals, to_end_stops_a_job_that_runs)
{
	cr_expect_str_eq(told(SIGINT, SI_KERNEL), "ctrl_c ");
	cr_expect_str_eq(told(SIGINT, SI_QUEUE), "stop:2 ");
	cr_expect_str_eq(told(SIGTERM, SI_QUEUE), "stop:15 ");
	cr_expect_str_eq(told(SIGTERM, SI_KERNEL), "stop:15 ");
	cr_expect_str_eq(told(SIGQUIT, SI_KERNEL), "stop:3 ");
	cr_expect_str_eq(told(SIGHUP, SI_KERNEL), "stop:1 ");
	job.hup_ignored = true;
	cr_expect_str_eq(told(SIGHUP, SI_KERNEL), "");
	cr_expect_str_eq(told(SIGALRM, SI_QUEUE), "");
	cr_expect_str_eq(read_them(), ""); /* there is none */
	cr_expect(!sup.told);
}

Test(signals, to_end_hurries_a_job_that_is_over)
{
	sup.phase = PHASE_DELIVER;
	cr_expect_str_eq(told(SIGINT, SI_KERNEL), "next:2 hurry ");
	cr_expect(sup.told);
	cr_expect_str_eq(told(SIGTERM, SI_QUEUE), "next:15 hooks give_up ");
	cr_expect_str_eq(told(SIGHUP, SI_KERNEL), "next:1 hooks give_up ");
	cr_expect(sup.told);
}

Test(signals, all_that_were_told_are_heard_in_order)
{
	for (int i = 0; i < 9; i++)
		add(i % 2 == 0 ? SIGTERM : SIGINT, SI_QUEUE);
	cr_expect_str_eq(read_them(),
		"stop:15 stop:2 stop:15 stop:2 stop:15 stop:2 stop:15 stop:2 ");
	cr_expect_str_eq(read_them(), "stop:15 ");
}

Test(signals, those_of_the_user_go_to_the_ranks)
{
	ranks[1].pidfd = -1;
	cr_expect_str_eq(told(SIGUSR1, SI_QUEUE), "kill:-10,10 kill:-12,10 ");
	ranks[1].pidfd = 0;
	cr_expect_str_eq(told(SIGUSR2, SI_QUEUE),
		"kill:-10,12 kill:-11,12 kill:-12,12 ");
}

Test(signals, a_stop_holds_all_clocks)
{
	cr_expect_str_eq(told(SIGTSTP, SI_KERNEL),
		"all:19 tty raise:19,1 stood:50 resize look:1 all:18 ");
	cr_expect(sup.until_ns == 0 && sup.retry_ns == 0 &&
		sup.unread_ns == 0 && sup.unfed_ns == 0);
	cr_expect_eq(ranks[0].drain_ns, 0);
	cr_expect_eq(page.again.begun_ns, 50);
	sup.tty_in = (struct tty_in *)&job;
	sup.until_ns = 1;
	sup.retry_ns = 2;
	sup.unread_ns = 3;
	sup.unfed_ns = 4;
	ranks[0].drain_ns = 5;
	ranks[2].drain_ns = 6;
	timers[0].armed = timers[SUP_DEADLINES - 1].armed = true;
	timers[0].left = 0;
	timers[SUP_DEADLINES - 1].left = 7;
	cr_expect_str_eq(told(SIGTSTP, SI_KERNEL),
		"all:19 tty raise:19,1 stood:50 arm:a,1 arm:d,8 "
		"keys resize look:1 all:18 ");
	cr_expect_eq(sup.until_ns, 51);
	cr_expect_eq(sup.retry_ns, 52);
	cr_expect_eq(sup.unread_ns, 53);
	cr_expect_eq(sup.unfed_ns, 54);
	cr_expect_eq(ranks[0].drain_ns, 55);
	cr_expect_eq(ranks[1].drain_ns, 0);
	cr_expect_eq(ranks[2].drain_ns, 56);
	cr_expect_eq(page.again.begun_ns, 100);
}

Test(signals, others_look_at_the_terminal_and_at_children)
{
	cr_expect_str_eq(told(SIGCONT, SI_QUEUE), "resize look:1 all:18 ");
	sup.tty_in = (struct tty_in *)&job;
	cr_expect_str_eq(told(SIGCONT, SI_QUEUE), "keys resize look:1 all:18 ");
	cr_expect_str_eq(told(SIGWINCH, SI_KERNEL), "resize look:0 ");
	cr_expect_str_eq(told(SIGCHLD, CLD_EXITED), "arm:S,1000000000 ");
	strangers.armed = true;
	cr_expect_str_eq(told(SIGCHLD, CLD_EXITED), "");
}

Test(signals, those_that_are_heard_of_are_read)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1,
		SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH, SIGCHLD };
	struct signalfd_siginfo info[16];
	sigset_t all, old;
	int fd = signals_open();
	size_t count = sizeof(sigs) / sizeof(sigs[0]);

	cr_assert_neq(fd, -1);
	cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	sigfillset(&all);
	cr_assert_eq(sigprocmask(SIG_BLOCK, &all, &old), 0);
	raise_real(SIGALRM);
	cr_expect_eq(read(fd, info, sizeof(info)), -1); /* does not wait */
	cr_expect_eq(errno, EAGAIN);
	for (size_t i = 0; i < count; i++)
		raise_real(sigs[i]);
	/* SIGCONT and SIGTSTP take each other away. */
	cr_expect_eq(read(fd, info, sizeof(info)),
		(ssize_t)((count - 1) * sizeof(info[0])));
	raise_real(SIGTSTP);
	cr_expect_eq(read(fd, info, sizeof(info)), (ssize_t)sizeof(info[0]));
	cr_expect_eq(info[0].ssi_signo, SIGTSTP);
	close(fd);
}
