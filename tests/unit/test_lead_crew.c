/* SPDX-License-Identifier: Apache-2.0 */
/* test_lead_crew.c - what a thread of the crew does that has nothing to do, step by step,
 * where no other thread runs; see worker/rpc/lead.h. */
#include "tests/unit/lead_rig.h"

TestSuite(lead_crew, .timeout = 20);

Test(lead_crew, what_is_due_earlier_wakes_the_watch)
{
	static const struct {
		int64_t when;
		uint32_t watched;
		int64_t due;
		uint32_t rings;
	} row[] = {
		{ 500, 0, 500, 0 },
		{ 500, 1, 500, 0 },
		{ 501, 1, 500, 0 },
		{ 499, 1, 499, 1 },
		{ 499, 1, 499, 1 },
		{ 498, 0, 498, 1 },
	};

	open_place();
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		atomic_store(&lead.watched, row[i].watched);
		lead_due(row[i].when);
		cr_expect_eq(atomic_load(&lead.due), row[i].due, "row %u", i);
		cr_expect_eq(atomic_load(&bell.rung), row[i].rings, "row %u",
			i);
	}
}

Test(lead_crew, who_is_busy_leaves_somebody_who_reads)
{
	static const struct {
		uint32_t taken, watched, asleep, sleepers;
		const void *woken;
	} row[] = {
		{ 1, 0, 0, 1, NULL },
		{ 1, 1, 0, 0, NULL },
		{ 0, 0, 0, 0, NULL },
		{ 0, 0, 0, 1, &lead.stirred },
		{ 0, 1, 0, 1, &bell.rung },
		{ 0, 1, 3, 1, NULL },
	};

	open_place();
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		atomic_store(&lead.taken, row[i].taken);
		atomic_store(&lead.watched, row[i].watched);
		atomic_store(&lead.sleepers, row[i].sleepers);
		atomic_store(&bell.asleep, row[i].asleep);
		woken.word = NULL;
		lead_busy();
		cr_expect_eq(woken.word, row[i].woken, "row %u", i);
	}
}

/* --- the watch ------------------------------------------------------------------------ */

static void
watches(void)
{
	cr_expect_eq(slept.word, &bell.rung);
	cr_expect_eq(slept.value, atomic_load(&bell.rung));
	cr_expect_neq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&lead.watched), 1);
	cr_expect_eq(atomic_load(&lead.sleepers), 0);
	cr_expect_eq(atomic_load(&lead.taken), 0);
	cr_expect_not(lead_me.leads);
}

static void
nobody_watches(void)
{
	nobody_leads();
	cr_expect_eq(atomic_load(&lead.watched), 0);
	cr_expect_eq(atomic_load(&lead.sleepers), 0);
}

/* Returns the number of looks of a reader until it sleeps: one before the first read, one
 * after each 64 reads, and one after the remainder. The last read does not count: the bell is
 * armed then. The number of reads depends on time. */
static unsigned
looks_of_one(void)
{
	return 1 + (source.reads - 1 + 63) / 64;
}

static struct bell_word words[2];

static uint32_t
two_words(void *ctx, struct bell_word *more, uint32_t cap)
{
	cr_expect_eq(ctx, &bell);
	cr_expect_eq(cap, BELL_WORDS);
	memcpy(more, words, sizeof(words));
	return 2;
}

