/* SPDX-License-Identifier: Apache-2.0 */
/* mover.c - see mover.h and mover_inner.h: the thread, and what the loop calls. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/mover_inner.h"
#include "launcher/log/sink.h"
#include "launcher/log/thread.h"

#define BATCH           MOVER_PEEK
#define RETRY_MS        1000
#define REFUSED_MS      1
#define THREAD_RETRY_MS 100
#define DROPS           UINT64_MAX /* the event of @drops */

struct mover *
mover_open(const struct mover_config *config)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = DROPS };
	struct mover *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->config = *config;
	m->reserve.size = config->share->reserve;
	m->written = config->share->before;
	m->large =
		config->share->large != 0 ? config->share->large : MOVER_LARGE;
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

bool
mover_add(struct mover *m, uint32_t stream, int pipe)
{
	struct raw_slot *slot = &m->config.share->slot[stream];

	slot->pipe = pipe; /* the first event may come at once */
	if (move_listen(m, stream))
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

void
mover_tell_first(struct mover *m)
{
	__atomic_store_n(&m->tell_first, true, __ATOMIC_RELAXED);
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
	bool bytes = m->started;
	int n = bytes ? 0 : epoll_wait(m->epoll, events, BATCH, 0);

	*count = 0;
	for (int i = 0; i < n; i++) {
		if (has_bytes(m, &events[i])) {
			bytes = true;
			continue;
		}
		ended[*count] = (uint32_t)events[i].data.u64;
		move_close(m, ended[(*count)++]);
	}
	return bytes;
}

static void
take_drops(struct mover *m)
{
	uint64_t calls;
	uint8_t answer;

	if (read(m->drops, &calls, sizeof(calls)) == -1)
		return;
	answer = __atomic_exchange_n(&m->answer, 0, __ATOMIC_ACQ_REL);
	if (answer != 0)
		move_reclaimed(m, (answer & RECLAIM_FREED) != 0);
	for (uint32_t i = 0; i < m->config.share->streams; i++) {
		uint8_t n = __atomic_exchange_n(&m->stream[i].drops, 0,
			__ATOMIC_ACQ_REL);

		for (; n > 0; n--)
			move_drop(m, i);
	}
}

/* What ranks wrote before @when is told. */
static void
tell_swept(struct mover *m, int64_t when)
{
	for (uint32_t i = 0; i < RAW_STREAMS; i++)
		if (m->config.sink[i] != NULL)
			sink_swept(m->config.sink[i], when);
}

static void
begin_round(struct mover *m)
{
	m->round = clock_now();
	for (uint32_t i = 0; i < RAW_STREAMS; i++)
		if (m->config.sink[i] != NULL)
			sink_round(m->config.sink[i], m->round);
}

/* @n streams have their turn. Where that is all that epoll can give at once
 * others may be ready, too: it gives those first the next time. */
static void
go_round(struct mover *m, int n)
{
	if (m->owed <= 0) {
		tell_swept(m, m->round);
		begin_round(m);
		m->owed = m->config.share->streams;
	}
	m->owed = n < BATCH ? 0 : m->owed - n;
}

/* The time until there is something to try again, in ms; -1: nothing. Output waits in a
 * sink whose thread was refused, and its rank may write nothing more. */
static int
until_retry(struct mover *m)
{
	int ms = m->stalled > 0 ? RETRY_MS : -1;

	for (uint32_t i = 0; i < RAW_STREAMS; i++)
		if (m->config.sink[i] != NULL && sink_retry(m->config.sink[i]))
			ms = THREAD_RETRY_MS;
	return ms;
}

static int
await(struct mover *m, struct epoll_event events[static BATCH])
{
	int n = epoll_wait(m->epoll, events, BATCH, 0);

	/* Refused: without a pause this thread would keep a processor busy. */
	if (n == -1 && errno != EINTR)
		poll(NULL, 0, REFUSED_MS);
	if (n == 0) {
		tell_swept(m, SINK_SWEPT_ALL);
		n = epoll_wait(m->epoll, events, BATCH, until_retry(m));
		begin_round(m);
		m->owed = 0;
	}
	go_round(m, n);
	return n;
}

static void *
run(void *arg)
{
	struct mover *m = arg;
	struct epoll_event events[BATCH];
	int64_t retry = 0;
	int n;

	for (;;) {
		n = await(m, events);
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 == DROPS)
				take_drops(m);
			else
				move_serve(m, (uint32_t)events[i].data.u64,
					events[i].events);
		}
		if (m->stalled > 0 && clock_now() >= retry) {
			move_retry(m);
			retry = clock_now() + RETRY_MS * NS_PER_MS;
		}
		notes_flush(m->config.notes, &m->ended);
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

void
mover_reclaimed(struct mover *m, bool freed)
{
	uint64_t one = 1;

	__atomic_store_n(&m->answer, freed ? RECLAIM_FREED | 1 : 1,
		__ATOMIC_RELEASE);
	fd_tell(m->drops, &one, sizeof(one));
}

/* As move_drop(), where there is no thread to do it. DROP_LATER except for the first call. */
static enum drop_end
leave(struct mover *m, uint32_t stream)
{
	struct raw_share *share = m->config.share;
	struct raw_slot *slot = &share->slot[stream];
	struct stream *st = &m->stream[stream];
	enum drop_end end;

	if (slot->pipe < 0 || st->left)
		return DROP_LATER;
	end = move_has_writer(m, stream) ? DROP_LEFT_OPEN : DROP_OVER;
	st->left = true;
	move_deaf(m, stream);
	if (!raw_leave(share, stream))
		move_close(m, stream);
	return end;
}

enum drop_end
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
	return DROP_LATER;
}
