/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - the whole lines of a stream with their times, read later.
 *
 * Lines come in runs: those that are there, one behind the other, and came in
 * the same part of the index, so that nothing of another stream belongs between
 * them. A line's time is that of its last byte, and never earlier than that of
 * the line before. A line of any length is held in memory.
 *
 * reader_back() goes the other way, a line a call, from the end: for the last
 * lines of much output. Afterwards reader_go() begins where they begin.
 */
#ifndef LAUNCHER_LOG_READER_H
#define LAUNCHER_LOG_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/log/track.h"

struct reader {
	struct track track;
	uint32_t stream; /* RAW_STREAMS * rank + RAW_OUT or RAW_ERR */
	uint64_t limit;  /* offset from which on nothing is read */
	int64_t since,
		until; /* lines that came earlier or later are left out */
	/* What is read and not used: from `at` on, at offset `offset`. */
	char *data;
	size_t cap, at, len;
	size_t searched; /* bytes from `at` on without a newline */
	uint64_t offset;
	bool over;     /* a line came after @until */
	uint64_t gone; /* bytes that were removed before they were read */
	/* Of reader_next(). */
	struct span run; /* with the last newline, if it has one */
	int64_t when;    /* wall ns */
};

/* reader_init() - at the beginning of what is there. @dir: the attempt folder,
 * borrowed */
void reader_init(struct reader *r, int dir, uint32_t stream);
void reader_fini(struct reader *r);

/* reader_go() - on from @offset, the beginning of a line. */
void reader_go(struct reader *r, uint64_t offset);

/*
 * reader_next() - the next run, by what is there now; false: none.
 *
 * @last: nobody writes any more, so a line without its newline is one, too
 * The run borrows from the reader, up to reader_took().
 */
bool reader_next(struct reader *r, bool last);

/* reader_took() - the run is done with. */
void reader_took(struct reader *r);

/*
 * reader_rest() - what stands behind the last newline, after reader_next() returned
 * false: an unfinished line as it is now; empty if there is none.
 *
 * The bytes borrow from the reader. @when receives the time of the last of them.
 */
struct span reader_rest(struct reader *r, int64_t *when);

/* reader_skip() - the first @len bytes of the rest are done with. What follows is
 * the end of that line. */
void reader_skip(struct reader *r, size_t len);

/* A line before those that were met. */
struct back {
	struct track *track;
	uint64_t first; /* offset at which the stream begins, by now */
	char *data;     /* what is read: from @begin to @end */
	size_t cap, begin, end;
	uint64_t offset; /* of data[begin] */
	/* Of back_line(). */
	uint64_t at;      /* offset of its beginning */
	struct span line; /* with its newline, if it has one */
	int64_t when;
};

/*
 * back_init() - before @offset, which is at most the end of the stream.
 *
 * @whole: what is before it is a line, though it may have no newline; else that
 *         is passed over
 */
void back_init(struct back *b, struct track *track, uint64_t offset,
	bool whole);
void back_fini(struct back *b);

/* back_line() - the line before; false: there is none, and `at` is where the
 * last one begins. The line borrows up to the next call. */
bool back_line(struct back *b);

#endif /* LAUNCHER_LOG_READER_H */
