/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_rig.h - a sink without a thread: what it asks of threads, views, the mover's bytes and
 * its reader is told of, and returns what the test says. Locks are looked after.
 *
 * For a program that is linked with --wrap for each of them (meson.build).
 */
#ifndef TESTS_UNIT_SINK_RIG_H
#define TESTS_UNIT_SINK_RIG_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

#include <criterion/criterion.h>

#include "launcher/log/sink_inner.h"
#include "launcher/log/thread.h"
#include "launcher/log/view.h"
#include "tests/unit/told.h"

static struct {
	int sys_thread, sys_epoll, sys_wake, sys_watch;
	bool no_view, writer;
	size_t now_most; /* bytes that the reader takes now */
	bool now_fails;
	size_t added; /* by unstored_add() */
	bool no_unstored;
} is;

static struct sink *s;
static struct sink_config config;
static struct notes the_notes = { 98, 99 };
static bool shown[4] = { true, true, false, true };
static struct raw_share *share;
static char a_view;
static struct view_config view_config;
static struct unstored an_unstored;

int __wrap_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
void __wrap_fd_tell(int fd, const void *data, size_t len);
struct view *__wrap_view_new(const struct view_config *c);
void __wrap_view_free(struct view *view);
void __wrap_feed_mark(struct feed *f, uint64_t end, int64_t wall);
int64_t __wrap_clock_wall(void);
struct unstored *__wrap_unstored_new(uint64_t *total);
size_t __wrap_unstored_add(struct unstored *u, uint64_t at, struct span data,
	bool dropped);
bool __wrap_fd_has_writer(int fd);
ssize_t __wrap_fd_write_now(int fd, const void *data, size_t len);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
void __wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys);

int
__wrap_thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	cr_assert_not_null(t);
	cr_assert_eq(fn, deliver_run);
	cr_assert_eq(arg, s);
	tell("thread ");
	return is.sys_thread;
}

int
__wrap_epoll_create1(int flags)
{
	errno = is.sys_epoll;
	return is.sys_epoll != 0 ? -1 : __real_epoll_create1(flags);
}

int
__wrap_eventfd(unsigned count, int flags)
{
	cr_expect_eq(count, 0);
	errno = is.sys_wake;
	return is.sys_wake != 0 ? -1 : __real_eventfd(count, flags);
}

int
__wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	if (op == EPOLL_CTL_DEL)
		tell("deaf ");
	else
		tell("watch %x as %lld ", e->events, (long long)e->data.u64);
	errno = is.sys_watch;
	return is.sys_watch != 0 ? -1 : __real_epoll_ctl(epoll, op, fd, e);
}

void
__wrap_fd_tell(int fd, const void *data, size_t len)
{
	uint64_t one;

	cr_assert_eq(fd, s->wake);
	cr_assert_eq(len, 8);
	memcpy(&one, data, 8);
	cr_expect_eq(one, 1);
	tell("wake ");
}

struct view *
__wrap_view_new(const struct view_config *c)
{
	view_config = *c;
	return is.no_view ? NULL : (struct view *)&a_view;
}

void
__wrap_view_free(struct view *view)
{
	tell("free%s ", view == NULL ? " none" : "");
}

void
__wrap_feed_mark(struct feed *f, uint64_t end, int64_t wall)
{
	tell("mark %u %llu %lld ", f->stream, (unsigned long long)end,
		(long long)wall);
}

int64_t
__wrap_clock_wall(void)
{
	return 77;
}

struct unstored *
__wrap_unstored_new(uint64_t *total)
{
	cr_assert_eq(total, &s->unstored);
	tell("new ");
	return is.no_unstored ? NULL : &an_unstored;
}

size_t
__wrap_unstored_add(struct unstored *u, uint64_t at, struct span data,
	bool dropped)
{
	cr_assert_eq(u, &an_unstored);
	tell("add %llu %zu%s ", (unsigned long long)at, data.len,
		dropped ? " dropped" : "");
	return is.added;
}

bool
__wrap_fd_has_writer(int fd)
{
	(void)fd;
	return is.writer;
}

ssize_t
__wrap_fd_write_now(int fd, const void *data, size_t len)
{
	cr_assert_eq(fd, 90);
	tell("say[%.*s] ", (int)len, (const char *)data);
	if (is.now_fails)
		return -1;
	return (ssize_t)(len < is.now_most ? len : is.now_most);
}

void
__wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys)
{
	cr_assert_eq(notes, &the_notes);
	tell("note %d %u %d ", kind, value, sys);
}

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

#endif /* TESTS_UNIT_SINK_RIG_H */
