/* SPDX-License-Identifier: Apache-2.0 */
/* deliver.c - see sink_inner.h: a sink's thread. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/modes.h"
#include "launcher/log/sink_inner.h"
#include "launcher/log/view.h"

#define BATCH      64
#define REFUSED_MS 1
#define FLUSH_AT   (128 * 1024)

/* Until a file that could not be read for want of memory or descriptors is
 * tried again. */
#define DELIVER_RETRY_NS 200000000LL

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

/* Before all that goes out now. */
static void
erase_hint(struct sink *s)
{
	static const char erase[] = "\r\033[K";
	size_t len = s->out.len;

	if (buf_room(&s->out, sizeof(erase) - 1) == NULL)
		return;
	memmove(s->out.data + sizeof(erase) - 1, s->out.data, len);
	memcpy(s->out.data, erase, sizeof(erase) - 1);
	s->hinted = false;
}

static void deliver_on_closed(struct sink *s, int sys);

static void
flush(struct sink *s)
{
	int sys = 0;

	if (s->out.len > 0 && s->hinted)
		erase_hint(s);
	if (s->out.len > 0 && !s->dead)
		sys = write_out(s->config.fd, s->out.data, s->out.len);
	if (s->out.bad != XR_OK && s->unread_sys == 0)
		s->unread_sys = ENOMEM; /* what did not fit is lost */
	buf_clear(&s->out);
	__atomic_fetch_add(&s->delivered, s->taken, __ATOMIC_RELAXED);
	s->taken = 0;
	if (sys != 0)
		deliver_on_closed(s, sys);
}

static void
stop_waiting(struct sink *s, struct feed *f)
{
	if (f->due != 0)
		TAILQ_REMOVE(&s->waiting, f, waiting);
	f->due = 0;
}

/* Adds @f to the list, which is sorted by time. Nearly all feeds wait equally
 * long, so the search from the end is short. */
static void
start_waiting(struct sink *s, struct feed *f, int64_t due)
{
	struct feed *before;

	stop_waiting(s, f);
	f->due = due;
	before = TAILQ_LAST(&s->waiting, feed_list);
	while (before != NULL && before->due > due)
		before = TAILQ_PREV(before, feed_list, waiting);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&s->waiting, before, f, waiting);
	else
		TAILQ_INSERT_HEAD(&s->waiting, f, waiting);
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
			sink_watch(s, f->pipe, EPOLLIN, f->stream);
		TAILQ_INSERT_TAIL(&s->ready, f, list);
	}
}

/* Nothing can be written any more. No line is unfinished from now on: the
 * streams that wait for the end of one continue, and their bytes are dropped. */
static void
deliver_on_closed(struct sink *s, int sys)
{
	s->dead = true;
	line_give_up(&s->lines);
	buf_clear(&s->out);
	unpark_all(s);
	sink_note(s, NOTE_SINK_CLOSED, s->config.id, sys);
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
	sink_note(s, NOTE_EOF, f->stream, 0);
}

static enum line_end
end_of(const struct feed *f, struct span data, bool idle)
{
	bool all = f->pipe < 0 && data.len == feed_left(f);

	if (f->eof && (f->pipe >= 0 || all))
		return LINE_LAST;
	/* Of a pipe, @end and @at count the same bytes. */
	all = all || (f->pipe >= 0 && f->at + data.len == f->end);
	return idle && all ? LINE_IDLE : LINE_MORE;
}

/* Up to which byte of @data, behind @from, came at the same time; that is then
 * the time of the lines that end there. */
static size_t
same_time(struct sink *s, struct feed *f, struct span data, size_t from)
{
	struct feed_mark mark = { .end = f->at + data.len };
	bool known;

	pthread_mutex_lock(&s->grow_lock);
	known = f->pipe < 0 && feed_when(f, f->at + from, &mark);
	pthread_mutex_unlock(&s->grow_lock);
	s->lines.wall = known ? mark.wall : clock_wall();
	return mark.end - f->at < data.len ? (size_t)(mark.end - f->at) :
					     data.len;
}

static size_t
cut(struct sink *s, struct feed *f, struct span data, enum line_end end)
{
	return line_cut(&s->lines, &f->line, &s->config.prefix[f->stream], data,
		end);
}

static size_t
cut_timed(struct sink *s, struct feed *f, struct span data, enum line_end end)
{
	size_t used = 0, till = 0;

	do {
		till = same_time(s, f, data, till);
		used += cut(s, f, (struct span){ data.at + used, till - used },
			till == data.len ? end : LINE_MORE);
	} while (till < data.len);
	return used;
}

