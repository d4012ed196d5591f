/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_rig.h - a keeper and its supervisor, with events that a test makes up.
 *
 * What both call is noted, for each of them apart. The program is linked
 * with the --wrap of all that is replaced here (meson.build).
 */
#ifndef TESTS_UNIT_KEEPER_RIG_H
#define TESTS_UNIT_KEEPER_RIG_H

#include <poll.h>
#include <sched.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
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
#include "proc/spawn.h"
#include "tests/unit/forked.h"

#define NOW (1000 * NS_PER_S)

/* Who does it: actions of both are noted apart, since nobody orders them. */
struct noted_of {
	char text[2000];
};

static struct {
	struct noted_of keeper, super;
} *noted; /* shared by both */

static pid_t keeper_pid;
static struct job job;

/* What happens, for poll(2): see wait_script(). */
static const char *script;

static struct {
	unsigned leaf_tries; /* until the groups are gone */
	bool again;          /* again_is_due() */
	int renew_sys;       /* of renew_job(); 0: it is done */
	int report_sys;      /* of report_file_finish() */
	bool stays;          /* state_remove() fails */
	bool errors_stay, record_stays;
	uint32_t alive;   /* whom descend_end() leaves */
	bool missed[8];   /* answer_missed(), in order */
	unsigned asked;   /* answer_missed() */
	bool is_dead;     /* answer_is_dead() */
	int reap_eintr;   /* calls of waitid() that are interrupted */
	bool traced;      /* waitid() finds nobody */
	const char *lost; /* raw_lost_text() */
	bool late;        /* the pid of the supervisor is not known yet */
	bool no_signalfd, no_subreaper, no_pidfd, no_timer;
} played;

static unsigned sleeps;

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	struct noted_of *n =
		getpid() == keeper_pid ? &noted->keeper : &noted->super;
	size_t len = strlen(n->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n->text + len, sizeof(n->text) - len, fmt, ap);
	va_end(ap);
}

/* --- what is called ---------------------------------------------------------- */

int __real_poll(struct pollfd *p, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *in,
	struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *in,
	struct itimerspec *old);
int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int flags);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int flags);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_raise(int sig);
int __real_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_prctl(int what, ...);
int __wrap_prctl(int what, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d);
int __real_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int64_t __wrap_clock_now(void);
int64_t __wrap_clock_wall(void);
void __wrap_record_mark(const struct job *j);
void __wrap_record_begin(struct job *j);
bool __wrap_record_remove(const struct job *j);
void __wrap_record_note(struct job *j, int status, const char *reason);
bool __wrap_errors_remove(const char *prefix);
void __wrap_renew_note(const struct job *j);
int __wrap_renew_job(struct job *j, const char **what);
void __wrap_salvage_output(struct job *j);
void __wrap_salvage_terminal(const struct job *j);
bool __wrap_ctl_place_remove(const struct ctl_place *p);
void __wrap_ctl_place_forget(const char *id);
bool __wrap_leaf_remove(struct leaves *leaves);
void __wrap_leaf_kill(const struct leaves *leaves);
void __wrap_own_tty_restore(struct own_tty *tty);
uint32_t __wrap_descend_end(const struct descend *d, int64_t deadline);
uint32_t __wrap_descend_reap(const struct descend *d);
void __wrap_descend_wake(pid_t parent, const char *comm);
uint64_t __wrap_raw_drain(struct raw_share *share, int64_t patience);
uint64_t __wrap_raw_written(const struct raw_share *share);
const char *__wrap_raw_lost_text(const struct raw_share *share, char *out);
int __wrap_report_file_finish(struct job *j);
void __wrap_answer_expect(struct answer *a, const struct keeper_page *page);
void __wrap_answer_expect_soon(struct answer *a,
	const struct keeper_page *page);
bool __wrap_answer_missed(struct answer *a, const struct keeper_page *page);
bool __wrap_answer_is_dead(pid_t pid);
int __wrap_answer_timeout(const struct answer *a);
bool __wrap_again_is_due(const struct again *a);
uint32_t __wrap_check_table(const struct limits *limits, uint32_t ranks);
void __wrap_fd_reserve(unsigned count);
bool __wrap_fd_close_but(unsigned from, const int *keep, unsigned count);
struct outcome __wrap_outcome_of(const struct job *j);
bool __wrap_state_remove(const struct state *state);
int __wrap_state_amend(const struct state *state, const char *name,
	const char *key, const char *members);
