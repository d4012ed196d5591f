/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - see loop.h. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "event/loop.h"

#define TURN_NS (10 * NS_PER_MS)

struct closing { /* freed at the end of the turn */
	struct closing *next;
};

struct loop {
	struct event_base *base;
	struct event *reaper; /* frees what was closed */
	struct closing *closing;
};

struct watch {
	struct closing closing; /* first */
	struct loop *loop;
	struct event *event;
	watch_fn *fn;
	void *ctx;
};

struct timer {
	struct closing closing; /* first */
	struct loop *loop;
	struct event *event;
	timer_fn *fn;
	void *ctx;
	int64_t due;
	int64_t late;
};

static void
free_closed(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	struct closing *c;

	(void)fd;
	(void)what;
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
	if (loop->base == NULL)
		goto fail;
	loop->reaper = event_new(loop->base, -1, 0, free_closed, loop);
	if (loop->reaper == NULL)
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
	if (loop->base != NULL)
		event_base_free(loop->base);
	free(loop);
}

void
loop_run(struct loop *loop)
{
	int64_t refused = 0; /* clock_now() of the first time in a row */
	int64_t turn;

	do {
		turn = clock_now();
		if (event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) != -1)
			return;
		/* A turn that waited, or called back, was one. */
		if (refused == 0 || clock_now() - turn > TURN_NS)
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
	event_del(w->event);
}

void
watch_resume(struct watch *w)
{
	event_add(w->event, NULL);
}

void
watch_close(struct watch *w)
{
	if (w == NULL)
		return;
	event_free(w->event);
	free_later(w->loop, &w->closing);
}

static void
timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct timer *t = arg;

	(void)fd;
	(void)what;
	t->late = clock_now() - t->due;
	t->due = 0;
	t->fn(t->ctx);
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
	t->event = event_new(loop->base, -1, 0, timer_fired, t);
	if (t->event == NULL) {
		free(t);
		return NULL;
	}
	return t;
}

void
timer_arm(struct timer *t, int64_t ns)
{
	/* libevent's clock leaves out what is no whole microsecond. */
	int64_t us = ns == 0 ? 0 : ns / NS_PER_US + 1;
	struct timeval tv = {
		.tv_sec = us / (NS_PER_S / NS_PER_US),
		.tv_usec = us % (NS_PER_S / NS_PER_US),
	};

	t->due = clock_now() + ns;
	event_add(t->event, &tv);
}

void
timer_disarm(struct timer *t)
{
	t->due = 0;
	event_del(t->event);
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
	event_free(t->event);
	free_later(t->loop, &t->closing);
}
