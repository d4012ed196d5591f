/* SPDX-License-Identifier: Apache-2.0 */
/* test_detach.c - the xrun that a person called with -d, and its child. */
#include <string.h>

#include "launcher/cmd/detach.h"
#include "launcher/job/detach.h"
#include "launcher/job/outcome.h"
#include "tests/unit/folder.h"
#include "tests/unit/sys_hook.h"

#define LONG 10000 /* bytes: more than one read has */

int __real_isatty(int fd);
int __wrap_isatty(int fd);

struct detach *__real_detach_new(void);
struct detach *__wrap_detach_new(void);

pid_t __real_fork(void);
pid_t __wrap_fork(void);

static bool tty; /* standard error is one */
static bool no_page;
static bool no_child; /* fork() fails */

/* glibc 2.41 blocks all signals around clone(2), so sys_trap() cannot refuse it. */
pid_t
__wrap_fork(void)
{
	if (!no_child)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

int
__wrap_isatty(int fd)
{
	return fd == STDERR_FILENO ? tty : __real_isatty(fd);
}

struct detach *
__wrap_detach_new(void)
{
	if (!no_page)
		return __real_detach_new();
	errno = ENOMEM;
	return NULL;
}

TestSuite(detach, .init = folder_make, .fini = folder_remove);

/* What the child does. */
enum act {
	EXITS,
	IS_KILLED,
	RUNS,
	RUNS_ONE,
	SAYS_MUCH,
	LOOKS,
};

/* Nothing of the caller's is left but standard error. */
static bool
is_alone(const struct detach *d)
{
	for (int fd = 0; fd < 1024; fd++)
		if ((fcntl(fd, F_GETFD) != -1) != (fd == STDERR_FILENO))
			return false;
	return getsid(0) == getpid() && d->caller == getppid() &&
		d->runs == 0 && d->words == -1 && d->hold == -1 &&
		d->death == -1;
}

static void __attribute__((noreturn))
act(enum act what, struct detach *d)
{
	char text[LONG];

	memset(text, 'x', sizeof(text));
	switch (what) {
	case IS_KILLED:
		kill(getpid(), SIGKILL);
		break;
	case RUNS:
	case RUNS_ONE:
		snprintf(d->job, sizeof(d->job), "k7m2");
		snprintf(d->where, sizeof(d->where), "%.4000s/logs", folder);
		d->ranks = what == RUNS ? 2 : 1;
		d->runs = 1;
		_exit(9);
	case SAYS_MUCH:
		if (write(STDERR_FILENO, text, LONG) != LONG)
			_exit(1);
		break;
	case LOOKS:
		_exit(is_alone(d) ? 0 : 4);
	case EXITS:
		dprintf(STDERR_FILENO, "no\n");
		break;
	}
	_exit(3);
}

static void
turn_to(int fd, const char *path)
{
	int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	NEED(file != -1 && dup2(file, fd) == fd);
	close(file);
}

/* The exit status, with what was said in the files out and err. */
static int
call(enum act what, bool quiet)
{
	struct run_options opt = { .quiet = quiet };
	struct detach *d = NULL;
	int status = -1;

	turn_to(STDOUT_FILENO, "out");
	turn_to(STDERR_FILENO, "err");
	if (!detach_call(&opt, &d, &status))
		act(what, d);
	EXPECT(d == NULL);
	return status;
}

static void
expect_file(int line, const char *path, const char *want)
{
	char got[2 * LONG] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	NEED(fd != -1);
	NEED(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	if (strcmp(got, want) != 0)
		forked_note(line, "%s: '%.200s', not '%.200s'", path, got,
			want);
}

#define EXPECT_FILE(path, want) expect_file(__LINE__, path, want)

/* The child that went on without us. */
static void
reap(void)
{
	int status;

	NEED(wait(&status) > 0);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

FORKED_TEST(detach, the_child_has_standard_error_and_nothing_else)
{
	EXPECT_EQ(call(LOOKS, false), 0);
	EXPECT_FILE("err", "");
}

FORKED_TEST(detach, what_goes_wrong_is_said_and_returned)
{
	char much[LONG + 1] = "";

	EXPECT_EQ(call(EXITS, false), 3);
	EXPECT_FILE("out", "");
	EXPECT_FILE("err", "no\n");
	EXPECT_EQ(call(IS_KILLED, false), 128 + SIGKILL);
	EXPECT_FILE("err", "");
	EXPECT_EQ(call(SAYS_MUCH, false), 3);
	memset(much, 'x', LONG);
	EXPECT_FILE("err", much);
}

FORKED_TEST(detach, the_status_is_known_also_where_sigchld_is_ignored)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	NEED(sigaction(SIGCHLD, &ignore, NULL) == 0);
	EXPECT_EQ(call(EXITS, false), 3);
}

FORKED_TEST(detach, the_id_is_for_programs_and_more_for_a_person)
{
	setenv("HOME", folder, 1);
	EXPECT_EQ(call(RUNS, false), 0);
	EXPECT_FILE("out", "k7m2\n");
	EXPECT_FILE("err", "");
	reap();
	tty = true;
	EXPECT_EQ(call(RUNS, false), 0);
	EXPECT_FILE("out", "k7m2\n");
	EXPECT_FILE("err",
		"xrun: job k7m2: 2 ranks in the background, output in ~/logs; to end it: xrun stop k7m2\n");
	reap();
	EXPECT_EQ(call(RUNS_ONE, false), 0);
	EXPECT_FILE("err",
		"xrun: job k7m2: 1 rank in the background, output in ~/logs; to end it: xrun stop k7m2\n");
	reap();
	EXPECT_EQ(call(RUNS, true), 0);
	EXPECT_FILE("out", "k7m2\n");
	EXPECT_FILE("err", "");
	reap();
}

/* --- calls that fail -------------------------------------------------------- */

/* The @until-th call of @nr fails with @sys. In the child they are all done. */
static struct {
	int nr, sys;
	unsigned until;
	pid_t pid;
} refusal;

static long
refuse(int nr, const long arg[5])
{
	(void)arg;
	if (nr != refusal.nr || getpid() != refusal.pid || refusal.until == 0 ||
		--refusal.until > 0)
		return 0;
	return -refusal.sys;
}

static int
call_refused(enum act what, int nr, unsigned until, int sys)
{
	int status;

	refusal.nr = nr;
	refusal.sys = sys;
	refusal.until = until;
	refusal.pid = getpid();
	sys_hook = refuse;
	status = call(what, true);
	sys_hook = NULL;
	EXPECT_EQ(refusal.until, 0);
	return status;
}

FORKED_TEST(detach, an_interrupted_call_is_made_again)
{
	sys_trap(SYS_read);
	sys_trap(SYS_wait4);
	EXPECT_EQ(call_refused(EXITS, SYS_read, 1, EINTR), 3);
	EXPECT_FILE("err", "no\n");
	EXPECT_EQ(call_refused(EXITS, SYS_read, 2, EINTR), 3);
	EXPECT_FILE("err", "no\n");
	EXPECT_EQ(call_refused(EXITS, SYS_wait4, 1, EINTR), 3);
	/* Another error ends it. */
	EXPECT_EQ(call_refused(EXITS, SYS_read, 1, EIO), 3);
	EXPECT_FILE("err", "");
	EXPECT_EQ(call_refused(EXITS, SYS_wait4, 1, ECHILD), EXIT_XRUN);
	NEED(wait(NULL) > 0);
}

FORKED_TEST(detach, what_it_cannot_begin_with_is_said)
{
	sys_trap(SYS_pipe2);
	no_child = true;
	EXPECT_EQ(call(EXITS, true), EXIT_XRUN);
	no_child = false;
	EXPECT_FILE("err",
		"xrun: -d: fork: Resource temporarily unavailable\n");
	EXPECT_EQ(call_refused(EXITS, SYS_pipe2, 1, EMFILE), EXIT_XRUN);
	EXPECT_FILE("err", "xrun: -d: pipe: Too many open files\n");
	no_page = true;
	EXPECT_EQ(call(EXITS, false), EXIT_XRUN);
	EXPECT_FILE("err", "xrun: -d: pipe: Cannot allocate memory\n");
	EXPECT_FILE("out", "");
}

FORKED_TEST(detach, a_person_without_the_id_is_told_what_runs)
{
	struct run_options opt = { .quiet = true };
	struct detach *d = NULL;
	int status = -1, full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	setenv("HOME", folder, 1);
	turn_to(STDERR_FILENO, "err");
	NEED(full != -1 && dup2(full, STDOUT_FILENO) == STDOUT_FILENO);
	if (!detach_call(&opt, &d, &status))
		act(RUNS, d);
	EXPECT_EQ(status, EXIT_XRUN);
	EXPECT_FILE("err",
		"xrun: standard output: No space left on device\nxrun: job k7m2: 2 ranks in the background, output in ~/logs; to end it: xrun stop k7m2\n");
	reap();
	close(full);
}
