/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c - see errors.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/ctl/errors.h"
#include "launcher/ctl/root.h"

#define ERRORS_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ERRORS_DEPTH  16 /* of folders that ranks made there */
#define ERRORS_TRIES  8

/* ".errors-HOST-": what another machine that shares the folder has stays. */
static void
errors_prefix(char out[static NAME_MAX])
{
	char host[256];

	snprintf(out, NAME_MAX, ".errors-%.200s-",
		host_name(host, sizeof(host)));
}

/* Opens it and locks it. Returns -1 if it is locked, or has lost its name to a
 * sweep that met it before it was locked. */
static int
errors_lock(int at, const char *path)
{
	int fd = openat(at, path, ERRORS_FOLDER);
	struct stat held, named;

	if (fd == -1)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 &&
		fstatat(at, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		named.st_ino == held.st_ino && held.st_uid == geteuid())
		return fd;
	fd_close(fd);
	return -1;
}

static char *
errors_make(const struct ctl_root *root, struct xr_error *err)
{
	char prefix[NAME_MAX], *path;

	errors_prefix(prefix);
	for (int i = 0; i < ERRORS_TRIES; i++) {
		path = xasprintf("%s/%sXXXXXX", root->path, prefix);
		if (mkdtemp(path) == NULL) {
			fail(err, XR_E_SYS, "%s: %s", path, strerror(errno));
			free(path);
			return NULL;
		}
		/* A file system without locks for folders has no sweep. */
		if (errors_lock(AT_FDCWD, path) != -1 ||
			access(path, F_OK) == 0)
			return path;
		free(path);
	}
	fail(err, XR_E_SYS, "%s: it is removed at once", root->path);
	return NULL;
}

char *
errors_folder_new(struct xr_error *err)
{
	struct xr_error trouble = { 0 };
	struct ctl_root root;
	char *path = NULL;

	if (ctl_root_open(&root, true, &trouble))
		path = errors_make(&root, err);
	else
		fail(err, XR_E_SYS, "%s",
			trouble.text[0] != '\0' ? trouble.text :
						  strerror(errno));
	fd_close(root.dir);
	return path;
}

/* Takes @fd, which may be -1. A rank may have made folders there, or have changed
 * their modes. */
static void
errors_empty(int fd, int depth)
{
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (dir == NULL) {
		fd_close(fd);
		return;
	}
	while ((d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 ||
			strcmp(d->d_name, "..") == 0 ||
			unlinkat(fd, d->d_name, 0) == 0 || depth == 0)
			continue;
		(void)!fchmodat(fd, d->d_name, 0700, AT_SYMLINK_NOFOLLOW);
		errors_empty(openat(fd, d->d_name, ERRORS_FOLDER), depth - 1);
		unlinkat(fd, d->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void
errors_folder_clear(const char *path)
{
	if (path != NULL)
		errors_empty(open(path, ERRORS_FOLDER), ERRORS_DEPTH);
}

void
errors_folder_remove(const char *path)
{
	if (path == NULL || rmdir(path) == 0)
		return;
	errors_folder_clear(path);
	rmdir(path);
}

static bool
errors_sweep_root(void *ctx, const struct ctl_root *root)
{
	const char *prefix = ctx;
	int own = openat(root->dir, ".", ERRORS_FOLDER), fd;
	DIR *dir = own == -1 ? NULL : fdopendir(own);
	const struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (strncmp(d->d_name, prefix, strlen(prefix)) != 0)
			continue;
		fd = errors_lock(root->dir, d->d_name);
		if (fd == -1)
			continue;
		errors_empty(dup(fd), ERRORS_DEPTH);
		unlinkat(root->dir, d->d_name, AT_REMOVEDIR);
		fd_close(fd);
	}
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(own);
	return true;
}

void
errors_folder_sweep(void)
{
	char prefix[NAME_MAX];

	errors_prefix(prefix);
	ctl_root_each(true, errors_sweep_root, prefix);
}
