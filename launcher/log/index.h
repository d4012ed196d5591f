/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - when which part of a raw file was written.
 *
 * Records of {u64 end offset, i64 wall ns}, at most one per 10 ms. The first
 * is held back until a second comes: most ranks write in one burst, whose time
 * the file's own stamp tells as well. One thread: the mover.
 */
#ifndef LAUNCHER_LOG_INDEX_H
#define LAUNCHER_LOG_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define INDEX_STEP_NS 10000000LL

struct index_record {
	uint64_t end; /* bytes of the file that existed by then */
	int64_t ns;   /* clock_wall() */
};

struct index {
	struct index_record held; /* not in the file yet; ns 0: none */
	bool file;                /* the file exists */
};

/* index_moved() - the file of @named has @end bytes, the last at @ns. */
void index_moved(struct index *index, int dir, uint32_t named, uint64_t end,
	int64_t ns);

/* index_cut() - that file is a piece by now, which begins at @start; its index
 * goes with it. */
void index_cut(struct index *index, int dir, uint32_t named, uint64_t start);

/* index_finish() - the stream ended: what is held goes to the file, if any. */
void index_finish(struct index *index, int dir, uint32_t named);

#endif /* LAUNCHER_LOG_INDEX_H */
