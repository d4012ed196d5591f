/* SPDX-License-Identifier: Apache-2.0 */
/* test_stdio_block.c - when the preloaded agent begins to write stdout by blocks
 * (worker/job/stdio_block.c). The test has the clock, and what libc has. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "worker/job/stdio_block.h"
#include "worker/job/stdio_hook.h"
#include "worker/job/stdio_stack.h"

TestSuite(stdio_block, .timeout = 60);

/* --- what it stands on ------------------------------------------------------- */

int32_t stdio_hook_calls, stdio_hook_armed;

static int64_t now = 1;
static const char *missing; /* a function that libc lacks */
static bool is_unlocked;    /* the program changes stdout without its lock */
static int atfork_fails, create_fails;
static unsigned given, created, registered;
static size_t stack;
static int detached;
static sigset_t mask; /* of the thread */
static void *(*thread_runs)(void *);

static int
own_clock(clockid_t id, struct timespec *t)
{
	EXPECT_EQ(id, CLOCK_MONOTONIC);
	t->tv_sec = now / 1000000000;
	t->tv_nsec = now % 1000000000;
	return 0;
}

static int
own_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
	void *arg)
{
	(void)thread;
	(void)arg;
	thread_runs = run;
	created++;
	pthread_attr_getstacksize(attr, &stack);
	pthread_attr_getdetachstate(attr, &detached);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return create_fails;
}

static int
own_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
	void *object)
{
	EXPECT(before != NULL && parent != NULL && child != NULL);
	EXPECT(object == NULL);
	registered++;
	return atfork_fails;
}

void *
stdio_hook_find(const char *name)
{
	if (missing != NULL && strcmp(name, missing) == 0)
		return NULL;
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
	EXPECT_STR(name, "__overflow");
	return is_unlocked;
}

void
stdio_stack_give(void)
{
	given++;
}

bool
stdio_stack_thread_exists(long thread)
{
	(void)thread;
	return false;
}

/* --- two checks -------------------------------------------------------------- */

/* In a process of its own: STDIO_BLOCK_CALLS calls, and as many @ns later. */
static void
check_twice(int64_t ns, bool is_stdout)
{
	stdio_block_allow(1, 2);
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
	stdio_hook_calls = 0;
	stdio_block_check(true);
	EXPECT_EQ(created, 0);
	now += ns;
	stdio_block_check(is_stdout);
}

/* No check follows, or it does nothing. */
static void
expect_never(void)
{
	EXPECT_EQ(stdio_hook_calls, INT32_MAX);
	created = given = 0;
	missing = NULL;
	is_unlocked = false;
	atfork_fails = create_fails = 0;
	for (int i = 0; i < 3; i++)
		stdio_block_check(true);
	EXPECT_EQ(created, 0);
	EXPECT_EQ(given, 0);
	EXPECT_EQ(stdio_hook_calls, INT32_MAX);
}

FORKED_TEST(stdio_block, a_thread_is_made_if_calls_come_fast)
{
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	check_twice(STDIO_BLOCK_NS, true);
	EXPECT_EQ(created, 1);
	EXPECT_EQ(given, 1);
	EXPECT_EQ(registered, 1);
	EXPECT_EQ(stack, 256 << 10);
	EXPECT_EQ(detached, PTHREAD_CREATE_DETACHED);
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != 32 && sig != 33)
			EXPECT_EQ(sigismember(&mask, sig), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 65; sig++)
		EXPECT_EQ(sigismember(&after, sig), sigismember(&before, sig));
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
	/* There is one. */
	stdio_block_check(true);
	EXPECT_EQ(created, 1);
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
}

/* The first finds that stdout is no longer what was allowed, and ends. */
FORKED_TEST(stdio_block, another_is_made_when_it_has_ended)
{
	check_twice(0, true);
	NEED(created == 1);
	thread_runs(NULL);
	EXPECT_EQ(stdio_hook_armed, 0);
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
	stdio_block_check(true);
	EXPECT_EQ(created, 2);
	EXPECT_EQ(given, 2);
	EXPECT_EQ(registered, 1);
}

