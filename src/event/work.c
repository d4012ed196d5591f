/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - see work.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "event/work.h"

struct work {
	pthread_mutex_t lock;
	pthread_cond_t more; /* a task was posted */
	pthread_cond_t done; /* nothing is left */
	struct work_task *first, **last;
	bool started, busy;
};

struct work *
work_new(void)
{
	struct work *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (w == NULL)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, &attr);
	pthread_cond_init(&w->done, &attr);
	pthread_condattr_destroy(&attr);
	w->last = &w->first;
	return w;
}

/* The next task is done, with the lock held before and after. One of the
 * caller's own may be posted again as soon as it has begun. */
static void
do_next(struct work *w)
{
	struct work_task *t = w->first;
	struct work_task todo = *t;

	w->first = t->next;
	if (w->first == NULL)
		w->last = &w->first;
	pthread_mutex_unlock(&w->lock);
	todo.fn(todo.ctx);
	if (!todo.own)
		free(t);
	pthread_mutex_lock(&w->lock);
}

static void *
run(void *arg)
{
	struct work *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (w->first == NULL) {
			w->busy = false;
			pthread_cond_broadcast(&w->done);
			pthread_cond_wait(&w->more, &w->lock);
		}
		do_next(w);
	}
	return NULL;
}

/* With the lock held; a thread that cannot be made is tried again. */
static void
start(struct work *w)
{
	pthread_t thread;

	if (w->started || pthread_create(&thread, NULL, run, w) != 0)
		return;
	pthread_detach(thread);
	w->started = true;
}

static void
post(struct work *w, struct work_task *t)
{
	pthread_mutex_lock(&w->lock);
	*w->last = t;
	w->last = &t->next;
	w->busy = true;
	start(w);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}

bool
work_post(struct work *w, work_fn *fn, void *ctx)
{
	struct work_task *t = malloc(sizeof(*t));

	if (t == NULL)
		return false;
	*t = (struct work_task){ .fn = fn, .ctx = ctx };
	post(w, t);
	return true;
}

void
work_post_own(struct work *w, struct work_task *t, work_fn *fn, void *ctx)
{
	*t = (struct work_task){ .fn = fn, .ctx = ctx, .own = true };
	post(w, t);
}

/* No thread is to be had: late is better than never. With the lock held. */
static void
run_here(struct work *w)
{
	while (w->first != NULL)
		do_next(w);
	w->busy = false;
}

bool
work_idle(struct work *w)
{
	bool idle;

	pthread_mutex_lock(&w->lock);
	idle = !w->busy;
	pthread_mutex_unlock(&w->lock);
	return idle;
}

/* With the lock held. */
static void
push(struct work *w)
{
	if (w->busy)
		start(w);
	if (!w->started)
		run_here(w);
}

void
work_push(struct work *w)
{
	pthread_mutex_lock(&w->lock);
	push(w);
	pthread_mutex_unlock(&w->lock);
}

bool
work_wait(struct work *w, int64_t ns)
{
	int64_t due = clock_now() + ns;
	struct timespec at = {
		.tv_sec = due / NS_PER_S,
		.tv_nsec = due % NS_PER_S,
	};
	int sys = 0;

	pthread_mutex_lock(&w->lock);
	push(w);
	while (w->busy && sys != ETIMEDOUT)
		sys = pthread_cond_timedwait(&w->done, &w->lock, &at);
	sys = w->busy;
	pthread_mutex_unlock(&w->lock);
	return sys == 0;
}
