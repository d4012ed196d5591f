/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stdio_thread.c - what the thread does that writes stdout by blocks
 * (worker/job/stdio_block.c): it is a real one, and so is stdout, which is a pipe of the
 * test. The clock of the agent stands still. While the test has the lock of stdout, block
 * mode cannot end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio_ext.h>
#include <time.h>

#include <sys/stat.h>

#include "tests/unit/forked.h"
#include "worker/job/stdio_block.h"
#include "worker/job/stdio_hook.h"
#include "worker/job/stdio_stack.h"

TestSuite(stdio_thread, .timeout = 60);

#define LINE_BUF   0x200 /* of FILE._flags */
#define CALLS_MAX  (1 << 20)
#define BUFFER     4096
#define BUSY_CALLS 1000 /* in a tick: lines are not rare */

/* --- what it stands on --------------------------------------------------------------- */

int32_t stdio_hook_calls, stdio_hook_armed;

static pthread_t thread;
static unsigned created;
static void (*before_fork)(void), (*after_fork)(void), (*in_child)(void);
static int exists; /* so often the thread is known still */
static long asked_for;

static int
own_clock(clockid_t id, struct timespec *t)
{
	(void)id;
	*t = (struct timespec){ 1000, 0 };
	return 0;
}

static int
own_create(pthread_t *made, const pthread_attr_t *attr, void *(*run)(void *),
	void *arg)
{
	(void)made;
	(void)attr;
	created++;
	return pthread_create(&thread, NULL, run, arg);
}

static int
own_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
	void *object)
{
	(void)object;
	before_fork = before;
	after_fork = parent;
	in_child = child;
	return 0;
}

void *
stdio_hook_find(const char *name)
{
	if (strcmp(name, "clock_gettime") == 0)
		return (void *)own_clock;
	if (strcmp(name, "pthread_create") == 0)
		return (void *)own_create;
	if (strcmp(name, "__register_atfork") == 0)
		return (void *)own_atfork;
	return dlsym(RTLD_DEFAULT, name);
}

bool
stdio_hook_imports(const char *name)
{
	(void)name;
	return false;
}

void
stdio_stack_give(void)
{
}

bool
stdio_stack_thread_exists(long id)
{
	asked_for = id;
	return exists-- > 0;
}

/* --- stdout ------------------------------------------------------------------------------ */

static int out[2]; /* the pipe */
static char buffer[BUFFER], got[BUFFER];

