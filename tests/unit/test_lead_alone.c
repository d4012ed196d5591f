/* SPDX-License-Identifier: Apache-2.0 */
/* test_lead_alone.c - what a thread that leads, or follows, does step by step, where no
 * other thread runs; see worker/rpc/lead.h. */
#include "tests/unit/lead_rig.h"

TestSuite(lead_alone, .timeout = 20);

/* --- what is put off ------------------------------------------------------------ */

struct named {
	struct later later;
	const char *name;
	struct named *then; /* is put off by it */
};

static char ran[64];

static void
note(const char *text)
{
	size_t len = strlen(ran);

	snprintf(ran + len, sizeof(ran) - len, "%s", text);
}

static void
run_named(struct later *later)
{
	struct named *n = (struct named *)later;

	note(n->name);
	if (lead_delivers())
		note("!");
	if (n->then != NULL)
		lead_later(&n->then->later);
	if (n->then != NULL)
		note(".");
}

static struct later *
named(struct named *n, const char *name, bool waits, struct named *then)
{
	*n = (struct named){ { .run = run_named, .waits = waits }, name, then };
	return &n->later;
}

#define RAN(text) \
	do { \
		cr_expect_str_eq(ran, text); \
		ran[0] = '\0'; \
	} while (0)

Test(lead_alone, what_is_put_off_runs_when_this_thread_delivers_no_more)
{
	struct named a, b, c;

	lead_later(named(&a, "a", false, NULL));
	RAN("a!");
	lead_later(named(&a, "a", true, NULL));
	RAN("a");
	cr_expect_not(lead_delivers());
	lead_deliver_begin();
	cr_expect(lead_delivers());
	lead_deliver_begin();
	cr_expect_not(lead_has_later());
	lead_later(named(&a, "a", false, NULL));
	lead_later(named(&b, "b", true, NULL));
	lead_later(named(&c, "c", false, NULL));
	cr_expect(lead_has_later());
	lead_deliver_end();
	cr_expect(lead_delivers());
	RAN("");
	lead_deliver_end();
	RAN("a!bc!");
	cr_expect_not(lead_delivers());
	cr_expect_not(lead_has_later());
	lead_later(&a.later);
	RAN("a!");
}

Test(lead_alone, what_a_short_callback_puts_off_runs_behind_it)
{
	struct named a, b, c;

	named(&c, "c", false, NULL);
	named(&b, "b", false, &c);
	lead_later(named(&a, "a", false, &b));
	RAN("a!.b!.c!");
	/* One that may wait runs it at once. */
	lead_later(named(&a, "a", true, &b));
	RAN("ab!.c!.");
	cr_expect_not(lead_has_later());
}

Test(lead_alone, who_leads_runs_what_is_put_off_afterwards)
{
	struct named a, b;

	cr_expect(lead_try());
	lead_later(named(&a, "a", false, NULL));
	lead_deliver_begin();
	lead_later(named(&b, "b", false, NULL));
	lead_deliver_end();
	RAN("");
	lead_decline();
	RAN("a!b!");
	nobody_leads();
	/* So does a poll, if it does not keep the lead. */
	open_place();
	cr_expect(lead_try());
	lead_later(&a.later);
	lead_poll();
	RAN("");
	cr_expect(lead_me.leads);
	cr_expect_eq(source.reads, 1);
	lead_stop();
	lead_poll();
	RAN("a!");
	nobody_leads();
}

/* --- leading --------------------------------------------------------------------- */

Test(lead_alone, one_leads_at_a_time)
{
	cr_expect(lead_try());
	cr_expect(lead_me.leads);
	cr_expect_eq(atomic_load(&lead.taken), 1);
	lead_me.leads = false;
	cr_expect_not(lead_try());
	cr_expect_not(lead_me.leads);
	lead_me.leads = true;
	lead_stop();
	nobody_leads();
	atomic_store(&lead.claimed, 1);
	cr_expect_not(lead_try());
	cr_expect_eq(atomic_load(&lead.taken), 0);
	atomic_store(&lead.claimed, 0);
	nobody_leads();
}

static unsigned other_reads;

static uint32_t
progress_other(void *self, uint32_t budget)
{
	cr_expect_eq(self, &other_reads);
	cr_expect_eq(budget, 64);
	other_reads++;
	return 5;
}

