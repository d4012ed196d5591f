/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover.h - the thread that moves what ranks write into their raw files.
 *
 * Pipe to file by splice(2): a byte is in the one or in the other, whenever a
 * kill comes. The loop never touches a raw file; it makes the pipes and hands
 * their read ends over. After each move the sink of that stream is told.
 *
 * What finds no room is displayed: its sink gets a copy, see unstored.h.
 *
 * A full disk leaves the bytes in the pipe: the rank waits, the mover tries
 * once a second, nothing is lost. For one that will never grow (raw_hopeless())
 * nobody waits: what comes is thrown away, and counted.
 *
 * With --log-full drop they are thrown away, and counted in the share; NOTE_FULL
 * and NOTE_ROOM are told all the same.
 *
 * The reserve (reserve.h) is treated like a full disk. Before either counts as
 * full, NOTE_RECLAIM asks the loop to remove ended jobs; see mover_reclaimed().
 *
 * If the attempt's folder is removed under a job, no file can be made any more
 * and waiting would be for ever. NOTE_GONE is sent once. Files that are open go
 * on; a stream that had none yet gets one without a name, so that its sink can
 * show it; what can have neither is thrown away and counted in the share.
 */
#ifndef LAUNCHER_LOG_MOVER_H
#define LAUNCHER_LOG_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/log/note.h"
#include "launcher/log/raw.h"

#define MOVER_PEEK 64 /* streams */

struct mover;
struct sink;

struct mover_config {
	struct raw_share *share; /* borrowed, outlives the mover */
	const struct notes *notes;
	struct sink *sink[RAW_STREAMS]; /* of stdout and stderr; NULL: none */
	bool reclaim;       /* NOTE_RECLAIM is answered by mover_reclaimed() */
	bool drop;          /* what finds no room is thrown away, and counted */
	uint32_t files_max; /* raw files kept open; others are opened a move */
};

/* mover_open() - make it; a thread is made when it is needed. NULL, errno. */
struct mover *mover_open(const struct mover_config *config);

/* mover_fd() - readable while there is something to move or to end. To be
 * watched by the loop until mover_start() gave 0; then it is the thread's. */
int mover_fd(const struct mover *mover);

/* mover_peek() - end the streams whose writers left without a byte: those, for
 * which no NOTE_EOF comes, are in @ended, @n of them. True if some have bytes,
 * for which the thread is needed, or if it is there: mover_drop() may have made
 * it. Then all are the thread's, and none is ended. Loop thread. */
bool mover_peek(struct mover *mover, uint32_t ended[static MOVER_PEEK],
	uint32_t *n);

/* mover_add() - from now on @pipe belongs to the mover; false, errno: it does
 * not. Loop thread only. */
bool mover_add(struct mover *mover, uint32_t stream, int pipe);

/* mover_add_tty() - the same of @master, whose terminal is what the rank writes
 * to; it does not block. Its end is EIO. Stays the caller's, until its
 * NOTE_EOF open. Takes a pipe more, see raw.h. */
bool mover_add_tty(struct mover *mover, uint32_t stream, int master);

/* mover_start() - 0 or an errno; then it may be tried again. */
int mover_start(struct mover *mover);

/* mover_tell_first() - NOTE_FIRST is to come with the next byte. Loop thread. */
void mover_tell_first(struct mover *mover);

/* mover_drop() - stop reading a pipe that somebody holds open for ever; what
 * it holds now is still moved, when there is room for it. NOTE_EOF follows, and
 * NOTE_LEFT_OPEN comes before it if a process has the pipe open.
 * Said twice, a stream without room is given up: its bytes are lost, and
 * counted in the share. Loop thread.
 *
 * Not DROP_LATER if there is no thread, not even now: the loop waits for no file.
 * What the pipe holds stays there, for the keeper to move at the end; see
 * raw_leave(). */
enum drop_end mover_drop(struct mover *mover, uint32_t stream);

/* mover_reclaimed() - answers NOTE_RECLAIM; @freed: there may be room now. Until
 * then no byte is dropped and no NOTE_FULL is sent. Any thread. */
void mover_reclaimed(struct mover *mover, bool freed);

/* mover_bytes() - moved so far, of one stream. Any thread; may lag. */
uint64_t mover_bytes(const struct mover *mover, uint32_t stream);

/* mover_last() - clock_wall() of the last byte of a stream; 0: none. */
int64_t mover_last(const struct mover *mover, uint32_t stream);

#endif /* LAUNCHER_LOG_MOVER_H */
