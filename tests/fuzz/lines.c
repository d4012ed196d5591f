/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.c - fuzz target: cutting what ranks wrote into lines, and keeping
 * their escape sequences off a terminal.
 *
 * Input: the first byte chooses: bit 0, a terminal's
 * filter; bit 1, room for whole lines; bit 2, long lines;
 * bit 3, a view, which collapses equal lines with bit 4; bit 5, a terminal
 * that does not read UTF-8. Then
 * steps of one byte, STREAM + 4 * STEP: a byte count follows and that many
 * bytes of output; see enum step.
 *
 * Claims without the filter: each line that comes out is of one stream, bears
 * its prefix, and all pieces of a stream, put together, are what it wrote.
 * With it: nothing but colour steers the terminal, not even a control character
 * of 8 bits, and what went through once
 * goes through unchanged. Always: what is held back is bounded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "launcher/log/escape.h"
#include "launcher/log/line.h"
#include "launcher/log/route.h"
#include "launcher/log/view.h"
#include "tests/fuzz/fuzz.h"

#define STREAMS   3
#define TOTAL_MAX (48 * 1024)

enum step {
	STEP_WRITE, /* the bytes that follow */
	STEP_LONG,  /* the byte that follows, count times 1 or 160 */
	STEP_IDLE,  /* nothing came for a while */
	STEP_LAST,  /* the stream ends */
	STEP_WORDS, /* xrun has something to say: the holder gives up */
};

/* A stream, and what a reader of the sink makes of it. */
struct side {
	struct line_stream line;
	struct line_prefix prefix;
	struct buf wrote; /* all of it */
	size_t taken;     /* of it by the cutter */
	struct buf read;  /* what the reader has put together */
	bool ended;
	bool joined; /* the last newline that was read may be the cutter's */
};

struct run {
	struct side side[STREAMS];
	struct line_sink sink;
	struct buf out;
	size_t times;       /* STEP_LONG */
	struct route route; /* of a view */
	int64_t now;
};

/* \1 begins a prefix and e2 a mark: without the filter ranks write neither,
 * or the reader could not know whose they are. */
static char
tame(const struct run *r, uint8_t byte)
{
	if (r->sink.filter)
		return (char)byte;
	return byte == 1 || byte == 0xe2 ? '?' : (char)byte;
}

static void
put_many(struct buf *out, char byte, size_t count)
{
	char *room = buf_room(out, count);

	HOLDS(room != NULL);
	memset(room, byte, count);
}

static void
offer(struct run *r, uint32_t n, enum line_end end)
{
	struct side *s = &r->side[n];
	struct span data = { .at = buf_text(&s->wrote) + s->taken,
		.len = s->wrote.len - s->taken };
	char *exact = xcalloc(1, data.len == 0 ? 1 : data.len);
	bool free_sink = r->sink.holder == NULL || r->sink.holder == &s->line;
	size_t used;

	memcpy(exact, data.at, data.len);
	data.at = exact;
	used = line_cut(&r->sink, &s->line, &s->prefix, data, end);
	free(exact);
	HOLDS(used <= data.len);
	HOLDS(free_sink || used == 0);
	if (free_sink && end == LINE_LAST)
		HOLDS(used == data.len);
	if (free_sink && end == LINE_IDLE && r->sink.view == NULL) {
		HOLDS(used == data.len);
		HOLDS(r->sink.holder != &s->line);
	}
	HOLDS(!free_sink || data.len - used < LINE_HOLD);
	HOLDS(r->out.bad == XR_OK);
	s->taken += used;
	s->ended = s->ended || (end == LINE_LAST && free_sink);
}

