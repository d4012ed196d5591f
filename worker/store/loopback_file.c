/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loopback_file.c - the store of env:// where MASTER_ADDR is the loopback: a file instead
 * of a listener, so that no other user can reach it.
 *
 * The files are store-PORT and store-PORT.lock in $XDG_RUNTIME_DIR/xrun, or below
 * /run/user/UID, in /tmp/xrun-UID, or if another user has made that, in .run-HOST of the
 * state directory: the folders of launcher/ctl/root.h. A process with rank 0 holds a record lock
 * (fcntl(2)) on the second. The lock ends with the process and is not inherited
 * by fork(). The first such process removes what a killed one left, the last one
 * removes both files. Other ranks wait until the lock is held, and learn of the
 * end of rank 0 from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/queue.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/status.h"
#include "worker/store/driver.h"

#define PAUSE_NS (5 * NS_PER_MS)
#define WHOLE    0 /* of a lock: start and length 0 are the whole file */

/* A lock that this process holds as rank 0. Closing any descriptor of a file drops
 * the record locks of the process, so all handles share this one. */
struct loopback_served {
	TAILQ_ENTRY(loopback_served) list;
	char path[STORE_PATH_MAX]; /* of the lock */
	pid_t pid;                 /* a forked child holds nothing */
	unsigned users;
	int fd;
};

struct loopback_file {
	struct driver driver;
	struct file_owner owner;
	struct driver *file;
	struct loopback_served *served; /* NULL if another process is rank 0 */
	struct store_address address;
	int lock; /* of another rank: to look at; -1 */
};

static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, loopback_served) served = TAILQ_HEAD_INITIALIZER(served);

/* --- the folder ------------------------------------------------------------ */

/* Returns true if @path is a folder of this user, and no other user can write it. */
static bool
loopback_file_is_private(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

/* The folder below a runtime folder, if that is the user's. */
static bool
loopback_file_runtime(const char *runtime, char *path, size_t cap)
{
	if (runtime == NULL || runtime[0] != '/' ||
		!loopback_file_is_private(runtime))
		return false;
	if ((size_t)snprintf(path, cap, "%s/xrun", runtime) >= cap)
		return false;
	return (mkdir(path, 0700) == 0 || errno == EEXIST) &&
		loopback_file_is_private(path);
}

/* Makes the folder and those above it that do not exist. */
static bool
loopback_file_make(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	return (mkdir(path, 0700) == 0 || errno == EEXIST) &&
		loopback_file_is_private(path);
}

static bool
loopback_file_state(char *path, size_t cap)
{
	const char *state = secure_getenv("XDG_STATE_HOME");
	const char *home = secure_getenv("HOME");
	bool given = state != NULL && state[0] == '/';
	char host[256];

	if (!given && (home == NULL || home[0] != '/'))
		return false;
	return (size_t)snprintf(path, cap, "%s%s/xrun/.run-%s",
		       given ? state : home, given ? "" : "/.local/state",
		       host_name(host, sizeof(host))) < cap &&
		loopback_file_make(path);
}

static enum xr_status
loopback_file_folder(char *path, size_t cap, struct xr_error *err)
{
	char user[64];

	snprintf(user, sizeof(user), "/run/user/%u", (unsigned)geteuid());
	if (loopback_file_runtime(secure_getenv("XDG_RUNTIME_DIR"), path,
		    cap) ||
		loopback_file_runtime(user, path, cap))
		return XR_OK;
	snprintf(path, cap, "/tmp/xrun-%u", (unsigned)geteuid());
	if ((mkdir(path, 0700) == 0 || errno == EEXIST) &&
		loopback_file_is_private(path))
		return XR_OK;
	if (loopback_file_state(path, cap))
		return XR_OK;
	return fail(err, XR_E_AUTH,
		"store: neither /tmp/xrun-%u nor .run-HOST in the state directory is a folder of this user alone\tXDG_RUNTIME_DIR=DIR with mode 0700, or file:///PATH",
		(unsigned)geteuid());
}

/* --- the lock -------------------------------------------------------------- */

static bool
loopback_file_set_lock(int fd, short type)
{
	struct flock fl = { .l_type = type,
		.l_whence = SEEK_SET,
		.l_start = WHOLE,
		.l_len = WHOLE };

	return fcntl(fd, F_SETLK, &fl) == 0;
}

/* Returns true if a process with rank 0 serves: it holds a shared lock. */
static bool
loopback_file_is_held(int fd)
{
	struct flock fl = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = WHOLE,
		.l_len = WHOLE };

	return fcntl(fd, F_GETLK, &fl) == 0 && fl.l_type == F_RDLCK;
}

/* Returns true if @fd is the file that has the name now. */
static bool
loopback_file_is_current(int fd, const char *path)
{
	struct stat has, named;

	return fstat(fd, &has) == 0 && lstat(path, &named) == 0 &&
		has.st_ino == named.st_ino && has.st_dev == named.st_dev;
}

static void
loopback_file_lock_path(const char *path, char *out)
{
	size_t len = strlen(path);

	memcpy(out, path, len);
	memcpy(out + len, ".lock", sizeof(".lock"));
}

/* The lock as rank 0: alone at first, to remove what is left of an earlier store,
 * then shared. Fails with EAGAIN if another process is doing one of the two. */
static int
loopback_file_take(const char *lock, const char *path)
{
	int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd == -1)
		return -1;
	if (loopback_file_set_lock(fd, F_WRLCK) &&
		loopback_file_is_current(fd, lock) &&
		(unlink(path) == 0 || errno == ENOENT) &&
		loopback_file_set_lock(fd, F_RDLCK))
		return fd;
	if (loopback_file_set_lock(fd, F_RDLCK) &&
		loopback_file_is_current(fd, lock))
		return fd;
	fd_close(fd);
	errno = EAGAIN;
	return -1;
}

