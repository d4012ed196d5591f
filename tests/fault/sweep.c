/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - a short job, and each of its system calls once killed at, once
 * refused with each of six errors.
 *
 *   sweep [--role R] [--call NAME] [--action A] [--most N]
 *         [--every N --first I] [--refuse] [--long] XRUN SPEW DIR [ARG]...
 *
 * As strace's inject= does, by ptrace(2), but by role: keeper, super (its main
 * thread), thread (its others) or child (a rank before exec), and counted for
 * each alone. First a job is watched; then there is a round for each call it
 * made, up to the --most'th of a kind (default 40), and each action: kill, or
 * EINTR, EAGAIN, ENOMEM, EMFILE, ENOSPC, EIO. --every takes each N-th of these
 * rounds only, from --first on. What must hold is scene.h's; and the job ends
 * within 10 s, with 0 and all lines, or with 125 and a word.
 *
 * With --refuse there is a round for each kind of call instead, in which all
 * processes are refused it, always, with ENOSYS or EPERM, as a sandbox would.
 *
 * With --long the ranks write when the control socket exists.
 *
 * Not counted are calls before the loader is done (its first munmap; or the
 * first mprotect, where no library was opened), and what libc cannot do
 * without: futex, munmap, and the like, which are killed at only.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <linux/ptrace.h>

#include "base/clock.h"
#include "tests/fault/scene.h"
#include "tests/prog/prog.h"

#define CALLS      512 /* numbers of system calls */
#define TRACEES    64
#define LINES      20
#define PATIENCE_S 10

enum role { KEEPER, SUPER, THREAD, CHILD, ROLES };

static const char *const role_names[] = { "keeper", "super", "thread",
	"child" };

struct tracee {
	pid_t tid;
	enum role role;
	bool counted;  /* the loader is done */
	bool opened;   /* a library, by its loader */
	bool replaced; /* this call will not be made; its result is ours */
};

struct shot {
	enum role role;
	int call;
	uint32_t index; /* 1: the first; 0: all of everybody */
	int sys;        /* 0: kill */
};

static const struct {
	const char *name;
	int sys;
} actions[] = {
	{ "kill", 0 },
	{ "EINTR", EINTR },
	{ "EAGAIN", EAGAIN },
	{ "ENOMEM", ENOMEM },
	{ "EMFILE", EMFILE },
	{ "ENOSPC", ENOSPC },
	{ "EIO", EIO },
};

#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

static const struct {
	const char *name;
	int call;
} names[] = {
#define N(name) { #name, SYS_##name }
	N(read),
	N(write),
	N(close),
	N(fstat),
	N(lseek),
	N(mmap),
	N(mprotect),
	N(munmap),
	N(brk),
	N(rt_sigaction),
	N(rt_sigprocmask),
	N(ioctl),
	N(pread64),
	N(dup),
	N(dup3),
	N(getpid),
	N(clone),
	N(execve),
	N(exit),
	N(wait4),
	N(kill),
	N(fcntl),
	N(flock),
	N(fsync),
	N(ftruncate),
	N(getcwd),
	N(chdir),
	N(umask),
	N(getuid),
	N(geteuid),
	N(getppid),
	N(setsid),
	N(prctl),
	N(gettid),
	N(futex),
	N(sched_getaffinity),
	N(getdents64),
	N(set_tid_address),
	N(clock_gettime),
	N(exit_group),
	N(epoll_ctl),
	N(tgkill),
	N(waitid),
	N(openat),
	N(mkdirat),
	N(unlinkat),
	N(renameat),
	N(symlinkat),
	N(readlinkat),
	N(faccessat),
	N(ppoll),
	N(set_robust_list),
	N(splice),
	N(utimensat),
	N(epoll_pwait),
	N(timerfd_create),
	N(timerfd_settime),
	N(fallocate),
	N(signalfd4),
	N(eventfd2),
	N(epoll_create1),
	N(pipe2),
	N(prlimit64),
	N(getrandom),
	N(memfd_create),
	N(execveat),
	N(clone3),
	N(close_range),
	N(pidfd_open),
	N(pidfd_send_signal),
	N(newfstatat),
	N(statx),
	N(rt_sigtimedwait),
	N(socket),
	N(bind),
	N(setsockopt),
	N(getsockname),
	N(madvise),
	N(rseq),
	N(sysinfo),
	N(uname),
	N(setitimer),
	N(fstatfs),
	N(statfs),
	N(faccessat2),
	N(clock_nanosleep),
	N(sched_yield),
#ifdef SYS_poll /* old calls, which newer machines never had */
	N(poll),
	N(pipe),
	N(dup2),
	N(access),
	N(mkdir),
	N(rmdir),
	N(unlink),
	N(rename),
	N(symlink),
	N(readlink),
	N(stat),
	N(lstat),
	N(open),
	N(epoll_wait),
	N(arch_prctl),
	N(time),
	N(getdents),
	N(getpgrp),
#endif
#undef N
};

