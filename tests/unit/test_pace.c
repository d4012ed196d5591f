/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - how long steps take, and who is slow. */
#include <math.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/stat/pace.h"

/* Tells of @n steps, @ms apart, beginning with step @from at @at ms. */
static void
go(struct pace *p, int64_t from, unsigned n, int64_t at, int64_t ms)
{
	for (unsigned i = 0; i < n; i++)
		pace_note(p, from + i, (at + i * ms) * NS_PER_MS);
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

Test(pace, nothing_is_said_of_a_few_steps)
{
	struct pace p = { 0 };

	cr_assert(isnan(pace_median(NULL)));
	cr_assert(isnan(pace_median(&p)));
	go(&p, 1, PACE_LEAST, 1000, 10); /* one time less */
	cr_assert(isnan(pace_median(&p)));
	go(&p, PACE_LEAST + 1, 1, 1000 + PACE_LEAST * 10, 10);
	cr_assert(near(pace_median(&p), 0.01));
}

Test(pace, one_long_step_changes_nothing)
{
	struct pace p = { 0 };

	go(&p, 1, 8, 1000, 10);
	go(&p, 9, 8, 9000, 10);
	cr_assert(near(pace_median(&p), 0.01));
}

Test(pace, only_the_last_steps_count)
{
	struct pace p = { 0 };

	go(&p, 1, 100, 1000, 10);
	go(&p, 101, PACE_STEPS + 1, 5000, 20);
	cr_assert(near(pace_median(&p), 0.02));
}

Test(pace, steps_that_are_told_of_together_share_their_time)
{
	struct pace p = { 0 };

	for (int i = 0; i < 10; i++)
		pace_note(&p, i * 100, (1000 + i * 500) * NS_PER_MS);
	cr_assert(near(pace_median(&p), 0.005));
}

Test(pace, a_step_that_is_told_again_is_no_step)
{
	struct pace p = { 0 };

	for (int i = 0; i < 40; i++)
		pace_note(&p, i / 2, (1000 + i * 10) * NS_PER_MS);
	cr_assert(near(pace_median(&p), 0.02));
}

Test(pace, who_goes_back_begins_anew)
{
	struct pace p = { 0 };

	go(&p, 100, 20, 1000, 10);
	go(&p, 1, 3, 5000, 10);
	cr_assert(isnan(pace_median(&p)));
}

Test(pace, numbers_of_any_size_are_no_overflow)
{
	struct pace p = { 0 };

	for (int i = 0; i < 20; i++)
		pace_note(&p, i % 2 ? INT64_MAX : INT64_MIN, i + 1);
	cr_assert(isnan(pace_median(&p)));
}

#define N 8

static struct pace_slow
compare(const double *m, uint32_t n, bool *slow)
{
	double room[64];

	return pace_compare(m, n, slow, room);
}

Test(pace, the_one_that_takes_twice_as_long_is_slow)
{
	const double m[N] = { 0.1, 0.11, 0.1, 0.09, 0.1, 0.2, 0.1, 0.11 };
	bool slow[N];
	struct pace_slow s = compare(m, N, slow);

	cr_assert_eq(s.count, 1);
	cr_assert_eq(s.worst, 5);
	cr_assert(near(s.usual, 0.1));
	for (int i = 0; i < N; i++)
		cr_assert_eq(slow[i], i == 5);
}

Test(pace, equal_ranks_are_not_told_apart_by_little)
{
	const double m[N] = { 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.149 };
	bool slow[N];

	cr_assert_eq(compare(m, N, slow).count, 0);
}

Test(pace, where_all_differ_nobody_is_slow)
{
	const double m[N] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8 };
	bool slow[N];

	cr_assert_eq(compare(m, N, slow).count, 0);
}

Test(pace, the_slowest_may_be_the_first)
{
	const double m[N] = { 0.1, 0.7, 0.1, 0.1, 0.1, 0.5, 0.7, 0.1 };
	bool slow[N];
	struct pace_slow s = compare(m, N, slow);

	cr_assert_eq(s.count, 3);
	cr_assert_eq(s.worst, 1);
}

Test(pace, of_two_nobody_knows_which_is_slow)
{
	const double m[4] = { 0.1, NAN, 0.9, NAN };
	bool slow[4] = { true, true, true, true };
	struct pace_slow s = compare(m, 4, slow);

	cr_assert_eq(s.count, 0);
	cr_assert(isnan(s.usual));
	for (int i = 0; i < 4; i++)
		cr_assert_not(slow[i]);
}

Test(pace, a_minority_of_slow_ranks_is_found_whole)
{
	const double m[N] = { 0.1, 0.5, 0.1, 0.1, 0.1, NAN, 0.7, 0.1 };
	bool slow[N];
	struct pace_slow s = compare(m, N, slow);

	cr_assert_eq(s.count, 2);
	cr_assert_eq(s.worst, 6);
	cr_assert(slow[1] && slow[6] && !slow[5]);
}

Test(pace, a_quick_rank_is_not_slow)
{
	const double m[4] = { 0.1, 0.1, 0.001, 0.1 };
	bool slow[4];

	cr_assert_eq(compare(m, 4, slow).count, 0);
}