static size_t
put_bytes(struct sink *s, struct feed *f, struct span data, bool idle)
{
	if (s->dead || !s->config.shown[f->stream])
		return data.len;
	if (!s->config.lines) {
		buf_put(&s->out, data.at, data.len);
		if (s->config.modes != NULL)
			modes_follow(s->config.modes, data);
		if (data.len > 0)
			s->torn = data.at[data.len - 1] != '\n';
		return data.len;
	}
	return (s->config.times ? cut_timed : cut)(s, f, data,
		end_of(f, data, idle));
}

/* Chooses when @f has its next turn. */
static void
schedule(struct sink *s, struct feed *f, struct span data, size_t used)
{
	bool holds = s->lines.holder == &f->line;
	uint64_t left = f->pipe < 0 ? feed_left(f) : 0;
	bool more = left > data.len - used;

	stop_waiting(s, f);
	if (f->eof && used == data.len && left == 0) {
		end_feed(s, f);
		return;
	}
	if ((more && used > 0) || f->dropped)
		make_ready(s, f);
	else if (f->line.row_waits)
		start_waiting(s, f, f->line.row_ns);
	else if (holds || (used < data.len && !f->line.quiet))
		start_waiting(s, f, clock_now() + s->config.idle_ns);
}

/* Descriptors and memory are short for a while; anything else stays as it is,
 * and what was announced of @f and after it is never delivered. */
static void
cannot_read(struct sink *s, struct feed *f, int sys)
{
	f->unread = sys == EMFILE || sys == ENFILE || sys == ENOMEM;
	if (f->unread) {
		start_waiting(s, f, clock_now() + DELIVER_RETRY_NS);
		return;
	}
	stop_waiting(s, f);
	if (s->lines.holder == &f->line) {
		line_give_up(&s->lines);
		unpark_all(s);
	}
	end_feed(s, f);
	if (s->unread_sys == 0)
		sink_note(s, NOTE_UNREAD, f->stream, sys);
	s->unread_sys = sys;
}

/* What was removed before it was read cannot be shown, but is no backlog. */
static void
note_skipped(struct sink *s, struct feed *f)
{
	if (f->skipped == 0)
		return;
	if (s->lines.holder == &f->line)
		line_give_up(&s->lines);
	__atomic_fetch_add(&s->config.share->slot[f->stream].unseen, f->skipped,
		__ATOMIC_RELAXED);
	s->taken += f->skipped;
	f->skipped = 0;
}

static void
deliver_feed(struct sink *s, struct feed *f)
{
	bool idle = f->due != 0 && !f->unread && !f->line.row_waits &&
		s->known >= f->due;
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
	/* Nothing came for a while, but it has come by now. */
	if (f->pipe >= 0 && data.len > f->held_len)
		idle = false;
	note_skipped(s, f);
	s->lines.now = clock_now();
	if (s->lines.view != NULL && f->came != 0)
		view_came(s->lines.view, f->came);
	used = put_bytes(s, f, data, idle);
	if (!feed_took(f, data, used))
		used = data.len; /* out of memory: the rest of a line is lost */
	s->taken += used;
	schedule(s, f, data, used);
	if (held && s->lines.holder == NULL)
		unpark_all(s);
}

/* Nobody's line is to be continued by words of ours. */
static void
begin_line(struct sink *s)
{
	line_give_up(&s->lines);
	if (s->lines.view != NULL)
		view_break(s->lines.view);
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
		if (feed_drop(&s->feed[stream]))
			sink_note(s, NOTE_LEFT_OPEN, stream, 0);
		if (s->feed[stream].dropped)
			make_ready(s, &s->feed[stream]);
	}
}

/* Until when all that ranks wrote has been told: a slow disk may keep the mover
 * from it for as long as it likes. */
static int64_t
known(const struct sink *s)
{
	int64_t now = clock_now(); /* before what is known by then */
	int64_t swept = __atomic_load_n(&s->swept, __ATOMIC_SEQ_CST);

	return swept < now ? swept : now;
}

static void
begin_view(struct sink *s)
{
	bool lost;

	if (s->lines.view == NULL)
		return;
	pthread_mutex_lock(&s->say_lock);
	lost = s->lost;
	s->lost = false;
	pthread_mutex_unlock(&s->say_lock);
	if (lost)
		view_lost(s->lines.view);
	view_begin(s->lines.view, clock_now());
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

/* What the mover has for us. False, and to be woken from now on, if there is
 * nothing and nothing else is to be done: only then may the thread sleep. */
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
		f->came = f->new_came;
		if (f->unstored != NULL)
			unstored_take(f->unstored);
		/* It grew: its silence begins again. */
		stop_waiting(s, f);
		make_ready(s, f);
	}
	any = any || !TAILQ_EMPTY(&s->ready);
	s->asleep = !any;
	s->settled = s->lines.view == NULL && TAILQ_EMPTY(&s->waiting) &&
		TAILQ_EMPTY(&s->parked);
	pthread_mutex_unlock(&s->grow_lock);
	return any;
}

