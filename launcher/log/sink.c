/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - see sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/sink_inner.h"
#include "launcher/log/thread.h"
#include "launcher/log/view.h"

bool
sink_watch(struct sink *s, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event e = { .events = events, .data.u64 = tag };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool
make_view(struct sink *s)
{
	struct view_config config = {
		.out = &s->out,
		.route = s->config.view,
		.fd = s->config.fd,
		.tty = s->config.filter,
		.narrow = s->config.narrow,
		.screen = s->config.screen,
		.collapse = s->config.collapse,
	};

	if (s->config.view == NULL)
		return true;
	s->lines.view = view_new(&config);
	return s->lines.view != NULL;
}

static void
sink_free(struct sink *s)
{
	view_free(s->lines.view);
	fd_close(s->epoll);
	fd_close(s->wake);
	free(s->feed);
	free(s);
}

struct sink *
sink_open(const struct sink_config *config)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->config = *config;
	s->lines = (struct line_sink){
		.out = &s->out,
		.filter = config->filter,
		.narrow = config->narrow,
		.rows = !config->filter,
		.clocked = config->times,
	};
	s->swept = SINK_SWEPT_ALL;
	s->feed = calloc(config->streams, sizeof(*s->feed));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC);
	if (s->feed == NULL || s->epoll == -1 || s->wake == -1 ||
		!sink_watch(s, s->wake, EPOLLIN | EPOLLET, SINK_WAKE) ||
		!make_view(s)) {
		sink_free(s);
		return NULL;
	}
	for (uint32_t i = 0; i < config->streams; i++) {
		s->feed[i].stream = s->feed[i].line.number = i;
		s->feed[i].named = config->base + i;
		s->feed[i].share = config->share;
		s->feed[i].piece.border = PIECE_NONE;
		s->feed[i].file = s->feed[i].new_file = s->feed[i].pipe = -1;
	}
	pthread_mutex_init(&s->grow_lock, NULL);
	pthread_mutex_init(&s->say_lock, NULL);
	TAILQ_INIT(&s->grown);
	TAILQ_INIT(&s->ready);
	TAILQ_INIT(&s->parked);
	TAILQ_INIT(&s->waiting);
	return s;
}

/* What the thread needs, before there is one: it could tell nobody. */
static bool
prepare(struct sink *s)
{
	if (s->scratch == NULL)
		s->scratch = malloc(FEED_CHUNK + LINE_HOLD);
	buf_clear(&s->out);
	if (s->scratch == NULL || buf_room(&s->out, SINK_OUT_FIRST) == NULL)
		return false;
	buf_clear(&s->out);
	return true;
}

/* Two threads may come here at once. */
int
sink_start(struct sink *s)
{
	pthread_t thread;
	int sys;

	if (__atomic_exchange_n(&s->started, true, __ATOMIC_ACQ_REL))
		return 0;
	sys = prepare(s) ? thread_start(&thread, deliver_run, s) : ENOMEM;
	__atomic_store_n(&s->refused, sys, __ATOMIC_RELAXED);
	if (sys != 0)
		__atomic_store_n(&s->started, false, __ATOMIC_RELEASE);
	return sys;
}

static bool
has_thread(const struct sink *s)
{
	return __atomic_load_n(&s->started, __ATOMIC_ACQUIRE);
}

bool
sink_retry(struct sink *s)
{
	return __atomic_load_n(&s->refused, __ATOMIC_RELAXED) != 0 &&
		sink_start(s) != 0;
}

/* First use: the thread. Where it is refused, what is queued waits for sink_retry(), at
 * last for sink_finish(). */
static void
wake_up(struct sink *s)
{
	uint64_t one = 1;

	if (has_thread(s))
		fd_tell(s->wake, &one, sizeof(one));
	else
		sink_start(s);
}

/* The sink has news of @f. Returns whether its thread is to be woken; it is not
 * for @idle news. With grow_lock held. */
