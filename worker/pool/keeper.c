/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/thread.h"
#include "worker/pool/job.h"
#include "worker/pool/keeper.h"
#include "worker/proc/report.h"

#define EVENTS 16
#define RESULT 1u /* in the word of an event: results, and no worker */

LIST_HEAD(pool_list, xr_pool);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t over; /* it looks at no pool; or has ended */
	struct pool_list pools;
	struct xr_pool *busy; /* looked at, without the lock */
	uint32_t count;
	int epoll, bell; /* of the thread that runs */
	pthread_t thread;
	bool runs, ends;
} k = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.over = PTHREAD_COND_INITIALIZER,
	.pools = LIST_HEAD_INITIALIZER(k.pools),
	.epoll = -1,
	.bell = -1,
};

static _Atomic uint32_t forks;
static __thread bool is_us;

bool
keeper_is_us(void)
{
	return is_us;
}

uint32_t
keeper_forks(void)
{
	return atomic_load_explicit(&forks, memory_order_relaxed);
}

void
keeper_stir(void)
{
	uint64_t one = 1;

	if (k.bell != -1)
		fd_tell(k.bell, &one, sizeof(one));
}

/* --- looking -------------------------------------------------------------------- */

/* One that is there still is not gone until it was looked at. */
static bool
begin_look(struct xr_pool *pool)
{
	struct xr_pool *p;

	pthread_mutex_lock(&k.lock);
	LIST_FOREACH(p, &k.pools, list)
	if (p == pool)
		break;
	k.busy = p;
	pthread_mutex_unlock(&k.lock);
	return p != NULL;
}

static void
end_look(void)
{
	pthread_mutex_lock(&k.lock);
	k.busy = NULL;
	pthread_cond_broadcast(&k.over);
	pthread_mutex_unlock(&k.lock);
}

static void
handle(uint64_t word)
{
	struct xr_pool *pool = (struct xr_pool *)(uintptr_t)(word & ~7ULL);

	if (!begin_look(pool))
		return;
	if ((word & RESULT) != 0)
		take_for_keeper(pool);
	else
		staff_look(pool);
	end_look();
}

/* Who is late, of all; when somebody will be. */
static int64_t
look_for_late(void)
{
	int64_t next = INT64_MAX, when;
	struct xr_pool *pool;

	pthread_mutex_lock(&k.lock);
	LIST_FOREACH(pool, &k.pools, list)
	{
		when = staff_late(pool, clock_now());
		next = when < next ? when : next;
	}
	pthread_mutex_unlock(&k.lock);
	return next;
}

/* False: nobody is to be looked after any more. */
static bool
goes_on(void)
{
	bool runs;

	pthread_mutex_lock(&k.lock);
	runs = k.count > 0;
	pthread_mutex_unlock(&k.lock);
	return runs;
}

static void *
run(void *unused)
{
	struct epoll_event events[EVENTS];
	int64_t due;
	uint64_t word;
	int n;

	(void)unused;
	is_us = true;
	while (goes_on()) {
		due = look_for_late();
		n = epoll_wait(k.epoll, events, EVENTS, run_ms(due));
		for (int i = 0; i < n; i++)
			if (events[i].data.u64 != 0)
				handle(events[i].data.u64);
			else if (read(k.bell, &word, sizeof(word)) == -1)
				continue;
	}
	return NULL;
}

/* --- coming and going ------------------------------------------------------------ */

static enum xr_status
add(int fd, uint32_t events, uint64_t word)
{
	struct epoll_event e = { .events = events, .data.u64 = word };

	return epoll_ctl(k.epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? XR_OK :
								XR_E_SYS;
}

static void
close_all(void)
{
	fd_close(k.epoll);
	fd_close(k.bell);
	k.epoll = k.bell = -1;
}

static enum xr_status
start(struct xr_error *err)
{
	int sys;

	k.epoll = epoll_create1(EPOLL_CLOEXEC);
	k.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k.epoll == -1 || k.bell == -1 || add(k.bell, EPOLLIN, 0) != XR_OK) {
		fail(err, XR_E_SYS, "epoll: %s", strerror(errno));
		close_all();
		return XR_E_SYS;
	}
	k.count = 1;
	sys = thread_begin(&k.thread, run, NULL);
	k.count = 0;
	k.runs = sys == 0;
	if (k.runs)
		return XR_OK;
	close_all();
	errno = sys;
	return fail(err, XR_E_SYS, "pthread_create: %s", strerror(sys));
}

static void
in_child(void)
{
	atomic_fetch_add(&forks, 1);
	pthread_mutex_init(&k.lock, NULL);
	pthread_cond_init(&k.over, NULL);
	LIST_INIT(&k.pools);
	close_all();
	k.busy = NULL;
	k.count = 0;
	k.runs = k.ends = false;
	callback_forked();
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

enum xr_status
keeper_come(struct xr_pool *pool, struct xr_error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum xr_status status = XR_OK;
	bool has_come;
	int fd = -1;

	pthread_once(&once, watch_forks);
	if (pool->out != NULL)
		status = xr_queue_fd(pool->out, &fd, err);
	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&k.lock);
	while (k.ends)
		pthread_cond_wait(&k.over, &k.lock);
	if (!k.runs)
		status = start(err);
	has_come = status == XR_OK;
	if (has_come) {
		k.count++;
		LIST_INSERT_HEAD(&k.pools, pool, list);
	}
	if (status == XR_OK && fd != -1 &&
		add(fd, EPOLLONESHOT, (uintptr_t)pool | RESULT) != XR_OK)
		status = fail(err, XR_E_SYS, "epoll_ctl: %s", strerror(errno));
	pthread_mutex_unlock(&k.lock);
	if (has_come && status != XR_OK)
		keeper_leave(pool);
	return status;
}

void
keeper_leave(struct xr_pool *pool)
{
	pthread_t thread;
	bool ends;
	int fd;

	if (pool->out != NULL && xr_queue_fd(pool->out, &fd, NULL) == XR_OK)
		keeper_forget(fd);
	pthread_mutex_lock(&k.lock);
	LIST_REMOVE(pool, list);
	while (k.busy == pool && !is_us)
		pthread_cond_wait(&k.over, &k.lock);
	ends = --k.count == 0;
	thread = k.thread;
	k.ends = ends;
	pthread_mutex_unlock(&k.lock);
	if (!ends)
		return;
	keeper_stir();
	pthread_join(thread, NULL);
	pthread_mutex_lock(&k.lock);
	close_all();
	k.runs = k.ends = false;
	pthread_cond_broadcast(&k.over);
	pthread_mutex_unlock(&k.lock);
}

void
keeper_watch(struct xr_pool *pool)
{
	struct epoll_event e = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data.u64 = (uintptr_t)pool | RESULT,
	};

	epoll_ctl(k.epoll, EPOLL_CTL_MOD, pool->out->hall->ear, &e);
}

enum xr_status
keeper_await(struct xr_pool *pool, int fd, struct xr_error *err)
{
	return add(fd, EPOLLIN, (uintptr_t)pool) == XR_OK ?
		XR_OK :
		fail(err, XR_E_SYS, "epoll_ctl: %s", strerror(errno));
}

void
keeper_forget(int fd)
{
	epoll_ctl(k.epoll, EPOLL_CTL_DEL, fd, NULL);
}
