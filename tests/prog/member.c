/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.c - a program that is linked with libxrun, and does what it is told, word
 * by word:
 *
 *   burst N       progress 1 to N of 1000000, as fast as it can
 *   at N          progress N of 1000000
 *   beat N        N heartbeats
 *   attach        is it the rank? says so
 *   detach        is it no more
 *   fork          what follows is done by a child, which the rank waits for
 *   exec          what follows is done by this program, executed anew
 *   on-stop       until it is told to stop it rests; says so
 *   say TEXT      a line on stdout
 *   rest          until a signal ends it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/job.h>

#include "tests/prog/prog.h"

static char **words; /* the next one */

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
	while (*words != NULL) {
		const char *word = *words++;

		perform(word, argv[0]);
	}
	return 0;
}
