/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - see xrun/proc.h: a thread that keeps what it failed of. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/proc/report.h"

#define REPORTS 2 /* of the function, of its cleaner */

struct xr_thread {
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool ended;
	struct run run;
	xr_proc_fn *cleaner;
	enum xr_status status; /* the first that is not XR_OK */
	struct xr_error err;
	uint32_t reports;
	struct xr_value *report[REPORTS];
	char name[];
};

static void
do_one(struct xr_thread *t, xr_proc_fn *fn, const char *func)
{
	struct xr_value *report = NULL;
	struct xr_error err;
	enum xr_status status;

	t->run.fn = fn;
	t->run.func = func;
	status = run_do(&t->run, &err, &report);
	if (report != NULL)
		t->report[t->reports++] = report;
	if (status == XR_OK || t->status != XR_OK)
		return;
	t->status = status;
	t->err = err;
}

static void *
live(void *arg)
{
	struct xr_thread *t = arg;
	char name[16];

	snprintf(name, sizeof(name), "%.15s", t->name);
	pthread_setname_np(pthread_self(), name);
	do_one(t, t->run.fn, "function");
	if (t->cleaner != NULL)
		do_one(t, t->cleaner, "cleaner");
	pthread_mutex_lock(&t->lock);
	t->ended = true;
	pthread_cond_broadcast(&t->over);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void
release(struct xr_thread *t)
{
	for (uint32_t i = 0; i < t->reports; i++)
		xr_value_unref(t->report[i]);
	xr_value_unref(t->run.arg);
	pthread_cond_destroy(&t->over);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static struct xr_thread *new(const struct xr_thread_opts *o)
{
	const char *name = o->name != NULL ? o->name : "thread";
	struct xr_thread *t = calloc(1, sizeof(*t) + strlen(name) + 1);
	pthread_condattr_t attr;

	if (t == NULL)
		return NULL;
	memcpy(t->name, name, strlen(name));
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->over, &attr);
	pthread_condattr_destroy(&attr);
	t->cleaner = o->cleaner;
	t->run = (struct run){
		.fn = o->fn,
		.ctx = o->ctx,
		.name = t->name,
		.started = clock_wall(),
		.ordinal = o->ordinal,
		.arg = o->arg != NULL ? xr_value_ref(o->arg) : NULL,
	};
	return t;
}

XR_EXPORT enum xr_status
xr_thread_start(const struct xr_thread_opts *opts, struct xr_thread **thread,
	struct xr_error *err)
{
	struct xr_thread *t;
	int sys;

	if (opts == NULL || opts->size < sizeof(*opts) || opts->fn == NULL)
		return fail(err, XR_E_INVAL,
			"struct xr_thread_opts: its size, and a function");
	t = new (opts);
	if (t == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	sys = pthread_create(&t->id, NULL, live, t);
	if (sys != 0) {
		release(t);
		errno = sys;
		return fail(err, XR_E_SYS, "pthread_create: %s", strerror(sys));
	}
	*thread = t;
	return XR_OK;
}

XR_EXPORT void
xr_thread_free(struct xr_thread *thread)
{
	if (thread == NULL)
		return;
	pthread_join(thread->id, NULL);
	release(thread);
}

/* False: the time is up. */
static bool
await(struct xr_thread *t, int64_t deadline)
{
	struct timespec at = {
		.tv_sec = deadline / NS_PER_S,
		.tv_nsec = deadline % NS_PER_S,
	};
	bool ended;
	int sys = 0;

	pthread_mutex_lock(&t->lock);
	while (!t->ended && sys == 0)
		sys = deadline == INT64_MAX ?
			pthread_cond_wait(&t->over, &t->lock) :
			pthread_cond_timedwait(&t->over, &t->lock, &at);
	ended = t->ended;
	pthread_mutex_unlock(&t->lock);
	return ended;
}

XR_EXPORT enum xr_status
xr_thread_wait(struct xr_thread *thread, int64_t timeout, struct xr_error *err)
{
	int64_t deadline;
	enum xr_status status = run_deadline(timeout, &deadline, err);

	if (status != XR_OK)
		return status;
	return await(thread, deadline) ?
		XR_OK :
		fail(err, XR_E_TIMEOUT, "%.100s runs still", thread->name);
}

XR_EXPORT enum xr_status
xr_thread_watch(struct xr_thread *thread, int64_t timeout, struct xr_error *err)
{
	enum xr_status status = xr_thread_wait(thread, timeout, err);

	if (status != XR_OK || thread->status == XR_OK)
		return status;
	if (err != NULL)
		*err = thread->err;
	return thread->status;
}

XR_EXPORT struct xr_value *
xr_thread_report(struct xr_thread *thread, size_t i)
{
	if (!await(thread, 0) || i >= thread->reports)
		return NULL;
	return thread->report[i];
}
