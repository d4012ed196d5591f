/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - see place.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/ctl/place.h"
#include "launcher/ctl/root.h"

#define SOCKET     "control"
#define FOLDER     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define BACKLOG    128
#define TAKE_TRIES 20
#define YOUNG_S    2 /* may be on its way to its lock */

/* Nobody else can look into it or change what we do there. */
static bool
is_ours_alone(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		(st.st_mode & 0077) == 0;
}

/* @name below @at, made if it is not there. */
static int
open_made(int at, const char *name, bool make)
{
	bool made = make && mkdirat(at, name, 0700) == 0;
	int fd, sys;

	if (make && !made && errno != EEXIST)
		return -1;
	fd = openat(at, name, FOLDER);
	if (fd != -1 && is_ours_alone(fd))
		return fd;
	sys = fd == -1 ? errno : EPERM;
	if (made)
		unlinkat(at, name, AT_REMOVEDIR);
	fd_close(fd);
	errno = sys;
	return -1;
}

/* The folder of all jobs; -1 with errno and its name in @where. */
static int
open_root(bool make, char where[static CTL_WHERE_MAX])
{
	struct ctl_root root;
	bool found = ctl_root_open(&root, make, NULL);

	ctl_root_where(&root, where);
	return found ? root.dir : -1;
}

