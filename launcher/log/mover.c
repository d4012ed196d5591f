/* SPDX-License-Identifier: Apache-2.0 */
/* mover.c - see mover.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/index.h"
#include "launcher/log/mover.h"
#include "launcher/log/piece.h"
#include "launcher/log/sink.h"
#include "launcher/log/thread.h"

#define BATCH     MOVER_PEEK
#define RETRY_MS  1000
#define THROW_MAX (1 << 20)       /* a turn */
#define TELL_NS   (60 * NS_PER_S) /* between two notes about the same trouble */

struct stream {
	struct index index;
	int64_t last_ns; /* wall time of the last move */
	int64_t told_ns; /* clock_now() of the last NOTE_FULL */
	bool stalled;    /* no room: out of the epoll set, tried each second */
	int sys;         /* why */
	bool dropping;   /* no room, or never any: what comes is thrown away */
	uint64_t cut_again; /* a piece could not be cut: not before this */
	uint8_t drops;      /* atomic: calls of mover_drop() not yet heard */
	bool dropped;       /* to be ended with what its pipe holds now */
	bool left;          /* by the loop, with what its pipe holds now */
	bool discarded;     /* no file can be had: what comes is counted */
};

struct mover {
	struct mover_config config;
	int epoll;
	bool started;
	int drops;      /* eventfd: the loop has streams to drop */
	uint32_t files; /* raw files kept open */
	uint32_t stalled;
	bool tell_first; /* atomic: NOTE_FIRST with the next byte */
	bool gone;       /* the folder was removed, and that was told */
	struct stream *stream;
};

#define DROPS UINT64_MAX /* the event of @drops */

struct mover *
mover_open(const struct mover_config *config)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = DROPS };
	struct mover *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->config = *config;
	m->stream = calloc(config->share->streams, sizeof(*m->stream));
	m->drops = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->stream == NULL || m->drops == -1 || m->epoll == -1 ||
		epoll_ctl(m->epoll, EPOLL_CTL_ADD, m->drops, &e) == -1)
		goto fail;
	return m;
fail:
	fd_close(m->epoll);
	fd_close(m->drops);
	free(m->stream);
	free(m);
	return NULL;
}

/* What tells that there are bytes: the pipe of a rank, or its terminal. */
static int
source_of(const struct raw_slot *slot)
{
	return slot->tty >= 0 ? slot->tty : slot->pipe;
}

static bool
listen_to(struct mover *m, uint32_t stream)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = stream };

	return epoll_ctl(m->epoll, EPOLL_CTL_ADD,
		       source_of(&m->config.share->slot[stream]), &e) == 0;
}

static void
turn_from(struct mover *m, uint32_t stream)
{
	epoll_ctl(m->epoll, EPOLL_CTL_DEL,
		source_of(&m->config.share->slot[stream]), NULL);
}

bool
mover_add(struct mover *m, uint32_t stream, int pipe)
{
	struct raw_slot *slot = &m->config.share->slot[stream];

	slot->pipe = pipe; /* the first event may come at once */
	if (listen_to(m, stream))
		return true;
	slot->pipe = -1;
	return false;
}

bool
mover_add_tty(struct mover *m, uint32_t stream, int master)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return false;
	slot->fill = fd[1];
	slot->tty = master;
	if (mover_add(m, stream, fd[0]))
		return true;
	slot->tty = slot->fill = -1;
	fd_close(fd[0]);
	fd_close(fd[1]);
	return false;
}

uint64_t
mover_bytes(const struct mover *m, uint32_t stream)
{
	return __atomic_load_n(&m->config.share->slot[stream].moved,
		__ATOMIC_RELAXED);
}

int64_t
mover_last(const struct mover *m, uint32_t stream)
{
	return __atomic_load_n(&m->stream[stream].last_ns, __ATOMIC_RELAXED);
}

static void
tell(struct mover *m, enum note_kind kind, uint32_t stream, int sys)
{
	struct note note = {
		.kind = (uint16_t)kind,
		.sys = (int16_t)sys,
		.value = stream,
	};

	notes_send(m->config.notes, &note, 1);
}