/* Standard output is @fd, and something has been written to it. */
static void
use_stdout(int fd, int mode)
{
	struct stat st;

	alarm(20);
	NEED(dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	close(fd);
	NEED(setvbuf(stdout, buffer, mode, sizeof(buffer)) == 0);
	NEED(fputs("begin\n", stdout) >= 0);
	fflush(stdout);
	NEED(fstat(STDOUT_FILENO, &st) == 0);
	stdio_block_allow(st.st_dev, st.st_ino);
	stdio_block_check(true);
}

static void
have_stdout(int mode)
{
	NEED(pipe2(out, O_CLOEXEC) == 0);
	use_stdout(out[1], mode);
	NEED(read(out[0], got, sizeof(got)) == 6);
}

/* A thread begins; what it finds is known when this returns. */
static void
start(void)
{
	unsigned before = created;

	stdio_block_check(true);
	NEED(created == before + 1);
}

/* Block mode lasts, and the test has the lock of stdout. */
static void
hold(void)
{
	for (;;) {
		start();
		while (__atomic_load_n(&stdio_hook_armed, __ATOMIC_SEQ_CST) ==
			0)
			sched_yield();
		flockfile(stdout);
		if (__atomic_load_n(&stdio_hook_armed, __ATOMIC_SEQ_CST) != 0)
			return;
		funlockfile(stdout);
		pthread_join(thread, NULL);
	}
}

static void
join(void)
{
	NEED(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(stdio_hook_armed, 0);
}

static void
expect_read(const char *want)
{
	size_t len = 0, all = strlen(want);
	ssize_t n;

	while (len < all && (n = read(out[0], got + len, all - len)) > 0)
		len += (size_t)n;
	got[len] = '\0';
	EXPECT_STR(got, want);
}

/* Nothing is to be read. */
static void
expect_nothing(void)
{
	NEED(fcntl(out[0], F_SETFL, O_NONBLOCK) == 0);
	EXPECT_EQ(read(out[0], got, 1), -1);
	NEED(fcntl(out[0], F_SETFL, 0) == 0);
}

static void
expect_lines_again(void)
{
	EXPECT((stdout->_flags & LINE_BUF) != 0);
	EXPECT(stdout->_IO_write_end == stdout->_IO_write_base);
}

/* --- block mode ------------------------------------------------------------------------------ */

FORKED_TEST(stdio_thread, while_it_lasts_whole_lines_are_written_in_time)
{
	have_stdout(_IOLBF);
	hold();
	EXPECT((stdout->_flags & LINE_BUF) == 0);
	EXPECT(stdout->_IO_write_end == buffer + BUFFER);
	fputs("one\ntwo\npart", stdout);
	expect_nothing();
	funlockfile(stdout);
	for (int n = 0; n < 8;) { /* as long as there are calls */
		stdio_hook_calls = INT32_MAX - BUSY_CALLS;
		n += fcntl(out[0], F_SETFL, O_NONBLOCK) == 0 &&
				read(out[0], got + n, 1) == 1 ?
			1 :
			0;
		got[n] = '\0';
		sched_yield();
	}
	EXPECT_STR(got, "one\ntwo\n");
	stdio_hook_calls = INT32_MAX - 15; /* few */
	join();
	expect_lines_again();
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
	expect_nothing();
	fputs("!\nx\n", stdout);
	expect_read("part!\nx\n");
}

FORKED_TEST(stdio_thread, so_many_calls_as_the_buffer_has_bytes_need_no_tick)
{
	have_stdout(_IOLBF);
	hold();
	fputs("one\n", stdout);
	/* Stdio would have written them. The thread stays, and writes nothing. */
	stdio_hook_calls = INT32_MAX - BUFFER;
	while (stdio_hook_calls != INT32_MAX)
		sched_yield();
	expect_nothing();
	funlockfile(stdout);
	stdio_block_end();
	EXPECT_EQ(stdio_hook_armed, 0);
	join();
	expect_read("one\n");
}

FORKED_TEST(stdio_thread, who_asks_for_its_end_has_all_lines_written)
{
	int32_t calls = STDIO_BLOCK_CALLS;

	have_stdout(_IOLBF);
	for (int i = 0; i < 20; i++) {
		hold();
		fputs("a line\n", stdout);
		expect_nothing();
		funlockfile(stdout);
		stdio_block_end();
		EXPECT_EQ(stdio_hook_armed, 0);
		expect_lines_again();
		expect_read("a line\n");
		join();
		/* The next time it is begun later; unless it ended by itself. */
		EXPECT(stdio_hook_calls == STDIO_BLOCK_CALLS ||
			stdio_hook_calls ==
				(calls > CALLS_MAX / 2 ? CALLS_MAX :
							 2 * calls));
		calls = stdio_hook_calls;
	}
}

FORKED_TEST(stdio_thread, who_has_the_lock_asks_in_vain)
{
	have_stdout(_IOLBF);
	hold();
	fputs("a line\npart", stdout);
	stdio_block_end();
	EXPECT_EQ(stdio_hook_armed, 1);
	expect_nothing();
	funlockfile(stdout);
	join();
	EXPECT_EQ(stdio_hook_calls, CALLS_MAX);
	expect_lines_again();
	expect_read("a line\n");
	expect_nothing();
}

FORKED_TEST(stdio_thread, stdout_that_is_not_written_by_line_is_left)
{
	have_stdout(_IOFBF);
	start();
	join();
	EXPECT((stdout->_flags & LINE_BUF) == 0);
	setvbuf(stdout, buffer, _IOLBF, sizeof(buffer));
	__fsetlocking(stdout, FSETLOCKING_BYCALLER);
	start();
	join();
	__fsetlocking(stdout, FSETLOCKING_INTERNAL);
	hold();
	funlockfile(stdout);
	stdio_block_end();
	join();
	NEED(dup2(STDERR_FILENO, STDOUT_FILENO) == STDOUT_FILENO);
	start();
	join();
	expect_lines_again();
}

FORKED_TEST(stdio_thread, the_end_of_the_thread_can_be_awaited)
{
	have_stdout(_IOLBF);
	stdio_block_end_thread(); /* there is none */
	EXPECT_EQ(asked_for, 0);
	hold();
	fputs("a line\n", stdout);
	funlockfile(stdout);
	exists = 3;
	stdio_block_end_thread();
	EXPECT_EQ(stdio_hook_armed, 0);
	EXPECT_EQ(exists, -1);
	EXPECT(asked_for > 0 && asked_for != getpid());
	expect_read("a line\n");
	join();
	asked_for = 0;
	stdio_block_end_thread(); /* it is known to be gone */
	EXPECT_EQ(asked_for, 0);
}

FORKED_TEST(stdio_thread, what_is_forbidden_ends_and_does_not_begin_again)
{
	have_stdout(_IOLBF);
	hold();
	fputs("a line\n", stdout);
	funlockfile(stdout);
	stdio_block_forbid();
	EXPECT_EQ(stdio_hook_armed, 0);
	expect_read("a line\n");
	join();
	EXPECT_EQ(stdio_hook_calls, INT32_MAX);
	stdio_block_check(true);
	stdio_block_check(true);
	EXPECT_EQ(stdio_hook_calls, INT32_MAX);
}

/* --- signals -------------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void
handle(int sig)
{
	handled = sig;
}

FORKED_TEST(stdio_thread, signals_that_end_the_process_are_handled_meanwhile)
{
	static const int fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP,
		SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGPIPE, SIGTERM,
		SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
		SIGSYS };
	struct sigaction now;

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i],
			&(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = handle }, NULL);
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	have_stdout(_IOLBF);
	hold();
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
		NEED(sigaction(fatal[i], NULL, &now) == 0);
		EXPECT(now.sa_handler != SIG_DFL);
		EXPECT((now.sa_flags &
			       (SA_SIGINFO | SA_RESTART | SA_ONSTACK)) ==
			(SA_SIGINFO | SA_RESTART | SA_ONSTACK));
		for (int sig = 1; sig < 32; sig++)
			EXPECT_EQ(sigismember(&now.sa_mask, sig),
				sig != SIGKILL && sig != SIGSTOP);
	}
	NEED(sigaction(SIGUSR2, NULL, &now) == 0);
	EXPECT(now.sa_handler == handle);
	NEED(sigaction(SIGCHLD, NULL, &now) == 0);
	EXPECT(now.sa_handler == SIG_DFL);
	raise(SIGUSR2);
	EXPECT_EQ(handled, SIGUSR2);
	EXPECT_EQ(stdio_hook_armed, 1);
	funlockfile(stdout);
	stdio_block_end();
	join();
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
		NEED(sigaction(fatal[i], NULL, &now) == 0);
		EXPECT(now.sa_handler == SIG_DFL);
	}
	NEED(sigaction(SIGUSR2, NULL, &now) == 0);
	EXPECT(now.sa_handler == handle);
}

/* Runs @body in a process that is to end by SIGTERM, and reads all that it wrote. */
static void
expect_killed(void (*body)(void), const char *want)
{
	int status = -1, ends[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		sigaction(SIGTERM, &(struct sigaction){ .sa_handler = SIG_DFL },
			NULL);
		use_stdout(ends[1], _IOLBF);
		body();
		_exit(70);
	}
	close(ends[1]);
	while ((n = read(ends[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	got[len] = '\0';
	close(ends[0]);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	EXPECT_STR(got, want);
}

/* By another process: the lines are written by the thread. */
static void
be_killed(void)
{
	hold();
	fputs("one\ntwo\n", stdout);
	funlockfile(stdout);
	kill(getpid(), SIGTERM);
	for (;;)
		pause();
}

/* By itself, in the midst of stdio: there is nobody else. */
static void
kill_itself(void)
{
	hold();
	fputs("one\npart", stdout);
	raise(SIGTERM);
}

/* By another, in the midst of stdio: it goes on until it has let go of the lock. */
static void
be_killed_in_stdio(void)
{
	hold();
	fputs("one\n", stdout);
	kill(getpid(), SIGTERM);
	fputs("two\npart", stdout);
	funlockfile(stdout);
	for (;;)
		pause();
}

FORKED_TEST(stdio_thread, a_process_that_is_killed_has_written_its_lines)
{
	expect_killed(be_killed, "begin\none\ntwo\n");
	expect_killed(kill_itself, "begin\none\npart");
	expect_killed(be_killed_in_stdio, "begin\none\ntwo\n");
}

/* --- forks ---------------------------------------------------------------------------------------- */

FORKED_TEST(stdio_thread, it_does_not_begin_while_the_program_forks)
{
	have_stdout(_IOLBF);
	hold();
	fputs("a line\n", stdout);
	funlockfile(stdout);
	before_fork();
	EXPECT_EQ(stdio_hook_armed, 0);
	expect_read("a line\n");
	join();
	start();
	join();
	expect_lines_again();
	before_fork();
	after_fork();
	start();
	join();
	expect_lines_again();
	after_fork();
	hold();
	funlockfile(stdout);
	stdio_block_end();
	join();
}

FORKED_TEST(stdio_thread, a_child_has_no_lines_of_its_parent)
{
	struct sigaction now;
	int status = -1;
	pid_t pid;

	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	have_stdout(_IOLBF);
	hold();
	fputs("the parent's\n", stdout);
	pid = fork();
	if (pid == 0) {
		in_child();
		EXPECT_EQ(stdio_hook_armed, 0);
		EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
		EXPECT(stdout->_IO_write_ptr == stdout->_IO_write_base);
		expect_lines_again();
		NEED(sigaction(SIGTERM, NULL, &now) == 0);
		EXPECT(now.sa_handler == SIG_DFL);
		/* fork() has let go of the lock. */
		fputs("the child's\n", stdout);
		hold(); /* it has a thread of its own */
		fputs("more\n", stdout);
		funlockfile(stdout);
		stdio_block_end();
		join();
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	expect_read("the child's\nmore\n");
	funlockfile(stdout);
	stdio_block_end();
	join();
	expect_read("the parent's\n");
}
