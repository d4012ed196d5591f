/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_rig.h - the system calls that move what ranks wrote: a test says which of them fail, and
 * reads which were made with which arguments.
 *
 * For programs that are linked with --wrap for each of them (meson.build).
 */
#ifndef TESTS_UNIT_RAW_RIG_H
#define TESTS_UNIT_RAW_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/reserve.h"

/* The next @times calls are not done: they return @value, with @sys as errno. */
struct answer {
	unsigned times;
	long value;
	int sys;
};

static struct {
	struct answer splice, poll, ioctl, fallocate, read, seek, mkdir, open,
		pipe, tee, write, room, map;
} not_done;

static struct buf told; /* the calls of those that are told of */
static bool telling;
static short revents; /* of a poll that is not done */
static int64_t now, tick;

ssize_t __real_splice(int in, off64_t *at_in, int out, off64_t *at_out,
	size_t len, unsigned flags);
ssize_t __wrap_splice(int in, off64_t *at_in, int out, off64_t *at_out,
	size_t len, unsigned flags);
int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __real_fallocate64(int fd, int mode, off64_t at, off64_t len);
int __wrap_fallocate64(int fd, int mode, off64_t at, off64_t len);
ssize_t __real_read(int fd, void *data, size_t cap);
ssize_t __wrap_read(int fd, void *data, size_t cap);
ssize_t __wrap___read_chk(int fd, void *data, size_t cap, size_t room);
off64_t __real_lseek64(int fd, off64_t at, int from);
off64_t __wrap_lseek64(int fd, off64_t at, int from);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __real_openat64(int dir, const char *name, int flags, ...);
int __wrap_openat64(int dir, const char *name, int flags, ...);
int __real_pipe2(int fd[2], int flags);
int __wrap_pipe2(int fd[2], int flags);
ssize_t __real_tee(int in, int out, size_t len, unsigned flags);
ssize_t __wrap_tee(int in, int out, size_t len, unsigned flags);
int __real_fd_write_all(int fd, const void *data, size_t len);
int __wrap_fd_write_all(int fd, const void *data, size_t len);
uint64_t __wrap_reserve_above(int dir, uint64_t size);
int64_t __wrap_clock_now(void);
void *__real_mmap64(void *at, size_t len, int prot, int flags, int fd,
	off64_t offset);
void *__wrap_mmap64(void *at, size_t len, int prot, int flags, int fd,
	off64_t offset);

static bool
answered(struct answer *a, long *value)
{
	if (a->times == 0)
		return false;
	a->times--;
	*value = a->value;
	if (a->sys != 0)
		errno = a->sys;
	return true;
}

static void __attribute__((format(printf, 1, 2)))
tell(const char *fmt, ...)
{
	int saved = errno;
	char text[200];
	va_list ap;

	if (!telling)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_put_text(&told, text);
	errno = saved;
}

ssize_t
__wrap_splice(int in, off64_t *at_in, int out, off64_t *at_out, size_t len,
	unsigned flags)
{
	long value;

	cr_assert_null(at_in);
	cr_assert_null(at_out);
	cr_expect_eq(flags, SPLICE_F_NONBLOCK);
	tell("splice %zu ", len);
	if (answered(&not_done.splice, &value))
		return value;
	return __real_splice(in, at_in, out, at_out, len, flags);
}

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	long value;

	tell("poll %d %d ", (int)n, ms);
	if (answered(&not_done.poll, &value)) {
		p->revents = revents;
		return (int)value;
	}
	return p == NULL ? 0 : __real_poll(p, n, ms);
}

int
__wrap_ioctl(int fd, unsigned long request, ...)
{
	long value;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (answered(&not_done.ioctl, &value))
		return (int)value;
	return __real_ioctl(fd, request, arg);
}

int
__wrap_fallocate64(int fd, int mode, off64_t at, off64_t len)
{
	long value;

	cr_expect_eq(mode, FALLOC_FL_KEEP_SIZE);
	tell("room %lld+%lld ", (long long)at, (long long)len);
	if (answered(&not_done.fallocate, &value))
		return (int)value;
	return __real_fallocate64(fd, mode, at, len);
}

ssize_t
__wrap_read(int fd, void *data, size_t cap)
{
	long value;

	tell("read %zu ", cap);
	if (answered(&not_done.read, &value))
		return value;
	return __real_read(fd, data, cap);
}

/* What read() is where libc checks the size of the buffer. */
ssize_t
__wrap___read_chk(int fd, void *data, size_t cap, size_t room)
{
	cr_assert_leq(cap, room);
	return __wrap_read(fd, data, cap);
}

off64_t
__wrap_lseek64(int fd, off64_t at, int from)
{
	long value;

	if (answered(&not_done.seek, &value))
		return value;
	return __real_lseek64(fd, at, from);
}

int
__wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	long value;

	tell("mkdir %s %o ", name, mode);
	if (answered(&not_done.mkdir, &value))
		return (int)value;
	return __real_mkdirat(dir, name, mode);
}

int
__wrap_openat64(int dir, const char *name, int flags, ...)
{
	mode_t mode = 0;
	long value;
	va_list ap;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	tell("open %s %x %o ", name, (unsigned)flags, mode);
	if (answered(&not_done.open, &value))
		return (int)value;
	return __real_openat64(dir, name, flags, mode);
}

int
__wrap_pipe2(int fd[2], int flags)
{
	long value;

	if (answered(&not_done.pipe, &value))
		return (int)value;
	return __real_pipe2(fd, flags);
}

ssize_t
__wrap_tee(int in, int out, size_t len, unsigned flags)
{
	long value;

	tell("tee %zu %u ", len, flags);
	if (answered(&not_done.tee, &value))
		return value;
	return __real_tee(in, out, len, flags);
}

int
__wrap_fd_write_all(int fd, const void *data, size_t len)
{
	long value;

	tell("write %zu ", len);
	if (answered(&not_done.write, &value)) {
		(void)!__real_fd_write_all(fd, data, len / 2);
		errno = not_done.write.sys;
		return (int)value;
	}
	return __real_fd_write_all(fd, data, len);
}

uint64_t
__wrap_reserve_above(int dir, uint64_t size)
{
	long value = 1 << 20;

	cr_expect_eq(size, 77);
	(void)dir;
	(void)answered(&not_done.room, &value);
	return (uint64_t)value;
}

int64_t
__wrap_clock_now(void)
{
	now += tick;
	return now;
}

void *
__wrap_mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
	long value;

	tell("map %zu %d %x %d %lld ", len, prot, (unsigned)flags, fd,
		(long long)offset);
	if (answered(&not_done.map, &value))
		return MAP_FAILED;
	return __real_mmap64(at, len, prot, flags, fd, offset);
}

#endif /* TESTS_UNIT_RAW_RIG_H */
