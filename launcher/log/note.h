/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h - what the threads of the log tell the loop.
 *
 * One pipe, fixed little records, written whole: no lock is shared with the
 * loop. A sender that finds the pipe full waits; the loop never does.
 */
#ifndef LAUNCHER_LOG_NOTE_H
#define LAUNCHER_LOG_NOTE_H

#include <stdint.h>

enum note_kind {
	NOTE_EOF, /* @value: stream: its pipe ended, all bytes are moved */
	NOTE_LEFT_OPEN, /* @value: stream: it is given up, and a process has its
			 * pipe open; its NOTE_EOF follows */
	NOTE_FIRST, /* the first byte of any came, as mover_tell_first() asked */
	NOTE_FULL,  /* @value: stream: no room for its file (@sys) */
	NOTE_ROOM,  /* @value: stream: there is room again */
	NOTE_LARGE, /* the files of all streams have @value GiB: 10, 100, ... */
	NOTE_RECLAIM, /* @value: stream: no room (@sys): free some by removing
		       * ended jobs, then call mover_reclaimed() */
	NOTE_GONE,    /* the folder was removed; @value: the first to need it */
	NOTE_UNREAD,  /* @value: stream: its sink cannot read it (@sys) */
	NOTE_SINK_CLOSED, /* @value: sink: its reader is gone, or @sys */
	NOTE_WRITTEN,   /* the helper thread did what it was given; @value: the
		       * supervisor's own */
	NOTE_RECLAIMED, /* the helper thread did so; the supervisor's own */
	NOTE_STEER,     /* the control socket listens; @value: its descriptor */
	NOTE_SINK_DONE, /* @value: sink: all that can be is delivered; @sys: why
			 * that is not everything */
};

struct note {
	uint16_t kind; /* enum note_kind */
	int16_t sys;   /* errno, or 0 */
	uint32_t value;
};

#define NOTES_HELD 64 /* that one write takes whole: pipe(7), PIPE_BUF */

/* Notes that can wait for the end of their sender's turn. */
struct notes_held {
	struct note note[NOTES_HELD];
	uint32_t count;
};

/* Result of giving a stream up. */
enum drop_end {
	DROP_LATER,     /* NOTE_EOF tells */
	DROP_OVER,      /* now; no note comes */
	DROP_LEFT_OPEN, /* the same, and a process has its pipe open */
};

struct notes {
	int rd; /* the loop's end, non-blocking */
	int wr; /* the threads' end */
};

/* notes_init() - 0, or -1 with errno. */
int notes_init(struct notes *notes);
void notes_send(const struct notes *notes, enum note_kind kind, uint32_t value,
	int sys);

/* notes_hold() - as notes_send(), with the next notes_flush() or when @held is
 * full: one wake-up of the loop for all of them. */
void notes_hold(const struct notes *notes, struct notes_held *held,
	enum note_kind kind, uint32_t value);
void notes_flush(const struct notes *notes, struct notes_held *held);

/* notes_take() - up to @cap notes; 0 when there are none now. */
uint32_t notes_take(const struct notes *notes, struct note *out, uint32_t cap);

#endif /* LAUNCHER_LOG_NOTE_H */
