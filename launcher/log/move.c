/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - see mover_inner.h: what becomes of a stream's bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/mover_inner.h"
#include "launcher/log/piece.h"
#include "launcher/log/sink.h"

#define THROW_MAX (1 << 20)       /* a turn */
#define TTY_MAX   (128 * 1024)    /* more than a terminal holds */
#define TELL_NS   (60 * NS_PER_S) /* between two notes about the same trouble */
#define AGAIN_NS  (10 * NS_PER_S) /* between two requests that freed nothing */

/* What tells that there are bytes: the pipe of a rank, or its terminal. */
static int
source_of(const struct raw_slot *slot)
{
	return slot->tty >= 0 ? slot->tty : slot->pipe;
}

bool
move_has_writer(const struct mover *m, uint32_t stream)
{
	return fd_has_writer(source_of(&m->config.share->slot[stream]));
}

bool
move_listen(struct mover *m, uint32_t stream)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = stream };

	return epoll_ctl(m->epoll, EPOLL_CTL_ADD,
		       source_of(&m->config.share->slot[stream]), &e) == 0;
}

/* While @stream has no room, each new byte is an event, and not the bytes that
 * wait. */
static void
move_watch_edges(struct mover *m, uint32_t stream, bool edges)
{
	struct epoll_event e = { .events = EPOLLIN | (edges ? EPOLLET : 0u),
		.data.u64 = stream };

	epoll_ctl(m->epoll, EPOLL_CTL_MOD,
		source_of(&m->config.share->slot[stream]), &e);
}

void
move_deaf(struct mover *m, uint32_t stream)
{
	epoll_ctl(m->epoll, EPOLL_CTL_DEL,
		source_of(&m->config.share->slot[stream]), NULL);
}

static void
tell(struct mover *m, enum note_kind kind, uint32_t stream, int sys)
{
	notes_send(m->config.notes, kind, stream, sys);
}

static void
tell_sink(struct mover *m, uint32_t stream, bool eof)
{
	const struct raw_slot *slot = &m->config.share->slot[stream];
	struct sink *sink = m->config.sink[stream % RAW_STREAMS];

	if (sink != NULL)
		sink_grew(sink, stream, slot->file, slot->moved, eof);
}

/* What finds no room is displayed all the same. */
static void
move_display(struct mover *m, uint32_t stream, struct span data, bool dropped)
{
	struct sink *sink = m->config.sink[stream % RAW_STREAMS];

	if (sink != NULL && data.len > 0)
		sink_unstored(sink, stream, m->config.share->slot[stream].moved,
			data, dropped);
}

/* The bytes stay in the pipe. Not if they may be dropped later: what is displayed
 * has an offset by then. */
static void
move_display_pending(struct mover *m, uint32_t stream)
{
	static char data[RAW_PEEK];
	long n;

	if (m->config.drop)
		return;
	n = raw_peek(m->config.share->slot[stream].pipe, data);
	if (n > 0)
		move_display(m, stream, (struct span){ data, (size_t)n },
			false);
}

/* One read, which is displayed and not stored. As raw_take(). */
static long
move_drop_some(struct mover *m, uint32_t stream)
{
	static char data[RAW_TAKE];
	long n = raw_take(m->config.share->slot[stream].pipe, data);

	if (n > 0)
		move_display(m, stream, (struct span){ data, (size_t)n }, true);
	return n;
}

/* The pipe is at its end, or nobody waits for it any more. */
void
move_close(struct mover *m, uint32_t stream)
{
	index_finish(&m->stream[stream].index, m->config.share->dir,
		m->config.share->base + stream);
	move_deaf(m, stream);
	raw_close(&m->config.share->slot[stream]);
	tell_sink(m, stream, true);
}

static void
end_stream(struct mover *m, uint32_t stream)
{
	if (m->config.share->slot[stream].pipe < 0)
		return;
	move_close(m, stream);
	notes_hold(m->config.notes, &m->ended, NOTE_EOF, stream);
}

