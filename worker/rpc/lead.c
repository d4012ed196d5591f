/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lead.c - see lead.h.
 *
 * Who passes whom. A follower notes itself, then looks whether somebody leads; who
 * stops leading says so, then looks for followers, and for the watch. The watch
 * says that it is there, then looks whether the bell is armed already; who stops
 * leading arms the bell, then looks at the sources once more. The watch says that
 * it is gone, then looks whether somebody leads. Work is queued, then the crew's
 * sleepers are counted; they count themselves, then look for work.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/rpc/lead_inner.h"
#include "worker/rpc/word.h"

#define BUDGET       64               /* messages a turn */
#define FOLLOW_NS    (50 * NS_PER_US) /* that one looks at its own word */
#define DROP_TRIES   4
#define UNWATCHED_NS NS_PER_MS
#define CATCH_UP     1024           /* turns; peers may send without end */
#define CLAIM_NS     (2 * NS_PER_S) /* a leader may be in a callback */

static struct segment_bell own_bell;
static _Atomic uint32_t own_awaits;

struct lead lead = {
	.bell = &own_bell,
	.awaits = &own_awaits,
	.armed = { .at = &own_bell },
	.due = INT64_MAX,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.followers = TAILQ_HEAD_INITIALIZER(lead.followers),
};

__thread struct lead_thread lead_me __attribute__((tls_model("initial-exec")));

/* --- waking --------------------------------------------------------------- */

void
lead_bell(void)
{
	bell_ring(lead.bell, NULL, lead.shared);
}

void
lead_silence(void)
{
	_Atomic uint32_t *awaits = lead.awaits;

	atomic_store_explicit(&lead.bell->asleep, 0, memory_order_relaxed);
	if (atomic_load_explicit(awaits, memory_order_relaxed) != 0)
		atomic_store_explicit(awaits, 0, memory_order_relaxed);
}

void
lead_wake_crew(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&lead.sleepers) > 0) {
		atomic_fetch_add(&lead.stirred, 1);
		word_wake(&lead.stirred, 1);
	} else if (atomic_load(&lead.watched) != 0) {
		bell_wake(lead.bell, lead.shared);
	}
}

void
lead_wake_all(void)
{
	atomic_fetch_add(&lead.stirred, 1);
	word_wake(&lead.stirred, INT_MAX);
	bell_wake(lead.bell, lead.shared);
}

/* --- what is put off ------------------------------------------------------ */

bool
lead_delivers(void)
{
	return lead_me.delivers > 0 || lead_me.in_short;
}

/* What one of them puts off is run behind it, not within it: a chain may be of any
 * length. */
void
lead_run_later(void)
{
	struct later *now;

	while (!lead_me.in_short && (now = lead_me.first) != NULL) {
		lead_me.first = now->next;
		if (lead_me.first == NULL)
			lead_me.last = NULL;
		lead_me.in_short = !now->waits;
		now->run(now);
		lead_me.in_short = false;
	}
}

void
lead_later(struct later *later)
{
	later->next = NULL;
	if (lead_me.last != NULL)
		*lead_me.last = later;
	else
		lead_me.first = later;
	lead_me.last = &later->next;
	if (lead_me.delivers == 0 && !lead_me.leads)
		lead_run_later();
}

bool
lead_has_later(void)
{
	return lead_me.first != NULL;
}

void
lead_deliver_begin(void)
{
	lead_me.delivers++;
}

void
lead_deliver_end(void)
{
	if (--lead_me.delivers == 0 && !lead_me.leads)
		lead_run_later();
}

/* --- leading -------------------------------------------------------------- */

bool
lead_try(void)
{
	uint32_t no = 0;

	if (atomic_load_explicit(&lead.taken, memory_order_relaxed) != 0 ||
		atomic_load(&lead.claimed) != 0 ||
		!atomic_compare_exchange_strong(&lead.taken, &no, 1))
		return false;
	lead_me.leads = true;
	return true;
}

void
lead_stop(void)
{
	lead_me.leads = false;
	atomic_store(&lead.taken, 0);
}

uint32_t
lead_read(void)
{
	uint32_t n = 0,
		 count = atomic_load_explicit(&lead.sources,
			 memory_order_acquire);

	lead_me.delivers++;
	for (uint32_t i = 0; i < count; i++)
		n += lead.source[i].progress(lead.source[i].self, BUDGET);
	lead_me.delivers--;
	return n;
}

