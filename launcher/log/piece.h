/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.h - raw files that are begun anew at a size (--log-rotate).
 *
 * "stdout" is the newest piece. The others bear the offset, of the stream, of
 * their first byte: "stdout.000000000000000", "stdout.000000001048602", ...: in
 * the order of their names they are the stream, and each offset of the index
 * is found by names alone. An old piece keeps its index,
 * "stdout.000000000000000.idx".
 *
 * The mover cuts, between two moves, so that no byte is on its way: the file
 * gets its new name, the slot of the stream its new start, and only then is
 * there a new "stdout". A kill in between leaves a file with the right bytes
 * under a right name, and whoever goes on appends to the one that is open, or
 * makes "stdout".
 *
 * Readers may be at any piece, and fall behind those that are kept.
 */
#ifndef LAUNCHER_LOG_PIECE_H
#define LAUNCHER_LOG_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include "launcher/log/raw.h"

#define PIECE_SIZE_MIN (64 * 1024) /* a reader's look meets two at most */
#define PIECE_NEAR     (64 * 1024) /* a line end is waited for as long */
#define PIECE_NONE     UINT64_MAX
#define PIECE_NAME     64 /* bytes of a name */

enum piece_rule_verdict {
	PIECE_RULE_OK,
	PIECE_RULE_NONE,  /* neither */
	PIECE_RULE_SIZE,  /* one, but not of a size that may be */
	PIECE_RULE_COUNT, /* the same of the count */
};

/* piece_parse_size() - digits, then k, M, G or T (powers of 1024) or nothing.
 * Returns what follows, or NULL if @text is not a size. A size that is too large
 * is UINT64_MAX. */
const char *piece_parse_size(const char *text, uint64_t *out);

/* piece_rule_parse() - "10M", or "10M,5" with at least 2. */
enum piece_rule_verdict piece_rule_parse(const char *text,
	struct piece_rule *out);

/* piece_name() - of the piece of @named that begins at @start, once cut. */
const char *piece_name(uint32_t named, uint64_t start, char *out,
	unsigned long cap);

/* piece_each() - tell the start of each piece of @named that was cut, in no
 * order. @dir: the attempt folder. False: it cannot be looked into (errno);
 * without a folder there is none. */
typedef void piece_fn(void *ctx, uint64_t start);
bool piece_each(int dir, uint32_t named, piece_fn *fn, void *ctx);

/*
 * piece_room() - how many bytes may go from the pipe of @stream to @file, its
 * newest piece, before piece_room() is to be asked again; 0: cut it first.
 *
 * It is cut behind the first line end at or after the size, or PIECE_NEAR bytes
 * later. The pipe is looked into, and nothing taken from it.
 */
uint64_t piece_room(const struct raw_share *share, uint32_t stream, int file);

/*
 * piece_cut() - begin the newest piece of @stream anew, and remove what is more
 * than the rule keeps. Mover's thread.
 *
 * @file: of the newest piece; the descriptor is of the new one afterwards
 * Returns 0, or -1 with errno: all is as it was
 */
int piece_cut(struct raw_share *share, uint32_t stream, int file);

/* Where a reader is. */
struct piece_at {
	uint64_t offset; /* of the next byte to read */
	uint64_t start;  /* of the piece that holds it */
	uint64_t border; /* start of the next, if it was met; PIECE_NONE */
};

/*
 * piece_read() - up to @cap bytes of @stream, over a border, too. @at is where
 * it was: to move it on is the caller's, see piece_pass().
 *
 * Returns  how many; -1 with errno: ENOENT if that piece is not there (any
 *          more), see piece_after()
 */
ssize_t piece_read(const struct raw_share *share, uint32_t stream,
	struct piece_at *at, char *out, size_t cap);

/* piece_pass() - @used of the bytes that were read are behind the reader. */
void piece_pass(struct piece_at *at, uint64_t used);

/* piece_after() - start of the first piece that is there and begins after
 * @offset; PIECE_NONE: none. */
uint64_t piece_after(const struct raw_share *share, uint32_t stream,
	uint64_t offset);

/* piece_of() - start of the piece that is there and holds @offset; PIECE_NONE:
 * none. */
uint64_t piece_of(const struct raw_share *share, uint32_t stream,
	uint64_t offset);

#endif /* LAUNCHER_LOG_PIECE_H */
