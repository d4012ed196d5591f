/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/signo.h"
#include "base/utf8.h"
#include "launcher/ctl/errors.h"
#include "launcher/host/check.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/answer.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/renew.h"
#include "launcher/keeper/report_file.h"
#include "launcher/keeper/salvage.h"
#include "launcher/log/raw.h"
#include "proc/descend.h"

#define SWEEP_PATIENCE (30 * NS_PER_S)
#define LEAF_TRIES     1000              /* a millisecond each */
#define EXIT_PATIENCE  1                 /* seconds; a thread may be frozen */
#define START_PATIENCE 1                 /* seconds; a newborn may be stopped */
#define LOST           "supervisor lost" /* the reason of an end */

enum event { EV_SIGNAL, EV_CHILD, EV_DEATH, EV_OVERDUE, EV_SILENCE, EVENTS };

struct keeper {
	struct job *job;
	keeper_fn *fn; /* of a supervisor */
	pid_t pid;     /* the supervisor */
	int pidfd;
	int signals;
	struct signalfd_siginfo info; /* of EV_SIGNAL and EV_CHILD */
	int status;                   /* of xrun */
	int wait_status;              /* how the supervisor ended */
	bool blind;                   /* poll(2) is refused: wait for it */
	bool killed;                  /* by us: it did not answer */
	bool traced;                  /* dead, and a debugger keeps it */
	bool released;                /* see keeper_release() */
	struct answer answer;         /* of the supervisor, to a signal */
};

/* True when the job is over. */
typedef bool action_fn(struct keeper *k);

bool
keeper_is_dead(const struct keeper_page *page)
{
	struct pollfd p = { .fd = page->keeper, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void
keeper_follow_stop(struct keeper_page *page)
{
	__atomic_store_n(&page->follow, 1, __ATOMIC_SEQ_CST);
}

static bool
begins_again(const struct keeper *k)
{
	return (__atomic_load_n(&k->job->page->verdict, __ATOMIC_SEQ_CST) &
		       KEEPER_AGAIN) != 0;
}

/* Its last word is said, but a thread of it may be in a sleep that no signal
 * ends, as in a write to a frozen file system. True if there was a word, and it
 * was that the job is over. */
static bool
take_verdict(struct keeper *k)
{
	if (k->job->page->verdict == 0 || begins_again(k))
		return false;
	k->status = k->job->page->verdict & 0xff;
	return true;
}

static bool
tells_to_end(int sig)
{
	return sig == SIGTERM || sig == SIGINT || sig == SIGHUP ||
		sig == SIGQUIT;
}

/* For the supervisor that comes next. */
static void
leave_word(const struct job *job, int sig)
{
	if (tells_to_end(sig) && (sig != SIGHUP || !job->hup_ignored))
		job->page->again.told = sig;
}

void
keeper_all_started(struct keeper_page *page)
{
	const struct itimerspec never = { 0 };

	__atomic_store_n(&page->started, 1, __ATOMIC_SEQ_CST);
	timerfd_settime(page->overdue, 0, &never, NULL);
}

/* To the supervisor, with the mark of one that was sent with kill(1). The
 * terminal's own reach it without us. */
static bool
pass_on(struct keeper *k)
{
	siginfo_t info = {
		.si_signo = (int)k->info.ssi_signo,
		.si_code = SI_QUEUE,
	};

	if (tells_to_end(info.si_signo) && take_verdict(k))
		return true;
	/* A terminal that is gone tells the leader of the session only. */
	if (k->info.ssi_code == SI_KERNEL && info.si_signo != SIGHUP &&
		!begins_again(k))
		return false;
	if (tells_to_end(info.si_signo) &&
		(info.si_signo != SIGHUP || !k->job->hup_ignored))
		answer_expect(&k->answer, k->job->page);
	fault(FAULT_KEEPER_SIGNAL, FAULT_ANY);
	syscall(SYS_pidfd_send_signal, k->pidfd, info.si_signo, &info, 0);
	/* Whoever stopped it (a rank can) does not keep it from ending. */
	if (tells_to_end(info.si_signo))
		syscall(SYS_pidfd_send_signal, k->pidfd, SIGCONT, NULL, 0);
	/* It may not have heard it any more: the next one does. */
	if (begins_again(k))
		leave_word(k->job, info.si_signo);
	return false;
}

static bool
is_supervisor(pid_t pid, void *ctx)
{
	const struct keeper *k = ctx;

	return pid == k->pid;
}

/* Stopped as a shell expects of a program that was told to (148). The kernel
 * stops no group that nobody could continue: then all go on. */
static void
stop_here(struct keeper *k)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	syscall(SYS_pidfd_send_signal, k->pidfd, SIGCONT, NULL, 0);
}

/* The supervisor stopped itself, and so the job; or an orphan came to us. */
static bool
child_changed(struct keeper *k)
{
	struct descend d = { .keep = is_supervisor, .ctx = k };

	if (__atomic_exchange_n(&k->job->page->follow, 0, __ATOMIC_SEQ_CST))
		stop_here(k);
	descend_reap(&d);
	return false;
}

/* Where that can be seen, the last word begins a line of its own: whoever wrote
 * before was killed, and may have been amid one. */
static bool
amid_a_line(void)
{
	int fd = open("/proc/self/fd/2", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char last = '\n';
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) != 1)
		last = '\n';
	fd_close(fd);
	return last != '\n';
}

