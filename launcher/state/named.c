/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named.c - jobs that somebody named (--job): one folder, attempt after attempt.
 *
 * Who holds its lock is the job of that name. Of several that start at once one
 * gets it, whether the folder was there or is being made, or removed: a lock
 * counts only while it has its name, and who finds none looks again for a while.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cjson/cJSON.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/state/jobs.h"
#include "launcher/state/state_inner.h"

#define TRIES      100
#define TRY_MS     10
#define RUNS_TRIES 300 /* who only looks after it holds a lock for seconds */
#define ASK_EVERY  5
#define SHARED_TRY 20 /* a process that waited for its end holds it no longer */

enum take {
	TAKEN,
	AGAIN,   /* somebody is making or removing it */
	RUNS,    /* somebody has it */
	STRANGE, /* no job's */
	OTHERS,  /* another user's, or open to all */
	BROKEN,  /* errno */
};

/* Ends a try. A folder that it made and that is empty is removed; errno survives. */
static void
let_go(struct state *st)
{
	int sys = errno, place;
	const char *name;

	fd_close(st->lock_fd);
	fd_close(st->dir_fd);
	st->lock_fd = st->dir_fd = -1;
	if (st->made) {
		place = state_place(st, &name);
		unlinkat(place, name, AT_REMOVEDIR);
	}
	st->made = false;
	errno = sys;
}

/* No lock: it is being made, or it never will be. */
static enum take
take_unlocked(struct state *st, bool last)
{
	if (!st->made && !last)
		return AGAIN;
	if (!st->made && !state_is_empty(st->dir_fd))
		return STRANGE;
	if (state_take_lock(st) == 0)
		return TAKEN;
	return errno == EEXIST || errno == EWOULDBLOCK || errno == ENOENT ?
		AGAIN :
		BROKEN;
}

/* Makes the folder, and those above it that do not exist. */
static bool
named_make(struct state *st)
{
	char link[PATH_MAX];
	const char *name;
	int place = state_place(st, &name);
	int parents;

	if (mkdirat(place, name, 0700) == 0)
		return true;
	if (errno != ENOENT)
		return false;
	parents = st->place_fd == -1 ? state_make_parents(st->dir) :
				       state_walk_place(st, link);
	place = state_place(st, &name);
	return parents == 0 && mkdirat(place, name, 0700) == 0;
}

