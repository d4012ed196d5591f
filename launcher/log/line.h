/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - cutting what ranks wrote into lines for one reader. Pure.
 *
 * Several streams share a sink, and no line on it may hold bytes of two. A
 * line of any length is allowed: when a stream's unfinished line has grown
 * past LINE_HOLD, the stream takes hold of the sink and its bytes go out in
 * pieces; the others wait. A hold ends with the newline, at the end of the
 * stream, or when the caller reports LINE_IDLE because the stream was silent
 * for some time: then a newline is put, and the continuation begins with "…".
 * On a terminal that time is LINE_IDLE_TTY_NS, since a person may have to
 * answer a prompt. In a file or a pipe it is LINE_IDLE_NS: a program on a busy
 * machine may pause in the middle of a line, and its readers expect whole lines.
 *
 * A program that shows its progress ends each state with a carriage return and
 * writes the next one over it. On a terminal, a view shows the last state while
 * the line grows. In a file or a pipe, a sink with @rows prints the last state as
 * a whole line, at most once in LINE_ROW_NS, and at the end of the line. In a
 * sink with neither, a carriage return is a byte like any other. The one of
 * "\r\n" is that everywhere but on a terminal.
 */
#ifndef LAUNCHER_LOG_LINE_H
#define LAUNCHER_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/log/prefix.h"

#define LINE_HOLD        (32 * 1024)
#define LINE_IDLE_NS     5000000000LL
#define LINE_IDLE_TTY_NS 200000000LL
#define LINE_ROW_NS      1000000000LL

/* What is known about the bytes after those offered. */
enum line_end {
	LINE_MORE, /* some may come */
	LINE_IDLE, /* none came for the time after which a line is cut */
	LINE_LAST, /* none will come */
};

struct live;
struct view;

struct line_stream {
	uint32_t number; /* of the stream; for a view */
	bool resumed;    /* the next piece continues a line that was given up */
	bool colored;    /* the line so far holds an SGR sequence */
	uint8_t escape;  /* state of the filter, see escape.h */

	/* For a sink with rows. */
	bool row_waits; /* a state that was not printed is offered again */
	int64_t row_ns; /* clock_now() when a state may be printed; 0: unset */

	/* Of an unfinished line, for a view or rows. */
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
	bool rows;         /* progress is printed as lines; see above */
	int64_t now;       /* clock_now(); for rows */
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
