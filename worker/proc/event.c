/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - see xrun/event.h.
 *
 * One lock for all of them: who sets an event asks, for each who waits for it,
 * whether that holds now what it waits for, and tells it. So no instant is missed,
 * and who is woken need not look again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <sys/queue.h>

#include <xrun/event.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/proc/report.h"

enum event_kind {
	EVENT_PLAIN,
	EVENT_ANY,
	EVENT_ALL,
};

struct waiter;

/* A waiter in the list of a plain event. */
struct link {
	LIST_ENTRY(link) list;
	struct waiter *waiter;
};

struct xr_event {
	atomic_uint refs;
	enum event_kind kind;
	bool is_set; /* of a plain one, as waiters */
	LIST_HEAD(, link) waiters;
	size_t plain; /* events it comes to, all the way down */
	size_t count;
	struct xr_event *parts[]; /* [count] */
};

struct waiter {
	pthread_cond_t told;
	bool holds;
	enum event_kind kind;
	struct xr_event *const *events;
	size_t count, which;
	struct link *links; /* [used] */
	size_t used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- what they are --------------------------------------------------------- */

static bool all_or_any(enum event_kind kind, struct xr_event *const *events,
	size_t count, size_t *which);

static bool
holds(const struct xr_event *e)
{
	size_t which;

	return e->kind == EVENT_PLAIN ?
		e->is_set :
		all_or_any(e->kind, e->parts, e->count, &which);
}

/* The first that decides it. */
static bool
all_or_any(enum event_kind kind, struct xr_event *const *events, size_t count,
	size_t *which)
{
	bool wanted = kind == EVENT_ANY;

	for (*which = 0; *which < count; ++*which)
		if (holds(events[*which]) == wanted)
			return wanted;
	return !wanted;
}

/* Plain ones of all of them; false: one is NULL, or the list is, or they are too many. */
static bool
count_plain(struct xr_event *const *events, size_t count, size_t *plain)
{
	*plain = 0;
	if (events == NULL && count > 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (events[i] == NULL)
			return false;
		*plain += events[i]->plain;
		if (*plain > XR_EVENT_PARTS_MAX)
			return false;
	}
	return true;
}

static struct xr_event *new(enum event_kind kind,
	struct xr_event *const *events, size_t count)
{
	struct xr_event *e;
	size_t plain;