static struct tracee tracee[TRACEES];
static uint32_t counts[ROLES][CALLS];
static const struct shot *shot; /* NULL: only count */
static bool hit;                /* it was reached */
static bool late;               /* the alarm rang */
static int first_status;        /* wait status of the keeper */
static char crash[128];         /* who ended by a signal, unasked */

static const char *
call_name(int call)
{
	static char text[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].call == call)
			return names[i].name;
	snprintf(text, sizeof(text), "call %d", call);
	return text;
}

/* libc ends a program, or goes astray, where these are refused. */
static bool
may_fail(int call, int sys)
{
	switch (call) {
	case SYS_exit:
	case SYS_exit_group:
	case SYS_munmap:
	case SYS_rt_sigprocmask:
	case SYS_set_robust_list:
	case SYS_rseq:
	case SYS_getpid:
	case SYS_gettid:
	case SYS_madvise:
		return false;
	case SYS_futex: /* of those that wake, too */
	case SYS_brk:   /* it gives the old end when it fails, no errno */
		return false;
	case SYS_mmap:
	case SYS_mprotect:
		return sys == ENOMEM;
	}
	return true;
}

/* --- following ------------------------------------------------------------ */

static void
on_alarm(int sig)
{
	(void)sig;
	late = true;
}

static struct tracee *
find(pid_t tid)
{
	for (int i = 0; i < TRACEES; i++)
		if (tracee[i].tid == tid)
			return &tracee[i];
	return NULL;
}

static struct tracee *
add(pid_t tid, enum role role)
{
	struct tracee *t = find(tid) != NULL ? find(tid) : find(0);

	if (t == NULL)
		prog_die(0, "more than %d threads", TRACEES);
	*t = (struct tracee){ .tid = tid, .role = role, .counted = true };
	return t;
}

static enum role
role_of(pid_t tid)
{
	const struct tracee *parent = find(scene_number(tid, "PPid:"));

	if (scene_number(tid, "Tgid:") != tid)
		return THREAD;
	return parent != NULL && parent->role == KEEPER ? SUPER : CHILD;
}

/* Threads are CLONE, ranks VFORK (or FORK, where that is refused). */
static void
on_birth(const struct tracee *parent, int event)
{
	unsigned long tid = 0;
	enum role role = THREAD;

	ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid);
	if (parent->role == KEEPER)
		role = SUPER;
	else if (event != PTRACE_EVENT_CLONE)
		role = CHILD;
	add((pid_t)tid, role);
}

static void
replace_call(struct tracee *t)
{
#ifdef __x86_64__
	ptrace(PTRACE_POKEUSER, t->tid,
		offsetof(struct user_regs_struct, orig_rax), -1L);
	t->replaced = true;
#else
	(void)t;
	prog_die(0, "errors can be injected on x86-64 only");
#endif
}

