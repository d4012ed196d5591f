/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.c - see leaf.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/dents.h"
#include "base/fd.h"
#include "proc/cgroup.h"
#include "proc/leaf.h"

#define DEPTH_MAX 8 /* groups that ranks make in their own */

/* Where version 2 is mounted: alone, or beside version 1. */
static const char *const mounts[] = { "/sys/fs/cgroup",
	"/sys/fs/cgroup/unified" };

bool
leaf_look(void)
{
	return getenv("INVOCATION_ID") != NULL ||
		access("/sys/fs/cgroup/cgroup.type", F_OK) == 0;
}

static bool
is_marked(int dir)
{
	char value[2];

	return (fgetxattr(dir, "user.delegate", value, sizeof(value)) == 1 &&
		       value[0] == '1') ||
		(fgetxattr(dir, "trusted.delegate", value, sizeof(value)) ==
				1 &&
			value[0] == '1');
}

/* The top of what can be seen here, and not of the machine; and ours. */
static bool
is_own_top(int dir, const char *path)
{
	struct stat st;

	return strcmp(path, "/") == 0 && fstat(dir, &st) == 0 &&
		st.st_uid == geteuid() &&
		faccessat(dir, "cgroup.type", F_OK, 0) == 0;
}

/* The folder of the group @path; -1. */
static int
open_group(const char *path)
{
	char full[CGROUP_DIR_MAX];
	int dir = -1;

	for (unsigned i = 0; dir == -1 && i < 2; i++) {
		if (snprintf(full, sizeof(full), "%s%s/cgroup.procs", mounts[i],
			    path) >= (int)sizeof(full))
			return -1;
		if (access(full, W_OK) == -1)
			continue;
		*strrchr(full, '/') = '\0';
		dir = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return dir;
}

static void
name_it(struct leaves *l, const char *job)
{
	*l = (struct leaves){ .own = -1, .dir = -1 };
	snprintf(l->job, sizeof(l->job), "xrun-%.70s", job);
}

static bool
open_dir(struct leaves *l)
{
	l->dir = openat(l->own, l->job,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return l->dir != -1;
}

/* The folder of our own group, if it was delegated; -1. */
static int
open_delegated(void)
{
	char *path = cgroup_path(0);
	int own = path == NULL ? -1 : open_group(path);

	if (own != -1 && !is_marked(own) && !is_own_top(own, path)) {
		fd_close(own);
		own = -1;
	}
	free(path);
	return own;
}

void
leaf_open(struct leaves *l, const char *job)
{
	name_it(l, job);
	l->own = open_delegated();
	if (l->own != -1 && mkdirat(l->own, l->job, 0755) == 0) {
		l->on = open_dir(l);
		if (!l->on)
			unlinkat(l->own, l->job, AT_REMOVEDIR);
	}
	if (!l->on)
		leaf_close(l);
}

enum leaf_can
leaf_can(void)
{
	int own = leaf_look() ? open_delegated() : -1;
	bool kill;

	if (own == -1)
		return LEAF_NONE;
	kill = faccessat(own, "cgroup.kill", F_OK, 0) == 0;
	fd_close(own);
	return kill ? LEAF_KILL : LEAF_MAKE;
}

const char *
leaf_id(const struct leaves *l, char out[static LEAF_ID_MAX])
{
	struct stat st;

	out[0] = '\0';
	if (l->dir != -1 && fstat(l->dir, &st) == 0)
		snprintf(out, LEAF_ID_MAX, "%llu:%llu",
			(unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino);
	return out;
}

bool
leaf_reopen(struct leaves *l, const char *group, const char *job,
	const char *id)
{
	char found[LEAF_ID_MAX];
	struct stat st;

	name_it(l, job);
	l->own = open_group(group);
	/* Without a group, openat(2) fails with EBADF. */
	l->on = open_dir(l) && fstat(l->dir, &st) == 0 &&
		st.st_uid == geteuid() && strcmp(leaf_id(l, found), id) == 0;
	if (!l->on)
		leaf_close(l);
	return l->on;
}

int
leaf_make(const struct leaves *l, uint32_t rank)
{
	char name[48];

	snprintf(name, sizeof(name), "rank-%04u", rank);
	if (mkdirat(l->dir, name, 0755) == -1 && errno != EEXIST)
		return -1;
	snprintf(name, sizeof(name), "rank-%04u/cgroup.procs", rank);
	return openat(l->dir, name, O_WRONLY | O_CLOEXEC);
}

static uint64_t
count_of(const struct leaves *l, uint32_t rank, const char *file,
	const char *key)
{
	char name[48], text[1024];
	ssize_t n = -1;
	int fd;

	snprintf(name, sizeof(name), "rank-%04u/%s", rank, file);
	fd = openat(l->dir, name, O_RDONLY | O_CLOEXEC);
	if (fd != -1)
		n = fd_read_some(fd, text, sizeof(text) - 1);
	fd_close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return cgroup_field(text, key);
}

uint64_t
leaf_kills(const struct leaves *l, uint32_t rank)
{
	return count_of(l, rank, "memory.events", "oom_kill");
}

uint64_t
leaf_refused(const struct leaves *l, uint32_t rank)
{
	return count_of(l, rank, "pids.events", "max");
}

/* Kernels before 5.14 have no such file; then there is only the removal. */
void
leaf_kill(const struct leaves *l)
{
	int fd = openat(l->dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);

	if (fd != -1 && write(fd, "1", 1) < 0)
		errno = 0; /* as if it were not there */
	fd_close(fd);
}

static bool remove_group(int parent, const char *name, int depth);

/* What stands in a group, files of the kernel aside. */
static bool
remove_below(int dir, int depth)
{
	struct dents names;
	const struct dent *d;
	bool gone = true;

	lseek(dir, 0, SEEK_SET);
	while (dents_read(&names, dir))
		while ((d = dents_next(&names)) != NULL)
			if (d->type == DT_DIR)
				gone = remove_group(dir, d->name, depth) &&
					gone;
	return gone;
}

static bool
remove_group(int parent, const char *name, int depth)
{
	int dir;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return true;
	if (depth == 0)
		return false;
	dir = openat(parent, name,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir == -1)
		return errno == ENOENT;
	remove_below(dir, depth - 1);
	fd_close(dir);
	return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool
leaf_remove(struct leaves *l)
{
	if (!l->on)
		return true;
	if (!remove_group(l->own, l->job, DEPTH_MAX))
		return false;
	leaf_close(l);
	return true;
}

void
leaf_close(struct leaves *l)
{
	l->on = false;
	fd_close(l->dir);
	fd_close(l->own);
	l->dir = l->own = -1;
}
