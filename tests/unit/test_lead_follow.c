/* SPDX-License-Identifier: Apache-2.0 */
/* test_lead_follow.c - what a thread that follows does, what who asks says, and the
 * beginning and the end of leading, where no other thread runs; see worker/rpc/lead.h. */
#include "tests/unit/lead_rig.h"

TestSuite(lead_follow, .timeout = 20);

static struct waiter waited;

static unsigned caught_up;

static void
catch_up(void *self)
{
	cr_expect_eq(self, &caught_up);
	caught_up++;
}

static void
answer(void)
{
	waiter_done(&waited);
}

static void
ends_asleep(void)
{
	cr_expect_eq(atomic_load(&waited.state), WAITER_ASLEEP);
	cr_expect_eq(slept.word, &waited.state);
	cr_expect_eq(slept.value, WAITER_ASLEEP);
	cr_expect_eq(atomic_load(&lead.asked), 1);
	cr_expect_eq(atomic_load(&lead.taken), 0);
	waiter_done(&waited);
}

static bool
help(void *ctx)
{
	(void)ctx;
	return false;
}

static void
other_stops(void)
{
	if (yields == 3)
		atomic_store(&lead.taken, 0);
}

/* --- following ----------------------------------------------------------------------- */

static void
is_handed_the_lead(void)
{
	cr_expect(waited.follows);
	cr_expect_eq(atomic_load(&lead.follower_count), 1);
	atomic_store(&lead.taken, 0);
	cr_expect(lead_pass_baton());
}

static void
is_handed_the_lead_and_its_answer(void)
{
	is_handed_the_lead();
	waiter_done(&waited);
}

static void
gets_its_answer(void)
{
	atomic_store(&lead.taken, 0);
	waiter_done(&waited);
}

Test(lead_follow, who_follows_leads_when_it_is_handed_the_lead)
{
	open_place();
	atomic_store(&lead.taken, 1);
	on_yield = is_handed_the_lead;
	source.on_read = answer;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(yields, 1);
	cr_expect_eq(source.reads, 1);
	nobody_leads();
	/* Its wait is over: what it was handed it gives on. */
	waited = (struct waiter){ 0 };
	source.on_read = NULL;
	atomic_store(&lead.taken, 1);
	atomic_store(&lead.watched, 1);
	on_yield = is_handed_the_lead_and_its_answer;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(source.reads, 2);
	cr_expect_neq(atomic_load(&bell.asleep), 0);
	nobody_leads();
	on_yield = NULL;
	lead_close();
}

Test(lead_follow, who_follows_and_has_its_answer_reads_nothing)
{
	open_place();
	atomic_store(&lead.taken, 1);
	on_yield = gets_its_answer;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(source.reads, 0);
	cr_expect_eq(sleeps, 0);
	nobody_leads();
}

static void
gets_its_answer_from_who_leads_on(void)
{
	waiter_done(&waited);
}

Test(lead_follow, who_follows_looks_no_longer_than_until_its_answer)
{
	open_place();
	atomic_store(&lead.taken, 1);
	on_yield = gets_its_answer_from_who_leads_on;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(yields, 1);
	cr_expect_eq(sleeps, 0);
	cr_expect_eq(source.reads, 0);
	atomic_store(&lead.taken, 0);
	nobody_leads();
}

static void
time_of_looking_passes(void)
{
	now += 25 * NS_PER_US;
}

static void
wakes_with_its_answer(void)
{
	cr_expect_eq(slept.word, &waited.state);
	cr_expect_eq(atomic_load(&waited.state), WAITER_ASLEEP);
	cr_expect(waited.follows);
	cr_expect_eq(atomic_load(&lead.asked), 0);
	gets_its_answer();
}

static void
wakes_too_late(void)
{
	now += NS_PER_S;
}

Test(lead_follow, who_follows_dozes_off_after_a_while)
{
	open_place();
	atomic_store(&lead.taken, 1);
	on_yield = time_of_looking_passes;
	on_sleep = wakes_with_its_answer;
	cr_expect(lead_wait(&waited, NULL, 5 * NS_PER_S));
	cr_expect_eq(yields, 2);
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(slept.until, 5 * NS_PER_S);
	nobody_leads();
	/* Nobody has an answer for it. */
	waited = (struct waiter){ 0 };
	atomic_store(&lead.taken, 1);
	on_sleep = wakes_too_late;
	cr_expect_not(lead_wait(&waited, NULL, NS_PER_S));
	cr_expect_eq(sleeps, 2);
	cr_expect_eq(atomic_load(&waited.state), WAITER_PENDING);
	cr_expect_not(waited.follows);
	cr_expect_eq(source.reads, 0);
	atomic_store(&lead.taken, 0);
	nobody_leads();
}

/* --- who awaits a ring ----------------------------------------------------------------- */