static void
say_lost(struct keeper *k, uint32_t alive)
{
	const char *where = k->job->page->where;
	char text[768], name[16], lost[RAW_LOST_MAX];
	int n;

	n = snprintf(text, sizeof(text),
		"%sxrun: the supervisor ended (%s): all ranks were ended with it%s%s\n",
		amid_a_line() ? "\n" : "",
		WIFSIGNALED(k->wait_status) ?
			signo_name(WTERMSIG(k->wait_status), name,
				sizeof(name)) :
			"without a verdict",
		where[0] != '\0' ? "; what they wrote is in " : "", where);
	if (alive > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"xrun: %u processes cannot be ended, not even with SIGKILL, and are left\n",
			alive);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%s",
		raw_lost_text(k->job->share, lost));
	utf8_tame(text, utf8_narrow(STDERR_FILENO));
	fd_write_all(STDERR_FILENO, text, (size_t)n);
}

/* So that nobody takes it for one whose keeper was killed as well, and ends
 * whatever has its name by then. */
static void
close_record(const struct job *job, int status, const char *reason)
{
	char members[200], stamp[40];

	if (job->state.dir_fd == -1)
		return;
	snprintf(members, sizeof(members),
		",\"end\":\"%s\",\"exit\":%d,\"reason\":\"%s\""
		",\"bytes\":%llu,\"bytes_before\":%lld",
		clock_stamp(clock_wall(), stamp, sizeof(stamp)), status, reason,
		(unsigned long long)raw_written(job->share),
		(long long)job->state.bytes_before);
	state_amend(&job->state, "job.json", ",\"exit\":", members);
	state_close(&job->state);
}

/* By the supervisor, after its verdict; by the keeper, should it have been
 * killed before it came to that. What stays, since a rank that said nothing
 * left a file there, has an end. */
static void
remove_silent(struct job *job, int status, const char *reason)
{
	if (job->page->silent == 0)
		return;
	if (!state_remove(&job->state))
		close_record(job, status, reason);
	else
		job->page->removed = 1;
	job->page->silent = 0;
}

/* Those who were killed in them need a moment. */
static void
remove_leaves(struct keeper *k)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	int tries = 0;

	while (!leaf_remove(&k->job->page->leaves) && tries++ < LEAF_TRIES)
		nanosleep(&pause, NULL);
}

/* The job had ended, and its supervisor was killed while it said so: what was
 * begun to be told is told whole, and xrun ends as it says. True if it had. */
static bool
end_as_told(struct keeper *k)
{
	struct job *job = k->job;
	int sys = 0;

	if (job->page->told == 0)
		return false;
	k->status = job->page->told & 0xff;
	if (job->page->closed == 0 && job->report_fd != -1)
		sys = report_file_finish(job);
	if (sys != 0) {
		dprintf(STDERR_FILENO,
			"xrun: --report: %s: %s; it is not complete\n",
			job->opt.report, strerror(sys));
		k->status = k->status == 0 ? EXIT_XRUN : k->status;
	}
	job->page->closed = 1;
	if (job->page->silent == 0)
		close_record(job, k->status, LOST);
	return true;
}

