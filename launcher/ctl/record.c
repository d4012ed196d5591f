/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/dents.h"
#include "base/fd.h"
#include "base/mem.h"
#include "launcher/ctl/record.h"

#define RECORD_PREFIX ".job-"
#define RECORD_LINK   ".at-"
#define RECORD_MAX    (64 << 10)
#define RECORD_TRIES  100 /* each of which meets a sweep */

static bool
record_is_name(const char *name)
{
	return strncmp(name, RECORD_PREFIX, strlen(RECORD_PREFIX)) == 0;
}

static bool
record_is_link(const char *name)
{
	return strncmp(name, RECORD_LINK, strlen(RECORD_LINK)) == 0;
}

struct record_search {
	char own[20]; /* the number of a record, as text */
	bool others;
};

/* One read of the folder, which is enough for dozens of jobs. */
static bool
record_search_root(void *ctx, const struct ctl_root *root)
{
	struct record_search *s = ctx;
	struct dents names;
	const struct dent *d;

	dents_read(&names, root->dir);
	while (!s->others && (d = dents_next(&names)) != NULL)
		s->others =
			(record_is_name(d->name) || record_is_link(d->name)) &&
			strcmp(strchr(d->name, '-') + 1, s->own) != 0;
	return !s->others;
}

static void
record_digits(uint64_t number, char out[static 20])
{
	snprintf(out, 20, "%016llx", (unsigned long long)number);
}

bool
ctl_record_others(const struct ctl_record *own)
{
	struct record_search search = { .others = false };

	record_digits(own->number, search.own);
	ctl_root_each(true, record_search_root, &search);
	return search.others;
}

/* Without a link, only a job with the same XDG_RUNTIME_DIR finds the record. */
static char *
record_link_path(const struct ctl_root *root, const char *digits)
{
	struct ctl_root state;
	char *path;

	if (ctl_root_is_common(root) || !ctl_root_open_state(&state))
		return NULL;
	path = xasprintf("%s/" RECORD_LINK "%s", state.path, digits);
	fd_close(state.dir);
	return path;
}

static void
record_make_link(struct ctl_record *record)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s",
		(int)(strrchr(record->path, '/') - record->path), record->path);
	(void)!symlink(folder, record->link);
}

/* Returns true if @fd is locked and has a name: a sweep removes a file that it finds
 * empty and not locked. */
static bool
record_lock(int fd)
{
	struct stat st;

	return flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 &&
		st.st_nlink > 0;
}

/* Returns a descriptor, or -1 with errno. */
static int
record_create(const char *path)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, fd;

	for (int i = 0; i < RECORD_TRIES; i++) {
		fd = open(path, flags, 0600);
		if (fd == -1 || record_lock(fd))
			return fd;
		fd_close(fd);
	}
	errno = EBUSY;
	return -1;
}

/* Links the file of @fd, which has no name, to @path. */
static bool
record_link(int fd, const char *path)
{
	char own[32];

	if (linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH) == 0)
		return true; /* old kernels ask for a capability */
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

static bool
record_make_unnamed(struct ctl_record *record, int dir, struct span text)
{
	record->fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (record->fd != -1 && flock(record->fd, LOCK_EX) == 0 &&
		fd_write_all(record->fd, text.at, text.len) == 0)
		return true;
	fd_close(record->fd);
	record->fd = -1;
	return false;
}

static bool
record_make_named(struct ctl_record *record, struct span text)
{
	int sys;

	record->fd = record_create(record->path);
	record->is_named = record->fd != -1;
	if (record->is_named &&
		fd_write_all(record->fd, text.at, text.len) == 0)
		return true;
	sys = errno;
	if (record->is_named)
		unlink(record->path);
	fd_close(record->fd);
	ctl_record_free(record);
	*record = CTL_RECORD_NONE;
	errno = sys;
	return false;
}

int
ctl_record_make(struct ctl_record *record, const struct ctl_root *root,
	uint64_t number, struct span text)
{
	char digits[20];

	record_digits(number, digits);
	*record = CTL_RECORD_NONE;
	record->number = number;
	record->path = xasprintf("%s/" RECORD_PREFIX "%s", root->path, digits);
	record->link = record_link_path(root, digits);
	return record_make_unnamed(record, root->dir, text) ||
			record_make_named(record, text) ?
		0 :
		-1;
}

int
ctl_record_name(struct ctl_record *record, struct span text)
{
	if (!record->is_named) {
		record->is_named = record_link(record->fd, record->path);
		if (!record->is_named) {
			fd_close(record->fd);
			if (!record_make_named(record, text))
				return -1;
		}
	}
	if (record->link != NULL)
		record_make_link(record);
	return 0;
}

