/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_window.c - bodies that go through windows: in pieces, four at most, and what
 * a peer that lies about its place can do. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "worker/shm/window.h"

#define LONG (5 * (size_t)WINDOW_SIZE + 10)

static struct window *window;
static struct window_end feeder, taker;
static unsigned char *body, *got; /* [LONG], and one more byte of got */

static void
begin(void)
{
	window = aligned_alloc(128, sizeof(*window));
	body = malloc(LONG);
	got = malloc(LONG + 1);
	cr_assert(window != NULL && body != NULL && got != NULL);
	memset(window, 0, sizeof(*window));
	for (size_t i = 0; i < LONG; i++)
		body[i] = (unsigned char)(i * 7 + i / 251);
	memset(got, 0xee, LONG + 1);
	feeder = taker = (struct window_end){ .window = window };
}

static void
end(void)
{
	free(window);
	free(body);
	free(got);
}

TestSuite(shm_window, .timeout = 20, .init = begin, .fini = end);

static void
expect_at(uint64_t fed, uint64_t taken)
{
	cr_expect_eq(atomic_load(&window->fed), fed);
	cr_expect_eq(feeder.at, fed);
	cr_expect_eq(atomic_load(&window->taken), taken);
	cr_expect_eq(taker.at, taken);
}

Test(shm_window, a_long_body_goes_in_pieces_four_at_most)
{
	/* The parts end within pieces, and some are empty. */
	const struct xr_part parts[] = { { body, 0 }, { body, 3 },
		{ body + 3, WINDOW_SIZE }, { NULL, 0 },
		{ body + 3 + WINDOW_SIZE, 2 * WINDOW_SIZE - 3 },
		{ body + 3 * WINDOW_SIZE, LONG - 3 * WINDOW_SIZE } };
	const uint32_t n = sizeof(parts) / sizeof(parts[0]);

	cr_expect_eq(window_take(&taker, got, LONG), WINDOW_SAME);
	cr_expect_eq(window_feed(&feeder, parts, n, LONG), WINDOW_MOVED);
	expect_at(4, 0);
	cr_expect_eq(feeder.done, 4 * WINDOW_SIZE);
	cr_expect_eq(window_feed(&feeder, parts, n, LONG), WINDOW_SAME);
	expect_at(4, 0);
	cr_expect_eq(window_take(&taker, got, LONG), WINDOW_MOVED);
	expect_at(4, 4);
	cr_expect_eq(taker.done, 4 * WINDOW_SIZE);
	cr_expect_eq(got[4 * WINDOW_SIZE], 0xee);
	cr_expect_eq(window_take(&taker, got, LONG), WINDOW_SAME);
	cr_expect_eq(window_feed(&feeder, parts, n, LONG), WINDOW_MOVED);
	expect_at(6, 4);
	cr_expect_eq(feeder.done, LONG);
	cr_expect_eq(window_feed(&feeder, parts, n, LONG), WINDOW_SAME);
	cr_expect_eq(window_take(&taker, got, LONG), WINDOW_MOVED);
	expect_at(6, 6);
	cr_expect_eq(taker.done, LONG);
	cr_expect_eq(window_take(&taker, got, LONG), WINDOW_SAME);
	cr_expect_eq(memcmp(got, body, LONG), 0);
	cr_expect_eq(got[LONG], 0xee);
}

Test(shm_window, a_part_may_be_one_byte)
{
	const struct xr_part parts[] = { { body, 5 }, { body + 5, 1 } };

	cr_expect_eq(window_feed(&feeder, parts, 2, 6), WINDOW_MOVED);
	cr_expect_eq(window_take(&taker, got, 6), WINDOW_MOVED);
	cr_expect_eq(memcmp(got, body, 6), 0);
	cr_expect_eq(got[6], 0xee);
}

/* The next body goes on in the next window, also where a part is longer than the body. */
Test(shm_window, a_further_body_begins_in_the_next_window)
{
	const struct xr_part part = { body, LONG };

	for (uint64_t i = 1; i <= 9; i++) {
		feeder.done = taker.done = 0;
		memset(got, 0xee, 4);
		cr_expect_eq(window_feed(&feeder, &part, 1, 3), WINDOW_MOVED);
		cr_expect_eq(window_take(&taker, got, 3), WINDOW_MOVED);
		expect_at(i, i);
		cr_expect_eq(memcmp(got, body, 3), 0);
		cr_expect_eq(got[3], 0xee);
		cr_expect_eq(memcmp(window->data[(i - 1) % 4], body, 3), 0);
	}
}

Test(shm_window, a_full_window_is_one)
{
	const struct xr_part part = { body, LONG };

	cr_expect_eq(window_feed(&feeder, &part, 1, WINDOW_SIZE), WINDOW_MOVED);
	expect_at(1, 0);
	cr_expect_eq(window_take(&taker, got, WINDOW_SIZE), WINDOW_MOVED);
	expect_at(1, 1);
	cr_expect_eq(memcmp(got, body, WINDOW_SIZE), 0);
	cr_expect_eq(got[WINDOW_SIZE], 0xee);
	feeder.done = taker.done = 0;
	cr_expect_eq(window_feed(&feeder, &part, 1, WINDOW_SIZE + 1),
		WINDOW_MOVED);
	expect_at(3, 1);
}

Test(shm_window, nobody_is_where_he_cannot_be)
{
	const struct xr_part part = { body, LONG };

	feeder.at = 10;
	atomic_store(&window->taken, 5);
	cr_expect_eq(window_feed(&feeder, &part, 1, 1), WINDOW_BROKEN);
	atomic_store(&window->taken, 11);
	cr_expect_eq(window_feed(&feeder, &part, 1, 1), WINDOW_BROKEN);
	cr_expect_eq(feeder.done, 0);
	atomic_store(&window->taken, 6);
	cr_expect_eq(window_feed(&feeder, &part, 1, 1), WINDOW_SAME);
	atomic_store(&window->taken, 10);
	cr_expect_eq(window_feed(&feeder, &part, 1, 1), WINDOW_MOVED);
	taker.at = 10;
	atomic_store(&window->fed, 15);
	cr_expect_eq(window_take(&taker, got, 1), WINDOW_BROKEN);
	atomic_store(&window->fed, 9);
	cr_expect_eq(window_take(&taker, got, 1), WINDOW_BROKEN);
	cr_expect_eq(taker.done, 0);
	atomic_store(&window->fed, 10);
	cr_expect_eq(window_take(&taker, got, 1), WINDOW_SAME);
	atomic_store(&window->fed, 14);
	cr_expect_eq(window_take(&taker, got, 1), WINDOW_MOVED);
	cr_expect_eq(taker.at, 11);
}

Test(shm_window, what_is_given_up_is_skipped)
{
	struct window_end none = { .at = 3 };

	atomic_store(&window->fed, 7);
	taker.at = 4;
	window_skip(&taker);
	cr_expect_eq(taker.at, 7);
	cr_expect_eq(atomic_load(&window->taken), 7);
	window_skip(&none);
	cr_expect_eq(none.at, 3);
}
