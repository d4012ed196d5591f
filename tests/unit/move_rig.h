/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move_rig.h - what becomes of a stream's bytes, without files, pipes and sinks: each function
 * that move.c calls is told of, with its arguments, and returns what the test says.
 *
 * For a program that is linked with --wrap for each of them (meson.build).
 */
#ifndef TESTS_UNIT_MOVE_RIG_H
#define TESTS_UNIT_MOVE_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/log/mover_inner.h"
#include "launcher/log/piece.h"
#include "launcher/log/sink.h"
#include "tests/unit/told.h"

/* What the functions return; where @sys is not 0, the call fails with it. */
static struct {
	long waiting;   /* bytes in the pipe */
	long chunk;     /* a move takes no more */
	long terminal;  /* bytes that a raw_fill() brings, once each call */
	long fill_most; /* of them at once */
	int sys_move, sys_open, sys_take, sys_file, sys_cut, sys_epoll;
	bool at_end; /* an empty pipe has no writer */
	bool writer;
	uint64_t reserve, piece[4];
	unsigned pieces; /* of @piece that were given */
	int64_t now, wall;
	int fault; /* the point that fails; -1: none */
} is;

static struct raw_share *share;
static struct raw_slot *slot;
static struct stream streams[4];
static struct mover m;
static struct notes the_notes = { 98, 99 };
static char a_sink;

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e);
bool __wrap_fd_has_writer(int fd);
void __wrap_fd_close(int fd);
int __wrap_open64(const char *path, int flags, ...);
int64_t __wrap_clock_now(void);
int64_t __wrap_clock_wall(void);
int __wrap_fault_hit(enum fault_point point, uint32_t rank);
void __wrap_index_cut(struct index *index, int dir, uint32_t named,
	uint64_t start);
void __wrap_index_finish(struct index *index, int dir, uint32_t named);
void __wrap_index_moved(struct index *index, int dir, uint32_t named,
	uint64_t end, int64_t ns);
void __wrap_notes_hold(const struct notes *notes, struct notes_held *held,
	enum note_kind kind, uint32_t value);
void __wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys);
int __wrap_piece_cut(struct raw_share *s, uint32_t stream, int file);
uint64_t __wrap_piece_room(const struct raw_share *s, uint32_t stream,
	int file);
void __wrap_raw_close(struct raw_slot *of);
void __wrap_raw_fill(struct raw_slot *of);
uint64_t __wrap_raw_left(struct raw_slot *of);
void __wrap_raw_lose(struct raw_share *s, uint64_t bytes, int sys);
long __wrap_raw_move_some(int pipe, int file, uint64_t max);
int __wrap_raw_open(int dir, uint32_t named);
long __wrap_raw_peek(int pipe, char out[static RAW_PEEK]);
long __wrap_raw_take(int pipe, char out[static RAW_TAKE]);
uint64_t __wrap_raw_waiting(int pipe);
uint64_t __wrap_reserve_room(struct reserve *reserve, int dir);
void __wrap_reserve_spend(struct reserve *reserve, uint64_t bytes, int64_t now);
void __wrap_sink_grew(struct sink *sink, uint32_t stream, int fd, uint64_t end,
	bool eof);
void __wrap_sink_unstored(struct sink *sink, uint32_t stream, uint64_t at,
	struct span data, bool dropped);

int
__wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	cr_assert_eq(epoll, 70);
	if (op == EPOLL_CTL_DEL)
		tell("deaf %d ", fd);
	else
		tell("%s %d as %d%s ", op == EPOLL_CTL_ADD ? "listen" : "watch",
			fd, (int)e->data.u64,
			e->events == EPOLLIN                     ? "" :
				e->events == (EPOLLIN | EPOLLET) ? " edges" :
								   " ?");
	errno = is.sys_epoll;
	return is.sys_epoll != 0 ? -1 : 0;
}

bool
__wrap_fd_has_writer(int fd)
{
	tell("writer %d? ", fd);
	return is.writer;
}

void
__wrap_fd_close(int fd)
{
	tell("shut %d ", fd);
}

int
__wrap_open64(const char *path, int flags, ...)
{
	va_list ap;

	va_start(ap, flags);
	cr_expect_eq(va_arg(ap, mode_t), 0600);
	va_end(ap);
	cr_expect_eq(flags, O_TMPFILE | O_RDWR | O_CLOEXEC);
	tell("nameless in %s ", path);
	errno = is.sys_file;
	return is.sys_file != 0 ? -1 : 60;
}

int64_t
__wrap_clock_now(void)
{
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
	tell("fault %d of %u ", (int)point - FAULT_MOVE_OPEN, rank);
	if ((int)point != is.fault)
		return 0;
	errno = ENXIO;
	return ENXIO;
}

void
__wrap_index_cut(struct index *index, int dir, uint32_t named, uint64_t start)
{
	tell("index%d cut %d/%u from %llu ", (int)(index == &streams[0].index),
		dir, named, (unsigned long long)start);
}

void
__wrap_index_finish(struct index *index, int dir, uint32_t named)
{
	(void)index;
	tell("index end %d/%u ", dir, named);
}

void
__wrap_index_moved(struct index *index, int dir, uint32_t named, uint64_t end,
	int64_t ns)
{
	(void)index;
	tell("index %d/%u to %llu at %lld ", dir, named,
		(unsigned long long)end, (long long)ns);
}

