/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - how long a line is on its way through a launcher.
 *
 *   latency [--limit MS] -- COMMAND [ARG]...
 *
 * Reads the command's stdout from a pipe; for each "stamp=NS" in it, the time
 * from NS to the return of read(2). Prints them as one JSON object.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

/* Prints the samples in @text, whose end is a line's end; returns how many. */
static int64_t
show_samples(char *text, int64_t now, int64_t before)
{
	int64_t count = 0;
	char *at = text;

	for (at = strstr(at, "stamp="); at != NULL; at = strstr(at, "stamp=")) {
		at += strlen("stamp=");
		printf("%s%lld", before + count > 0 ? ", " : "",
			(long long)(now - strtoll(at, NULL, 10)));
		count++;
	}
	return count;
}

static int64_t
read_samples(int fd)
{
	static char data[65536];
	size_t held = 0, whole;
	int64_t count = 0, now;
	char *newline;
	ssize_t n;

	for (;;) {
		n = read(fd, data + held, sizeof(data) - 1 - held);
		now = clock_now();
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return count;
		held += (size_t)n;
		newline = memrchr(data, '\n', held);
		if (newline == NULL)
			continue;
		*newline = '\0';
		whole = (size_t)(newline - data) + 1;
		count += show_samples(data, now, count);
		held -= whole;
		memmove(data, data + whole, held);
	}
}

int
main(int argc, char **argv)
{
	int64_t limit = 120000, count;
	const struct prog_opt table[] = {
		{ "limit", PROG_NUM, &limit, "ms before it gives up" },
		{ 0 },
	};
	posix_spawn_file_actions_t actions;
	int at = prog_opts(argc, argv, table), fds[2], status = 0, sys;
	pid_t pid;

	if (at == argc || pipe2(fds, O_CLOEXEC) == -1)
		prog_die(0, "which command?");
	prog_lifetime(limit);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	sys = posix_spawnp(&pid, argv[at], &actions, NULL, argv + at, environ);
	if (sys != 0)
		prog_die(sys, "%s", argv[at]);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	printf("{\"samples_ns\": [");
	count = read_samples(fds[0]);
	waitpid(pid, &status, 0);
	printf("], \"count\": %lld, \"status\": %d}\n", (long long)count,
		status);
	return fflush(stdout) == 0 ? 0 : 2;
}