void
ctl_record_write(const struct ctl_record *record, struct span text)
{
	if (record->fd != -1)
		(void)!pwrite(record->fd, text.at, text.len, 0);
}

static bool
record_unlink(const char *path)
{
	return path == NULL || unlink(path) == 0 || errno == ENOENT;
}

bool
ctl_record_remove(const struct ctl_record *record)
{
	bool record_gone = record_unlink(record->path);

	return record_unlink(record->link) && record_gone;
}

void
ctl_record_free(struct ctl_record *record)
{
	free(record->path);
	free(record->link);
	record->path = record->link = NULL;
}

struct record_walk {
	ctl_record_fn *fn;
	void *ctx;
	bool all, sweep;
	int count;
	struct stat seen[CTL_ROOTS + 1]; /* folders visited so far */
};

/* Returns true if @fd still has its name: another xrun may have removed it. */
static bool
record_is_named(int dir, const char *name, int fd, struct stat *st)
{
	struct stat named;

	return fstat(fd, st) == 0 && S_ISREG(st->st_mode) &&
		st->st_uid == geteuid() && st->st_size < RECORD_MAX &&
		fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		named.st_ino == st->st_ino && named.st_dev == st->st_dev;
}

static void
record_visit(const struct record_walk *w, int dir, const char *name)
{
	struct ctl_record_found found = { 0 };
	char *text = NULL;
	struct stat st;
	ssize_t n = -1;
	int fd =
		openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd == -1)
		return;
	/* Shared: two that look at once are no job. */
	found.held = flock(fd, (w->sweep ? LOCK_EX : LOCK_SH) | LOCK_NB) == -1;
	if (record_is_named(dir, name, fd, &st))
		text = calloc(1, (size_t)st.st_size + 1);
	if (text != NULL)
		n = fd_read_some(fd, text, (size_t)st.st_size);
	if (n >= 0) {
		found.text = text;
		found.age = clock_wall() -
			(st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec);
		if (w->sweep && !found.held &&
			(text[0] == '\0' || w->fn(w->ctx, &found)))
			unlinkat(dir, name, 0);
		else if (text[0] != '\0' && (!w->sweep || found.held))
			w->fn(w->ctx, &found);
	}
	free(text);
	fd_close(fd);
}

/* Returns true if the walk has visited all of @dir. */
static bool
record_is_seen(const struct record_walk *w, int dir)
{
	struct stat st;

	if (fstat(dir, &st) == -1)
		return true;
	for (int i = 0; i < w->count; i++)
		if (w->seen[i].st_dev == st.st_dev &&
			w->seen[i].st_ino == st.st_ino)
			return true;
	return false;
}

/* A link to a folder that does not exist, or without the record, goes. Links are in
 * the folder that is visited last. */
static void
record_follow(const struct record_walk *w, int dir, const char *link)
{
	char path[PATH_MAX], name[NAME_MAX + 1];
	ssize_t n = readlinkat(dir, link, path, sizeof(path) - 1);
	int fd;

	if (n <= 0 || path[0] != '/')
		return;
	path[n] = '\0';
	snprintf(name, sizeof(name), RECORD_PREFIX "%s",
		link + strlen(RECORD_LINK));
	fd = ctl_root_open_path(path);
	if (fd != -1 && !record_is_seen(w, fd))
		record_visit(w, fd, name);
	if (w->sweep && (fd == -1 || faccessat(fd, name, F_OK, 0) == -1) &&
		errno == ENOENT)
		unlinkat(dir, link, 0);
	fd_close(fd);
}

static bool
record_walk_root(void *ctx, const struct ctl_root *root)
{
	struct record_walk *w = ctx;
	int own = openat(root->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own == -1 ? NULL : fdopendir(own);
	const struct dirent *d;

	if (fstat(root->dir, &w->seen[w->count]) == 0)
		w->count++;
	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (record_is_name(d->d_name))
			record_visit(w, root->dir, d->d_name);
		else if (w->all && record_is_link(d->d_name))
			record_follow(w, root->dir, d->d_name);
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(own);
	return true;
}

void
ctl_record_each(bool all, ctl_record_fn *fn, void *ctx)
{
	struct record_walk w = { .fn = fn, .ctx = ctx, .all = all };

	ctl_root_each(all, record_walk_root, &w);
}

void
ctl_record_sweep(ctl_record_fn *fn, void *ctx)
{
	struct record_walk w = { .fn = fn,
		.ctx = ctx,
		.all = true,
		.sweep = true };

	ctl_root_each(true, record_walk_root, &w);
}
