/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - see state.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/brace.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/state/state_inner.h"

#define ADVICE "\t--log-dir DIR or --no-logs"

const char *
state_mount(const char *path, char at[static PATH_MAX])
{
	char *slash, *end;
	struct stat st, above;

	if (realpath(path, at) == NULL || stat(at, &st) == -1)
		return path;
	for (end = at + strlen(at); end > at + 1; end = slash) {
		slash = strrchr(at, '/');
		*slash = '\0';
		if (stat(slash == at ? "/" : at, &above) == -1 ||
			above.st_dev != st.st_dev) {
			*slash = '/';
			return at;
		}
	}
	return "/";
}

/* Four of [a-z0-9] without l, o, 0 and 1, a letter first: said aloud and typed
 * without doubt; 24 * 32^3 of them. */
static void
make_id(char out[static 5])
{
	static const char set[] = "abcdefghijkmnpqrstuvwxyz23456789";
	unsigned char random[4];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memcpy(random, &(uint32_t){ (uint32_t)getpid() * 2654435761u },
			4);
	out[0] = set[random[0] % 24];
	for (int i = 1; i < 4; i++)
		out[i] = set[random[i] % 32];
	out[4] = '\0';
}

bool
state_name_valid(const char *name)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	return len > 0 && len <= STATE_ID_MAX && strspn(name, set) == len &&
		name[0] != '.' && name[0] != '-' && strcmp(name, "latest") != 0;
}

/* Like mkdir -p of what stands before the last name, 0700 for what is made. */
int
state_make_parents(const char *path)
{
	char *copy = xstrdup(path), *end = copy + strlen(copy);
	int made = 0;

	while (end > copy + 1 && end[-1] == '/')
		*--end = '\0';
	for (char *p = copy + 1; made == 0 && p < end; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) == -1 && errno != EEXIST)
			made = -1;
		*p = '/';
	}
	free(copy);
	return made;
}

static int
make_path(const char *path)
{
	if (state_make_parents(path) == -1)
		return -1;
	return mkdir(path, 0700) == -1 && errno != EEXIST ? -1 : 0;
}

enum xr_status
state_cannot(struct xr_error *err, const char *path)
{
	return fail(err, XR_E_SYS, "%s: %s%s", path, strerror(errno), ADVICE);
}

/* @want, then @want.2 and so on: of several in one batch job each is one. */
static void
next_id(struct state *st, const char *want, int taken)
{
	if (want == NULL)
		make_id(st->id);
	else if (taken == 0)
		snprintf(st->id, sizeof(st->id), "%s", want);
	else
		snprintf(st->id, sizeof(st->id), "%s.%d", want, taken + 1);
}

/* A new folder below @root, named by a fresh id. */
static enum xr_status
make_folder(struct state *st, const char *root, const char *want,
	struct xr_error *err)
{
	int taken = 0;

	for (int tries = 0; tries < 1000; tries++) {
		next_id(st, want, taken);
		free(st->dir);
		st->dir = xasprintf("%s/%s", root, st->id);
		st->made = mkdir(st->dir, 0700) == 0;
		if (st->made)
			return XR_OK;
		if (errno == ENOENT && tries == 0 && make_path(root) == 0)
			continue;
		if (errno != EEXIST)
			return state_cannot(err, st->dir);
		taken++;
	}
	return fail(err, XR_E_EXISTS, "%s: no free job id in 1000 tries%s",
		root, ADVICE);
}

bool
state_is_empty(int fd)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own == -1 ? NULL : fdopendir(own);
	const struct dirent *d;
	int entries = 0;

	if (dir == NULL) {
		fd_close(own);
		return false;
	}
	while ((d = readdir(dir)) != NULL)
		entries += strcmp(d->d_name, ".") != 0 &&
			strcmp(d->d_name, "..") != 0 &&
			strncmp(d->d_name, ".lock.", 6) != 0;
	closedir(dir);
	return entries == 0;
}

