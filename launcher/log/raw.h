/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw.h - the files that hold exactly what each rank wrote.
 *
 * A stream is 2 * rank + 0 for stdout, + 1 for stderr. Its folder and file
 * appear with its first byte: <attempt>/rank-0003/stdout. Beside it stands
 * stdout.idx: {u64 end offset, i64 wall ns} little-endian, one record a move,
 * at most one per 10 ms. A file that was written within 10 ms has no index:
 * its time of modification is the record.
 *
 * A terminal (--pty) is no pipe, and a byte read from it is nowhere but in
 * memory. So it has a pipe of our own behind it: splice(2) takes bytes from the
 * terminal to the pipe, and from there to the file, as of any rank. Where that
 * is refused they are copied, see raw_move().
 *
 * The keeper shares the descriptor table: struct raw_share tells it which pipe
 * belongs to which file, should it have to finish the job alone.
 *
 * Who writes it: the loop enters a pipe before the mover can hear of it; from
 * then on the slot is the mover's, and after the supervisor's death all is the
 * keeper's. Others read @moved and what is lost atomically, with
 * mover_bytes() and raw_lost(). A supervisor that has no thread leaves a stream
 * to the keeper, too, with raw_leave(), on the loop.
 */
#ifndef LAUNCHER_LOG_RAW_H
#define LAUNCHER_LOG_RAW_H

#include <stdbool.h>
#include <stdint.h>

#define RAW_STREAMS 2 /* a rank */

enum { RAW_OUT, RAW_ERR };

struct raw_slot {
	int32_t pipe;   /* read end, -1 after its end */
	int32_t file;   /* -1: not open (yet) */
	int32_t tty;    /* borrowed master, does not block; -1: no terminal */
	int32_t fill;   /* write end of its pipe; -1: the terminal ended */
	uint64_t moved; /* bytes in the file, or the files */
	uint64_t
		start; /* atomic: offset of the file's first byte, see piece.h */
	uint64_t dropped; /* atomic: bytes for which there was no room */
	uint64_t unseen; /* atomic: bytes removed before a sink had read them */
};

/* --log-rotate, see piece.h */
struct piece_rule {
	uint64_t size;  /* bytes; 0: one file for all */
	uint32_t count; /* files that are kept, the newest included; 0: all */
};

struct raw_share {
	int32_t dir; /* the attempt folder; -1: no files are kept */
	uint32_t streams;
	struct piece_rule rule;
	uint32_t base;   /* name of stream 0: RAW_STREAMS * its rank's number */
	uint64_t failed; /* bytes that came to no file; see raw_lose() */
	int32_t sys;     /* why, of the first of them */
	uint32_t left;   /* pipes left to the keeper, see raw_leave() */
	uint64_t reserve; /* bytes or RESERVE_AUTO, see reserve.h */
	uint64_t before;  /* bytes in the files of earlier attempts */
	uint64_t large;   /* bytes for the next NOTE_LARGE; 0: the first */
	struct raw_slot slot[];
};

/* raw_share_new() - shared with children made later; NULL with errno.
 * @first: number of the first of @ranks */
struct raw_share *raw_share_new(uint32_t ranks, uint32_t first, int dir);

/* raw_name() - "rank-0003/stdout" of @named: base + stream. */
const char *raw_name(uint32_t named, char *out, unsigned long cap);

/* raw_written() - bytes of all ranks in files, so far. Any thread. */
uint64_t raw_written(const struct raw_share *share);

/* raw_lose() - @bytes of ranks are in no file, because of @sys. */
void raw_lose(struct raw_share *share, uint64_t bytes, int sys);

/* raw_lost() - how many, and the first reason. Any thread. */
uint64_t raw_lost(const struct raw_share *share, int *sys);

#define RAW_LOST_MAX 160

/* raw_lost_text() - the same as a line of words; "" if none is lost. */
const char *raw_lost_text(const struct raw_share *share,
	char out[static RAW_LOST_MAX]);

/* raw_no_room() - is @sys that of a disk, not of something that broke? */
bool raw_no_room(int sys);

/* raw_hopeless() - of a file that will never grow, whatever is waited for: the
 * limit (ulimit -f) is xrun's own, or the file system takes no larger one. All
 * else may be mended by somebody while the job waits. */
bool raw_hopeless(int sys);

/* raw_open() - the file of @named, made with its folder if need be, at its
 * end. Readable and writable. -1 with errno: ESTALE if @dir itself was removed,
 * so that no file can be made any more. */
int raw_open(int dir, uint32_t named);

/*
 * raw_move() - what waits in @pipe goes to @file, at its offset.
 *
 * By splice(2). Where that is refused (a sandbox, an odd file system) by
 * copying: then a kill in between loses what was under way, 64 KiB at most.
 * What was copied and found no room is held back for the next call with that
 * pipe; no other pipe is copied before it. One thread.
 *
 * Returns  the bytes, 0 at the end of the pipe, -1 with errno: EAGAIN if there
 *          is nothing now; else all bytes are still in the pipe, or held
 * Blocks   as the file does, never for the pipe
 */
long raw_move(int pipe, int file);

/* raw_move_some() - the same of at most @max bytes, but what is held back. */
long raw_move_some(int pipe, int file, uint64_t max);

/* raw_fill() - what waits in the terminal of @slot, if it has one, goes to its
 * pipe, as far as there is room. At the end of the terminal the pipe has no
 * writer any more. Never blocks. */
void raw_fill(struct raw_slot *slot);

/*
 * raw_leave() - nobody of the supervisor moves what waits in the pipe of
 * @stream: it stays there, and @left counts it. Its terminal is forgotten, and
 * what the pipe has no room for is lost. Never blocks. False: there is nothing.
 */
bool raw_leave(struct raw_share *share, uint32_t stream);

/* raw_left() - bytes of @slot in no file; its terminal is emptied to know. */
uint64_t raw_left(struct raw_slot *slot);

/* raw_take() - as raw_move(), to @out of RAW_TAKE bytes. */
#define RAW_TAKE (64 * 1024)
long raw_take(int pipe, char out[static RAW_TAKE]);

/* raw_discard() - as raw_move(), to nowhere. */
long raw_discard(int pipe);

/* raw_peek() - copies the first bytes that wait in @pipe, at most RAW_TAKE, and
 * what is held back for it. Returns how many, or -1 with errno: EAGAIN if there
 * is none. One thread. */
#define RAW_PEEK (2 * RAW_TAKE)
long raw_peek(int pipe, char out[static RAW_PEEK]);

/* raw_waiting() - bytes in @pipe, and held back for it. */
uint64_t raw_waiting(int pipe);

/* raw_close() - the pipe of @slot is of no use any more, nor what is held for
 * it; its terminal is forgotten. */
void raw_close(struct raw_slot *slot);

/*
 * raw_drain() - what is still in the pipes goes to the files; for the keeper.
 *
 * Does not wait for writers: all of them are gone. A pipe that is empty is
 * closed with its file: others may need the descriptors. A full disk is given
 * @patience ns. The reserve is kept. Returns raw_lost().
 */
uint64_t raw_drain(struct raw_share *share, int64_t patience);

#endif /* LAUNCHER_LOG_RAW_H */