void __wrap_state_close(const struct state *state);

/* One letter for each event that the keeper waits for: D the death of the supervisor,
 * O the timer, T the time for an answer, S a signal that somebody sent, K one of the
 * kernel's, C a child, E an interruption, B a refused poll(2), N nothing. With ! before it
 * the supervisor has ended by then, with . it waits for the test. With S and K, the
 * signal follows as a letter: see signal_of(). */
static inline int
signal_of(char letter)
{
	static const char letters[] = "tihqu";
	static const int sig[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 };
	const char *at = strchr(letters, letter);

	return at != NULL ? sig[at - letters] : 0;
}

static inline void
send_self(int sig, int code)
{
	siginfo_t info = { .si_signo = sig, .si_code = code };

	NEED(__real_syscall(SYS_rt_sigqueueinfo, (long)getpid(), (long)sig,
		     &info) == 0);
}

/* Until the supervisor has come to the place where it waits. */
static int ready[2], go[2];

static int waited[2]; /* for signals, and the supervisor */

static inline void
await_ready(void)
{
	char byte;

	NEED(read(ready[0], &byte, 1) == 1);
}

/* Returns the event that follows. */
static inline char
before_event(char event)
{
	while (event == 'P') { /* nobody has read it when the next happens */
		send_self(signal_of(*script++), SI_KERNEL);
		event = *script++;
	}
	if (event == 'G') { /* the supervisor goes on */
		NEED(write(go[1], "", 1) == 1);
		event = *script++;
	}
	return event;
}

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	const struct itimerspec at_once = { .it_value.tv_nsec = 1 };
	char event;

	if (count != 3)
		return __real_poll(p, count, timeout);
	EXPECT_EQ(timeout, 77);
	for (nfds_t i = 0; i < count; i++)
		EXPECT_EQ(p[i].events, POLLIN);
	EXPECT_EQ(p[2].fd, job.page->overdue);
	NEED(*script != '\0');
	if (*script == '.') {
		await_ready();
		script++;
	}
	event = *script++;
	event = before_event(event);
	if (event == '!' || event == 'D')
		NEED(__real_poll(&p[1], 1, -1) == 1 && p[1].revents == POLLIN);
	if (event == '!') {
		p[1].revents = 0;
		event = *script++;
	}
	note("<%c> ", event);
	memcpy(waited, (int[]){ p[0].fd, p[1].fd }, sizeof(waited));
	switch (event) {
	case 'O':
		__real_timerfd_settime(p[2].fd, 0, &at_once, NULL);
		NEED(__real_poll(&p[2], 1, -1) == 1);
		return 1;
	case 'T':
		return 0;
	case 'S':
		send_self(signal_of(*script++), SI_USER);
		break;
	case 'K':
		send_self(signal_of(*script++), SI_KERNEL);
		break;
	case 'C':
		send_self(SIGCHLD, CLD_STOPPED);
		break;
	case 'E':
		if (__real_poll(&p[2], 1, 0) == 0)
			note("no_timer ");
		errno = EINTR;
		return -1;
	case 'B':
		errno = *script++ == '1' ? ENOSYS : EPERM;
		return -1;
	case 'N':
		return 1;
	default:
		return 1;
	}
	return __real_poll(p, 1, -1);
}

long
__wrap_syscall(long nr, ...)
{
	const siginfo_t *info;
	long arg[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	info = (const siginfo_t *)arg[2];
	if (nr == SYS_pidfd_send_signal)
		note("send:%d,%d,%ld ", (int)arg[1],
			info != NULL ? info->si_code : 0, arg[3]);
	if (nr == SYS_pidfd_open && played.no_pidfd) {
		errno = ENOSYS;
		return -1;
	}
	return __real_syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4],
		arg[5]);
}

int
__wrap_signalfd(int fd, const sigset_t *set, int flags)
{
	errno = EMFILE;
	return played.no_signalfd ? -1 : __real_signalfd(fd, set, flags);
}