/* A fork that shares the table of descriptors. libc's own fork cannot, and
 * nothing of libc that needs telling was used yet: there is one thread. */
pid_t
keeper_fork(int *pidfd)
{
	return (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD,
		NULL, pidfd, NULL, 0);
}

/* One that was to begin again, and cannot. */
static bool
give_up(struct keeper *k, const char *what)
{
	dprintf(STDERR_FILENO, "xrun: the job cannot begin again: %s: %s\n",
		what, strerror(errno));
	ctl_place_remove(&k->job->page->ctl);
	close_record(k->job, EXIT_XRUN, "xrun");
	record_note(k->job, EXIT_XRUN, "xrun");
	k->status = EXIT_XRUN;
	return true;
}

static bool make_supervisor(struct keeper *k, const char **what);

/* What the terminal told while there was no supervisor: it was told to us alone.
 * And of the one before, had it to be killed, nobody tells again that it died. */
static void
hear_late(struct keeper *k)
{
	while (read(k->signals, &k->info, sizeof(k->info)) == sizeof(k->info)) {
		if (k->info.ssi_signo == SIGCHLD) {
			child_changed(k);
			continue;
		}
		if (k->info.ssi_code == SI_KERNEL)
			k->info.ssi_code = SI_QUEUE;
		pass_on(k);
	}
}

/* True if that cannot be done: the job is over, then. */
static bool
begin_again(struct keeper *k)
{
	const char *what;

	/* A thread of it may be in a sleep that no signal ends: it is not to
	 * wake among descriptors of the next. */
	syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
	salvage_output(k->job);
	remove_leaves(k);
	k->answer = (struct answer){ 0 };
	k->killed = false;
	if (renew_job(k->job, &what) == -1 || !make_supervisor(k, &what))
		return give_up(k, what);
	hear_late(k);
	return false;
}

/* What a supervisor that was killed had there. */
static void
remove_socket(const struct job *job)
{
	if (job->page->ctl.dir != -1)
		ctl_place_remove(&job->page->ctl);
	else
		ctl_place_forget(job->state.id);
}

/* The supervisor is dead. A debugger can keep it from being reaped: then the signal
 * is not known, and it was SIGKILL most likely. */
static void
keeper_reap(struct keeper *k)
{
	siginfo_t info = { 0 };
	int flags = WEXITED | (k->blind ? 0 : WNOHANG), failed;

	do
		failed = waitid(P_PID, (id_t)k->pid, &info, flags);
	while (failed == -1 && errno == EINTR);
	k->traced = failed == 0 && info.si_pid == 0;
	if (k->traced)
		k->wait_status = SIGKILL;
	else
		k->wait_status = info.si_code == CLD_EXITED ?
			info.si_status << 8 :
			info.si_status;
}

/* The sweep leaves a supervisor that cannot be reaped. */
static bool
is_traced(pid_t pid, void *ctx)
{
	const struct keeper *k = ctx;

	return k->traced && pid == k->pid;
}

/* The supervisor is dead. With a verdict that is the end of the job; without
 * one it crashed, and everything below it is ours now. */
static bool
supervisor_died(struct keeper *k)
{
	struct descend everybody = { .keep = is_traced, .ctx = k };
	uint32_t alive;
	bool silent;

	fault(FAULT_KEEPER_DEATH, FAULT_ANY);
	keeper_reap(k);
	if (begins_again(k))
		return begin_again(k);
	if (take_verdict(k) || end_as_told(k)) {
		salvage_output(k->job);
		remove_leaves(k);
		ctl_place_remove(&k->job->page->ctl);
		remove_silent(k->job, k->status, LOST);
		if (WIFSIGNALED(k->wait_status))
			record_note(k->job, k->status, LOST);
		return true;
	}
	own_tty_restore(&k->job->page->own);
	/* The last rank's write ends stand in the slots. */
	for (int slot = SPAWN_SLOT_IN; slot < SPAWN_SLOTS; slot++)
		close(slot);
	fault(FAULT_KEEPER_SWEEP, FAULT_ANY);
	if (k->job->page->leaves.on)
		leaf_kill(&k->job->page->leaves);
	alive = descend_end(&everybody, clock_now() + SWEEP_PATIENCE);
	remove_leaves(k);
	remove_socket(k->job);
	fault(FAULT_KEEPER_DRAIN, FAULT_ANY);
	raw_drain(k->job->share, SALVAGE_PATIENCE);
	salvage_terminal(k->job);
	silent = !k->job->page->kept && raw_written(k->job->share) == 0 &&
		state_remove(&k->job->state);
	k->job->page->removed = silent;
	if (silent)
		k->job->page->where[0] = '\0';
	say_lost(k, alive);
	if (!silent)
		close_record(k->job, EXIT_XRUN, LOST);
	record_note(k->job, EXIT_XRUN, LOST);
	k->status = EXIT_XRUN;
	return true;
}

