/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - the lines of several streams, in the order of their times.
 *
 * Lines of one time are in the order of streams. The order is as fine as the
 * index: 10 ms. One owner, one thread.
 */
#ifndef LAUNCHER_LOG_MERGE_H
#define LAUNCHER_LOG_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/log/reader.h"

/* Readers that have a run, the earliest first: a heap. */
struct merge {
	struct reader **reader;
	size_t count, cap;
};

/* merge_add() - @r, which is not in it, if it has a run by now. @last as of
 * reader_next(). */
void merge_add(struct merge *m, struct reader *r, bool last);

/* merge_first() - the reader whose run is next; NULL: there is none. */
struct reader *merge_first(const struct merge *m);

/* merge_took() - that run is done with. */
void merge_took(struct merge *m, bool last);
void merge_fini(struct merge *m);

/* Which of the last lines are wanted. */
struct merge_tail {
	uint64_t lines;
	int64_t since; /* and none that came earlier; INT64_MIN */
	bool last;     /* as of reader_next() */
	/* Which lines count; NULL: all. */
	bool (*wanted)(void *ctx, struct span line);
	void *ctx;
};

/*
 * merge_tail() - let @readers, of which there are @count, begin with the last
 * lines that their limits and times leave.
 *
 * Reads back from the end, no further than to the first line that is wanted.
 * Returns true if there are fewer lines than that: all there is will be read
 */
bool merge_tail(struct reader *readers, size_t count,
	const struct merge_tail *tail);

#endif /* LAUNCHER_LOG_MERGE_H */
