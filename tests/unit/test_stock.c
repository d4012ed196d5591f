/* SPDX-License-Identifier: Apache-2.0 */
/* test_stock.c - small memory, by several threads. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/stock.h"
#include "tests/unit/forked.h"

TestSuite(stock, .timeout = 60);

#define MANY 300000

static void *blocks[MANY];

/* Each with its number everywhere: who has a part of another one is found out. */
static bool
fill(size_t size)
{
	for (size_t i = 0; i < MANY; i++) {
		blocks[i] = stock_get(size);
		if (blocks[i] == NULL || (uintptr_t)blocks[i] % 8 != 0)
			return false;
		memset(blocks[i], (int)(i % 251), size);
	}
	return true;
}

static bool
empty(size_t size)
{
	for (size_t i = 0; i < MANY; i++) {
		const unsigned char *b = blocks[i];

		if (b[0] != i % 251 || b[size - 1] != i % 251)
			return false;
		stock_put(blocks[i], size);
	}
	return true;
}

FORKED_TEST(stock, blocks_have_nothing_in_common)
{
	static const size_t sizes[] = { 16, 24, 25, 40, 88, 504 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		EXPECT(fill(sizes[i]));
		EXPECT(empty(sizes[i]));
	}
}

/* What malloc(3) has given out. Whether a large block is mapped on its own depends on what
 * the process has freed before. */
static size_t
in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

#ifndef __SANITIZE_ADDRESS__ /* there nothing is kept */
FORKED_TEST(stock, what_has_come_back_is_let_go)
{
	size_t begun = in_use(), most;

	EXPECT(fill(504));
	most = in_use() - begun;
	EXPECT(empty(504));
	EXPECT(most >= MANY * (size_t)504);
	/* 32 MiB of batches are kept, which lie wherever. */
	EXPECT(in_use() - begun < most / 2);
}
#endif

static void *
let_go(void *size)
{
	return empty(*(size_t *)size) ? blocks : NULL;
}

FORKED_TEST(stock, another_thread_may_let_go)
{
	size_t size = 24, most = 0;
	pthread_t thread;
	void *well;

	for (int turn = 0; turn < 4; turn++) {
		EXPECT(fill(size));
		EXPECT(pthread_create(&thread, NULL, let_go, &size) == 0);
		EXPECT(pthread_join(thread, &well) == 0 && well != NULL);
		if (turn == 0)
			most = in_use();
	}
	/* And what it had when it ended is there for others. */
	EXPECT(in_use() < most + (1 << 20));
}

#ifndef __SANITIZE_ADDRESS__
/* Under AddressSanitizer stock uses malloc() alone, and the allocator of gcc 12's libasan does not
 * release its locks in a child of fork(). */
static void *
make_one(void *unused)
{
	void *b = stock_get(40);

	(void)unused;
	stock_put(b, 40);
	return b;
}

/* Another thread may have the lock at that moment. */
FORKED_TEST(stock, a_child_of_fork_has_memory)
{
	pthread_t thread;
	int status = 1;
	pid_t pid;

	EXPECT(pthread_create(&thread, NULL, make_one, NULL) == 0);
	pid = fork();
	if (pid == 0)
		_exit(fill(40) && empty(40) ? 0 : 1);
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
}

static uint32_t
shelf_length(size_t place)
{
	uint32_t n = 0;

	for (const struct stock_block *b = stock_mine->shelf[place].first;
		b != NULL && n < 1000; b = b->next)
		n++;
	return n;
}

/* The batch that it takes has 64 blocks, of which one is given out. */
FORKED_TEST(stock, a_thread_takes_blocks_by_batches)
{
	static void *taken[3 * STOCK_BATCH];
	const size_t place = stock_place(40);

	for (uint32_t i = 0; i < STOCK_BATCH; i++) {
		taken[i] = stock_get(40);
		EXPECT_EQ(shelf_length(place), STOCK_BATCH - 1 - i);
		EXPECT_EQ(stock_mine->shelf[place].count, STOCK_BATCH - 1 - i);
		EXPECT(stock_mine->shelf[place].batch == NULL);
	}
	for (uint32_t i = STOCK_BATCH; i < 3 * STOCK_BATCH; i++)
		taken[i] = stock_get(40);
	EXPECT_EQ(shelf_length(place), 0);
	/* Of those that come back a whole batch is kept beside less than one. */
	for (uint32_t i = 0; i < STOCK_BATCH - 1; i++)
		stock_put(taken[i], 40);
	EXPECT_EQ(shelf_length(place), STOCK_BATCH - 1);
	EXPECT(stock_mine->shelf[place].batch == NULL);
	stock_put(taken[STOCK_BATCH - 1], 40);
	EXPECT_EQ(shelf_length(place), 0);
	EXPECT_EQ(stock_mine->shelf[place].count, 0);
	EXPECT(stock_mine->shelf[place].batch == taken[STOCK_BATCH - 1]);
	for (uint32_t i = STOCK_BATCH; i < 3 * STOCK_BATCH; i++)
		stock_put(taken[i], 40);
	EXPECT(stock_mine->shelf[place].batch == taken[3 * STOCK_BATCH - 1]);
	/* The last batch first, and of others the one that was put back last. */
	for (uint32_t i = 3 * STOCK_BATCH; i-- > 0;)
		EXPECT(stock_get(40) == taken[i]);
	EXPECT_EQ(shelf_length(place), 0);
}
#endif
