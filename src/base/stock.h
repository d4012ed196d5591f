/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stock.h - small memory that is made and let go of a million times a second, often by
 * different threads.
 *
 * malloc() of glibc keeps 7 blocks of a size for each thread; what is beyond that costs 170
 * instructions to make and as many to let go, and what another thread has made goes back
 * to that one's arena by a lock. Here each thread keeps up to two batches of blocks of
 * each size, and takes and gives whole batches. They are cut of slabs of 64 KiB; one of
 * which all blocks have come back, while there are many, is let go.
 *
 * With a sanitizer a block is one of malloc() and free().
 */
#ifndef BASE_STOCK_H
#define BASE_STOCK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STOCK_MOST  504 /* bytes of a block */
#define STOCK_SIZES 31
#define STOCK_BATCH 64 /* blocks */

/* A block that nobody uses. */
struct stock_block {
	struct stock_block *next, *batch;
};

/* What a thread has of one size. */
struct stock_shelf {
	struct stock_block *first;
	uint32_t count;            /* of these, less than a batch */
	struct stock_block *batch; /* a whole one; or NULL */
};

struct stock {
	struct stock_shelf shelf[STOCK_SIZES];
};

/* This thread's; of one that has nothing yet, or no more, one that is always empty. */
extern __thread struct stock *stock_mine
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* stock_place() - sizes are those that malloc() of glibc wastes nothing of: 24, 40, .. */
static inline size_t
stock_place(size_t size)
{
	return (size + 7) / 16 - 1;
}

/* Where the shelf is empty, and where it is full. */
void *stock_fetch(size_t size);
void stock_stow(void *block, size_t size);

/* stock_off() - blocks are those of malloc(), if none was made before: for tests that count
 * what is asked of it. */
void stock_off(void);

/* stock_get() - not zeroed; NULL: no memory. @size: 16 to STOCK_MOST. */
static inline void *
stock_get(size_t size)
{
	struct stock_shelf *s = &stock_mine->shelf[stock_place(size)];
	struct stock_block *b = s->first;

	if (__builtin_expect(b == NULL, 0))
		return stock_fetch(size);
	s->first = b->next;
	s->count--;
	return b;
}

static inline void *
stock_get_zeroed(size_t size)
{
	void *p = stock_get(size);

	return p != NULL ? memset(p, 0, size) : NULL;
}

/* stock_put() - of stock_get(), by any thread, with the same size. */
static inline void
stock_put(void *block, size_t size)
{
	struct stock_shelf *s = &stock_mine->shelf[stock_place(size)];
	struct stock_block *b = block;

	if (__builtin_expect(s->first == NULL || s->count == STOCK_BATCH - 1,
		    0)) {
		stock_stow(block, size);
		return;
	}
	b->next = s->first;
	s->first = b;
	s->count++;
}

#endif /* BASE_STOCK_H */
