/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - see loop.h. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/queue.h>

#include <event2/event.h>

#include "base/clock.h"
#include "event/loop.h"

#define AGAIN_NS (10 * NS_PER_MS) /* to what the kernel would not watch */

struct closing { /* freed at the end of the turn */
	struct closing *next;
};

struct timer {
	struct closing closing; /* first */
	TAILQ_ENTRY(timer) list;
	struct loop *loop;
	timer_fn *fn;
	void *ctx;
	int64_t due; /* 0: not armed, and in no list */
	int64_t late;
};

TAILQ_HEAD(timer_list, timer);

struct watch {
	struct closing closing; /* first */
	TAILQ_ENTRY(watch) list;
	struct loop *loop;
	struct event *event;
	watch_fn *fn;
	void *ctx;
	bool refused; /* resumed, but the kernel had no memory for it */
};

TAILQ_HEAD(watch_list, watch);

/*
 * Timers are in a list of ours, and libevent knows only when the next is due:
 * its own heap grows with malloc(), and a timer that is not armed for want of
 * memory is a job that nobody ends. There are few of them.
 */
struct loop {
	struct event_base *base;
	struct event *reaper; /* frees what was closed */
	struct closing *closing;
	struct event *clock;      /* the first of timers is due */
	struct timer_list timers; /* armed, by time */
	struct watch_list refused;
	struct timer again; /* the refused are tried */
	bool served;        /* an event was called back in this turn */
};

static void
free_closed(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	struct closing *c;

	(void)fd;
	(void)what;
	loop->served = true;
	while (loop->closing != NULL) {
		c = loop->closing;
		loop->closing = c->next;
		free(c);
	}
}

static void
free_later(struct loop *loop, struct closing *c)
{
	c->next = loop->closing;
	loop->closing = c;
	event_active(loop->reaper, EV_TIMEOUT, 0);
}

/* Its warnings say what a call returns as well, and would stand between the
 * lines of the ranks; what ends the program is told. */
static void
on_log(int severity, const char *text)
{
	if (severity >= EVENT_LOG_ERR)
		dprintf(STDERR_FILENO, "libevent: %s\n", text);
}

/* Only if there is one is it woken up. It has room since loop_new(). */
static void
set_clock(struct loop *loop)
{
	const struct timer *next = TAILQ_FIRST(&loop->timers);
	int64_t ns, us;
	struct timeval tv;

	if (next == NULL) {
		event_del(loop->clock);
		return;
	}
	ns = next->due - clock_now();
	/* libevent's clock leaves out what is no whole microsecond. */
	us = ns <= 0 ? 0 : ns / NS_PER_US + 1;
	tv.tv_sec = us / (NS_PER_S / NS_PER_US);
	tv.tv_usec = us % (NS_PER_S / NS_PER_US);
	event_add(loop->clock, &tv);
}

/* What is armed by one of them, for now, is due in the next turn. */
static void
clock_fired(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	int64_t now = clock_now();
	struct timer *t = TAILQ_FIRST(&loop->timers);

	(void)fd;
	(void)what;
	loop->served = true;
	while (t != NULL && t->due <= now &&
		!event_base_got_break(loop->base)) {
		TAILQ_REMOVE(&loop->timers, t, list);
		t->late = clock_now() - t->due;
		t->due = 0;
		t->fn(t->ctx);
		t = TAILQ_FIRST(&loop->timers);
	}
	set_clock(loop);
}

static void
try_refused(void *ctx)
{
	struct loop *loop = ctx;
	struct watch *w, *next;

	for (w = TAILQ_FIRST(&loop->refused); w != NULL; w = next) {
		next = TAILQ_NEXT(w, list);
		if (event_add(w->event, NULL) != 0)
			continue;
		TAILQ_REMOVE(&loop->refused, w, list);
		w->refused = false;
	}
	if (!TAILQ_EMPTY(&loop->refused))
		timer_arm(&loop->again, AGAIN_NS);
}

/* The events of @loop itself. Arming the clock once has libevent make room for
 * it, for good. */
static bool
open_own(struct loop *loop)
{
	struct timeval tv = { .tv_sec = 1 };

	TAILQ_INIT(&loop->timers);
	TAILQ_INIT(&loop->refused);
	loop->again = (struct timer){
		.loop = loop,
		.fn = try_refused,
		.ctx = loop,
	};
	loop->reaper = event_new(loop->base, -1, 0, free_closed, loop);
	loop->clock = event_new(loop->base, -1, 0, clock_fired, loop);
	return loop->reaper != NULL && loop->clock != NULL &&
		event_add(loop->clock, &tv) == 0 && event_del(loop->clock) == 0;
}