Test(lead_crew, who_has_nothing_to_do_keeps_watch)
{
	_Atomic uint32_t word[2] = { 0 };
	struct lead_place place = whole_place;

	open_place();
	on_sleep = watches;
	atomic_store(&bell.rung, 4);
	atomic_store(&bell.asleep, 9);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(slept.value, 4);
	cr_expect_eq(slept.words, 0);
	cr_expect_eq(slept.until, INT64_MAX);
	cr_expect_eq(atomic_load(&bell.asleep), 1);
	cr_expect_eq(looks, looks_of_one());
	cr_expect_eq(thoroughs, 2);
	cr_expect_geq(source.reads, 2);
	nobody_watches();
	/* Of a place with words, until something is due. */
	words[0] = (struct bell_word){ &word[0], 0 };
	words[1] = (struct bell_word){ &word[1], 0 };
	place.watch = two_words;
	place.thorough = NULL;
	open_with(&place);
	lead_add((struct lead_source){ progress, &source });
	lead_due(5000);
	lead_crew();
	cr_expect_eq(sleeps, 2);
	cr_expect_eq(slept.words, 2);
	cr_expect_eq(slept.until, 5000);
	cr_expect_eq(thoroughs, 2);
	nobody_watches();
}

/* What comes while the bell is armed. */
static void
brings_twice(void)
{
	static unsigned brought;

	if (atomic_load(&bell.asleep) == 0)
		return;
	cr_expect_eq(atomic_load(&lead.watched), 1);
	source.left = brought < 2;
	brought++;
	/* This read has been counted already. */
}

static uint32_t
progress_when_armed(void *self, uint32_t budget)
{
	uint32_t n;

	brings_twice();
	n = source.left;
	source.left = 0;
	(void)self;
	(void)budget;
	return n;
}

Test(lead_crew, what_comes_while_the_bell_is_armed_is_read_first)
{
	open_with(&whole_place);
	lead_add((struct lead_source){ progress_when_armed, NULL });
	on_sleep = watches;
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(atomic_load(&bell.asleep), 3);
	nobody_watches();
}

static void
sleeps_aside(void)
{
	cr_expect_eq(slept.word, &lead.stirred);
	cr_expect_eq(slept.value, atomic_load(&lead.stirred));
	cr_expect_eq(slept.until, INT64_MAX);
	cr_expect_eq(atomic_load(&lead.sleepers), 1);
	cr_expect_eq(atomic_load(&lead.watched), 1);
	cr_expect_not(lead_me.leads);
}

Test(lead_crew, one_that_is_not_needed_sleeps_beside_the_watch)
{
	open_place();
	on_sleep = sleeps_aside;
	atomic_store(&lead.stirred, 6);
	atomic_store(&lead.watched, 1);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(atomic_load(&bell.asleep), 1);
	cr_expect_eq(atomic_load(&lead.watched), 1);
	atomic_store(&lead.watched, 0);
	nobody_watches();
	/* Nor if another leads. */
	atomic_store(&lead.watched, 1);
	atomic_store(&lead.taken, 1);
	lead_crew();
	cr_expect_eq(sleeps, 2);
	cr_expect_eq(looks, looks_of_one());
	/* There is work. */
	has_work = true;
	lead_crew();
	cr_expect_eq(sleeps, 2);
	cr_expect_eq(atomic_load(&lead.sleepers), 0);
}

static void
the_watch_goes(void)
{
	if (atomic_load(&bell.asleep) != 0)
		atomic_store(&lead.watched, 0);
}

/* The watch has gone since: who would sleep beside it looks again. */
Test(lead_crew, nobody_sleeps_beside_a_watch_that_is_gone)
{
	open_place();
	atomic_store(&lead.watched, 1);
	source.on_read = the_watch_goes;
	lead_crew();
	cr_expect_eq(sleeps, 0);
	nobody_watches();
}

/* --- something to do ------------------------------------------------------------------- */

Test(lead_crew, work_ends_the_idleness_of_the_crew)
{
	open_place();
	has_work = true;
	atomic_store(&lead.sleepers, 1);
	lead_crew();
	cr_expect_eq(sleeps, 0);
	cr_expect_eq(source.reads, 0);
	cr_expect_eq(looks, 1);
	cr_expect_eq(thoroughs, 1);
	/* It does not read meanwhile; another of the crew is to. */
	cr_expect_eq(atomic_load(&lead.stirred), 1);
	atomic_store(&lead.sleepers, 0);
	nobody_watches();
}

static unsigned ran;

static void
count_run(struct later *later)
{
	(void)later;
	ran++;
}

