/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deliver_rig.h - the thread of a sink without a thread: streams, clock, events and the reader
 * are the test's, and each call of deliver.c is told of.
 *
 * For a program that is linked with --wrap for each of them (meson.build). run() is the thread
 * until it waits or ends.
 */
#ifndef TESTS_UNIT_DELIVER_RIG_H
#define TESTS_UNIT_DELIVER_RIG_H

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/log/modes.h"
#include "launcher/log/sink_inner.h"
#include "launcher/log/view.h"
#include "tests/unit/told.h"

#define STREAMS 4

/* Of each stream: what it says when it is asked, and what can be read of it. */
static struct {
	char text[200000];
	size_t len;
	int sys;        /* it cannot be read */
	uint64_t skips; /* bytes that were removed before */
	bool no_memory, drops, open;
	int64_t when[3];     /* of its bytes: wall time */
	uint64_t when_to[3]; /* up to this offset; 0: no more is known */
} src[STREAMS];

static struct {
	int64_t now, tick, wall;
	size_t write_most;    /* bytes of one write; 0: all */
	unsigned write_fails; /* writes that fail, with */
	int sys_write;
	int events[8]; /* of the next wait: stream, or -1 for the wake-up */
	int count, sys_wait;
	int64_t view_due;
	bool view_holds;
	int fault;
} is;

static struct sink s;
static struct feed feeds[STREAMS];
static struct line_prefix prefixes[STREAMS];
static bool shown[STREAMS];
static struct raw_share *share;
static char a_view, a_modes, unstored_one;
static jmp_buf at_wait;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *e, int most, int ms);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
bool __wrap_sink_watch(struct sink *of, int fd, uint32_t events, uint64_t tag);
void __wrap_sink_note(struct sink *of, enum note_kind kind, uint32_t value,
	int sys);
int64_t __wrap_clock_now(void);
int64_t __wrap_clock_wall(void);
int __wrap_fault_hit(enum fault_point point, uint32_t rank);
void __wrap_fd_close(int fd);
bool __wrap_feed_peek(struct feed *f, int dir, char *scratch, struct span *out);
bool __wrap_feed_took(struct feed *f, struct span data, size_t used);
uint64_t __wrap_feed_left(const struct feed *f);
bool __wrap_feed_drop(struct feed *f);
bool __wrap_feed_when(struct feed *f, uint64_t at, struct feed_mark *out);
void __wrap_unstored_take(struct unstored *u);
void __wrap_modes_follow(struct modes *modes, struct span data);
size_t __wrap_modes_end(struct modes *modes, char *out);
void __wrap_view_begin(struct view *view, int64_t now);
void __wrap_view_came(struct view *view, int64_t ns);
void __wrap_view_known(struct view *view, int64_t ns);
void __wrap_view_lost(struct view *view);
bool __wrap_view_moves(const struct view *view);
void __wrap_view_line(struct view *view, struct line_stream *st,
	struct span text, int64_t wall);
void __wrap_view_break(struct view *view);
void __wrap_view_paint(struct view *view);
bool __wrap_view_holds(const struct view *view);
int64_t __wrap_view_due(const struct view *view);
void __wrap_view_end(struct view *view);

/* No lock is taken under another, and each is given back. */
static pthread_mutex_t *locked;

int
__wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	cr_assert_null(locked);
	locked = lock;
	return __real_pthread_mutex_lock(lock);
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	cr_assert_eq(locked, lock);
	locked = NULL;
	return __real_pthread_mutex_unlock(lock);
}

ssize_t
__wrap_write(int fd, const void *data, size_t len)
{
	cr_assert_eq(fd, 90);
	if (is.write_fails > 0) {
		is.write_fails--;
		tell("refused ");
		errno = is.sys_write;
		return -1;
	}
	if (is.write_most != 0 && len > is.write_most)
		len = is.write_most;
	if (len > 200)
		tell("write %zu ", len);
	else
		tell("write[%.*s] ", (int)len, (const char *)data);
	return (ssize_t)len;
}

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	if (p == NULL)
		tell("pause %d %d ", (int)n, ms);
	else
		tell("poll %d %d %d %d ", p->fd, p->events, (int)n, ms);
	return 1;
}

