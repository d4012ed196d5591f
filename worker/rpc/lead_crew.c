/* SPDX-License-Identifier: Apache-2.0 */
/* lead_crew.c - who reads when no thread of the program waits; see lead.h. */
#include <sched.h>

#include "base/clock.h"
#include "worker/rpc/lead_inner.h"
#include "worker/rpc/word.h"

void
lead_due(int64_t when)
{
	int64_t due = atomic_load(&lead.due);

	while (when < due &&
		!atomic_compare_exchange_weak(&lead.due, &due, when))
		continue;
	/* The watch sleeps till what was due before. */
	if (when < due && atomic_load(&lead.watched) != 0)
		bell_wake(lead.bell, lead.shared);
}

static bool
has_own_work(void)
{
	return lead_me.first != NULL || lead.place.work(lead.place.ctx) ||
		atomic_load(&lead.claimed) != 0;
}

static bool
wanted(void)
{
	return atomic_load(&lead.follower_count) > 0 || has_own_work();
}

/* Sleeps on the bell, which was armed as in @b; then it is the watch no more. */
static void
keep_watch(struct bell *b)
{
	struct bell_word words[BELL_WORDS];
	uint32_t n = 0;

	if (lead.place.watch != NULL)
		n = lead.place.watch(lead.place.ctx, words, BELL_WORDS);
	bell_sleep(b, words, n, atomic_load(&lead.due));
	atomic_store(&lead.watched, 0);
}

static bool
become_watch(void)
{
	uint32_t no = 0;

	return atomic_compare_exchange_strong(&lead.watched, &no, 1);
}

enum idle {
	IDLE_OVER,    /* there is something to do */
	IDLE_WATCHES, /* nothing came for a while: this is the watch now; .. */
	IDLE_ASIDE,   /* .. another is. The bell is armed for it. */
};

/* Leads for nobody, and gives it away as soon as somebody waits or there is
 * work. */
static enum idle
lead_idle(struct bell *b)
{
	struct wait wait;
	bool watches;
	uint32_t n;

	lead_silence();
	if (lead.place.thorough != NULL)
		lead.place.thorough(lead.place.ctx);
	lead_look_around(clock_now());
	wait_begin_short(&wait, lead.env);
	while (!wanted()) {
		enum wait_next next = WAIT_AGAIN;

		if (lead_read() == 0) {
			next = wait_turn(&wait);
		} else {
			wait_again(&wait);
			if (++lead.turns % LEAD_LOOKS == 0)
				next = WAIT_LOOK;
		}
		if (next != WAIT_AGAIN)
			lead_look_around(clock_now());
		if (next != WAIT_SLEEP)
			continue;
		watches = become_watch();
		n = lead_arm_and_read();
		*b = lead.armed;
		if (n == 0 && !wanted())
			return watches ? IDLE_WATCHES : IDLE_ASIDE;
		if (watches)
			atomic_store(&lead.watched, 0);
		lead_silence();
		wait_again(&wait);
	}
	return IDLE_OVER;
}

/* There is a watch: sleep until there is work, or the watch has gone. */
static void
sleep_aside(void)
{
	uint32_t seen;

	atomic_fetch_add(&lead.sleepers, 1);
	seen = atomic_load(&lead.stirred);
	if (atomic_load(&lead.watched) != 0 && !lead.place.work(lead.place.ctx))
		word_sleep(&lead.stirred, seen, INT64_MAX);
	atomic_fetch_sub(&lead.sleepers, 1);
}

/* Another leads: be the watch, unless there is one, and sleep. Who leads arms the
 * bell for it when it stops; where that was done before we came, its ring may have
 * been, too. */
static void
stand_by(void)
{
	struct bell b;

	bell_init(&b, lead.bell, lead.shared);
	b.seen = atomic_load(&b.at->rung);
	if (!become_watch()) {
		sleep_aside();
	} else if (atomic_load(&lead.taken) != 0 &&
		atomic_load(&b.at->asleep) == 0 &&
		!lead.place.work(lead.place.ctx)) {
		keep_watch(&b);
	} else {
		atomic_store(&lead.watched, 0);
		sched_yield();
	}
}

/* A thread of the program waits, and shall lead: be the watch meanwhile. Who would
 * go on reading would make it follow, call by call. What rings when it stops, rings
 * later than @b has seen. */
static void
give_way(struct bell *b)
{
	bool watches;

	bell_init(b, lead.bell, lead.shared);
	b->seen = atomic_load(&b->at->rung);
	watches = become_watch();
	lead_stop();
	if (!watches)
		lead_pass_baton();
	else if (lead_pass_baton() && !has_own_work())
		keep_watch(b);
	else
		atomic_store(&lead.watched, 0);
}

void
lead_crew(void)
{
	struct bell b;

	if (!lead_try()) {
		stand_by();
		return;
	}
	switch (lead_idle(&b)) {
	case IDLE_OVER:
		if (has_own_work())
			lead_drop();
		else
			give_way(&b);
		break;
	case IDLE_WATCHES:
		lead_stop();
		/* One that follows now saw that nobody leads, or is told. */
		if (lead_pass_baton())
			atomic_store(&lead.watched, 0);
		else
			keep_watch(&b);
		break;
	case IDLE_ASIDE:
		lead_stop();
		if (!lead_pass_baton())
			sleep_aside();
		break;
	}
	lead_run_later();
}

void
lead_busy(void)
{
	if (atomic_load(&lead.taken) != 0)
		return;
	if (atomic_load(&lead.watched) == 0)
		lead_wake_crew();
	else if (atomic_load(&lead.bell->asleep) == 0)
		bell_wake(lead.bell,
			lead.shared); /* it sleeps on no armed one */
}
