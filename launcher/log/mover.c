/* SPDX-License-Identifier: Apache-2.0 */
/* mover.c - see mover.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/index.h"
#include "launcher/log/mover.h"
#include "launcher/log/sink.h"
#include "launcher/log/thread.h"

#define BATCH    64
#define MOVE_MAX (1 << 20) /* a pipe holds 64 KiB; larger ones are allowed */
#define RETRY_MS 1000

struct stream {
	struct index index;
	int64_t last_ns; /* wall time of the last move */
	bool stalled;    /* no room: out of the epoll set, tried each second */
};

struct mover {
	struct mover_config config;
	int epoll;
	int drops[2];   /* streams to drop, from the loop */
	uint32_t files; /* raw files kept open */
	uint32_t stalled;
	struct stream *stream;
};

#define DROPS UINT64_MAX /* the event of the command pipe */

struct mover *
mover_open(const struct mover_config *config)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = DROPS };
	struct mover *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->config = *config;
	m->epoll = -1;
	m->stream = calloc(config->share->streams, sizeof(*m->stream));
	if (m->stream == NULL || pipe2(m->drops, O_CLOEXEC) == -1)
		goto fail;
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll == -1 ||
		epoll_ctl(m->epoll, EPOLL_CTL_ADD, m->drops[0], &e) == -1)
		goto fail;
	return m;
fail:
	fd_close(m->epoll);
	free(m->stream);
	free(m);
	return NULL;
}

static bool
listen_to(struct mover *m, uint32_t stream)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = stream };

	return epoll_ctl(m->epoll, EPOLL_CTL_ADD,
		       m->config.share->slot[stream].pipe, &e) == 0;
}

bool
mover_add(struct mover *m, uint32_t stream, int pipe)
{
	m->config.share->slot[stream].pipe = pipe;
	return listen_to(m, stream);
}

void
mover_drop(struct mover *m, uint32_t stream)
{
	fd_write_all(m->drops[1], &stream, sizeof(stream));
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
end_stream(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	int pipe = slot->pipe;

	if (pipe < 0)
		return;
	index_finish(&m->stream[stream].index, m->config.share->dir,
		m->config.share->base + stream);
	epoll_ctl(m->epoll, EPOLL_CTL_DEL, pipe, NULL);
	slot->pipe = -1;
	fd_close(pipe);
	tell_sink(m, stream, true);
	tell(m, NOTE_EOF, stream, 0);
}

/* Its bytes stay in the pipe, and the rank waits when that is full. */
static void
stall(struct mover *m, uint32_t stream, int sys)
{
	struct stream *st = &m->stream[stream];

	if (st->stalled)
		return;
	st->stalled = true;
	m->stalled++;
	epoll_ctl(m->epoll, EPOLL_CTL_DEL, m->config.share->slot[stream].pipe,
		NULL);
	tell(m, NOTE_FULL, stream, sys);
}

static void
unstall(struct mover *m, uint32_t stream)
{
	struct stream *st = &m->stream[stream];

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
}

/* A raw file, kept open while there are descriptors for it. */
static int
file_of(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	int fd;

	if (slot->file >= 0)
		return slot->file;
	fd = raw_open(m->config.share->dir, m->config.share->base + stream);
	if (fd >= 0 && m->files < m->config.files_max) {
		m->files++;
		slot->file = fd;
	}
	return fd;
}

/* One move; gives 1 if there may be more, 0 at the end, -1 with errno. */
static int
move(struct mover *m, uint32_t stream)
{
	struct raw_slot *slot = &m->config.share->slot[stream];
	int fd = file_of(m, stream);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = splice(slot->pipe, NULL, fd, NULL, MOVE_MAX, SPLICE_F_NONBLOCK);
	if (fd != slot->file)
		fd_close(fd);
	if (n > 0)
		moved(m, stream, (size_t)n);
	return n > 0 ? 1 : (int)n;
}

/* Is the pipe at its end, with nothing in it? Asked before a file is made for
 * a rank that says nothing. */
static bool
silent_end(struct mover *m, uint32_t stream, uint32_t events)
{
	int waiting = 0;

	return (events & EPOLLIN) == 0 ||
		(m->config.share->slot[stream].moved == 0 &&
			(events & EPOLLHUP) != 0 &&
			ioctl(m->config.share->slot[stream].pipe, FIONREAD,
				&waiting) == 0 &&
			waiting == 0);
}

static void
serve(struct mover *m, uint32_t stream, uint32_t events)
{
	int more;

	if (m->config.share->slot[stream].pipe < 0)
		return;
	if (silent_end(m, stream, events)) {
		end_stream(m, stream);
		return;
	}
	more = move(m, stream);
	if (more == 0)
		end_stream(m, stream);
	else if (more == 1)
		unstall(m, stream);
	else if (errno != EAGAIN && errno != EINTR)
		stall(m, stream, errno);
}

/* Streams whose writers outlived their rank: take what is there, and close. */
static void
serve_drops(struct mover *m)
{
	uint32_t stream;
	int more = 1;

	if (fd_read_some(m->drops[0], &stream, sizeof(stream)) !=
		sizeof(stream))
		return;
	while (more == 1 && m->config.share->slot[stream].pipe >= 0)
		more = move(m, stream);
	unstall(m, stream);
	end_stream(m, stream);
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
				serve_drops(m);
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

	return thread_start(&thread, run, m);
}
