/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - the lock of a job's folder: who holds it is the job, and a byte in it
 * says that the job is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/state/state_inner.h"

/* Of an xrun that was killed on the way to its lock; nobody holds it. */
static bool
drop_left(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	bool gone = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
		unlinkat(dir, name, 0) == 0;

	fd_close(fd);
	if (!gone)
		errno = EEXIST;
	return gone;
}

bool
state_is_lock(const struct state *st)
{
	struct stat named, held;

	return fstatat(st->dir_fd, "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstat(st->lock_fd, &held) == 0 && named.st_ino == held.st_ino &&
		named.st_dev == held.st_dev;
}

/* Locked before it has its name: whoever finds it finds it held. Where files
 * have one name only (FAT, object stores), right after. */
int
state_take_lock(struct state *st)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	char temp[STATE_ID_MAX + 8];

	st->lock_fd = live_lock(st);
	st->made_lock = st->lock_fd != -1;
	if (st->made_lock)
		return 0;
	snprintf(temp, sizeof(temp), ".lock.%s", st->id);
	st->lock_fd = openat(st->dir_fd, temp, flags, 0600);
	if (st->lock_fd == -1 && errno == EEXIST && drop_left(st->dir_fd, temp))
		st->lock_fd = openat(st->dir_fd, temp, flags, 0600);
	if (st->lock_fd == -1)
		return -1;
	if (flock(st->lock_fd, LOCK_EX | LOCK_NB) == 0)
		st->made_lock =
			linkat(st->dir_fd, temp, st->dir_fd, "lock", 0) == 0 &&
			/* Somebody may have taken the name for a leftover. */
			state_is_lock(st);
	unlinkat(st->dir_fd, temp, 0);
	if (st->made_lock)
		return 0;
	fd_close(st->lock_fd);
	st->lock_fd = openat(st->dir_fd, "lock", flags, 0600);
	st->made_lock = st->lock_fd != -1;
	return st->made_lock ? flock(st->lock_fd, LOCK_EX | LOCK_NB) : -1;
}

void
state_close(const struct state *st)
{
	/* A hole: there is room for it on a full disk. */
	if (st->lock_fd != -1 && ftruncate(st->lock_fd, 1) == -1)
		return; /* somebody will read job.json, then */
	live_leave(st);
}
