/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - one stream as a sink sees it: a raw file at an offset, or a pipe.
 *
 * Everything here belongs to the sink's thread, but the fields under "shared",
 * which the sink's lock guards.
 */
#ifndef LAUNCHER_LOG_FEED_H
#define LAUNCHER_LOG_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "base/buf.h"
#include "launcher/log/line.h"
#include "launcher/log/piece.h"
#include "launcher/log/unstored.h"

#define FEED_CHUNK   (64 * 1024)
#define FEED_TAIL    2048 /* of a pipe, kept for the account */
#define FEED_MARKS   32
#define FEED_TTY_MAX (128 * 1024) /* more than a terminal holds */

/* When which bytes of a file arrived: those before @end, and behind the end of
 * the mark before, at @wall. A reader that is far behind finds coarser ones. */
struct feed_mark {
	uint64_t end;
	int64_t wall;
};

struct feed {
	/* Shared: set by the mover, taken over by the sink. */
	int new_file;
	uint64_t new_end;
	int64_t new_came; /* see sink_round() */
	bool new_eof, queued;
	TAILQ_ENTRY(feed) queue;
	struct feed_mark *mark; /* [FEED_MARKS] once one is set, or NULL */
	uint32_t marks;
	int64_t step; /* ns between two of them, at least */

	uint32_t stream;
	uint32_t named;                /* see raw.h */
	int file;                      /* -1: open it by name, each time */
	int pipe;                      /* -1: a file, or ended */
	uint64_t at;                   /* next byte to deliver */
	uint64_t end;                  /* bytes that exist */
	bool eof;                      /* and no more will */
	int64_t came;                  /* the last of them; 0: in this turn */
	const struct raw_share *share; /* its pieces; NULL: it has none */
	struct piece_at piece;         /* where @at is */
	struct unstored *unstored;     /* NULL: its file never lacked room */
	uint64_t skipped; /* by feed_peek(): removed before it was read */
	bool over;        /* its end was delivered, too */
	bool listed;      /* on the ready or the parked list */
	TAILQ_ENTRY(feed) list;
	bool unread; /* could not be read; waits for another try */
	int64_t due; /* clock_now() of its next turn without news; 0: none */
	TAILQ_ENTRY(feed) waiting;
	struct line_stream line;

	/* Pipes only. */
	bool dropped; /* its end is after at most @left more bytes */
	uint32_t left;
	char *held; /* an unfinished line, at most LINE_HOLD bytes */
	uint32_t held_len;
	char *tail; /* the last FEED_TAIL bytes */
	uint32_t tail_len;
};

TAILQ_HEAD(feed_list, feed);

/*
 * feed_peek() - the next bytes, at most FEED_CHUNK (and what was held).
 *
 * @scratch: FEED_CHUNK + LINE_HOLD bytes, which the span borrows
 * Where they were removed by then (--log-rotate) it goes on with what is there,
 * and @skipped is how much is not.
 *
 * Returns false if they cannot be read now (errno; ENODATA: the file is shorter
 * than was announced); an empty span at the end.
 */
bool feed_peek(struct feed *f, int dir, char *scratch, struct span *out);

/* feed_left() - bytes behind @at that can be read or are unstored. */
uint64_t feed_left(const struct feed *f);

/* feed_drop() - nothing is read behind the bytes that the pipe holds now. Returns true if a
 * process has it open, once a pipe. If not, the pipe is read to its end. FIONREAD counts
 * only a part of what a terminal holds: one is read until it is empty, FEED_TTY_MAX at most. */
bool feed_drop(struct feed *f);

/* feed_mark() - the bytes up to @end are there since @wall; shared. */
void feed_mark(struct feed *f, uint64_t end, int64_t wall);

/* feed_when() - when the byte @at came; false: nobody knows. Shared. */
bool feed_when(struct feed *f, uint64_t at, struct feed_mark *out);

/* feed_took() - @used bytes of the span are delivered; false: no memory. */
bool feed_took(struct feed *f, struct span data, size_t used);
void feed_fini(struct feed *f);

#endif /* LAUNCHER_LOG_FEED_H */
