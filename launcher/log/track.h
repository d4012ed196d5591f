/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track.h - the files of one stream, for who reads them beside the job, or
 * after it.
 *
 * Whoever reads here shares nothing with the job: what there is, is found by
 * names (piece.h), and looked for again when a file ends or is away. One piece
 * is open at a time, and read with pread(2) at offsets of the stream; its bytes
 * stay there for us though the job removes it. One owner, one thread.
 *
 * Where a piece ends only its follower's name tells, or the lack of one: the
 * newest bears no offset, so it is opened first, then the others are counted,
 * and then it must still be the newest.
 */
#ifndef LAUNCHER_LOG_TRACK_H
#define LAUNCHER_LOG_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include "launcher/log/stamps.h"

struct track {
	int dir;        /* the attempt folder; borrowed */
	uint32_t named; /* see raw.h */
	/* Pieces that were there at the last look, in order. */
	uint64_t *piece;
	size_t count;
	bool listed;
	/* The one that is open. */
	int fd;          /* -1: none */
	bool newest;     /* it bears the stream's own name */
	uint64_t start;  /* offset of its first byte */
	uint64_t end;    /* behind its last, when it was looked at */
	int64_t changed; /* wall ns of its last byte, then */
	struct stamps stamps;
	uint64_t bytes; /* that were read so far */
	int sys; /* why some of it could not be opened, though it is there */
};

void track_init(struct track *t, int dir, uint32_t named);
void track_fini(struct track *t);

/*
 * track_more() - is there a byte at @offset, by now? Opens the piece that holds
 * it.
 *
 * @offset: where it was removed, that of the first byte there is behind it
 */
bool track_more(struct track *t, uint64_t *offset);

/* track_first() - offset of the first byte that was there at the last look for
 * pieces, track_end() - behind the last that is there; 0 where there is none. */
uint64_t track_first(struct track *t);
uint64_t track_end(struct track *t);

/* track_read() - up to @cap bytes from @offset on, of the piece that is open;
 * 0 if they are not in it. */
size_t track_read(struct track *t, uint64_t offset, char *out, size_t cap);

/* track_since() - offset of the first byte that came at @ns or later; track_end()
 * if none did. */
uint64_t track_since(struct track *t, int64_t ns);

#endif /* LAUNCHER_LOG_TRACK_H */
