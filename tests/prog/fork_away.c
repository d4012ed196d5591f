/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_away.c - a rank that leaves processes behind.
 *
 * It makes a tree of --depth levels with --width children each, waits until
 * every process of it has written its pid to --pids, says "ready" and exits 0
 * (or rests, with --stay). --orphan: only the leaves stay, so they lose their
 * parents. --relay: one process at a time, each forks the next and is gone,
 * for at most 2 s. Whatever stays ends itself after --last ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

#define RELAY_NS (2 * NS_PER_S)

static struct settings {
	int64_t depth, width, last, code;
	const char *pids;
	bool session, close_out, ignore_term, orphan, relay, stay;
} set = { .depth = 1, .width = 1, .last = 30000 };

static void
record_pid(void)
{
	int fd;

	if (set.pids == NULL)
		return;
	fd = open(set.pids, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd == -1 || dprintf(fd, "%d\n", getpid()) < 0)
		prog_die(errno, "%s", set.pids);
	close(fd);
}

static pid_t
fork_or_die(void)
{
	pid_t pid = fork();

	if (pid == -1)
		prog_die(errno, "fork");
	return pid;
}

static void
settle(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	prog_lifetime(set.last);
	if (set.session)
		setsid();
	if (set.ignore_term) {
		sigaction(SIGTERM, &ignore, NULL);
		sigaction(SIGINT, &ignore, NULL);
		sigaction(SIGHUP, &ignore, NULL);
	}
	if (set.close_out) {
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
	}
}

/* Children of one level; each closes @done when its own part of the tree
 * stands, and only then. */
static void
grow(int64_t level, int done)
{
	int64_t i;

	for (i = 0; i < set.width; i++) {
		if (fork_or_die() > 0)
			continue;
		settle();
		if (level < set.depth)
			grow(level + 1, done);
		if (level < set.depth && set.orphan)
			_exit(0);
		record_pid();
		close(done);
		prog_rest();
	}
}

static void
relay(int done)
{
	int64_t end = clock_now() + RELAY_NS;

	if (fork_or_die() > 0)
		return;
	settle();
	record_pid();
	close(done);
	while (clock_now() < end)
		if (fork_or_die() > 0)
			_exit(0);
	_exit(0);
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		{ "depth", PROG_NUM, &set.depth, "levels below this process" },
		{ "width", PROG_NUM, &set.width, "children of each" },
		{ "setsid", PROG_FLAG, &set.session, "a session for each" },
		{ "close", PROG_FLAG, &set.close_out, "close stdout, stderr" },
		{ "ignore-term", PROG_FLAG, &set.ignore_term,
			"ignore TERM, INT and HUP" },
		{ "orphan", PROG_FLAG, &set.orphan, "only the leaves stay" },
		{ "relay", PROG_FLAG, &set.relay, "fork and go, for 2 s" },
		{ "pids", PROG_TEXT, &set.pids, "file that gets the pids" },
		{ "stay", PROG_FLAG, &set.stay, "do not exit" },
		{ "exit", PROG_NUM, &set.code, "exit code" },
		{ "last", PROG_NUM, &set.last, "ms nobody outlives" },
		{ 0 },
	};
	int done[2];
	char byte;

	prog_opts(argc, argv, table);
	if (pipe2(done, O_CLOEXEC) == -1)
		prog_die(errno, "pipe");
	if (set.relay)
		relay(done[1]);
	else
		grow(1, done[1]);
	close(done[1]);
	while (read(done[0], &byte, 1) == -1 && errno == EINTR)
		;
	dprintf(STDOUT_FILENO, "ready\n");
	if (!set.stay)
		return (int)set.code;
	prog_lifetime(set.last);
	prog_rest();
}