static void
give_result(struct tracee *t)
{
#ifdef __x86_64__
	ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, rax),
		(long)-shot->sys);
#endif
	t->replaced = false;
}

static void
kill_process(pid_t tid)
{
	char path[64], line[256];
	pid_t tgid = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Tgid: %d", &tgid) == 1)
			break;
	if (f != NULL)
		fclose(f);
	kill(tgid, SIGKILL);
}

static bool
is_meant(const struct tracee *t, int call, uint32_t index)
{
	if (shot == NULL || shot->call != call)
		return false;
	return shot->index == 0 ||
		(!hit && shot->role == t->role && shot->index == index);
}

static void
on_entry(struct tracee *t, int call)
{
	uint32_t index;

	if (!t->counted) {
		t->opened |= call == SYS_openat;
		t->counted = call == (t->opened ? SYS_munmap : SYS_mprotect);
		return;
	}
	if (call < 0 || call >= CALLS)
		return;
	index = ++counts[t->role][call];
	if (!is_meant(t, call, index))
		return;
	hit = true;
	if (shot->sys == 0)
		kill_process(t->tid);
	else
		replace_call(t);
}

static void
on_call(struct tracee *t)
{
	struct ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		on_entry(t, (int)info.entry.nr);
	else if (t->replaced)
		give_result(t);
}

static void
on_end(pid_t tid, int status)
{
	struct tracee *t = find(tid);
	bool ours = shot != NULL && shot->sys == 0;

	if (t == NULL)
		return;
	if (t->role == KEEPER)
		first_status = status;
	if (WIFSIGNALED(status) && !ours && t->role < CHILD)
		snprintf(crash, sizeof(crash), "%s ended by signal %d",
			role_names[t->role], WTERMSIG(status));
	t->tid = 0;
}

/* The signal to go on with. */
static int
on_stop(struct tracee *t, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80)) {
		on_call(t);
		return 0;
	}
	if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
		event == PTRACE_EVENT_VFORK)
		on_birth(t, event);
	if (event != 0 || sig == SIGSTOP || sig == SIGTRAP)
		return 0;
	return sig;
}

static void
follow(pid_t tid, int status)
{
	struct tracee *t = find(tid);
	int sig;

	/* A newborn may be seen before its parent tells of it. */
	if (t == NULL)
		t = add(tid, role_of(tid));
	if (t->role == CHILD && status >> 16 == PTRACE_EVENT_EXEC) {
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
		t->tid = 0;
		return;
	}
	sig = on_stop(t, status);
	ptrace(PTRACE_SYSCALL, tid, NULL, (long)sig);
}

/* Until nobody is left. */
static void
follow_all(struct scene *s)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
		PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
		PTRACE_O_EXITKILL;
	int status;
	pid_t tid;

	waitpid(s->pid, &status, 0);
	add(s->pid, KEEPER)->counted = false;
	ptrace(PTRACE_SETOPTIONS, s->pid, NULL, options);
	ptrace(PTRACE_SYSCALL, s->pid, NULL, NULL);
	while (!late) {
		tid = waitpid(-1, &status, __WALL);
		if (tid == -1 && errno == ECHILD)
			break;
		if (tid == -1)
			continue;
		if (WIFSTOPPED(status))
			follow(tid, status);
		else
			on_end(tid, status);
	}
}

static void
end_all(void)
{
	for (int i = 0; i < TRACEES; i++)
		if (tracee[i].tid != 0)
			kill_process(tracee[i].tid);
	while (waitpid(-1, NULL, __WALL | WNOHANG) > 0)
		continue;
	memset(tracee, 0, sizeof(tracee));
}

/* --- rounds --------------------------------------------------------------- */

struct settings {
	const char *role, *call, *action;
	int64_t most, every, first;
	bool refuse, is_long, logs, report;
	char *argv[32];
};

