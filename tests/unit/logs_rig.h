/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs_rig.h - the output of a job without threads and files: what logs.c asks of the mover and
 * the sinks is told of, with its arguments, and they return what the test says.
 *
 * For a program that is linked with --wrap for each of them (meson.build).
 */
#ifndef TESTS_UNIT_LOGS_RIG_H
#define TESTS_UNIT_LOGS_RIG_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "launcher/log/logs.h"
#include "launcher/log/mover.h"
#include "launcher/log/piece.h"
#include "launcher/log/view.h"
#include "tests/unit/told.h"

static struct {
	bool one_file; /* stdout and stderr are that */
	bool other_dev, no_stat;
	bool no_notes, no_mover, alone, fails;
	int no_sink; /* this one, from 1 */
	int sinks;
	int sys;
	uint64_t of, after; /* pieces */
	ssize_t read;
	const char *tail;
} is;

static struct sink_config sink_config[2];
static struct mover_config mover_config;
static char the_sink[2], the_mover;

/* "0" or "1": which sink it is. */
static int
number(const void *sink)
{
	cr_assert(sink == &the_sink[0] || sink == &the_sink[1]);
	return sink == &the_sink[1];
}

static void
is_mover(const void *mover)
{
	cr_assert_eq(mover, (void *)&the_mover);
}

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __real_notes_init(struct notes *notes);
int __wrap_notes_init(struct notes *notes);
bool __wrap_view_alone(int fd);
struct sink *__wrap_sink_open(const struct sink_config *config);
struct mover *__wrap_mover_open(const struct mover_config *config);
bool __wrap_mover_add(struct mover *m, uint32_t stream, int pipe);
bool __wrap_mover_add_tty(struct mover *m, uint32_t stream, int master);
int __wrap_mover_fd(const struct mover *m);
bool __wrap_mover_peek(struct mover *m, uint32_t ended[static MOVER_PEEK],
	uint32_t *n);
int __wrap_mover_start(struct mover *m);
void __wrap_mover_tell_first(struct mover *m);
void __wrap_mover_reclaimed(struct mover *m, bool freed);
enum drop_end __wrap_mover_drop(struct mover *m, uint32_t stream);
uint64_t __wrap_mover_bytes(const struct mover *m, uint32_t stream);
int64_t __wrap_mover_last(const struct mover *m, uint32_t stream);
bool __wrap_sink_add(struct sink *sink, uint32_t stream, int pipe);
int __wrap_sink_start(struct sink *sink);
enum drop_end __wrap_sink_drop(struct sink *sink, uint32_t stream);
void __wrap_sink_say(struct sink *sink, const char *text, size_t len);
void __wrap_sink_last(struct sink *sink, const char *text, size_t len);
void __wrap_sink_hint(struct sink *sink, const char *text, size_t len);
void __wrap_sink_look(struct sink *sink, bool lost);
enum sink_end __wrap_sink_finish(struct sink *sink, int *sys);
uint64_t __wrap_sink_backlog(struct sink *sink);
uint32_t __wrap_sink_left(const struct sink *sink);
uint64_t __wrap_sink_bytes(struct sink *sink, uint32_t stream);
struct span __wrap_sink_tail(const struct sink *sink, uint32_t stream);
uint64_t __wrap_piece_of(const struct raw_share *share, uint32_t stream,
	uint64_t offset);
uint64_t __wrap_piece_after(const struct raw_share *share, uint32_t stream,
	uint64_t offset);
ssize_t __wrap_piece_read(const struct raw_share *share, uint32_t stream,
	struct piece_at *at, char *out, size_t cap);

int
__wrap_fstat64(int fd, struct stat *st)
{
	if (fd != STDOUT_FILENO && fd != STDERR_FILENO)
		return __real_fstat64(fd, st);
	memset(st, 0, sizeof(*st));
	st->st_dev = is.other_dev ? (dev_t)fd : 5;
	st->st_ino = is.one_file || is.other_dev ? 6 : (ino_t)fd;
	return is.no_stat && fd == STDERR_FILENO ? -1 : 0;
}

int
__wrap_notes_init(struct notes *notes)
{
	errno = EMFILE;
	return is.no_notes ? -1 : __real_notes_init(notes);
}

bool
__wrap_view_alone(int fd)
{
	tell("alone %d? ", fd);
	return is.alone;
}

struct sink *
__wrap_sink_open(const struct sink_config *config)
{
	int n = is.sinks++;

	cr_assert_lt(n, 2);
	sink_config[n] = *config;
	errno = ENOMEM;
	return is.no_sink == n + 1 ? NULL : (struct sink *)&the_sink[n];
}

struct mover *
__wrap_mover_open(const struct mover_config *config)
{
	mover_config = *config;
	errno = ENOSYS;
	return is.no_mover ? NULL : (struct mover *)&the_mover;
}

