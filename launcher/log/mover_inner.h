/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover_inner.h - the mover from within; for mover.c and move.c only.
 *
 * mover.c is the thread, and what the loop calls: it hears which streams have
 * something. move.c is what happens to one of them then: its bytes go to its
 * file, wait for room, or nowhere, until its end. Both are the thread's, but for
 * what move.c says is the loop's until there is a thread.
 */
#ifndef LAUNCHER_LOG_MOVER_INNER_H
#define LAUNCHER_LOG_MOVER_INNER_H

#include "launcher/log/index.h"
#include "launcher/log/mover.h"
#include "launcher/log/reserve.h"

struct stream {
	struct index index;
	int64_t last_ns; /* wall time of the last move */
	int64_t told_ns; /* clock_now() of the last NOTE_FULL */
	bool stalled;    /* no room: tried each second */
	bool told;       /* NOTE_FULL was sent, NOTE_ROOM is due */
	int sys;         /* why */
	bool dropping;   /* no room, or never any: what comes is thrown away */
	uint64_t cut_again; /* a piece could not be cut: not before this */
	uint8_t drops;      /* atomic: calls of mover_drop() not yet heard */
	bool dropped;       /* to be ended with what its pipe holds now */
	bool left;          /* by the loop, with what its pipe holds now */
	bool discarded;     /* no file can be had: what comes is counted */
};

#define MOVER_LARGE (10ULL << 30)

/* Ended jobs that may be removed for room. */
enum reclaim {
	RECLAIM_NONE,  /* not requested since there was room */
	RECLAIM_ASKED, /* the answer to NOTE_RECLAIM is to come */
	RECLAIM_OVER,  /* answered */
};

#define RECLAIM_FREED 2 /* of @answer, beside 1 */

struct mover {
	struct mover_config config;
	int epoll;
	bool started;
	int drops; /* eventfd: the loop has streams to drop */
	struct reserve reserve;
	uint64_t written; /* bytes of all streams and attempts */
	uint64_t large;   /* bytes of them for the next NOTE_LARGE */
	uint32_t files;   /* raw files kept open */
	uint32_t stalled;
	enum reclaim reclaim;
	bool reclaim_freed; /* by the last request */
	int64_t reclaim_ns; /* clock_now() of the last request */
	uint8_t answer;     /* atomic: mover_reclaimed() was called */
	int64_t round;   /* clock_now() when the round began: each stream that
			* has something is served once */
	int64_t owed;    /* how many of them may still wait in it */
	bool tell_first; /* atomic: NOTE_FIRST with the next byte */
	bool gone;       /* the folder was removed, and that was told */
	struct notes_held ended; /* NOTE_EOF of this turn */
	struct stream *stream;
};

/* move_listen() - hear of what @stream has; false with errno. Loop, too. */
bool move_listen(struct mover *m, uint32_t stream);

/* move_deaf() - no more. Loop, too, while there is no thread. */
void move_deaf(struct mover *m, uint32_t stream);

/* move_has_writer() - returns true if a process has the pipe or terminal of @stream open.
 * Loop, too, while there is no thread. */
bool move_has_writer(const struct mover *m, uint32_t stream);

/* move_close() - @stream is at its end; its sink is told, the loop is not: it
 * may be who calls, while there is no thread. */
void move_close(struct mover *m, uint32_t stream);

/* move_serve() - epoll says @events of @stream: one move, or its end. */
void move_serve(struct mover *m, uint32_t stream, uint32_t events);

/* move_retry() - every stream without room tries again. */
void move_retry(struct mover *m);

/* move_reclaimed() - see mover_reclaimed(). */
void move_reclaimed(struct mover *m, bool freed);

/* move_drop() - see mover_drop(): the first call, or the second. */
void move_drop(struct mover *m, uint32_t stream);

#endif /* LAUNCHER_LOG_MOVER_INNER_H */