/* What --log-dir knows. */
enum { NAME_JOB, NAME_HOST };
static const char *const names[] = { "job", "host", NULL };

enum xr_status
state_dir_check(const char *text, struct xr_error *err)
{
	return brace_check((struct span){ text, strlen(text) }, names, err);
}

bool
state_dir_has_job(const char *text)
{
	return brace_has((struct span){ text, strlen(text) }, names, NAME_JOB);
}

char *
state_expand(const char *text, const char *id)
{
	struct brace b = brace_of((struct span){ text, strlen(text) }, names);
	char host[256], *cwd = NULL;
	struct brace_piece piece;
	struct buf out = { 0 };

	if (text[0] != '/')
		cwd = getcwd(NULL, 0);
	if (cwd != NULL)
		buf_fmt(&out, "%s/", cwd);
	free(cwd);
	while (brace_next(&b, &piece, NULL) == XR_OK &&
		piece.name != BRACE_END) {
		if (piece.name == BRACE_TEXT)
			buf_put(&out, piece.text.at, piece.text.len);
		else if (piece.name == NAME_JOB)
			buf_put_text(&out, id);
		else
			buf_put_text(&out, host_name(host, sizeof(host)));
	}
	if (out.bad != XR_OK)
		buf_fini(&out);
	return out.data;
}

static bool
is_ours(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && state_is_trusted(&st);
}

/*
 * Of all who find @dir absent or empty at once, it goes to the one whose "0" it
 * is; and only that one writes into it or takes anything away. In one that
 * others may write into, somebody else would hold names of ours.
 *
 * Returns  1: it is ours; 0: it is used, or others'; -1 with errno
 */
static int
claim(struct state *st, const char *dir)
{
	bool made = mkdir(dir, 0700) == 0;
	int ours = 0;

	if (!made && errno == ENOENT) {
		if (state_make_parents(dir) == -1)
			return -1;
		made = mkdir(dir, 0700) == 0;
	}
	if (!made && errno != EEXIST)
		return -1;
	st->dir_fd =
		open(dir, O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
	if (st->dir_fd == -1)
		return errno == EACCES ? 0 : -1;
	if (is_ours(st->dir_fd) && (made || state_is_empty(st->dir_fd))) {
		st->made_attempt = mkdirat(st->dir_fd, "0", 0700) == 0;
		ours = st->made_attempt ? 1 : errno == EEXIST ? 0 : -1;
	}
	st->made = made && ours != 0;
	if (ours == 1)
		return ours;
	fd_close(st->dir_fd);
	st->dir_fd = -1;
	return ours;
}

/* Absent or empty: @dir is the folder as a whole. Else it is one in it. */
static enum xr_status
use_log_dir(struct state *st, const char *dir, const char *want,
	struct xr_error *err)
{
	int ours = -1;

	if (state_is_strange_link(dir))
		return fail(err, XR_E_INVAL,
			"--log-dir: %s: is another user's symbolic link", dir);
	st->dir = xstrdup(dir);
	/* Another job may just be taking it away again. */
	for (int tries = 0; ours == -1 && tries < 10; tries++) {
		ours = claim(st, dir);
		if (ours == -1 && errno != ENOENT)
			break;
	}
	if (ours == -1)
		return state_cannot(err, dir);
	return ours == 1 ? XR_OK : make_folder(st, dir, want, err);
}

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

/* Is what bears the name what we hold? While we came to it, somebody may have
 * taken our temporary name for a leftover. */
static bool
is_lock(const struct state *st)
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
			is_lock(st);
	unlinkat(st->dir_fd, temp, 0);
	if (st->made_lock)
		return 0;
	fd_close(st->lock_fd);
	st->lock_fd = openat(st->dir_fd, "lock", flags, 0600);
	st->made_lock = st->lock_fd != -1;
	return st->made_lock ? flock(st->lock_fd, LOCK_EX | LOCK_NB) : -1;
}