static void
arm(const struct job *job, int seconds)
{
	struct itimerspec in = { .it_value.tv_sec = seconds };

	timerfd_settime(job->page->overdue, 0, &in, NULL);
}

/* Returns true if nothing is left to do but to wait for the exit of the supervisor. */
static bool
keeper_has_all(const struct keeper *k)
{
	const struct keeper_page *page = k->job->page;

	return page->cleaned && page->again.restarts == 0 &&
		page->ctl.dir == -1 && !page->leaves.on &&
		k->job->share->left == 0;
}

/* The supervisor has done all and only exits. The keeper closes their descriptors, of which
 * there are dozens, while the kernel frees the memory of the supervisor, instead of after
 * that: it frees the blocks of a removed folder, sockets and pipes. */
static bool
keeper_release(struct keeper *k)
{
	const struct keeper_page *page = k->job->page;
	const int keep[] = { k->signals, k->pidfd, page->overdue, page->keeper,
		k->job->report_fd };

	if (k->released || !__atomic_load_n(&page->done, __ATOMIC_SEQ_CST))
		return false;
	k->released = true;
	if (keeper_has_all(k))
		fd_close_but(STDERR_FILENO + 1, keep,
			sizeof(keep) / sizeof(keep[0]));
	return true;
}

/* Ranks are still being made. The supervisor sleeps from the clone of one to
 * its exec, and hears nothing; a rank that stops its newborn sibling would have
 * it sleep for ever. */
static bool
overdue(struct keeper *k)
{
	uint64_t times;

	if (keeper_release(k)) {
		arm(k->job, EXIT_PATIENCE);
		return false;
	}
	if (take_verdict(k))
		return true;
	if (begins_again(k))
		return begin_again(k);
	(void)!read(k->job->page->overdue, &times, sizeof(times));
	if (__atomic_load_n(&k->job->page->started, __ATOMIC_SEQ_CST))
		return false;
	descend_wake(k->pid, KEEPER_SUPER_NAME);
	arm(k->job, START_PATIENCE);
	return false;
}

static bool
keeper_on_silence(struct keeper *k)
{
	bool missed = answer_missed(&k->answer, k->job->page);

	if (begins_again(k))
		return false;
	if (missed && take_verdict(k))
		return true;
	if (k->killed && answer_is_dead(k->pid))
		return supervisor_died(k);
	if (missed && !k->killed)
		dprintf(STDERR_FILENO,
			"xrun: the supervisor does not answer: xrun ends it\n");
	k->killed = k->killed || missed;
	if (k->killed) {
		syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
		answer_expect_soon(&k->answer, k->job->page);
	}
	return false;
}

static action_fn *const actions[EVENTS] = {
	[EV_SIGNAL] = pass_on,
	[EV_CHILD] = child_changed,
	[EV_DEATH] = supervisor_died,
	[EV_OVERDUE] = overdue,
	[EV_SILENCE] = keeper_on_silence,
};

static enum event
wait_for_event(struct keeper *k)
{
	struct pollfd p[] = {
		{ .fd = k->signals, .events = POLLIN },
		{ .fd = k->pidfd, .events = POLLIN },
		{ .fd = k->job->page->overdue, .events = POLLIN },
	};
	int n;

	for (;;) {
		n = poll(p, 3, answer_timeout(&k->answer));
		/* In a sandbox that knows no poll(2) it is waited for. */
		if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
			k->blind = true;
			return EV_DEATH;
		}
		if (n < 0)
			continue;
		if (n == 0)
			return EV_SILENCE;
		if (p[1].revents != 0)
			return EV_DEATH;
		if (p[2].revents != 0)
			return EV_OVERDUE;
		if (p[0].revents == 0 ||
			read(k->signals, &k->info, sizeof(k->info)) !=
				sizeof(k->info))
			continue;
		return k->info.ssi_signo == SIGCHLD ? EV_CHILD : EV_SIGNAL;
	}
}

