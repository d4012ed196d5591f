/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - opens a folder part by part, so that no link of another user is followed,
 * whenever it is laid. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/state/state_inner.h"

#define LINKS_MAX 40 /* as the kernel follows */

struct walk {
	int fd;              /* of the folder so far */
	int links;           /* that were followed */
	char at[PATH_MAX];   /* the folder so far; it has no links. "": / */
	char rest[PATH_MAX]; /* of the path */
};

/* Takes the next part off the rest; "" if none is left. */
static bool
walk_next_name(struct walk *w, char name[static NAME_MAX + 1])
{
	size_t blank = strspn(w->rest, "/");
	size_t len = strcspn(w->rest + blank, "/");

	if (len > NAME_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(name, w->rest + blank, len);
	name[len] = '\0';
	memmove(w->rest, w->rest + blank + len,
		strlen(w->rest + blank + len) + 1);
	return true;
}

/* For messages. */
static void
walk_note(struct walk *w, const char *name)
{
	size_t end = strlen(w->at);
	char *slash = strrchr(w->at, '/');

	if (strcmp(name, "..") == 0)
		*(slash != NULL ? slash : w->at) = '\0';
	else if (strcmp(name, ".") != 0)
		snprintf(w->at + end, sizeof(w->at) - end, "/%s", name);
}

/* Opens @name in the folder so far, a link as such. */
static int
walk_open(const struct walk *w, const char *name, bool make)
{
	int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(w->fd, name, flags);

	if (fd != -1 || errno != ENOENT || !make)
		return fd;
	if (mkdirat(w->fd, name, 0700) == -1 && errno != EEXIST)
		return -1;
	return openat(w->fd, name, flags);
}

/* The target of the open link @fd is put before the rest. */
static bool
walk_follow(struct walk *w, int fd)
{
	char target[PATH_MAX], all[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	errno = n < 0 ? errno : ELOOP;
	if (n <= 0 || w->links++ == LINKS_MAX)
		return false;
	target[n] = '\0';
	errno = ENAMETOOLONG;
	if (snprintf(all, sizeof(all), "%s/%s", target, w->rest) >=
		(int)sizeof(all))
		return false;
	memcpy(w->rest, all, strlen(all) + 1);
	if (target[0] != '/')
		return true;
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return false;
	fd_close(w->fd);
	w->fd = fd;
	w->at[0] = '\0';
	return true;
}

/* One part. @link: receives the path of a link that is not followed. */
static bool
walk_step(struct walk *w, const char *name, bool make, char *link)
{
	int fd = walk_open(w, name, make);
	struct stat st;
	bool done;

	if (fd == -1 || fstat(fd, &st) == -1) {
		fd_close(fd);
		return false;
	}
	if (!S_ISLNK(st.st_mode)) {
		fd_close(w->fd);
		w->fd = fd;
		walk_note(w, name);
		errno = ENOTDIR;
		return S_ISDIR(st.st_mode);
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		walk_note(w, name);
		memcpy(link, w->at, strlen(w->at) + 1);
		errno = ELOOP;
		done = false;
	} else {
		done = walk_follow(w, fd);
	}
	fd_close(fd);
	return done;
}

int
state_walk(const char *path, bool make, char link[static PATH_MAX])
{
	struct walk w = { .links = 0 };
	char name[NAME_MAX + 1] = ".";
	bool well = true;

	link[0] = '\0';
	if (snprintf(w.rest, sizeof(w.rest), "%s", path) >=
		(int)sizeof(w.rest)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	w.fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (well && w.fd != -1 && name[0] != '\0') {
		well = walk_next_name(&w, name);
		if (well && name[0] != '\0')
			well = walk_step(&w, name, make, link);
	}
	if (well)
		return w.fd;
	fd_close(w.fd);
	return -1;
}

int
state_walk_place(struct state *st, char link[static PATH_MAX])
{
	char place[PATH_MAX];
	size_t len = strlen(st->dir);

	while (len > 1 && st->dir[len - 1] == '/')
		st->dir[--len] = '\0';
	len = (size_t)(strrchr(st->dir, '/') - st->dir);
	fd_close(st->place_fd);
	st->place_fd = -1;
	if (len >= sizeof(place)) {
		link[0] = '\0';
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(place, st->dir, len);
	place[len] = '\0';
	st->place_fd = state_walk(place, true, link);
	return st->place_fd == -1 ? -1 : 0;
}

int
state_place(const struct state *st, const char **name)
{
	const char *last = strrchr(st->dir, '/') + 1;

	*name = st->place_fd == -1 ? st->dir : last[0] == '\0' ? "." : last;
	return st->place_fd == -1 ? AT_FDCWD : st->place_fd;
}
