/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - lines that a reader can check: who wrote them, in what order, whole.
 *
 * A line is "RANK:STREAM:SEQ:CHECK FILL\n". STREAM is 1 or 2, SEQ counts from 0
 * per rank and stream, CHECK covers everything but itself. The bytes depend on
 * nothing else, so a second run makes the same file. FILL is letters, or in a
 * wild line any byte but a newline and a carriage return, which xrun takes for
 * progress: NUL, broken UTF-8, escapes.
 */
#ifndef TESTS_PROG_LINE_H
#define TESTS_PROG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_HEAD_MAX 64             /* bytes a line may have beyond its fill */
#define LINE_WILD_MAX (200UL * 1000) /* longest fill of a wild line */

struct line_maker {
	int64_t rank;
	int stream;
	size_t size;        /* bytes wanted with the newline; at least a head */
	uint64_t random;    /* state for wild lines; not 0 */
	char *fill;         /* room for the longest fill */
	size_t fill_len;    /* what fill_hash is of */
	uint64_t fill_hash; /* the fill seldom changes its length */
};

/* line_init() - @size bytes a line; @seed is 0 for plain lines. */
void line_init(struct line_maker *m, int64_t rank, int stream, size_t size,
	uint64_t seed);
void line_fini(struct line_maker *m);

/* line_make() - line @seq into @out, which has room for LINE_HEAD_MAX and the
 * longest fill. Returns its length with the newline. */
size_t line_make(struct line_maker *m, uint64_t seq, char *out);

/* line_random() - the next of a fixed sequence per state; never 0 for state. */
uint64_t line_random(uint64_t *state);

struct line_seen {
	int64_t rank;
	int stream;
	uint64_t seq;
};

/* line_read() - true if [at, at + len), without newline, is a whole line. */
bool line_read(const char *at, size_t len, struct line_seen *seen);

#endif /* TESTS_PROG_LINE_H */
