/* SPDX-License-Identifier: Apache-2.0 */
/* test_again.c - which failures are counted, and how long is paused. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/job/again.h"

static struct again
fresh(void)
{
	return (struct again){ .best = -1 };
}

static bool
fails(struct again *a, uint32_t most, int64_t window, int64_t now, int64_t best)
{
	const struct again_rule rule = { .most = most, .window_ns = window };

	again_judge(a, &rule, now, best, 0);
	return a->due != 0;
}

Test(again, nothing_begins_again_unless_it_was_asked_for)
{
	struct again a = fresh();

	cr_assert(!fails(&a, 0, 0, 1, -1));
	cr_assert_eq(a.spent, 0);
	cr_assert_eq(a.restarts, 0);
}

Test(again, as_many_failures_as_were_asked_for_and_no_more)
{
	struct again a = fresh();

	for (uint32_t i = 0; i < 3; i++)
		cr_assert(fails(&a, 3, 0, i, -1));
	cr_assert(!fails(&a, 3, 0, 3, -1));
	cr_assert_eq(a.spent, 1);
	cr_assert_eq(a.restarts, 3);
}

Test(again, the_first_is_at_once_and_pauses_double_up_to_half_a_minute)
{
	static const int want[] = { 0, 1, 2, 4, 8, 16, 30, 30, 30 };
	struct again a = fresh();

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		cr_assert(fails(&a, 100, 0, i, -1));
		cr_assert_eq(a.pause_ns, want[i] * NS_PER_S, "%u", i);
	}
}

Test(again, chance_adds_a_tenth_at_most)
{
	const struct again_rule rule = { .most = 9 };
	struct again a = fresh();

	again_judge(&a, &rule, 0, -1, 7);
	for (uint32_t random = 0; random < 5000; random += 37) {
		a.counted = 1;
		again_judge(&a, &rule, 0, -1, random);
		cr_assert_geq(a.pause_ns, NS_PER_S);
		cr_assert_leq(a.pause_ns, NS_PER_S + NS_PER_S / 10);
	}
}

Test(again, a_step_beyond_all_before_forgets_the_failures)
{
	struct again a = fresh();

	cr_assert(fails(&a, 1, 0, 0, 10));
	cr_assert(fails(&a, 1, 0, NS_PER_S, 11));
	cr_assert_eq(a.pause_ns, 0);
	cr_assert(!fails(&a, 1, 0, 2, 11), "the same step is no progress");
	cr_assert(!fails(&a, 1, 0, 3, 5));
	cr_assert(fails(&a, 1, 0, 4, 12));
}

Test(again, attempts_that_end_at_once_begin_one_in_a_second)
{
	struct again a = fresh();

	cr_assert(fails(&a, 1, 0, 50, 1));
	cr_assert_eq(a.pause_ns, 0);
	cr_assert(fails(&a, 1, 0, 50 + NS_PER_S / 4, 2));
	cr_assert_eq(a.counted, 1);
	cr_assert_eq(a.pause_ns, NS_PER_S / 4 * 3);
	cr_assert(fails(&a, 1, 0, 50 + NS_PER_S / 4 + NS_PER_S, 3));
	cr_assert_eq(a.pause_ns, 0);
}

Test(again, what_is_older_than_the_window_is_forgotten)
{
	struct again a = fresh();

	cr_assert(fails(&a, 2, 100, 0, -1));
	cr_assert(fails(&a, 2, 100, 60, -1));
	cr_assert(!fails(&a, 2, 100, 100, -1), "both are inside");
	cr_assert(fails(&a, 2, 100, 101, -1), "the first is not");
	cr_assert_eq(a.counted, 2);
	cr_assert_eq(a.failed_ns[0], 60);
}

Test(again, the_table_is_never_overrun)
{
	struct again a = fresh();

	for (uint32_t i = 0; i < AGAIN_MOST; i++)
		cr_assert(fails(&a, UINT32_MAX, 0, i, -1));
	cr_assert(!fails(&a, UINT32_MAX, 0, AGAIN_MOST, -1));
}

Test(again, what_somebody_asks_for_is_at_once_and_not_counted)
{
	struct again a = fresh();

	cr_assert(fails(&a, 2, 0, 0, -1));
	cr_assert(fails(&a, 2, 0, 0, -1));
	again_asked(&a);
	cr_assert_eq(a.due, 1);
	cr_assert_eq(a.pause_ns, 0);
	cr_assert_eq(a.counted, 2);
	cr_assert_eq(a.restarts, 3);
}

Test(again, the_last_attempts_are_remembered_in_order)
{
	struct again a = fresh();
	struct again_past p = { .exit_status = 1 };

	cr_assert_null(again_each(&a, 0));
	for (p.number = 0; p.number < AGAIN_PAST + 5; p.number++)
		again_note(&a, &p);
	for (uint32_t i = 0; i < AGAIN_PAST; i++)
		cr_assert_eq(again_each(&a, i)->number, i + 5);
	cr_assert_null(again_each(&a, AGAIN_PAST));
}

Test(again, what_is_due_may_be_cancelled)
{
	struct again a = fresh();

	cr_assert(!again_is_due(&a));
	cr_assert(fails(&a, 2, 0, 0, -1));
	cr_assert(again_is_due(&a));
	again_cancel(&a);
	cr_assert(!again_is_due(&a));
	cr_assert_eq(a.restarts, 0);
	again_cancel(&a);
	cr_assert_eq(a.restarts, 0, "there is none to cancel");
}
