/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timed.c - run a command once or a few times, and say what it took.
 *
 *   timed [--repeat R] [--limit MS] [--out PREFIX] -- COMMAND [ARG]...
 *
 * Prints one JSON object: wall time from before the spawn to the exit of the
 * command, processor time of the command and of everything it left behind
 * (timed is the reaper of its orphans), how many processes were made on this
 * machine meanwhile, how many were still there at its exit and how long they
 * took to go. The command's stdin is /dev/null, its stdout and stderr are
 * PREFIX.out and PREFIX.err, or /dev/null. After --limit everything is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

#define ORPHANS_NS (5 * NS_PER_S) /* then they are killed */

struct result {
	int64_t start, wall, cpu, late;
	int64_t left; /* still there when the command had ended */
	int status;   /* first that is not 0; 128+n for a signal */
	bool timeout;
};

static int64_t
processes_made(void)
{
	FILE *file = fopen("/proc/stat", "re");
	long long made = 0;
	char line[4096];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "processes %lld", &made) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return made;
}

static void
add_usage(struct result *res, const struct rusage *use)
{
	res->cpu += (use->ru_utime.tv_sec + use->ru_stime.tv_sec) * NS_PER_S;
	res->cpu += (use->ru_utime.tv_usec + use->ru_stime.tv_usec) * NS_PER_US;
}

/* Every child that is ours by now: the command and adopted orphans. */
static int
each_child(bool end_them)
{
	char path[64], pids[65536], *at = pids, *end = NULL;
	int fd, count = 0;
	ssize_t n;
	long pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd == -1 ? -1 : read(fd, pids, sizeof(pids) - 1);
	if (fd != -1)
		close(fd);
	pids[n < 0 ? 0 : n] = '\0';
	for (pid = strtol(at, &end, 10); end != at;
		at = end, pid = strtol(at, &end, 10)) {
		count++;
		if (end_them)
			kill((pid_t)pid, SIGKILL);
	}
	return count;
}

/* Reaps what can be reaped. True when @pid was among it, or, with @pid 0, when
 * no child is left. */
static bool
reap(pid_t pid, int *status, struct result *res)
{
	struct rusage use;
	bool found = false;
	int how;
	pid_t got;

	while ((got = wait4(-1, &how, WNOHANG, &use)) > 0) {
		add_usage(res, &use);
		if (got == pid) {
			*status = how;
			found = true;
		}
	}
	return found || (pid == 0 && got == -1 && errno == ECHILD);
}

/* Until reap() is true; false when @deadline came first. */
static bool
await(pid_t pid, int64_t deadline, int *status, struct result *res)
{
	struct timespec left;
	sigset_t child;
	int64_t ns;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (!reap(pid, status, res)) {
		ns = deadline - clock_now();
		if (ns <= 0)
			return false;
		left.tv_sec = ns / NS_PER_S;
		left.tv_nsec = ns % NS_PER_S;
		sigtimedwait(&child, NULL, &left);
	}
	return true;
}

static void
await_orphans(struct result *res)
{
	int64_t start = clock_now();
	int status;

	if (reap(0, &status, res))
		return;
	res->left += each_child(false);
	if (!await(0, start + ORPHANS_NS, &status, res))
		do {
			each_child(true);
		} while (!await(0, clock_now() + 10 * NS_PER_MS, &status, res));
	res->late += clock_now() - start;
}

static void
set_streams(posix_spawn_file_actions_t *actions, const char *prefix)
{
	static const char *const ends[] = { "out", "err" };
	int flags = O_WRONLY | O_CREAT | O_APPEND, i;
	char path[4096];

	posix_spawn_file_actions_init(actions);
	posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s.%s", prefix, ends[i]);
		posix_spawn_file_actions_addopen(actions, i + 1,
			prefix != NULL ? path : "/dev/null", flags, 0644);
	}
}

static void
run(char **argv, const char *prefix, int64_t limit, struct result *res)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int64_t start;
	sigset_t none;
	int status = 0, sys;
	pid_t pid;

	set_streams(&actions, prefix);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	start = clock_now();
	sys = posix_spawnp(&pid, argv[0], &actions, &attr, argv, environ);
	if (sys != 0)
		prog_die(sys, "%s", argv[0]);
	if (!await(pid, start + limit, &status, res)) {
		res->timeout = true;
		kill(pid, SIGKILL);
		await(pid, INT64_MAX, &status, res);
	}
	res->wall += clock_now() - start;
	if (res->start == 0)
		res->start = start;
	if (res->status == 0)
		res->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
						    WEXITSTATUS(status);
	await_orphans(res);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
}

int
main(int argc, char **argv)
{
	int64_t repeat = 1, limit = 60000, made;
	const char *prefix = NULL;
	const struct prog_opt table[] = {
		{ "repeat", PROG_NUM, &repeat, "times, added up" },
		{ "limit", PROG_NUM, &limit,
			"ms for each; then all is killed" },
		{ "out", PROG_TEXT, &prefix, "where its output is added" },
		{ 0 },
	};
	struct result res = { 0 };
	int i = prog_opts(argc, argv, table);
	sigset_t child;
	int64_t n;

	if (i == argc)
		prog_die(0, "which command?");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	made = processes_made();
	for (n = 0; n < repeat && !res.timeout; n++)
		run(argv + i, prefix, limit * NS_PER_MS, &res);
	made = processes_made() - made;
	printf("{\"start_ns\": %lld, \"wall_ns\": %lld, \"cpu_ns\": %lld, ",
		(long long)res.start, (long long)res.wall, (long long)res.cpu);
	printf("\"status\": %d, \"timeout\": %s, \"made\": %lld, ", res.status,
		res.timeout ? "true" : "false", (long long)made);
	printf("\"left\": %lld, \"late_ns\": %lld}\n", (long long)res.left,
		(long long)res.late);
	return fflush(stdout) == 0 ? 0 : 2;
}
