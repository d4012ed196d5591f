/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - see feed.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/feed.h"
#include "launcher/log/raw.h"

struct feed_room {
	char *at;
	size_t len;
};

/* To the first piece that is there; false if it is where it was. */
static bool
skip_removed(struct feed *f)
{
	uint64_t next = piece_after(f->share, f->stream, f->at);

	if (next > f->end)
		return false;
	f->skipped += next - f->at;
	f->at = f->piece.start = next;
	return true;
}

static ssize_t
read_pieces(struct feed *f, char *scratch)
{
	ssize_t n = -1;

	/* Bytes that were delivered before they were stored: no border was met. */
	if (f->piece.start == PIECE_NONE)
		f->piece.start = piece_of(f->share, f->stream, f->at);
	while (n == -1) {
		uint64_t left = f->end - f->at;

		f->piece.offset = f->at;
		n = piece_read(f->share, f->stream, &f->piece, scratch,
			left < FEED_CHUNK ? (size_t)left : FEED_CHUNK);
		/* At the end of one whose follower is gone, too. */
		if (n == 0 && skip_removed(f))
			n = -1;
		else if (n == -1 && (errno != ENOENT || !skip_removed(f)))
			break;
	}
	return n;
}

/* At the offset @at of the stream. */
static ssize_t
read_file(const struct feed *f, int dir, uint64_t at, struct feed_room to)
{
	int fd = f->file;
	char name[64];
	ssize_t n;

	if (fd < 0)
		fd = openat(dir, raw_name(f->named, name, sizeof(name)),
			O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	do {
		n = pread(fd, to.at, to.len, (off_t)at);
	} while (n < 0 && errno == EINTR);
	if (fd != f->file)
		fd_close(fd);
	return n;
}

static bool
peek_file(struct feed *f, int dir, char *scratch, struct span *out)
{
	uint64_t left = f->at < f->end ? f->end - f->at : 0;
	size_t want = left < FEED_CHUNK ? (size_t)left : FEED_CHUNK;
	ssize_t n;

	/* Its end alone is news, too. */
	*out = (struct span){ .at = scratch };
	if (want == 0)
		return true;
	if (fault(FAULT_SINK_READ, f->stream / RAW_STREAMS) != 0)
		return false;
	n = f->share != NULL ?
		read_pieces(f, scratch) :
		read_file(f, dir, f->at, (struct feed_room){ scratch, want });
	if (n == 0 && f->at == f->end)
		return true; /* the rest of it was removed */
	if (n == 0)
		errno = ENODATA; /* somebody cut it short */
	if (n <= 0)
		return false;
	out->len = (size_t)n;
	return true;
}

uint64_t
feed_left(const struct feed *f)
{
	const struct unstored *u = f->unstored;
	uint64_t end = f->end;

	if (u == NULL || u->data.len == 0)
		return f->at < end ? end - f->at : 0;
	if (!u->dropped && u->at + u->data.len > end)
		end = u->at + u->data.len;
	return (f->at < end ? end - f->at : 0) + (u->dropped ? u->data.len : 0);
}

/* --- a file and bytes that it lacks --------------------------------------- */

/* Where feed_peek() is. */
struct feed_cursor {
	uint64_t at;     /* offset in the stream */
	size_t unstored; /* dropped bytes that were passed */
};

/* From the file, which may be in pieces. Returns -1 with EAGAIN if bytes were
 * removed, and the feed continues behind them; ENODATA as feed_peek(). */
static ssize_t
feed_read_stored(struct feed *f, int dir, uint64_t at, struct feed_room to)
{
	struct piece_at piece = { .offset = at, .border = PIECE_NONE };
	ssize_t n;

	if (f->share == NULL) {
		n = read_file(f, dir, at, to);
	} else {
		piece.start = piece_of(f->share, f->stream, at);
		n = piece_read(f->share, f->stream, &piece, to.at, to.len);
	}
	if (n == 0)
		errno = ENODATA;
	if (n > 0 || (errno != ENODATA && errno != ENOENT))
		return n;
	if (f->share != NULL && at == f->at && skip_removed(f))
		errno = EAGAIN;
	return -1;
}

/* The next bytes of memory, if they are next. */
static size_t
feed_copy_unstored(const struct unstored *u, struct feed_cursor *c,
	struct feed_room to)
{
	/* Beyond all of them if c->at is before them: the number wraps. */
	uint64_t from = u->dropped ? c->unstored : c->at - u->at;

	if (from >= u->data.len)
		return 0;
	if (to.len > u->data.len - from)
		to.len = (size_t)(u->data.len - from);
	memcpy(to.at, u->data.data + from, to.len);
	if (u->dropped)
		c->unstored += to.len;
	else
		c->at += to.len;
	return to.len;
}

/* Dropped bytes come before the byte of the file at their offset; pending bytes
 * behind its end. Returns the bytes, 0 if there are none, -1 with errno. */
static ssize_t
feed_read_part(struct feed *f, int dir, struct feed_cursor *c,
	struct feed_room to)
{
	const struct unstored *u = f->unstored;
	bool dropped = u->dropped && c->unstored < u->data.len;
	uint64_t limit = f->end;
	ssize_t n;

	if (dropped && u->at < limit)
		limit = u->at;
	if (c->at >= limit)
		return (ssize_t)feed_copy_unstored(u, c, to);
	if (to.len > limit - c->at)
		to.len = (size_t)(limit - c->at);
	n = feed_read_stored(f, dir, c->at, to);
	c->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

static bool
feed_peek_unstored(struct feed *f, int dir, char *scratch, struct span *out)
{
	struct feed_cursor c = { .at = f->at };
	size_t len = 0;
	ssize_t n = 1;

	while (len < FEED_CHUNK && n > 0) {
		n = feed_read_part(f, dir, &c,
			(struct feed_room){ scratch + len, FEED_CHUNK - len });
		len += n > 0 ? (size_t)n : 0;
		if (n == -1 && errno == EAGAIN && len == 0) {
			c.at = f->at;
			n = 1;
		}
	}
	*out = (struct span){ .at = scratch, .len = len };
	return n >= 0 || len > 0;
}

/* @used bytes of what feed_peek_unstored() gave. */
static void
feed_took_unstored(struct feed *f, size_t used)
{
	struct unstored *u = f->unstored;
	uint64_t before = u->at > f->at ? u->at - f->at : 0, end;
	size_t n;

	/* A border that was met before is of an older piece. */
	f->piece.start = f->piece.border = PIECE_NONE;
	if (u->dropped) {
		n = used < before ? used : (size_t)before;
		f->at += n;
		used -= n;
		n = used < u->data.len ? used : u->data.len;
		if (n > 0)
			unstored_delivered(u, n);
		f->at += used - n;
		return;
	}
	f->at += used;
	end = u->at + u->data.len;
	if (f->at > u->at)
		unstored_delivered(u,
			(size_t)((f->at < end ? f->at : end) - u->at));
}

/* Keep the last bytes; the account shows them if the rank fails. */
static void
remember(struct feed *f, const char *data, size_t len)
{
	size_t keep;

	if (f->tail == NULL)
		f->tail = malloc(FEED_TAIL);
	if (f->tail == NULL || len == 0)
		return;
	if (len >= FEED_TAIL) {
		memcpy(f->tail, data + len - FEED_TAIL, FEED_TAIL);
		f->tail_len = FEED_TAIL;
		return;
	}
	keep = FEED_TAIL - len < f->tail_len ? FEED_TAIL - len : f->tail_len;
	memmove(f->tail, f->tail + f->tail_len - keep, keep);
	memcpy(f->tail + keep, data, len);
	f->tail_len = (uint32_t)(keep + len);
}

/* Our end of the pipe does not block; its writers' ends do. */
static bool
peek_pipe(struct feed *f, char *scratch, struct span *out)
{
	size_t want = FEED_CHUNK;
	ssize_t n = 0;

	if (f->dropped && f->left < want)
		want = f->left;
	if (f->held_len > 0)
		memcpy(scratch, f->held, f->held_len);
	if (!f->eof) {
		do {
			n = read(f->pipe, scratch + f->held_len, want);
		} while (n < 0 && errno == EINTR);
		if (n < 0 && errno == EIO)
			n = 0; /* a terminal that nobody has open */
		if (n < 0 && errno != EAGAIN)
			return false;
		f->eof = n == 0 || (n < 0 && f->dropped);
		n = n < 0 ? 0 : n;
		if (f->dropped)
			f->left -= (uint32_t)n;
		__atomic_store_n(&f->end, f->end + (uint64_t)n,
			__ATOMIC_RELAXED);
		remember(f, scratch + f->held_len, (size_t)n);
	}
	*out = (struct span){ .at = scratch, .len = f->held_len + (size_t)n };
	return true;
}

bool
feed_peek(struct feed *f, int dir, char *scratch, struct span *out)
{
	if (f->pipe >= 0)
		return peek_pipe(f, scratch, out);
	if (f->unstored != NULL && f->unstored->data.len > 0)
		return feed_peek_unstored(f, dir, scratch, out);
	return peek_file(f, dir, scratch, out);
}

bool
feed_drop(struct feed *f)
{
	int waiting = FEED_TTY_MAX;

	if (f->pipe < 0 || f->dropped || !fd_has_writer(f->pipe))
		return false;
	if (!isatty(f->pipe))
		ioctl(f->pipe, FIONREAD, &waiting);
	f->dropped = true;
	f->left = (uint32_t)waiting;
	return true;
}

/* Twice as coarse: a line is never told to have come too soon. */
static void
thin_out(struct feed *f)
{
	for (uint32_t i = 0; i < FEED_MARKS / 2; i++)
		f->mark[i] = f->mark[2 * i + 1];
	f->marks = FEED_MARKS / 2;
	f->step = (f->mark[f->marks - 1].wall - f->mark[0].wall) / f->marks;
}

void
feed_mark(struct feed *f, uint64_t end, int64_t wall)
{
	struct feed_mark *last;

	if (f->mark == NULL)
		f->mark = malloc(FEED_MARKS * sizeof(*f->mark));
	if (f->mark == NULL)
		return;
	last = f->marks == 0 ? NULL : &f->mark[f->marks - 1];
	if (last != NULL && end <= last->end)
		return;
	if (last != NULL && wall / NS_PER_MS == last->wall / NS_PER_MS) {
		last->end = end;
		return;
	}
	if (f->marks > 1 && last->wall - last[-1].wall < f->step)
		f->marks--;
	if (f->marks == FEED_MARKS)
		thin_out(f);
	f->mark[f->marks++] = (struct feed_mark){ end, wall };
}

bool
feed_when(struct feed *f, uint64_t at, struct feed_mark *out)
{
	uint32_t over = 0, i;

	while (over < f->marks && f->mark[over].end <= f->at)
		over++;
	if (over > 0)
		memmove(f->mark, f->mark + over,
			(f->marks - over) * sizeof(*f->mark));
	f->marks -= over;
	if (f->marks == 0)
		f->step = 0;
	for (i = 0; i < f->marks && f->mark[i].end <= at; i++)
		;
	if (i == f->marks)
		return false;
	*out = f->mark[i];
	return true;
}

bool
feed_took(struct feed *f, struct span data, size_t used)
{
	size_t rest = data.len - used;

	if (f->unstored != NULL && f->unstored->data.len > 0) {
		feed_took_unstored(f, used);
		return true;
	}
	f->at += used;
	if (f->share != NULL)
		piece_pass(&f->piece, used);
	if (f->pipe < 0)
		return true;
	if (rest > 0 && f->held == NULL)
		f->held = malloc(LINE_HOLD);
	if (rest > LINE_HOLD || (rest > 0 && f->held == NULL))
		return false;
	if (rest > 0)
		memcpy(f->held, data.at + used, rest);
	f->held_len = (uint32_t)rest;
	return true;
}

void
feed_fini(struct feed *f)
{
	free(f->held);
	free(f->tail);
	free(f->mark);
	unstored_free(f->unstored);
	fd_close(f->pipe);
}