/* All that waits goes, and the rank goes on. Where that was not asked for it is
 * lost, and the loop ends the job. */
static void
throw_away(struct mover *m, uint32_t stream, int sys)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	struct stream *st = &m->stream[stream];
	uint64_t bytes = 0;
	long n = 1;

	while (n > 0 && bytes < THROW_MAX && raw_waiting(slot->pipe) > 0) {
		n = move_drop_some(m, stream);
		bytes += n > 0 ? (uint64_t)n : 0;
		raw_fill(slot);
	}
	if (m->config.drop)
		__atomic_store_n(&slot->dropped, slot->dropped + bytes,
			__ATOMIC_RELAXED);
	else
		raw_lose(m->config.share, bytes, sys);
	if (!st->dropping)
		tell(m, NOTE_FULL, stream, sys);
	st->dropping = true;
}

/* Ended jobs go before anything is dropped or reported. Returns true while the
 * answer to the request is to come. */
static bool
move_is_reclaiming(struct mover *m, uint32_t stream, int sys)
{
	int64_t now = clock_now();

	if (!m->config.reclaim || !raw_no_room(sys))
		return false;
	if (m->reclaim == RECLAIM_NONE ||
		(m->reclaim == RECLAIM_OVER &&
			now - m->reclaim_ns >= AGAIN_NS)) {
		m->reclaim = RECLAIM_ASKED;
		m->reclaim_ns = now;
		tell(m, NOTE_RECLAIM, stream, sys);
	}
	return m->reclaim == RECLAIM_ASKED;
}

static void
move_resume(struct mover *m, uint32_t stream)
{
	struct stream *st = &m->stream[stream];

	if (!st->stalled)
		return;
	st->stalled = false;
	m->stalled--;
	move_watch_edges(m, stream, false);
}

/* The bytes stay in the pipe, and the rank waits when the pipe is full. */
static void
stall(struct mover *m, uint32_t stream, int sys)
{
	struct stream *st = &m->stream[stream];
	bool reclaiming = move_is_reclaiming(m, stream, sys);

	if (raw_hopeless(sys) ||
		(m->config.drop && raw_no_room(sys) && !reclaiming)) {
		throw_away(m, stream, sys);
		move_resume(m, stream);
		return;
	}
	st->sys = sys;
	if (!st->stalled) {
		st->stalled = true;
		m->stalled++;
		move_watch_edges(m, stream, true);
	}
	move_display_pending(m, stream);
	if (reclaiming || (st->told && clock_now() - st->told_ns < TELL_NS))
		return;
	st->told = true;
	st->told_ns = clock_now();
	tell(m, NOTE_FULL, stream, sys);
}

static void
unstall(struct mover *m, uint32_t stream)
{
	struct stream *st = &m->stream[stream];

	if (st->dropping || st->told)
		tell(m, NOTE_ROOM, stream, 0);
	st->dropping = st->told = false;
	move_resume(m, stream);
	if (m->reclaim == RECLAIM_OVER && m->reclaim_freed)
		m->reclaim = RECLAIM_NONE;
}

static void
move_warn_large(struct mover *m)
{
	tell(m, NOTE_LARGE, (uint32_t)(m->large >> 30), 0);
	if (__builtin_mul_overflow(m->large, 10, &m->large))
		m->large = UINT64_MAX;
	m->config.share->large = m->large;
}

static void
moved(struct mover *m, uint32_t stream, size_t n)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	struct stream *st = &m->stream[stream];
	int64_t now = clock_wall();

	__atomic_store_n(&slot->moved, slot->moved + n, __ATOMIC_RELAXED);
	__atomic_store_n(&st->last_ns, now, __ATOMIC_RELAXED);
	reserve_spend(&m->reserve, n, now);
	m->written += n;
	if (m->written >= m->large ||
		fault(FAULT_MOVE_LARGE, stream / RAW_STREAMS) != 0)
		move_warn_large(m);
	index_moved(&st->index, m->config.share->dir,
		m->config.share->base + stream, slot->moved, now);
	tell_sink(m, stream, false);
	if (__atomic_load_n(&m->tell_first, __ATOMIC_RELAXED) &&
		__atomic_exchange_n(&m->tell_first, false, __ATOMIC_RELAXED))
		tell(m, NOTE_FIRST, stream, 0);
}

