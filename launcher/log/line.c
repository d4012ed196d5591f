/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - see line.h. */
#include <string.h>

#include "launcher/log/escape.h"
#include "launcher/log/line.h"
#include "launcher/log/live.h"
#include "launcher/log/view.h"

static void
put_text(struct line_sink *sink, struct line_stream *st, const char *at,
	size_t len)
{
	struct span text = { .at = at, .len = len };

	if (sink->filter)
		escape_filter(sink->out, text, sink->narrow, &st->escape,
			&st->colored);
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

/* --- with a view ---------------------------------------------------------- */

/* What is visible of @line. In a pipe, "\r\n" ends a line like any other. */
static struct span
seen_of(const struct line_sink *sink, struct span line)
{
	struct span seen = live_seen(line);

	return sink->filter || (sink->rows && seen.at != line.at) ? seen : line;
}

/* A whole line, without its newline. */
static void
view_whole(struct line_sink *sink, struct line_stream *st, struct span line)
{
	struct span seen = seen_of(sink, line);

	if (seen.at != line.at)
		st->resumed = false;
	if (seen.len > 0 || !st->shown)
		view_line(sink->view, st, seen, sink->wall);
	st->carriage = st->shown = st->quiet = st->resumed = false;
}

static size_t
view_lines(struct line_sink *sink, struct line_stream *st, struct span data)
{
	size_t at = 0, len;
	const char *nl;

	while (at < data.len) {
		nl = memchr(data.at + at, '\n', data.len - at);
		if (nl == NULL)
			break;
		len = (size_t)(nl - data.at) - at;
		view_whole(sink, st, (struct span){ data.at + at, len });
		at += len + 1;
	}
	return at;
}

/* Where @at, at its newline or carriage return, a held line is at its end; or
 * SIZE_MAX: what follows the carriage return decides, and is not there yet. */
static size_t
held_end(struct line_stream *st, struct span data, size_t at, bool last)
{
	bool carriage = false;
	size_t end = at + 1;

	if (data.at[at] == '\r') {
		if (end == data.len && !last)
			return SIZE_MAX;
		carriage = end == data.len || data.at[end] != '\n';
		end += carriage ? 0 : 1;
	}
	st->carriage = st->shown = carriage;
	return end;
}

/* As put_held(). What is written over stays as far as it is out. */
static size_t
view_held(struct line_sink *sink, struct line_stream *st, struct span data,
	bool last)
{
	size_t len = 0, end;

	while (len < data.len && data.at[len] != '\n' &&
		(data.at[len] != '\r' || !sink->filter))
		len++;
	put_text(sink, st, data.at, len);
	if (len == data.len)
		return len;
	end = held_end(st, data, len, last);
	if (end == SIZE_MAX)
		return len;
	put_newline(sink, st);
	sink->holder = NULL;
	return end;
}

/* The unfinished line is shown as it stands, where that is possible and due.
 * Gives how much of it is over with. */
static size_t
view_state(struct line_sink *sink, struct line_stream *st, struct span seen,
	enum line_end end)
{
	bool moves = view_moves(sink->view);

	if (moves && (st->carriage || st->live != NULL || end == LINE_IDLE)) {
		view_live(sink->view, st, seen, sink->wall);
		st->quiet = true;
		return 0;
	}
	if (moves || (!st->carriage && end == LINE_MORE))
		return 0;
	st->quiet = true;
	if (st->carriage && !view_sample(sink->view, st))
		return 0;
	view_line(sink->view, st, seen, sink->wall);
	st->resumed = true;
	st->shown = st->carriage;
	return seen.len;
}

/* Carriage returns without end behind a state: it may be their last, so it is
 * shown as it is. One of them stays, for what follows it writes over it. */
static size_t
view_returns(struct line_sink *sink, struct line_stream *st, struct span seen,
	struct span rest)
{
	if (seen.len > 0) {
		view_line(sink->view, st, seen, sink->wall);
		st->shown = true;
	}
	st->quiet = true;
	return rest.len - 1;
}

/* What stands behind the last newline; gives how much of it is over with. */
static size_t
view_rest(struct line_sink *sink, struct line_stream *st, struct span rest,
	enum line_end end)
{
	struct span seen = seen_of(sink, rest);
	size_t over = seen.len > 0 ? (size_t)(seen.at - rest.at) : 0;

	st->quiet = false;
	st->carriage = st->carriage || seen.len < rest.len;
	if (end == LINE_LAST) {
		if (seen.len > 0)
			view_whole(sink, st, rest);
		return rest.len;
	}
	if (over > 0)
		st->resumed = st->shown = false;
	if (seen.len >= LINE_HOLD)
		return over;
	if (seen.len == 0 || rest.len - over >= LINE_HOLD)
		return view_returns(sink, st, seen, rest);
	return over + view_state(sink, st, seen, end);
}

/* --- without -------------------------------------------------------------- */

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
	st->carriage = st->shown = false;
	sink->holder = NULL;
	return len + 1;
}

/* A whole line, its newline included, that may need more than copying. */
static void
put_line(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span line)
{
	put_prefix(sink, st, prefix);
	put_text(sink, st, line.at, line.len - 1);
	put_newline(sink, st);
}