Test(lead_follow, who_asks_says_so_in_the_nap_that_others_read)
{
	static const struct {
		uint32_t nap, said, is;
	} row[] = {
		{ 0, 0, 0 },
		{ 0, 3, 3 },
		{ 5, 0, 5 },
		{ 5, 4, 5 },
		{ 5, 5, 5 },
		{ 5, 6, 6 },
		{ 1, UINT32_MAX, 1 },
		{ UINT32_MAX, 1, 1 },
		{ 0x80000000u, 1, 0x80000000u },
		{ 0x80000001u, 1, 1 },
		{ 0x80000001u, 0, 0x80000001u },
	};

	open_place();
	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		atomic_store(&bell.asleep, row[i].nap);
		atomic_store(&awaits, row[i].said);
		lead_asked();
		cr_expect_eq(atomic_load(&awaits), row[i].is, "row %u", i);
		cr_expect_eq(atomic_load(&bell.asleep), row[i].nap);
		cr_expect_eq(atomic_load(&lead.asked), i + 1);
	}
	lead_answered();
	cr_expect_eq(atomic_load(&lead.asked),
		sizeof(row) / sizeof(row[0]) - 1);
	cr_expect_eq(wakes, 0);
}

/* --- beginning and end --------------------------------------------------------------------- */

Test(lead_follow, an_end_forgets_the_place)
{
	struct wait_env env;

	open_place();
	cr_expect_eq(lead.bell, &bell);
	cr_expect_eq(lead.awaits, &awaits);
	cr_expect(atomic_load(&lead.shared));
	cr_expect_eq(lead.armed.at, &bell);
	cr_expect(lead.armed.shared);
	cr_expect_eq(lead.env, &lead.own_env);
	lead_add_thread((struct lead_thread_source){ catch_up, &caught_up });
	cr_expect_eq(atomic_load(&lead.threads), 1);
	lead_due(70);
	atomic_store(&bell.asleep, 3);
	atomic_store(&awaits, 3);
	lead_close();
	nobody_leads();
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&awaits), 0);
	cr_expect_eq(atomic_load(&lead.sources), 0);
	cr_expect_eq(atomic_load(&lead.threads), 0);
	cr_expect_eq(atomic_load(&lead.due), INT64_MAX);
	cr_expect_null(lead.place.expire);
	cr_expect_not(atomic_load(&lead.shared));
	cr_expect_neq(lead.bell, &bell);
	cr_expect_neq(lead.awaits, &awaits);
	cr_expect_eq(lead.armed.at, lead.bell);
	cr_expect_not(lead.armed.shared);
	/* The next one begins with nothing, too. */
	atomic_store(&awaits, 9);
	atomic_store(&lead.sources, 2);
	atomic_store(&lead.threads, 2);
	lead_due(80);
	memset(&env, 0, sizeof(env));
	lead_open(&(struct lead_place){ .awaits = &awaits,
		.env = &env,
		.expire = expire,
		.help = help });
	nobody_leads();
	cr_expect_eq(atomic_load(&awaits), 0);
	cr_expect_eq(atomic_load(&lead.sources), 0);
	cr_expect_eq(atomic_load(&lead.threads), 0);
	cr_expect_eq(atomic_load(&lead.due), INT64_MAX);
	cr_expect_eq(lead.env, &env);
	cr_expect_neq(lead.bell, &bell);
	cr_expect_eq(lead.awaits, &awaits);
	cr_expect_not(atomic_load(&lead.shared));
	cr_expect_eq(lead.armed.at, lead.bell);
	cr_expect_not(lead.armed.shared);
	cr_expect(atomic_load(&lead.help) == help);
}

Test(lead_follow, an_end_waits_for_who_leads_and_hands_the_lead_on)
{
	struct waiter w = { 0 };

	open_place();
	atomic_store(&lead.taken, 1);
	on_yield = other_stops;
	follow_as(&w);
	lead_close();
	cr_expect_eq(yields, 3);
	cr_expect_eq(atomic_load(&w.state), WAITER_BATON);
	nobody_leads();
}

Test(lead_follow, eight_threads_of_transports_are_waited_for)
{
	open_place();
	for (uint32_t i = 1; i <= LEAD_THREADS_MAX + 1; i++) {
		lead_add_thread((struct lead_thread_source){ catch_up,
			&caught_up });
		cr_expect_eq(atomic_load(&lead.threads),
			i < LEAD_THREADS_MAX ? i : LEAD_THREADS_MAX);
	}
	lead_catch_up();
	cr_expect_eq(caught_up, LEAD_THREADS_MAX);
	lead_decline();
}

Test(lead_follow, a_wait_without_an_agent_reads_nothing_and_sleeps)
{
	real_time = true;
	on_sleep = ends_asleep;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(slept.until, INT64_MAX);
	nobody_leads();
}
