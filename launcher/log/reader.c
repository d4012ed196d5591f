/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - see reader.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/log/reader.h"

#define CHUNK      (64 * 1024) /* a read */
#define CHUNK_BACK (16 * 1024) /* often enough for what is asked */

void
reader_init(struct reader *r, int dir, uint32_t stream)
{
	*r = (struct reader){
		.stream = stream,
		.limit = UINT64_MAX,
		.since = INT64_MIN,
		.until = INT64_MAX,
		.when = INT64_MIN,
	};
	track_init(&r->track, dir, stream);
}

void
reader_fini(struct reader *r)
{
	track_fini(&r->track);
	free(r->data);
	r->data = NULL;
}

void
reader_go(struct reader *r, uint64_t offset)
{
	r->offset = offset;
	r->at = r->len = r->searched = 0;
}

/* --- forward -------------------------------------------------------------- */

/* Room behind what is not used yet; a line that is longer than all of it makes
 * it twice as large. */
static void
make_room(struct reader *r)
{
	size_t kept = r->len - r->at;

	if (r->at > 0)
		memmove(r->data, r->data + r->at, kept);
	r->at = 0;
	r->len = kept;
	if (r->cap - r->len >= CHUNK)
		return;
	r->cap = r->cap == 0 ? CHUNK : 2 * r->cap;
	r->data = xrealloc(r->data, r->cap);
}

/* More of the stream; false: there is none now. @torn: what is held goes on with
 * bytes that were removed. */
static bool
fill(struct reader *r, bool *torn)
{
	uint64_t end = r->offset + (r->len - r->at), at = end;
	size_t want, n;

	*torn = false;
	if (end >= r->limit || !track_more(&r->track, &at))
		return false;
	if (at > end) {
		*torn = r->len > r->at;
		if (*torn)
			return false;
		r->gone += at - end;
		r->offset = at;
	}
	if (at >= r->limit)
		return false;
	make_room(r);
	want = r->cap - r->len;
	if (want > r->limit - at)
		want = (size_t)(r->limit - at);
	n = track_read(&r->track, at, r->data + r->len, want);
	r->len += n;
	return n > 0;
}

/* The end of the first line that is held; 0: none is whole. */
static size_t
first_line(struct reader *r)
{
	const char *from = r->data + r->at + r->searched, *nl;
	size_t left = r->len - r->at - r->searched;

	nl = left == 0 ? NULL : memchr(from, '\n', left);
	if (nl == NULL) {
		r->searched += left;
		return 0;
	}
	return (size_t)(nl - r->data) - r->at + 1;
}

/* The run is all lines that came with the first, which has @len bytes. */
static void
set_run(struct reader *r, size_t len)
{
	uint64_t end;
	int64_t when = stamps_when(&r->track.stamps, r->offset + len - 1, &end);
	const char *from = r->data + r->at, *nl;
	size_t most = r->len - r->at;

	if (when > r->when)
		r->when = when;
	if (end - r->offset < most)
		most = (size_t)(end - r->offset);
	nl = most > len ? memrchr(from + len, '\n', most - len) : NULL;
	r->run = (struct span){ from,
		nl == NULL ? len : (size_t)(nl + 1 - from) };
}

/* The next run, whenever it came. */
static bool
find_run(struct reader *r, bool last)
{
	bool torn = false;
	size_t len;

	do {
		len = first_line(r);
	} while (len == 0 && fill(r, &torn));
	if (len == 0 && (last || torn))
		len = r->len - r->at;
	if (len > 0)
		set_run(r, len);
	return len > 0;
}

bool
reader_next(struct reader *r, bool last)
{
	while (!r->over && find_run(r, last)) {
		r->over = r->when > r->until;
		if (!r->over && r->when >= r->since)
			return true;
		reader_took(r);
	}
	return false;
}

void
reader_took(struct reader *r)
{
	r->at += r->run.len;
	r->offset += r->run.len;
	r->searched = 0;
	r->run.len = 0;
}

struct span
reader_rest(struct reader *r, int64_t *when)
{
	struct span rest = { r->data + r->at, r->len - r->at };
	uint64_t end;

	if (r->over || r->run.len > 0 || rest.len == 0)
		return (struct span){ 0 };
	*when = stamps_when(&r->track.stamps, r->offset + rest.len - 1, &end);
	return rest;
}

void
reader_skip(struct reader *r, size_t len)
{
	r->at += len;
	r->offset += len;
	r->searched -= len < r->searched ? len : r->searched;
}

/* --- back ----------------------------------------------------------------- */

/* Room for @want bytes before those that are held, twice as much as there was. */
static void
make_room_before(struct back *b, size_t want)
{
	size_t held = b->end - b->begin;
	size_t cap = held + want <= b->cap / 2 ? b->cap : 2 * (held + want);

	if (b->begin >= want)
		return;
	if (cap > b->cap)
		b->data = xrealloc(b->data, cap);
	memmove(b->data + cap - held, b->data + b->begin, held);
	b->begin = cap - held;
	b->end = b->cap = cap;
}

/* @len bytes that end at @end; false: somebody cut them short. */
static bool
read_before(struct back *b, char *end, size_t len)
{
	size_t n;

	for (size_t got = 0; got < len; got += n) {
		n = track_read(b->track, b->offset - len + got, end - len + got,
			len - got);
		if (n == 0)
			return false;
	}
	return true;
}

/* The bytes before those that are held; false: there are none, any more. */
static bool
read_back(struct back *b)
{
	uint64_t at = b->offset - 1;
	size_t want = CHUNK_BACK;

	if (b->offset <= b->first)
		return false;
	make_room_before(b, want);
	if (!track_more(b->track, &at) || at >= b->offset) {
		b->first = b->offset;
		return false;
	}
	if (b->offset - b->track->start < want)
		want = (size_t)(b->offset - b->track->start);
	if (!read_before(b, b->data + b->begin, want)) {
		b->first = b->offset;
		return false;
	}
	b->begin -= want;
	b->offset -= want;
	return true;
}

/* The offset behind the last newline before offset @end. */
static uint64_t
line_start(struct back *b, uint64_t end)
{
	const char *nl;

	do {
		if (end <= b->offset)
			continue;
		nl = memrchr(b->data + b->begin, '\n',
			(size_t)(end - b->offset));
		if (nl != NULL)
			return b->offset +
				(uint64_t)(nl + 1 - (b->data + b->begin));
		end = b->offset;
	} while (read_back(b));
	return b->offset;
}

void
back_init(struct back *b, struct track *track, uint64_t offset, bool whole)
{
	*b = (struct back){
		.track = track,
		.first = track_first(track),
		.offset = offset,
		.at = offset,
		.when = INT64_MAX,
	};
	if (!whole)
		b->at = line_start(b, offset);
}

void
back_fini(struct back *b)
{
	free(b->data);
	b->data = NULL;
}

/* When the byte before @offset came; false: it is not there any more. */
static bool
when_before(struct back *b, uint64_t offset)
{
	uint64_t last = offset - 1, end;
	int64_t when;

	if (!track_more(b->track, &last) || last != offset - 1)
		return false;
	when = stamps_when(&b->track->stamps, last, &end);
	if (when < b->when)
		b->when = when;
	return true;
}

bool
back_line(struct back *b)
{
	uint64_t end = b->at;

	if (end <= b->first || !when_before(b, end))
		return false;
	b->end = b->begin + (size_t)(end - b->offset);
	b->at = line_start(b, end - 1);
	b->line = (struct span){
		b->data + b->begin + (b->at - b->offset),
		(size_t)(end - b->at),
	};
	return true;
}
