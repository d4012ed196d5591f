/* SPDX-License-Identifier: Apache-2.0 */
/* vigil.c - see vigil.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/queue/user.h"
#include "worker/queue/vigil.h"

enum what {
	VIGIL_STOP,
	VIGIL_USER,
	VIGIL_PIPE,
};

struct watched {
	LIST_ENTRY(watched) list;
	struct user_id id;
	int fd;
};

struct vigil {
	pthread_t thread;
	int epoll, stop;
	LIST_HEAD(, watched) watched; /* under the lock */
};

/* Never held together with another, but that of all halls before it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vigil *vigil;

/* --- what is heard -------------------------------------------------------------------- */

static uint64_t
tag(enum what what, int fd)
{
	return (uint64_t)what << 32 | (uint32_t)fd;
}

static bool
watch_fd(const struct vigil *v, enum what what, int fd)
{
	struct epoll_event e = {
		.events = (what == VIGIL_PIPE ? 0 : EPOLLIN) | EPOLLET,
		.data.u64 = tag(what, fd),
	};

	return epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void
sweep_pid(struct hall *h, void *ctx)
{
	const struct user_id *dead = ctx;
	struct user_id id;

	for (uint32_t i = 1; i < HALL_USERS; i++)
		if (user_at(h, i, &id) && id.pid == dead->pid)
			user_check(h, id.who);
}

static void
unwatch(struct vigil *v, struct watched *w)
{
	(void)v;
	LIST_REMOVE(w, list);
	close(w->fd);
	free(w);
}

static void
hear_end(struct vigil *v, int fd)
{
	struct user_id dead = { 0 };
	struct watched *w;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(w, &v->watched, list)
	if (w->fd == fd)
		break;
	if (w != NULL) {
		dead = w->id;
		unwatch(v, w);
	}
	pthread_mutex_unlock(&lock);
	if (dead.pid != 0)
		hall_each(sweep_pid, &dead);
}

static void
look_at_pipe(struct hall *h, void *ctx)
{
	if (h->ear == *(const int *)ctx)
		hall_abandoned(h);
}

static void *
run(void *arg)
{
	struct vigil *v = arg;
	struct epoll_event e;

	for (;;) {
		int fd;

		if (epoll_wait(v->epoll, &e, 1, -1) != 1)
			continue;
		fd = (int)(uint32_t)e.data.u64;
		switch ((enum what)(e.data.u64 >> 32)) {
		case VIGIL_STOP:
			return NULL;
		case VIGIL_USER:
			hear_end(v, fd);
			break;
		case VIGIL_PIPE:
			hall_each(look_at_pipe, &fd);
			break;
		}
	}
}

/* --- its life ------------------------------------------------------------------------- */

static void
vigil_free(struct vigil *v)
{
	while (!LIST_EMPTY(&v->watched))
		unwatch(v, LIST_FIRST(&v->watched));
	fd_close(v->epoll);
	fd_close(v->stop);
	free(v);
}

static int
begin(struct vigil *v)
{
	sigset_t all, before;
	int sys;

	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	v->stop = eventfd(0, EFD_CLOEXEC);
	if (v->epoll == -1 || v->stop == -1 ||
		!watch_fd(v, VIGIL_STOP, v->stop))
		return errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sys = pthread_create(&v->thread, NULL, run, v);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return sys;
}

static enum xr_status
need_vigil(struct xr_error *err)
{
	struct vigil *v;
	int sys;

	if (vigil != NULL)
		return XR_OK;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	LIST_INIT(&v->watched);
	v->epoll = v->stop = -1;
	sys = begin(v);
	if (sys != 0) {
		vigil_free(v);
		errno = sys;
		return fail(err, XR_E_SYS,
			"who watches the users of queues: %s", strerror(sys));
	}
	vigil = v;
	return XR_OK;
}

void
vigil_end(struct vigil *v)
{
	const uint64_t one = 1;

	if (v == NULL)
		return;
	fd_tell(v->stop, &one, sizeof(one));
	pthread_join(v->thread, NULL);
	vigil_free(v);
}

/* --- whom it watches ------------------------------------------------------------------ */

static bool
is_watched(const struct vigil *v, const struct user_id *id)
{
	const struct watched *w;

	LIST_FOREACH(w, &v->watched, list)
	if (w->id.pid == id->pid &&
		(id->start == 0 || w->id.start == 0 ||
			w->id.start == id->start))
		return true;
	return false;
}

static enum xr_status
watch(struct vigil *v, struct hall *h, uint32_t user, const struct user_id *id)
{
	struct watched *w = malloc(sizeof(*w));
	bool is_dead;

	if (w == NULL)
		return XR_E_NOMEM;
	w->id = *id;
	w->fd = user_open(id, &is_dead);
	if (w->fd != -1 && watch_fd(v, VIGIL_USER, w->fd)) {
		LIST_INSERT_HEAD(&v->watched, w, list);
		return XR_OK;
	}
	fd_close(w->fd);
	free(w);
	if (!is_dead)
		return XR_E_SYS;
	user_sweep(h, user, id);
	return XR_OK;
}

static enum xr_status
watch_users(struct vigil *v, struct hall *h)
{
	uint32_t us = (uint32_t)getpid();
	enum xr_status status = XR_OK;
	struct user_id id;

	for (uint32_t i = 1; i < HALL_USERS && status == XR_OK; i++)
		if (user_at(h, i, &id) && id.pid != us && !is_watched(v, &id))
			status = watch(v, h, i, &id);
	return status;
}

static enum xr_status
follow(struct hall *h, uint32_t roll, struct xr_error *err)
{
	enum xr_status status = need_vigil(err);

	if (status != XR_OK)
		return status;
	if (!h->heard && !watch_fd(vigil, VIGIL_PIPE, h->ear))
		return fail(err, XR_E_SYS, "epoll: %s", strerror(errno));
	h->heard = true;
	status = watch_users(vigil, h);
	if (status != XR_OK)
		return fail(err, status, "a user of a queue: %s",
			strerror(errno));
	atomic_store(&h->followed, roll);
	return XR_OK;
}

enum xr_status
vigil_follow(struct hall *h, struct xr_error *err)
{
	uint32_t roll = atomic_load(&h->head->roll);
	enum xr_status status;

	if (roll == atomic_load(&h->followed))
		return XR_OK;
	pthread_mutex_lock(&lock);
	status = follow(h, roll, err);
	pthread_mutex_unlock(&lock);
	return status;
}

struct vigil *
vigil_forget(struct hall *h, bool is_last)
{
	struct vigil *v;

	pthread_mutex_lock(&lock);
	v = vigil;
	if (h->heard) /* implies v != NULL */
		epoll_ctl(v->epoll, EPOLL_CTL_DEL, h->ear, NULL);
	if (is_last)
		vigil = NULL;
	pthread_mutex_unlock(&lock);
	return is_last ? v : NULL;
}

/* --- fork ----------------------------------------------------------------------------- */

void
vigil_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void
vigil_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The thread is not here. */
void
vigil_in_child(void)
{
	if (vigil != NULL)
		vigil_free(vigil);
	vigil = NULL;
	pthread_mutex_unlock(&lock);
}