int
__wrap_timerfd_create(int clock, int flags)
{
	errno = ENFILE;
	return played.no_timer ? -1 : __real_timerfd_create(clock, flags);
}

int
__wrap_prctl(int what, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d)
{
	errno = EPERM;
	if (what == PR_SET_CHILD_SUBREAPER && played.no_subreaper)
		return -1;
	return __real_prctl(what, a, b, c, d);
}

int
__wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t rest = *set;

	sigdelset(&rest, SIGTSTP);
	if (sigismember(set, SIGTSTP) == 1 && sigisemptyset(&rest))
		note("mask:%d ", how);
	return __real_sigprocmask(how, set, old);
}

int
__wrap_timerfd_settime(int fd, int flags, const struct itimerspec *in,
	struct itimerspec *old)
{
	EXPECT_EQ(fd, job.page->overdue);
	EXPECT_EQ(in->it_interval.tv_sec, 0);
	note("timer:%ld.%ld,%d ", (long)in->it_value.tv_sec,
		in->it_value.tv_nsec, flags);
	(void)old;
	return 0;
}

int
__wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int flags)
{
	if (played.reap_eintr > 0) {
		played.reap_eintr--;
		errno = EINTR;
		return -1;
	}
	if (getpid() != keeper_pid || type != P_PID)
		return __real_waitid(type, id, info, flags);
	note("waitid:%d ", flags);
	if (played.traced) {
		played.traced = false;
		return 0;
	}
	return __real_waitid(type, id, info, flags);
}

int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	if (sleeps++ == 0)
		note("sleep:%ld.%ld ", (long)time->tv_sec, time->tv_nsec);
	return 0;
}

int
__wrap_raise(int sig)
{
	note("raise:%d ", sig);
	return 0;
}

int64_t
__wrap_clock_now(void)
{
	return NOW;
}

int64_t
__wrap_clock_wall(void)
{
	return 0;
}

void
__wrap_record_mark(const struct job *j)
{
	char name[32] = "";
	int tells = 0;

	EXPECT(j == &job);
	prctl(PR_GET_NAME, name);
	prctl(PR_GET_PDEATHSIG, &tells);
	note("mark:%s,%d ", name, tells);
}

void
__wrap_record_begin(struct job *j)
{
	EXPECT(j == &job);
	note("begin ");
}

bool
__wrap_record_remove(const struct job *j)
{
	EXPECT(j == &job);
	note("record ");
	return !played.record_stays;
}

void
__wrap_record_note(struct job *j, int status, const char *reason)
{
	EXPECT(j == &job);
	note("note:%d,%s ", status, reason);
}

bool
__wrap_errors_remove(const char *prefix)
{
	note("errors:%s ", prefix);
	return !played.errors_stay;
}

void
__wrap_renew_note(const struct job *j)
{
	EXPECT(j == &job);
	note("renew_note ");
}

int
__wrap_renew_job(struct job *j, const char **what)
{
	EXPECT(j == &job);
	note("renew ");
	*what = "the folder";
	errno = played.renew_sys;
	if (played.renew_sys != 0)
		return -1;
	j->page->verdict = j->page->started = 0;
	played.again = false;
	return 0;
}

void
__wrap_salvage_output(struct job *j)
{
	EXPECT(j == &job);
	note("salvage ");
}

void
__wrap_salvage_terminal(const struct job *j)
{
	EXPECT(j == &job);
	note("terminal ");
}

bool
__wrap_ctl_place_remove(const struct ctl_place *p)
{
	EXPECT(p == &job.page->ctl);
	note("ctl ");
	return true;
}

void
__wrap_ctl_place_forget(const char *id)
{
	note("forget:%s ", id);
}

bool
__wrap_leaf_remove(struct leaves *leaves)
{
	EXPECT(leaves == &job.page->leaves);
	if (played.leaf_tries == 0) {
		note("leaf ");
		return true;
	}
	played.leaf_tries--;
	return false;
}

void
__wrap_leaf_kill(const struct leaves *leaves)
{
	EXPECT(leaves == &job.page->leaves);
	note("leaf_kill ");
}

