/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - see sink.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/feed.h"
#include "launcher/log/sink.h"
#include "launcher/log/thread.h"

#define BATCH     64
#define FLUSH_AT  (128 * 1024)
#define OUT_FIRST (256 * 1024)
#define WAKE      UINT64_MAX /* the event of the wake descriptor */

struct sink {
	struct sink_config config;
	int epoll;
	int wake; /* eventfd, edge-triggered: never read */
	bool started;

	pthread_mutex_t grow_lock; /* mover and sink; held for a few stores */
	struct feed_list grown;
	bool asleep;

	pthread_mutex_t say_lock; /* loop and sink; held for a few stores */
	struct buf words;
	struct buf last; /* words for the very end */
	struct buf hint;
	struct buf drops; /* uint32_t streams */
	bool finishing;

	/* The thread's own. */
	struct feed *feed;
	struct feed_list ready, parked, waiting;
	struct buf out;
	struct line_sink lines;
	char *scratch;
	bool torn;      /* passed as it is, the last line has no newline yet */
	bool dead;      /* its reader is gone: what comes is thrown away */
	bool hinted;    /* a hint stands on the terminal */
	uint64_t taken; /* bytes of ranks in out */
	int unread;     /* errno of a feed that cannot be read; 0 */

	/* Atomic, for whoever asks; may lag. Beside them @started, of loop and
	 * mover, and the @end of a feed that is a pipe, of the thread. */
	uint64_t announced; /* bytes; by the mover */
	uint64_t delivered; /* bytes; by the thread */
};

static void *run(void *arg);

static bool
watch(struct sink *s, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event e = { .events = events, .data.u64 = tag };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void
sink_free(struct sink *s)
{
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
	s->feed = calloc(config->streams, sizeof(*s->feed));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC);
	if (s->feed == NULL || s->epoll == -1 || s->wake == -1 ||
		!watch(s, s->wake, EPOLLIN | EPOLLET, WAKE)) {
		sink_free(s);
		return NULL;
	}
	for (uint32_t i = 0; i < config->streams; i++) {
		s->feed[i].stream = i;
		s->feed[i].named = config->base + i;
		s->feed[i].file = s->feed[i].new_file = s->feed[i].pipe = -1;
	}
	pthread_mutex_init(&s->grow_lock, NULL);
	pthread_mutex_init(&s->say_lock, NULL);
	TAILQ_INIT(&s->grown);
	TAILQ_INIT(&s->ready);
	TAILQ_INIT(&s->parked);
	TAILQ_INIT(&s->waiting);
	s->lines =
		(struct line_sink){ .out = &s->out, .filter = config->filter };
	return s;
}

/* What the thread needs, before there is one: it could tell nobody. */
static bool
prepare(struct sink *s)
{
	if (s->scratch == NULL)
		s->scratch = malloc(FEED_CHUNK + LINE_HOLD);
	buf_clear(&s->out);
	if (s->scratch == NULL || buf_room(&s->out, OUT_FIRST) == NULL)
		return false;
	buf_clear(&s->out);
	return true;
}

/* First use: the thread. Two threads may come here at once. */
static void
wake_up(struct sink *s)
{
	uint64_t one = 1;
	pthread_t thread;

	if (!__atomic_exchange_n(&s->started, true, __ATOMIC_ACQ_REL)) {
		if (!prepare(s) || thread_start(&thread, run, s) != 0)
			__atomic_store_n(&s->started, false, __ATOMIC_RELEASE);
		return;
	}
	fd_write_all(s->wake, &one, sizeof(one));
}

void
sink_grew(struct sink *s, uint32_t stream, int fd, uint64_t end, bool eof)
{
	struct feed *f = &s->feed[stream];
	bool asleep;

	/* A stream that ends without a byte is nothing to wake up for. */
	if (!s->config.shown[stream] || end == 0)
		return;
	pthread_mutex_lock(&s->grow_lock);
	__atomic_fetch_add(&s->announced, end - f->new_end, __ATOMIC_RELAXED);
	f->new_file = fd;
	f->new_end = end;
	f->new_eof = eof;
	if (!f->queued)
		TAILQ_INSERT_TAIL(&s->grown, f, queue);
	f->queued = true;
	asleep = s->asleep || !__atomic_load_n(&s->started, __ATOMIC_RELAXED);
	s->asleep = false;
	pthread_mutex_unlock(&s->grow_lock);
	if (asleep)
		wake_up(s);
}