/* One step at @at; how many bytes of input it took. */
static size_t
do_step(struct run *r, const uint8_t *at, size_t left)
{
	uint32_t n = (at[0] & 3) % STREAMS;
	enum step step = (at[0] >> 2) % (STEP_WORDS + 1);
	size_t count = left > 1 ? at[1] : 0, took = 2;
	struct side *s = &r->side[n];
	size_t room = TOTAL_MAX - s->wrote.len;

	if (step == STEP_WORDS || s->ended) {
		line_give_up(&r->sink);
		return took;
	}
	if (step == STEP_WRITE) {
		if (left < took || count > left - took)
			count = left < took ? 0 : left - took;
		for (size_t i = 0; i < count; i++)
			buf_put_char(&s->wrote, tame(r, at[took + i]));
		took += count;
	}
	if (step == STEP_LONG && left > 2)
		put_many(&s->wrote, tame(r, at[2]),
			count * r->times < room ? count * r->times : room);
	took += step == STEP_LONG;
	offer(r, n,
		step == STEP_IDLE         ? LINE_IDLE :
			step == STEP_LAST ? LINE_LAST :
					    LINE_MORE);
	return took;
}

/* Returns the reader of the line. Without the filter each begins with \1 and a digit. */
static struct side *
reader_of(struct run *r, const char **line, const char *nl)
{
	HOLDS(nl - *line >= 3 && (*line)[0] == 1);
	HOLDS((*line)[1] >= '0' && (*line)[1] < '0' + STREAMS);
	*line += 3;
	return &r->side[(*line)[-2] - '0'];
}

/* Puts together what each stream wrote, from the lines on the sink. */
static void
read_back(struct run *r)
{
	const char *p = buf_text(&r->out), *end = p + r->out.len;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct side *s;

		HOLDS(nl != NULL);
		HOLDS(memchr(p + 1, 1, (size_t)(nl - p - 1)) == NULL ||
			nl == p);
		s = reader_of(r, &p, nl);
		if (nl - p >= 3 && memcmp(p, "…", 3) == 0) {
			HOLDS(s->read.len > 0);
			s->read.len--; /* that newline was the cutter's */
			p += 3;
		}
		buf_put(&s->read, p, (size_t)(nl + 1 - p));
		p = nl + 1;
	}
}

static void
check_streams(struct run *r)
{
	for (uint32_t n = 0; n < STREAMS; n++) {
		struct side *s = &r->side[n];
		size_t len = s->read.len;

		/* One newline more, if the last line had none. */
		if (len == s->taken + 1) {
			HOLDS(s->read.data[len - 1] == '\n');
			len--;
		}
		HOLDS(len == s->taken);
		HOLDS(len == 0 ||
			memcmp(s->read.data, s->wrote.data, len) == 0);
		HOLDS(!s->ended || s->taken == s->wrote.len);
	}
}

/* A byte from 80 to 9f is a control character of its own, but in a letter of
 * UTF-8, be it cut. Returns true if this one, behind the @before bytes before it, is in one. */
static bool
in_letter(const char *p, size_t before)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t n = 1;

	while (n < before && n < 3 && (*(u - n) & 0xc0) == 0x80)
		n++;
	if (n > before)
		return false;
	switch (*(u - n) >> 4) {
	case 0xc:
	case 0xd:
		return n == 1 && *(u - n) > 0xc2;
	case 0xe:
		return n == 2 || (n == 1 && *(u - n) != 0xe0);
	case 0xf:
		return *(u - n) <= 0xf4 &&
			(n > 1 || *(u - n) != 0xf0 || *u >= 0x90);
	default:
		return false;
	}
}

/* Returns true at the byte 80 of "…", which xrun puts itself. */
static bool
is_mark(const char *p, size_t before)
{
	return before > 0 && memcmp(p - 1, "…", 3) == 0;
}

/* What a terminal would obey, but colour, is not in it; xrun's own mark is. */
static void
check_tame(const char *p, size_t len, bool narrow)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		HOLDS(c >= 0x20 || c == '\n' || c == '\t' || c == '\r' ||
			c == 1 || c == '\033');
		HOLDS(c != 0x7f);
		HOLDS(c != 0xc2 || i + 1 == len ||
			((unsigned char)p[i + 1] & 0xe0) != 0x80);
		if (c >= 0x80 && c < 0xa0)
			HOLDS(narrow ? is_mark(p + i, i) : in_letter(p + i, i));
		if (c != '\033')
			continue;
		HOLDS(i + 1 < len && p[i + 1] == '[');
		i += 2 + strspn(p + i + 2, "0123456789;:");
		HOLDS(i < len && p[i] == 'm');
	}
}