/* From now on what comes rings; what came before is read now, all of it. */
uint32_t
lead_arm_and_read(void)
{
	bell_arm(&lead.armed);
	if (atomic_load(&lead.asked) > 0) {
		atomic_store_explicit(lead.awaits, lead.armed.nap,
			memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
	}
	if (lead.place.thorough != NULL)
		lead.place.thorough(lead.place.ctx);
	return lead_read() +
		(lead.place.busy != NULL && lead.place.busy(lead.place.ctx));
}

/* Called by the thread that leads. What threads of transports deliver may be an answer to
 * this process itself, so they come first. */
static void
read_all(void)
{
	uint32_t threads =
		atomic_load_explicit(&lead.threads, memory_order_acquire);

	for (uint32_t i = 0; i < threads; i++)
		lead.thread[i].catch_up(lead.thread[i].self);
	for (int turn = 0; turn < CATCH_UP; turn++) {
		if (lead.place.thorough != NULL)
			lead.place.thorough(lead.place.ctx);
		if (lead_read() == 0 &&
			(lead.place.busy == NULL ||
				!lead.place.busy(lead.place.ctx)))
			return;
	}
}

/* What came by @now is read before anything ends that was due by then. */
void
lead_look_around(int64_t now)
{
	int64_t due = atomic_load_explicit(&lead.due, memory_order_relaxed);

	if (lead.place.look != NULL)
		lead.place.look(lead.place.ctx);
	/* What becomes due meanwhile is told by lead_due(), or by expire(). */
	if (due > now ||
		!atomic_compare_exchange_strong(&lead.due, &due, INT64_MAX))
		return;
	read_all();
	lead_me.delivers++;
	due = lead.place.expire(lead.place.ctx, now);
	lead_me.delivers--;
	lead_due(due);
}

/* False: its wait is over. It may doze off, or wake up, between two looks. */
static bool
hand(struct waiter *w)
{
	uint32_t was = WAITER_ASLEEP;

	for (;;) {
		if (atomic_compare_exchange_strong(&w->state, &was,
			    WAITER_BATON)) {
			if (was == WAITER_ASLEEP)
				word_wake(&w->state, 1);
			return true;
		}
		if (was != WAITER_ASLEEP && was != WAITER_PENDING)
			return false;
	}
}

/* To the follower that came first. False: there is none. */
bool
lead_pass_baton(void)
{
	struct waiter *w;
	bool passed = false;

	if (atomic_load(&lead.follower_count) == 0)
		return false;
	pthread_mutex_lock(&lead.lock);
	while (!passed && (w = TAILQ_FIRST(&lead.followers)) != NULL) {
		TAILQ_REMOVE(&lead.followers, w, list);
		w->follows = false;
		atomic_fetch_sub(&lead.follower_count, 1);
		passed = hand(w);
	}
	pthread_mutex_unlock(&lead.lock);
	return passed;
}

/* Nobody leads from now on: what comes rings, and what came before that is read
 * here, unless there is always more. */
void
lead_drop(void)
{
	for (int tries = 0; tries < DROP_TRIES; tries++) {
		if (atomic_load(&lead.watched) == 0)
			break;
		if (lead_arm_and_read() == 0) {
			lead_stop();
			/* It may have found something to do meanwhile. */
			if (!lead_pass_baton() &&
				atomic_load(&lead.watched) == 0)
				lead_wake_crew();
			return;
		}
		lead_silence();
	}
	lead_stop();
	if (!lead_pass_baton())
		lead_wake_crew();
}

enum led {
	LED_DONE, /* it is done, its time is over, or something was put off */
	LED_IDLE, /* nothing came for long */
};

/* Of a process without an agent. */
static void
make_env(void)
{
	if (lead.env != NULL)
		return;
	wait_env_init(&lead.own_env, NULL, 0);
	lead.env = &lead.own_env;
}

static enum led
lead_until(struct waiter *w, const struct wait_hint *hint, int64_t deadline)
{
	struct wait wait;
	enum led led = LED_DONE;

	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_env);
	lead_silence();
	lead_me.leads_for = w;
	wait_begin(&wait, lead.env, hint != NULL ? hint->cpu : NULL,
		hint != NULL ? hint->site : NULL);
	while (!waiter_is_done(w) && lead_me.first == NULL && led == LED_DONE &&
		atomic_load_explicit(&lead.claimed, memory_order_relaxed) ==
			0) {
		enum wait_next next = WAIT_AGAIN;

		if (lead_read() == 0)
			next = wait_turn(&wait);
		else if (++lead.turns % LEAD_LOOKS == 0)
			next = WAIT_LOOK;
		if (next == WAIT_AGAIN)
			continue;
		lead_look_around(clock_now());
		if (clock_now() >= deadline)
			break;
		if (next == WAIT_SLEEP)
			led = LED_IDLE;
	}
	wait_end(&wait);
	lead_me.leads_for = NULL;
	return led;
}

