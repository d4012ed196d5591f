/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - see limit.h. */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "proc/cgroup.h"
#include "proc/limit.h"
#include "proc/spawn.h"

#define HELD_FEW 512 /* descriptors that nobody is expected to pass on */
#define NEARLY   8   /* what may have ended since the refusal */

/* The number in a one-line file; UINT64_MAX if there is none ("max"). */
static uint64_t
number_in(const char *path)
{
	char text[64];

	fd_read_small(path, text, sizeof(text));
	return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) :
						  UINT64_MAX;
}

/* Free memory, and what the page cache would give back: on a machine that has
 * run for a while little is free, and much is available. */
static uint64_t
memory_available(void)
{
	static const char name[] = "\nMemAvailable:";
	char text[4096];
	const char *at;

	fd_read_small("/proc/meminfo", text, sizeof(text));
	at = strstr(text, name);
	if (at == NULL)
		return UINT64_MAX;
	return strtoull(at + sizeof(name) - 1, NULL, 10) * 1024;
}

static void
lower(struct limits *l, uint64_t value, const char *by)
{
	if (value < l->processes) {
		l->processes = value;
		l->processes_by = by;
	}
}

static void
raise_files(struct limits *l)
{
	struct rlimit more = l->files;

	l->files_max = more.rlim_cur;
	more.rlim_cur = more.rlim_max;
	if (more.rlim_cur > l->files.rlim_cur &&
		setrlimit(RLIMIT_NOFILE, &more) == 0)
		l->files_max = more.rlim_cur;
}

void
limit_read(struct limits *l)
{
	struct rlimit r;

	*l = (struct limits){
		.processes = UINT64_MAX,
		.memory = UINT64_MAX,
	};
	getrlimit(RLIMIT_NOFILE, &l->files);
	raise_files(l);
	if (getrlimit(RLIMIT_NPROC, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
		geteuid() != 0)
		lower(l, r.rlim_cur, "ulimit -u");
}

/* Those that xrun did not put there: above the slots, in this folder but for
 * the descriptor that lists it. */
static uint64_t
count_held(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;
	uint64_t n = 0;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		n += d->d_name[0] != '.' &&
			strtol(d->d_name, NULL, 10) >= SPAWN_SLOTS;
	if (dir != NULL)
		closedir(dir);
	return n > 0 ? n - 1 : 0;
}

static uint64_t
room(const struct cgroup_limit *l)
{
	if (l->max == CGROUP_NONE || l->used == CGROUP_NONE)
		return l->max;
	return l->max > l->used ? l->max - l->used : 0;
}

static void
count_machine(struct limits *l)
{
	struct cgroup_limit memory, pids;

	lower(l, number_in("/proc/sys/kernel/pid_max"), "kernel.pid_max");
	lower(l, number_in("/proc/sys/kernel/threads-max"),
		"kernel.threads-max");
	cgroup_limits(&memory, &pids, "");
	lower(l, room(&pids), "cgroup pids.max");
	l->memory = memory_available();
	if (room(&memory) < l->memory)
		l->memory = room(&memory);
}

void
limit_count(struct limits *l, uint32_t ranks, uint64_t files)
{
	if (files + HELD_FEW > l->files_max)
		l->held = count_held();
	if (ranks > LIMIT_FEW)
		count_machine(l);
}

/* Tasks of this user, threads too: what ulimit -u counts. */
static uint64_t
count_tasks(const char *root)
{
	char path[PATH_MAX];
	const struct dirent *d;
	uint64_t n = 0;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/proc/%s/task", root,
			d->d_name);
		if (stat(path, &st) == 0 && st.st_uid == getuid() &&
			st.st_nlink > 2)
			n += st.st_nlink - 2;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

static bool
put_pids_limit(struct buf *out, const char *root)
{
	struct cgroup_limit group;

	cgroup_limits(NULL, &group, root);
	if (room(&group) > NEARLY)
		return false;
	buf_fmt(out, " (pids.max of cgroup %s is %llu, and %llu are used)",
		cgroup_name(&group.of), (unsigned long long)group.max,
		(unsigned long long)group.used);
	return true;
}

static bool
put_user_limit(struct buf *out, const char *root)
{
	struct rlimit r;
	uint64_t used;

	if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &r) == -1 ||
		r.rlim_cur == RLIM_INFINITY)
		return false;
	used = count_tasks(root);
	if (used + NEARLY < r.rlim_cur)
		return false;
	buf_fmt(out, " (ulimit -u is %llu, and this user has %llu)",
		(unsigned long long)r.rlim_cur, (unsigned long long)used);
	return true;
}

void
limit_put_why(struct buf *out, const char *root)
{
	if (!put_pids_limit(out, root) && !put_user_limit(out, root))
		buf_put_text(out, " (ulimit -u, or pids.max of the cgroup)");
}
