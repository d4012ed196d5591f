/* SPDX-License-Identifier: Apache-2.0 */
/* descend.c - see descend.h. No heap. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/dents.h"
#include "base/fd.h"
#include "proc/descend.h"

#define PF_EXITING 0x4 /* linux/sched.h; field 9 of /proc/PID/stat */

static bool
read_proc(pid_t pid, const char *file, char *out, size_t cap)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fd_read_small(path, out, cap) > 0;
}

/* Of a process or, by "task/TID/stat", of one of its threads. */
static bool
read_stat(pid_t pid, const char *file, struct proc_stat *out)
{
	char text[512], *open, *close, state;
	unsigned flags = 0;
	int ppid = 0, session = 0;

	if (!read_proc(pid, file, text, sizeof(text)))
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')'); /* the name may hold parentheses */
	if (open == NULL || close == NULL ||
		sscanf(close + 1, " %c %d %*d %d %*d %*d %u", &state, &ppid,
			&session, &flags) != 4)
		return false;
	*close = '\0';
	snprintf(out->comm, sizeof(out->comm), "%.16s", open + 1);
	out->state = state;
	out->ppid = ppid;
	out->session = session;
	out->exiting = (flags & PF_EXITING) != 0;
	return true;
}

bool
proc_dumps_core(pid_t pid)
{
	char text[8192], *at;

	if (!read_proc(pid, "status", text, sizeof(text)))
		return false;
	/* At the beginning of a line, where no name can stand. */
	at = strstr(text, "\nCoreDumping:");
	return at != NULL && strtol(at + 13, NULL, 10) == 1;
}

void
proc_each(const char *path, proc_each_fn *fn, void *ctx)
{
	struct dents names;
	const struct dent *d;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		return;
	while (dents_read(&names, fd))
		while ((d = dents_next(&names)) != NULL)
			if (isdigit((unsigned char)d->name[0]))
				fn((pid_t)strtol(d->name, NULL, 10), ctx);
	fd_close(fd);
}

void
proc_each_thread(pid_t pid, proc_each_fn *fn, void *ctx)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	proc_each(path, fn, ctx);
}

struct thread_walk {
	pid_t pid;
	bool lives;
};

static void
if_thread_lives(pid_t tid, void *arg)
{
	struct thread_walk *w = arg;
	struct proc_stat st;
	char file[32];

	snprintf(file, sizeof(file), "task/%d/stat", (int)tid);
	if (read_stat(w->pid, file, &st) && !st.exiting)
		w->lives = true;
}

/* A main thread may end long before the others. */
bool
proc_stat_read(pid_t pid, struct proc_stat *out)
{
	struct thread_walk w = { .pid = pid };

	if (!read_stat(pid, "stat", out))
		return false;
	if (out->exiting) {
		proc_each_thread(pid, if_thread_lives, &w);
		out->exiting = !w.lives;
	}
	return true;
}

/* Its own and its process's; at the beginning of a line, where no name can stand. */
static bool
kill_is_pending(pid_t pid, const char *file)
{
	static const char *const keys[] = { "\nSigPnd:", "\nShdPnd:" };
	char text[8192], *at;

	if (!read_proc(pid, file, text, sizeof(text)))
		return false;
	for (int i = 0; i < 2; i++) {
		at = strstr(text, keys[i]);
		if (at != NULL &&
			(strtoull(at + strlen(keys[i]), NULL, 16) >>
					(SIGKILL - 1) &
				1) != 0)
			return true;
	}
	return false;
}

struct kill_walk {
	pid_t pid;
	bool pending;
};

static void
if_killed(pid_t tid, void *arg)
{
	struct kill_walk *w = arg;
	char file[32];

	snprintf(file, sizeof(file), "task/%d/status", (int)tid);
	w->pending = w->pending || kill_is_pending(w->pid, file);
}

bool
proc_is_killed(pid_t pid)
{
	struct kill_walk w = { .pid = pid };

	proc_each_thread(pid, if_killed, &w);
	return w.pending;
}

struct child_walk {
	proc_each_fn *fn;
	void *ctx;
	pid_t self;
};

static void
if_child(pid_t pid, void *arg)
{
	struct child_walk *w = arg;
	struct proc_stat st;

	if (proc_stat_read(pid, &st) && st.ppid == w->self)
		w->fn(pid, w->ctx);
}

/* Our children by the kernel's own list. Who is reaped by @fn moves those
 * behind him up, and one may slip past. */
