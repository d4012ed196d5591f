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
#include "launcher/keeper/answer.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/next.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/hook.h"

struct row {
	int sig;
	void (*fn)(struct job *job, const struct signalfd_siginfo *info);
};

/* Ranks are over: the first word begins the patience with slow readers, unless
 * it began with the end of the job; the next one ends it. */
static void
hurry(struct job *job)
{
	if (job->sup->told) {
		hook_hurry(job);
		finish_give_up(job);
	} else
		finish_hurry(job);
	job->sup->told = true;
}

static void
on_interrupt(struct job *job, const struct signalfd_siginfo *info)
{
	if (job->sup->phase != PHASE_RUN) {
		next_told(job, (int)info->ssi_signo);
		hurry(job);
	} else if (info->ssi_signo == SIGINT && info->ssi_code == SI_KERNEL)
		stop_by_ctrl_c(job);
	else
		stop_by_signal(job, (int)info->ssi_signo);
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

/* The clocks of the job stand still while it is stopped. */
static void
resume_clocks(struct job *job, const int64_t *left, int64_t stood)
{
	struct timer **timer = job->sup->deadlines;

	hang_stood(job, stood);
	job->page->again.begun_ns += stood; /* of --timeout */
	for (int i = 0; i < SUP_DEADLINES; i++)
		if (left[i] != 0)
			timer_arm(timer[i], left[i]);
	if (job->sup->until_ns != 0)
		job->sup->until_ns += stood;
	if (job->sup->retry_ns != 0)
		job->sup->retry_ns += stood;
	if (job->sup->unread_ns != 0)
		job->sup->unread_ns += stood;
	if (job->sup->unfed_ns != 0)
		job->sup->unfed_ns += stood;
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].drain_ns != 0)
			job->rank[i].drain_ns += stood;
}

/* Ctrl-Z: ranks, supervisor, keeper. Going on is the reverse. */
static void
on_stop(struct job *job, const struct signalfd_siginfo *info)
{
	struct timer **timer = job->sup->deadlines;
	int64_t left[SUP_DEADLINES], begun = clock_now();

	(void)info;
	for (int i = 0; i < SUP_DEADLINES; i++)
		left[i] = timer_armed(timer[i]) ? timer_left(timer[i]) + 1 : 0;
	step_signal_all(job, SIGSTOP);
	own_tty_restore(&job->page->own);
	keeper_follow_stop(job->page);
	raise(SIGSTOP);
	/* Continued. */
	resume_clocks(job, left, clock_now() - begun);
	if (job->sup->tty_in != NULL)
		tty_in_resume(job->sup->tty_in);
	pty_resize(job);
	logs_look(job->sup->logs, true);
	step_signal_all(job, SIGCONT);
}

static void
on_continue(struct job *job, const struct signalfd_siginfo *info)
{
	(void)info;
	if (job->sup->tty_in != NULL)
		tty_in_resume(job->sup->tty_in);
	pty_resize(job);
	logs_look(job->sup->logs, true);
	step_signal_all(job, SIGCONT);
}

static void
on_resize(struct job *job, const struct signalfd_siginfo *info)
{
	(void)info;
	pty_resize(job);
	logs_look(job->sup->logs, false);
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
	{ SIGWINCH, on_resize },
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

	answer_note(job->page);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(info[0]); i++)
		for (unsigned k = 0; k < ROWS; k++)
			if (rows[k].sig == (int)info[i].ssi_signo)
				rows[k].fn(job, &info[i]);
}