/* What went through the filter is all the filter lets through; but for half a
 * letter at the end of a coloured line, which has the reset behind it now. */
static void
check_filtered(const struct buf *out, bool narrow)
{
	struct buf again = { 0 };
	struct span all = { .at = buf_text(out), .len = out->len };
	uint8_t state = 0;
	bool colored = false;
	size_t n = 0;

	check_tame(all.at, all.len, narrow);
	for (size_t i = 0; i < all.len; i++)
		if (all.at[i] == 1 || (narrow && all.at[i] == '\x80'))
			out->data[i] = '?'; /* of our prefixes and marks */
	escape_filter(&again, all, narrow, &state, &colored);
	for (size_t i = 0; i < all.len; i++)
		if ((unsigned char)all.at[i] != 0xc2 || all.at[i + 1] != '\033')
			HOLDS(n < again.len && again.data[n++] == all.at[i]);
	HOLDS(n == again.len);
	buf_fini(&again);
}

/* No screen: of what may still change, people with one get to see more. */
static void
open_view(struct run *r, bool collapse)
{
	struct route_config route = { .ranks = 2,
		.size = 2,
		.show = "all",
		.prefix = "{rank}|" };
	struct view_config config = { .out = &r->out,
		.route = &r->route,
		.fd = -1,
		.tty = r->sink.filter,
		.narrow = r->sink.narrow,
		.collapse = collapse };

	HOLDS(route_compile(&r->route, &route, NULL) == XR_OK);
	for (uint32_t n = 0; n < STREAMS; n++)
		r->side[n].line.number = n;
	r->sink.view = view_new(&config);
	HOLDS(r->sink.view != NULL);
	r->now = 1000000000;
	view_begin(r->sink.view, r->now);
}

static void
close_view(struct run *r)
{
	view_end(r->sink.view);
	HOLDS(r->out.len == 0 || r->out.data[r->out.len - 1] == '\n');
	view_free(r->sink.view);
	route_fini(&r->route);
	if (r->sink.filter)
		check_tame(buf_text(&r->out), r->out.len, r->sink.narrow);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run *r = xcalloc(1, sizeof(*r));
	size_t at = 1;

	r->times = size > 0 && (data[0] & 4) != 0 ? 160 : 1;
	r->sink = (struct line_sink){ .out = &r->out,
		.filter = size > 0 && (data[0] & 1) != 0,
		.narrow = size > 0 && (data[0] & 32) != 0 };
	if (size > 0 && (data[0] & 8) != 0)
		open_view(r, (data[0] & 16) != 0);
	for (uint32_t n = 0; n < STREAMS; n++)
		r->side[n].prefix.len =
			(uint16_t)snprintf(r->side[n].prefix.text, PREFIX_MAX,
				"\001%u|", n);
	if (size > 0 && (data[0] & 2) != 0) {
		/* As the sink has it: room for the line that is copied once. */
		buf_room(&r->out, LINE_HOLD);
		buf_clear(&r->out);
	}
	while (at < size) {
		at += do_step(r, data + at, size - at);
		if (r->sink.view == NULL)
			continue;
		view_paint(r->sink.view);
		r->now += 30000000;
		view_known(r->sink.view, r->now);
		view_begin(r->sink.view, r->now);
	}
	line_give_up(&r->sink);
	for (uint32_t n = 0; n < STREAMS; n++)
		if (!r->side[n].ended)
			offer(r, n, LINE_LAST);
	if (r->sink.view != NULL) {
		close_view(r);
	} else if (r->sink.filter) {
		check_filtered(&r->out, r->sink.narrow);
	} else {
		read_back(r);
		check_streams(r);
	}
	for (uint32_t n = 0; n < STREAMS; n++) {
		buf_fini(&r->side[n].wrote);
		buf_fini(&r->side[n].read);
	}
	buf_fini(&r->out);
	free(r);
	return 0;
}