int
__wrap_epoll_wait(int epoll, struct epoll_event *e, int most, int ms)
{
	int n = is.count;

	cr_assert_eq(epoll, 70);
	cr_assert_eq(most, 64);
	tell("wait %d ", ms);
	if (is.sys_wait != 0) {
		errno = is.sys_wait;
		is.sys_wait = 0;
		return -1;
	}
	if (n == 0)
		longjmp(at_wait, 1);
	for (int i = 0; i < n; i++)
		e[i].data.u64 =
			is.events[i] < 0 ? SINK_WAKE : (uint64_t)is.events[i];
	is.count = 0;
	return n;
}

int
__wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	cr_assert_eq(epoll, 70);
	cr_assert_eq(op, EPOLL_CTL_DEL);
	cr_assert_null(e);
	tell("deaf %d ", fd);
	return 0;
}

bool
__wrap_sink_watch(struct sink *of, int fd, uint32_t events, uint64_t tag)
{
	cr_assert_eq(of, &s);
	cr_expect_eq(events, EPOLLIN);
	tell("watch %d as %d ", fd, (int)tag);
	return true;
}

void
__wrap_sink_note(struct sink *of, enum note_kind kind, uint32_t value, int sys)
{
	const char *name = kind == NOTE_EOF ? "EOF" :
		kind == NOTE_LEFT_OPEN      ? "OPEN" :
		kind == NOTE_UNREAD         ? "UNREAD" :
		kind == NOTE_SINK_CLOSED    ? "CLOSED" :
		kind == NOTE_SINK_DONE      ? "DONE" :
					      "?";

	cr_assert_eq(of, &s);
	tell("%s %u %d ", name, value, sys);
}

int64_t
__wrap_clock_now(void)
{
	is.now += is.tick;
	return is.now;
}

int64_t
__wrap_clock_wall(void)
{
	return is.wall;
}

int
__wrap_fault_hit(enum fault_point point, uint32_t rank)
{
	cr_expect_eq(rank, FAULT_ANY);
	if ((int)point != is.fault)
		return 0;
	errno = EIO;
	return EIO;
}

void
__wrap_fd_close(int fd)
{
	tell("shut %d ", fd);
}

bool
__wrap_feed_peek(struct feed *f, int dir, char *scratch, struct span *out)
{
	uint32_t n = f->stream;
	size_t len = src[n].len < FEED_CHUNK ? src[n].len : FEED_CHUNK;

	cr_assert_eq(dir, s.config.dir);
	cr_assert_eq(scratch, s.scratch);
	tell("peek%u ", n);
	if (src[n].sys != 0) {
		errno = src[n].sys;
		return false;
	}
	f->skipped = src[n].skips;
	f->at += src[n].skips;
	src[n].skips = 0;
	*out = (struct span){ src[n].text, len };
	return true;
}

bool
__wrap_feed_took(struct feed *f, struct span data, size_t used)
{
	uint32_t n = f->stream;

	cr_assert_eq(data.at, src[n].text);
	if (f->pipe < 0)
		tell("took %zu ", used);
	else
		tell("took %zu of %zu ", used, data.len);
	if (src[n].no_memory)
		used = data.len;
	memmove(src[n].text, src[n].text + used, src[n].len - used);
	src[n].len -= used;
	f->at += used;
	return !src[n].no_memory;
}

uint64_t
__wrap_feed_left(const struct feed *f)
{
	return f->end - f->at;
}

bool
__wrap_feed_drop(struct feed *f)
{
	tell("drop%u ", f->stream);
	f->dropped = src[f->stream].drops;
	return src[f->stream].open;
}

bool
__wrap_feed_when(struct feed *f, uint64_t at, struct feed_mark *out)
{
	uint32_t n = f->stream;

	for (int i = 0; i < 3 && src[n].when_to[i] != 0; i++)
		if (at < src[n].when_to[i]) {
			out->end = src[n].when_to[i];
			out->wall = src[n].when[i];
			return true;
		}
	return false;
}

void
__wrap_unstored_take(struct unstored *u)
{
	cr_assert_eq((void *)u, (void *)&unstored_one);
	tell("unstored ");
}

void
__wrap_modes_follow(struct modes *modes, struct span data)
{
	cr_assert_eq((void *)modes, (void *)&a_modes);
	tell("follow %zu ", data.len);
}

size_t
__wrap_modes_end(struct modes *modes, char *out)
{
	cr_assert_eq((void *)modes, (void *)&a_modes);
	memcpy(out, "<off>", 5);
	return 5;
}

void
__wrap_view_begin(struct view *view, int64_t now)
{
	cr_assert_eq((void *)view, (void *)&a_view);
	tell("begin %lld ", (long long)now);
}