FORKED_TEST(stdio_block, none_is_made_if_calls_come_slowly)
{
	check_twice(STDIO_BLOCK_NS + 1, true);
	EXPECT_EQ(created, 0);
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
	now += STDIO_BLOCK_NS;
	stdio_block_check(true);
	EXPECT_EQ(created, 1);
}

FORKED_TEST(stdio_block, none_is_made_for_another_stream)
{
	check_twice(0, false);
	EXPECT_EQ(created, 0);
	EXPECT_EQ(stdio_hook_calls, STDIO_BLOCK_CALLS);
	stdio_block_check(true);
	EXPECT_EQ(created, 1);
}

FORKED_TEST(stdio_block, none_is_made_if_it_was_not_allowed)
{
	stdio_block_check(true);
	expect_never();
}

FORKED_TEST(stdio_block, none_is_made_once_it_is_forbidden)
{
	stdio_block_allow(1, 2);
	stdio_block_forbid();
	stdio_block_check(true);
	expect_never();
}

FORKED_TEST(stdio_block, none_is_made_while_block_mode_lasts)
{
	stdio_block_allow(1, 2);
	stdio_hook_armed = 1;
	for (int i = 0; i < 3; i++)
		stdio_block_check(true);
	EXPECT_EQ(created, 0);
	EXPECT_EQ(stdio_hook_calls, INT32_MAX);
	stdio_hook_armed = 0;
}

/* --- what may be missing ----------------------------------------------------- */

/* Runs @test in a process of its own. */
static void
alone(void (*test)(void), const char *what)
{
	pid_t pid = fork();
	int status = -1;

	NEED(pid != -1);
	if (pid == 0) {
		alarm(30);
		test();
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		forked_note(__LINE__, "%s: %x", what, (unsigned)status);
}

static void
fail_to_begin(void)
{
	check_twice(0, true);
	EXPECT_EQ(given, 0);
	EXPECT_EQ(created, 0);
	expect_never();
}

FORKED_TEST(stdio_block, none_is_made_with_a_libc_that_lacks_a_function)
{
	static const char *const names[] = { "gnu_get_libc_version",
		"ftrylockfile", "funlockfile", "pthread_create",
		"pthread_attr_init", "pthread_attr_setstacksize",
		"pthread_attr_setdetachstate", "sigaction",
		"__register_atfork" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		missing = names[i];
		alone(fail_to_begin, missing);
	}
}

/* Without a clock nothing is counted from the first check on. */
FORKED_TEST(stdio_block, none_is_made_without_a_clock)
{
	missing = "clock_gettime";
	stdio_block_allow(1, 2);
	stdio_block_check(true);
	missing = NULL;
	stdio_block_check(true);
	stdio_block_check(true);
	expect_never();
}

FORKED_TEST(stdio_block, none_is_made_where_stdout_changes_without_its_lock)
{
	is_unlocked = true;
	fail_to_begin();
}

FORKED_TEST(stdio_block, none_is_made_if_a_fork_would_not_be_noticed)
{
	atfork_fails = ENOMEM;
	fail_to_begin();
}

FORKED_TEST(stdio_block, if_none_can_be_made_it_is_not_tried_again)
{
	create_fails = EAGAIN;
	check_twice(0, true);
	EXPECT_EQ(created, 1);
	expect_never();
}

FORKED_TEST(stdio_block, none_is_made_after_the_program_has_confined_itself)
{
	stdio_block_allow(1, 2);
	stdio_block_check(true);
	NEED(seccomp_refuse(SYS_sync, EPERM) == 0);
	stdio_block_check(true);
	EXPECT_EQ(given, 0);
	EXPECT_EQ(created, 0);
	expect_never();
}