/* One try. */
static enum take
take(struct state *st, bool last)
{
	const char *name;
	int place;

	st->made = named_make(st);
	if (!st->made && errno != EEXIST)
		return BROKEN;
	place = state_place(st, &name);
	st->dir_fd = openat(place, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (st->dir_fd == -1)
		return errno == ENOENT ? AGAIN : BROKEN;
	/* Whoever can write there would have a say in the job. */
	if (!state_is_ours(st->dir_fd))
		return OTHERS;
	st->lock_fd =
		openat(st->dir_fd, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (st->lock_fd == -1)
		return errno == ENOENT ? take_unlocked(st, last) : BROKEN;
	if (flock(st->lock_fd, LOCK_EX | LOCK_NB) == -1)
		return errno == EWOULDBLOCK ? RUNS : BROKEN;
	return state_is_lock(st) ? TAKEN : AGAIN;
}

/* A new lock in place of the one whose shared lock is held here, with its size. */
static bool
put_lock(struct state *st)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	const char *temp = ".lock.new";
	struct stat old;
	int fd;

	unlinkat(st->dir_fd, temp, 0); /* of an xrun that was killed here */
	fd = openat(st->dir_fd, temp, flags, 0600);
	if (fd != -1 && fstat(st->lock_fd, &old) == 0 &&
		ftruncate(fd, old.st_size) == 0 &&
		flock(fd, LOCK_EX | LOCK_NB) == 0 &&
		renameat(st->dir_fd, temp, st->dir_fd, "lock") == 0) {
		fd_close(st->lock_fd);
		st->lock_fd = fd;
		return true;
	}
	fd_close(fd);
	unlinkat(st->dir_fd, temp, 0);
	return false;
}

/* A process that waits for the end of a job gets its lock, shared, when the job ends. One
 * that is stopped at this moment keeps it. No job runs then, so that the lock can be
 * replaced, by one xrun at a time: that which has locked the folder. */
static enum take
take_shared(struct state *st)
{
	int place = openat(st->dir_fd, ".", O_DIRECTORY | O_CLOEXEC);
	enum take what = RUNS;

	if (place != -1 && flock(place, LOCK_EX | LOCK_NB) == 0) {
		st->lock_fd = openat(st->dir_fd, "lock",
			O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (st->lock_fd != -1 &&
			flock(st->lock_fd, LOCK_SH | LOCK_NB) == 0 &&
			state_is_lock(st) && put_lock(st))
			what = TAKEN;
	}
	fd_close(place);
	return what;
}

/* By the kernel's own list; 0 where it is another machine's. */
static int
lock_pid(const char *dir)
{
	char path[PATH_MAX], line[256];
	unsigned long inode;
	unsigned major, minor;
	struct stat st;
	int pid = 0, found = 0;
	FILE *locks;

	if (snprintf(path, sizeof(path), "%s/lock", dir) >= (int)sizeof(path) ||
		stat(path, &st) == -1)
		return 0;
	locks = fopen("/proc/locks", "re");
	while (locks != NULL && fgets(line, sizeof(line), locks) != NULL)
		if (sscanf(line, "%*u: FLOCK %*s WRITE %d %x:%x:%lu", &pid,
			    &major, &minor, &inode) == 4 &&
			inode == st.st_ino && major == major(st.st_dev) &&
			minor == minor(st.st_dev))
			found = pid;
	if (locks != NULL)
		fclose(locks);
	return found;
}

/* Who may be told to end: the xrun of that job. Others have its lock for a
 * while, to look after it. 0 if it is nobody, or cannot be told. */
static int
holder_of(const char *dir)
{
	char path[32];
	cJSON *json = jobs_read(dir);
	int64_t told = jobs_number(json, "pid", 0);
	int pid = told < INT_MAX ? (int)told : 0;
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (pid != 0 &&
		(pid != lock_pid(dir) || stat(path, &st) == -1 ||
			st.st_uid != geteuid()))
		pid = 0;
	cJSON_Delete(json);
	return pid;
}

static enum xr_status
refuse(const struct state *st, const char *name, enum take why, int pid,
	struct xr_error *err)
{
	if (why == RUNS && pid > 0)
		return fail(err, XR_E_EXISTS,
			"--job: %s runs (pid %d, %s)\tanother name, or xrun stop %s",
			name, pid, st->dir, name);
	if (why == RUNS)
		return fail(err, XR_E_EXISTS,
			"--job: %s runs (%s)\tanother name", name, st->dir);
	if (why == BROKEN)
		return state_cannot(err, st->dir);
	if (why == OTHERS)
		return fail(err, XR_E_EXISTS,
			"--job: %s is there, and other users may write into it\tanother name, or --log-dir DIR",
			st->dir);
	return fail(err, XR_E_EXISTS,
		"--job: %s is there, and not the folder of a job\tanother name",
		st->dir);
}

/* The one behind the last. */
uint32_t
state_next_number(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *d;
	uint32_t next = 0;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		char *end;
		unsigned long n = strtoul(d->d_name, &end, 10);

		if (d->d_name[0] >= '0' && d->d_name[0] <= '9' &&
			*end == '\0' && n >= next && n < 1000000000)
			next = (uint32_t)n + 1;
	}
	if (dir != NULL)
		closedir(dir);
	return next;
}

/* What the attempts before have written, for whoever makes room. */
static int64_t
bytes_of(const char *dir)
{
	cJSON *json = jobs_read(dir);
	int64_t bytes = jobs_number(json, "bytes", 0) +
		jobs_number(json, "bytes_before", 0);

	cJSON_Delete(json);
	return bytes;
}

/* In D/NAME; in D itself if its name has {job} in it. */
static enum xr_status
find_place(struct state *st, const struct state_wish *wish,
	struct xr_error *err)
{
	enum xr_status status;
	char *dir, link[PATH_MAX];

	if (wish->log_dir == NULL) {
		status = state_find_root(&st->root, err);
		st->dir = xasprintf("%s/%s", st->root, wish->name);
		return status;
	}
	dir = state_expand(wish->log_dir, wish->name);
	if (dir == NULL)
		return fail(err, XR_E_NOMEM, "--log-dir: no memory for it");
	st->dir = state_dir_has_job(wish->log_dir) ?
		xstrdup(dir) :
		xasprintf("%s/%s", dir, wish->name);
	free(dir);
	return state_walk_place(st, link) == 0 ?
		XR_OK :
		state_refuse_link(err, link, st->dir);
}

/* The job is open again; what was lost of it is ended first. */
static void
reopen(struct state *st, const struct state_wish *wish)
{
	struct stat lock;

	if (fstat(st->lock_fd, &lock) == 0 && lock.st_size == 0 &&
		wish->lost != NULL)
		wish->lost(st);
	futimens(st->lock_fd, NULL); /* as old as this attempt */
	(void)!ftruncate(st->lock_fd, 0);
}

static enum xr_status
begin_attempt(struct state *st, const struct state_wish *wish,
	struct xr_error *err)
{
	enum xr_status status;

	if (!st->made_lock)
		reopen(st, wish);
	if (!st->live)
		live_enter(st);
	st->number = state_next_number(st->dir);
	status = state_open_attempt(st, err);
	if (status != XR_OK || st->number == 0)
		return status;
	st->bytes_before = bytes_of(st->dir);
	return XR_OK;
}

enum xr_status
state_open_named(struct state *st, const struct state_wish *wish,
	struct xr_error *err)
{
	enum xr_status status = find_place(st, wish, err);
	enum take what = AGAIN;
	int pid = 0;

	if (status != XR_OK)
		return status;
	snprintf(st->id, sizeof(st->id), "%s", wish->name);
	for (int i = 0; i < (what == RUNS ? RUNS_TRIES : TRIES); i++) {
		what = take(st, i + 1 >= TRIES);
		if (what == RUNS && i >= SHARED_TRY) {
			fd_close(st->lock_fd);
			st->lock_fd = -1;
			what = take_shared(st);
		}
		if (what == TAKEN)
			return begin_attempt(st, wish, err);
		let_go(st);
		if (what == RUNS && i % ASK_EVERY == 0)
			pid = holder_of(st->dir);
		if (what == STRANGE || what == OTHERS || what == BROKEN ||
			pid != 0)
			break;
		poll(NULL, 0, TRY_MS);
	}
	return refuse(st, wish->name, what, pid, err);
}
