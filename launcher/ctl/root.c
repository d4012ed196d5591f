/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - see root.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/host.h"
#include "base/status.h"
#include "launcher/ctl/root.h"
#include "launcher/state/state.h"

#define ROOT_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Returns true if no other user can read or change anything in it. */
static bool
root_is_ours(int fd, struct stat *st)
{
	return fstat(fd, st) == 0 && st->st_uid == geteuid() &&
		(st->st_mode & 0077) == 0;
}

/* For a folder that is open, and is not to be used. */
static void
root_blame(const char *path, const struct stat *st, struct xr_error *trouble)
{
	if (trouble == NULL || trouble->text[0] != '\0')
		return;
	if (st->st_uid != geteuid())
		fail(trouble, XR_E_INVAL, "%s belongs to user %u", path,
			(unsigned)st->st_uid);
	else
		fail(trouble, XR_E_INVAL, "%s has mode %04o, not 0700", path,
			(unsigned)(st->st_mode & 07777));
}

/* For a path that cannot be opened, as errno says, which survives. */
static void
root_blame_closed(const char *path, struct xr_error *trouble)
{
	int sys = errno;
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_uid != geteuid())
		root_blame(path, &st, trouble);
	else
		fail(trouble, XR_E_INVAL, "%s: %s", path, strerror(sys));
	errno = sys;
}

/* Opens the folder @path. Returns -1 with errno: EPERM if it is not ours alone. */
static int
root_open_own(const char *path, struct xr_error *trouble)
{
	struct stat st;
	int fd = open(path, ROOT_FOLDER);

	if (fd != -1 && root_is_ours(fd, &st))
		return fd;
	if (fd != -1) {
		root_blame(path, &st, trouble);
		fd_close(fd);
		errno = EPERM;
	} else if (trouble != NULL && trouble->text[0] == '\0' &&
		(errno == ELOOP || errno == ENOTDIR || errno == EACCES)) {
		root_blame_closed(path, trouble);
	}
	return -1;
}

/* A folder that does not exist is no error: many systems remove it at logout. */
static void
root_blame_parent(const char *path, struct xr_error *trouble)
{
	struct xr_error why = { 0 };
	struct stat st;

	if (trouble == NULL || trouble->text[0] != '\0' ||
		stat(path, &st) == -1 || !S_ISDIR(st.st_mode))
		return;
	root_blame(path, &st, &why);
	fail(trouble, XR_E_INVAL, "XDG_RUNTIME_DIR: %.220s", why.text);
}

/* Returns true if the system has made a folder for us. */
static bool
root_parent(enum ctl_root_kind kind, char path[static PATH_MAX],
	struct xr_error *trouble)
{
	const char *given = getenv("XDG_RUNTIME_DIR");
	int fd, n = -1;

	if (kind == CTL_ROOT_RUNTIME && given != NULL && given[0] == '/')
		n = snprintf(path, PATH_MAX, "%s", given);
	else if (kind == CTL_ROOT_USER)
		n = snprintf(path, PATH_MAX, "/run/user/%u",
			(unsigned)geteuid());
	if (n < 0 || n >= PATH_MAX - 8)
		return false;
	fd = root_open_own(path, NULL);
	if (fd == -1 && kind == CTL_ROOT_RUNTIME)
		root_blame_parent(path, trouble);
	fd_close(fd);
	if (fd != -1)
		snprintf(path + n, (size_t)(PATH_MAX - n), "/xrun");
	return fd != -1;
}

/* The path of a folder of that kind; false if there can be none. */
static bool
root_path(enum ctl_root_kind kind, char path[static PATH_MAX],
	struct xr_error *trouble)
{
	char host[256], *state;
	int n = PATH_MAX;

	if (kind == CTL_ROOT_RUNTIME || kind == CTL_ROOT_USER)
		return root_parent(kind, path, trouble);
	if (kind == CTL_ROOT_TMP)
		return snprintf(path, PATH_MAX, "/tmp/xrun-%u",
			       (unsigned)geteuid()) > 0;
	state = state_home();
	if (state != NULL)
		n = snprintf(path, PATH_MAX, "%s/.run-%s", state,
			host_name(host, sizeof(host)));
	free(state);
	return n < PATH_MAX;
}

