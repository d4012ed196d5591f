/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.h - the last lines, which equal ones of other ranks may still join.
 *
 * Ranks that do the same say the same, at nearly the same time. A line that
 * came within BURST_NS of an equal one of another rank becomes one more rank
 * of that. The order in which a stream said its lines is kept: it joins a line
 * only if it said nothing behind that yet. One thread.
 */
#ifndef LAUNCHER_LOG_BURST_H
#define LAUNCHER_LOG_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/ranks.h"

#define BURST_LINES 64
#define BURST_NS    100000000LL

struct burst_line {
	struct buf text; /* without its newline */
	uint64_t number; /* counted from 1 */
	int64_t ns;      /* when it came, by the clock of the caller */
	int64_t wall;    /* for its prefix */
	uint32_t stream; /* that said it first */
	uint32_t members;
	struct ranks set; /* of them; once there are two */
	bool out;         /* it was put out */
	bool wider;       /* and more have joined since */
	uint32_t rows;    /* that it takes there; 0: unknown */
};

struct burst {
	struct burst_line line[BURST_LINES]; /* a ring */
	uint32_t head, count;
	uint64_t last;         /* number of the last line */
	uint64_t *said;        /* [streams]: number of the last line it is in */
	uint32_t first, ranks; /* here, of the job */
	uint32_t streams;      /* a rank */
};

/* burst_init() - @ranks from @first on, of @streams each; false: no memory. */
bool burst_init(struct burst *burst, uint32_t first, uint32_t ranks,
	uint32_t streams);
void burst_fini(struct burst *burst);

/* burst_at() - the line at @i, the oldest first. */
struct burst_line *burst_at(struct burst *burst, uint32_t i);

/* burst_join() - @stream said @text, too; false: it needs a line of its own. */
bool burst_join(struct burst *burst, uint32_t stream, struct span text,
	int64_t now);

/* burst_add() - a line of @stream; takes what @text holds and leaves it empty.
 * There must be room for it. */
struct burst_line *burst_add(struct burst *burst, uint32_t stream,
	struct buf *text, int64_t now);

/* burst_drop() - the oldest @count lines are final. */
void burst_drop(struct burst *burst, uint32_t count);

#endif /* LAUNCHER_LOG_BURST_H */