static bool
sink_queue(struct sink *s, struct feed *f, bool idle)
{
	bool asleep = !idle &&
		(s->asleep || !__atomic_load_n(&s->started, __ATOMIC_RELAXED));

	if (!f->queued)
		TAILQ_INSERT_TAIL(&s->grown, f, queue);
	f->queued = true;
	s->asleep = idle;
	return asleep;
}

/* Pending bytes were announced when they were added. */
static void
sink_announce(struct sink *s, const struct feed *f, uint64_t end)
{
	uint64_t from = f->new_end;

	if (f->unstored != NULL && f->unstored->pending > from)
		from = f->unstored->pending;
	if (end > from)
		__atomic_fetch_add(&s->announced, end - from, __ATOMIC_RELAXED);
}

void
sink_round(struct sink *s, int64_t when)
{
	s->round = when;
}

void
sink_grew(struct sink *s, uint32_t stream, int fd, uint64_t end, bool eof)
{
	struct feed *f = &s->feed[stream];
	bool asleep, idle;

	/* A stream that ends without a byte is nothing to wake up for. */
	if (!s->config.shown[stream] || (end == 0 && f->unstored == NULL))
		return;
	pthread_mutex_lock(&s->grow_lock);
	/* Nor is one whose lines are all shown: it is taken with what comes
	 * next, or at the end. */
	idle = s->asleep && s->settled && end == f->new_end;
	sink_announce(s, f, end);
	f->new_file = fd;
	f->new_end = end;
	f->new_eof = eof;
	f->new_came = s->round;
	if (s->config.times)
		feed_mark(f, end, clock_wall());
	asleep = sink_queue(s, f, idle);
	pthread_mutex_unlock(&s->grow_lock);
	if (asleep)
		wake_up(s);
}

void
sink_unstored(struct sink *s, uint32_t stream, uint64_t at, struct span data,
	bool dropped)
{
	struct feed *f = &s->feed[stream];
	bool asleep = false;
	size_t n = 0;

	if (!s->config.shown[stream])
		return;
	pthread_mutex_lock(&s->grow_lock);
	if (f->unstored == NULL)
		f->unstored = unstored_new(&s->unstored);
	if (f->unstored != NULL)
		n = unstored_add(f->unstored, at, data, dropped);
	if (n > 0) {
		__atomic_fetch_add(&s->announced, n, __ATOMIC_RELAXED);
		f->new_came = s->round;
		asleep = sink_queue(s, f, false);
	}
	pthread_mutex_unlock(&s->grow_lock);
	if (asleep)
		wake_up(s);
}

void
sink_swept(struct sink *s, int64_t when)
{
	__atomic_store_n(&s->swept, when, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->asks, __ATOMIC_SEQ_CST) &&
		__atomic_exchange_n(&s->asks, false, __ATOMIC_ACQ_REL))
		wake_up(s);
}

bool
sink_add(struct sink *s, uint32_t stream, int pipe)
{
	s->feed[stream].pipe = pipe; /* the first event may come at once */
	/* Only our end: the file behind the writers' end is another one. */
	if (fcntl(pipe, F_SETFL, O_NONBLOCK) == -1 ||
		!sink_watch(s, pipe, EPOLLIN, stream)) {
		s->feed[stream].pipe = -1;
		return false;
	}
	return true;
}

static void
to_thread(struct sink *s, struct buf *queue, const void *data, size_t len)
{
	pthread_mutex_lock(&s->say_lock);
	buf_put(queue, data, len);
	pthread_mutex_unlock(&s->say_lock);
	wake_up(s);
}

void
sink_say(struct sink *s, const char *text, size_t len)
{
	to_thread(s, &s->words, text, len);
}

void
sink_last(struct sink *s, const char *text, size_t len)
{
	to_thread(s, &s->last, text, len);
}

void
sink_hint(struct sink *s, const char *text, size_t len)
{
	to_thread(s, &s->hint, text, len);
}