bool
__wrap_mover_add(struct mover *m, uint32_t stream, int pipe)
{
	is_mover(m);
	tell("add %u %d ", stream, pipe);
	return !is.fails;
}

bool
__wrap_mover_add_tty(struct mover *m, uint32_t stream, int master)
{
	is_mover(m);
	tell("tty %u %d ", stream, master);
	return !is.fails;
}

int
__wrap_mover_fd(const struct mover *m)
{
	is_mover(m);
	return 66;
}

bool
__wrap_mover_peek(struct mover *m, uint32_t ended[static MOVER_PEEK],
	uint32_t *n)
{
	is_mover(m);
	ended[0] = 4;
	*n = 1;
	return !is.fails;
}

int
__wrap_mover_start(struct mover *m)
{
	is_mover(m);
	tell("start ");
	return is.sys;
}

void
__wrap_mover_tell_first(struct mover *m)
{
	is_mover(m);
	tell("first ");
}

void
__wrap_mover_reclaimed(struct mover *m, bool freed)
{
	is_mover(m);
	tell("reclaimed %d ", freed);
}

enum drop_end
__wrap_mover_drop(struct mover *m, uint32_t stream)
{
	is_mover(m);
	tell("drop %u ", stream);
	return DROP_LEFT_OPEN;
}

uint64_t
__wrap_mover_bytes(const struct mover *m, uint32_t stream)
{
	is_mover(m);
	return 100 + stream;
}

int64_t
__wrap_mover_last(const struct mover *m, uint32_t stream)
{
	is_mover(m);
	return 1000 + stream;
}

bool
__wrap_sink_add(struct sink *sink, uint32_t stream, int pipe)
{
	tell("add%d %u %s ", number(sink), stream,
		fcntl(pipe, F_GETFD) == FD_CLOEXEC ? "own" : "?");
	return !is.fails;
}

int
__wrap_sink_start(struct sink *sink)
{
	tell("start%d ", number(sink));
	return is.sys;
}

enum drop_end
__wrap_sink_drop(struct sink *sink, uint32_t stream)
{
	tell("drop%d %u ", number(sink), stream);
	return DROP_OVER;
}

void
__wrap_sink_say(struct sink *sink, const char *text, size_t len)
{
	if (len > 500)
		tell("say%d %zu ...%c%c ", number(sink), len, text[len - 2],
			text[len - 1]);
	else
		tell("say%d[%.*s] ", number(sink), (int)len, text);
}

void
__wrap_sink_last(struct sink *sink, const char *text, size_t len)
{
	tell("last%d[%.*s] ", number(sink), (int)len, text);
}

void
__wrap_sink_hint(struct sink *sink, const char *text, size_t len)
{
	tell("hint%d[%.*s] ", number(sink), (int)len, text);
}

void
__wrap_sink_look(struct sink *sink, bool lost)
{
	tell("look%d %d ", number(sink), lost);
}

enum sink_end
__wrap_sink_finish(struct sink *sink, int *sys)
{
	tell("finish%d ", number(sink));
	*sys = 9;
	return SINK_AGAIN;
}

uint64_t
__wrap_sink_backlog(struct sink *sink)
{
	return 10 + (uint64_t)number(sink);
}

uint32_t
__wrap_sink_left(const struct sink *sink)
{
	return 20 + (uint32_t)number(sink);
}

uint64_t
__wrap_sink_bytes(struct sink *sink, uint32_t stream)
{
	return 1000 * (uint64_t)(1 + number(sink)) + stream;
}

struct span
__wrap_sink_tail(const struct sink *sink, uint32_t stream)
{
	tell("tail%d %u ", number(sink), stream);
	return (struct span){ is.tail, is.tail == NULL ? 0 : strlen(is.tail) };
}

uint64_t
__wrap_piece_of(const struct raw_share *share, uint32_t stream, uint64_t offset)
{
	(void)share;
	tell("of %u %llu ", stream, (unsigned long long)offset);
	return is.of;
}

uint64_t
__wrap_piece_after(const struct raw_share *share, uint32_t stream,
	uint64_t offset)
{
	(void)share;
	tell("after %u %llu ", stream, (unsigned long long)offset);
	return is.after;
}

ssize_t
__wrap_piece_read(const struct raw_share *share, uint32_t stream,
	struct piece_at *at, char *out, size_t cap)
{
	(void)share;
	tell("read %u %llu/%llu %zu ", stream, (unsigned long long)at->offset,
		(unsigned long long)at->start, cap);
	if (is.read > 0)
		memcpy(out, is.tail, (size_t)is.read);
	return is.read;
}

#endif /* TESTS_UNIT_LOGS_RIG_H */
