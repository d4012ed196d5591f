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
#define RECORD_MAX    (64 << 10)
#define RECORD_NEW_NS (60 * NS_PER_S) /* an empty one may be on its way */

static bool
record_is_name(const char *name)
{
	return strncmp(name, RECORD_PREFIX, strlen(RECORD_PREFIX)) == 0;
}

/* One read of the folder, which is enough for dozens of jobs. */
static bool
record_has_others(int dir, const char *own)
{
	struct dents names;
	const struct dent *d;

	dents_read(&names, dir);
	while ((d = dents_next(&names)) != NULL)
		if (record_is_name(d->name) && strcmp(d->name, own) != 0)
			return true;
	return false;
}

/* A walk that meets the file before it is locked finds it empty, releases its
 * lock at once, and does not remove the file. */
static int
record_make(struct ctl_record *record, const struct ctl_root *root,
	const char *name, struct span text)
{
	int sys;

	record->fd = openat(root->dir, name,
		O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (record->fd == -1)
		return -1;
	if (flock(record->fd, LOCK_EX) == 0 &&
		fd_write_all(record->fd, text.at, text.len) == 0)
		return 0;
	sys = errno;
	unlinkat(root->dir, name, 0);
	fd_close(record->fd);
	record->fd = -1;
	errno = sys;
	return -1;
}

int
ctl_record_open(struct ctl_record *record, const struct ctl_root *root,
	uint64_t number, struct span text, bool *others)
{
	char name[64];

	record->fd = -1;
	snprintf(name, sizeof(name), RECORD_PREFIX "%016llx",
		(unsigned long long)number);
	if (snprintf(record->path, sizeof(record->path), "%s/%s", root->path,
		    name) >= (int)sizeof(record->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (record_make(record, root, name, text) == -1)
		return -1;
	*others = record_has_others(root->dir, name);
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
	if (record->fd != -1)
		unlink(record->path);
}

struct record_walk {
	ctl_record_fn *fn;
	void *ctx;
	bool sweep;
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

static bool
record_walk_root(void *ctx, const struct ctl_root *root)
{
	const struct record_walk *w = ctx;
	int own = openat(root->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own == -1 ? NULL : fdopendir(own);
	const struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (record_is_name(d->d_name))
			record_visit(w, root->dir, d->d_name);
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(own);
	return true;
}

void
ctl_record_each(bool all, ctl_record_fn *fn, void *ctx)
{
	struct record_walk w = { .fn = fn, .ctx = ctx };

	ctl_root_each(all, record_walk_root, &w);
}

void
ctl_record_sweep(ctl_record_fn *fn, void *ctx)
{
	struct record_walk w = { .fn = fn, .ctx = ctx, .sweep = true };

	ctl_root_each(true, record_walk_root, &w);
}