static const char *
kind_name(enum note_kind kind)
{
	static const char *const name[] = {
		[NOTE_EOF] = "EOF",
		[NOTE_LEFT_OPEN] = "OPEN",
		[NOTE_FIRST] = "FIRST",
		[NOTE_FULL] = "FULL",
		[NOTE_ROOM] = "ROOM",
		[NOTE_LARGE] = "LARGE",
		[NOTE_RECLAIM] = "RECLAIM",
		[NOTE_GONE] = "GONE",
	};

	return kind <= NOTE_GONE ? name[kind] : "?";
}

void
__wrap_notes_hold(const struct notes *notes, struct notes_held *held,
	enum note_kind kind, uint32_t value)
{
	cr_assert_eq(notes, &the_notes);
	cr_assert_eq(held, &m.ended);
	tell("(%s %u) ", kind_name(kind), value);
}

void
__wrap_notes_send(const struct notes *notes, enum note_kind kind,
	uint32_t value, int sys)
{
	cr_assert_eq(notes, &the_notes);
	tell("%s %u %d ", kind_name(kind), value, sys);
}

int
__wrap_piece_cut(struct raw_share *s, uint32_t stream, int file)
{
	tell("cut %u of %d ", stream, file);
	s->slot[stream].start = s->slot[stream].moved;
	errno = is.sys_cut;
	return is.sys_cut != 0 ? -1 : 0;
}

uint64_t
__wrap_piece_room(const struct raw_share *s, uint32_t stream, int file)
{
	cr_assert_eq(s, share);
	tell("piece %u of %d ", stream, file);
	return is.piece[is.pieces < 3 ? is.pieces++ : 3];
}

void
__wrap_raw_close(struct raw_slot *of)
{
	tell("close %d ", of->pipe);
	of->pipe = of->tty = of->fill = -1;
}

void
__wrap_raw_fill(struct raw_slot *of)
{
	long n = is.terminal < is.fill_most ? is.terminal : is.fill_most;

	tell("fill ");
	if (of->tty < 0)
		return;
	is.waiting += n;
	is.terminal -= n;
	if (is.terminal == 0 && is.at_end)
		of->fill = -1;
}

uint64_t
__wrap_raw_left(struct raw_slot *of)
{
	tell("left of %d? ", of->pipe);
	return (uint64_t)is.waiting;
}

void
__wrap_raw_lose(struct raw_share *s, uint64_t bytes, int sys)
{
	cr_assert_eq(s, share);
	tell("lose %llu %d ", (unsigned long long)bytes, sys);
}

/* From what waits, as a pipe gives it. */
static long
take(long most, int sys)
{
	long n = is.waiting < most ? is.waiting : most;

	errno = sys != 0 ? sys : EAGAIN;
	if (sys != 0 || (n == 0 && !is.at_end))
		return -1;
	is.waiting -= n;
	return n;
}

long
__wrap_raw_move_some(int pipe, int file, uint64_t max)
{
	if (max == UINT64_MAX)
		tell("move %d>%d ", pipe, file);
	else
		tell("move %d>%d %llu ", pipe, file, (unsigned long long)max);
	return take(max < (uint64_t)is.chunk ? (long)max : is.chunk,
		is.sys_move);
}

int
__wrap_raw_open(int dir, uint32_t named)
{
	tell("open %d/%u ", dir, named);
	errno = is.sys_open;
	return is.sys_open != 0 ? -1 : 50;
}

long
__wrap_raw_peek(int pipe, char out[static RAW_PEEK])
{
	tell("peek %d ", pipe);
	memset(out, 'p', (size_t)is.waiting);
	errno = EAGAIN;
	return is.waiting > 0 ? is.waiting : -1;
}

long
__wrap_raw_take(int pipe, char out[static RAW_TAKE])
{
	long n = take(is.chunk < RAW_TAKE ? is.chunk : RAW_TAKE, is.sys_take);

	tell("take %d ", pipe);
	if (n > 0)
		memset(out, 't', (size_t)n);
	return n;
}

uint64_t
__wrap_raw_waiting(int pipe)
{
	cr_assert_geq(pipe, 0);
	return (uint64_t)is.waiting;
}

uint64_t
__wrap_reserve_room(struct reserve *reserve, int dir)
{
	cr_assert_eq(reserve, &m.reserve);
	cr_assert_eq(dir, 80);
	return is.reserve;
}

void
__wrap_reserve_spend(struct reserve *reserve, uint64_t bytes, int64_t now)
{
	cr_assert_eq(reserve, &m.reserve);
	tell("spend %llu at %lld ", (unsigned long long)bytes, (long long)now);
}

void
__wrap_sink_grew(struct sink *sink, uint32_t stream, int fd, uint64_t end,
	bool eof)
{
	cr_assert_eq((void *)sink, (void *)&a_sink);
	tell("grew %u of %d to %llu%s ", stream, fd, (unsigned long long)end,
		eof ? " eof" : "");
}

void
__wrap_sink_unstored(struct sink *sink, uint32_t stream, uint64_t at,
	struct span data, bool dropped)
{
	cr_assert_eq((void *)sink, (void *)&a_sink);
	tell("show %u at %llu %zu%c%s ", stream, (unsigned long long)at,
		data.len, data.at[data.len - 1], dropped ? " dropped" : "");
}

#endif /* TESTS_UNIT_MOVE_RIG_H */