/* There is no folder to make a file in. A file without a name can be shown,
 * while it may stay open; and while it may, whoever has none yet begins. */
static int
nameless(struct mover *m, uint32_t stream)
{
	if (!m->gone)
		tell(m, NOTE_GONE, stream, ESTALE);
	m->gone = true;
	if (m->files >= m->config.files_max)
		return -1;
	return open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* A raw file, kept open while there are descriptors for it. -1 with errno, for
 * now, or for ever if the stream is to be discarded. */
static int
file_of(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	int fd;

	if (slot->file >= 0)
		return slot->file;
	if (fault(FAULT_MOVE_OPEN, stream / RAW_STREAMS) != 0)
		return -1;
	fd = raw_open(m->config.share->dir, m->config.share->base + stream);
	if (fd < 0 && errno == ESTALE) {
		fd = nameless(m, stream);
		m->stream[stream].discarded = fd < 0;
	}
	if (fd >= 0 && m->files < m->config.files_max) {
		m->files++;
		__atomic_store_n(&slot->file, fd, __ATOMIC_RELEASE);
	}
	return fd;
}

static long
discard(struct mover *m, uint32_t stream)
{
	long n = move_drop_some(m, stream);

	if (n > 0)
		raw_lose(m->config.share, (uint64_t)n, ESTALE);
	return n;
}

/* How much may go to the newest piece, which may be a new one now. Where none
 * can be made the old one grows. */
static uint64_t
room_in(struct mover *m, uint32_t stream, int file)
{
	struct raw_share *share = m->config.share;
	struct raw_slot *slot = &share->slot[stream];
	struct stream *st = &m->stream[stream];
	uint64_t start = slot->start, room;

	if (slot->moved < st->cut_again)
		return UINT64_MAX;
	room = piece_room(share, stream, file);
	if (room > 0)
		return room;
	if (piece_cut(share, stream, file) == -1) {
		st->cut_again = slot->moved + share->rule.size;
		return UINT64_MAX;
	}
	index_cut(&st->index, share->dir, share->base + stream, start);
	return piece_room(share, stream, file);
}

/* One splice of at most @max bytes, and of what the newest piece takes. */
static long
move_to(struct mover *m, uint32_t stream, int file, uint64_t max)
{
	uint64_t room = room_in(m, stream, file);

	if (fault(FAULT_MOVE_BEFORE, stream / RAW_STREAMS) != 0)
		return -1;
	return raw_move_some(m->config.share->slot[stream].pipe, file,
		room < max ? room : max);
}

/* One move. Returns the bytes, 0 at the end, or -1 with errno: ENOSPC if the
 * reserve is reached. The end of a pipe needs no room. */
static long
move(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	uint64_t room = reserve_room(&m->reserve, m->config.share->dir);
	long n;
	int fd;

	if (room == 0 && !m->stream[stream].discarded &&
		raw_waiting(slot->pipe) > 0) {
		errno = ENOSPC;
		return -1;
	}
	room = room == 0 ? 1 : room;
	fd = m->stream[stream].discarded ? -1 : file_of(m, stream);
	if (m->stream[stream].discarded)
		return discard(m, stream);
	if (fd < 0)
		return -1;
	n = move_to(m, stream, fd, room);
	fault(FAULT_MOVE_AFTER, stream / RAW_STREAMS);
	if (fd != slot->file)
		fd_close(fd);
	if (n > 0)
		moved(m, stream, (size_t)n);
	return n;
}

/* The same of a terminal, through the pipe behind it, until that is empty. No
 * file is made for one that says nothing. */
static long
move_tty(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	long n = 1;

	do {
		raw_fill(slot);
		if (raw_waiting(slot->pipe) > 0)
			n = move(m, stream);
	} while (n > 0 && raw_waiting(slot->pipe) > 0);
	return n > 0 && slot->fill < 0 ? 0 : n;
}

/* Is the pipe at its end, with nothing in it? Asked before a file is made for
 * a rank that says nothing. */
static bool
silent_end(struct mover *m, uint32_t stream, uint32_t events)
{
	const struct raw_slot *slot = &m->config.share->slot[stream];

	return (events & EPOLLIN) == 0 ||
		(slot->moved == 0 && (events & EPOLLHUP) != 0 &&
			raw_waiting(slot->pipe) == 0);
}

/* Moves the bytes that the pipe holds now. Returns their number, or -1 with errno. */
static long
move_waiting(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	long left, all, n = 1;

	raw_fill(slot);
	left = all = (long)raw_waiting(slot->pipe);
	for (; n > 0 && left > 0; left -= n)
		n = move(m, stream);
	return n > 0 ? all : n;
}

/* The stream is given up: what is there is taken, and no more. A full disk is
 * waited for all the same. A terminal may hold more than the pipe behind it. */
static void
serve_dropped(struct mover *m, uint32_t stream)
{
	long left = m->config.share->slot[stream].tty >= 0 ? TTY_MAX : 1, n = 1;

	for (; n > 0 && left > 0; left -= n)
		n = move_waiting(m, stream);
	if (n == -1 && errno != EAGAIN && errno != EINTR) {
		stall(m, stream, errno);
		if (m->stream[stream].stalled)
			return;
	}
	unstall(m, stream);
	end_stream(m, stream);
}

/* One move of @stream, or its end. */
static void
move_once(struct mover *m, uint32_t stream, uint32_t events)
{
	const struct raw_slot *slot = &m->config.share->slot[stream];
	long n;

	if (m->stream[stream].dropped) {
		serve_dropped(m, stream);
		return;
	}
	if (slot->tty < 0 && silent_end(m, stream, events)) {
		end_stream(m, stream);
		return;
	}
	n = slot->tty < 0 ? move(m, stream) : move_tty(m, stream);
	if (n == 0)
		end_stream(m, stream);
	else if (n > 0)
		unstall(m, stream);
	else if (errno != EAGAIN && errno != EINTR)
		stall(m, stream, errno);
}

void
move_serve(struct mover *m, uint32_t stream, uint32_t events)
{
	struct raw_slot *slot = &m->config.share->slot[stream];

	if (slot->pipe < 0)
		return;
	if (!m->stream[stream].stalled) {
		move_once(m, stream, events);
		return;
	}
	raw_fill(slot);
	move_display_pending(m, stream);
}

void
move_retry(struct mover *m)
{
	for (uint32_t i = 0; i < m->config.share->streams; i++)
		if (m->stream[i].stalled && m->config.share->slot[i].pipe >= 0)
			move_once(m, i, EPOLLIN);
}

void
move_reclaimed(struct mover *m, bool freed)
{
	if (m->reclaim != RECLAIM_ASKED)
		return;
	m->reclaim = RECLAIM_OVER;
	m->reclaim_freed = freed;
	move_retry(m);
}

/* The second call for a stream that waits for room: nobody waits any more. */
void
move_drop(struct mover *m, uint32_t stream)
{
	struct raw_share *share = m->config.share;

	if (share->slot[stream].pipe < 0)
		return;
	if (m->stream[stream].dropped) {
		raw_lose(share, raw_left(&share->slot[stream]),
			m->stream[stream].sys);
		unstall(m, stream);
		end_stream(m, stream);
		return;
	}
	m->stream[stream].dropped = true;
	if (move_has_writer(m, stream))
		tell(m, NOTE_LEFT_OPEN, stream, 0);
	serve_dropped(m, stream);
}
