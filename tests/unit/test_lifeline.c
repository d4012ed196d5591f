/* SPDX-License-Identifier: Apache-2.0 */
/* test_lifeline.c - the order in which ranks close their lifelines (launcher/sup/lifeline.h). */
#include <unistd.h>

#include <criterion/criterion.h>

#include "launcher/sup/lifeline.h"

#define RANKS 3

static void
expect_order(struct lifelines *l, const uint32_t want[RANKS])
{
	uint32_t order[RANKS];

	lifelines_order(l, order);
	for (int i = 0; i < RANKS; i++)
		cr_expect_eq(order[i], want[i], "rank %d: %u", i, order[i]);
}

Test(lifeline, ranks_are_in_the_order_in_which_they_closed)
{
	static struct lifelines *l;
	int fd[RANKS];

	l = lifelines_open(RANKS);
	cr_assert_not_null(l);
	for (uint32_t i = 0; i < RANKS; i++)
		fd[i] = lifelines_add(l, i);
	expect_order(l, (uint32_t[]){ 0, 0, 0 });
	close(fd[2]);
	expect_order(l, (uint32_t[]){ 0, 0, 1 });
	close(fd[0]);
	expect_order(l, (uint32_t[]){ 2, 0, 1 });
	lifelines_drop(l, 2);
	expect_order(l, (uint32_t[]){ 1, 0, 0 });
	close(fd[1]);
	expect_order(l, (uint32_t[]){ 1, 2, 0 });
}

Test(lifeline, a_rank_that_is_started_again_has_a_new_one)
{
	static struct lifelines *l;
	int first, second;

	l = lifelines_open(RANKS);
	cr_assert_not_null(l);
	first = lifelines_add(l, 1);
	second = lifelines_add(l, 1);
	close(first);
	expect_order(l, (uint32_t[]){ 0, 0, 0 });
	close(second);
	expect_order(l, (uint32_t[]){ 0, 1, 0 });
}
