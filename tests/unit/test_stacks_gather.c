/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_gather.c - the tools that are asked about the processes of ranks. */
#include <poll.h>

#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "launcher/stacks/gather.h"
#include "launcher/stacks/tool.h"
#include "tests/unit/folder.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/stacks_child.h"

TestSuite(stacks_gather, .init = folder_make, .fini = folder_remove);

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

/* The folder from which gdb loads extensions; NULL: that of this machine. */
static const char *auto_load;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

DIR *
__wrap_opendir(const char *path)
{
	if (auto_load != NULL &&
		strcmp(path, "/usr/share/gdb/auto-load/usr/bin") == 0)
		return __real_opendir(auto_load);
	return __real_opendir(path);
}

FORKED_TEST(stacks_gather, gdb_with_its_extension_for_python_replaces_py_spy)
{
	pid_t pid = start(sleeps, 0), python;
	int fds;

	prctl(PR_SET_NAME, "python3.11");
	python = start(sleeps, 0);
	put_tool("eu-stack", EU_TOOL, "work");
	put_tool("gdb", GDB_TOOL, "gdb_work", GDB_PY);
	auto_load = "none";
	gathers(python, "eu-stack -: work main; ");
	auto_load = "auto";
	NEED(mkdir(auto_load, 0700) == 0);
	fds = folder_entries("/proc/self/fd");
	gathers(python, "eu-stack -: work main; ");
	folder_write("auto/python3.11-gdb.py", "", 0600);
	folder_write("auto/pytho", "", 0600);
	folder_write("auto/zz", "", 0600);
	gathers(pid, "eu-stack -: work main; ");
	gathers(python, "eu-stack gdb: py work work main; ");
	EXPECT_EQ(folder_entries("/proc/self/fd"), fds);
	put_tool("gdb", GDB_TOOL, "gdb_work", "");
	gathers(python, "eu-stack -: work main; ");
	put_tool("py-spy", PY_TOOL, "train");
	gathers(python, "eu-stack py-spy: py train work main; ");
	NEED(remove("py-spy") == 0);
	put_tool("gdb", GDB_TOOL, "gdb_work", GDB_PY);
	NEED(rename("auto/python3.11-gdb.py", "auto/perl") == 0);
	gathers(python, "eu-stack -: work main; ");
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

/* Gathers the stacks of @pid till a tool sends SIGTERM. */
static void
ends_by_signal(pid_t pid, int signals, const char *why)
{
	const struct gather settings = { .patience = 600 * NS_PER_S,
		.signals = signals };
	struct stacks s = { 0 };

	stacks_add_rank(&s, 0, pid);
	EXPECT_EQ(gather_stacks(&s, &settings), SIGTERM);
	NEED(s.count == 1);
	EXPECT_STR(s.process[0].why, why);
	EXPECT_EQ(s.process[0].by, STACKS_BY_PROC);
	stacks_fini(&s);
}

FORKED_TEST(stacks_gather, a_signal_ends_the_tools)
{
	pid_t pid = start(sleeps, 0), python;
	sigset_t set;
	int signals;

	prctl(PR_SET_NAME, "python3.11");
	python = start(sleeps, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	NEED(signals != -1);
	setenv("PATH", folder, 1);
	put_tool("eu-stack", "kill -TERM %d; exec sleep 1000", (int)getpid());
	ends_by_signal(pid, signals, "eu-stack had no answer");
	/* That py-spy had none is not why there are no functions of C. */
	put_tool("eu-stack", "echo no");
	put_tool("py-spy", "kill -TERM %d; exec sleep 1000", (int)getpid());
	ends_by_signal(python, signals, "eu-stack: no");
	close(signals);
	stop(pid);
	stop(python);
}
