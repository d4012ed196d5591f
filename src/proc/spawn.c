/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - see spawn.h. Between clone and exec: async-signal-safe calls. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "base/fd.h"
#include "proc/spawn.h"

#define STACK_SIZE (64 * 1024)

/* What the child of a fork tells its maker instead of sharing memory. */
struct word {
	int step, sys;
};

static char stack[STACK_SIZE] __attribute__((aligned(64)));

int
spawn_slots_init(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high;

	if (null == -1)
		return -1;
	high = fcntl(null, F_DUPFD_CLOEXEC, SPAWN_SLOTS);
	if (high == -1) {
		/* The limit is that low, which is not the caller's mistake. */
		if (errno == EINVAL)
			errno = EMFILE;
		return -1;
	}
	if (null >= SPAWN_SLOTS)
		close(null);
	for (int slot = SPAWN_SLOT_IN; slot < SPAWN_SLOTS; slot++)
		if (slot != null && dup3(high, slot, O_CLOEXEC) == -1)
			return -1;
	close(high);
	return 0;
}

int
spawn_slot_set(enum spawn_slot slot, int fd)
{
	return dup3(fd < 0 ? SPAWN_SLOT_NULL : fd, (int)slot, O_CLOEXEC) == -1 ?
		-1 :
		0;
}

/* A table of our own without what the maker has open from SPAWN_SLOTS up. */
static int
own_files(void)
{
	if (close_range(SPAWN_SLOTS, ~0u, CLOSE_RANGE_UNSHARE) == 0)
		return 0;
	/* Older kernels copy the whole table; all of it is close-on-exec. */
	return unshare(CLONE_FILES);
}

/* What was sent to our maker's group before we had one of our own was not for
 * the program; it would end it in the instant that the mask is lifted. */
static void
drop_pending(void)
{
	const struct timespec now = { 0 };
	sigset_t all;

	sigfillset(&all);
	while (sigtimedwait(&all, NULL, &now) > 0)
		continue;
}

/* The sanitizer does not know the stack on which a clone ends. */
#define OTHER_STACK __attribute__((no_sanitize("address")))

/* Runs in the child, whose table is its own by now; gives the failed step
 * back, and never on success. */
static OTHER_STACK enum spawn_step
become(const struct spawn *s, pid_t maker)
{
	sigset_t none;

	if (setsid() == -1)
		return SPAWN_SESSION;
	drop_pending();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		return SPAWN_DEATHSIG;
	if (getppid() != maker)
		_exit(125); /* the maker died before the line above */
	if ((s->in != 0 && dup2(s->in, 0) == -1) ||
		(s->out != 1 && dup2(s->out, 1) == -1) ||
		(s->err != 2 && dup2(s->err, 2) == -1))
		return SPAWN_STDIO;
	if (fault(FAULT_SPAWN_CHILD, s->rank) != 0)
		return SPAWN_LIMIT;
	if (s->cpus != NULL &&
		syscall(SYS_sched_setaffinity, 0, s->cpus_len, s->cpus) == -1)
		return SPAWN_AFFINITY;
	if (s->tty && ioctl(1, TIOCSCTTY, 0) == -1)
		return SPAWN_TERMINAL;
	if ((s->life != -1 && dup2(s->life, s->life_at) == -1) ||
		(s->control != -1 && dup2(s->control, s->control_at) == -1) ||
		(s->segment != -1 && dup2(s->segment, s->segment_at) == -1))
		return SPAWN_STDIO;
	if (setrlimit(RLIMIT_NOFILE, &s->files) == -1)
		return SPAWN_LIMIT;
	if (s->dir != NULL && chdir(s->dir) == -1)
		return SPAWN_CHDIR;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(s->path, s->argv, s->envp);
	return SPAWN_EXEC;
}

struct order {
	struct spawn *s;
	pid_t maker;
};

/* Before anything else, so that nothing of the program is outside. The child
 * does it: CLONE_INTO_CGROUP is of clone3 only, which would need a stub in
 * assembly for a stack of its own, one for each processor. */
static OTHER_STACK bool
enter_group(const struct spawn *s)
{
	return s->group == 0 || write(s->group, "0", 1) == 1;
}

/* The child of the clone: its maker sleeps, and sees what is stored here. */
static OTHER_STACK int
child_of_clone(void *arg)
{
	const struct order *o = arg;
	enum spawn_step step = SPAWN_GROUP;

	if (enter_group(o->s))
		step = own_files() == -1 ? SPAWN_FILES : become(o->s, o->maker);
	o->s->sys = errno;
	o->s->step = step;
	_exit(127);
}

/* A child that never became the program: reap it, forget it. */
static bool
bury(struct spawn *s)
{
	siginfo_t info;

	while (waitid(P_PID, (id_t)s->pid, &info, WEXITED) == -1)
		if (errno != EINTR)
			break;
	fd_close(s->pidfd);
	s->pidfd = -1;
	s->pid = 0;
	return false;
}

