/* SPDX-License-Identifier: Apache-2.0 */
/* burst.c - see burst.h. */
#include <stdlib.h>
#include <string.h>

#include "launcher/log/burst.h"

#define KEEP 8192 /* memory of a line that is kept for the next */

bool
burst_init(struct burst *b, uint32_t first, uint32_t ranks, uint32_t streams)
{
	*b = (struct burst){
		.first = first,
		.ranks = ranks,
		.streams = streams,
	};
	b->said = calloc((size_t)ranks * streams, sizeof(*b->said));
	return b->said != NULL;
}

void
burst_fini(struct burst *b)
{
	for (uint32_t i = 0; i < BURST_LINES; i++) {
		buf_fini(&b->line[i].text);
		ranks_fini(&b->line[i].set);
	}
	free(b->said);
	b->said = NULL;
}

struct burst_line *
burst_at(struct burst *b, uint32_t i)
{
	return &b->line[(b->head + i) % BURST_LINES];
}

/* The set of one is not written down before a second comes. */
static bool
join(struct burst *b, struct burst_line *l, uint32_t stream)
{
	if (l->set.word == NULL &&
		ranks_init(&l->set, b->first + b->ranks) != XR_OK)
		return false;
	if (l->members == 1)
		ranks_add(&l->set, b->first + l->stream / b->streams);
	ranks_add(&l->set, b->first + stream / b->streams);
	l->members++;
	l->wider = l->out;
	b->said[stream] = l->number;
	return true;
}

static bool
fits(const struct burst *b, const struct burst_line *l, uint32_t stream,
	struct span text)
{
	return l->number > b->said[stream] && l->text.len == text.len &&
		l->stream % b->streams == stream % b->streams &&
		memcmp(buf_text(&l->text), text.at, text.len) == 0;
}

bool
burst_join(struct burst *b, uint32_t stream, struct span text, int64_t now)
{
	for (uint32_t i = 0; i < b->count; i++) {
		struct burst_line *l = burst_at(b, i);

		if (now - l->ns < BURST_NS && l->ns - now < BURST_NS &&
			fits(b, l, stream, text))
			return join(b, l, stream);
	}
	return false;
}

/* The set's memory is kept for the next line that stands here. */
static void
forget(struct burst_line *l)
{
	struct burst_line kept = { .text = l->text, .set = l->set };

	buf_clear(&kept.text);
	if (kept.text.cap > KEEP)
		buf_fini(&kept.text);
	if (l->members > 1)
		memset(kept.set.word, 0,
			((size_t)kept.set.size + 63) / 64 *
				sizeof(*kept.set.word));
	*l = kept;
}

struct burst_line *
burst_add(struct burst *b, uint32_t stream, struct buf *text, int64_t now)
{
	struct burst_line *l = burst_at(b, b->count++);
	struct buf empty = l->text;

	l->text = *text;
	*text = empty;
	l->number = ++b->last;
	l->ns = now;
	l->stream = stream;
	l->members = 1;
	b->said[stream] = l->number;
	return l;
}

void
burst_drop(struct burst *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		forget(burst_at(b, i));
	b->head = (b->head + count) % BURST_LINES;
	b->count -= count;
}
