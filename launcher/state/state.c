/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - see state.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/state/state.h"

#define ADVICE "\t--log-dir DIR or --no-logs"

static const char *
home(void)
{
	const char *dir = getenv("HOME");
	const struct passwd *pw;

	if (dir != NULL && dir[0] == '/')
		return dir;
	pw = getpwuid(getuid());
	return pw != NULL && pw->pw_dir[0] == '/' ? pw->pw_dir : NULL;
}

char *
state_home(void)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *dir;

	if (xdg != NULL && xdg[0] == '/')
		return xasprintf("%s/xrun", xdg);
	dir = home();
	if (dir != NULL)
		return xasprintf("%s/.local/state/xrun", dir);
	return xasprintf("/var/tmp/xrun-%u", (unsigned)getuid());
}

char *
state_tilde(const char *path)
{
	const char *dir = home();
	size_t len = dir == NULL ? 0 : strlen(dir);

	if (len > 1 && strncmp(path, dir, len) == 0 &&
		(path[len] == '/' || path[len] == '\0'))
		return xasprintf("~%s", path + len);
	return xstrdup(path);
}

char *
state_mount(const char *path)
{
	char at[PATH_MAX], *slash, *end;
	struct stat st, above;

	if (realpath(path, at) == NULL || stat(at, &st) == -1)
		return xstrdup(path);
	for (end = at + strlen(at); end > at + 1; end = slash) {
		slash = strrchr(at, '/');
		*slash = '\0';
		if (stat(slash == at ? "/" : at, &above) == -1 ||
			above.st_dev != st.st_dev) {
			*slash = '/';
			return xstrdup(at);
		}
	}
	return xstrdup("/");
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

/* Like mkdir -p, 0700 for what is made. */
static int
make_path(const char *path)
{
	char *copy = xstrdup(path);
	int made = 0;

	for (char *p = copy + 1; made == 0 && *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) == -1 && errno != EEXIST)
			made = -1;
		*p = '/';
	}
	if (made == 0 && mkdir(copy, 0700) == -1 && errno != EEXIST)
		made = -1;
	free(copy);
	return made;
}

static enum xr_status
cannot(struct xr_error *err, const char *path)
{
	return fail(err, XR_E_SYS, "%s: %s%s", path, strerror(errno), ADVICE);
}

/* A new folder below @root, named by a fresh id. */
static enum xr_status
make_folder(struct state *st, const char *root, struct xr_error *err)
{
	for (int tries = 0; tries < 1000; tries++) {
		make_id(st->id);
		free(st->dir);
		st->dir = xasprintf("%s/%s", root, st->id);
		st->made = mkdir(st->dir, 0700) == 0;
		if (st->made)
			return XR_OK;
		if (errno == ENOENT && tries == 0 && make_path(root) == 0)
			continue;
		if (errno != EEXIST)
			return cannot(err, st->dir);
	}
	return fail(err, XR_E_EXISTS, "%s: no free job id in 1000 tries%s",
		root, ADVICE);
}

/* Absent, or a folder with nothing in it: then it is ours as a whole. */
static bool
absent_or_empty(const char *path)
{
	const struct dirent *d;
	DIR *dir = opendir(path);
	int entries = 0;

	if (dir == NULL)
		return errno == ENOENT;
	while ((d = readdir(dir)) != NULL)
		entries += strcmp(d->d_name, ".") != 0 &&
			strcmp(d->d_name, "..") != 0;
	closedir(dir);
	return entries == 0;
}

/* "{job}" and "{host}" in --log-dir, and an absolute path of it. */
static char *
expand(const char *text, const char *id)
{
	char host[256] = "localhost", *cwd = NULL;
	struct buf out = { 0 };

	gethostname(host, sizeof(host) - 1);
	if (text[0] != '/' && (cwd = getcwd(NULL, 0)) != NULL)
		buf_fmt(&out, "%s/", cwd);
	free(cwd);
	while (*text != '\0') {
		if (strncmp(text, "{job}", 5) == 0) {
			buf_put_text(&out, id);
			text += 5;
		} else if (strncmp(text, "{host}", 6) == 0) {
			buf_put_text(&out, host);
			text += 6;
		} else {
			buf_put_char(&out, *text++);
		}
	}
	return out.data;
}