static void
deliver_ready(struct sink *s)
{
	struct feed_list now;
	struct feed *f;

	TAILQ_INIT(&now);
	TAILQ_CONCAT(&now, &s->ready, list);
	while ((f = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, f, list);
		f->listed = false;
		deliver_feed(s, f);
		if (s->out.len >= FLUSH_AT)
			flush(s);
	}
}

/* The same time. 0: it is over, but the mover has yet to tell what came until then, which
 * is an event. */
static int64_t
due_once_known(struct sink *s, int64_t due)
{
	if (due == 0 || s->known >= due || clock_now() < due)
		return due;
	__atomic_store_n(&s->asks, true, __ATOMIC_SEQ_CST);
	return known(s) >= due ? due : 0;
}

/* 0: nothing but an event is waited for. */
static int64_t
next_deadline(struct sink *s)
{
	const struct feed *f = TAILQ_FIRST(&s->waiting);
	int64_t due = f != NULL ? due_once_known(s, f->due) : 0, view = 0;

	if (s->lines.view != NULL && s->lines.holder == NULL)
		view = view_due(s->lines.view);
	if (view != 0 && view_holds(s->lines.view))
		view = due_once_known(s, view);
	return due == 0 || (view != 0 && view < due) ? view : due;
}

static int
next_timeout(struct sink *s)
{
	int64_t due = next_deadline(s), left;

	if (!TAILQ_EMPTY(&s->ready))
		return 0;
	if (due == 0)
		return -1;
	left = due - clock_now();
	return left <= 0 ? 0 : (int)(left / NS_PER_MS) + 1;
}

static void
ready_overdue(struct sink *s)
{
	struct feed *f, *next;

	if (TAILQ_EMPTY(&s->waiting))
		return;
	s->known = known(s);
	for (f = TAILQ_FIRST(&s->waiting); f != NULL; f = next) {
		next = TAILQ_NEXT(f, waiting);
		if (s->known < f->due)
			break;
		make_ready(s, f);
	}
}

static bool
nothing_left(const struct sink *s)
{
	return TAILQ_EMPTY(&s->ready) && TAILQ_EMPTY(&s->parked) &&
		TAILQ_EMPTY(&s->waiting);
}

/* The ranks are over: their terminal is as it was. */
static void
put_back(struct sink *s)
{
	char off[MODES_END_MAX];

	if (s->config.modes != NULL)
		buf_put(&s->out, off, modes_end(s->config.modes, off));
}

/* Nothing else is left to say; the loop waits and adds no more. */
static void
put_last(struct sink *s)
{
	if (s->lines.view != NULL)
		view_end(s->lines.view);
	put_back(s);
	pthread_mutex_lock(&s->say_lock);
	if (s->last.len > 0) {
		begin_line(s);
		buf_put(&s->out, s->last.data, s->last.len);
	}
	pthread_mutex_unlock(&s->say_lock);
	flush(s);
}

/* What came before @told has been taken, and is put unless a stream has more of it. */
static void
paint_view(struct sink *s, int64_t told)
{
	if (s->lines.view == NULL)
		return;
	if (TAILQ_EMPTY(&s->ready))
		view_known(s->lines.view, told);
	if (s->lines.holder == NULL)
		view_paint(s->lines.view);
}

/* @busy receives whether the thread may not sleep yet. */
static bool
turn(struct sink *s, bool *busy)
{
	int64_t told = known(s);
	bool finishing;

	begin_view(s);
	finishing = take_words(s);
	ready_overdue(s);
	*busy = take_grown(s) && s->config.dir >= 0;
	deliver_ready(s);
	paint_view(s, told);
	flush(s);
	return finishing;
}

static void
wait_for_events(struct sink *s)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(s->epoll, events, BATCH, next_timeout(s));

	/* Refused: without a pause this thread would keep a processor busy. */
	if (n == -1 && errno != EINTR)
		poll(NULL, 0, REFUSED_MS);
	for (int i = 0; i < n; i++)
		if (events[i].data.u64 != SINK_WAKE)
			make_ready(s, &s->feed[events[i].data.u64]);
}

void *
deliver_run(void *sink)
{
	struct sink *s = sink;
	bool finishing, busy;

	for (;;) {
		finishing = turn(s, &busy);
		if (busy)
			continue;
		if (finishing && nothing_left(s))
			break;
		wait_for_events(s);
	}
	put_last(s);
	sink_note(s, NOTE_SINK_DONE, s->config.id, s->unread_sys);
	return NULL;
}
