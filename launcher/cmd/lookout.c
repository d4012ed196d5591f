/* SPDX-License-Identifier: Apache-2.0 */
/* lookout.c - see lookout.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>

#include "base/fd.h"
#include "launcher/cmd/lookout.h"
#include "launcher/log/thread.h"

#define EVENTS (IN_MODIFY | IN_CREATE | IN_MOVED_TO)

/* Returns true if the kernel tells of a byte that is spliced from @pipe to @file, which
 * is the only thing that @inotify watches. */
static bool
is_told_of(int inotify, const int pipe[2], int file)
{
	struct inotify_event event; /* of a file: without a name */
	char path[32];
	int wd;
	bool told;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	wd = inotify_add_watch(inotify, path, IN_MODIFY);
	told = wd != -1 && write(pipe[1], "", 1) == 1 &&
		splice(pipe[0], NULL, file, NULL, 1, 0) == 1 &&
		read(inotify, &event, sizeof(event)) > 0;
	if (wd != -1)
		inotify_rm_watch(inotify, wd);
	while (read(inotify, &event, sizeof(event)) > 0)
		continue;
	return told;
}

/* Kernels before 6.6 do not (fs/splice.c, fsnotify_modify): tail -f has the
 * same trouble there. Of a memfd newer ones tell nothing at all. */
static bool
tells_of_splice(int inotify)
{
	int file = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int fd[2] = { -1, -1 };
	bool told = file != -1 && pipe2(fd, O_CLOEXEC) == 0 &&
		is_told_of(inotify, fd, file);

	fd_close(fd[0]);
	fd_close(fd[1]);
	fd_close(file);
	return told;
}

bool
lookout_open(struct lookout *w)
{
	*w = (struct lookout){
		.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
		.over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.also_ms = -1,
	};
	for (int i = 0; i < LOOKOUT_ALSO; i++)
		w->also[i].fd = -1;
	w->blind = w->inotify == -1 || !tells_of_splice(w->inotify);
	if (w->over != -1)
		return true;
	lookout_close(w);
	return false;
}

void
lookout_close(struct lookout *w)
{
	fd_close(w->inotify);
	/* A thread may still wait for the lock: `over` stays. */
	w->inotify = -1;
}

int
lookout_folder(struct lookout *w, const char *path)
{
	int wd = w->inotify == -1 ?
		-1 :
		inotify_add_watch(w->inotify, path, EVENTS | IN_ONLYDIR);

	/* No room for more of them, for one user. */
	if (wd == -1 && errno != ENOENT && errno != ENOTDIR)
		w->blind = true;
	return wd;
}

/* --- the lock ------------------------------------------------------------- */

struct waiter {
	int lock, over;
};

static void *
await_lock(void *arg)
{
	struct waiter *waiter = arg;
	uint64_t one = 1;

	while (flock(waiter->lock, LOCK_SH) == -1 && errno == EINTR)
		continue;
	fd_close(waiter->lock);
	fd_tell(waiter->over, &one, sizeof(one));
	free(waiter);
	return NULL;
}

void
lookout_lock(struct lookout *w, const char *folder)
{
	struct waiter *waiter = malloc(sizeof(*waiter));
	char path[PATH_MAX + 8];
	uint64_t one = 1;
	pthread_t thread;

	snprintf(path, sizeof(path), "%s/lock", folder);
	if (waiter == NULL)
		goto fail;
	*waiter = (struct waiter){
		.lock = open(path,
			O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
		.over = w->over,
	};
	if (waiter->lock != -1 &&
		thread_start(&thread, await_lock, waiter) == 0)
		return;
	w->blind = w->blind || waiter->lock != -1;
	fd_close(waiter->lock);
	free(waiter);
fail:
	/* Whoever is told looks for himself. */
	if (!w->blind)
		fd_tell(w->over, &one, sizeof(one));
}

/* --- waiting -------------------------------------------------------------- */

static void
tell_all(struct lookout *w, lookout_fn *fn, void *ctx)
{
	char data[16 * 1024]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	ssize_t n = read(w->inotify, data, sizeof(data));

	for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(data + at);
		fn(ctx, (e->mask & IN_Q_OVERFLOW) != 0 ? LOOKOUT_ALL : e->wd,
			e->len > 0 ? e->name : "");
	}
}

static int
patience(const struct lookout *w)
{
	if (w->blind && (w->also_ms == -1 || w->also_ms > LOOKOUT_BLIND_MS))
		return LOOKOUT_BLIND_MS;
	return w->also_ms;
}

enum lookout_news
lookout_wait(struct lookout *w, bool patient, lookout_fn *fn, void *ctx)
{
	struct pollfd p[3 + LOOKOUT_ALSO] = {
		{ .fd = STDOUT_FILENO }, /* its end alone */
		{ .fd = w->inotify, .events = POLLIN },
		{ .fd = w->over, .events = POLLIN },
	};
	uint64_t times;

	for (int i = 0; i < LOOKOUT_ALSO; i++)
		w->also[i].revents = 0;
	memcpy(p + 3, w->also, sizeof(w->also));
	if (poll(p, 3 + LOOKOUT_ALSO, patient ? patience(w) : 0) == -1)
		return LOOKOUT_CHANGED;
	memcpy(w->also, p + 3, sizeof(w->also));
	if ((p[0].revents & (POLLERR | POLLHUP)) != 0)
		return LOOKOUT_CLOSED;
	if ((p[1].revents & POLLIN) != 0)
		tell_all(w, fn, ctx);
	if (w->blind)
		fn(ctx, LOOKOUT_ALL, "");
	return (p[2].revents & POLLIN) != 0 &&
			read(w->over, &times, sizeof(times)) > 0 ?
		LOOKOUT_OVER :
		LOOKOUT_CHANGED;
}
