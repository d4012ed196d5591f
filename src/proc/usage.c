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

/* Fields 3 (state), 14 to 17 (clock ticks), 20 (threads) and 24 (pages) of
 * proc_pid_stat(5); the name in field 2 may hold anything, so they are counted
 * from its last ')'. */
bool
usage_read(pid_t pid, struct usage *u)
{
	unsigned long long ticks[4] = { 0 };
	char path[64], text[1024], state = '?', *p;
	unsigned threads = 0;
	long long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_small(path, text, sizeof(text)) == 0)
		return false;
	p = strrchr(text, ')');
	if (p == NULL ||
		sscanf(p + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %u %*d %*u %*u %lld",
			&state, &ticks[0], &ticks[1], &ticks[2], &ticks[3],
			&threads, &pages) != 7)
		return false;
	u->cpu_ns += (int64_t)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) *
		(NS_PER_S / sysconf(_SC_CLK_TCK));
	u->rss += pages * sysconf(_SC_PAGESIZE);
	u->running = u->running || state == 'R';
	u->stopped = u->stopped || state == 'T' || state == 't';
	u->others += threads > 1 ? threads - 1 : 0;
	u->processes++;
	return true;
}

struct walk {
	struct usage *u;
	bool all; /* threads are asked */
};

static void read_children(const struct walk *w, pid_t pid, const char *task,
	unsigned depth);

/* Those that other threads than the first made. */
static void
read_others(const struct walk *w, pid_t pid, unsigned depth)
{
	const struct dirent *d;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks != NULL && w->u->asked < USAGE_THREADS &&
		(d = readdir(tasks)) != NULL) {
		if (d->d_name[0] == '.' || strtol(d->d_name, NULL, 10) == pid)
			continue;
		w->u->asked++;
		read_children(w, pid, d->d_name, depth);
	}
	if (tasks != NULL)
		closedir(tasks);
}

/* @others: it has more than one thread */
static void
read_threads(const struct walk *w, pid_t pid, unsigned depth, bool others)
{
	char task[16];

	if (depth == 0)
		return;
	snprintf(task, sizeof(task), "%d", (int)pid);
	read_children(w, pid, task, depth - 1);
	if (w->all && others)
		read_others(w, pid, depth - 1);
}

/* A thread is the parent of what it made. */
static void
read_child(const struct walk *w, pid_t parent, pid_t pid, unsigned depth)
{
	uint32_t others = w->u->others;

	if (!usage_read(pid, w->u))
		return;
	if (w->u->leaf == parent)
		w->u->leaf = pid;
	read_threads(w, pid, depth, w->u->others > others);
}

static void
read_children(const struct walk *w, pid_t pid, const char *task, unsigned depth)
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
		if (w->u->processes < USAGE_PROCESSES)
			read_child(w, pid, (pid_t)child, depth);
}

static bool
read_tree(pid_t pid, bool all, struct usage *u)
{
	const struct walk w = { u, all };
	bool stopped;

	if (!usage_read(pid, u))
		return false;
	stopped = u->stopped;
	u->leaf = pid;
	read_threads(&w, pid, DEPTH, u->others > 0);
	u->stopped = stopped;
	return true;
}

bool
usage_near(pid_t pid, struct usage *u)
{
	return read_tree(pid, false, u);
}

bool
usage_tree(pid_t pid, struct usage *u)
{
	return read_tree(pid, true, u);
}