Test(lead_alone, a_read_looks_at_each_source)
{
	open_place();
	lead_add((struct lead_source){ progress_other, &other_reads });
	cr_expect_eq(atomic_load(&lead.sources), 2);
	source.left = 30;
	source.each = 20;
	cr_expect_eq(lead_read(), 25);
	cr_expect_eq(lead_read(), 15);
	cr_expect_eq(lead_read(), 5);
	cr_expect_eq(source.reads, 3);
	cr_expect_eq(other_reads, 3);
	cr_expect_not(lead_delivers());
}

Test(lead_alone, who_arms_the_bell_looks_everywhere)
{
	open_place();
	cr_expect_eq(lead_arm_and_read(), 0);
	cr_expect_eq(atomic_load(&bell.asleep), 1);
	cr_expect_eq(atomic_load(&awaits), 0);
	cr_expect_eq(thoroughs, 1);
	cr_expect_eq(source.reads, 1);
	source.left = source.each = 3;
	is_busy = true;
	atomic_store(&lead.asked, 1);
	cr_expect_eq(lead_arm_and_read(), 4);
	cr_expect_eq(atomic_load(&bell.asleep), 2);
	cr_expect_eq(atomic_load(&awaits), 2);
	cr_expect_eq(thoroughs, 2);
	lead_silence();
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&awaits), 0);
	/* Of one that needs neither. */
	open_with(&(struct lead_place){ .bell = &bell, .expire = expire });
	cr_expect_eq(lead_arm_and_read(), 0);
	cr_expect_eq(thoroughs, 2);
}

/* What a thread of a transport delivered before it said that it has caught up. */
static unsigned caught_up, reads_before;

static void
catch_up(void *self)
{
	cr_expect_eq(self, &caught_up);
	caught_up++;
	reads_before = source.reads;
}

Test(lead_alone, what_is_due_ends_after_all_was_read)
{
	open_place();
	lead_add_thread((struct lead_thread_source){ catch_up, &caught_up });
	lead_due(500);
	lead_due(600);
	cr_expect_eq(atomic_load(&lead.due), 500);
	lead_look_around(499);
	cr_expect_eq(looks, 1);
	cr_expect_eq(expiries, 0);
	cr_expect_eq(source.reads, 0);
	source.left = 2;
	next_due = 700;
	lead_look_around(500);
	cr_expect_eq(looks, 2);
	cr_expect_eq(expiries, 1);
	cr_expect_eq(expired_at, 500);
	cr_expect(expiry_delivers);
	cr_expect_not(lead_delivers());
	cr_expect_eq(source.reads, 3);
	cr_expect_eq(thoroughs, 3);
	cr_expect_eq(caught_up, 1);
	cr_expect_eq(reads_before, 0);
	cr_expect_eq(atomic_load(&lead.due), 700);
	next_due = INT64_MAX;
	lead_look_around(1000);
	cr_expect_eq(expiries, 2);
	cr_expect_eq(expired_at, 1000);
	cr_expect_eq(atomic_load(&lead.due), INT64_MAX);
	lead_look_around(INT64_MAX - 1);
	cr_expect_eq(expiries, 2);
}

/* Peers may send without end. */
Test(lead_alone, catching_up_ends_in_any_case)
{
	open_place();
	source.left = UINT32_MAX;
	lead_catch_up();
	cr_expect_eq(source.reads, 1024);
	cr_expect(lead_me.leads);
	cr_expect_eq(atomic_load(&lead.claimed), 0);
	cr_expect_eq(looks, 1);
	/* Again, by who leads. */
	source.left = 4;
	lead_catch_up();
	cr_expect_eq(source.reads, 1024 + 5);
	cr_expect_eq(looks, 2);
	lead_decline();
	nobody_leads();
}

static void
a_second_passes(void)
{
	cr_expect_eq(atomic_load(&lead.claimed), 1);
	now += NS_PER_S;
}

static void
other_stops(void)
{
	if (yields == 3)
		atomic_store(&lead.taken, 0);
}

