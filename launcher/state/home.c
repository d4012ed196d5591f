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

#define LINKS_MAX 40 /* as the kernel follows */

/* Takes the next part of @rest to the end of @at, which has no links; "" if none
 * is left. Returns false if it does not fit. */
static bool
home_next_part(char at[static PATH_MAX], char rest[static PATH_MAX])
{
	size_t blank = strspn(rest, "/"), len = strcspn(rest + blank, "/");
	size_t end = strlen(at);
	char *slash;

	if (len == 2 && memcmp(rest + blank, "..", 2) == 0) {
		slash = strrchr(at, '/');
		*(slash != NULL ? slash : at) = '\0';
	} else if (len > 0 && !(len == 1 && rest[blank] == '.')) {
		if (end + 1 + len >= PATH_MAX)
			return false;
		at[end] = '/';
		memcpy(at + end + 1, rest + blank, len);
		at[end + 1 + len] = '\0';
	}
	memmove(rest, rest + blank + len, strlen(rest + blank + len) + 1);
	return true;
}

/* The link @at is replaced by its target: the part is taken off @at, and the
 * target is put before @rest. Returns false if it cannot be followed. */
static bool
home_follow_link(char at[static PATH_MAX], char rest[static PATH_MAX])
{
	char target[PATH_MAX], all[PATH_MAX];
	ssize_t n = readlink(at, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	if (snprintf(all, sizeof(all), "%s/%s", target, rest) >=
		(int)sizeof(all))
		return false;
	memcpy(rest, all, strlen(all) + 1);
	*(target[0] == '/' ? at : strrchr(at, '/')) = '\0';
	return true;
}

/* Such a link would choose where we write. */
bool
state_has_strange_link(const char *path, char at[static PATH_MAX])
{
	char rest[PATH_MAX];
	struct stat st;
	int links = 0;

	at[0] = '\0';
	if (snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return false;
	while (rest[strspn(rest, "/")] != '\0') {
		if (!home_next_part(at, rest))
			return false;
		if (at[0] == '\0' || lstat(at, &st) == -1 ||
			!S_ISLNK(st.st_mode))
			continue;
		if (st.st_uid != geteuid() && st.st_uid != 0)
			return true;
		if (links++ == LINKS_MAX || !home_follow_link(at, rest))
			return false;
	}
	return false;
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