	if (count > XR_EVENT_PARTS_MAX || !count_plain(events, count, &plain))
		return NULL;
	e = calloc(1, sizeof(*e) + count * sizeof(*e->parts));
	if (e == NULL)
		return NULL;
	atomic_init(&e->refs, 1);
	e->kind = kind;
	e->plain = kind == EVENT_PLAIN ? 1 : plain;
	e->count = count;
	for (size_t i = 0; i < count; i++)
		e->parts[i] = xr_event_ref(events[i]);
	return e;
}

XR_EXPORT struct xr_event *
xr_event_new(void)
{
	return new (EVENT_PLAIN, NULL, 0);
}

XR_EXPORT struct xr_event *
xr_event_new_any(struct xr_event *const *events, size_t count)
{
	return new (EVENT_ANY, events, count);
}

XR_EXPORT struct xr_event *
xr_event_new_all(struct xr_event *const *events, size_t count)
{
	return new (EVENT_ALL, events, count);
}

XR_EXPORT struct xr_event *
xr_event_ref(struct xr_event *event)
{
	atomic_fetch_add(&event->refs, 1);
	return event;
}

XR_EXPORT void
xr_event_unref(struct xr_event *event)
{
	if (event == NULL || atomic_fetch_sub(&event->refs, 1) != 1)
		return;
	for (size_t i = 0; i < event->count; i++)
		xr_event_unref(event->parts[i]);
	free(event);
}

/* --- setting them ---------------------------------------------------------- */

static void
tell_waiters(struct xr_event *e)
{
	struct waiter *w;
	struct link *at;

	LIST_FOREACH(at, &e->waiters, list)
	{
		w = at->waiter;
		if (w->holds ||
			!all_or_any(w->kind, w->events, w->count, &w->which))
			continue;
		w->holds = true;
		pthread_cond_signal(&w->told);
	}
}

XR_EXPORT void
xr_event_set(struct xr_event *event)
{
	if (event->kind != EVENT_PLAIN)
		return;
	pthread_mutex_lock(&lock);
	event->is_set = true;
	tell_waiters(event);
	pthread_mutex_unlock(&lock);
}

XR_EXPORT void
xr_event_clear(struct xr_event *event)
{
	if (event->kind != EVENT_PLAIN)
		return;
	pthread_mutex_lock(&lock);
	event->is_set = false;
	pthread_mutex_unlock(&lock);
}

XR_EXPORT bool
xr_event_is_set(const struct xr_event *event)
{
	bool is_set;

	pthread_mutex_lock(&lock);
	is_set = holds(event);
	pthread_mutex_unlock(&lock);
	return is_set;
}

/* --- waiting --------------------------------------------------------------- */

/* A link in each plain event, of which there is room for as many as were counted. */
static void
link_up(struct waiter *w, struct xr_event *const *events, size_t count)
{
	struct link *at;

	for (size_t i = 0; i < count; i++) {
		if (events[i]->kind != EVENT_PLAIN) {
			link_up(w, events[i]->parts, events[i]->count);
			continue;
		}
		at = &w->links[w->used++];
		at->waiter = w;
		LIST_INSERT_HEAD(&events[i]->waiters, at, list);
	}
}

static void
sleep_until(struct waiter *w, int64_t deadline)
{
	struct timespec at = {
		.tv_sec = deadline / NS_PER_S,
		.tv_nsec = deadline % NS_PER_S,
	};
	int sys = 0;

	while (!w->holds && sys != ETIMEDOUT)
		sys = deadline == INT64_MAX ?
			pthread_cond_wait(&w->told, &lock) :
			pthread_cond_timedwait(&w->told, &lock, &at);
}

static void
init_told(struct waiter *w)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->told, &attr);
	pthread_condattr_destroy(&attr);
}

static void
await(struct waiter *w, int64_t deadline)
{
	init_told(w);
	pthread_mutex_lock(&lock);
	w->holds = all_or_any(w->kind, w->events, w->count, &w->which);
	if (!w->holds) {
		link_up(w, w->events, w->count);
		sleep_until(w, deadline);
		for (size_t i = 0; i < w->used; i++)
			LIST_REMOVE(&w->links[i], list);
	}
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&w->told);
}

static enum xr_status
wait_for(struct waiter *w, int64_t timeout, struct xr_error *err)
{
	int64_t deadline;
	enum xr_status status = run_deadline(timeout, &deadline, err);
	size_t plain;

	if (status != XR_OK)
		return status;
	if (!count_plain(w->events, w->count, &plain))
		return fail(err, XR_E_INVAL,
			"an event that is NULL, or more than %d",
			XR_EVENT_PARTS_MAX);
	w->links = calloc(plain > 0 ? plain : 1, sizeof(*w->links));
	if (w->links == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	await(w, deadline);
	free(w->links);
	return w->holds ? XR_OK : fail(err, XR_E_TIMEOUT, "no event in time");
}

XR_EXPORT enum xr_status
xr_wait_any(struct xr_event *const *events, size_t count, int64_t timeout,
	size_t *which, struct xr_error *err)
{
	struct waiter w = {
		.kind = EVENT_ANY,
		.events = events,
		.count = count,
	};
	enum xr_status status = count > 0 ?
		wait_for(&w, timeout, err) :
		fail(err, XR_E_INVAL, "xr_wait_any: no event");

	if (status == XR_OK && which != NULL)
		*which = w.which;
	return status;
}

XR_EXPORT enum xr_status
xr_wait_all(struct xr_event *const *events, size_t count, int64_t timeout,
	struct xr_error *err)
{
	struct waiter w = {
		.kind = EVENT_ALL,
		.events = events,
		.count = count,
	};

	return wait_for(&w, timeout, err);
}
