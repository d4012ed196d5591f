/* SPDX-License-Identifier: Apache-2.0 */
/* shm.c - see shm.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proc/shm.h"

/* Names, and how many numbers stand before the process id in them: -1 if there
 * is none. */
static const struct {
	const char *begin;
	int pid_at;
} known[] = {
	/* NCCL, src/misc/shmutils.cc: mkstemp of /dev/shm/nccl-XXXXXX */
	{ "nccl-", -1 },
	/* PyTorch, aten/src/ATen/MapAllocator.cpp, NewProcessWideShmHandle():
	 * /torch_PID_RANDOM_COUNT */
	{ "torch_", 0 },
	/* CUDA's driver: cuda.shm.UID.PID.COUNT, both in hexadecimal */
	{ "cuda.shm.", 1 },
};

/* The process id in @name, behind as many numbers as @skip; 0: it has none. */
static pid_t
pid_in(const char *name, int skip, int base)
{
	char *end;
	long n;

	for (;; skip--) {
		n = strtol(name, &end, base);
		if (end == name || n < 0)
			return 0;
		if (skip == 0)
			return n > 0 && n < INT32_MAX ? (pid_t)n : 0;
		if (*end == '\0')
			return 0;
		name = end + 1;
	}
}

static bool
lives(pid_t pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

/* Does a process have the file @path open? Whoever makes an object does, until it
 * has mapped it: so this is asked first. What is kept from us is of no program of
 * a rank, which has no more rights than we. */
static bool
is_open_by(const char *pid, const char *path)
{
	char name[300], target[512];
	const struct dirent *d;
	bool found = false;
	DIR *fds;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%.16s/fd", pid);
	fds = opendir(name);
	while (fds != NULL && !found && (d = readdir(fds)) != NULL) {
		n = readlinkat(dirfd(fds), d->d_name, target,
			sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		found = strcmp(target, path) == 0;
	}
	if (fds != NULL)
		closedir(fds);
	return found;
}

static bool
is_mapped_by(const char *pid, const char *path)
{
	char file[300], line[512];
	bool found = false;
	FILE *maps;

	snprintf(file, sizeof(file), "/proc/%.16s/maps", pid);
	maps = fopen(file, "re");
	if (maps == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), maps) != NULL)
		found = strstr(line, path) != NULL;
	fclose(maps);
	return found;
}

/* Nobody else's processes are asked: they could not open it. */
static bool
is_used(const char *path)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	bool found = proc == NULL;
	struct stat st;

	while (!found && (d = readdir(proc)) != NULL)
		if (isdigit((unsigned char)d->d_name[0]) &&
			fstatat(dirfd(proc), d->d_name, &st, 0) == 0 &&
			st.st_uid == geteuid())
			found = is_open_by(d->d_name, path) ||
				is_mapped_by(d->d_name, path);
	if (proc != NULL)
		closedir(proc);
	return found;
}

/* Has nobody who lives made it, or mapped it? */
static bool
is_left(const char *dir, const char *name)
{
	char path[512];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i].begin);
		pid_t pid;

		if (strncmp(name, known[i].begin, len) != 0)
			continue;
		if (known[i].pid_at != -1) {
			pid = pid_in(name + len, known[i].pid_at,
				known[i].pid_at == 0 ? 10 : 16);
			if (pid == 0 || lives(pid))
				return false;
		}
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		return !is_used(path);
	}
	return false;
}

static bool
is_ours(int dir, const char *name, int64_t since)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		(int64_t)st.st_ctim.tv_sec * NS_PER_S + st.st_ctim.tv_nsec >=
		since;
}

uint32_t
shm_sweep(const char *path, int64_t since, shm_fn *fn, void *ctx)
{
	DIR *dir = opendir(path);
	const struct dirent *d;
	uint32_t removed = 0;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (!is_ours(dirfd(dir), d->d_name, since) ||
			!is_left(path, d->d_name) ||
			unlinkat(dirfd(dir), d->d_name, 0) == -1)
			continue;
		removed++;
		if (fn != NULL)
			fn(d->d_name, ctx);
	}
	if (dir != NULL)
		closedir(dir);
	return removed;
}
