/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - see usage.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proc/usage.h"

#define DEPTH 8

/* Fields 3 (state), 14 to 17 (clock ticks) and 24 (pages) of proc_pid_stat(5);
 * the name in field 2 may hold anything, so they are counted from its last
 * ')'. */
bool
usage_read(pid_t pid, struct usage *u)
{
	unsigned long long ticks[4] = { 0 };
	char path[64], text[1024], state = '?', *p;
	long long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_small(path, text, sizeof(text)) == 0)
		return false;
	p = strrchr(text, ')');
	if (p == NULL ||
		sscanf(p + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %*d %*d %*u %*u %lld",
			&state, &ticks[0], &ticks[1], &ticks[2], &ticks[3],
			&pages) != 6)
		return false;
	u->cpu_ns += (int64_t)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) *
		(NS_PER_S / sysconf(_SC_CLK_TCK));
	u->rss += pages * sysconf(_SC_PAGESIZE);
	u->running = u->running || state == 'R';
	u->stopped = u->stopped || state == 'T' || state == 't';
	u->processes++;
	return true;
}

static void read_children(pid_t pid, const char *task, unsigned depth,
	bool first, struct usage *u);

/* A thread is the parent of what it made. */
static void
read_threads(pid_t pid, unsigned depth, bool first, struct usage *u)
{
	const struct dirent *d;
	char path[64];
	DIR *tasks;

	if (first)
		u->leaf = pid;
	if (depth == 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks != NULL && (d = readdir(tasks)) != NULL)
		if (d->d_name[0] != '.')
			read_children(pid, d->d_name, depth - 1, first, u);
	if (tasks != NULL)
		closedir(tasks);
}

static void
read_children(pid_t pid, const char *task, unsigned depth, bool first,
	struct usage *u)
{
	char path[64], text[4096], *p = text, *end;
	size_t len;
	long child;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid,
		task);
	len = fd_read_small(path, text, sizeof(text));
	if (len + 1 == sizeof(text)) { /* the last number may be cut */
		end = memrchr(text, ' ', len);
		*(end == NULL ? text : end) = '\0';
	}
	for (; (child = strtol(p, &end, 10)) > 0 && end != p; p = end)
		if (u->processes < USAGE_PROCESSES &&
			usage_read((pid_t)child, u))
			read_threads((pid_t)child, depth,
				first && u->leaf == pid, u);
}

bool
usage_tree(pid_t pid, struct usage *u)
{
	bool stopped;

	if (!usage_read(pid, u))
		return false;
	stopped = u->stopped;
	read_threads(pid, DEPTH, true, u);
	u->stopped = stopped;
	return true;
}
