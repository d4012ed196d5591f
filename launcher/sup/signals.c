/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - what xrun is told, and by whom.
 *
 * The terminal's signals reach keeper and supervisor alike, with SI_KERNEL;
 * the supervisor acts on its own. Signals sent with kill(1) meet the keeper,
 * which passes them on with SI_QUEUE. A signal that somebody sends to the
 * supervisor itself, as kill to a whole group does, counts as one that was
 * passed on already.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <sys/signalfd.h>

#include "base/clock.h"
#include "launcher/sup/keeper.h"
#include "launcher/sup/screen.h"
#include "launcher/sup/sup.h"

struct row {
	int sig;
	void (*fn)(struct job *job, const struct signalfd_siginfo *info);
};

/* Ctrl-C on a terminal: a word with the ranks first, then the ladder. */
static void
pressed(struct job *job)
{
	struct sup *sup = job->sup;

	sup->interrupts++;
	if (sup->interrupts == 1 && job->cause == CAUSE_NONE) {
		screen_interrupt(job);
		if (job->opt.interrupt == INTERRUPT_ASK)
			return;
		job->cause = CAUSE_SIGNAL;
		job->cause_signal = SIGINT;
		job->stop_ns = clock_now();
		bus_tell(sup->bus, BUS_JOB_STOP, 0);
		step_signal_all(job, SIGINT);
		return;
	}
	screen_interrupt_again(job, sup->interrupts);
	if (job->opt.interrupt == INTERRUPT_ASK && sup->interrupts == 2 &&
		job->cause == CAUSE_NONE) {
		job->cause_signal = SIGINT;
		stop_job(job, CAUSE_SIGNAL);
	} else if (sup->interrupts == 2 && !timer_armed(sup->grace)) {
		job->cause = CAUSE_NONE; /* the ladder starts here */
		stop_job(job, CAUSE_SIGNAL);
	} else {
		stop_kill(job);
	}
}

static void
on_interrupt(struct job *job, const struct signalfd_siginfo *info)
{
	if (info->ssi_signo == SIGINT && info->ssi_code == SI_KERNEL &&
		job->sup->phase == PHASE_RUN) {
		pressed(job);
		return;
	}
	job->cause_signal = job->cause == CAUSE_NONE ? (int)info->ssi_signo :
						       job->cause_signal;
	if (job->sup->phase == PHASE_RUN)
		stop_job(job, CAUSE_SIGNAL);
	else
		finish_hurry(job);
}

static void
on_hangup(struct job *job, const struct signalfd_siginfo *info)
{
	if (!job->hup_ignored)
		on_interrupt(job,
			&(struct signalfd_siginfo){ .ssi_signo = SIGHUP,
				.ssi_code = SI_QUEUE });
	(void)info;
}

/* To be heard by the ranks: checkpoint now, say. */
static void
on_user(struct job *job, const struct signalfd_siginfo *info)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].pidfd != -1)
			kill(-job->rank[i].pid, (int)info->ssi_signo);
}

static int64_t stopped_at;

static struct timer **
deadlines(struct sup *sup, struct timer *out[4])
{
	out[0] = sup->timeout;
	out[1] = sup->grace;
	out[2] = sup->drain;
	out[3] = sup->silence;
	return out;
}

/* Ctrl-Z: ranks, supervisor, keeper. Going on is the reverse; the clocks of
 * the job stand still in between. */
static void
on_stop(struct job *job, const struct signalfd_siginfo *info)
{
	struct timer *timer[4];
	int64_t left[4];

	(void)info;
	deadlines(job->sup, timer);
	for (int i = 0; i < 4; i++)
		left[i] = timer_armed(timer[i]) ? timer_left(timer[i]) + 1 : 0;
	step_signal_all(job, SIGSTOP);
	stopped_at = clock_now();
	keeper_follow_stop(job->page);
	raise(SIGSTOP);
	/* Continued. */
	for (int i = 0; i < 4; i++)
		if (left[i] != 0)
			timer_arm(timer[i], left[i]);
	step_signal_all(job, SIGCONT);
	if (job->sup->tty_in != NULL)
		tty_in_resume(job->sup->tty_in);
}

static void
on_continue(struct job *job, const struct signalfd_siginfo *info)
{
	(void)info;
	step_signal_all(job, SIGCONT);
	if (job->sup->tty_in != NULL)
		tty_in_resume(job->sup->tty_in);
}

static void
on_child(struct job *job, const struct signalfd_siginfo *info)
{
	(void)info;
	if (!timer_armed(job->sup->strangers))
		timer_arm(job->sup->strangers, NS_PER_S);
}

static const struct row rows[] = {
	{ SIGINT, on_interrupt },
	{ SIGTERM, on_interrupt },
	{ SIGQUIT, on_interrupt },
	{ SIGHUP, on_hangup },
	{ SIGUSR1, on_user },
	{ SIGUSR2, on_user },
	{ SIGTSTP, on_stop },
	{ SIGCONT, on_continue },
	{ SIGCHLD, on_child },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

int
signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < ROWS; i++)
		sigaddset(&set, rows[i].sig);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void
signals_read(int fd, void *ctx)
{
	struct signalfd_siginfo info[8];
	struct job *job = ctx;
	ssize_t n = read(fd, info, sizeof(info));

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(info[0]); i++)
		for (unsigned k = 0; k < ROWS; k++)
			if (rows[k].sig == (int)info[i].ssi_signo)
				rows[k].fn(job, &info[i]);
}