enum xr_status
state_open_attempt(struct state *st, struct xr_error *err)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", st->number);
	st->attempt = xasprintf("%s/%s", st->dir, name);
	if (!st->made_attempt)
		st->made_attempt = mkdirat(st->dir_fd, name, 0700) == 0;
	if (!st->made_attempt)
		return state_cannot(err, st->attempt);
	st->attempt_fd =
		openat(st->dir_fd, name, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return st->attempt_fd == -1 ? state_cannot(err, st->attempt) : XR_OK;
}

static enum xr_status
open_folder(struct state *st, struct xr_error *err)
{
	enum xr_status status;

	if (st->dir_fd == -1)
		st->dir_fd =
			open(st->dir, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (st->dir_fd == -1)
		return state_cannot(err, st->dir);
	/* Who may write where it was made can give its name to another. */
	if (st->root == NULL && !is_ours(st->dir_fd)) {
		errno = EPERM;
		return state_cannot(err, st->dir);
	}
	status = state_open_attempt(st, err);
	if (status != XR_OK)
		return status;
	if (fault(FAULT_STATE_LOCK, FAULT_ANY) != 0 ||
		state_take_lock(st) == -1)
		return state_cannot(err, st->dir);
	return XR_OK;
}

/* Both --log-dir, with its words, and the state folder. */
static enum xr_status
choose_folder(struct state *st, const struct state_wish *wish,
	struct xr_error *err)
{
	enum xr_status status;
	char *dir;

	if (wish->name != NULL)
		return state_open_named(st, wish, err);
	if (wish->log_dir == NULL) {
		status = state_find_root(&st->root, err);
		return status != XR_OK ?
			status :
			make_folder(st, st->root, wish->batch, err);
	}
	next_id(st, wish->batch, 0);
	dir = state_expand(wish->log_dir, st->id);
	if (dir == NULL)
		return fail(err, XR_E_NOMEM, "--log-dir: no memory for it");
	status = use_log_dir(st, dir, wish->batch, err);
	free(dir);
	return status;
}

static void
close_all(struct state *st)
{
	fd_close(st->dir_fd);
	fd_close(st->attempt_fd);
	fd_close(st->lock_fd);
	st->dir_fd = st->attempt_fd = st->lock_fd = -1;
}

enum xr_status
state_open(struct state *st, const struct state_wish *wish,
	struct xr_error *err)
{
	enum xr_status status;

	*st = STATE_NONE;
	if (!wish->logs && wish->name != NULL)
		snprintf(st->id, sizeof(st->id), "%s", wish->name);
	else if (!wish->logs)
		next_id(st, wish->batch, 0);
	if (!wish->logs)
		return XR_OK;
	if (fault(FAULT_STATE_OPEN, FAULT_ANY) != 0)
		return state_cannot(err, "the job's folder");
	status = choose_folder(st, wish, err);
	if (status == XR_OK && wish->name == NULL)
		status = open_folder(st, err);
	if (status != XR_OK) {
		state_remove(st);
		close_all(st);
		state_fini(st);
	}
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
state_close(const struct state *st)
{
	/* A hole: there is room for it on a full disk. */
	if (st->lock_fd != -1 && ftruncate(st->lock_fd, 1) == -1)
		return; /* somebody will read job.json, then */
	live_leave(st);
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
void
state_remove(const struct state *st)
{
	static const char *const files[] = { "job.json", ".job.json.new",
		"events.jsonl", "lock" };

	if (!remove_attempt(st)) {
		state_close(st);
		return;
	}
	live_leave(st);
	for (unsigned i = 0;
		st->made_lock && i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(st->dir_fd, files[i], 0);
	if (st->made)
		rmdir(st->dir);
	else if (!st->made_lock)
		state_close(st); /* as it was before this attempt */
}
