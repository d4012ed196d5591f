/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - what stands on a terminal and may still change.
 *
 * On a screen - a terminal that obeys cursor sequences, and that nobody else
 * writes to - the last lines may yet be joined by other ranks, and below them
 * stand live lines: progress that is written over itself, and what waits for
 * its newline. They are painted at most once in VIEW_LIVE_NS, and only when
 * they changed. Above them, whole lines scroll as ever.
 *
 * Any other terminal sees no line change: of progress it gets a line now and
 * then, and the last state. In a pipe (--collapse on) lines wait BURST_NS for
 * others that are equal; so do stored lines on a terminal that is no screen.
 *
 * It writes into the sink's buffer, on the sink's thread.
 */
#ifndef LAUNCHER_LOG_VIEW_H
#define LAUNCHER_LOG_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/log/line.h"
#include "launcher/log/route.h"

#define VIEW_LIVE_NS   50000000LL
#define VIEW_SAMPLE_NS 10000000000LL /* on a terminal that is no screen */
#define VIEW_LIVE_MAX  16            /* rows; and half of the screen */

struct view;

/* view_alone() - Returns true if nothing but @fd, which is a terminal and xrun's
 * standard output or error, leads from xrun to its terminal. */
bool view_alone(int fd);

struct view_config {
	struct buf *out;
	const struct route *route; /* outlives the view */
	int fd;
	bool tty;      /* no sequences but colour pass */
	bool narrow;   /* see escape.h */
	bool screen;   /* see above */
	bool collapse; /* equal lines of several ranks are one */
	bool stored;   /* lines are read from files: see view_came() */
};

/* view_new() - NULL: no memory. */
struct view *view_new(const struct view_config *config);
void view_free(struct view *view);

/* view_begin() - a turn begins at @now. Looks at the size of the screen, and whether xrun is
 * in the foreground of its terminal. */
void view_begin(struct view *view, int64_t now);

/* view_came() - the lines that follow came at @ns, by the clock of view_begin(), or of the
 * files with `stored`: lines that came within BURST_NS are joined. Unless it is called, they
 * came when the turn began. */
void view_came(struct view *view, int64_t ns);

/* view_known() - all lines that came before @ns have been put: those that none can join any
 * more are final. With `stored` view_came() tells that. */
void view_known(struct view *view, int64_t ns);

/* view_lost() - others wrote meanwhile: nobody knows where the cursor is. What
 * stands is left as it is. Before view_begin(). */
void view_lost(struct view *view);

/* view_moves() - returns true if it is a screen in this turn. */
bool view_moves(const struct view *view);

/* view_line() - a line of @stream, without newline and carriage returns; it
 * is not live any more. @wall is for its prefix. */
void view_line(struct view *view, struct line_stream *stream, struct span text,
	int64_t wall);

/* view_live() - its live line is this now; for a screen. */
void view_live(struct view *view, struct line_stream *stream, struct span text,
	int64_t wall);

/* view_sample() - returns true if it is time for a line of progress where it is no screen. */
bool view_sample(struct view *view, struct line_stream *stream);

/* view_break() - all lines go out and change no more, no live line stands: the
 * caller goes on in the buffer, at the beginning of a row. */
void view_break(struct view *view);

/* view_paint() - the turn ends: what is new goes out. */
void view_paint(struct view *view);

/* view_holds() - returns true if lines wait for others that are equal (see above). */
bool view_holds(const struct view *view);

/* view_due() - when it has to be painted without anything new; 0: never. A line that waits
 * goes out once view_known() tells that time. */
int64_t view_due(const struct view *view);

/* view_end() - all goes out as it is. */
void view_end(struct view *view);

#endif /* LAUNCHER_LOG_VIEW_H */