void
proc_each_listed(const char *path, proc_each_fn *fn, void *ctx)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	pid_t pid = 0;
	ssize_t n;

	/* Each number is followed by a space; one may be cut by a read. */
	do {
		n = fd == -1 ? 0 : fd_read_some(fd, text, sizeof(text));
		for (ssize_t i = 0; i < n; i++) {
			if (isdigit((unsigned char)text[i])) {
				pid = pid * 10 + (text[i] - '0');
			} else if (pid != 0) {
				fn(pid, ctx);
				pid = 0;
			}
		}
	} while (n == sizeof(text));
	fd_close(fd);
}

bool
descend_hidden(void)
{
	siginfo_t info = { 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ==
		0;
}

/* The kernel says so at once; to list them costs thirty times as much. */
static bool
childless(void)
{
	return !descend_hidden() && errno == ECHILD;
}

static void
each_child(proc_each_fn *fn, void *ctx)
{
	struct child_walk w = { .fn = fn, .ctx = ctx, .self = getpid() };
	char path[64];

	if (childless())
		return;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children",
		(int)getpid());
	if (access(path, R_OK) == 0)
		proc_each_listed(path, fn, ctx);
	else
		proc_each("/proc", if_child, &w);
}

struct sweep {
	const struct descend *d;
	bool end; /* kill, or only reap */
	uint32_t alive, dead;
};

static bool
reaped(pid_t pid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) == 0)
		return info.si_pid == pid;
	/* A sandbox may know only one of the two. */
	return errno != ECHILD && waitpid(pid, NULL, WNOHANG) == pid;
}

static void
sweep_one(pid_t pid, void *arg)
{
	struct sweep *s = arg;
	struct proc_stat st;

	if (s->d->keep != NULL && s->d->keep(pid, s->d->ctx))
		return;
	if (reaped(pid)) {
		s->dead++;
		return;
	}
	s->alive++;
	if (!s->end)
		return;
	if (s->d->tell != NULL && proc_stat_read(pid, &st) && !st.exiting)
		s->d->tell(pid, st.comm, s->d->ctx);
	kill(pid, SIGKILL);
}

/* Who was found dead may have left children after the list was read, and they
 * are ours now: only a look that meets nobody is the last. Here a few do, since
 * the next call comes anyway. */
uint32_t
descend_reap(const struct descend *d)
{
	struct sweep s;
	int looks = 0;

	do {
		s = (struct sweep){ .d = d };
		each_child(sweep_one, &s);
	} while (s.dead > 0 && ++looks < 4);
	return s.alive;
}

uint32_t
descend_look(const struct descend *d, uint32_t *alive)
{
	struct sweep s = { .d = d, .end = true };

	each_child(sweep_one, &s);
	*alive = s.alive;
	return s.alive + s.dead;
}

/* The first few looks at once, then a millisecond apart. */
uint32_t
descend_end(const struct descend *d, int64_t deadline)
{
	struct descend quiet = *d;
	uint32_t alive;

	quiet.tell = NULL;
	for (unsigned look = 0;; look++) {
		if (descend_look(look == 0 ? d : &quiet, &alive) == 0 ||
			clock_now() >= deadline)
			return alive;
		poll(NULL, 0, look < 3 || alive == 0 ? 0 : 1);
	}
}

struct session_walk {
	pid_t sid;
	int sig;
	uint32_t met;
};

static void
signal_if_in(pid_t pid, void *arg)
{
	struct session_walk *w = arg;
	struct proc_stat st;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	/* The descriptor pins the process; the question comes after. */
	if (fd == -1)
		return;
	if (proc_stat_read(pid, &st) && st.session == w->sid &&
		syscall(SYS_pidfd_send_signal, fd, w->sig, NULL, 0) == 0)
		w->met++;
	fd_close(fd);
}

uint32_t
descend_signal(pid_t sid, int sig)
{
	struct session_walk w = { .sid = sid, .sig = sig };

	proc_each("/proc", signal_if_in, &w);
	return w.met;
}

struct wake_walk {
	pid_t parent;
	const char *comm;
};

/* As above: the descriptor first, the question after. */
static void
wake_if_stopped(pid_t pid, void *arg)
{
	const struct wake_walk *w = arg;
	struct proc_stat st;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd == -1)
		return;
	if (proc_stat_read(pid, &st) && st.state == 'T' &&
		st.ppid == w->parent && strcmp(st.comm, w->comm) == 0)
		syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
	fd_close(fd);
}

void
descend_wake(pid_t parent, const char *comm)
{
	struct wake_walk w = { .parent = parent, .comm = comm };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent,
		(int)parent);
	proc_each_listed(path, wake_if_stopped, &w);
}
