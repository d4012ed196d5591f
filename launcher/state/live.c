/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - which jobs are open, without a look at all that ever were.
 *
 * <root>/.live/<id> is a second name of the job's lock. It is made before the
 * lock has its own, and goes when the job is closed: what stands there runs, or
 * lost its xrun. Where files have one name only, jobs are not listed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/dents.h"
#include "base/fd.h"
#include "launcher/state/state_inner.h"

#define FOLDER  ".live"
#define YOUNG_S 2 /* has perhaps not linked its lock yet */

static int
open_folder(const char *root, bool make)
{
	char path[PATH_MAX];
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, fd;

	if (snprintf(path, sizeof(path), "%s/" FOLDER, root) >=
		(int)sizeof(path))
		return -1;
	fd = open(path, flags);
	if (fd != -1 || errno != ENOENT || !make)
		return fd;
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return -1;
	return open(path, flags);
}

/* Is there a name beside "." and ".." and @own? One look, no heap. */
static bool
has_others(int folder, const char *own)
{
	struct dents names;
	const struct dent *d;

	dents_read(&names, folder);
	while ((d = dents_next(&names)) != NULL)
		if (strcmp(d->name, own) != 0)
			return true;
	return false;
}

int
live_lock(struct state *st)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int folder = st->root == NULL ? -1 : open_folder(st->root, true);
	int fd = folder == -1 ? -1 : openat(folder, st->id, flags, 0600);

	if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		st->live = linkat(folder, st->id, st->dir_fd, "lock", 0) == 0;
	if (fd != -1 && !st->live)
		unlinkat(folder, st->id, 0);
	if (st->live)
		st->others = has_others(folder, st->id);
	fd_close(folder);
	if (st->live)
		return fd;
	fd_close(fd);
	return -1;
}

void
live_enter(struct state *st)
{
	int folder = st->root == NULL ? -1 : open_folder(st->root, true);

	if (folder == -1)
		return;
	st->live = linkat(st->dir_fd, "lock", folder, st->id, 0) == 0;
	/* Of an attempt that was lost; its lock may have been replaced. */
	if (!st->live && errno == EEXIST && unlinkat(folder, st->id, 0) == 0)
		st->live = linkat(st->dir_fd, "lock", folder, st->id, 0) == 0;
	st->others = has_others(folder, st->id);
	fd_close(folder);
}

void
live_leave(const struct state *st)
{
	char path[PATH_MAX];

	if (st->live &&
		snprintf(path, sizeof(path), "%s/" FOLDER "/%s", st->root,
			st->id) < (int)sizeof(path))
		unlink(path);
}

/* A lock that never got its name: its xrun was killed on the way to it. */
static bool
is_nobodys(int root, int folder, const char *id)
{
	char lock[NAME_MAX + 8];
	struct stat st;
	bool is = false;
	int fd;

	snprintf(lock, sizeof(lock), "%s/lock", id);
	if (fstatat(root, lock, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		errno != ENOENT)
		return false;
	fd = openat(folder, id, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd != -1 && fstat(fd, &st) == 0 &&
		time(NULL) - st.st_mtime >= YOUNG_S)
		is = flock(fd, LOCK_EX | LOCK_NB) == 0;
	fd_close(fd);
	return is;
}

static void
each_open(const char *root, bool tidy, state_open_fn *fn, void *ctx)
{
	int folder = open_folder(root, false);
	DIR *dir = folder == -1 ? NULL : fdopendir(folder);
	int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *d;

	while (dir != NULL && root_fd != -1 && (d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.' &&
			((tidy && is_nobodys(root_fd, folder, d->d_name)) ||
				fn(ctx, root_fd, d->d_name)))
			unlinkat(folder, d->d_name, 0);
	fd_close(root_fd);
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(folder);
}

void
state_each_open(const char *root, state_open_fn *fn, void *ctx)
{
	each_open(root, true, fn, ctx);
}

void
state_look_open(const char *root, state_open_fn *fn, void *ctx)
{
	each_open(root, false, fn, ctx);
}
