/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - a job's folder from its beginning to its end, and the files that xrun
 * writes into it; see state.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/state/retain.h"
#include "launcher/state/state_inner.h"

#define STATE_ROOM 256 /* blocks and inodes that are free after a clean-up */

enum xr_status
state_cannot(struct xr_error *err, const char *path)
{
	return fail(err, XR_E_SYS, "%s: %s%s", path, strerror(errno),
		STATE_ADVICE);
}

static void
name_attempt(struct state *st)
{
	size_t len = strlen(st->dir);

	snprintf(st->attempt, len + STATE_NUMBER_ROOM, "%s/%u", st->dir,
		st->number);
}

enum xr_status
state_open_attempt(struct state *st, struct xr_error *err)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", st->number);
	st->attempt = xcalloc(1, strlen(st->dir) + STATE_NUMBER_ROOM);
	name_attempt(st);
	if (!st->made_attempt)
		st->made_attempt = mkdirat(st->dir_fd, name, 0700) == 0;
	if (!st->made_attempt)
		return state_cannot(err, st->attempt);
	st->attempt_fd =
		openat(st->dir_fd, name, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return st->attempt_fd == -1 ? state_cannot(err, st->attempt) : XR_OK;
}

int
state_make_next(const struct state *st)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", st->number + 1);
	if (mkdirat(st->dir_fd, name, 0700) == -1)
		return -1;
	return openat(st->dir_fd, name, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int
state_advance(struct state *st, int64_t bytes, int fd)
{
	int kept;

	st->number++;
	st->bytes_before += bytes;
	if (st->dir_fd == -1)
		return 0;
	kept = dup3(fd, st->attempt_fd, O_CLOEXEC);
	fd_close(fd);
	name_attempt(st);
	return kept == -1 ? -1 : 0;
}

static enum xr_status
open_folder(struct state *st, struct xr_error *err)
{
	enum xr_status status;
	const char *name;
	int place = state_place(st, &name);

	if (st->dir_fd == -1)
		st->dir_fd = openat(place, name,
			O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (st->dir_fd == -1)
		return state_cannot(err, st->dir);
	/* Who may write where it was made can give its name to another. */
	if (st->root == NULL && !state_is_ours(st->dir_fd))
		return fail(err, XR_E_INVAL,
			"%s: was made, and is another user's or open to all: so its file system shows it, or somebody changed it\t--log-dir DIR on another file system, or --no-logs",
			st->dir);
	status = state_open_attempt(st, err);
	if (status != XR_OK)
		return status;
	if (fault(FAULT_STATE_LOCK, FAULT_ANY) != 0 ||
		state_take_lock(st) == -1)
		return state_cannot(err, st->dir);
	return XR_OK;
}

static void
close_all(struct state *st)
{
	fd_close(st->dir_fd);
	fd_close(st->attempt_fd);
	fd_close(st->lock_fd);
	fd_close(st->place_fd);
	st->dir_fd = st->attempt_fd = st->lock_fd = st->place_fd = -1;
}

static enum xr_status
state_try(struct state *st, const struct state_wish *wish, struct xr_error *err)
{
	enum xr_status status;

	*st = STATE_NONE;
	if (fault(FAULT_STATE_OPEN, FAULT_ANY) != 0)
		return state_cannot(err, "the job's folder");
	status = state_choose_folder(st, wish, err);
	if (status == XR_OK && wish->name == NULL)
		status = open_folder(st, err);
	if (status != XR_OK) {
		state_remove(st);
		close_all(st);
		state_fini(st);
	}
	return status;
}

/* As many folders and files as some ranks need. */
static bool
state_has_room(void *ctx)
{
	struct statvfs fs;

	/* Some file systems do not count their inodes. */
	return statvfs(ctx, &fs) == 0 && fs.f_bavail >= STATE_ROOM &&
		(fs.f_files == 0 || fs.f_favail >= STATE_ROOM);
}

/* Returns true if a retained job was removed. */
static bool
state_make_room(void)
{
	char *root = state_home();
	struct retain_freed freed = { 0 };

	if (root != NULL)
		freed = retain_free(root, state_has_room, root);
	free(root);
	return freed.jobs > 0;
}

bool
state_is_full(const struct xr_error *err)
{
	return err->sys == ENOSPC || err->sys == EDQUOT;
}

enum xr_status
state_open(struct state *st, const struct state_wish *wish,
	struct xr_error *err)
{
	struct xr_error own = { 0 };
	enum xr_status status;

	err = err != NULL ? err : &own;
	*st = STATE_NONE;
	if (!wish->logs && wish->name != NULL)
		snprintf(st->id, sizeof(st->id), "%s", wish->name);
	else if (!wish->logs)
		state_next_id(st, wish->batch, 0);
	if (!wish->logs)
		return XR_OK;
	status = state_try(st, wish, err);
	if (status != XR_OK && state_is_full(err) && state_make_room())
		status = state_try(st, wish, err);
	return status;
}

void
state_fini(struct state *st)
{
	free(st->root);
	free(st->dir);
	free(st->attempt);
	st->root = st->dir = st->attempt = NULL;
}

/* Of a disk that is full; errno survives. */
static void
give_back(int dir, const char *name)
{
	int sys = errno;

	unlinkat(dir, name, 0);
	errno = sys;
}

int
state_write(const struct state *st, const char *name, const char *text,
	size_t len)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, fd, made = -1;
	char temp[64];

	if (fault(FAULT_STATE_WRITE, FAULT_ANY) != 0)
		return -1;
	snprintf(temp, sizeof(temp), ".%s.new", name);
	fd = openat(st->dir_fd, temp, flags, 0600);
	if (fd == -1 && errno == EEXIST) { /* of a write that failed; a link */
		unlinkat(st->dir_fd, temp, 0);
		fd = openat(st->dir_fd, temp, flags, 0600);
	}
	if (fd == -1)
		return -1;
	if (fd_write_all(fd, text, len) == 0)
		made = renameat(st->dir_fd, temp, st->dir_fd, name);
	fd_close(fd);
	if (made == -1)
		give_back(st->dir_fd, temp);
	return made;
}

void
state_latest(const struct state *st)
{
	char temp[PATH_MAX], link[PATH_MAX];
	int made;

	if (st->root == NULL || st->dir == NULL ||
		snprintf(temp, sizeof(temp), "%s/.latest.%s", st->root,
			st->id) >= (int)sizeof(temp))
		return;
	snprintf(link, sizeof(link), "%s/latest", st->root);
	made = symlink(st->id, temp);
	if (made == -1 && errno == EEXIST && unlink(temp) == 0)
		made = symlink(st->id, temp); /* one was killed right here */
	if (made == 0 && rename(temp, link) == -1)
		unlink(temp);
}

int
state_open_words(struct state *st)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
	int fd = openat(st->attempt_fd, STATE_WORDS, flags, 0600);

	st->made_words = st->made_words || fd != -1;
	return fd;
}

