/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_gather.c - processes of ranks, their threads in /proc, and the tools that are
 * asked about them. */
#include <poll.h>
#include <sched.h>

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/span.h"
#include "launcher/stacks/attach.h"
#include "launcher/stacks/gather.h"
#include "launcher/stacks/handler.h"
#include "launcher/stacks/threads.h"
#include "launcher/stacks/tool.h"
#include "launcher/stacks/tree.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"

#define NOBODY_UID 65534

TestSuite(stacks_gather, .init = folder_make, .fini = folder_remove);

/* --- children ------------------------------------------------------------- */

/* Starts a child that runs @run(@arg) once it has told that it is there. */
static pid_t
start(void (*run)(int), int arg)
{
	int ready[2];
	char byte;
	pid_t pid;

	NEED(pipe(ready) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		NEED(write(ready[1], "", 1) == 1);
		close(ready[0]);
		close(ready[1]);
		run(arg);
		_exit(0);
	}
	NEED(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void
stop(pid_t pid)
{
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

static void
sleeps(int arg)
{
	(void)arg;
	for (;;)
		pause();
}

/* --- threads -------------------------------------------------------------- */

static void
waits_for_events(int fd)
{
	struct epoll_event e;

	(void)fd;
	epoll_wait(epoll_create1(0), &e, 1, -1);
}

static void
waits_for_files(int fd)
{
	char some[512];

	(void)fd;
	(void)!read(inotify_init1(0), some, sizeof(some));
}

/* The kernel looks at the lower half of a descriptor only. */
static void
reads_beyond_int(int fd)
{
	char byte;

	syscall(SYS_read, (long)fd | 1L << 32, &byte, 1);
}

static void
reads_below_zero(int fd)
{
	char byte;

	syscall(SYS_read, (long)fd | 1L << 63, &byte, 1);
}

static void
reads(int fd)
{
	char byte;

	(void)!read(fd, &byte, 1);
}

/* A call that is not in the table of names. */
static void
splices_memory(int fd)
{
	static char page[4096];
	struct iovec part = { page, sizeof(page) };

	while (syscall(SYS_vmsplice, fd, &part, 1, 0) > 0)
		continue;
}

/* Reads the threads of @pid until the main thread is in the call @want. */
static void
call_becomes(pid_t pid, const char *want)
{
	struct stacks s = { 0 };
	struct process *p;
	bool same = false;

	while (!same) {
		stacks_fini(&s);
		p = stacks_add_process(&s, 0, pid);
		threads_read(p);
		NEED(p->threads == 1 && p->thread[0].tid == pid);
		same = strcmp(p->thread[0].call, want) == 0;
		if (!same)
			poll(NULL, 0, 1);
	}
	EXPECT_EQ(p->thread[0].state, 'S');
	EXPECT(!p->stopped);
	stacks_fini(&s);
}

FORKED_TEST(stacks_gather, a_thread_names_its_call_and_the_kind_of_its_file)
{
	char vmsplice_text[32];
	const struct {
		void (*run)(int);
		int end; /* of a pipe */
		const char *call;
	} rows[] = {
#ifdef SYS_epoll_wait
		{ waits_for_events, 0, "epoll_wait eventpoll" },
#else
		{ waits_for_events, 0, "epoll_pwait eventpoll" },
#endif
		{ waits_for_files, 0, "read inotify" },
		{ reads, 0, "read pipe" },
		{ reads_beyond_int, 0, "read" },
		{ reads_below_zero, 0, "read" },
		{ splices_memory, 1, vmsplice_text },
	};
	int fd[2];
	pid_t pid;

	snprintf(vmsplice_text, sizeof(vmsplice_text), "system call %d",
		(int)SYS_vmsplice);
	NEED(pipe(fd) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pid = start(rows[i].run, fd[rows[i].end]);
		call_becomes(pid, rows[i].call);
		stop(pid);
	}
}

static void
spins(int arg)
{
	(void)arg;
	for (;;)
		continue;
}

FORKED_TEST(stacks_gather, a_thread_that_runs_is_in_no_call)
{
	struct stacks s = { 0 };
	struct process *p = NULL;
	pid_t pid = start(spins, 0);

	do {
		stacks_fini(&s);
		p = stacks_add_process(&s, 0, pid);
		threads_read(p);
		NEED(p->threads == 1);
	} while (p->thread[0].state != 'R' || p->thread[0].call[0] != '\0');
	EXPECT_STR(p->thread[0].wchan, "");
	stacks_fini(&s);
	stop(pid);
	EXPECT(!threads_state(pid, &(struct thread){ .tid = pid }));
}

FORKED_TEST(stacks_gather, the_stack_in_the_kernel_is_for_root)
{
	struct stacks s = { 0 };
	struct process *p;
	pid_t pid;

	if (geteuid() == 0)
		NEED(setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID) == 0);
	NEED(prctl(PR_SET_DUMPABLE, 1) == 0);
	pid = start(sleeps, 0);
	p = stacks_add_process(&s, 0, pid);
	threads_read(p);
	NEED(p->threads == 1);
	EXPECT_EQ(p->thread[0].kernel.count, 0);
	stacks_fini(&s);
	stop(pid);
}

/* --- the right to attach -------------------------------------------------- */

/* Why @pid may not be attached to. */
static const char *
refusal(pid_t pid)
{
	static struct process p;

	p = (struct process){ .pid = pid };
	EXPECT_EQ(attach_allowed(&p), p.why[0] == '\0');
	return p.why;
}

static void
cannot_be_dumped(int fd)
{
	prctl(PR_SET_DUMPABLE, 0);
	NEED(write(fd, "", 1) == 1);
	sleeps(0);
}

FORKED_TEST(stacks_gather, a_process_that_cannot_be_attached_to_has_a_reason)
{
	char scope = '0', byte, want[128];
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	pid_t pid = start(sleeps, 0);
	int fd[2];

	EXPECT_STR(refusal(pid), "");
	stop(pid);
	EXPECT_STR(refusal(pid), "it has ended");
	if (f != NULL) {
		NEED(fread(&scope, 1, 1, f) == 1);
		fclose(f);
	}
	if (geteuid() == 0)
		NEED(setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID) == 0);
	EXPECT_STR(refusal(getppid()),
		getuid() == NOBODY_UID ?
			"it is another user's (uid 0): root may look" :
			refusal(getppid()));
	NEED(pipe(fd) == 0);
	pid = start(cannot_be_dumped, fd[1]);
	NEED(read(fd[0], &byte, 1) == 1);
	if (scope >= '1')
		snprintf(want, sizeof(want),
			"/proc/sys/kernel/yama/ptrace_scope is %c: root may look",
			scope);
	else
		snprintf(want, sizeof(want), "it cannot be traced (%s)",
			strerror(EACCES));
	EXPECT_STR(refusal(pid), want);
	stop(pid);
}

/* --- the processes of a rank ---------------------------------------------- */

/* A chain of @left more processes, each the child of the one before. */
static void
makes_chain(int fd)
{
	for (int left = 70; left > 0; left--)
		if (fork() != 0)
			sleeps(0);
	NEED(write(fd, "", 1) == 1);
	sleeps(0);
}

FORKED_TEST(stacks_gather, a_rank_has_16_processes_of_64_generations)
{
	struct stacks s = { 0 };
	char byte;
	int fd[2];
	pid_t pid;

	NEED(pipe(fd) == 0);
	pid = start(makes_chain, fd[1]);
	NEED(read(fd[0], &byte, 1) == 1);
	stacks_add_rank(&s, 0, getpid());
	stacks_add_rank(&s, 7, pid);
	tree_find(&s);
	EXPECT_EQ(s.count, 1 + STACKS_A_RANK);
	EXPECT_EQ(s.process[0].pid, getpid());
	EXPECT_EQ(s.rank[0].left_out, 0);
	for (uint32_t i = 0; i < STACKS_A_RANK; i++) {
		EXPECT_EQ(s.process[1 + i].rank, 7);
		EXPECT_EQ(s.process[1 + i].depth, i);
	}
	EXPECT_EQ(s.process[1].pid, pid);
	EXPECT_EQ(s.rank[1].left_out, 64 - STACKS_A_RANK);
	stacks_fini(&s);
	stop(pid);
	forked_sweep();
}

static pid_t forked_parent; /* the body of the test */

/* Its child ends and leaves a process behind that is still of its session. */
static void
leads_a_session(int fd)
{
	setsid();
	if (fork() == 0) {
		if (fork() != 0)
			_exit(0);
		while (getppid() != forked_parent)
			poll(NULL, 0, 1);
		NEED(write(fd, &(pid_t){ getpid() }, sizeof(pid_t)) ==
			sizeof(pid_t));
	}
	sleeps(0);
}

FORKED_TEST(stacks_gather, a_process_is_of_the_rank_that_leads_its_session)
{
	struct stacks s = { 0 };
	pid_t pid, left;
	int fd[2];

	forked_parent = getpid();
	NEED(pipe(fd) == 0);
	pid = start(leads_a_session, fd[1]);
	NEED(read(fd[0], &left, sizeof(left)) == sizeof(left));
	stacks_add_rank(&s, 3, pid);
	stacks_add_rank(&s, 4, left + 1 == pid ? left + 2 : left + 1);
	tree_find(&s);
	EXPECT_EQ(s.count, 2);
	EXPECT_EQ(s.process[0].pid, pid);
	EXPECT_EQ(s.process[1].pid, left);
	EXPECT_EQ(s.process[1].rank, 3);
	EXPECT_EQ(s.process[1].depth, 1);
	EXPECT(!s.rank[0].ended);
	stacks_fini(&s);
	stop(pid);
	forked_sweep();
}

/* --- one tool ------------------------------------------------------------- */

/* Makes @name executable in the folder: a script of sh. */
static void
make_tool(const char *name, const char *script)
{
	FILE *f = fopen(name, "we");

	NEED(f != NULL);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	NEED(fclose(f) == 0);
	NEED(chmod(name, 0755) == 0);
}

FORKED_TEST(stacks_gather, a_tool_is_found_in_an_absolute_folder_of_path)
{
	char path[4 * PATH_MAX + 64], want[PATH_MAX + 16];
	char *file;

	make_tool("other", "");
	NEED(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 &&
		mkdir("a/dir", 0755) == 0 && mkdir("c", 0755) == 0);
	make_tool("a/text", "");
	NEED(chmod("a/text", 0644) == 0);
	make_tool("b/text", "");
	make_tool("c/text", "");
	snprintf(path, sizeof(path), "::.:a:%s/none:%s/a:%s/b:%s/c:", folder,
		folder, folder, folder);
	setenv("PATH", path, 1);
	EXPECT(tool_find("other") == NULL);
	EXPECT(tool_find("dir") == NULL);
	EXPECT(tool_find("nothing") == NULL);
	file = tool_find("text");
	NEED(file != NULL);
	snprintf(want, sizeof(want), "%s/b/text", folder);
	EXPECT_STR(file, want);
	free(file);
	unsetenv("PATH");
	EXPECT(tool_find("text") == NULL);
}

/* The lowest descriptor that is free. */
static int
lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static bool
start_true(struct tool *t)
{
	char *argv[] = { "/bin/true", NULL };

	return tool_start(t, argv);
}

/* Runs in a child, as a filter stays. */
static void
cannot_start(int row)
{
	static const struct {
		long number;
		int sys;
	} rows[] = { { SYS_pipe2, EMFILE }, { SYS_pidfd_open, ENOSYS },
		{ SYS_fcntl, EINVAL } };
	struct tool t;
	int before = lowest_fd();

	NEED(seccomp_refuse((int)rows[row].number, rows[row].sys) == 0);
	EXPECT(!start_true(&t));
	EXPECT_EQ(errno, rows[row].sys);
	EXPECT_EQ(t.pid, 0);
	EXPECT_EQ(t.pidfd, -1);
	EXPECT_EQ(t.out, -1);
	EXPECT_EQ(lowest_fd(), before);
	_exit(forked_wrong > 0);
}

static void
cannot_fork(int arg)
{
	struct tool t;
	int before = lowest_fd();

	(void)arg;
#ifdef SYS_fork
	NEED(seccomp_refuse(SYS_fork, EAGAIN) == 0);
#endif
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	EXPECT(!start_true(&t));
	EXPECT_EQ(errno, EAGAIN);
	EXPECT_EQ(t.pid, 0);
	EXPECT_EQ(lowest_fd(), before);
	_exit(forked_wrong > 0);
}

FORKED_TEST(stacks_gather, a_tool_that_cannot_start_leaves_nothing_open)
{
	int status;
	pid_t pid;

	for (int row = -1; row < 3; row++) {
		pid = start(row == -1 ? cannot_fork : cannot_start, row);
		EXPECT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_EQ(status, 0);
	}
	forked_sweep();
}

FORKED_TEST(stacks_gather, output_beyond_the_limit_is_dropped)
{
	char *argv[] = { "/usr/bin/head", "-c", "9000000", "/dev/zero", NULL };
	struct tool t;
	struct pollfd p;

	if (access(argv[0], X_OK) == -1)
		return;
	NEED(tool_start(&t, argv));
	while (t.out != -1) {
		p = (struct pollfd){ .fd = t.out, .events = POLLIN };
		poll(&p, 1, -1);
		tool_read(&t);
	}
	EXPECT(t.text.len >= TOOL_OUTPUT_MAX);
	EXPECT(t.text.len < TOOL_OUTPUT_MAX + 16384);
	p = (struct pollfd){ .fd = t.pidfd, .events = POLLIN };
	EXPECT_EQ(poll(&p, 1, -1), 1);
	buf_fini(&t.text);
	EXPECT(tool_end(&t));
	EXPECT_EQ(t.pid, 0);
	EXPECT(!tool_end(&t));
}

/* --- all tools ------------------------------------------------------------ */

#define EU_TOOL  "cat <<E\nTID $3:\n#0  0x1 %s - /m\n#1  0x2 main - /m\nE"
#define GDB_TOOL "cat <<E\nThread 1 (LWP $6):\n#0  %s () at x.c:7\n%sE"
#define GDB_PY   "  File \"a.py\", line 3, in work\n"
#define PY_TOOL  "cat <<E\nThread $3\n    %s (a.py:4)\nE"

/* A script of @fmt, with cat(1) of an absolute name. */
static void __attribute__((format(printf, 2, 3)))
put_tool(const char *name, const char *fmt, ...)
{
	char text[1024] = "PATH=/bin:/usr/bin\n";
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	make_tool(name, text);
}

/* Gathers the stacks of @pid, rank 0. */
static int
gather(struct stacks *s, pid_t pid, int64_t patience)
{
	const struct gather settings = { .patience = patience, .signals = -1 };

	setenv("PATH", folder, 1);
	stacks_add_rank(s, 0, pid);
	return gather_stacks(s, &settings);
}

/* "eu-stack py-spy work|main f": what told, and the functions. */
static void
gathers(pid_t pid, const char *want)
{
	struct stacks s = { 0 };
	struct process *p;
	char text[1024];
	size_t n;

	EXPECT_EQ(gather(&s, pid, 60 * NS_PER_S), 0);
	NEED(s.count == 1);
	p = &s.process[0];
	n = (size_t)snprintf(text, sizeof(text),
		"%s %s:", stacks_by_name(p->by),
		p->python_by != NULL ? p->python_by : "-");
	for (uint32_t i = 0; i < p->thread[0].python.count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " py %s",
			p->thread[0].python.at[i].function);
	for (uint32_t i = 0; i < p->thread[0].native.count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %s",
			p->thread[0].native.at[i].function);
	snprintf(text + n, sizeof(text) - n, "; %s", p->why);
	EXPECT_STR(text, want);
	stacks_fini(&s);
}

#define LETTERS "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

FORKED_TEST(stacks_gather, the_last_words_of_a_tool_are_the_reason)
{
	pid_t pid = start(sleeps, 0);

	gathers(pid,
		"/proc -:; neither eu-stack nor gdb is installed   try: apt-get install elfutils");
	put_tool("eu-stack", "echo no; echo; echo the end; echo");
	gathers(pid, "/proc -:; eu-stack: the end");
	put_tool("eu-stack", "echo eu-stack: bad");
	gathers(pid, "/proc -:; eu-stack: bad");
	put_tool("eu-stack", "echo eu-stack");
	gathers(pid, "/proc -:; eu-stack: eu-stack");
	put_tool("eu-stack", "exit 1");
	gathers(pid, "/proc -:; eu-stack: told nothing");
	put_tool("eu-stack", "echo %s%s", LETTERS, LETTERS);
	gathers(pid, "/proc -:; eu-stack: " LETTERS LETTERS);
	put_tool("eu-stack", "echo %s%sz", LETTERS, LETTERS);
	gathers(pid, "/proc -:; eu-stack: " LETTERS LETTERS);
	put_tool("gdb", "echo gdb says no");
	gathers(pid, "/proc -:; gdb says no");
	NEED(remove("eu-stack") == 0);
	gathers(pid, "/proc -:; gdb says no");
	put_tool("gdb", GDB_TOOL, "work", "");
	gathers(pid, "gdb -: work; ");
	put_tool("eu-stack", EU_TOOL, "work");
	gathers(pid, "eu-stack -: work main; ");
	stop(pid);
}

/* The name of a process, or one of its functions, makes it one of Python. */
FORKED_TEST(stacks_gather, py_spy_is_asked_about_python_only)
{
	pid_t pid = start(sleeps, 0), python;

	prctl(PR_SET_NAME, "python3.11");
	python = start(sleeps, 0);
	put_tool("py-spy", PY_TOOL, "train");
	gathers(pid,
		"/proc -:; neither eu-stack nor gdb is installed   try: apt-get install elfutils");
	gathers(python,
		"/proc py-spy: py train; neither eu-stack nor gdb is installed   try: apt-get install elfutils");
	put_tool("eu-stack", EU_TOOL, "work");
	gathers(pid, "eu-stack -: work main; ");
	gathers(python, "eu-stack py-spy: py train work main; ");
	put_tool("eu-stack", EU_TOOL, "_PyEval_EvalFrameDefault");
	gathers(pid,
		"eu-stack py-spy: py train _PyEval_EvalFrameDefault main; ");
	put_tool("py-spy", "echo Permission denied");
	gathers(python, "eu-stack -: _PyEval_EvalFrameDefault main; ");
	put_tool("eu-stack", "echo no");
	gathers(python, "/proc -:; eu-stack: no");
	/* gdb told functions of Python, too */
	put_tool("gdb", GDB_TOOL, "work", GDB_PY);
	put_tool("py-spy", PY_TOOL, "train");
	gathers(python, "gdb gdb: py work work; ");
	put_tool("gdb", GDB_TOOL, "work", "");
	gathers(python, "gdb py-spy: py train work; ");
	stop(pid);
	stop(python);
}

#define AUTO_LOAD "/usr/share/gdb/auto-load/usr/bin"

/* Returns false if this process has no right to mount. */
static bool
give_gdb_python(const char *name)
{
	char path[128], dir[128];

	if (unshare(CLONE_NEWNS) == -1 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
		mount("tmpfs", "/usr/share", "tmpfs", 0, NULL) == -1)
		return false;
	snprintf(path, sizeof(path), "%s/%s/", AUTO_LOAD, name);
	for (char *p = strchr(path + 11, '/'); p != NULL;
		p = strchr(p + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(p - path), path);
		mkdir(dir, 0755);
	}
	return true;
}

FORKED_TEST(stacks_gather, gdb_with_its_extension_for_python_replaces_py_spy)
{
	pid_t pid = start(sleeps, 0), python;

	prctl(PR_SET_NAME, "python3.11");
	python = start(sleeps, 0);
	put_tool("eu-stack", EU_TOOL, "work");
	put_tool("gdb", GDB_TOOL, "gdb_work", GDB_PY);
	if (give_gdb_python("python3.11-gdb.py")) {
		gathers(pid, "eu-stack -: work main; ");
		gathers(python, "eu-stack gdb: py work work main; ");
		put_tool("py-spy", PY_TOOL, "train");
		gathers(python, "eu-stack py-spy: py train work main; ");
		NEED(remove("py-spy") == 0);
		NEED(rename(AUTO_LOAD "/python3.11-gdb.py",
			     AUTO_LOAD "/perl") == 0);
		gathers(python, "eu-stack -: work main; ");
	}
	stop(pid);
	stop(python);
}

FORKED_TEST(stacks_gather, a_tool_without_descriptors_is_the_reason)
{
	pid_t pid = start(sleeps, 0);
	char want[160];

	put_tool("gdb", "exit 0");
	NEED(seccomp_refuse(SYS_pipe2, EMFILE) == 0);
	snprintf(want, sizeof(want), "/proc -:; %.100s/gdb: %s", folder,
		strerror(EMFILE));
	gathers(pid, want);
	stop(pid);
}

/* Without the number of CPUs two processes are looked at at once. */
FORKED_TEST(stacks_gather, without_time_the_rest_is_not_looked_at)
{
	const struct gather settings = { .patience = 0, .signals = -1 };
	struct stacks s = { 0 };
	pid_t pid[3];

	put_tool("eu-stack", "exec sleep 1000");
	setenv("PATH", folder, 1);
	for (uint32_t i = 0; i < 3; i++) {
		pid[i] = start(sleeps, 0);
		stacks_add_rank(&s, i, pid[i]);
	}
	NEED(seccomp_refuse(SYS_sched_getaffinity, EINVAL) == 0);
	EXPECT_EQ(gather_stacks(&s, &settings), 0);
	EXPECT_EQ(s.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT_STR(s.process[i].why,
			i < 2 ? "eu-stack had no answer" :
				"there was no time for it");
		EXPECT_EQ(s.process[i].by, STACKS_BY_PROC);
	}
	stacks_fini(&s);
	for (uint32_t i = 0; i < 3; i++)
		stop(pid[i]);
}

FORKED_TEST(stacks_gather, a_signal_ends_the_tools)
{
	pid_t pid = start(sleeps, 0);
	struct gather settings = { .patience = 600 * NS_PER_S };
	struct stacks s = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	settings.signals = signalfd(-1, &set, SFD_CLOEXEC);
	NEED(settings.signals != -1);
	put_tool("eu-stack", "kill -TERM %d; exec sleep 1000", (int)getpid());
	setenv("PATH", folder, 1);
	stacks_add_rank(&s, 0, pid);
	EXPECT_EQ(gather_stacks(&s, &settings), SIGTERM);
	NEED(s.count == 1);
	EXPECT_STR(s.process[0].why, "eu-stack had no answer");
	stacks_fini(&s);
	close(settings.signals);
	stop(pid);
}

/* --- the process itself --------------------------------------------------- */

static int file;
static const char *answer;

static void
on_urgent(int sig)
{
	(void)sig;
	if (answer[0] != '\0')
		NEED(write(file, answer, strlen(answer)) ==
			(ssize_t)strlen(answer));
}

#define HANDLER_FRAME "  File \"a.py\", line 4 in train\n"

static const struct answer {
	const char *name;   /* of the file in memory */
	const char *text;   /* that the handler writes */
	const char *python; /* the innermost function that is read; NULL */
} answers[] = {
	{ "xrun-stacks", "Stack:\n" HANDLER_FRAME, "train" },
	/* a text that does not end is read as far as its last line */
	{ "xrun-stacks", HANDLER_FRAME "  File \"b.py\"", "train" },
	{ "xrun-stacks", "no frames\n", NULL },
	{ "xrun-stacks", "", NULL },
	{ "xrun-stackz", HANDLER_FRAME, NULL },
	{ "xrun-stacks-more", HANDLER_FRAME, NULL },
};

static void
answers_at_sigurg(int row)
{
	const struct sigaction act = { .sa_handler = on_urgent };

	file = memfd_create(answers[row].name, MFD_CLOEXEC);
	answer = answers[row].text;
	NEED(write(file, "  File \"z.py\", line 1 in before\n", 32) == 32);
	NEED(sigaction(SIGURG, &act, NULL) == 0);
	prctl(PR_SET_NAME, "has_handler");
	sleeps(0);
}

/* Waits until @pid has its handler. */
static void
await_handler(pid_t pid)
{
	struct thread t = { .tid = pid };

	while (threads_state(pid, &t) && strcmp(t.comm, "has_handler") != 0)
		poll(NULL, 0, 1);
}

FORKED_TEST(stacks_gather, a_process_tells_its_functions_of_python)
{
	struct stacks s;
	struct process *p;
	pid_t pid;

	for (int i = 0; i < (int)(sizeof(answers) / sizeof(answers[0])); i++) {
		pid = start(answers_at_sigurg, i);
		await_handler(pid);
		s = (struct stacks){ 0 };
		p = stacks_add_process(&s, 0, pid);
		handler_ask(&s);
		EXPECT_EQ(p->python_by != NULL, answers[i].python != NULL);
		if (answers[i].python != NULL && p->python_by != NULL) {
			EXPECT_STR(p->python_by, "faulthandler");
			EXPECT_EQ(p->thread[0].python.count, 1);
			EXPECT_STR(p->thread[0].python.at[0].function,
				answers[i].python);
		}
		stacks_fini(&s);
		stop(pid);
	}
}

/* A process of which the functions are known, or that is stopped, or that has ended. */
FORKED_TEST(stacks_gather, a_process_is_not_asked_in_vain)
{
	struct stacks s = { 0 };
	struct process *p;
	pid_t pid = start(answers_at_sigurg, 0);

	await_handler(pid);
	p = stacks_add_process(&s, 0, pid);
	p->stopped = true;
	handler_ask(&s);
	EXPECT(p->python_by == NULL);
	p->stopped = false;
	p->python_by = "py-spy";
	handler_ask(&s);
	EXPECT_STR(p->python_by, "py-spy");
	EXPECT_EQ(p->threads, 0);
	p->python_by = NULL;
	NEED(seccomp_refuse(SYS_tgkill, EPERM) == 0);
	handler_ask(&s);
	EXPECT(p->python_by == NULL);
	EXPECT_EQ(p->threads, 0);
	stop(pid);
	handler_ask(&s);
	EXPECT(p->python_by == NULL);
	stacks_fini(&s);
}
