/* SPDX-License-Identifier: Apache-2.0 */
/*
 * final.c - see xrun/final.h.
 *
 * No lock is held while one is called: it may make others, and drop them. A child
 * of fork() finds its parent's, by whose pid it knows them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/queue.h>

#include "base/status.h"
#include "worker/proc/final.h"

struct xr_final {
	LIST_ENTRY(xr_final) list;
	xr_final_fn *fn;
	void *ctx;
	int32_t priority;
	pid_t owner;
};

/* By priority, of equal ones the latest first. */
static LIST_HEAD(, xr_final) all = LIST_HEAD_INITIALIZER(all);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void
begin(void)
{
	pthread_atfork(NULL, NULL, in_child);
	atexit(final_run_all);
}

static void
insert(struct xr_final *f)
{
	struct xr_final *at = LIST_FIRST(&all), *last = NULL;

	for (; at != NULL && at->priority > f->priority;
		at = LIST_NEXT(at, list))
		last = at;
	if (last == NULL)
		LIST_INSERT_HEAD(&all, f, list);
	else
		LIST_INSERT_AFTER(last, f, list);
}

XR_EXPORT enum xr_status
xr_final_new(xr_final_fn *fn, void *ctx, int32_t priority,
	struct xr_final **final, struct xr_error *err)
{
	struct xr_final *f;

	if (fn == NULL)
		return fail(err, XR_E_INVAL, "xr_final_new: no function");
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	f->fn = fn;
	f->ctx = ctx;
	f->priority = priority;
	f->owner = getpid();
	pthread_once(&once, begin);
	pthread_mutex_lock(&lock);
	insert(f);
	pthread_mutex_unlock(&lock);
	if (final != NULL)
		*final = f;
	return XR_OK;
}

/* Take it out; false: another process's, somebody has, or it is NULL. */
static bool
take(struct xr_final *final)
{
	struct xr_final *f;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(f, &all, list)
	if (f == final)
		break;
	if (f != NULL)
		LIST_REMOVE(f, list);
	pthread_mutex_unlock(&lock);
	return f != NULL;
}

XR_EXPORT bool
xr_final_run(struct xr_final *final)
{
	bool ours;

	if (!take(final))
		return false;
	ours = final->owner == getpid();
	if (ours)
		final->fn(final->ctx);
	free(final);
	return ours;
}

XR_EXPORT void
xr_final_drop(struct xr_final *final)
{
	if (take(final))
		free(final);
}

/* The next of this process, which is nobody's any more; NULL: there is none. */
static struct xr_final *
take_first(void)
{
	pid_t self = getpid();
	struct xr_final *f;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(f, &all, list)
	if (f->owner == self)
		break;
	if (f != NULL)
		LIST_REMOVE(f, list);
	pthread_mutex_unlock(&lock);
	return f;
}

void
final_run_all(void)
{
	struct xr_final *f;

	while ((f = take_first()) != NULL) {
		f->fn(f->ctx);
		free(f);
	}
}