static int
watch_over(struct keeper *k)
{
	bool over = false;

	while (!over)
		over = actions[wait_for_event(k)](k);
	own_tty_restore(&k->job->page->own);
	if (!k->job->page->cleaned) {
		errors_remove(k->job->errors);
		record_remove(k->job);
	}
	return k->status;
}

/* What was told to a supervisor that reads no more. Who tells from now on sees
 * the verdict, see pass_on(). */
static void
leave_pending(const struct job *job)
{
	sigset_t pending;

	sigpending(&pending);
	for (int sig = 1; sig < SIGRTMIN; sig++)
		if (sigismember(&pending, sig) == 1)
			leave_word(job, sig);
}

/* The verdict first: what touches the disk after it keeps nobody waiting for
 * ever. */
static void
be_supervisor(struct job *job, keeper_fn *job_fn)
{
	const struct itimerspec at_once = { .it_value.tv_nsec = 1 };
	bool again;
	int status;

	prctl(PR_SET_NAME, KEEPER_SUPER_NAME);
	prctl(PR_SET_PDEATHSIG, SIGCONT); /* stopped or not: it has to know */
	record_mark(job);
	record_begin(job);
	fault(FAULT_SUPER_START, FAULT_ANY);
	status = job_fn(job);
	keeper_all_started(job->page);
	fault(FAULT_SUPER_END, FAULT_ANY);
	if (status != KEEPER_NO_VERDICT) {
		again = again_is_due(&job->page->again);
		__atomic_store_n(&job->page->verdict,
			KEEPER_VERDICT | (again ? KEEPER_AGAIN : 0) |
				(status & 0xff),
			__ATOMIC_SEQ_CST);
		if (again)
			leave_pending(job);
		arm(job, EXIT_PATIENCE);
		remove_silent(job, status, outcome_of(job).reason);
		if (!again) {
			record_note(job, status, outcome_of(job).reason);
			job->page->cleaned = errors_remove(job->errors) &&
				record_remove(job);
			__atomic_store_n(&job->page->done, 1, __ATOMIC_SEQ_CST);
			timerfd_settime(job->page->overdue, 0, &at_once, NULL);
		}
	}
	_exit(0);
}

/* False with errno, and @what failed. */
static bool
make_supervisor(struct keeper *k, const char **what)
{
	*what = "clone";
	arm(k->job, START_PATIENCE);
	if (fault(FAULT_KEEPER_CLONE, FAULT_ANY) != 0)
		return false;
	k->pid = keeper_fork(&k->pidfd);
	if (k->pid == 0)
		be_supervisor(k->job, k->fn);
	return k->pid != -1;
}

static int
cannot(const struct job *job, const char *call)
{
	dprintf(STDERR_FILENO, "xrun: cannot start the supervisor: %s: %s\n",
		call, strerror(errno));
	state_remove(&job->state);
	errors_remove(job->errors);
	record_remove(job);
	return EXIT_XRUN;
}

int
keeper_run(struct job *job, keeper_fn *job_fn)
{
	struct keeper k = {
		.job = job,
		.fn = job_fn,
		.status = EXIT_XRUN,
	};
	const char *what;
	sigset_t all;

	sigfillset(&all);
	k.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k.signals == -1 || prctl(PR_SET_CHILD_SUBREAPER, 1) == -1)
		return cannot(job, "signalfd");
	job->page->keeper = (int)syscall(SYS_pidfd_open, getpid(), 0);
	job->page->overdue =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (job->page->overdue == -1)
		return cannot(job, "timerfd_create");
	if (job->page->keeper == -1)
		return cannot(job, "pidfd_open (Linux 5.3 or later has it)");
	fd_reserve(check_table(&job->limits, job->plan.local_size));
	renew_note(job);
	if (!make_supervisor(&k, &what))
		return cannot(job, what);
	fault(FAULT_KEEPER_WATCH, FAULT_ANY);
	return watch_over(&k);
}