static void
run(struct scene *s, const struct settings *set)
{
	struct itimerval alarm_at = { .it_value.tv_sec = PATIENCE_S };

	memset(tracee, 0, sizeof(tracee));
	memset(counts, 0, sizeof(counts));
	hit = late = false;
	crash[0] = '\0';
	first_status = -1;
	scene_clear(s);
	scene_start(s, set->argv, true);
	setitimer(ITIMER_REAL, &alarm_at, NULL);
	follow_all(s);
	alarm_at.it_value.tv_sec = 0;
	setitimer(ITIMER_REAL, &alarm_at, NULL);
	if (late) {
		scene_broken(s, "not over after %d s", PATIENCE_S);
		end_all();
	}
}

static void
judge_status(struct scene *s)
{
	int code = WIFEXITED(first_status) ? WEXITSTATUS(first_status) : -1;
	uint32_t out = scene_count(s, "out", "["),
		 err = scene_count(s, "err", "[");

	if (crash[0] != '\0')
		scene_broken(s, "%s", crash);
	if (WIFSIGNALED(first_status)) {
		if (shot == NULL || shot->sys != 0 || shot->role != KEEPER)
			scene_broken(s, "xrun ended by signal %d",
				WTERMSIG(first_status));
	} else if (code == 0 && (out != 2 * LINES || err != 2 * LINES)) {
		scene_broken(s, "0, and %u and %u lines are shown", out, err);
	} else if (code == 125 && scene_count(s, "err", "xrun: ") == 0) {
		scene_broken(s, "125 without a word");
	} else if (code == 126 && scene_count(s, "err", "xrun: ") > 0) {
		return; /* the program could not be looked at, or run */
	} else if (shot != NULL && shot->role == CHILD && shot->sys == 0 &&
		code == 128 + SIGKILL) {
		return; /* a rank was killed */
	} else if (code != 0 && code != 125) {
		scene_broken(s, "exit status %d", code);
	}
	if (scene_count(s, "err", "xrun: bug") > 0)
		scene_broken(s, "xrun says that it has a bug");
}

static void
judge(struct scene *s, const struct settings *set)
{
	struct scene_end end = {
		.orphans_ms = 1000,
		.ranks = set->logs ? 2 : 0,
		.complete = WIFEXITED(first_status) &&
			WEXITSTATUS(first_status) == 0,
		.report =
			set->report && !late && shot != NULL && shot->sys == 0,
		.status = first_status,
	};
	uint32_t before = s->broken;
	char path[600];

	if (!late)
		judge_status(s);
	scene_check(s, &end);
	if (s->broken == before)
		return;
	snprintf(path, sizeof(path), "%s/err", s->dir);
	printf("  status %x; its words:\n", first_status);
	fflush(stdout);
	if (fork() == 0)
		_exit(execlp("grep", "grep", "-v", "^\\[", path, NULL));
	wait(NULL);
}

static bool
is_wanted(const struct settings *set, const struct shot *o, const char *action)
{
	static int64_t round;

	if (set->role != NULL && strcmp(set->role, role_names[o->role]) != 0)
		return false;
	if (set->call != NULL && strcmp(set->call, call_name(o->call)) != 0)
		return false;
	if (set->action != NULL && strcmp(set->action, action) != 0)
		return false;
	if (o->sys != 0 && !may_fail(o->call, o->sys))
		return false;
	return round++ % set->every == set->first % set->every;
}

static bool
shoot(struct scene *s, const struct settings *set, struct shot o,
	const char *action)
{
	if (!is_wanted(set, &o, action))
		return false;
	shot = &o;
	snprintf(s->what, sizeof(s->what), "%s %s %u %s", role_names[o.role],
		call_name(o.call), o.index, action);
	s->unremovable =
		strncmp(call_name(o.call), "unlink", 6) == 0 && o.index == 0;
	run(s, set);
	judge(s, set);
	return hit;
}