struct loop *
loop_new(void)
{
	struct event_config *config = event_config_new();
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL || config == NULL)
		goto fail;
	event_set_log_callback(on_log);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
	/* Or spans would begin with the turn, and end up to 4 ms early. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	loop->base = event_base_new_with_config(config);
	if (loop->base == NULL || !open_own(loop))
		goto fail;
	event_config_free(config);
	return loop;
fail:
	if (config != NULL)
		event_config_free(config);
	loop_free(loop);
	return NULL;
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	free_closed(-1, 0, loop);
	if (loop->reaper != NULL)
		event_free(loop->reaper);
	if (loop->clock != NULL)
		event_free(loop->clock);
	if (loop->base != NULL)
		event_base_free(loop->base);
	free(loop);
}

void
loop_run(struct loop *loop)
{
	int64_t refused = 0; /* clock_now() of the first time in a row */

	do {
		loop->served = false;
		if (event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) != -1)
			return;
		/* The time that a turn takes says nothing: other processes may
		 * have the processor. */
		if (refused == 0 || loop->served)
			refused = clock_now();
		poll(NULL, 0, 1);
	} while (clock_now() - refused < NS_PER_S);
}

void
loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}

static void
watch_fired(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;

	(void)what;
	w->loop->served = true;
	w->fn(fd, w->ctx);
}

struct watch *
watch_open(struct loop *loop, int fd, bool write, watch_fn *fn, void *ctx)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->loop = loop;
	w->fn = fn;
	w->ctx = ctx;
	w->event = event_new(loop->base, fd,
		(write ? EV_WRITE : EV_READ) | EV_PERSIST, watch_fired, w);
	if (w->event == NULL || event_add(w->event, NULL) != 0) {
		if (w->event != NULL)
			event_free(w->event);
		free(w);
		return NULL;
	}
	return w;
}

void
watch_pause(struct watch *w)
{
	if (w->refused)
		TAILQ_REMOVE(&w->loop->refused, w, list);
	w->refused = false;
	event_del(w->event);
}

void
watch_resume(struct watch *w)
{
	if (w->refused || event_add(w->event, NULL) == 0)
		return;
	w->refused = true;
	TAILQ_INSERT_TAIL(&w->loop->refused, w, list);
	timer_arm(&w->loop->again, AGAIN_NS);
}

void
watch_close(struct watch *w)
{
	if (w == NULL)
		return;
	watch_pause(w);
	event_free(w->event);
	free_later(w->loop, &w->closing);
}

struct timer *
timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	struct timer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->loop = loop;
	t->fn = fn;
	t->ctx = ctx;
	return t;
}

void
timer_arm(struct timer *t, int64_t ns)
{
	struct timer_list *timers = &t->loop->timers;
	const struct timer *first = TAILQ_FIRST(timers);
	struct timer *later;

	if (t->due != 0)
		TAILQ_REMOVE(timers, t, list);
	t->due = clock_now() + ns;
	TAILQ_FOREACH(later, timers, list)
	if (later->due > t->due)
		break;
	if (later == NULL)
		TAILQ_INSERT_TAIL(timers, t, list);
	else
		TAILQ_INSERT_BEFORE(later, t, list);
	if (first == t || TAILQ_FIRST(timers) == t)
		set_clock(t->loop);
}

void
timer_disarm(struct timer *t)
{
	bool first = TAILQ_FIRST(&t->loop->timers) == t;

	if (t->due == 0)
		return;
	t->due = 0;
	TAILQ_REMOVE(&t->loop->timers, t, list);
	if (first)
		set_clock(t->loop);
}

bool
timer_armed(const struct timer *t)
{
	return t->due != 0;
}

int64_t
timer_left(const struct timer *t)
{
	int64_t left = t->due - clock_now();

	return t->due == 0 || left < 0 ? 0 : left;
}

int64_t
timer_late(const struct timer *t)
{
	return t->late;
}

void
timer_close(struct timer *t)
{
	if (t == NULL)
		return;
	timer_disarm(t);
	free_later(t->loop, &t->closing);
}
