/* SPDX-License-Identifier: Apache-2.0 */
/* shm.c - see shm.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#define ROUND 64 /* objects that one walk over /proc is for */

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

/* Those of @dir that may go, and who of them is used. */
struct round {
	const char *dir;
	uint32_t count, used;
	bool is_used[ROUND];
	char name[ROUND][NAME_MAX + 1];
};

/* Behind the name of its folder, which @text begins with; NULL: it does not. */
static const char *
name_in(const char *text, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(text, dir, len) == 0 && text[len] == '/' ?
		text + len + 1 :
		NULL;
}

static void
note_used(struct round *r, const char *name, size_t len)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (!r->is_used[i] && strncmp(r->name[i], name, len) == 0 &&
			r->name[i][len] == '\0') {
			r->is_used[i] = true;
			r->used++;
		}
}

/* What the process has open. Whoever makes an object does, until it has mapped it:
 * so this is asked first. What is kept from us is of no program of a rank, which has
 * no more rights than we. */
static void
note_open(struct round *r, const char *pid)
{
	char path[300], target[512];
	const struct dirent *d;
	const char *name;
	DIR *fds;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	fds = opendir(path);
	while (fds != NULL && r->used < r->count &&
		(d = readdir(fds)) != NULL) {
		n = readlinkat(dirfd(fds), d->d_name, target,
			sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		name = name_in(target, r->dir);
		if (name != NULL)
			note_used(r, name, strlen(name));
	}
	if (fds != NULL)
		closedir(fds);
}

static void
note_mapped(struct round *r, const char *pid)
{
	char file[300], line[512];
	const char *name;
	FILE *maps;

	snprintf(file, sizeof(file), "/proc/%.16s/maps", pid);
	maps = fopen(file, "re");
	if (maps == NULL)
		return;
	while (r->used < r->count && fgets(line, sizeof(line), maps) != NULL) {
		name = strchr(line, '/');
		name = name == NULL ? NULL : name_in(name, r->dir);
		if (name != NULL)
			note_used(r, name, strcspn(name, "\n"));
	}
	fclose(maps);
}

/* Only root can read another user's processes. Returns false if /proc cannot be read. */
static bool
note_all(struct round *r)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;

	if (proc == NULL)
		return false;
	while (r->used < r->count && (d = readdir(proc)) != NULL)
		if (isdigit((unsigned char)d->d_name[0])) {
			note_open(r, d->d_name);
			note_mapped(r, d->d_name);
		}
	closedir(proc);
	return true;
}

/* Is it called as those that libraries make, by nobody who lives? */
static bool
is_left(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i].begin);
		pid_t pid;

		if (strncmp(name, known[i].begin, len) != 0)
			continue;
		if (known[i].pid_at == -1)
			return true;
		pid = pid_in(name + len, known[i].pid_at,
			known[i].pid_at == 0 ? 10 : 16);
		return pid != 0 && !lives(pid);
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

/* False: there are no more. */
static bool
collect(struct round *r, DIR *dir, int64_t since)
{
	const struct dirent *d;

	r->count = r->used = 0;
	while (r->count < ROUND && (d = readdir(dir)) != NULL)
		if (is_left(d->d_name) &&
			is_ours(dirfd(dir), d->d_name, since)) {
			r->is_used[r->count] = false;
			snprintf(r->name[r->count++], sizeof(r->name[0]), "%s",
				d->d_name);
		}
	return r->count > 0;
}

uint32_t
shm_sweep(const char *path, int64_t since, shm_fn *fn, void *ctx)
{
	struct round r = { .dir = path };
	DIR *dir = opendir(path);
	uint32_t removed = 0;

	while (dir != NULL && collect(&r, dir, since) && note_all(&r))
		for (uint32_t i = 0; i < r.count; i++) {
			if (r.is_used[i] ||
				unlinkat(dirfd(dir), r.name[i], 0) == -1)
				continue;
			removed++;
			if (fn != NULL)
				fn(r.name[i], ctx);
		}
	if (dir != NULL)
		closedir(dir);
	return removed;
}