static void
tell_sink(struct mover *m, uint32_t stream, bool eof)
{
	const struct raw_slot *slot = &m->config.share->slot[stream];
	struct sink *sink = m->config.sink[stream % RAW_STREAMS];

	if (sink != NULL)
		sink_grew(sink, stream, slot->file, slot->moved, eof);
}

/* The pipe is at its end, or nobody waits for it any more. */
static void
close_stream(struct mover *m, uint32_t stream)
{
	index_finish(&m->stream[stream].index, m->config.share->dir,
		m->config.share->base + stream);
	turn_from(m, stream);
	raw_close(&m->config.share->slot[stream]);
	tell_sink(m, stream, true);
}

static void
end_stream(struct mover *m, uint32_t stream)
{
	if (m->config.share->slot[stream].pipe < 0)
		return;
	close_stream(m, stream);
	tell(m, NOTE_EOF, stream, 0);
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
		n = raw_discard(slot->pipe);
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

/* Its bytes stay in the pipe, and the rank waits when that is full. */
static void
stall(struct mover *m, uint32_t stream, int sys)
{
	struct stream *st = &m->stream[stream];

	if (raw_hopeless(sys) || (m->config.drop && raw_no_room(sys))) {
		throw_away(m, stream, sys);
		return;
	}
	st->sys = sys;
	if (!st->stalled) {
		st->stalled = true;
		m->stalled++;
		turn_from(m, stream);
	} else if (clock_now() - st->told_ns < TELL_NS) {
		return;
	}
	st->told_ns = clock_now();
	tell(m, NOTE_FULL, stream, sys);
}

static void
unstall(struct mover *m, uint32_t stream)
{
	struct stream *st = &m->stream[stream];

	if (st->dropping)
		tell(m, NOTE_ROOM, stream, 0);
	st->dropping = false;
	if (!st->stalled)
		return;
	st->stalled = false;
	m->stalled--;
	listen_to(m, stream);
	tell(m, NOTE_ROOM, stream, 0);
}

static void
moved(struct mover *m, uint32_t stream, size_t n)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	struct stream *st = &m->stream[stream];
	int64_t now = clock_wall();

	__atomic_store_n(&slot->moved, slot->moved + n, __ATOMIC_RELAXED);
	__atomic_store_n(&st->last_ns, now, __ATOMIC_RELAXED);
	index_moved(&st->index, m->config.share->dir,
		m->config.share->base + stream, slot->moved, now);
	tell_sink(m, stream, false);
	if (__atomic_load_n(&m->tell_first, __ATOMIC_RELAXED) &&
		__atomic_exchange_n(&m->tell_first, false, __ATOMIC_RELAXED))
		tell(m, NOTE_FIRST, stream, 0);
}

