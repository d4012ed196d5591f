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
#include "launcher/ctl/record.h"

#define RECORD_PREFIX ".job-"
#define RECORD_LINK   ".at-"
#define RECORD_MAX    (64 << 10)
#define RECORD_NEW_NS (60 * NS_PER_S) /* an empty one may be on its way */

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
	const char *own; /* the number of a record, as text */
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

/* Without a link, only a job with the same XDG_RUNTIME_DIR finds the record. */
static void
record_place_link(struct ctl_record *record, const struct ctl_root *root,
	const char *number)
{
	struct ctl_root state;

	if (ctl_root_is_common(root) || !ctl_root_open_state(&state))
		return;
	if (snprintf(record->link, sizeof(record->link), "%s/" RECORD_LINK "%s",
		    state.path, number) >= (int)sizeof(record->link))
		record->link[0] = '\0';
	fd_close(state.dir);
}

static void
record_make_link(struct ctl_record *record)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s",
		(int)(strrchr(record->path, '/') - record->path), record->path);
	if (symlink(folder, record->link) == -1 && errno != EEXIST)
		record->link[0] = '\0';
}

/* Links the unnamed file of @fd to @path. */
static bool
record_name(int fd, const char *path)
{
	char own[32];

	if (linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH) == 0)
		return true; /* old kernels ask for a capability */
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* The file has its text and its lock before it has its name, so that an xrun that is
 * killed meanwhile leaves nothing. Returns the descriptor; -1 if the file system cannot
 * do that. */
static int
record_make_unnamed(int dir, struct span text)
{
	int fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd == -1)
		return -1;
	if (flock(fd, LOCK_EX) == 0 && fd_write_all(fd, text.at, text.len) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

/* A walk that meets the file before it is locked finds it empty, releases its
 * lock at once, and does not remove the file. */
static int
record_make_named(const char *path, struct span text)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		0600);
	int sys;

	if (fd == -1)
		return -1;
	if (flock(fd, LOCK_EX) == 0 && fd_write_all(fd, text.at, text.len) == 0)
		return fd;
	sys = errno;
	unlink(path);
	fd_close(fd);
	errno = sys;
	return -1;
}

void
ctl_record_prepare(struct ctl_record *record, const struct ctl_root *root,
	uint64_t number, struct span text, bool *others)
{
	struct record_search search = { .others = false };
	char digits[20];

	record->fd = -1;
	record->is_made = false;
	record->link[0] = '\0';
	snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)number);
	if (snprintf(record->path, sizeof(record->path),
		    "%s/" RECORD_PREFIX "%s", root->path,
		    digits) >= (int)sizeof(record->path)) {
		record->path[0] = '\0';
		return;
	}
	record->fd = record_make_unnamed(root->dir, text);
	record_place_link(record, root, digits);
	search.own = digits;
	if (record_search_root(&search, root))
		ctl_root_each_other(root, record_search_root, &search);
	*others = search.others;
}

int
ctl_record_make(struct ctl_record *record, struct span text)
{
	if (record->path[0] == '\0') {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (record->fd != -1 && !record_name(record->fd, record->path)) {
		fd_close(record->fd);
		record->fd = -1;
	}
	if (record->fd == -1)
		record->fd = record_make_named(record->path, text);
	if (record->fd == -1)
		return -1;
	record->is_made = true;
	if (record->link[0] != '\0')
		record_make_link(record);
	return 0;
}

void
ctl_record_write(const struct ctl_record *record, struct span text)
{
	if (record->fd != -1)
		(void)!pwrite(record->fd, text.at, text.len, 0);
}

void
ctl_record_remove(const struct ctl_record *record)
{
	if (record->path[0] != '\0')
		unlink(record->path);
	if (record->link[0] != '\0')
		unlink(record->link);
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

/* Returns true if the xrun that made it was killed before it wrote to it. */
static bool
record_is_void(const struct ctl_record_found *found)
{
	/* The clock may have been set back. */
	return found->text[0] == '\0' && !found->held &&
		(found->age > RECORD_NEW_NS || found->age < -RECORD_NEW_NS);
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
			(text[0] == '\0' ? record_is_void(&found) :
					   w->fn(w->ctx, &found)))
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

	if (w->count <= CTL_ROOTS && fstat(root->dir, &w->seen[w->count]) == 0)
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
