/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dents.h - names in a folder without the heap, as getdents64(2) gives them: for
 * who may have no memory, or goes on where another was killed.
 */
#ifndef BASE_DENTS_H
#define BASE_DENTS_H

#include <stdbool.h>
#include <stdint.h>

struct dent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type; /* DT_DIR, ... */
	char name[];
};

/* Some of a folder; larger folders take several turns. */
struct dents {
	_Alignas(struct dent) char room[4096];
	long len, at;
};

/* dents_read() - the next of @fd. False at the end, or where it cannot be
 * read. */
bool dents_read(struct dents *d, int fd);

/* dents_next() - of what was read; NULL: no more. "." and ".." are left out. */
const struct dent *dents_next(struct dents *d);

#endif /* BASE_DENTS_H */
