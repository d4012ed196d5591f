/* SPDX-License-Identifier: Apache-2.0 */
/* test_lead.c - what a process that leads, or does not, says to those who may wake
 * it; see worker/rpc/lead.h. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/lead_inner.h"

TestSuite(lead, .timeout = 60);

static struct segment_bell bell;
static _Atomic uint32_t awaits;
static _Atomic uint32_t reads; /* of the source */
static struct waiter *_Atomic answer_for;

static void
nothing(void)
{
}

static int64_t
expire(void *ctx, int64_t now)
{
	(void)ctx;
	(void)now;
	return INT64_MAX;
}

/* Brings one answer, to whom it is for. */
static uint32_t
progress(void *self, uint32_t budget)
{
	struct waiter *w = atomic_exchange(&answer_for, NULL);

	(void)self;
	(void)budget;
	atomic_fetch_add(&reads, 1);
	if (w != NULL)
		waiter_done(w);
	return w != NULL;
}

static void
open_lead(void)
{
	static const struct crew_first first = { nothing, nothing };
	const struct lead_place place = {
		.bell = &bell,
		.awaits = &awaits,
		.expire = expire,
		.work = crew_has_work,
	};

	lead_open(&place);
	lead_add((struct lead_source){ progress, NULL });
	cr_assert_eq(crew_open(2, &first), 0);
}

static void
close_lead(void)
{
	crew_close(0, NULL);
	lead_close();
}

/* The crew has looked in vain, and keeps watch. */
static void
await_armed(void)
{
	while (atomic_load(&bell.asleep) == 0)
		sched_yield();
}

/* Rings, and waits for the read that follows. */
static void
ring(void)
{
	uint32_t before = atomic_load(&reads);

	bell_ring(&bell, NULL, true);
	while (atomic_load(&reads) == before)
		sched_yield();
}

Test(lead, answers_ring_only_while_somebody_who_does_not_look_awaits_one)
{
	open_lead();
	await_armed();
	cr_expect_eq(atomic_load(&awaits), 0);

	lead_asked();
	cr_expect_neq(atomic_load(&awaits), 0);

	/* Also of the naps that follow. */
	lead_expect();
	lead_decline();
	await_armed();
	cr_expect_neq(atomic_load(&awaits), 0);

	lead_answered();
	lead_expect();
	lead_decline();
	await_armed();
	cr_expect_eq(atomic_load(&awaits), 0);
	close_lead();
}

Test(lead, who_waits_and_looks_needs_no_ring_and_who_dozed_off_does)
{
	struct waiter at_once = { 0 }, late = { 0 };

	open_lead();
	await_armed();
	atomic_store(&answer_for, &at_once);
	cr_expect(lead_wait(&at_once, NULL, INT64_MAX));
	await_armed();
	cr_expect_eq(atomic_load(&awaits), 0);

	/* It dozes off, and its time is over. */
	cr_expect(!lead_wait(&late, NULL, clock_now() + 50 * NS_PER_MS));
	await_armed();
	lead_expect();
	lead_decline();
	await_armed();
	cr_expect_eq(atomic_load(&awaits), 0);
	close_lead();
}

static void *
doze(void *arg)
{
	lead_wait(arg, NULL, INT64_MAX);
	return NULL;
}

Test(lead, an_answer_wakes_one_that_dozes)
{
	struct waiter w = { 0 };
	pthread_t thread;

	open_lead();
	cr_assert_eq(pthread_create(&thread, NULL, doze, &w), 0);
	while (atomic_load(&awaits) == 0)
		sched_yield();
	atomic_store(&answer_for, &w);
	bell_ring_if(&awaits, &bell, NULL, true);
	pthread_join(thread, NULL);
	cr_expect(waiter_is_done(&w));
	close_lead();
}

static void
count_catch_up(void *self)
{
	(*(_Atomic uint32_t *)self)++;
}

Test(lead, catching_up_waits_for_threads_that_read_by_themselves)
{
	_Atomic uint32_t calls = 0;

	open_lead();
	lead_add_thread((struct lead_thread_source){ count_catch_up, &calls });
	lead_poll();
	cr_expect_eq(calls, 0);
	lead_catch_up();
	cr_expect_eq(calls, 1);
	lead_decline();
	close_lead();
}

Test(lead, the_watch_reads_when_it_is_rung)
{
	open_lead();
	for (int i = 0; i < 100; i++) {
		await_armed();
		ring();
	}
	close_lead();
}

/* --- without a crew ------------------------------------------------------------------ */

static uint32_t left;       /* messages that the source still has */
static uint32_t busy_turns; /* looks at busy() that still find something */

static uint32_t
progress_one(void *self, uint32_t budget)
{
	(void)self;
	(void)budget;
	atomic_fetch_add(&reads, 1);
	if (left == 0)
		return 0;
	left--;
	return 1;
}

static bool
is_busy(void *ctx)
{
	(void)ctx;
	if (busy_turns == 0)
		return false;
	busy_turns--;
	return true;
}

/* Returns how often lead_catch_up() reads. */
static uint32_t
reads_of_catch_up(bool (*busy)(void *ctx))
{
	const struct lead_place place = { .expire = expire, .busy = busy };
	uint32_t count;

	lead_open(&place);
	lead_add((struct lead_source){ progress_one, NULL });
	atomic_store(&reads, 0);
	lead_catch_up();
	count = atomic_load(&reads);
	lead_decline();
	lead_close();
	return count;
}

Test(lead, catching_up_reads_until_a_read_brings_nothing)
{
	cr_expect_eq(reads_of_catch_up(NULL), 1);
	left = 3;
	cr_expect_eq(reads_of_catch_up(NULL), 4);
	cr_expect_eq(left, 0);
}

Test(lead, catching_up_reads_while_the_place_is_busy)
{
	cr_expect_eq(reads_of_catch_up(is_busy), 1);
	busy_turns = 2;
	cr_expect_eq(reads_of_catch_up(is_busy), 3);
	left = 2;
	busy_turns = 1;
	cr_expect_eq(reads_of_catch_up(is_busy), 4);
}

Test(lead, a_wait_without_an_agent_yields_before_it_sleeps)
{
	struct waiter w = { 0 };
	struct wait wait;

	cr_expect_not(lead_wait(&w, NULL, clock_now()));
	cr_assert_not_null(lead.env);
	wait_begin(&wait, lead.env, NULL, NULL);
	while (wait.now == 0)
		wait_turn(&wait);
	cr_expect_gt(wait.yield_end, wait.pause_end);
}