/* Only who leads may silence the bell: another could do so just after it was
 * armed. */
void
lead_expect(void)
{
	if (lead_try())
		lead_silence();
}

/* The lead is ours, or was to be, and is not needed. */
void
lead_decline(void)
{
	if (lead_me.leads || lead_try()) {
		lead_drop();
		lead_run_later();
	}
}

void
lead_poll(void)
{
	bool kept = lead_me.leads;

	if (!kept && !lead_try()) {
		sched_yield();
		return;
	}
	if (lead_read() == 0)
		sched_yield();
	lead_look_around(clock_now());
	if (kept)
		return;
	lead_drop();
	lead_run_later();
}

/* --- following ------------------------------------------------------------ */

static void
unfollow(struct waiter *w)
{
	pthread_mutex_lock(&lead.lock);
	if (w->follows) {
		TAILQ_REMOVE(&lead.followers, w, list);
		atomic_fetch_sub(&lead.follower_count, 1);
	}
	w->follows = false;
	pthread_mutex_unlock(&lead.lock);
}

/* While its leader is at it, the word is likely to change soon. */
static void
look_and_doze(struct waiter *w, int64_t deadline)
{
	int64_t end = clock_now() + FOLLOW_NS;

	while (atomic_load(&w->state) == WAITER_PENDING &&
		atomic_load(&lead.taken) != 0) {
		sched_yield();
		if (clock_now() < end)
			continue;
		waiter_rest(w, deadline);
		return;
	}
}

/* True: it was handed the lead, which it has to take, or to decline. */
static bool
follow(struct waiter *w, int64_t deadline)
{
	uint32_t was = WAITER_BATON;

	pthread_mutex_lock(&lead.lock);
	w->follows = true;
	TAILQ_INSERT_TAIL(&lead.followers, w, list);
	atomic_fetch_add(&lead.follower_count, 1);
	pthread_mutex_unlock(&lead.lock);
	/* Who led may have left before it could see us. */
	if (atomic_load(&lead.taken) != 0)
		look_and_doze(w, deadline);
	unfollow(w);
	/* Of a wait that is over a baton may have been written over. */
	return atomic_compare_exchange_strong(&w->state, &was,
		       WAITER_PENDING) ||
		was == WAITER_DONE;
}

/* Where there is no thread to keep watch, for none could be made, this one has to
 * look again. */
static int64_t
until_next_look(int64_t deadline)
{
	int64_t soon = clock_now() + UNWATCHED_NS;

	return atomic_load(&lead.sources) == 0 ||
			atomic_load(&lead.watched) != 0 ||
			atomic_load(&lead.sleepers) != 0 || deadline < soon ?
		deadline :
		soon;
}

static bool
lead_helps(void)
{
	bool (*help)(void *ctx) = atomic_load(&lead.help);

	return help != NULL && help(NULL);
}

bool
lead_wait(struct waiter *w, const struct wait_hint *hint, int64_t deadline)
{
	bool handed = false; /* somebody relies on it that this one leads */
	enum led led;

	while (!waiter_is_done(w)) {
		if (lead_me.leads || lead_try()) {
			handed = false;
			led = lead_until(w, hint, deadline);
			if (led == LED_IDLE)
				lead_asked();
			lead_drop();
			lead_run_later();
			/* From now on the watch reads, and wakes us. */
			if (led == LED_IDLE) {
				if (!lead_helps())
					waiter_rest(w,
						until_next_look(deadline));
				lead_answered();
			}
		} else {
			handed |= follow(w, deadline);
		}
		if (!waiter_is_done(w) && clock_now() >= deadline) {
			lead_decline();
			return waiter_is_done(w);
		}
	}
	if (lead_me.leads || handed)
		lead_decline();
	return true;
}

