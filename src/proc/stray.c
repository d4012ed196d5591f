/* SPDX-License-Identifier: Apache-2.0 */
/* stray.c - see stray.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "proc/descend.h"
#include "proc/lineage.h"
#include "proc/stray.h"
#include "proc/vars.h"

#define ROUND_NS  (2 * NS_PER_MS) /* for what they just made */
#define QUIET     2   /* rounds that meet nobody, until it is over */
#define GONE_MS   100 /* more is an uninterruptible sleep */
#define DEPTH_MAX 64  /* generations looked at */

enum kind {
	OTHER,
	NAMED, /* perhaps another build of xrun */
	XRUN,
};

/* Whoever wants to can call itself so. What it runs can be seen of processes of
 * this user's; others are believed. */
static enum kind
kind_of(pid_t pid, const char *comm)
{
	char path[64], exe[PATH_MAX], *name;
	struct stat st, own;
	ssize_t n;

	if (strcmp(comm, "xrun") != 0 && strcmp(comm, "xrun-super") != 0)
		return OTHER;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (stat(path, &st) == -1)
		return errno == EACCES || errno == EPERM ? XRUN : NAMED;
	if (stat("/proc/self/exe", &own) == 0 && own.st_dev == st.st_dev &&
		own.st_ino == st.st_ino)
		return XRUN;
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	name = strrchr(exe, '/');
	return name != NULL &&
			(strcmp(name, "/xrun") == 0 ||
				strcmp(name, "/xrun (deleted)") == 0) ?
		NAMED :
		OTHER;
}

static bool
is_mine(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Is an xrun above it, which will end it? One that was killed is above it for a moment
 * after its lock is free: its files are closed before its children are others'. */
static bool
is_looked_after(pid_t pid)
{
	struct proc_stat st;

	for (int i = 0; i < DEPTH_MAX && proc_stat_read(pid, &st); i++) {
		if (i > 0 && !st.exiting && kind_of(pid, st.comm) != OTHER)
			return true;
		pid = st.ppid;
		if (pid <= 1)
			return false;
	}
	return true; /* who knows */
}

bool
stray_fits(const struct stray_job *job, pid_t pid)
{
	return job->lineage != LINEAGE_NONE &&
		lineage_of(pid) == job->lineage &&
		lineage_ticks_of(pid) >= job->ticks;
}

struct round {
	const struct stray_job *job;
	struct buf counted; /* of pid_t */
	uint32_t met, told;
	bool first, late;
};

/* Once, though a later round may meet it dying still. */
static void
count(struct round *r, pid_t pid)
{
	const char *p = r->counted.data;

	for (size_t at = 0; at < r->counted.len; at += sizeof(pid))
		if (memcmp(p + at, &pid, sizeof(pid)) == 0)
			return;
	buf_put(&r->counted, &pid, sizeof(pid));
}

/* True if it is there still, and to be gone. */
static bool
end_one(struct round *r, pid_t pid, int pidfd, enum kind kind)
{
	bool kills = kind == OTHER || (kind == NAMED && r->late);

	if (kills || r->first)
		syscall(SYS_pidfd_send_signal, pidfd, kills ? SIGKILL : SIGTERM,
			NULL, 0);
	if (kills)
		poll(&(struct pollfd){ pidfd, POLLIN, 0 }, 1, GONE_MS);
	if (kind == OTHER)
		count(r, pid);
	r->told += kind != OTHER && r->first;
	return kind != XRUN;
}

/* What is read after @pidfd was opened is of that process, or the signal goes
 * to one that is gone. */
static void
look_at(struct round *r, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct proc_stat st;

	if (pidfd != -1 && stray_fits(r->job, pid) &&
		proc_stat_read(pid, &st) && !st.exiting)
		r->met += end_one(r, pid, pidfd, kind_of(pid, st.comm));
	fd_close(pidfd);
}

/* The next process, but this one; 0 behind the last. */
static pid_t
stray_next(DIR *dir)
{
	const struct dirent *d;
	pid_t pid;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		pid = (pid_t)strtol(d->d_name, NULL, 10);
		if (pid != getpid())
			return pid;
	}
	return 0;
}

/* Most processes have no mark, and one system call tells. */
static void
look_round(struct round *r)
{
	DIR *dir = opendir("/proc");
	pid_t pid;

	while ((pid = stray_next(dir)) != 0)
		if (lineage_of(pid) == r->job->lineage)
			look_at(r, pid);
	if (dir != NULL)
		closedir(dir);
}

bool
stray_end(const struct stray_job *job, int64_t deadline, uint32_t *ended)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	int64_t begun = clock_now();
	struct round r = { .job = job, .first = true, .met = 1 };
	uint32_t quiet = 0;

	*ended = 0;
	if (job->lineage == LINEAGE_NONE)
		return true;
	for (;;) {
		r.met = 0;
		look_round(&r);
		r.first = false;
		/* Once is not enough: a process may fork while it is killed. */
		quiet = r.met == 0 ? quiet + 1 : 0;
		if (quiet == QUIET || clock_now() >= deadline)
			break;
		nanosleep(&pause, NULL);
		r.late = clock_now() - begun > (deadline - begun) / 2;
	}
	*ended = (uint32_t)(r.counted.len / sizeof(pid_t)) + r.told;
	buf_fini(&r.counted);
	return r.met == 0;
}

void
stray_each(stray_fn *fn, void *ctx)
{
	char *room = malloc(VARS_ROOM);
	DIR *dir = room == NULL ? NULL : opendir("/proc");
	struct proc_stat st;
	struct stray found;

	while ((found.pid = stray_next(dir)) != 0) {
		found.job = is_mine(found.pid) ?
			vars_of(found.pid, "XRUN_JOB", room) :
			NULL;
		if ((found.job == NULL &&
			    lineage_of(found.pid) == LINEAGE_NONE) ||
			!proc_stat_read(found.pid, &st) || st.exiting)
			continue;
		found.watched = is_looked_after(found.pid);
		found.name = st.comm;
		fn(ctx, &found);
	}
	if (dir != NULL)
		closedir(dir);
	free(room);
}