/* A link that somebody else laid here would choose where we write. */
static bool
is_strange_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
		st.st_uid != geteuid() && st.st_uid != 0;
}

static enum xr_status
use_log_dir(struct state *st, const char *log_dir, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	char *dir;

	make_id(st->id);
	dir = expand(log_dir, st->id);
	if (is_strange_link(dir)) {
		status = fail(err, XR_E_INVAL,
			"--log-dir: %s: is another user's symbolic link", dir);
		free(dir);
		return status;
	}
	if (absent_or_empty(dir)) {
		st->dir = dir;
		st->made = access(dir, F_OK) == -1;
		return make_path(dir) == 0 ? XR_OK : cannot(err, dir);
	}
	status = make_folder(st, dir, err);
	free(dir);
	return status;
}

static enum xr_status
open_folder(struct state *st, struct xr_error *err)
{
	st->attempt = xasprintf("%s/0", st->dir);
	st->dir_fd = open(st->dir, O_DIRECTORY | O_CLOEXEC);
	if (st->dir_fd == -1)
		return cannot(err, st->dir);
	/* Locked before it has its name: whoever finds it finds it held. */
	st->lock_fd = openat(st->dir_fd, ".lock",
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (st->lock_fd == -1 || flock(st->lock_fd, LOCK_EX | LOCK_NB) == -1 ||
		renameat(st->dir_fd, ".lock", st->dir_fd, "lock") == -1)
		return cannot(err, st->dir);
	if (mkdirat(st->dir_fd, "0", 0700) == -1)
		return cannot(err, st->attempt);
	st->attempt_fd =
		openat(st->dir_fd, "0", O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return st->attempt_fd == -1 ? cannot(err, st->attempt) : XR_OK;
}

enum xr_status
state_open(struct state *st, const char *log_dir, bool logs,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;

	*st = (struct state){ .dir_fd = -1, .attempt_fd = -1, .lock_fd = -1 };
	if (!logs) {
		make_id(st->id);
		return XR_OK;
	}
	if (log_dir != NULL) {
		status = use_log_dir(st, log_dir, err);
	} else {
		st->root = state_home();
		status = make_folder(st, st->root, err);
	}
	if (status == XR_OK)
		status = open_folder(st, err);
	if (status != XR_OK && st->dir_fd != -1)
		state_remove(st);
	if (status != XR_OK)
		state_fini(st);
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

int
state_write(const struct state *st, const char *name, const char *text,
	size_t len)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, fd, made = -1;
	char temp[64];

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
	return made;
}

void
state_latest(const struct state *st)
{
	char temp[PATH_MAX], link[PATH_MAX];

	if (st->root == NULL || st->dir == NULL ||
		snprintf(temp, sizeof(temp), "%s/.latest.%s", st->root,
			st->id) >= (int)sizeof(temp))
		return;
	snprintf(link, sizeof(link), "%s/latest", st->root);
	if (symlink(st->id, temp) == 0 && rename(temp, link) == -1)
		unlink(temp);
}

int
state_make_rank(const struct state *st, uint32_t rank)
{
	char name[32];

	snprintf(name, sizeof(name), "rank-%04u", rank);
	return mkdirat(st->attempt_fd, name, 0700);
}

/* Those made by state_make_rank(); the others hold bytes and stay. */
static void
remove_empty_ranks(const struct state *st)
{
	const struct dirent *d;
	int fd = openat(st->dir_fd, "0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (strncmp(d->d_name, "rank-", 5) == 0)
			unlinkat(fd, d->d_name, AT_REMOVEDIR);
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(fd);
}

/* Only what was made here is removed; a folder with more in it stays. */
void
state_remove(const struct state *st)
{
	static const char *const files[] = { "lock", ".lock", "job.json",
		".job.json.new", "events.jsonl" };

	if (st->dir == NULL)
		return;
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(st->dir_fd, files[i], 0);
	remove_empty_ranks(st);
	unlinkat(st->dir_fd, "0", AT_REMOVEDIR);
	if (st->made)
		rmdir(st->dir);
}
