/* SPDX-License-Identifier: Apache-2.0 */
/* test_timer.c - many timers at once, and how late one was; see test_loop.c. */
#include <poll.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/loop.h"

static struct loop *loop;

static void
prepare(void)
{
	loop = loop_new();
	cr_assert_not_null(loop);
}

static void
finish(void)
{
	loop_free(loop);
}

TestSuite(timer, .init = prepare, .fini = finish, .timeout = 30);

static void
stop_it(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

/* A busy machine makes it late, too, but never by as much as we do here. */
Test(timer, a_timer_knows_how_late_it_was)
{
	struct timer *t = timer_open(loop, stop_it, NULL);
	int64_t begun = clock_now();

	timer_arm(t, NS_PER_MS);
	poll(NULL, 0, 500);
	loop_run(loop);
	cr_expect_geq(timer_late(t), 498 * NS_PER_MS);
	cr_expect_leq(timer_late(t), clock_now() - begun - NS_PER_MS);
	begun = clock_now();
	timer_arm(t, NS_PER_MS);
	loop_run(loop);
	cr_expect_leq(timer_late(t), clock_now() - begun - NS_PER_MS);
	timer_close(t);
}

/* The time that the loop sees as long as it is not 0. */
static int64_t frozen_ns;

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return frozen_ns != 0 ? frozen_ns : __real_clock_now();
}

static uint32_t order;

static void
count_place(void *ctx)
{
	*(uint32_t *)ctx = ++order;
}

Test(timer, timers_fire_in_the_order_of_their_times)
{
	uint32_t place[40] = { 0 };
	struct timer *t[40], *last = timer_open(loop, stop_it, NULL);

	order = 0;
	/* All spans begin at one instant, also on a loaded machine. */
	frozen_ns = clock_now();
	for (int i = 0; i < 40; i++) {
		t[i] = timer_open(loop, count_place, &place[i]);
		timer_arm(t[i], (1 + i * 7 % 40) * NS_PER_MS);
	}
	timer_disarm(t[0]);
	timer_arm(last, 60 * NS_PER_MS);
	frozen_ns = 0;
	loop_run(loop);
	cr_expect_eq(order, 39);
	cr_expect_eq(place[0], 0);
	for (int i = 1; i < 40; i++)
		cr_expect_eq((int)place[i], i * 7 % 40, "%d", i);
	for (int i = 0; i < 40; i++)
		timer_close(t[i]);
	timer_close(last);
}