/* Opens the folder, and makes it if it does not exist. -1 with errno. */
static int
root_make(const char *path, bool parents, struct xr_error *trouble)
{
	bool made = mkdir(path, 0700) == 0;

	if (!made && errno == ENOENT && parents &&
		state_make_parents(path) == 0)
		made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST) {
		if (trouble != NULL && trouble->text[0] == '\0')
			fail(trouble, XR_E_SYS, "%s: %s", path,
				strerror(errno));
		return -1;
	}
	return root_open_own(path, trouble);
}

bool
ctl_root_open(struct ctl_root *root, bool make, struct xr_error *trouble)
{
	int sys = ENOENT;

	root->dir = -1;
	for (int kind = 0; kind < CTL_ROOTS; kind++) {
		if (!root_path(kind, root->path, trouble))
			continue;
		root->kind = kind;
		root->dir = root_open_own(root->path, NULL);
		if (root->dir == -1 && make)
			root->dir = root_make(root->path,
				kind == CTL_ROOT_STATE, trouble);
		else if (root->dir == -1 && errno != ENOENT)
			root->dir = root_open_own(root->path, trouble);
		else if (root->dir == -1 && errno == ENOENT)
			return false; /* a job would make it */
		if (root->dir != -1)
			return true;
		sys = errno;
	}
	errno = sys;
	return false;
}

bool
ctl_root_open_state(struct ctl_root *root)
{
	root->kind = CTL_ROOT_STATE;
	root->dir = -1;
	if (!root_path(CTL_ROOT_STATE, root->path, NULL)) {
		errno = ENAMETOOLONG;
		return false;
	}
	root->dir = root_open_own(root->path, NULL);
	if (root->dir == -1 && errno == ENOENT)
		root->dir = root_make(root->path, true, NULL);
	return root->dir != -1;
}

int
ctl_root_open_path(const char *path)
{
	return root_open_own(path, NULL);
}

bool
ctl_root_is_common(const struct ctl_root *root)
{
	char path[64];

	snprintf(path, sizeof(path), "/run/user/%u/xrun", (unsigned)geteuid());
	return root->kind != CTL_ROOT_RUNTIME || strcmp(root->path, path) == 0;
}

const char *
ctl_root_where(const struct ctl_root *root, char out[static CTL_WHERE_MAX])
{
	switch (root->kind) {
	case CTL_ROOT_RUNTIME:
		return memcpy(out, "xrun in $XDG_RUNTIME_DIR", 25);
	case CTL_ROOT_STATE:
		return memcpy(out, ".run-HOST in the state directory", 33);
	case CTL_ROOT_USER:
	case CTL_ROOT_TMP:
	case CTL_ROOTS:
		break;
	}
	snprintf(out, CTL_WHERE_MAX, "%.*s", CTL_WHERE_MAX - 1, root->path);
	return out;
}

struct root_seen {
	dev_t dev;
	ino_t ino;
};

/* Returns true if it was visited before, and notes it if not. */
static bool
root_is_seen(int dir, struct root_seen seen[static CTL_ROOTS], int *count)
{
	struct stat st;

	if (fstat(dir, &st) == -1)
		return true;
	for (int i = 0; i < *count; i++)
		if (seen[i].dev == st.st_dev && seen[i].ino == st.st_ino)
			return true;
	seen[(*count)++] =
		(struct root_seen){ .dev = st.st_dev, .ino = st.st_ino };
	return false;
}

void
ctl_root_each(bool all, ctl_root_fn *fn, void *ctx)
{
	struct root_seen seen[CTL_ROOTS + 1];
	struct ctl_root root;
	bool more = true;
	int count = 0;

	if (ctl_root_open(&root, false, NULL)) {
		root_is_seen(root.dir, seen, &count);
		more = fn(ctx, &root);
		fd_close(root.dir);
	}
	for (int kind = all ? 0 : CTL_ROOT_STATE; more && kind < CTL_ROOTS;
		kind++) {
		root.kind = kind;
		if (!root_path(kind, root.path, NULL))
			continue;
		root.dir = root_open_own(root.path, NULL);
		if (root.dir != -1 && !root_is_seen(root.dir, seen, &count))
			more = fn(ctx, &root);
		fd_close(root.dir);
	}
}
