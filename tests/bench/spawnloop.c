/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawnloop.c - the floor under every launcher: posix_spawn in a loop.
 *
 *   spawnloop [--pipes] N PROGRAM [ARG]...
 *
 * Starts N and waits for N. With --pipes each child gets two pipes, which are
 * read and passed on as they come. Exit 0 if all ended with 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "tests/prog/prog.h"

struct feed {
	int from, to;
};

/* Two pipes for a child; their reading ends go into @feeds and @epoll. */
static void
give_pipes(posix_spawn_file_actions_t *actions, int epoll, struct feed *feeds,
	int writers[2])
{
	struct epoll_event event = { .events = EPOLLIN };
	int fds[2], i;

	posix_spawn_file_actions_init(actions);
	for (i = 0; i < 2; i++) {
		if (pipe2(fds, O_CLOEXEC) == -1)
			prog_die(errno, "pipe");
		feeds[i] = (struct feed){ .from = fds[0], .to = i + 1 };
		writers[i] = fds[1];
		posix_spawn_file_actions_adddup2(actions, fds[1], i + 1);
		event.data.ptr = &feeds[i];
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event) == -1)
			prog_die(errno, "epoll");
	}
}

static void
start(char **argv, int epoll, struct feed *feeds)
{
	posix_spawn_file_actions_t actions;
	int writers[2], sys;
	pid_t pid;

	if (feeds != NULL)
		give_pipes(&actions, epoll, feeds, writers);
	sys = posix_spawnp(&pid, argv[0], feeds != NULL ? &actions : NULL, NULL,
		argv, environ);
	if (sys != 0)
		prog_die(sys, "%s", argv[0]);
	if (feeds == NULL)
		return;
	fd_close(writers[0]);
	fd_close(writers[1]);
	posix_spawn_file_actions_destroy(&actions);
}

static void
pass_on(int epoll, int64_t open_feeds)
{
	static char data[65536];
	struct epoll_event events[64];
	struct feed *feed;
	ssize_t len;
	int i, n;

	while (open_feeds > 0) {
		n = epoll_wait(epoll, events, 64, -1);
		for (i = 0; i < n; i++) {
			feed = events[i].data.ptr;
			len = read(feed->from, data, sizeof(data));
			if (len > 0) {
				fd_write_all(feed->to, data, (size_t)len);
				continue;
			}
			/* A sibling in the midst of exec may hold the file. */
			epoll_ctl(epoll, EPOLL_CTL_DEL, feed->from, NULL);
			fd_close(feed->from);
			open_feeds--;
		}
	}
}

static int
collect(int64_t ranks)
{
	int status, worst = 0;

	while (ranks-- > 0)
		if (wait(&status) == -1 || status != 0)
			worst = 1;
	return worst;
}

static void
raise_limit(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int
main(int argc, char **argv)
{
	bool pipes = false;
	const struct prog_opt table[] = {
		{ "pipes", PROG_FLAG, &pipes, "two pipes for each" },
		{ 0 },
	};
	int at = prog_opts(argc, argv, table), epoll = -1, worst;
	struct feed *feeds = NULL;
	int64_t ranks, i;

	if (argc - at < 2)
		prog_die(0, "N PROGRAM [ARG]...");
	ranks = prog_num("N", argv[at]);
	if (pipes) {
		raise_limit();
		epoll = epoll_create1(EPOLL_CLOEXEC);
		feeds = calloc((size_t)ranks * 2, sizeof(*feeds));
		if (epoll == -1 || feeds == NULL)
			prog_die(errno, "%lld ranks", (long long)ranks);
	}
	for (i = 0; i < ranks; i++)
		start(argv + at + 1, epoll, pipes ? &feeds[i * 2] : NULL);
	if (pipes)
		pass_on(epoll, ranks * 2);
	worst = collect(ranks);
	free(feeds);
	return worst;
}
