/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stamps.h - when the bytes of a raw file came, for who reads it later.
 *
 * Reads what index.h writes, with pread(2) and a few records at a time: an
 * index of many hours is megabytes. The mover holds the last record back, so
 * the bytes behind all records came within 10 ms, and the file's own time of
 * modification is theirs.
 *
 * A time is that of the part a byte is in: of parts of at least 10 ms, the
 * beginning. What the file says is taken as it is; a damaged one gives wrong
 * times, never a wrong place. One owner, one thread.
 */
#ifndef LAUNCHER_LOG_STAMPS_H
#define LAUNCHER_LOG_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/log/index.h"

#define STAMPS_HELD 64 /* records */

struct stamps {
	int fd;         /* -1: there is no index */
	uint64_t count; /* records, when it was looked at */
	uint64_t known; /* offset behind the last of them */
	int64_t rest;   /* wall ns of what no record tells of */
	uint64_t first; /* number of record[0] */
	uint32_t held;
	struct index_record record[STAMPS_HELD];
};

#define STAMPS_NONE ((struct stamps){ .fd = -1 })

/* stamps_look() - how much the index @name in @dir tells by now; opens it if
 * it is there. @rest is for what it does not: of the file, looked at before.
 * False: it is there and cannot be opened (errno). */
bool stamps_look(struct stamps *s, int dir, const char *name, int64_t rest);

/* stamps_when() - wall ns of the byte at @offset. @end receives the offset
 * behind those that came with it; UINT64_MAX: all that follow. */
int64_t stamps_when(struct stamps *s, uint64_t offset, uint64_t *end);

/* stamps_since() - offset of the first byte that came at @ns or later;
 * UINT64_MAX: there is none. 0 stands for the file's first. */
uint64_t stamps_since(struct stamps *s, int64_t ns);

void stamps_close(struct stamps *s);

#endif /* LAUNCHER_LOG_STAMPS_H */