/* No sandbox does, and nothing goes on without. */
static bool
is_vital(int call)
{
	return call == SYS_read || call == SYS_write || call == SYS_lseek ||
		call == SYS_geteuid;
}

/* A call that a sandbox refuses to all. */
static uint32_t
refuse_each(struct scene *s, const struct settings *set,
	uint32_t census[ROLES][CALLS])
{
	uint32_t rounds = 0;

	for (int c = 0; c < CALLS; c++) {
		if (census[KEEPER][c] + census[SUPER][c] + census[THREAD][c] +
					census[CHILD][c] ==
				0 ||
			is_vital(c))
			continue;
		rounds += shoot(s, set, (struct shot){ 0, c, 0, ENOSYS },
			"ENOSYS always");
		rounds += shoot(s, set, (struct shot){ 0, c, 0, EPERM },
			"EPERM always");
	}
	return rounds;
}

static uint32_t
each_call(struct scene *s, const struct settings *set,
	uint32_t census[ROLES][CALLS])
{
	uint32_t reached = 0, most;

	for (enum role r = KEEPER; r < ROLES; r++)
		for (int c = 0; c < CALLS; c++) {
			most = census[r][c] < set->most ? census[r][c] :
							  (uint32_t)set->most;
			for (uint32_t i = 1; i <= most; i++)
				for (size_t a = 0; a < ACTIONS; a++)
					reached += shoot(s, set,
						(struct shot){ r, c, i,
							actions[a].sys },
						actions[a].name);
		}
	return reached;
}

static void
sweep(struct scene *s, const struct settings *set)
{
	uint32_t census[ROLES][CALLS], rounds;

	snprintf(s->what, sizeof(s->what), "nothing was done");
	run(s, set);
	judge(s, set);
	if (s->broken > 0)
		return;
	memcpy(census, counts, sizeof(census));
	rounds = set->refuse ? refuse_each(s, set, census) :
			       each_call(s, set, census);
	printf("%u rounds, %u violations\n", rounds, s->broken);
}

int
main(int argc, char **argv)
{
	struct settings set = { .most = 40, .every = 1, .logs = true };
	const struct prog_opt table[] = {
		{ "role", PROG_TEXT, &set.role, "keeper, super, ..." },
		{ "call", PROG_TEXT, &set.call, "a system call" },
		{ "action", PROG_TEXT, &set.action, "kill, EINTR, ..." },
		{ "most", PROG_NUM, &set.most, "calls of a kind and role" },
		{ "every", PROG_NUM, &set.every, "each N-th round only" },
		{ "first", PROG_NUM, &set.first, "from this one on" },
		{ "refuse", PROG_FLAG, &set.refuse, "as a sandbox does" },
		{ "long", PROG_FLAG, &set.is_long, "has a control socket" },
		{ 0 },
	};
	struct sigaction on = { .sa_handler = on_alarm };
	int at = prog_opts(argc, argv, table), n = 0;
	struct scene s;

	if (argc - at < 3 || argc - at > 16 || set.every < 1)
		prog_die(0, "sweep [OPTION]... XRUN SPEW DIR [ARG]...");
	set.argv[n++] = argv[at];
	for (int i = at + 3; i < argc; i++) {
		set.argv[n++] = argv[i];
		if (strcmp(argv[i], "--no-logs") == 0)
			set.logs = false;
		if (strcmp(argv[i], "--report=report") == 0)
			set.report = true;
	}
	set.argv[n++] = "-n2";
	set.argv[n++] = argv[at + 1];
	set.argv[n++] = "--both";
	set.argv[n++] = "--copy=ref";
	set.argv[n++] = "--lines=20";
	if (set.is_long)
		set.argv[n++] = "--await=run/xrun/*/control";
	sigaction(SIGALRM, &on, NULL);
	scene_init(&s, argv[at + 2]);
	sweep(&s, &set);
	scene_fini(&s);
	return s.broken == 0 ? 0 : 1;
}