Test(lead_alone, catching_up_waits_two_seconds_for_who_leads)
{
	open_place();
	atomic_store(&lead.taken, 1);
	on_yield = a_second_passes;
	lead_catch_up();
	cr_expect_eq(yields, 2);
	cr_expect_eq(source.reads, 0);
	cr_expect_eq(looks, 0);
	cr_expect_not(lead_me.leads);
	cr_expect_eq(atomic_load(&lead.claimed), 0);
	cr_expect_eq(atomic_load(&lead.taken), 1);
	on_yield = other_stops;
	yields = 0;
	atomic_store(&bell.asleep, 7);
	atomic_store(&awaits, 7);
	lead_catch_up();
	cr_expect_eq(yields, 3);
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&awaits), 0);
	cr_expect_eq(source.reads, 1);
	cr_expect(lead_me.leads);
	cr_expect_eq(atomic_load(&lead.claimed), 0);
	lead_decline();
	nobody_leads();
}

Test(lead_alone, after_a_fork_nobody_reads)
{
	open_place();
	cr_expect_not(lead_is_abandoned());
	cr_expect(lead_try());
	lead_abandon();
	cr_expect(lead_is_abandoned());
	cr_expect_not(lead_me.leads);
	lead_stop();
	cr_expect_not(lead_try());
	lead_catch_up();
	cr_expect_eq(source.reads, 0);
	cr_expect_eq(looks, 0);
	cr_expect_eq(yields, 0);
}

Test(lead_alone, a_poll_reads_or_lets_others_run)
{
	open_place();
	atomic_store(&lead.taken, 1);
	lead_poll();
	cr_expect_eq(yields, 1);
	cr_expect_eq(source.reads, 0);
	cr_expect_eq(looks, 0);
	atomic_store(&lead.taken, 0);
	lead_poll();
	cr_expect_eq(yields, 2);
	cr_expect_eq(source.reads, 1);
	cr_expect_eq(looks, 1);
	source.left = 1;
	lead_poll();
	cr_expect_eq(yields, 2);
	cr_expect_eq(source.reads, 2);
	cr_expect_eq(looks, 2);
	nobody_leads();
}

/* --- who is woken ------------------------------------------------------------------ */

Test(lead_alone, who_stops_leading_arms_the_bell_of_the_watch)
{
	struct waiter w = { .state = WAITER_ASLEEP };

	open_place();
	/* Without a watch nothing is armed. */
	cr_expect(lead_try());
	lead_drop();
	nobody_leads();
	cr_expect_eq(source.reads, 0);
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(wakes, 0);
	atomic_store(&lead.watched, 1);
	cr_expect(lead_try());
	lead_drop();
	nobody_leads();
	cr_expect_eq(source.reads, 1);
	cr_expect_eq(atomic_load(&bell.asleep), 1);
	cr_expect_eq(atomic_load(&bell.rung), 0);
	cr_expect_eq(wakes, 0);
	/* While something comes it reads on, and then wakes the watch. */
	cr_expect(lead_try());
	lead_silence();
	source.left = 10;
	lead_drop();
	nobody_leads();
	cr_expect_eq(source.left, 6);
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&bell.rung), 1);
	cr_expect_eq(woken.word, &bell.rung);
	source.left = 3;
	cr_expect(lead_try());
	lead_drop();
	nobody_leads();
	cr_expect_eq(source.left, 0);
	cr_expect_neq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&bell.rung), 1);
	/* To a follower it is told instead. */
	follow_as(&w);
	source.left = 10;
	cr_expect(lead_try());
	lead_drop();
	nobody_leads();
	cr_expect_eq(atomic_load(&w.state), WAITER_BATON);
	cr_expect_eq(woken.word, &w.state);
	cr_expect_eq(atomic_load(&bell.rung), 1);
}

static void
watch_goes(void)
{
	atomic_store(&lead.watched, 0);
}

Test(lead_alone, a_watch_that_went_meanwhile_is_replaced)
{
	open_place();
	atomic_store(&lead.watched, 1);
	atomic_store(&lead.sleepers, 1);
	source.on_read = watch_goes;
	cr_expect(lead_try());
	lead_drop();
	nobody_leads();
	cr_expect_eq(source.reads, 1);
	cr_expect_eq(atomic_load(&lead.stirred), 1);
	cr_expect_eq(woken.word, &lead.stirred);
	/* It watches on: nobody else is woken. */
	source.on_read = NULL;
	atomic_store(&lead.watched, 1);
	cr_expect(lead_try());
	lead_drop();
	cr_expect_eq(atomic_load(&lead.stirred), 1);
	cr_expect_eq(wakes, 1);
}