static void
put_off(void)
{
	static struct later later = { .run = count_run };

	if (source.reads == 3)
		lead_later(&later);
}

Test(lead_crew, what_is_put_off_by_a_read_runs_after_it)
{
	open_place();
	source.on_read = put_off;
	lead_crew();
	cr_expect_eq(ran, 1);
	cr_expect_eq(source.reads, 3);
	cr_expect_eq(sleeps, 0);
	nobody_watches();
}

static void
claim(void)
{
	if (source.reads == 3)
		atomic_store(&lead.claimed, 1);
}

Test(lead_crew, who_claims_the_lead_gets_it)
{
	open_place();
	source.on_read = claim;
	lead_crew();
	cr_expect_eq(source.reads, 3);
	cr_expect_eq(sleeps, 0);
	atomic_store(&lead.claimed, 0);
	nobody_watches();
}

/* Of a source that always brings something. */
Test(lead_crew, who_reads_without_end_looks_around_now_and_then)
{
	open_place();
	source.left = 3 * LEAD_LOOKS;
	on_sleep = watches;
	lead_crew();
	cr_expect_geq(lead.turns, 3 * LEAD_LOOKS);
	cr_expect_eq(source.left, 0);
	cr_expect_geq(looks, 1 + 3 + 1);
	cr_expect_eq(sleeps, 1);
	nobody_watches();
}

static struct waiter follower;

static void
is_handed_the_lead(void)
{
	cr_expect_eq(slept.word, &bell.rung);
	cr_expect_eq(slept.value, 4);
	cr_expect_eq(atomic_load(&lead.watched), 1);
	cr_expect_eq(atomic_load(&follower.state), WAITER_BATON);
	cr_expect_eq(atomic_load(&lead.taken), 0);
}

/* A thread of the program reads rather than one of the crew. */
Test(lead_crew, who_follows_is_given_the_lead)
{
	open_place();
	on_sleep = is_handed_the_lead;
	atomic_store(&bell.rung, 4);
	follow_as(&follower);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(source.reads, 0);
	nobody_watches();
	/* There is a watch: it goes to sleep beside it when it comes next. */
	atomic_store(&lead.watched, 1);
	follower = (struct waiter){ 0 };
	follow_as(&follower);
	lead_crew();
	cr_expect_eq(atomic_load(&follower.state), WAITER_BATON);
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(atomic_load(&lead.watched), 1);
	atomic_store(&lead.watched, 0);
	nobody_watches();
	/* It needs it no more. */
	follower = (struct waiter){ .state = WAITER_DONE };
	follow_as(&follower);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	nobody_watches();
}

/* --- another leads ------------------------------------------------------------------------ */

static void
stands_by(void)
{
	cr_expect_eq(slept.word, &bell.rung);
	cr_expect_eq(slept.value, 4);
	cr_expect_eq(atomic_load(&lead.watched), 1);
	cr_expect_eq(atomic_load(&bell.asleep), 0);
	cr_expect_eq(atomic_load(&lead.taken), 1);
}

Test(lead_crew, one_keeps_watch_for_another_that_leads)
{
	open_place();
	on_sleep = stands_by;
	atomic_store(&bell.rung, 4);
	atomic_store(&lead.taken, 1);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(yields, 0);
	cr_expect_eq(atomic_load(&lead.watched), 0);
	cr_expect_eq(source.reads, 0);
	/* The bell was armed before: its ring may have been, too. */
	atomic_store(&bell.asleep, 1);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(yields, 1);
	cr_expect_eq(atomic_load(&lead.watched), 0);
	atomic_store(&bell.asleep, 0);
	has_work = true;
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(yields, 2);
	/* It has stopped meanwhile. */
	has_work = false;
	atomic_store(&lead.taken, 0);
	atomic_store(&lead.claimed, 1);
	lead_crew();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(yields, 3);
	atomic_store(&lead.claimed, 0);
	nobody_watches();
}