/* A thread that leads stops at its next turn, and no other thread begins. That thread
 * may be outside the agent, if it waits for a future of the program. Returns false if it
 * has not stopped before @end, of CLOCK_MONOTONIC. */
static bool
lead_claim_until(int64_t end)
{
	uint32_t no = 0;

	atomic_fetch_add(&lead.claimed, 1);
	while (!atomic_compare_exchange_weak(&lead.taken, &no, 1)) {
		if (end != INT64_MAX && clock_now() >= end) {
			atomic_fetch_sub(&lead.claimed, 1);
			return false;
		}
		no = 0;
		sched_yield();
	}
	return true;
}

static void
claim(void)
{
	lead_claim_until(INT64_MAX);
}

static void
disclaim(void)
{
	atomic_store(&lead.taken, 0);
	atomic_fetch_sub(&lead.claimed, 1);
	lead_pass_baton();
}

void
lead_catch_up(void)
{
	if (!lead_me.leads) {
		if (lead.abandoned)
			return;
		if (!lead_claim_until(clock_now() + CLAIM_NS))
			return;
		lead_me.leads = true;
		atomic_fetch_sub(&lead.claimed, 1);
		lead_silence();
	}
	lead_look_around(clock_now());
	read_all();
}

void
waiter_done(struct waiter *w)
{
	/* Nobody hands us anything while we lead. */
	if (lead_me.leads_for == w) {
		atomic_store_explicit(&w->state, WAITER_DONE,
			memory_order_relaxed);
		return;
	}
	waiter_end(w);
}

/* Of this and who arms the bell one sees the other. What was armed since is not
 * written over. */
void
lead_asked(void)
{
	uint32_t nap, said;

	atomic_fetch_add(&lead.asked, 1);
	nap = atomic_load(&lead.bell->asleep);
	if (nap == 0)
		return;
	/* Looked at before: to try already takes the line from those who read it. */
	said = atomic_load(lead.awaits);
	while ((said == 0 || (int32_t)(nap - said) > 0) &&
		!atomic_compare_exchange_weak(lead.awaits, &said, nap))
		continue;
}

void
lead_answered(void)
{
	atomic_fetch_sub(&lead.asked, 1);
}

/* --- beginning and end ---------------------------------------------------- */

void
lead_open(const struct lead_place *place)
{
	claim();
	lead.place = *place;
	atomic_store(&lead.help, place->help);
	atomic_store(&lead.sources, 0);
	atomic_store(&lead.threads, 0);
	atomic_store(&lead.shared, place->bell != NULL);
	atomic_store(&lead.bell, place->bell != NULL ? place->bell : &own_bell);
	atomic_store(&lead.awaits,
		place->awaits != NULL ? place->awaits : &own_awaits);
	atomic_store(lead.awaits, 0);
	bell_init(&lead.armed, lead.bell, lead.shared);
	lead.env = place->env != NULL ? place->env : &lead.own_env;
	if (place->env == NULL)
		wait_env_init(&lead.own_env, NULL, 0);
	atomic_store(&lead.due, INT64_MAX);
	disclaim();
}

void
lead_add(struct lead_source source)
{
	uint32_t n = atomic_load(&lead.sources);

	lead.source[n] = source;
	atomic_store_explicit(&lead.sources, n + 1, memory_order_release);
}

void
lead_add_thread(struct lead_thread_source source)
{
	uint32_t n = atomic_load(&lead.threads);

	if (n == LEAD_THREADS_MAX)
		return;
	lead.thread[n] = source;
	atomic_store_explicit(&lead.threads, n + 1, memory_order_release);
}

void
lead_close(void)
{
	claim();
	lead_silence();
	atomic_store(&lead.sources, 0);
	atomic_store(&lead.threads, 0);
	atomic_store(&lead.due, INT64_MAX);
	lead.place = (struct lead_place){ 0 };
	atomic_store(&lead.shared, false);
	atomic_store(&lead.bell, &own_bell);
	atomic_store(&lead.awaits, &own_awaits);
	bell_init(&lead.armed, &own_bell, false);
	disclaim();
}

void
lead_abandon(void)
{
	lead.abandoned = true;
	atomic_fetch_add(&lead.claimed, 1);
	lead_me.leads = false;
}

bool
lead_is_abandoned(void)
{
	return lead.abandoned;
}