/* True if the folder, which is open, is ours by now, and there. */
static bool
take(const struct ctl_place *p, int root)
{
	struct stat held, named;

	return flock(p->dir, LOCK_EX | LOCK_NB) == 0 &&
		fstat(p->dir, &held) == 0 &&
		fstatat(root, p->id, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* Who looks at jobs holds a lock for a moment, and who sweeps may remove what we
 * just made; only a job holds it for longer. */
static bool
make_and_take(struct ctl_place *p, int root)
{
	const struct timespec pause = { .tv_nsec = 5 * NS_PER_MS };

	for (int tries = 0; tries < TAKE_TRIES; tries++) {
		if (tries > 0)
			nanosleep(&pause, NULL);
		p->dir = open_made(root, p->id, true);
		if (p->dir == -1 && errno != ENOENT)
			return false;
		if (p->dir != -1 && take(p, root))
			return true;
		fd_close(p->dir);
		p->dir = -1;
		errno = EEXIST;
	}
	return false;
}

enum xr_status
ctl_place_open(struct ctl_place *p, const char *id, struct xr_error *err)
{
	char where[CTL_WHERE_MAX];
	int root = open_root(true, where), sys;
	bool ours;

	*p = CTL_PLACE_NONE;
	snprintf(p->id, sizeof(p->id), "%s", id);
	if (root == -1)
		return fail(err, XR_E_SYS, "%s: %s", where, strerror(errno));
	ours = make_and_take(p, root);
	sys = errno;
	fd_close(root);
	if (ours)
		return XR_OK;
	*p = CTL_PLACE_NONE;
	if (sys == EEXIST)
		return fail(err, XR_E_EXISTS,
			"%s: %s: another job of that name runs", where, id);
	return fail(err, XR_E_SYS, "%s: %s: %s", where, id, strerror(sys));
}

static void
name_socket(int dir, const char *socket, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%s",
		dir, socket);
}

static int
listen_as(const struct ctl_place *p, const char *as)
{
	struct sockaddr_un name;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd == -1)
		return -1;
	unlinkat(p->dir, as, 0); /* of a job that was killed */
	name_socket(p->dir, as, &name);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 &&
		fchmodat(p->dir, as, 0600, 0) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

int
ctl_place_listen(const struct ctl_place *p)
{
	return listen_as(p, SOCKET);
}

int
ctl_place_listen_http(const struct ctl_place *p)
{
	return listen_as(p, CTL_PLACE_HTTP);
}

bool
ctl_place_put_token(const struct ctl_place *p, const char *text)
{
	int fd, status;

	unlinkat(p->dir, CTL_PLACE_TOKEN, 0);
	fd = openat(p->dir, CTL_PLACE_TOKEN,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	status = fd == -1 ? -1 : fd_write_all(fd, text, strlen(text));
	fd_close(fd);
	return status == 0;
}

bool
ctl_place_remove(const struct ctl_place *p)
{
	char name[CTL_ID_MAX + 4];

	if (p->dir == -1)
		return true;
	unlinkat(p->dir, CTL_PLACE_HTTP, 0);
	unlinkat(p->dir, CTL_PLACE_TOKEN, 0);
	unlinkat(p->dir, SOCKET, 0);
	snprintf(name, sizeof(name), "../%s", p->id);
	return unlinkat(p->dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

void
ctl_place_forget(const char *id)
{
	char where[64];
	int root = open_root(false, where);

	if (root != -1)
		unlinkat(root, id, AT_REMOVEDIR);
	fd_close(root);
}

/* What a walk over the folders of jobs does with each. */
struct walk {
	ctl_place_fn *fn;  /* for those that live; or NULL */
	ctl_dead_fn *dead; /* for all others; or NULL */
	bool remove;       /* the others */
	void *ctx;
};

/* One that is being made is not locked yet, and one that is being removed not
 * any more: then it has no socket. */
static bool
is_leftover(const struct ctl_place *p, const struct stat *st)
{
	/* The clock may have been set back. */
	int64_t age = clock_wall() / NS_PER_S - st->st_mtim.tv_sec;
	struct stat socket;

	return fstatat(p->dir, SOCKET, &socket, AT_SYMLINK_NOFOLLOW) == 0 ||
		age > YOUNG_S || age < -YOUNG_S;
}

static void
visit_dead(const struct walk *w, const struct ctl_place *p)
{
	struct stat st;

	if (fstat(p->dir, &st) == -1 || (!w->remove && !is_leftover(p, &st)))
		return;
	if (w->dead != NULL)
		w->dead(w->ctx, p->id);
	if (w->remove)
		ctl_place_remove(p);
}

/* False: enough. */
static bool
visit(const struct walk *w, int root, const char *name)
{
	struct ctl_place p = { .dir = -1 };
	bool lives, more = true;

	if (snprintf(p.id, sizeof(p.id), "%s", name) >= (int)sizeof(p.id))
		return true;
	p.dir = openat(root, name, FOLDER);
	if (p.dir == -1)
		return true;
	/* Shared: two who look at once are no job. */
	lives = w->remove ? !take(&p, root) :
			    flock(p.dir, LOCK_SH | LOCK_NB) == -1;
	if (!lives)
		visit_dead(w, &p);
	else if (w->fn != NULL)
		more = w->fn(w->ctx, name);
	fd_close(p.dir);
	return more;
}

static bool
walk_root(void *ctx, const struct ctl_root *root)
{
	const struct walk *w = ctx;
	int own = openat(root->dir, ".", FOLDER);
	DIR *dir = own == -1 ? NULL : fdopendir(own);
	const struct dirent *d;
	bool more = true;

	while (dir != NULL && more && (d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.')
			more = visit(w, root->dir, d->d_name);
	if (dir != NULL)
		closedir(dir);
	else
		fd_close(own);
	return more;
}

static void
walk(const struct walk *w)
{
	ctl_root_each(false, walk_root, (void *)w);
}

void
ctl_place_each(ctl_place_fn *fn, void *ctx)
{
	walk(&(struct walk){ .fn = fn, .ctx = ctx });
}

void
ctl_place_each_dead(ctl_dead_fn *fn, void *ctx)
{
	walk(&(struct walk){ .dead = fn, .ctx = ctx });
}

void
ctl_place_sweep(void)
{
	walk(&(struct walk){ .remove = true });
}

struct place_search {
	const char *id;
	int dir, sys;
};

static bool
place_open_in(void *ctx, const struct ctl_root *root)
{
	struct place_search *search = ctx;

	search->dir = openat(root->dir, search->id, FOLDER);
	search->sys = errno;
	return search->dir == -1;
}

/* The folder of job @id, or -1 with errno. */
static int
open_job(const char *id)
{
	struct place_search search = { .id = id, .dir = -1, .sys = ENOENT };

	ctl_root_each(false, place_open_in, &search);
	errno = search.sys;
	return search.dir;
}

/* No event tells of room among those who wait to be let in. */
static int
connect_until(int fd, const struct sockaddr_un *name, int64_t until)
{
	const struct timespec pause = { .tv_nsec = 10 * NS_PER_MS };

	while (connect(fd, (const struct sockaddr *)name, sizeof(*name)) ==
		-1) {
		if (errno != EAGAIN || clock_now() >= until)
			return -1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

bool
ctl_place_stat(const char *id, struct stat *out)
{
	int dir = open_job(id);
	bool is = dir != -1 && fstat(dir, out) == 0;

	fd_close(dir);
	return is;
}

int
ctl_connect(const char *id, int64_t until)
{
	struct sockaddr_un name;
	int dir = open_job(id), fd, status;

	if (dir == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	name_socket(dir, SOCKET, &name);
	status = fd == -1 ? -1 : connect_until(fd, &name, until);
	fd_close(dir);
	if (status == 0)
		return fd;
	fd_close(fd);
	return -1;
}

void
ctl_await(const char *id)
{
	int dir = open_job(id);

	while (dir != -1 && flock(dir, LOCK_SH) == -1 && errno == EINTR)
		continue;
	fd_close(dir);
}
