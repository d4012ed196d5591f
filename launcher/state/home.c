/* SPDX-License-Identifier: Apache-2.0 */
/*
 * home.c - the folder of a user's jobs, which folders are believed to be one's
 * own, and how paths are shown.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/mem.h"
#include "base/status.h"
#include "launcher/state/state_inner.h"

#define OWN_ADVICE "\tHOME=DIR, --log-dir DIR or --no-logs"

/* From the file; to ask a directory service takes libraries that are opened at
 * run time, and whoever is known there alone has HOME. */
const char *
state_user_home(void)
{
	const char *dir = getenv("HOME");
	const struct passwd *pw = NULL;
	FILE *users;

	if (dir != NULL && dir[0] == '/')
		return dir;
	users = fopen("/etc/passwd", "re");
	while (users != NULL && (pw = fgetpwent(users)) != NULL)
		if (pw->pw_uid == getuid())
			break;
	if (users != NULL)
		fclose(users);
	return pw != NULL && pw->pw_dir[0] == '/' ? pw->pw_dir : NULL;
}

/* NULL: this user has none. */
static char *
own_home(void)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *dir;

	if (xdg != NULL && xdg[0] == '/')
		return xasprintf("%s/xrun", xdg);
	dir = state_user_home();
	return dir != NULL ? xasprintf("%s/.local/state/xrun", dir) : NULL;
}

static char *
shared_home(void)
{
	return xasprintf("/var/tmp/xrun-%u", (unsigned)getuid());
}

char *
state_home(void)
{
	char *home = own_home();

	return home != NULL ? home : shared_home();
}

/* Nobody who may write it can change what we do there. */
bool
state_is_trusted(const struct stat *dir)
{
	if (dir->st_uid == geteuid())
		return (dir->st_mode & S_IWOTH) == 0;
	return dir->st_uid == 0 && (dir->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool
state_is_ours(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && state_is_trusted(&st);
}

/* Everybody can make this name before us. Once the folder is ours, nobody but
 * root can put another in its place: /var/tmp is sticky. */
static enum xr_status
make_shared_home(const char *path, struct xr_error *err)
{
	struct stat st;

	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return state_cannot(err, path);
	if (lstat(path, &st) == -1)
		return state_cannot(err, path);
	if (!S_ISDIR(st.st_mode))
		return fail(err, XR_E_INVAL,
			"%s: is no folder, and without a HOME xrun keeps its files there" OWN_ADVICE,
			path);
	if (st.st_uid != geteuid())
		return fail(err, XR_E_INVAL,
			"%s: belongs to user %u, and without a HOME xrun keeps its files there" OWN_ADVICE,
			path, (unsigned)st.st_uid);
	if ((st.st_mode & 07777) != 0700 && chmod(path, 0700) == -1)
		return state_cannot(err, path);
	return XR_OK;
}

enum xr_status
state_find_root(char **root, struct xr_error *err)
{
	*root = own_home();
	if (*root != NULL)
		return XR_OK;
	*root = shared_home();
	return make_shared_home(*root, err);
}

const char *
state_tilde(const char *path, char *out, size_t cap)
{
	const char *dir = state_user_home();
	size_t len = dir == NULL ? 0 : strlen(dir);
	bool below = len > 1 && strncmp(path, dir, len) == 0 &&
		(path[len] == '/' || path[len] == '\0');

	snprintf(out, cap, "%s%s", below ? "~" : "", path + (below ? len : 0));
	return out;
}

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
