/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - a new folder for a job: what it is called, and where it stands, in
 * the state directory or as --log-dir says.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>

#include "base/brace.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/state/state_inner.h"

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

/* @want, then @want.2 and so on: of several in one batch job each is one. */
void
state_next_id(struct state *st, const char *want, int taken)
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
	const char *name;
	int taken = 0, place;

	for (int tries = 0; tries < 1000; tries++) {
		state_next_id(st, want, taken);
		free(st->dir);
		st->dir = xasprintf("%s/%s", root, st->id);
		place = state_place(st, &name);
		st->made = mkdirat(place, name, 0700) == 0;
		if (st->made)
			return XR_OK;
		if (errno == ENOENT && tries == 0 && st->place_fd == -1 &&
			make_path(root) == 0)
			continue;
		if (errno != EEXIST)
			return state_cannot(err, st->dir);
		taken++;
	}
	return fail(err, XR_E_EXISTS, "%s: no free job id in 1000 tries%s",
		root, STATE_ADVICE);
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

/* Opens the folder that is there, or the one that was made. */
static int
place_open(const struct state *st, bool made, char link[static PATH_MAX])
{
	const char *name;
	int place = state_place(st, &name), there, fd;

	if (made)
		return openat(place, name,
			O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	there = state_walk(st->dir, false, link);
	fd = there == -1 ? -1 : openat(there, ".", O_DIRECTORY | O_CLOEXEC);
	fd_close(there);
	return fd;
}

/*
 * Of all who find @st->dir absent or empty at once, it goes to the one whose "0" it
 * is; and only that one writes into it or takes anything away. In one that
 * others may write into, somebody else would hold names of ours.
 *
 * Returns  1: it is ours; 0: it is used, or others'; -1 with errno
 */
static int
claim(struct state *st, char link[static PATH_MAX])
{
	const char *name;
	int ours = 0, place;
	bool made;

	if (state_walk_place(st, link) == -1)
		return -1;
	place = state_place(st, &name);
	made = mkdirat(place, name, 0700) == 0;
	if (!made && errno != EEXIST)
		return -1;
	st->dir_fd = place_open(st, made, link);
	if (st->dir_fd == -1)
		return errno == EACCES ? 0 : -1;
	if (state_is_ours(st->dir_fd) && (made || state_is_empty(st->dir_fd))) {
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

enum xr_status
state_refuse_link(struct xr_error *err, const char *link, const char *path)
{
	if (link[0] == '\0')
		return state_cannot(err, path);
	return fail(err, XR_E_INVAL,
		"--log-dir: %s: is another user's symbolic link", link);
}

/* Absent or empty: @dir is the folder as a whole. Else it is one in it. */
static enum xr_status
use_log_dir(struct state *st, const char *dir, const char *want,
	struct xr_error *err)
{
	char link[PATH_MAX];
	int ours = -1;

	st->dir = xstrdup(dir);
	/* Another job may just be taking it away again. */
	for (int tries = 0; ours == -1 && tries < 10; tries++) {
		ours = claim(st, link);
		if (ours == -1 && errno != ENOENT)
			break;
	}
	if (ours == 1)
		return XR_OK;
	if (ours == 0) {
		fd_close(st->place_fd);
		st->place_fd = state_walk(dir, false, link);
	}
	if (st->place_fd == -1 || ours == -1)
		return state_refuse_link(err, link, dir);
	return make_folder(st, dir, want, err);
}

/* Both --log-dir, with its words, and the state folder. */
enum xr_status
state_choose_folder(struct state *st, const struct state_wish *wish,
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
	state_next_id(st, wish->batch, 0);
	dir = state_expand(wish->log_dir, st->id);
	if (dir == NULL)
		return fail(err, XR_E_NOMEM, "--log-dir: no memory for it");
	status = use_log_dir(st, dir, wish->batch, err);
	free(dir);
	return status;
}