void
__wrap_view_came(struct view *view, int64_t ns)
{
	(void)view;
	tell("came %lld ", (long long)ns);
}

void
__wrap_view_known(struct view *view, int64_t ns)
{
	(void)view;
	tell("known %lld ", (long long)ns);
}

void
__wrap_view_lost(struct view *view)
{
	(void)view;
	tell("lost ");
}

bool
__wrap_view_moves(const struct view *view)
{
	(void)view;
	return false;
}

void
__wrap_view_line(struct view *view, struct line_stream *st, struct span text,
	int64_t wall)
{
	(void)view;
	(void)wall;
	st->resumed = false;
	tell("line(%.*s) ", (int)text.len, text.at);
}

void
__wrap_view_break(struct view *view)
{
	(void)view;
	tell("break ");
}

void
__wrap_view_paint(struct view *view)
{
	(void)view;
	tell("paint ");
}

bool
__wrap_view_holds(const struct view *view)
{
	(void)view;
	return is.view_holds;
}

int64_t
__wrap_view_due(const struct view *view)
{
	(void)view;
	return is.view_due;
}

void
__wrap_view_end(struct view *view)
{
	(void)view;
	tell("end ");
}

/* --- the scene -------------------------------------------------------------- */

static void
scene(void)
{
	alarm(20); /* where a loop has no end */
	memset(&is, 0, sizeof(is));
	memset(src, 0, sizeof(src));
	memset(feeds, 0, sizeof(feeds));
	is.now = 1000 * NS_PER_S;
	is.wall = 44;
	is.fault = -1;
	share = raw_share_new(STREAMS / 2, 0, 80);
	cr_assert_not_null(share);
	s = (struct sink){
		.config = { .id = 3,
			.fd = 90,
			.lines = true,
			.idle_ns = 5 * NS_PER_S,
			.dir = 80,
			.streams = STREAMS,
			.prefix = prefixes,
			.shown = shown,
			.share = share },
		.epoll = 70,
		.feed = feeds,
		.swept = INT64_MAX,
		.scratch = src[0].text,
	};
	s.lines.out = &s.out;
	TAILQ_INIT(&s.grown);
	TAILQ_INIT(&s.ready);
	TAILQ_INIT(&s.parked);
	TAILQ_INIT(&s.waiting);
	cr_assert_eq(pthread_mutex_init(&s.grow_lock, NULL), 0);
	cr_assert_eq(pthread_mutex_init(&s.say_lock, NULL), 0);
	for (uint32_t i = 0; i < STREAMS; i++) {
		feeds[i].stream = i;
		feeds[i].file = feeds[i].pipe = -1;
		shown[i] = true;
		prefixes[i].len = 1;
		prefixes[i].text[0] = (char)('0' + i);
	}
}

static void
run(void)
{
	if (setjmp(at_wait) == 0)
		deliver_run(&s);
}

/* The mover, or the kernel, has @text of @stream. */
static void
has(uint32_t stream, const char *text)
{
	size_t len = strlen(text);

	memcpy(src[stream].text + src[stream].len, text, len);
	src[stream].len += len;
	if (feeds[stream].pipe >= 0)
		feeds[stream].end += len;
	else
		feeds[stream].new_end += len;
}

/* As sink_grew() does. */
static void
grew(uint32_t stream, const char *text, bool eof)
{
	struct feed *f = &feeds[stream];

	has(stream, text);
	f->new_eof = eof;
	f->new_file = 30 + (int)stream;
	if (!f->queued)
		TAILQ_INSERT_TAIL(&s.grown, f, queue);
	f->queued = true;
}

/* The feeds that wait for a time, in order, with that in ms from now: "0:5000 ". */
static inline const char *
waiting(void)
{
	static char text[200];
	const struct feed *f;
	int at = 0;

	text[0] = '\0';
	TAILQ_FOREACH(f, &s.waiting, waiting)
	at += snprintf(text + at, sizeof(text) - (size_t)at, "%u:%lld ",
		f->stream, (long long)(f->due - is.now) / NS_PER_MS);
	return text;
}

static inline void
expect_told(int at, const char *want)
{
	cr_expect_str_eq(told, want, "line %d: %s", at, told);
	told[0] = '\0';
	told_len = 0;
}

#define TOLD(want) expect_told(__LINE__, want)

/* As sink_say() and its like do. */
static inline void
say(struct buf *where, const char *text)
{
	buf_put_text(where, text);
}

#endif /* TESTS_UNIT_DELIVER_RIG_H */