static struct loopback_served *
loopback_file_find(const char *lock)
{
	struct loopback_served *s;

	TAILQ_FOREACH(s, &served, list)
	if (s->pid == getpid() && strcmp(s->path, lock) == 0)
		return s;
	return NULL;
}

/* --- rank 0 ---------------------------------------------------------------- */

static enum xr_status
loopback_file_serve_new(struct loopback_file *l, const char *lock,
	int64_t until, struct xr_error *err)
{
	struct loopback_served *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	do {
		s->fd = loopback_file_take(lock, l->address.path);
	} while (s->fd == -1 && errno == EAGAIN &&
		driver_pause(-1, PAUSE_NS, until));
	if (s->fd == -1) {
		free(s);
		return fail(err, XR_E_SYS, "store: %s: %s", lock,
			strerror(errno));
	}
	memcpy(s->path, lock, strlen(lock) + 1);
	s->pid = getpid();
	s->users = 1;
	TAILQ_INSERT_TAIL(&served, s, list);
	l->served = s;
	return XR_OK;
}

static enum xr_status
loopback_file_serve(struct loopback_file *l, const char *lock, int64_t until,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;

	pthread_mutex_lock(&served_lock);
	l->served = loopback_file_find(lock);
	if (l->served != NULL)
		l->served->users++;
	else
		status = loopback_file_serve_new(l, lock, until, err);
	pthread_mutex_unlock(&served_lock);
	return status;
}

static void
loopback_file_unserve(struct loopback_file *l)
{
	struct loopback_served *s = l->served;

	pthread_mutex_lock(&served_lock);
	if (s != NULL && --s->users == 0) {
		TAILQ_REMOVE(&served, s, list);
		if (loopback_file_set_lock(s->fd, F_WRLCK)) {
			unlink(l->address.path);
			unlink(s->path);
		}
		fd_close(s->fd);
		free(s);
	}
	pthread_mutex_unlock(&served_lock);
}

/* --- the other ranks ------------------------------------------------------- */

/* Opens the lock and checks if it is held. A process that is also rank 0 must
 * not: closing the descriptor would drop its lock. */
static bool
loopback_file_look(struct loopback_file *l, const char *lock)
{
	l->lock = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (l->lock == -1)
		return false;
	if (loopback_file_is_held(l->lock) &&
		loopback_file_is_current(l->lock, lock))
		return true;
	fd_close(l->lock);
	l->lock = -1;
	return false;
}

static enum xr_status
loopback_file_await(struct loopback_file *l, const char *lock, int64_t until,
	struct xr_error *err)
{
	bool there;

	do {
		pthread_mutex_lock(&served_lock);
		l->served = loopback_file_find(lock);
		if (l->served != NULL)
			l->served->users++;
		there = l->served != NULL || loopback_file_look(l, lock);
		pthread_mutex_unlock(&served_lock);
		if (there)
			return XR_OK;
	} while (driver_pause(-1, PAUSE_NS, until) && clock_now() < until);
	return fail(err, XR_E_TIMEOUT,
		"store: rank 0 did not open its store in %.120s\ta process of this user on this machine; on several, tcp://HOST:PORT",
		l->address.path);
}

static bool
loopback_file_is_lost(struct file_owner *owner)
{
	struct loopback_file *l = (struct loopback_file *)((char *)owner -
		offsetof(struct loopback_file, owner));

	return l->lock != -1 && !loopback_file_is_held(l->lock);
}

/* --- the driver ------------------------------------------------------------ */

static void
loopback_file_ask(struct driver *driver, struct store_request *q, int64_t until,
	struct store_reply *r)
{
	struct loopback_file *l = (struct loopback_file *)driver;

	l->file->ops->ask(l->file, q, until, r);
}

static void
loopback_file_close(struct driver *driver)
{
	struct loopback_file *l = (struct loopback_file *)driver;

	l->file->ops->close(l->file);
}

static void
loopback_file_free(struct driver *driver)
{
	struct loopback_file *l = (struct loopback_file *)driver;

	if (l->file != NULL)
		l->file->ops->free(l->file);
	fd_close(l->lock);
	loopback_file_unserve(l);
	free(l);
}

static const struct driver_ops ops = {
	.ask = loopback_file_ask,
	.close = loopback_file_close,
	.free = loopback_file_free,
};

enum xr_status
loopback_file_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *err)
{
	struct loopback_file *l = calloc(1, sizeof(*l));
	char lock[STORE_PATH_MAX];
	size_t room = sizeof(lock) - sizeof("/store-65535.lock");
	enum xr_status status;

	if (l == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	l->driver.ops = &ops;
	l->owner.is_lost = loopback_file_is_lost;
	l->lock = -1;
	l->address = *address;
	status = loopback_file_folder(l->address.path, room, err);
	if (status == XR_OK) {
		snprintf(l->address.path + strlen(l->address.path), 16,
			"/store-%u", address->port);
		loopback_file_lock_path(l->address.path, lock);
		status = address->serve ?
			loopback_file_serve(l, lock, until, err) :
			loopback_file_await(l, lock, until, err);
	}
	if (status == XR_OK)
		status =
			file_open(&l->address, &l->owner, until, &l->file, err);
	if (status == XR_OK)
		*driver = &l->driver;
	else
		loopback_file_free(&l->driver);
	return status;
}
