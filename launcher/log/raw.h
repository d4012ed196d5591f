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
 * The keeper shares the descriptor table: struct raw_share tells it which pipe
 * belongs to which file, should it have to finish the job alone. The mover is
 * its only writer.
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
	uint64_t moved; /* bytes in the file */
};

struct raw_share {
	int32_t dir; /* the attempt folder; -1: no files are kept */
	uint32_t streams;
	uint32_t base;   /* name of stream 0: RAW_STREAMS * its rank's number */
	uint64_t failed; /* bytes the keeper could not save */
	struct raw_slot slot[];
};

/* raw_share_new() - shared with children made later; NULL with errno.
 * @first: number of the first of @ranks */
struct raw_share *raw_share_new(uint32_t ranks, uint32_t first, int dir);

/* raw_name() - "rank-0003/stdout" of @named: base + stream. */
const char *raw_name(uint32_t named, char *out, unsigned long cap);

/* raw_open() - the file of @named, made with its folder if need be, at its
 * end. Readable and writable. -1 with errno. */
int raw_open(int dir, uint32_t named);

/*
 * raw_move() - what waits in @pipe goes to @file, at its offset.
 *
 * By splice(2). Where that is refused (a sandbox, an odd file system) by
 * copying: then a kill in between loses what was under way, 64 KiB at most.
 *
 * Returns  the bytes, 0 at the end of the pipe, -1 with errno: EAGAIN if there
 *          is nothing now; else all bytes are still in the pipe
 * Blocks   as the file does, never for the pipe
 */
long raw_move(int pipe, int file);

/*
 * raw_drain() - what is still in the pipes goes to the files; for the keeper.
 *
 * Does not wait for writers: all of them are gone. A full disk is given
 * @patience ns. Returns the bytes that could not be saved, also in @failed.
 */
uint64_t raw_drain(struct raw_share *share, int64_t patience);

#endif /* LAUNCHER_LOG_RAW_H */