/* The loop that counts: a line is one copy of fixed length, and one of it. */
static size_t
put_lines(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span data)
{
	const char *p = data.at, *end = data.at + data.len, *nl;
	bool plain = !sink->filter && !sink->clocked;
	struct buf *out = sink->out;
	struct span line;

	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL)
			break;
		line = (struct span){ p, (size_t)(nl + 1 - p) };
		if (!plain || st->resumed ||
			out->cap - out->len < line.len + PREFIX_MAX + 1) {
			put_line(sink, st, prefix, line);
			continue;
		}
		memcpy(out->data + out->len, prefix->text, PREFIX_MAX);
		memcpy(out->data + out->len + prefix->len, line.at, line.len);
		out->len += prefix->len + line.len;
		out->data[out->len] = '\0';
	}
	return (size_t)(p - data.at);
}

static struct span
behind(struct span data, size_t used)
{
	return (struct span){ data.at + used, data.len - used };
}

/* --- rows ----------------------------------------------------------------- */

static void
row_put(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span state)
{
	put_prefix(sink, st, prefix);
	put_text(sink, st, state.at, state.len);
	put_newline(sink, st);
}

/* A whole line, without its newline. */
static void
row_whole(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span line)
{
	struct span seen = live_seen(line);

	if (seen.at != line.at)
		st->resumed = false;
	else if (!st->carriage)
		seen = line;
	if (seen.len > 0 || !st->shown)
		row_put(sink, st, prefix, seen);
	st->carriage = st->shown = st->row_waits = st->resumed = false;
	st->row_ns = 0;
}

/* Returns true if it is time to print a state. The first one of a line waits, so
 * progress that is short is a single line. */
static bool
row_is_due(const struct line_sink *sink, struct line_stream *st)
{
	if (st->row_ns == 0)
		st->row_ns = sink->now + LINE_ROW_NS;
	if (sink->now < st->row_ns)
		return false;
	st->row_ns = sink->now + LINE_ROW_NS;
	return true;
}

/* The bytes behind the last newline. Returns how many of them are done with. */
static size_t
row_rest(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span rest, enum line_end end)
{
	struct span seen = live_seen(rest);
	size_t over = (size_t)(seen.at - rest.at);
	bool returns = over + seen.len < rest.len;

	st->row_waits = false;
	if (over == 0 && !st->carriage && !returns)
		return 0;
	if (end == LINE_LAST) {
		row_whole(sink, st, prefix, rest);
		return rest.len;
	}
	if (over > 0) {
		st->resumed = st->shown = false;
		st->carriage = true;
	}
	if (seen.len == 0 || seen.len >= LINE_HOLD) {
		st->carriage = true;
		return seen.len == 0 ? rest.len : over;
	}
	st->row_waits = rest.len - over < LINE_HOLD && !row_is_due(sink, st);
	if (st->row_waits)
		return over;
	row_put(sink, st, prefix, seen);
	st->carriage = st->shown = true;
	st->resumed = !returns;
	return rest.len;
}

static size_t
row_lines(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span data, enum line_end end)
{
	size_t at = 0, len;
	const char *nl;

	while (at < data.len) {
		nl = memchr(data.at + at, '\n', data.len - at);
		if (nl == NULL)
			break;
		len = (size_t)(nl - data.at) - at;
		row_whole(sink, st, prefix, (struct span){ data.at + at, len });
		at += len + 1;
	}
	if (at < data.len)
		at += row_rest(sink, st, prefix, behind(data, at), end);
	return at;
}

static bool
row_is_one(const struct line_sink *sink, const struct line_stream *st,
	struct span data)
{
	return sink->rows &&
		(st->carriage || memchr(data.at, '\r', data.len) != NULL);
}

/* A long line takes hold of the sink; a short one goes out at the end. */
static size_t
put_unfinished(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span rest)
{
	if (sink->view != NULL) {
		view_break(sink->view);
		rest = seen_of(sink, rest);
	}
	put_prefix(sink, st, prefix);
	put_text(sink, st, rest.at, rest.len);
	sink->holder = st;
	return rest.len;
}

/* All but a line that takes hold, or ends without its newline. */
static size_t
put_finished(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span data, enum line_end end)
{
	size_t used = 0;

	if (sink->holder == st)
		used = put_held(sink, st, data);
	if (sink->holder != NULL)
		return used;
	data = behind(data, used);
	if (row_is_one(sink, st, data))
		return used + row_lines(sink, st, prefix, data, end);
	return used + put_lines(sink, st, prefix, data);
}

static size_t
view_finished(struct line_sink *sink, struct line_stream *st, struct span data,
	enum line_end end)
{
	size_t used = 0;

	if (sink->holder == st)
		used = view_held(sink, st, data, end != LINE_MORE);
	if (sink->holder != NULL)
		return used;
	used += view_lines(sink, st, behind(data, used));
	if (used < data.len)
		used += view_rest(sink, st, behind(data, used), end);
	return used;
}

size_t
line_cut(struct line_sink *sink, struct line_stream *st,
	const struct line_prefix *prefix, struct span data, enum line_end end)
{
	bool ends = end != LINE_MORE && sink->view == NULL;
	size_t used;

	if (sink->holder != NULL && sink->holder != st)
		return 0;
	used = sink->view == NULL ? put_finished(sink, st, prefix, data, end) :
				    view_finished(sink, st, data, end);
	if (sink->holder == NULL && used < data.len &&
		(ends || data.len - used >= LINE_HOLD))
		used += put_unfinished(sink, st, prefix, behind(data, used));
	/* Behind what is to be seen of it may stand carriage returns. */
	if (sink->view != NULL && sink->holder == st && used < data.len)
		used += view_finished(sink, st, behind(data, used), end);
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
