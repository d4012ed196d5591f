/* SPDX-License-Identifier: Apache-2.0 */
/* test_spawn.c - a program started, or nothing left and the step named. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "proc/spawn.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"

#define TRUE_PROGRAM "/bin/true"

extern char **environ;

TestSuite(spawn, .init = folder_make, .fini = folder_remove);

/* What spawn.h asks of its maker. */
static void
become_maker(void)
{
	sigset_t all;

	NEED(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0);
	NEED(spawn_slots_init() == 0);
	sigfillset(&all);
	sigdelset(&all, SIGALRM); /* forked.h's own */
	NEED(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
}

/* A program with up to three arguments, /dev/null as 0 to 2. */
static char *args[5];

static struct spawn
order(const char *path, char *a, char *b, char *c)
{
	struct spawn s = {
		.path = path,
		.argv = args,
		.envp = environ,
		.in = SPAWN_SLOT_NULL,
		.out = SPAWN_SLOT_NULL,
		.err = STDERR_FILENO,
		.life = -1,
		.control = -1,
		.segment = -1,
	};

	args[0] = (char *)path;
	args[1] = a;
	args[2] = b;
	args[3] = c;
	NEED(getrlimit(RLIMIT_NOFILE, &s.files) == 0);
	return s;
}

/* Its status as waitpid(2) gives it, when it ended. */
static int
reap(struct spawn *s)
{
	int status = -1;

	EXPECT_EQ(waitpid(s->pid, &status, 0), s->pid);
	close(s->pidfd);
	return status;
}

static int
open_descriptors(void)
{
	return folder_entries("/proc/self/fd");
}

/* What the program writes to 1; it must end with 0. */
static const char *
output_of(struct spawn *s)
{
	static char text[65536];
	size_t len = 0;
	ssize_t n;
	int p[2];

	NEED(pipe2(p, O_CLOEXEC) == 0);
	NEED(spawn_slot_set(SPAWN_SLOT_OUT, p[1]) == 0);
	close(p[1]);
	s->out = SPAWN_SLOT_OUT;
	EXPECT(spawn_start(s));
	NEED(spawn_slot_set(SPAWN_SLOT_OUT, -1) == 0);
	while ((n = read(p[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(p[0]);
	EXPECT_EQ(reap(s), 0);
	return text;
}

static void
expect_failure(struct spawn *s, enum spawn_step step, int sys)
{
	int before = open_descriptors();

	EXPECT(!spawn_start(s));
	EXPECT_EQ(s->step, step);
	EXPECT_EQ(s->sys, sys);
	EXPECT_EQ(s->pid, 0);
	EXPECT_EQ(s->pidfd, -1);
	EXPECT(forked_childless());
	EXPECT_EQ(open_descriptors(), before);
}

/* The value behind "NAME:" in /proc/PID/status. */
static unsigned long long
value_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	EXPECT(at != NULL);
	return at == NULL ? ~0ull : strtoull(at + strlen(name), NULL, 16);
}

FORKED_TEST(spawn, a_program_runs_and_its_end_is_seen)
{
	struct spawn s;
	struct pollfd p = { .events = POLLIN };
	int before;

	become_maker();
	before = open_descriptors();
	s = order("/bin/sh", "-c", "exit 7", NULL);
	EXPECT(spawn_start(&s));
	EXPECT_EQ(s.step, SPAWN_OK);
	EXPECT(s.pid > 0);
	EXPECT(fcntl(s.pidfd, F_GETFD) & FD_CLOEXEC);
	p.fd = s.pidfd;
	EXPECT_EQ(poll(&p, 1, -1), 1);
	EXPECT_EQ(reap(&s), 7 << 8);
	EXPECT_EQ(open_descriptors(), before);
}

FORKED_TEST(spawn, arguments_and_environment_arrive_as_they_are)
{
	char *envp[] = { "A=1", "B=two words", "EMPTY=", NULL };
	struct spawn s;

	become_maker();
	s = order("/usr/bin/printf", "[%s]", "", "a b\n");
	EXPECT_STR(output_of(&s), "[][a b\n]");
	s = order("/usr/bin/env", NULL, NULL, NULL);
	s.envp = envp;
	EXPECT_STR(output_of(&s), "A=1\nB=two words\nEMPTY=\n");
}

/* ls opens the folder as the lowest that is free. */
FORKED_TEST(spawn, a_child_has_0_1_and_2_and_nothing_else)
{
	struct spawn s;
	int high;

	become_maker();
	high = fcntl(SPAWN_SLOT_NULL, F_DUPFD_CLOEXEC, 200);
	s = order("/bin/ls", "/proc/self/fd", NULL, NULL);
	EXPECT_STR(output_of(&s), "0\n1\n2\n3\n");
	close(high);
}

FORKED_TEST(spawn, a_child_leaves_the_makers_descriptors_alone)
{
	struct spawn s;
	int high, before;

	become_maker();
	high = fcntl(SPAWN_SLOT_NULL, F_DUPFD_CLOEXEC, 200);
	before = open_descriptors();
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	EXPECT(spawn_start(&s));
	EXPECT_EQ(reap(&s), 0);
	EXPECT_EQ(open_descriptors(), before);
	EXPECT(fcntl(high, F_GETFD) != -1);
	for (int slot = SPAWN_SLOT_IN; slot < SPAWN_SLOTS; slot++)
		EXPECT(fcntl(slot, F_GETFD) & FD_CLOEXEC);
}

FORKED_TEST(spawn, each_stream_is_what_stands_in_its_slot)
{
	struct spawn s;
	char text[8] = "";
	int in[2], err[2];

	become_maker();
	NEED(pipe2(in, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
	NEED(spawn_slot_set(SPAWN_SLOT_IN, in[0]) == 0);
	NEED(spawn_slot_set(SPAWN_SLOT_ERR, err[1]) == 0);
	NEED(write(in[1], "in", 2) == 2);
	close(in[0]);
	close(in[1]);
	close(err[1]);
	s = order("/bin/sh", "-c", "cat; echo err >&2", NULL);
	s.in = SPAWN_SLOT_IN;
	s.err = SPAWN_SLOT_ERR;
	EXPECT_STR(output_of(&s), "in");
	EXPECT_EQ(read(err[0], text, sizeof(text)), 4);
	EXPECT_STR(text, "err\n");
	NEED(spawn_slot_set(SPAWN_SLOT_ERR, -1) == 0);
	EXPECT_EQ(read(err[0], text, sizeof(text)), 0);
}

FORKED_TEST(spawn, streams_of_the_maker_are_inherited_in_place)
{
	struct spawn s;
	char text[8] = "";
	int p[2];

	become_maker();
	NEED(pipe2(p, O_CLOEXEC) == 0);
	for (int fd = 0; fd < 3; fd++)
		NEED(dup2(p[1], fd) == fd);
	close(p[1]);
	s = order("/bin/sh", "-c", "echo 0 >&0; echo 1; echo 2 >&2", NULL);
	s.in = 0;
	s.out = 1;
	s.err = 2;
	EXPECT(spawn_start(&s));
	EXPECT_EQ(reap(&s), 0);
	EXPECT_EQ(read(p[0], text, sizeof(text)), 6);
	EXPECT_EQ(memcmp(text, "0\n1\n2\n", 6), 0);
}

FORKED_TEST(spawn, one_slot_may_be_stdout_and_stderr)
{
	struct spawn s;

	become_maker();
	s = order("/bin/sh", "-c", "echo out; echo err >&2", NULL);
	s.err = SPAWN_SLOT_OUT;
	EXPECT_STR(output_of(&s), "out\nerr\n");
}

/* It is the highest, and its end is seen by whoever holds the other. */
static void
expect_lifeline(int at)
{
	struct pollfd p = { .events = POLLIN };
	struct spawn s;
	char want[64];
	int life[2];

	NEED(pipe2(life, O_CLOEXEC) == 0);
	NEED(spawn_slot_set(SPAWN_SLOT_LIFE, life[1]) == 0);
	close(life[1]);
	s = order("/bin/ls", "-v", "/proc/self/fd", NULL);
	s.life = SPAWN_SLOT_LIFE;
	s.life_at = at;
	snprintf(want, sizeof(want), "0\n1\n2\n3\n%d\n", at);
	EXPECT_STR(output_of(&s), want);
	p.fd = life[0];
	EXPECT_EQ(poll(&p, 1, 0), 0);
	NEED(spawn_slot_set(SPAWN_SLOT_LIFE, -1) == 0);
	EXPECT_EQ(poll(&p, 1, 0), 1);
	EXPECT_EQ(p.revents, POLLHUP);
	s.life_at = -1;
	expect_failure(&s, SPAWN_STDIO, EBADF);
	close(life[0]);
}

FORKED_TEST(spawn, a_lifeline_is_held_where_it_is_wanted)
{
	become_maker();
	expect_lifeline(77);
	expect_lifeline(SPAWN_SLOTS);
}

FORKED_TEST(spawn, a_child_runs_on_the_processors_it_is_given)
{
	unsigned long mask[2] = { 0, 0 }, none[1] = { 0 };
	cpu_set_t may;
	char want[64];
	struct spawn s;
	int cpu = 0;

	NEED(sched_getaffinity(0, sizeof(may), &may) == 0);
	while (cpu < 63 && !CPU_ISSET(cpu, &may))
		cpu++;
	mask[0] = 1UL << cpu;
	snprintf(want, sizeof(want), "Cpus_allowed_list:\t%d\n", cpu);
	become_maker();
	s = order("/bin/grep", "Cpus_allowed_list", "/proc/self/status", NULL);
	s.cpus = mask;
	s.cpus_len = sizeof(mask);
	EXPECT_STR(output_of(&s), want);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.cpus = none;
	s.cpus_len = sizeof(none);
	expect_failure(&s, SPAWN_AFFINITY, EINVAL);
	NEED(sched_getaffinity(0, sizeof(may), &may) == 0);
	EXPECT(CPU_COUNT(&may) >= 1);
}

FORKED_TEST(spawn, a_program_is_seen_from_its_directory)
{
	struct spawn s;

	NEED(mkdir("there", 0700) == 0);
	NEED(symlink("/bin/pwd", "there/where") == 0);
	become_maker();
	s = order("./where", "-P", NULL, NULL);
	s.dir = "there";
	EXPECT(strstr(output_of(&s), "/there\n") != NULL);
	s = order("/bin/pwd", NULL, NULL, NULL);
	s.dir = "nowhere";
	expect_failure(&s, SPAWN_CHDIR, ENOENT);
}

/* It is the child that writes, and before anything else. */
FORKED_TEST(spawn, a_child_enters_the_group_it_is_given)
{
	char text[4] = "";
	struct spawn s;
	int end[2];

	become_maker();
	NEED(pipe2(end, O_CLOEXEC) == 0);
	s = order("/bin/echo", "runs", NULL, NULL);
	s.group = end[1];
	EXPECT_STR(output_of(&s), "runs\n");
	EXPECT_EQ(read(end[0], text, sizeof(text)), 1);
	EXPECT_STR(text, "0");
	close(end[0]);
	close(end[1]);
	end[0] = open("/dev/full", O_WRONLY | O_CLOEXEC);
	NEED(end[0] != -1);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.group = end[0];
	expect_failure(&s, SPAWN_GROUP, ENOSPC);
	close(end[0]);
}

FORKED_TEST(spawn, a_child_leads_a_session_of_its_own)
{
	struct spawn s;
	const char *text;
	int pid = 0, ppid, pgrp, session;

	become_maker();
	s = order("/bin/cat", "/proc/self/stat", NULL, NULL);
	text = output_of(&s);
	EXPECT_EQ(sscanf(text, "%d (cat) %*c %d %d %d", &pid, &ppid, &pgrp,
			  &session),
		4);
	EXPECT(pid > 0);
	EXPECT_EQ(ppid, getpid());
	EXPECT_EQ(pgrp, pid);
	EXPECT_EQ(session, pid);
}

FORKED_TEST(spawn, a_child_begins_with_no_signal_blocked_or_ignored)
{
	struct spawn s;
	const char *text;

	become_maker();
	s = order("/bin/cat", "/proc/self/status", NULL, NULL);
	text = output_of(&s);
	EXPECT_EQ(value_of(text, "SigBlk:"), 0);
	EXPECT_EQ(value_of(text, "SigIgn:"), 0);
	EXPECT_EQ(value_of(text, "SigCgt:"), 0);
	EXPECT_EQ(value_of(text, "SigPnd:"), 0);
	EXPECT_EQ(value_of(text, "ShdPnd:"), 0);
}

FORKED_TEST(spawn, the_makers_mask_is_as_before)
{
	sigset_t before, after;
	struct spawn s;

	become_maker();
	NEED(sigprocmask(SIG_SETMASK, NULL, &before) == 0);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	EXPECT(spawn_start(&s));
	EXPECT_EQ(reap(&s), 0);
	s = order("/nowhere", NULL, NULL, NULL);
	EXPECT(!spawn_start(&s));
	NEED(sigprocmask(SIG_SETMASK, NULL, &after) == 0);
	for (int sig = 1; sig < NSIG; sig++)
		EXPECT_EQ(sigismember(&after, sig), sigismember(&before, sig));
}

FORKED_TEST(spawn, a_child_gets_the_descriptor_limit_it_is_given)
{
	struct spawn s;

	become_maker();
	s = order("/bin/sh", "-c", "ulimit -Sn; ulimit -Hn", NULL);
	s.files = (struct rlimit){ .rlim_cur = 77, .rlim_max = 99 };
	EXPECT_STR(output_of(&s), "77\n99\n");
}

static void *
make_in_thread(void *arg)
{
	struct spawn *s = arg;

	EXPECT(spawn_start(s));
	return NULL;
}

/* It does not outlive the thread that made it. */
FORKED_TEST(spawn, a_child_dies_with_the_thread_that_made_it)
{
	struct spawn s;
	pthread_t thread;

	become_maker();
	s = order("/bin/sleep", "1000", NULL, NULL);
	NEED(pthread_create(&thread, NULL, make_in_thread, &s) == 0);
	NEED(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(reap(&s), SIGKILL);
}

/* A program of too many arguments: beyond what the kernel takes. */
static char **
too_many(void)
{
	static char word[100 * 1024];
	static char *many[200];

	memset(word, 'x', sizeof(word) - 1);
	for (int i = 0; i < 199; i++)
		many[i] = word;
	return many;
}

static void
expect_exec_errors(void)
{
	struct spawn s;

	s = order("/nowhere/at/all", NULL, NULL, NULL);
	expect_failure(&s, SPAWN_EXEC, ENOENT);
	s = order("plain", NULL, NULL, NULL);
	expect_failure(&s, SPAWN_EXEC, EACCES);
	s = order(".", NULL, NULL, NULL);
	expect_failure(&s, SPAWN_EXEC, EACCES);
	s = order("text", NULL, NULL, NULL);
	expect_failure(&s, SPAWN_EXEC, ENOEXEC);
	s = order("noshell", NULL, NULL, NULL);
	expect_failure(&s, SPAWN_EXEC, ENOENT);
	s = order("plain/x", NULL, NULL, NULL);
	expect_failure(&s, SPAWN_EXEC, ENOTDIR);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.argv = too_many();
	expect_failure(&s, SPAWN_EXEC, E2BIG);
}

static void
write_files(void)
{
	folder_write("plain", "", 0600);
	folder_write("text", "true\n", 0700);
	folder_write("noshell", "#!/nowhere/sh\n", 0700);
}

FORKED_TEST(spawn, what_exec_refuses_is_reported_and_leaves_nothing)
{
	struct spawn s;

	become_maker();
	write_files();
	expect_exec_errors();
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	EXPECT(spawn_start(&s));
	EXPECT_EQ(reap(&s), 0);
}

/* What execve(2) says of a program that somebody writes; a few kernels of
 * 2024 run it. */
static int
plain_exec_of(char *path)
{
	char *const argv[] = { path, NULL };
	int status;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		execve(path, argv, environ);
		_exit(errno);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	return WEXITSTATUS(status);
}

FORKED_TEST(spawn, a_program_that_is_being_written_is_reported)
{
	struct spawn s;
	int fd;

	become_maker();
	s = order("/bin/cp", TRUE_PROGRAM, "busy", NULL);
	EXPECT(spawn_start(&s));
	EXPECT_EQ(reap(&s), 0);
	NEED((fd = open("busy", O_WRONLY | O_CLOEXEC)) != -1);
	s = order("./busy", NULL, NULL, NULL);
	if (plain_exec_of("./busy") == ETXTBSY) {
		expect_failure(&s, SPAWN_EXEC, ETXTBSY);
	} else {
		EXPECT(spawn_start(&s));
		EXPECT_EQ(reap(&s), 0);
	}
	close(fd);
}

FORKED_TEST(spawn, a_stream_that_is_not_open_is_reported)
{
	struct spawn s;

	become_maker();
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.in = SPAWN_SLOTS; /* never the child's */
	expect_failure(&s, SPAWN_STDIO, EBADF);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.out = -1;
	expect_failure(&s, SPAWN_STDIO, EBADF);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.err = -1;
	expect_failure(&s, SPAWN_STDIO, EBADF);
}

FORKED_TEST(spawn, a_limit_that_cannot_be_is_reported)
{
	struct spawn s;

	become_maker();
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.files = (struct rlimit){ .rlim_cur = 9, .rlim_max = 8 };
	expect_failure(&s, SPAWN_LIMIT, EINVAL);
}

FORKED_TEST(spawn, a_refused_setsid_is_reported)
{
	struct spawn s;

	become_maker();
	NEED(seccomp_refuse(SYS_setsid, EPERM) == 0);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	expect_failure(&s, SPAWN_SESSION, EPERM);
}

FORKED_TEST(spawn, a_refused_prctl_is_reported)
{
	struct spawn s;

	become_maker();
	NEED(seccomp_refuse(SYS_prctl, EACCES) == 0);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	expect_failure(&s, SPAWN_DEATHSIG, EACCES);
}

/* A full table of processes: waiting may help, another call does not. */
FORKED_TEST(spawn, a_full_table_is_reported_and_not_tried_otherwise)
{
	struct spawn s;

	become_maker();
	NEED(seccomp_refuse_flag(SYS_clone, CLONE_VFORK, EAGAIN) == 0);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	expect_failure(&s, SPAWN_CLONE, EAGAIN);
}

FORKED_TEST(spawn, an_older_kernel_copies_the_table)
{
	struct spawn s;

	become_maker();
	NEED(seccomp_refuse(SYS_close_range, ENOSYS) == 0);
	s = order("/bin/ls", "/proc/self/fd", NULL, NULL);
	EXPECT_STR(output_of(&s), "0\n1\n2\n3\n");
}

/* From here on in a sandbox that knows no clone like ours. */

static void
enter_sandbox(int sys)
{
	become_maker();
	NEED(seccomp_refuse_flag(SYS_clone, CLONE_VFORK, sys) == 0);
}

FORKED_TEST(spawn, a_refused_clone_is_tried_as_a_fork)
{
	static const int refusals[] = { EPERM, ENOSYS, EINVAL };
	struct spawn s;
	int before;

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		int status;

		NEED(pid != -1);
		if (pid != 0) {
			EXPECT_EQ(waitpid(pid, &status, 0), pid);
			EXPECT_EQ(status, 0);
			continue;
		}
		enter_sandbox(refusals[i]);
		before = open_descriptors();
		s = order("/bin/sh", "-c", "exit 7", NULL);
		EXPECT(spawn_start(&s));
		EXPECT(s.pid > 0);
		EXPECT(fcntl(s.pidfd, F_GETFD) & FD_CLOEXEC);
		EXPECT_EQ(reap(&s), 7 << 8);
		EXPECT_EQ(open_descriptors(), before);
		_exit(forked_wrong > 0);
	}
}

FORKED_TEST(spawn, a_forked_child_is_like_a_cloned_one)
{
	struct spawn s;
	const char *text;
	int pid = 0, ppid, pgrp, session, high;

	enter_sandbox(EPERM);
	high = fcntl(SPAWN_SLOT_NULL, F_DUPFD_CLOEXEC, 200);
	s = order("/bin/ls", "/proc/self/fd", NULL, NULL);
	EXPECT_STR(output_of(&s), "0\n1\n2\n3\n");
	s = order("/bin/cat", "/proc/self/stat", NULL, NULL);
	text = output_of(&s);
	EXPECT_EQ(sscanf(text, "%d (cat) %*c %d %d %d", &pid, &ppid, &pgrp,
			  &session),
		4);
	EXPECT_EQ(ppid, getpid());
	EXPECT_EQ(session, pid);
	s = order("/bin/cat", "/proc/self/status", NULL, NULL);
	text = output_of(&s);
	EXPECT_EQ(value_of(text, "SigBlk:"), 0);
	EXPECT_EQ(value_of(text, "SigIgn:"), 0);
	s = order("/bin/sh", "-c", "ulimit -Sn; ulimit -Hn", NULL);
	s.files = (struct rlimit){ .rlim_cur = 77, .rlim_max = 99 };
	EXPECT_STR(output_of(&s), "77\n99\n");
	close(high);
}

FORKED_TEST(spawn, a_forked_child_reports_what_exec_refused)
{
	struct spawn s;

	enter_sandbox(EPERM);
	write_files();
	expect_exec_errors();
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.out = -1;
	expect_failure(&s, SPAWN_STDIO, EBADF);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	s.files = (struct rlimit){ .rlim_cur = 9, .rlim_max = 8 };
	expect_failure(&s, SPAWN_LIMIT, EINVAL);
}

FORKED_TEST(spawn, a_forked_child_dies_with_the_thread_that_made_it)
{
	struct spawn s;
	pthread_t thread;

	enter_sandbox(EPERM);
	s = order("/bin/sleep", "1000", NULL, NULL);
	NEED(pthread_create(&thread, NULL, make_in_thread, &s) == 0);
	NEED(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(reap(&s), SIGKILL);
}

/* The child waits at its gate for ever unless the gate is closed. */
FORKED_TEST(spawn, a_forked_child_without_a_pidfd_is_buried)
{
	struct spawn s;

	enter_sandbox(EPERM);
	NEED(seccomp_refuse(SYS_pidfd_open, ENOSYS) == 0);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	expect_failure(&s, SPAWN_CLONE, ENOSYS);
}

/* The pipe that reports has, in the maker, every number there is. */
FORKED_TEST(spawn, a_forked_child_reports_beside_any_lifeline)
{
	struct spawn s;

	enter_sandbox(EPERM);
	for (int at = SPAWN_SLOTS; at < SPAWN_SLOTS + 16; at++) {
		expect_lifeline(at);
		s = order("/nowhere", NULL, NULL, NULL);
		s.life = SPAWN_SLOT_LIFE;
		s.life_at = at;
		expect_failure(&s, SPAWN_EXEC, ENOENT);
	}
}

/* Who made a child is killed before that asks to be told of it. */
static struct {
	bool is_set;
	pid_t maker;
} gap;

/* That of libc, but for the gap. */
int
prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (gap.is_set && option == PR_SET_PDEATHSIG) {
		kill(gap.maker, SIGKILL);
		while (getppid() == gap.maker)
			sched_yield();
	}
	return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
}

FORKED_TEST(spawn, D_L6_a_child_whose_maker_was_killed_before_it_asks_ends)
{
	struct spawn s;
	int status;
	pid_t maker;

	NEED(prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0);
	maker = fork();
	NEED(maker != -1);
	if (maker == 0) {
		become_maker();
		gap.maker = getpid();
		gap.is_set = true;
		s = order(TRUE_PROGRAM, NULL, NULL, NULL);
		spawn_start(&s);
		_exit(0);
	}
	EXPECT_EQ(waitpid(maker, &status, 0), maker);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT(waitpid(-1, &status, 0) > 0);
	EXPECT_EQ(status, 125 << 8); /* the program was not executed */
}

/* The maker is killed between the fork and the byte that lets the child go. */
FORKED_TEST(spawn, a_forked_child_whose_maker_was_killed_ends)
{
	struct spawn s;
	int status;
	pid_t maker = fork();

	NEED(maker != -1);
	if (maker == 0) {
		enter_sandbox(EPERM);
		NEED(seccomp_kill(SYS_pidfd_open) == 0);
		s = order(TRUE_PROGRAM, NULL, NULL, NULL);
		spawn_start(&s);
		_exit(0);
	}
	EXPECT_EQ(waitpid(maker, &status, 0), maker);
	EXPECT_EQ(WTERMSIG(status), SIGSYS);
	EXPECT(waitpid(-1, &status, 0) > 0); /* it was adopted */
	EXPECT_EQ(status, 125 << 8);
}

FORKED_TEST(spawn, where_nothing_may_be_made_that_is_reported)
{
	struct spawn s;

	become_maker();
	NEED(seccomp_refuse(SYS_clone, EPERM) == 0);
	s = order(TRUE_PROGRAM, NULL, NULL, NULL);
	expect_failure(&s, SPAWN_CLONE, EPERM);
}

/* Neither a table without the rest nor a copy: exec closes all the same. */
FORKED_TEST(spawn, a_table_that_cannot_be_unshared_is_forked)
{
	struct spawn s;

	become_maker();
	NEED(seccomp_refuse(SYS_close_range, EPERM) == 0);
	NEED(seccomp_refuse(SYS_unshare, EPERM) == 0);
	s = order("/bin/ls", "/proc/self/fd", NULL, NULL);
	EXPECT_STR(output_of(&s), "0\n1\n2\n3\n");
}

FORKED_TEST(spawn, the_slots_are_null_until_they_are_set)
{
	struct stat null, st;

	become_maker();
	NEED(stat("/dev/null", &null) == 0);
	for (int slot = SPAWN_SLOT_IN; slot < SPAWN_SLOTS; slot++) {
		EXPECT_EQ(fstat(slot, &st), 0);
		EXPECT_EQ(st.st_rdev, null.st_rdev);
		EXPECT(fcntl(slot, F_GETFD) & FD_CLOEXEC);
		EXPECT_EQ(fcntl(slot, F_GETFL) & O_ACCMODE, O_RDWR);
	}
	errno = 0;
	EXPECT_EQ(spawn_slot_set(SPAWN_SLOT_OUT, 250), -1);
	EXPECT_EQ(errno, EBADF);
}

FORKED_TEST(spawn, the_slots_take_no_other_descriptor)
{
	int before;

	for (int fd = 0; fd < 20; fd++)
		close(fd);
	for (int fd = 0; fd < 3; fd++)
		NEED(open("/dev/null", O_RDWR) == fd);
	NEED(open("/dev/null", O_RDWR | O_CLOEXEC) == 3);
	before = open_descriptors();
	EXPECT_EQ(spawn_slots_init(), 0);
	EXPECT_EQ(open_descriptors(), before + SPAWN_SLOTS - SPAWN_SLOT_IN - 1);
	EXPECT_EQ(spawn_slots_init(), 0);
	EXPECT_EQ(open_descriptors(), before + SPAWN_SLOTS - SPAWN_SLOT_IN - 1);
}

Test(spawn_step, every_step_has_a_name)
{
	for (int i = SPAWN_OK; i <= SPAWN_EXEC; i++)
		cr_expect_not_null(spawn_step_name((enum spawn_step)i));
	cr_expect_str_eq(spawn_step_name(SPAWN_EXEC), "exec");
	cr_expect_str_eq(spawn_step_name(SPAWN_SESSION), "setsid");
}
