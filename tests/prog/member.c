/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.c - a program that is linked with libxrun, and does what it is told, word
 * by word:
 *
 *   burst N       progress 1 to N of 1000000, as fast as it can
 *   at N          progress N of 1000000
 *   beat N        N heartbeats
 *   pulse N       N heartbeats, 50 ms apart
 *   attach        is it the rank? says so
 *   detach        is it no more
 *   fork          what follows is done by a child, which the rank waits for
 *   exec          what follows is done by this program, executed anew
 *   on-stop       until it is told to stop it rests; says so
 *   report        xr_job_report_crashes()
 *   handle        a handler of its own for SIGSEGV: exit status 9
 *   outlive       one for SIGSEGV that goes on with the next word
 *   crash HOW     segv, call, fpe, ill, stack, kill, abort, or mess: abort with
 *                 a stack that cannot be walked
 *   thread HOW    the same in another thread
 *   threads HOW   the same in sixteen
 *   say TEXT      a line on stdout
 *   rest          until a signal ends it
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/job.h>

#include "tests/prog/prog.h"

static char **words; /* the next one */
static sigjmp_buf next_word;

static const char *
next(const char *what)
{
	if (*words == NULL)
		prog_die(0, "%s: what?", what);
	return *words++;
}

static void
progress(int64_t step)
{
	struct xr_progress p = {
		.size = sizeof(p),
		.step = step,
		.total = 1000000,
	};

	xr_job_progress(&p);
}

static void
attach(void)
{
	struct xr_error err = { 0 };
	enum xr_status status = xr_job_attach(&err);

	printf("%s%s%s\n", status == XR_OK ? "attached" : err.text,
		status == XR_OK ? "" : ": ",
		status == XR_OK ? "" : xr_status_name(status));
}

static void
in_child(void)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		return;
	waitpid(pid, &status, 0);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void
anew(char *self)
{
	words[-1] = self;
	fflush(stdout);
	execv("/proc/self/exe", words - 1);
	prog_die(0, "exec");
}

static volatile int told;

static void
on_stop(void *ctx)
{
	*(volatile int *)ctx = 1;
}

static void
rest_till_stop(void)
{
	xr_job_on_stop(on_stop, (void *)&told, NULL);
	printf("waiting\n");
	fflush(stdout);
	while (!xr_job_stopping())
		prog_pause_ms(5);
	printf("told %d\n", told);
}

/* What compilers cannot see through. */
static void *volatile nothing;
static volatile int zero, seven = 7;

__attribute__((noinline)) static int
deeper(volatile char *above)
{
	volatile char mine[4096];

	mine[0] = above[0];
	return seven == 7 ? deeper(mine) + mine[0] : 0;
}

/* Who walks up from here walks into nothing: this function's frame is found by
 * the register. */
__attribute__((noinline)) static void
mess(void)
{
#if defined(__x86_64__)
	__asm__ volatile("mov $8, %%rbp" ::: "memory");
#endif
	abort();
}

__attribute__((noinline)) static int
crash(const char *how)
{
	int (*call)(void) = (int (*)(void))nothing;

	if (strcmp(how, "segv") == 0)
		*(volatile int *)((char *)nothing + 16) = 1;
	else if (strcmp(how, "call") == 0)
		zero = call();
	else if (strcmp(how, "fpe") == 0)
		zero = seven / zero;
	else if (strcmp(how, "ill") == 0)
		__builtin_trap();
	else if (strcmp(how, "stack") == 0)
		zero = deeper((volatile char[1]){ 0 });
	else if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGBUS);
	else if (strcmp(how, "mess") == 0)
		mess();
	else if (strcmp(how, "abort") == 0)
		abort();
	return zero; /* no tail call: the frame stays */
}

static void
in_handler(int sig)
{
	printf("own handler: %d\n", sig);
	fflush(stdout);
	_exit(9);
}

static void
outlive(int sig)
{
	siglongjmp(next_word, sig);
}

static void
handle_faults(void (*handler)(int))
{
	const struct sigaction action = { .sa_handler = handler };

	sigaction(SIGSEGV, &action, NULL);
}

static void *
crash_there(void *how)
{
	zero = crash(how);
	return NULL;
}

static void
in_threads(const char *how, int count)
{
	pthread_t thread;

	for (int i = 0; i < count; i++)
		pthread_create(&thread, NULL, crash_there, (void *)how);
	pthread_join(thread, NULL);
}

static void
pulse(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		prog_pause_ms(50);
		xr_heartbeat();
	}
}

static void
many(const char *word)
{
	int64_t n = prog_num(word, next(word));

	if (strcmp(word, "at") == 0)
		progress(n);
	for (int64_t i = 1; i <= n && strcmp(word, "burst") == 0; i++)
		progress(i);
	for (int64_t i = 0; i < n && strcmp(word, "beat") == 0; i++)
		xr_heartbeat();
}

static void
perform(const char *word, char *self)
{
	if (strcmp(word, "attach") == 0)
		attach();
	else if (strcmp(word, "detach") == 0)
		xr_job_detach();
	else if (strcmp(word, "fork") == 0)
		in_child();
	else if (strcmp(word, "exec") == 0)
		anew(self);
	else if (strcmp(word, "on-stop") == 0)
		rest_till_stop();
	else if (strcmp(word, "report") == 0)
		xr_job_report_crashes(NULL);
	else if (strcmp(word, "handle") == 0)
		handle_faults(in_handler);
	else if (strcmp(word, "outlive") == 0)
		handle_faults(outlive);
	else if (strcmp(word, "crash") == 0)
		zero += crash(next(word));
	else if (strcmp(word, "thread") == 0)
		in_threads(next(word), 1);
	else if (strcmp(word, "threads") == 0)
		in_threads(next(word), 16);
	else if (strcmp(word, "pulse") == 0)
		pulse(prog_num(word, next(word)));
	else if (strcmp(word, "say") == 0)
		puts(next(word));
	else if (strcmp(word, "rest") == 0)
		prog_rest();
	else
		many(word);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	(void)argc;
	prog_lifetime(60000);
	words = argv + 1;
	sigsetjmp(next_word, 1);
	while (*words != NULL) {
		const char *word = *words++;

		perform(word, argv[0]);
	}
	return 0;
}
