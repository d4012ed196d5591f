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

	while (n == -1) {
		uint64_t left = f->end - f->at;

		f->piece.offset = f->at;
		n = piece_read(f->share, f->stream, &f->piece, scratch,
			left < FEED_CHUNK ? (size_t)left : FEED_CHUNK);
		/* At the end of one whose follower is gone, too. */
		if (n == 0 && f->at < f->end && skip_removed(f))
			n = -1;
		else if (n == -1 && (errno != ENOENT || !skip_removed(f)))
			break;
	}
	return n;
}

static ssize_t
read_file(const struct feed *f, int dir, char *scratch, size_t want)
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
		n = pread(fd, scratch, want, (off_t)f->at);
	} while (n < 0 && errno == EINTR);
	if (fd != f->file)
		fd_close(fd);
	return n;
}

static bool
peek_file(struct feed *f, int dir, char *scratch, struct span *out)
{
	uint64_t left = f->end - f->at;
	size_t want = left < FEED_CHUNK ? (size_t)left : FEED_CHUNK;
	ssize_t n;

	/* Its end alone is news, too. */
	*out = (struct span){ .at = scratch };
	if (want == 0)
		return true;
	if (fault(FAULT_SINK_READ, f->stream / RAW_STREAMS) != 0)
		return false;
	n = f->share != NULL ? read_pieces(f, scratch) :
			       read_file(f, dir, scratch, want);
	if (n == 0 && f->at == f->end)
		return true; /* the rest of it was removed */
	if (n == 0)
		errno = ENODATA; /* somebody cut it short */
	if (n <= 0)
		return false;
	out->len = (size_t)n;
	return true;
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
	return peek_file(f, dir, scratch, out);
}

void
feed_drop(struct feed *f)
{
	int waiting = 0;

	if (f->pipe < 0 || f->dropped)
		return;
	ioctl(f->pipe, FIONREAD, &waiting);
	f->dropped = true;
	f->left = (uint32_t)waiting;
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
	fd_close(f->pipe);
}