bool
sink_add(struct sink *s, uint32_t stream, int pipe)
{
	s->feed[stream].pipe = pipe; /* the first event may come at once */
	/* Only our end: the file behind the writers' end is another one. */
	if (fcntl(pipe, F_SETFL, O_NONBLOCK) == -1 ||
		!watch(s, pipe, EPOLLIN, stream)) {
		s->feed[stream].pipe = -1;
		return false;
	}
	if (!__atomic_load_n(&s->started, __ATOMIC_ACQUIRE))
		wake_up(s);
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
sink_drop(struct sink *s, uint32_t stream)
{
	to_thread(s, &s->drops, &stream, sizeof(stream));
}

static void
note(struct sink *s, enum note_kind kind, uint32_t value, int sys)
{
	struct note n = {
		.kind = (uint16_t)kind,
		.sys = (int16_t)sys,
		.value = value,
	};

	notes_send(s->config.notes, &n, 1);
}

/* A thread that could not be made when there were things to say. */
static bool
has_work(struct sink *s)
{
	bool any;

	pthread_mutex_lock(&s->say_lock);
	any = s->words.len > 0 || s->last.len > 0;
	pthread_mutex_unlock(&s->say_lock);
	pthread_mutex_lock(&s->grow_lock);
	any = any || !TAILQ_EMPTY(&s->grown);
	pthread_mutex_unlock(&s->grow_lock);
	return any;
}

void
sink_finish(struct sink *s)
{
	if (!__atomic_load_n(&s->started, __ATOMIC_ACQUIRE) && !has_work(s)) {
		note(s, NOTE_SINK_DONE, s->config.id, 0);
		return;
	}
	pthread_mutex_lock(&s->say_lock);
	s->finishing = true;
	pthread_mutex_unlock(&s->say_lock);
	wake_up(s);
	/* Still none, and nothing else is left to do: do it here. */
	if (__atomic_load_n(&s->started, __ATOMIC_ACQUIRE))
		return;
	if (prepare(s))
		run(s);
	else
		note(s, NOTE_SINK_DONE, s->config.id, ENOMEM);
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

/* Everything, however long the reader takes. */
static int
write_out(int fd, const char *data, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	while (len > 0) {
		ssize_t n = fault(FAULT_SINK_WRITE, FAULT_ANY) != 0 ?
			-1 :
			write(fd, data, len);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			poll(&p, 1, -1); /* somebody else set O_NONBLOCK */
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

static void
flush(struct sink *s)
{
	int sys = 0;

	if (s->out.len > 0 && !s->dead && s->hinted)
		sys = write_out(s->config.fd, "\r\033[K", 4);
	if (s->out.len > 0 && !s->dead && sys == 0)
		sys = write_out(s->config.fd, s->out.data, s->out.len);
	if (s->out.len > 0)
		s->hinted = false;
	buf_clear(&s->out);
	__atomic_fetch_add(&s->delivered, s->taken, __ATOMIC_RELAXED);
	s->taken = 0;
	if (sys == 0)
		return;
	s->dead = true;
	note(s, NOTE_SINK_CLOSED, s->config.id, sys);
}

static void
stop_waiting(struct sink *s, struct feed *f)
{
	if (f->grew != 0)
		TAILQ_REMOVE(&s->waiting, f, waiting);
	f->grew = 0;
}

/* The list stays in the order of time, because only now is ever appended. */
static void
start_waiting(struct sink *s, struct feed *f)
{
	stop_waiting(s, f);
	f->grew = clock_now();
	TAILQ_INSERT_TAIL(&s->waiting, f, waiting);
}

static void
make_ready(struct sink *s, struct feed *f)
{
	if (!f->listed)
		TAILQ_INSERT_TAIL(&s->ready, f, list);
	f->listed = true;
}

/* Another stream holds the sink. A pipe must not be read meanwhile. */
static void
park(struct sink *s, struct feed *f)
{
	if (f->pipe >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, f->pipe, NULL);
	stop_waiting(s, f);
	TAILQ_INSERT_TAIL(&s->parked, f, list);
	f->listed = true;
}

static void
unpark_all(struct sink *s)
{
	struct feed *f;

	while ((f = TAILQ_FIRST(&s->parked)) != NULL) {
		TAILQ_REMOVE(&s->parked, f, list);
		if (f->pipe >= 0)
			watch(s, f->pipe, EPOLLIN, f->stream);
		TAILQ_INSERT_TAIL(&s->ready, f, list);
	}
}

static void
end_feed(struct sink *s, struct feed *f)
{
	f->over = true;
	if (f->pipe < 0)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, f->pipe, NULL);
	fd_close(f->pipe);
	f->pipe = -1;
	note(s, NOTE_EOF, f->stream, 0);
}

static enum line_end
end_of(const struct feed *f, struct span data, bool idle)
{
	if (f->eof && (f->pipe >= 0 || f->at + data.len == f->end))
		return LINE_LAST;
	return idle && f->at + data.len == f->end ? LINE_IDLE : LINE_MORE;
}

static size_t
deliver(struct sink *s, struct feed *f, struct span data, bool idle)
{
	if (s->dead || !s->config.shown[f->stream])
		return data.len;
	if (!s->config.lines) {
		buf_put(&s->out, data.at, data.len);
		if (data.len > 0)
			s->torn = data.at[data.len - 1] != '\n';
		return data.len;
	}
	return line_cut(&s->lines, &f->line, &s->config.prefix[f->stream], data,
		end_of(f, data, idle));
}

/* After a turn of @f: is there more, an unfinished line, or the end? */
static void
after(struct sink *s, struct feed *f, struct span data, size_t used)
{
	bool holds = s->lines.holder == &f->line;

	stop_waiting(s, f);
	if (f->eof && used == data.len && (f->pipe >= 0 || f->at == f->end)) {
		end_feed(s, f);
		return;
	}
	if ((f->pipe < 0 && f->at < f->end && used > 0) || f->dropped)
		make_ready(s, f);
	else if (holds || used < data.len)
		start_waiting(s, f);
}

/* Descriptors and memory are short for a while; anything else stays as it is,
 * and what was announced of @f and after it is never delivered. */
static void
cannot_read(struct sink *s, struct feed *f, int sys)
{
	f->unread = sys == EMFILE || sys == ENFILE || sys == ENOMEM;
	if (f->unread) {
		start_waiting(s, f);
		return;
	}
	stop_waiting(s, f);
	if (s->lines.holder == &f->line) {
		line_give_up(&s->lines);
		unpark_all(s);
	}
	end_feed(s, f);
	if (s->unread == 0)
		note(s, NOTE_UNREAD, f->stream, sys);
	s->unread = sys;
}

static void
serve(struct sink *s, struct feed *f)
{
	bool idle = f->grew != 0 && !f->unread &&
		clock_now() - f->grew >= LINE_IDLE_NS;
	bool held = s->lines.holder != NULL;
	struct span data;
	size_t used;

	if (f->over)
		return;
	if (held && s->lines.holder != &f->line && s->config.lines) {
		park(s, f);
		return;
	}
	if (!feed_peek(f, s->config.dir, s->scratch, &data)) {
		cannot_read(s, f, errno);
		return;
	}
	f->unread = false;
	used = deliver(s, f, data, idle);
	if (!feed_took(f, data, used))
		used = data.len; /* out of memory: the rest of a line is lost */
	s->taken += used;
	after(s, f, data, used);
	if (held && s->lines.holder == NULL)
		unpark_all(s);
}

/* Nobody's line is to be continued by words of ours. */
static void
begin_line(struct sink *s)
{
	line_give_up(&s->lines);
	unpark_all(s);
	if (s->torn)
		buf_put_char(&s->out, '\n');
	s->torn = false;
}

static void
put_words(struct sink *s, struct buf *words, struct buf *hint)
{
	if (words->len > 0) {
		begin_line(s);
		buf_put(&s->out, words->data, words->len);
	}
	if (hint->len > 0 && !s->dead) {
		flush(s);
		write_out(s->config.fd, hint->data, hint->len);
		s->hinted = true;
	}
}

static void
drop_feeds(struct sink *s, const struct buf *drops)
{
	uint32_t stream;

	for (size_t at = 0; at < drops->len; at += sizeof(stream)) {
		memcpy(&stream, drops->data + at, sizeof(stream));
		feed_drop(&s->feed[stream]);
		if (s->feed[stream].dropped)
			make_ready(s, &s->feed[stream]);
	}
}

/* What the loop has for us; true if it wants us to end. */
static bool
take_words(struct sink *s)
{
	struct buf words, hint, drops;
	bool finishing;

	pthread_mutex_lock(&s->say_lock);
	words = s->words;
	hint = s->hint;
	drops = s->drops;
	finishing = s->finishing;
	s->words = s->hint = s->drops = (struct buf){ 0 };
	pthread_mutex_unlock(&s->say_lock);
	put_words(s, &words, &hint);
	drop_feeds(s, &drops);
	buf_fini(&words);
	buf_fini(&hint);
	buf_fini(&drops);
	return finishing;
}

/* What the mover has for us; false, and asleep from now on, if nothing. */
static bool
take_grown(struct sink *s)
{
	struct feed *f;
	bool any;

	pthread_mutex_lock(&s->grow_lock);
	any = !TAILQ_EMPTY(&s->grown);
	while ((f = TAILQ_FIRST(&s->grown)) != NULL) {
		TAILQ_REMOVE(&s->grown, f, queue);
		f->queued = false;
		f->file = f->new_file;
		f->end = f->new_end;
		f->eof = f->new_eof;
		if (f->grew != 0)
			stop_waiting(s, f); /* it grew: a new 200 ms */
		make_ready(s, f);
	}
	s->asleep = !any && TAILQ_EMPTY(&s->ready);
	pthread_mutex_unlock(&s->grow_lock);
	return any;
}

static void
serve_ready(struct sink *s)
{
	struct feed_list now;
	struct feed *f;

	TAILQ_INIT(&now);
	TAILQ_CONCAT(&now, &s->ready, list);
	while ((f = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, f, list);
		f->listed = false;
		serve(s, f);
		if (s->out.len >= FLUSH_AT)
			flush(s);
	}
}

static int
next_timeout(const struct sink *s)
{
	const struct feed *f = TAILQ_FIRST(&s->waiting);
	int64_t left;

	if (!TAILQ_EMPTY(&s->ready))
		return 0;
	if (f == NULL)
		return -1;
	left = f->grew + LINE_IDLE_NS - clock_now();
	return left <= 0 ? 0 : (int)(left / NS_PER_MS) + 1;
}

static void
ready_overdue(struct sink *s)
{
	struct feed *f, *next;
	int64_t now;

	if (TAILQ_EMPTY(&s->waiting))
		return;
	now = clock_now();
	for (f = TAILQ_FIRST(&s->waiting); f != NULL; f = next) {
		next = TAILQ_NEXT(f, waiting);
		if (now - f->grew < LINE_IDLE_NS)
			break;
		make_ready(s, f);
	}
}

static bool
idle(const struct sink *s)
{
	return TAILQ_EMPTY(&s->ready) && TAILQ_EMPTY(&s->parked) &&
		TAILQ_EMPTY(&s->waiting);
}

/* Nothing else is left to say; the loop waits and adds no more. */
static void
put_last(struct sink *s)
{
	pthread_mutex_lock(&s->say_lock);
	if (s->last.len > 0) {
		begin_line(s);
		buf_put(&s->out, s->last.data, s->last.len);
	}
	pthread_mutex_unlock(&s->say_lock);
	flush(s);
}

static void *
run(void *arg)
{
	struct sink *s = arg;
	struct epoll_event events[BATCH];
	bool finishing, grown;
	int n;

	for (;;) {
		finishing = take_words(s);
		ready_overdue(s);
		grown = take_grown(s);
		serve_ready(s);
		flush(s);
		if (grown)
			continue;
		if (finishing && idle(s))
			break;
		n = epoll_wait(s->epoll, events, BATCH, next_timeout(s));
		for (int i = 0; i < n; i++)
			if (events[i].data.u64 != WAKE)
				make_ready(s, &s->feed[events[i].data.u64]);
	}
	put_last(s);
	note(s, NOTE_SINK_DONE, s->config.id, s->unread);
	return NULL;
}
