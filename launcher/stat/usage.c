/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - see usage.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/fd.h"
#include "launcher/stat/usage.h"
#include "launcher/state/jobs.h"

#define TREE_DEPTH 8
#define TREE_MAX   256 /* processes of a rank */

struct usage {
	double cpu;  /* seconds */
	int64_t rss; /* bytes */
	unsigned processes;
};

/* Fields 14, 15 (clock ticks) and 24 (pages) of proc_pid_stat(5); the name in
 * field 2 may hold anything, so they are counted from its last ')'. */
static bool
read_stat(int pid, struct usage *u)
{
	char path[64], text[1024], *p;
	unsigned long long user = 0, system = 0;
	long long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_small(path, text, sizeof(text)) == 0)
		return false;
	p = strrchr(text, ')');
	if (p == NULL ||
		sscanf(p + 1,
			" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %lld",
			&user, &system, &pages) != 3)
		return false;
	u->cpu += (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	u->rss += pages * sysconf(_SC_PAGESIZE);
	u->processes++;
	return true;
}

static void
read_tree(int pid, unsigned depth, struct usage *u)
{
	char path[64], text[4096], *p = text, *end;
	long child;

	if (u->processes >= TREE_MAX || !read_stat(pid, u) || depth == 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd_read_small(path, text, sizeof(text));
	while ((child = strtol(p, &end, 10)) > 0 && end != p) {
		read_tree((int)child, depth - 1, u);
		p = end;
	}
}

/* Into the object, under the names that the report has for those that ended. */
static void
add_usage(cJSON *rank)
{
	int64_t pid = jobs_number(rank, "pid", 0);
	struct usage u = { 0 };

	if (pid == 0 || cJSON_HasObjectItem(rank, "exit"))
		return;
	read_tree((int)pid, TREE_DEPTH, &u);
	if (u.processes == 0)
		return;
	cJSON_AddNumberToObject(rank, "cpu_seconds", u.cpu);
	cJSON_AddNumberToObject(rank, "rss_bytes", (double)u.rss);
	cJSON_AddNumberToObject(rank, "processes", u.processes);
}

void
usage_add(cJSON *status)
{
	cJSON *rank;

	cJSON_ArrayForEach(rank,
		cJSON_GetObjectItemCaseSensitive(status, "rank"))
		add_usage(rank);
}