void
sink_look(struct sink *s, bool lost)
{
	if (s->lines.view == NULL || !has_thread(s))
		return;
	pthread_mutex_lock(&s->say_lock);
	s->lost = s->lost || lost;
	pthread_mutex_unlock(&s->say_lock);
	wake_up(s);
}

/* There is no thread that shows what the pipe holds. */
static enum drop_end
leave(struct sink *s, uint32_t stream)
{
	struct feed *f = &s->feed[stream];
	enum drop_end end;
	int waiting = 0;

	if (f->pipe < 0)
		return DROP_LATER;
	end = fd_has_writer(f->pipe) ? DROP_LEFT_OPEN : DROP_OVER;
	ioctl(f->pipe, FIONREAD, &waiting);
	s->left += waiting > 0;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, f->pipe, NULL);
	fd_close(f->pipe);
	f->pipe = -1;
	f->over = true;
	return end;
}

enum drop_end
sink_drop(struct sink *s, uint32_t stream)
{
	if (sink_start(s) != 0)
		return leave(s, stream);
	to_thread(s, &s->drops, &stream, sizeof(stream));
	return DROP_LATER;
}

void
sink_note(struct sink *s, enum note_kind kind, uint32_t value, int sys)
{
	notes_send(s->config.notes, kind, value, sys);
}

static bool
has_grown(struct sink *s)
{
	bool any;

	pthread_mutex_lock(&s->grow_lock);
	any = !TAILQ_EMPTY(&s->grown);
	pthread_mutex_unlock(&s->grow_lock);
	return any;
}

/* A thread that could not be made when there were things to say. */
static bool
has_work(struct sink *s)
{
	bool any;

	pthread_mutex_lock(&s->say_lock);
	any = s->words.len > 0 || s->last.len > 0;
	pthread_mutex_unlock(&s->say_lock);
	return any || has_grown(s);
}

/* As many of them as the reader takes now. False: more are left. */
static bool
say_here(struct sink *s, struct buf *words)
{
	ssize_t n;

	if (words->len == 0)
		return true; /* and has no data to move */
	n = fd_write_now(s->config.fd, words->data, words->len);
	if (n == -1) {
		buf_clear(words);
		return true;
	}
	memmove(words->data, words->data + n, words->len - (size_t)n);
	words->len -= (size_t)n;
	return words->len == 0;
}

enum sink_end
sink_finish(struct sink *s, int *sys)
{
	bool said;

	*sys = 0;
	if (!has_thread(s) && !has_work(s))
		return SINK_OVER;
	pthread_mutex_lock(&s->say_lock);
	s->finishing = true;
	pthread_mutex_unlock(&s->say_lock);
	wake_up(s);
	if (has_thread(s))
		return SINK_LATER;
	/* The mover may still make one: nothing is taken from it then. */
	pthread_mutex_lock(&s->say_lock);
	said = say_here(s, &s->words) && say_here(s, &s->last);
	pthread_mutex_unlock(&s->say_lock);
	if (!said)
		return SINK_AGAIN;
	*sys = has_grown(s) ? __atomic_load_n(&s->refused, __ATOMIC_RELAXED) :
			      0;
	return SINK_OVER;
}

uint32_t
sink_left(const struct sink *s)
{
	return s->left;
}

uint64_t
sink_backlog(struct sink *s)
{
	if (s->config.dir < 0)
		return 0;
	return __atomic_load_n(&s->announced, __ATOMIC_RELAXED) -
		__atomic_load_n(&s->delivered, __ATOMIC_RELAXED);
}

uint64_t
sink_bytes(struct sink *s, uint32_t stream)
{
	return __atomic_load_n(&s->feed[stream].end, __ATOMIC_RELAXED);
}

struct span
sink_tail(const struct sink *s, uint32_t stream)
{
	const struct feed *f = &s->feed[stream];

	return (struct span){ .at = f->tail, .len = f->tail_len };
}
