/* SPDX-License-Identifier: Apache-2.0 */
/* test_tally.c - counting up and down, and waiting until there are none. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "worker/rpc/tally.h"
#include "worker/rpc/waiter.h"

TestSuite(tally, .timeout = 20);

static struct tally t;

static void
is(uint32_t count, uint64_t ever)
{
	cr_expect_eq(tally_count(&t), count);
	cr_expect_eq(tally_ever(&t), ever);
}

Test(tally, it_has_what_went_up_and_not_down)
{
	is(0, 0);
	tally_up(&t);
	tally_up(&t);
	is(2, 2);
	tally_down(&t);
	is(1, 2);
	tally_up(&t);
	is(2, 3);
	tally_down(&t);
	tally_down(&t);
	is(0, 3);
}

Test(tally, without_any_nobody_waits)
{
	cr_expect(tally_await(&t, 0));
	cr_expect(tally_await(&t, INT64_MAX));
	cr_expect_null(atomic_load(&t.idle));
	tally_up(&t);
	cr_expect_not(tally_await(&t, clock_now()));
	cr_expect_null(atomic_load(&t.idle));
	tally_down(&t);
	cr_expect(tally_await(&t, 0));
}

/* One goes before the other comes: there never were none. */
static void *
take_turns(void *unused)
{
	while (atomic_load(&t.idle) == NULL)
		sched_yield();
	tally_up(&t);
	tally_down(&t);
	cr_expect_not_null(atomic_load(&t.idle));
	is(1, 2);
	tally_down(&t);
	return unused;
}

Test(tally, who_waits_hears_of_the_last_one)
{
	pthread_t thread;

	tally_up(&t);
	cr_assert_eq(pthread_create(&thread, NULL, take_turns, NULL), 0);
	cr_expect(tally_await(&t, INT64_MAX));
	is(0, 2);
	pthread_join(thread, NULL);
	cr_expect_null(atomic_load(&t.idle));
}
