/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forked.h - tests that need a process of their own.
 *
 * FORKED_TEST(suite, name) { ... } is a Criterion test whose body runs in a
 * fork: it may take the low descriptors, block signals, install filters and
 * become a subreaper without touching what Criterion needs. EXPECT() inside it
 * notes what is wrong and goes on; the notes become the message of the test.
 * A body that leaves a child behind fails, and so does one that takes longer
 * than half a minute.
 */
#ifndef TESTS_UNIT_FORKED_H
#define TESTS_UNIT_FORKED_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#define FORKED_PATIENCE_S 120 /* ends what hangs; a loaded machine is slow */
#define FORKED_FD_MIN     300 /* out of the way of the low descriptors */

static int forked_report = -1;
static unsigned forked_wrong;

static inline void __attribute__((format(printf, 2, 3)))
forked_note(int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n = snprintf(text, sizeof(text), "line %d: ", line);

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	if (forked_wrong++ < 20)
		dprintf(forked_report, "%s\n", text);
}

#define EXPECT(x) \
	do { \
		if (!(x)) \
			forked_note(__LINE__, "%s", #x); \
	} while (0)

#define EXPECT_EQ(a, b) \
	do { \
		long long a_ = (long long)(a), b_ = (long long)(b); \
		if (a_ != b_) \
			forked_note(__LINE__, "%s is %lld, not %s = %lld", #a, \
				a_, #b, b_); \
	} while (0)

#define EXPECT_STR(a, b) \
	do { \
		const char *a_ = (a), *b_ = (b); \
		if (strcmp(a_, b_) != 0) \
			forked_note(__LINE__, "%s is '%s', not '%s'", #a, a_, \
				b_); \
	} while (0)

/* What the rest of the body cannot do without. */
#define NEED(x) \
	do { \
		if (!(x)) { \
			forked_note(__LINE__, "%s: %s", #x, strerror(errno)); \
			_exit(1); \
		} \
	} while (0)

/* No child is left, dead or alive. */
static inline bool
forked_childless(void)
{
	siginfo_t info = { 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ==
		-1 &&
		errno == ECHILD;
}

static inline void
forked_body(void (*body)(void), int report)
{
	forked_report = fcntl(report, F_DUPFD_CLOEXEC, FORKED_FD_MIN);
	alarm(FORKED_PATIENCE_S);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	body();
	EXPECT(forked_childless());
	_exit(forked_wrong > 0);
}

/* Nothing of a body that was killed shall stay. */
static inline void
forked_sweep(void)
{
	char path[64];
	int pid, met;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	do {
		met = 0;
		f = fopen(path, "re");
		while (f != NULL && fscanf(f, "%d", &pid) == 1) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			met++;
		}
		if (f != NULL)
			fclose(f);
	} while (met > 0);
}

static inline void
forked_run(void (*body)(void))
{
	char text[8192] = "";
	int report[2], status;
	ssize_t n;
	pid_t pid;

	/* Read when all is over: a page is enough, and whoever was left behind
	 * cannot make us wait for the end of the pipe. */
	cr_assert_eq(pipe2(report, O_CLOEXEC | O_NONBLOCK), 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0)
		forked_body(body, report[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	forked_sweep();
	n = read(report[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(report[0]);
	close(report[1]);
	cr_assert(WIFEXITED(status), "%sended by signal %d", text,
		WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "%s", text);
}

#define FORKED_TEST(suite, name) \
	static void forked_##name(void); \
	Test(suite, name) \
	{ \
		forked_run(forked_##name); \
	} \
	static void forked_##name(void)

#endif /* TESTS_UNIT_FORKED_H */
