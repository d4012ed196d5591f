/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - see line.h. */
#include <string.h>

#include "launcher/log/escape.h"
#include "launcher/log/line.h"

static void
put_text(struct line_sink *sink, struct line_stream *st, const char *at,
	size_t len)
{
	struct span text = { .at = at, .len = len };

	if (sink->filter)
		escape_filter(sink->out, text, &st->escape, &st->colored);
	else
		buf_put(sink->out, at, len);
}

/* The newline, and before it the end of a colour that would run on. */
static void
put_newline(struct line_sink *sink, struct line_stream *st)
{
	escape_end(sink->out, &st->escape);
	if (st->colored)
		buf_put_text(sink->out, "\033[0m");
	st->colored = false;
	buf_put_char(sink->out, '\n');
}

static void
put_prefix(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix)
{
	buf_put(sink->out, prefix->text, prefix->len);
	if (prefix->time != 0 && sink->out->bad == XR_OK)
		memcpy(sink->out->data + sink->out->len - prefix->len +
				prefix->time - PREFIX_TIME,
			prefix_clock(&sink->clock, sink->wall), PREFIX_TIME);
	if (st->resumed)
		buf_put_text(sink->out, "…");
	st->resumed = false;
}

/* A whole line, its newline included: prefix and text in one go. */
static void
put_line(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span line)
{
	struct buf *out = sink->out;

	if (sink->filter || sink->clocked || st->resumed ||
		out->cap - out->len < line.len + PREFIX_MAX + 1) {
		put_prefix(sink, st, prefix);
		put_text(sink, st, line.at, line.len - 1);
		put_newline(sink, st);
		return;
	}
	/* The common case: one copy of fixed length, one of the line. */
	memcpy(out->data + out->len, prefix->text, PREFIX_MAX);
	memcpy(out->data + out->len + prefix->len, line.at, line.len);
	out->len += prefix->len + line.len;
	out->data[out->len] = '\0';
}

/* The rest of a line whose beginning is out already. */
static size_t
put_held(struct line_sink *sink, struct line_stream *st, struct span data)
{
	const char *nl = memchr(data.at, '\n', data.len);
	size_t len = nl == NULL ? data.len : (size_t)(nl - data.at);

	put_text(sink, st, data.at, len);
	if (nl == NULL)
		return len;
	put_newline(sink, st);
	sink->holder = NULL;
	return len + 1;
}

static size_t
put_lines(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span data)
{
	const char *p = data.at, *end = data.at + data.len, *nl;

	while (p < end) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL)
			break;
		put_line(sink, st, prefix,
			(struct span){ p, (size_t)(nl + 1 - p) });
		p = nl + 1;
	}
	return (size_t)(p - data.at);
}

size_t
line_cut(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span data, enum line_end end)
{
	size_t used = 0;

	if (sink->holder != NULL && sink->holder != st)
		return 0;
	if (sink->holder == st)
		used = put_held(sink, st, data);
	if (sink->holder == NULL)
		used += put_lines(sink, st, prefix,
			(struct span){ data.at + used, data.len - used });
	if (used < data.len &&
		(end != LINE_MORE || data.len - used >= LINE_HOLD)) {
		put_prefix(sink, st, prefix);
		put_text(sink, st, data.at + used, data.len - used);
		sink->holder = st;
		used = data.len;
	}
	if (end != LINE_MORE && sink->holder == st) {
		line_give_up(sink);
		st->resumed = end == LINE_IDLE;
	}
	return used;
}

void
line_give_up(struct line_sink *sink)
{
	if (sink->holder == NULL)
		return;
	put_newline(sink, sink->holder);
	sink->holder->resumed = true;
	sink->holder = NULL;
}