Test(lead_alone, one_of_the_crew_is_woken_or_the_watch)
{
	open_place();
	lead_wake_crew();
	cr_expect_eq(wakes, 0);
	atomic_store(&lead.watched, 1);
	lead_wake_crew();
	cr_expect_eq(wakes, 1);
	cr_expect_eq(woken.word, &bell.rung);
	cr_expect_eq(atomic_load(&bell.rung), 1);
	cr_expect_eq(atomic_load(&lead.stirred), 0);
	atomic_store(&lead.sleepers, 1);
	lead_wake_crew();
	cr_expect_eq(wakes, 2);
	cr_expect_eq(woken.word, &lead.stirred);
	cr_expect_eq(woken.value, 1);
	cr_expect_eq(atomic_load(&bell.rung), 1);
	cr_expect_eq(atomic_load(&lead.stirred), 1);
	/* All of them, whoever sleeps. */
	atomic_store(&lead.sleepers, 0);
	atomic_store(&lead.watched, 0);
	lead_wake_all();
	cr_expect_eq(wakes, 4);
	cr_expect_eq(atomic_load(&lead.stirred), 2);
	cr_expect_eq(atomic_load(&bell.rung), 2);
	cr_expect_eq(woken.word, &bell.rung);
	/* The bell rings only for who sleeps. */
	lead_bell();
	cr_expect_eq(atomic_load(&bell.rung), 2);
	atomic_store(&bell.asleep, 1);
	lead_bell();
	cr_expect_eq(atomic_load(&bell.rung), 3);
}

Test(lead_alone, the_lead_goes_to_the_follower_that_came_first)
{
	struct waiter over = { .state = WAITER_DONE },
		      asleep = { .state = WAITER_ASLEEP }, awake = { 0 },
		      has = { .state = WAITER_BATON };

	cr_expect_not(lead_pass_baton());
	follow_as(&over);
	follow_as(&asleep);
	follow_as(&awake);
	follow_as(&has);
	cr_expect(lead_pass_baton());
	cr_expect_not(over.follows);
	cr_expect_eq(atomic_load(&over.state), WAITER_DONE);
	cr_expect_not(asleep.follows);
	cr_expect_eq(atomic_load(&asleep.state), WAITER_BATON);
	cr_expect(awake.follows);
	cr_expect_eq(atomic_load(&lead.follower_count), 2);
	cr_expect_eq(wakes, 1);
	cr_expect_eq(woken.word, &asleep.state);
	cr_expect(lead_pass_baton());
	cr_expect_eq(atomic_load(&awake.state), WAITER_BATON);
	cr_expect_eq(wakes, 1);
	cr_expect_not(lead_pass_baton());
	cr_expect_eq(atomic_load(&has.state), WAITER_BATON);
	nobody_leads();
}

/* --- waiting ------------------------------------------------------------------------ */

static struct waiter waited;

static void
answer_third(void)
{
	if (source.reads == 3)
		waiter_done(&waited);
}

Test(lead_alone, who_waits_reads_until_its_answer_is_there)
{
	open_place();
	atomic_store(&bell.asleep, 5);
	source.on_read = answer_third;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(source.reads, 3);
	cr_expect_eq(sleeps, 0);
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	nobody_leads();
	/* One that is over needs no read. */
	cr_expect(lead_wait(&waited, NULL, 0));
	cr_expect_eq(source.reads, 3);
	/* Nor does it keep the lead. */
	lead_expect();
	cr_expect(lead_me.leads);
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	nobody_leads();
}

/* Of a source that always brings something. */
Test(lead_alone, who_reads_without_end_looks_around_now_and_then)
{
	open_place();
	source.left = UINT32_MAX;
	lead.turns = 1;
	cr_expect_not(lead_wait(&waited, NULL, now));
	cr_expect_eq(source.reads, 63);
	cr_expect_eq(looks, 1);
	cr_expect_eq(lead.turns, 64);
	cr_expect_not(lead_wait(&waited, NULL, now - 1));
	cr_expect_eq(source.reads, 63 + 64);
	cr_expect_eq(looks, 2);
	nobody_leads();
}