void
mover_tell_first(struct mover *m)
{
	__atomic_store_n(&m->tell_first, true, __ATOMIC_RELAXED);
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
	long n = raw_discard(m->config.share->slot[stream].pipe);

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

/* One move; gives the bytes, 0 at the end, -1 with errno. */
static long
move(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	int fd = m->stream[stream].discarded ? -1 : file_of(m, stream);
	long n;

	if (m->stream[stream].discarded)
		return discard(m, stream);
	if (fd < 0)
		return -1;
	n = fault(FAULT_MOVE_BEFORE, stream / RAW_STREAMS) != 0 ?
		-1 :
		raw_move_some(slot->pipe, fd, room_in(m, stream, fd));
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

/* Its writers outlived their rank: what is there is taken, and no more. A full
 * disk is waited for all the same. */
static void
serve_dropped(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	long left, n = 1;

	raw_fill(slot);
	left = (long)raw_waiting(slot->pipe);
	for (; n > 0 && left > 0; left -= n)
		n = move(m, stream);
	if (n == -1 && errno != EAGAIN && errno != EINTR) {
		stall(m, stream, errno);
		if (m->stream[stream].stalled)
			return;
	}
	unstall(m, stream);
	end_stream(m, stream);
}

static void
serve(struct mover *m, uint32_t stream, uint32_t events)
{
	const struct raw_slot *slot = &m->config.share->slot[stream];
	long n;

	if (slot->pipe < 0)
		return;
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

/* The second call for a stream that waits for room: nobody waits any more. */
static void
drop(struct mover *m, uint32_t stream)
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
	serve_dropped(m, stream);
}

int
mover_fd(const struct mover *m)
{
	return m->epoll;
}

/* Or may have: the kernel brings what is written to a terminal later. */
static bool
has_bytes(const struct mover *m, const struct epoll_event *e)
{
	return (e->events & EPOLLIN) != 0 ||
		m->config.share->slot[e->data.u64].tty >= 0;
}

/* The loop gets no note of itself: it reads them, and would wait for ever in
 * front of a full pipe. */
bool
mover_peek(struct mover *m, uint32_t ended[static MOVER_PEEK], uint32_t *count)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(m->epoll, events, BATCH, 0);
	bool bytes = false;

	*count = 0;
	for (int i = 0; i < n; i++) {
		if (has_bytes(m, &events[i])) {
			bytes = true;
			continue;
		}
		ended[*count] = (uint32_t)events[i].data.u64;
		close_stream(m, ended[(*count)++]);
	}
	return bytes;
}

static void
take_drops(struct mover *m)
{
	uint64_t calls;

	if (read(m->drops, &calls, sizeof(calls)) == -1)
		return;
	for (uint32_t i = 0; i < m->config.share->streams; i++) {
		uint8_t n = __atomic_exchange_n(&m->stream[i].drops, 0,
			__ATOMIC_ACQ_REL);

		for (; n > 0; n--)
			drop(m, i);
	}
}

static void
retry_stalled(struct mover *m)
{
	for (uint32_t i = 0; i < m->config.share->streams; i++)
		if (m->stream[i].stalled)
			serve(m, i, EPOLLIN);
}

static void *
run(void *arg)
{
	struct mover *m = arg;
	struct epoll_event events[BATCH];
	int64_t retry = 0;
	int n;

	for (;;) {
		n = epoll_wait(m->epoll, events, BATCH,
			m->stalled > 0 ? RETRY_MS : -1);
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 == DROPS)
				take_drops(m);
			else
				serve(m, (uint32_t)events[i].data.u64,
					events[i].events);
		}
		if (m->stalled > 0 && clock_now() >= retry) {
			retry_stalled(m);
			retry = clock_now() + RETRY_MS * NS_PER_MS;
		}
	}
	return NULL;
}

int
mover_start(struct mover *m)
{
	pthread_t thread;
	int sys = m->started ? 0 : thread_start(&thread, run, m);

	m->started = sys == 0;
	return sys;
}

/* As drop(), where there is no thread to do it. True the first time. */
static bool
leave(struct mover *m, uint32_t stream)
{
	struct raw_share *share = m->config.share;
	struct raw_slot *slot = &share->slot[stream];
	struct stream *st = &m->stream[stream];

	if (slot->pipe < 0 || st->left)
		return false;
	st->left = true;
	turn_from(m, stream);
	if (!raw_leave(share, stream))
		close_stream(m, stream);
	return true;
}

bool
mover_drop(struct mover *m, uint32_t stream)
{
	uint8_t *drops = &m->stream[stream].drops;
	uint64_t one = 1;

	if (m->stream[stream].left || mover_start(m) != 0)
		return leave(m, stream);
	/* It may sleep in a write for as long as it likes: not more than twice
	 * does any good, and nothing here waits for it. */
	if (__atomic_load_n(drops, __ATOMIC_ACQUIRE) < 2)
		__atomic_fetch_add(drops, 1, __ATOMIC_ACQ_REL);
	fd_tell(m->drops, &one, sizeof(one));
	return false;
}
