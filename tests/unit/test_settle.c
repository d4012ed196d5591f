/* SPDX-License-Identifier: Apache-2.0 */
/* test_settle.c - when no member of a group calls any more. */
#include <criterion/criterion.h>

#include "worker/rpc/settle.h"

static bool
settled(uint64_t active, uint64_t begun, uint64_t active_now,
	uint64_t begun_now)
{
	struct call_sums before = { active, begun };
	struct call_sums now = { active_now, begun_now };

	return call_sums_settled(&before, &now);
}

Test(settle, two_meetings_without_a_call_are_needed)
{
	cr_assert(settled(0, 0, 0, 0));
	cr_assert(settled(0, 7, 0, 7));
	cr_assert_not(settled(0, 7, 0, 8));
	cr_assert_not(settled(0, 7, 1, 7));
	cr_assert_not(settled(0, 7, 1, 8));
}

/* Rank 0 has an active call at the first meeting. Its server says at the second one that it
 * has none, begins one, and answers; then rank 0 says that it has none. */
Test(settle, a_call_that_was_active_at_the_first_meeting_may_have_begun_another)
{
	cr_assert_not(settled(1, 7, 0, 7));
}
