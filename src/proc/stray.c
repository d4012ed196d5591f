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

#include "base/clock.h"
#include "base/fd.h"
#include "proc/cgroup.h"
#include "proc/descend.h"
#include "proc/stray.h"

#define ENVIRON_MAX (256 * 1024)
#define ROUND_NS    (2 * NS_PER_MS) /* for what they just made */
#define GONE_MS     100             /* more is an uninterruptible sleep */
#define EARLY_NS    (2 * NS_PER_S)  /* clocks are not that exact */
#define DEPTH_MAX   64              /* generations looked at */

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
is_mine(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Does its environment say XRUN_JOB=@id? */
static bool
bears(pid_t pid, const char *id, char *room)
{
	char path[64], want[128];
	ssize_t n = -1;
	size_t len;
	int fd;

	len = (size_t)snprintf(want, sizeof(want), "XRUN_JOB=%s", id);
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd != -1 && len < sizeof(want))
		n = fd_read_some(fd, room, ENVIRON_MAX - 1);
	fd_close(fd);
	if (n <= 0)
		return false;
	room[n] = '\0';
	for (const char *at = room; at < room + n; at += strlen(at) + 1)
		if (strcmp(at, want) == 0)
			return true;
	return false;
}

/* When it began, as clock_wall(); 0 if that cannot be told. */
static int64_t
began(pid_t pid)
{
	char path[64], text[1024], *at;
	unsigned long long ticks = 0;
	struct timespec up;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd_read_small(path, text, sizeof(text));
	at = strrchr(text, ')'); /* field 22 is the 20th behind it */
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at != NULL)
		ticks = strtoull(at, NULL, 10);
	if (ticks == 0 || clock_gettime(CLOCK_BOOTTIME, &up) == -1)
		return 0;
	return clock_wall() - (up.tv_sec * NS_PER_S + up.tv_nsec) +
		(int64_t)(ticks * (uint64_t)(NS_PER_S / sysconf(_SC_CLK_TCK)));
}

/* The group of the job's xrun, or one below it: its ranks' own. */
static bool
is_in(pid_t pid, const char *cgroup)
{
	char *path = cgroup == NULL ? NULL : cgroup_path(pid);
	size_t len = cgroup == NULL ? 0 : strlen(cgroup);
	bool in;

	if (cgroup == NULL)
		return true;
	if (len == 1)
		len = 0; /* "/" */
	in = path != NULL && strncmp(path, cgroup, len) == 0 &&
		(path[len] == '\0' || path[len] == '/');
	if (in && path[len] != '\0' && strcmp(path + len, "/") != 0)
		in = strncmp(path + len, "/xrun-", 6) == 0;
	free(path);
	return in;
}

/* Is an xrun above it, which will end it? */
static bool
is_looked_after(pid_t pid)
{
	struct proc_stat st;

	for (int i = 0; i < DEPTH_MAX && proc_stat_read(pid, &st); i++) {
		if (i > 0 && kind_of(pid, st.comm) != OTHER)
			return true;
		pid = st.ppid;
		if (pid <= 1)
			return false;
	}
	return true; /* who knows */
}

struct round {
	const struct stray_job *job;
	char *room; /* ENVIRON_MAX */
	uint32_t met, ended, told;
	bool first, late;
};

/* True if it is there still, and to be gone. */
static bool
end_one(struct round *r, int pidfd, enum kind kind)
{
	bool kills = kind == OTHER || (kind == NAMED && r->late);

	if (kills || r->first)
		syscall(SYS_pidfd_send_signal, pidfd, kills ? SIGKILL : SIGTERM,
			NULL, 0);
	/* Gone before the next look, so that it counts once. */
	if (kills)
		poll(&(struct pollfd){ pidfd, POLLIN, 0 }, 1, GONE_MS);
	r->ended += kind == OTHER;
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

	if (pidfd != -1 && pid != getpid() && bears(pid, r->job->id, r->room) &&
		began(pid) >= r->job->since - EARLY_NS &&
		is_in(pid, r->job->cgroup) && !is_looked_after(pid) &&
		proc_stat_read(pid, &st) && !st.exiting)
		r->met += end_one(r, pidfd, kind_of(pid, st.comm));
	fd_close(pidfd);
}

static void
look_round(struct round *r)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
			is_mine(d->d_name))
			look_at(r, (pid_t)strtol(d->d_name, NULL, 10));
	if (dir != NULL)
		closedir(dir);
}

bool
stray_end(const struct stray_job *job, int64_t deadline, uint32_t *ended)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	int64_t begun = clock_now();
	struct round r = { .job = job, .first = true, .met = 1 };

	r.room = malloc(ENVIRON_MAX);
	while (r.room != NULL) {
		r.met = 0;
		look_round(&r);
		r.first = false;
		if (r.met == 0 || clock_now() >= deadline)
			break;
		nanosleep(&pause, NULL);
		r.late = clock_now() - begun > (deadline - begun) / 2;
	}
	free(r.room);
	*ended = r.ended + r.told;
	return r.met == 0;
}
