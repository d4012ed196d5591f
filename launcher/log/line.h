/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - cutting what ranks wrote into lines for one reader. Pure.
 *
 * Several streams share a sink, and no line on it may hold bytes of two. A
 * line of any length is allowed: when a stream's unfinished line has grown
 * past LINE_HOLD, the stream takes hold of the sink and its bytes go out in
 * pieces; the others wait. A hold ends with the newline, at the end of the
 * stream, or when line_give_up() is told that nothing came for LINE_IDLE_NS:
 * then a newline is put, and the continuation is marked with "…".
 *
 * A carriage return is a byte as any other. With a view (a terminal, or where
 * equal lines are collapsed), what stands before it is written over: only the
 * last state of a line is shown, while it grows and at its end.
 */
#ifndef LAUNCHER_LOG_LINE_H
#define LAUNCHER_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/log/prefix.h"

#define LINE_HOLD    (32 * 1024)
#define LINE_IDLE_NS 200000000LL

/* What is known about the bytes after those offered. */
enum line_end {
	LINE_MORE, /* some may come */
	LINE_IDLE, /* none came for LINE_IDLE_NS */
	LINE_LAST, /* none will come */
};

struct live;
struct view;

struct line_stream {
	uint32_t number; /* of the stream; for a view */
	bool resumed;    /* the next piece continues a line that was given up */
	bool colored;    /* the line so far holds an SGR sequence */
	uint8_t escape;  /* state of the filter, see escape.h */

	/* Of an unfinished line, for a view. */
	bool carriage; /* it was written over, or will be */
	bool shown;    /* as it was: nothing more need follow */
	bool quiet;    /* as long as it does not grow, nothing is to be done */
	struct live *live;
	int64_t sampled_ns; /* see view_sample(); 0 */
};

struct line_sink {
	struct buf *out;
	struct line_stream *holder; /* or NULL */
	bool filter; /* a terminal: let no escape sequences but colour through */
	bool narrow;       /* and it does not read UTF-8 */
	struct view *view; /* lines go through it; or NULL */
	bool clocked;      /* some prefix has a clock, which is to show @wall */
	int64_t wall;      /* clock_wall() of the bytes that are offered */
	struct prefix_clock clock;
};

/*
 * line_cut() - put the lines of @data on the sink.
 *
 * With LINE_IDLE and LINE_LAST an unfinished line is put, too, with a newline.
 *
 * Returns how many bytes were used; the rest is an unfinished line of less
 * than LINE_HOLD, to be offered again with what follows it. 0 if another stream
 * holds the sink.
 */
size_t line_cut(struct line_sink *sink, struct line_stream *stream,
	const struct line_prefix *prefix, struct span data, enum line_end end);

/* line_give_up() - the holder, if any, ends its piece with a newline. */
void line_give_up(struct line_sink *sink);

#endif /* LAUNCHER_LOG_LINE_H */