static bool
start_by_clone(struct spawn *s)
{
	struct order o = { .s = s, .maker = getpid() };
	int pidfd = -1;
	pid_t pid;

	pid = clone(child_of_clone, stack + STACK_SIZE,
		CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_FILES | SIGCHLD,
		&o, &pidfd);
	if (pid == -1) {
		s->step = SPAWN_CLONE;
		s->sys = errno;
		return false;
	}
	s->pid = pid;
	s->pidfd = pidfd;
	return s->step == SPAWN_OK ? true : bury(s);
}

/* Between a fork's two sides: pipes, both ends, -1 when closed. */
struct gate {
	int go[2];     /* a byte to the child: its pid is known, run */
	int report[2]; /* a struct word to the maker; the end: it runs */
};

static void
close_end(int *fd)
{
	fd_close(*fd);
	*fd = -1;
}

static void
gate_close(struct gate *g)
{
	for (int i = 0; i < 2; i++) {
		close_end(&g->go[i]);
		close_end(&g->report[i]);
	}
}

static int
gate_open(struct gate *g)
{
	if (pipe2(g->go, O_CLOEXEC) == 0 && pipe2(g->report, O_CLOEXEC) == 0)
		return 0;
	gate_close(g);
	return -1;
}

/* The child of the fork waits for a byte, then reports by pipe. Its table is a
 * copy that exec empties; the pipe has to last till then. */
static void __attribute__((noreturn))
child_of_fork(struct spawn *s, pid_t maker, struct gate *g)
{
	struct word w;
	char go;

	/* Or a maker that dies now would leave us here for ever. */
	close_end(&g->go[1]);
	/* What has a number of the program's makes way for it. */
	while (g->report[1] == s->life_at || g->report[1] == s->control_at ||
		g->report[1] == s->segment_at)
		g->report[1] = fcntl(g->report[1], F_DUPFD_CLOEXEC, 0);
	if (read(g->go[0], &go, 1) != 1)
		_exit(125);
	w.step = (int)(enter_group(s) ? become(s, maker) : SPAWN_GROUP);
	w.sys = errno;
	if (write(g->report[1], &w, sizeof(w)) < 0)
		_exit(126);
	_exit(127);
}

/* The maker's side: lets the child go only now that it can be watched, and
 * hears what became of it. */
static void
await_child(struct spawn *s, struct gate *g)
{
	struct word w = { 0 };

	s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	close_end(&g->report[1]);
	if (s->pidfd != -1 && write(g->go[1], "", 1) == 1)
		s->step = SPAWN_OK;
	else
		s->sys = errno;
	close_end(&g->go[1]);
	if (fd_read_some(g->report[0], &w, sizeof(w)) == sizeof(w)) {
		s->step = (enum spawn_step)w.step;
		s->sys = w.sys;
	}
}

static bool
start_by_fork(struct spawn *s)
{
	struct gate g = { { -1, -1 }, { -1, -1 } };
	pid_t maker = getpid(), pid;

	s->step = SPAWN_CLONE;
	s->sys = 0;
	if (gate_open(&g) == -1) {
		s->sys = errno;
		return false;
	}
	pid = fork();
	if (pid == 0)
		child_of_fork(s, maker, &g);
	if (pid == -1) {
		s->sys = errno;
	} else {
		s->pid = pid;
		await_child(s, &g);
	}
	gate_close(&g);
	if (s->step != SPAWN_OK && pid != -1)
		bury(s);
	return s->step == SPAWN_OK;
}

bool
spawn_start(struct spawn *s)
{
	s->pid = 0;
	s->pidfd = -1;
	s->step = SPAWN_OK;
	s->sys = 0;
	if (fault(FAULT_SPAWN_BEFORE, s->rank) != 0) {
		s->step = SPAWN_CLONE;
		s->sys = errno;
		return false;
	}
	if (start_by_clone(s))
		return true;
	/* A sandbox that knows no clone like ours; a full process table is
	 * not that. */
	if ((s->step == SPAWN_CLONE || s->step == SPAWN_FILES) &&
		(s->sys == ENOSYS || s->sys == EPERM || s->sys == EINVAL))
		return start_by_fork(s);
	return false;
}

const char *
spawn_step_name(enum spawn_step step)
{
	static const char *const names[] = {
		[SPAWN_OK] = "start",
		[SPAWN_CLONE] = "clone",
		[SPAWN_GROUP] = "cgroup.procs",
		[SPAWN_FILES] = "close_range",
		[SPAWN_SESSION] = "setsid",
		[SPAWN_DEATHSIG] = "prctl",
		[SPAWN_STDIO] = "dup2",
		[SPAWN_LIMIT] = "setrlimit",
		[SPAWN_AFFINITY] = "sched_setaffinity",
		[SPAWN_CHDIR] = "chdir",
		[SPAWN_TERMINAL] = "terminal",
		[SPAWN_EXEC] = "exec",
	};

	return names[step];
}