/* Folders that were made for bytes which did not come; and the words of a job
 * that is told of nowhere. */
static void
empty_attempt(const struct state *st, const char *attempt)
{
	const struct dirent *d;
	int fd =
		openat(st->dir_fd, attempt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (strncmp(d->d_name, "rank-", 5) == 0)
			unlinkat(fd, d->d_name, AT_REMOVEDIR);
	if (st->made_words)
		unlinkat(fd, STATE_WORDS, 0);
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(fd);
}

/* False if somebody put something into it: then all of it stays. */
static bool
remove_attempt(const struct state *st)
{
	char attempt[16];

	if (!st->made_attempt)
		return true;
	snprintf(attempt, sizeof(attempt), "%u", st->number);
	empty_attempt(st, attempt);
	return unlinkat(st->dir_fd, attempt, AT_REMOVEDIR) == 0 ||
		errno == ENOENT;
}

/* Only what this run made; a folder with more in it stays. */
bool
state_remove(const struct state *st)
{
	static const char *const files[] = { "job.json", ".job.json.new",
		"events.jsonl", "lock" };
	const char *name;
	int place;

	if (!remove_attempt(st)) {
		state_close(st);
		return false;
	}
	live_leave(st);
	for (unsigned i = 0;
		st->made_lock && i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(st->dir_fd, files[i], 0);
	if (st->made) {
		place = state_place(st, &name);
		unlinkat(place, name, AT_REMOVEDIR);
	} else if (!st->made_lock) {
		state_close(st); /* as it was before this attempt */
	}
	return true;
}