static void
time_passes(void)
{
	now += 10;
}

Test(lead_alone, a_wait_ends_at_its_deadline_and_not_before)
{
	open_place();
	on_look = time_passes;
	cr_expect_not(lead_wait(&waited, NULL, now + 20));
	cr_expect_eq(now, 1020);
	cr_expect_eq(looks, 2);
	cr_expect_eq(sleeps, 0);
	cr_expect_eq(atomic_load(&waited.state), WAITER_PENDING);
	nobody_leads();
}

/* An answer that came in time counts. */
static void
late_answer(void)
{
	if (source.reads == 0)
		return;
	now += 10;
	waiter_done(&waited);
}

Test(lead_alone, an_answer_that_came_with_the_last_look_counts)
{
	open_place();
	on_look = late_answer;
	cr_expect(lead_wait(&waited, NULL, now + 1));
	nobody_leads();
}

static void
put_off(void)
{
	static struct named a;

	if (source.reads == 2)
		lead_later(named(&a, "a", false, NULL));
	if (source.reads == 4)
		waiter_done(&waited);
}

Test(lead_alone, who_leads_stops_for_what_is_put_off)
{
	open_place();
	source.on_read = put_off;
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	RAN("a!");
	cr_expect_eq(source.reads, 4);
	nobody_leads();
}

static void
claim(void)
{
	if (source.reads == 2)
		atomic_store(&lead.claimed, 1);
}

Test(lead_alone, who_leads_stops_for_who_claims_the_lead)
{
	open_place();
	source.on_read = claim;
	cr_expect_not(lead_wait(&waited, NULL, now));
	cr_expect_eq(source.reads, 2);
	cr_expect_eq(looks, 0);
	atomic_store(&lead.claimed, 0);
	nobody_leads();
}

/* --- dozing ------------------------------------------------------------------------- */

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

Test(lead_alone, who_dozes_off_sleeps_until_its_next_look)
{
	static const struct {
		uint32_t sources, watched, sleepers;
		int64_t deadline, until;
	} row[] = {
		{ 1, 0, 0, INT64_MAX, 1000 + NS_PER_MS },
		{ 1, 0, 0, 1000 + NS_PER_MS + 1, 1000 + NS_PER_MS },
		{ 1, 0, 0, 1000 + NS_PER_MS - 1, 1000 + NS_PER_MS - 1 },
		{ 0, 0, 0, INT64_MAX, INT64_MAX },
		{ 1, 1, 0, INT64_MAX, INT64_MAX },
		{ 1, 0, 1, INT64_MAX, INT64_MAX },
		{ 1, 1, 1, 1001, 1001 },
	};

	open_place();
	on_sleep = ends_asleep;
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		waited = (struct waiter){ 0 };
		atomic_store(&lead.sources, row[i].sources);
		atomic_store(&lead.watched, row[i].watched);
		atomic_store(&lead.sleepers, row[i].sleepers);
		cr_expect(lead_wait(&waited, NULL, row[i].deadline));
		cr_expect_eq(sleeps, i + 1);
		cr_expect_eq(slept.until, row[i].until, "row %u", i);
		cr_expect_eq(atomic_load(&lead.asked), 0);
		cr_expect_eq(atomic_load(&awaits),
			row[i].watched ? lead.armed.nap : 0);
		nobody_leads();
	}
}

static unsigned helps;

static bool
help(void *ctx)
{
	cr_expect_null(ctx);
	cr_expect_eq(atomic_load(&lead.asked), 1);
	if (++helps == 2)
		waiter_done(&waited);
	return true;
}

Test(lead_alone, who_would_doze_off_helps_if_it_can)
{
	struct lead_place place = whole_place;

	place.help = help;
	open_with(&place);
	cr_expect(lead_wait(&waited, NULL, INT64_MAX));
	cr_expect_eq(helps, 2);
	cr_expect_eq(sleeps, 0);
	cr_expect_eq(atomic_load(&lead.asked), 0);
	nobody_leads();
}