void
__wrap_own_tty_restore(struct own_tty *tty)
{
	EXPECT(tty == &job.page->own);
	note("tty ");
}

uint32_t
__wrap_descend_end(const struct descend *d, int64_t deadline)
{
	note("end:%lld,%d,%d ", (long long)((deadline - NOW) / NS_PER_S),
		d->keep((pid_t)job.page->again.best, d->ctx),
		d->keep(getpid(), d->ctx));
	EXPECT(d->tell == NULL);
	return played.alive;
}

uint32_t
__wrap_descend_reap(const struct descend *d)
{
	note("reap:%d,%d ",
		played.late || d->keep((pid_t)job.page->again.best, d->ctx),
		d->keep(getpid(), d->ctx));
	EXPECT(d->tell == NULL);
	return 0;
}

void
__wrap_descend_wake(pid_t parent, const char *comm)
{
	EXPECT_EQ(parent, job.page->again.best);
	note("wake:%s ", comm);
}

uint64_t
__wrap_raw_drain(struct raw_share *share, int64_t patience)
{
	EXPECT(share == job.share);
	note("drain:%lld ", (long long)(patience / NS_PER_S));
	return 0;
}

uint64_t
__wrap_raw_written(const struct raw_share *share)
{
	return share->before;
}

const char *
__wrap_raw_lost_text(const struct raw_share *share, char *out)
{
	EXPECT(share == job.share);
	snprintf(out, RAW_LOST_MAX, "%s",
		played.lost != NULL ? played.lost : "");
	return out;
}

int
__wrap_report_file_finish(struct job *j)
{
	EXPECT(j == &job);
	note("report ");
	return played.report_sys;
}

void
__wrap_answer_expect(struct answer *a, const struct keeper_page *page)
{
	EXPECT(page == job.page);
	note("expect:%lld ", (long long)a->deadline_ns);
	a->deadline_ns = 1;
}

void
__wrap_answer_expect_soon(struct answer *a, const struct keeper_page *page)
{
	EXPECT(page == job.page);
	note("soon:%lld ", (long long)a->deadline_ns);
}

bool
__wrap_answer_missed(struct answer *a, const struct keeper_page *page)
{
	EXPECT(page == job.page);
	a->deadline_ns = 0;
	note("missed:%d ", played.missed[played.asked]);
	return played.missed[played.asked++];
}

bool
__wrap_answer_is_dead(pid_t pid)
{
	EXPECT_EQ(pid, job.page->again.best);
	note("is_dead ");
	return played.is_dead;
}

int
__wrap_answer_timeout(const struct answer *a)
{
	(void)a;
	return 77;
}

bool
__wrap_again_is_due(const struct again *a)
{
	EXPECT(a == &job.page->again);
	return played.again;
}

uint32_t
__wrap_check_table(const struct limits *limits, uint32_t ranks)
{
	EXPECT(limits == &job.limits);
	return 1000 + ranks;
}

void
__wrap_fd_reserve(unsigned count)
{
	note("reserve:%u ", count);
}

bool
__wrap_fd_close_but(unsigned from, const int *keep, unsigned count)
{
	note("close_but:%u,%u ", from, count);
	EXPECT_EQ(keep[0], waited[0]);
	EXPECT_EQ(keep[1], waited[1]);
	EXPECT_EQ(keep[2], job.page->overdue);
	EXPECT_EQ(keep[3], job.page->keeper);
	EXPECT_EQ(keep[4], job.report_fd);
	return true;
}

struct outcome
__wrap_outcome_of(const struct job *j)
{
	EXPECT(j == &job);
	return (struct outcome){ .reason = "so" };
}

bool
__wrap_state_remove(const struct state *state)
{
	EXPECT(state == &job.state);
	note("remove ");
	return !played.stays;
}

int
__wrap_state_amend(const struct state *state, const char *name, const char *key,
	const char *members)
{
	EXPECT(state == &job.state);
	note("amend:%s %s %s ", name, key, members);
	return 0;
}

void
__wrap_state_close(const struct state *state)
{
	EXPECT(state == &job.state);
	note("closed ");
}

#endif /* TESTS_UNIT_KEEPER_RIG_H */
