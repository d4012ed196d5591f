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
#include "worker/rpc/lead.h"
#include "worker/rpc/word.h"

#define SOURCES_MAX  8
#define BUDGET       64               /* messages a turn */
#define CREW_NS      (5 * NS_PER_US)  /* that one looks for nobody */
#define FOLLOW_NS    (50 * NS_PER_US) /* that one looks at its own word */
#define DROP_TRIES   4
#define UNWATCHED_NS NS_PER_MS
#define LOOKS        64 /* turns between two looks at the clock */

TAILQ_HEAD(waiter_list, waiter);

static struct segment_bell own_bell;

static struct {
	struct lead_place place;
	struct wait_env own_env, *env;
	struct segment_bell *_Atomic bell;
	struct bell armed; /* by who leads, or is about to stop */
	_Atomic bool shared;
	struct lead_source source[SOURCES_MAX];
	_Atomic uint32_t sources;
	bool abandoned; /* this is a child of the process that reads */

	_Alignas(64) _Atomic uint32_t taken;
	_Atomic uint32_t claimed;  /* somebody is to have it, and no other */
	_Atomic uint32_t watched;  /* one of the crew keeps watch */
	_Atomic uint32_t sleepers; /* of the crew, beside it */
	_Atomic uint32_t stirred;  /* a futex: what they sleep on */
	_Atomic int64_t due;       /* INT64_MAX: nothing is */

	pthread_mutex_t lock;
	_Atomic uint32_t follower_count;
	struct waiter_list followers;
} l = {
	.bell = &own_bell,
	.armed = { .at = &own_bell },
	.due = INT64_MAX,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.followers = TAILQ_HEAD_INITIALIZER(l.followers),
};

static __thread struct {
	bool leads;
	bool in_short; /* runs what may not wait */
	uint32_t delivers;
	struct later *first, **last;
} me __attribute__((tls_model("initial-exec")));

/* --- waking --------------------------------------------------------------- */

void
lead_bell(void)
{
	bell_ring(l.bell, NULL, l.shared);
}

static void
silence(void)
{
	atomic_store_explicit(&l.bell->asleep, 0, memory_order_relaxed);
}

void
lead_wake_crew(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&l.sleepers) > 0) {
		atomic_fetch_add(&l.stirred, 1);
		word_wake(&l.stirred, 1);
	} else if (atomic_load(&l.watched) != 0) {
		bell_wake(l.bell, l.shared);
	}
}

void
lead_wake_all(void)
{
	atomic_fetch_add(&l.stirred, 1);
	word_wake(&l.stirred, INT_MAX);
	bell_wake(l.bell, l.shared);
}

/* --- what is put off ------------------------------------------------------ */

bool
lead_delivers(void)
{
	return me.delivers > 0 || me.in_short;
}

/* What one of them puts off is run behind it, not within it: a chain may be of any
 * length. */
static void
run_later(void)
{
	struct later *now;

	while (!me.in_short && (now = me.first) != NULL) {
		me.first = now->next;
		if (me.first == NULL)
			me.last = NULL;
		me.in_short = !now->waits;
		now->run(now);
		me.in_short = false;
	}
}

void
lead_later(struct later *later)
{
	later->next = NULL;
	if (me.last != NULL)
		*me.last = later;
	else
		me.first = later;
	me.last = &later->next;
	if (me.delivers == 0 && !me.leads)
		run_later();
}

void
lead_deliver_begin(void)
{
	me.delivers++;
}

void
lead_deliver_end(void)
{
	if (--me.delivers == 0 && !me.leads)
		run_later();
}

/* --- leading -------------------------------------------------------------- */

static bool
lead_try(void)
{
	uint32_t no = 0;

	if (atomic_load_explicit(&l.taken, memory_order_relaxed) != 0 ||
		atomic_load(&l.claimed) != 0 ||
		!atomic_compare_exchange_strong(&l.taken, &no, 1))
		return false;
	me.leads = true;
	return true;
}

static void
lead_stop(void)
{
	me.leads = false;
	atomic_store(&l.taken, 0);
}

static uint32_t
read_all(void)
{
	uint32_t n = 0,
		 count = atomic_load_explicit(&l.sources, memory_order_acquire);

	me.delivers++;
	for (uint32_t i = 0; i < count; i++)
		n += l.source[i].progress(l.source[i].self, BUDGET);
	me.delivers--;
	return n;
}

/* From now on what comes rings; what came before is read now, all of it. */
static uint32_t
arm_and_read(void)
{
	bell_arm(&l.armed);
	if (l.place.thorough != NULL)
		l.place.thorough(l.place.ctx);
	return read_all() + (l.place.busy != NULL && l.place.busy(l.place.ctx));
}

static void
look_around(int64_t now)
{
	int64_t due = atomic_load_explicit(&l.due, memory_order_relaxed);

	if (l.place.look != NULL)
		l.place.look(l.place.ctx);
	/* What becomes due meanwhile is told by lead_due(), or by expire(). */
	if (due > now ||
		!atomic_compare_exchange_strong(&l.due, &due, INT64_MAX))
		return;
	me.delivers++;
	due = l.place.expire(l.place.ctx, now);
	me.delivers--;
	lead_due(due);
}

/* To the follower that came first. False: there is none. */
static bool
pass_baton(void)
{
	struct waiter *w;
	bool passed = false;
	uint32_t was;

	if (atomic_load(&l.follower_count) == 0)
		return false;
	pthread_mutex_lock(&l.lock);
	while (!passed && (w = TAILQ_FIRST(&l.followers)) != NULL) {
		TAILQ_REMOVE(&l.followers, w, list);
		w->follows = false;
		atomic_fetch_sub(&l.follower_count, 1);
		was = WAITER_ASLEEP;
		if (atomic_compare_exchange_strong(&w->state, &was,
			    WAITER_BATON)) {
			word_wake(&w->state, 1);
			passed = true;
		} else if (was == WAITER_PENDING) {
			passed = atomic_compare_exchange_strong(&w->state, &was,
				WAITER_BATON);
		}
	}
	pthread_mutex_unlock(&l.lock);
	return passed;
}

/* Nobody leads from now on: what comes rings, and what came before that is read
 * here, unless there is always more. */
static void
lead_drop(void)
{
	for (int tries = 0; tries < DROP_TRIES; tries++) {
		if (atomic_load(&l.watched) == 0)
			break;
		if (arm_and_read() == 0) {
			lead_stop();
			/* It may have found something to do meanwhile. */
			if (!pass_baton() && atomic_load(&l.watched) == 0)
				lead_wake_crew();
			return;
		}
		silence();
	}
	lead_stop();
	if (!pass_baton())
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
	wait_env_init(&l.own_env, NULL, 0);
	if (l.env == NULL)
		l.env = &l.own_env;
}

static enum led
lead_until(struct waiter *w, const struct wait_hint *hint, int64_t deadline)
{
	struct wait wait;
	enum led led = LED_DONE;
	uint32_t turns = 0;

	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_env);
	silence();
	wait_begin(&wait, l.env, hint != NULL ? hint->cpu : NULL,
		hint != NULL ? hint->site : NULL);
	while (!waiter_is_done(w) && me.first == NULL && led == LED_DONE &&
		atomic_load_explicit(&l.claimed, memory_order_relaxed) == 0) {
		enum wait_next next = WAIT_AGAIN;

		if (read_all() == 0)
			next = wait_turn(&wait);
		else if (++turns % LOOKS == 0)
			next = WAIT_LOOK;
		if (next == WAIT_AGAIN)
			continue;
		look_around(clock_now());
		if (clock_now() >= deadline)
			break;
		if (next == WAIT_SLEEP)
			led = LED_IDLE;
	}
	wait_end(&wait);
	return led;
}

/* Only who leads may silence the bell: another could do so just after it was
 * armed. */
void
lead_expect(void)
{
	if (lead_try())
		silence();
}

/* The lead is ours, or was to be, and is not needed. */
void
lead_decline(void)
{
	if (me.leads || lead_try()) {
		lead_drop();
		run_later();
	}
}

void
lead_poll(void)
{
	bool kept = me.leads;

	if (!kept && !lead_try()) {
		sched_yield();
		return;
	}
	if (read_all() == 0)
		sched_yield();
	look_around(clock_now());
	if (kept)
		return;
	lead_drop();
	run_later();
}

/* --- following ------------------------------------------------------------ */

static void
unfollow(struct waiter *w)
{
	pthread_mutex_lock(&l.lock);
	if (w->follows) {
		TAILQ_REMOVE(&l.followers, w, list);
		atomic_fetch_sub(&l.follower_count, 1);
	}
	w->follows = false;
	pthread_mutex_unlock(&l.lock);
}

static void
doze(struct waiter *w, int64_t deadline)
{
	uint32_t was = WAITER_PENDING;

	if (!atomic_compare_exchange_strong(&w->state, &was, WAITER_ASLEEP))
		return;
	while (atomic_load(&w->state) == WAITER_ASLEEP &&
		clock_now() < deadline)
		word_sleep(&w->state, WAITER_ASLEEP, deadline);
	was = WAITER_ASLEEP;
	atomic_compare_exchange_strong(&w->state, &was, WAITER_PENDING);
}

/* While its leader is at it, the word is likely to change soon. */
static void
look_and_doze(struct waiter *w, int64_t deadline)
{
	int64_t end = clock_now() + FOLLOW_NS;

	while (atomic_load(&w->state) == WAITER_PENDING &&
		atomic_load(&l.taken) != 0) {
		sched_yield();
		if (clock_now() < end)
			continue;
		doze(w, deadline);
		return;
	}
}

static void
follow(struct waiter *w, int64_t deadline)
{
	uint32_t was = WAITER_BATON;

	pthread_mutex_lock(&l.lock);
	w->follows = true;
	TAILQ_INSERT_TAIL(&l.followers, w, list);
	atomic_fetch_add(&l.follower_count, 1);
	pthread_mutex_unlock(&l.lock);
	/* Who led may have left before it could see us. */
	if (atomic_load(&l.taken) != 0)
		look_and_doze(w, deadline);
	unfollow(w);
	if (!atomic_compare_exchange_strong(&w->state, &was, WAITER_PENDING) &&
		was == WAITER_DONE)
		lead_decline(); /* a baton may have been written over */
}

/* Where there is no thread to keep watch, for none could be made, this one has to
 * look again. */
static int64_t
until_next_look(int64_t deadline)
{
	int64_t soon = clock_now() + UNWATCHED_NS;

	return atomic_load(&l.sources) == 0 || atomic_load(&l.watched) != 0 ||
			atomic_load(&l.sleepers) != 0 || deadline < soon ?
		deadline :
		soon;
}

bool
lead_wait(struct waiter *w, const struct wait_hint *hint, int64_t deadline)
{
	enum led led;

	while (!waiter_is_done(w)) {
		if (me.leads || lead_try()) {
			led = lead_until(w, hint, deadline);
			lead_drop();
			run_later();
			/* From now on the watch reads, and wakes us. */
			if (led == LED_IDLE)
				doze(w, until_next_look(deadline));
		} else {
			follow(w, deadline);
		}
		if (!waiter_is_done(w) && clock_now() >= deadline) {
			lead_decline();
			return waiter_is_done(w);
		}
	}
	if (me.leads)
		lead_decline();
	return true;
}

void
waiter_done(struct waiter *w)
{
	if (atomic_exchange(&w->state, WAITER_DONE) == WAITER_ASLEEP)
		word_wake(&w->state, 1);
}

/* --- the crew ------------------------------------------------------------- */

void
lead_due(int64_t when)
{
	int64_t due = atomic_load(&l.due);

	while (when < due && !atomic_compare_exchange_weak(&l.due, &due, when))
		continue;
	/* The watch sleeps till what was due before. */
	if (when < due && atomic_load(&l.watched) != 0)
		bell_wake(l.bell, l.shared);
}

static bool
wanted(void)
{
	return me.first != NULL || l.place.work(l.place.ctx) ||
		atomic_load(&l.follower_count) > 0 ||
		atomic_load(&l.claimed) != 0;
}

/* Sleeps on the bell, which was armed as in @b; then it is the watch no more. */
static void
keep_watch(struct bell *b)
{
	struct bell_word words[BELL_WORDS];
	uint32_t n = 0;

	if (l.place.watch != NULL)
		n = l.place.watch(l.place.ctx, words, BELL_WORDS);
	bell_sleep(b, words, n, atomic_load(&l.due));
	atomic_store(&l.watched, 0);
}

static bool
become_watch(void)
{
	uint32_t no = 0;

	return atomic_compare_exchange_strong(&l.watched, &no, 1);
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
	int64_t end = clock_now() + CREW_NS;
	bool watches;
	uint32_t n;

	silence();
	if (l.place.thorough != NULL)
		l.place.thorough(l.place.ctx);
	while (!wanted()) {
		int64_t now = clock_now();

		if (read_all() > 0) {
			end = now + CREW_NS;
			continue;
		}
		look_around(now);
		if (now < end) {
			sched_yield();
			continue;
		}
		watches = become_watch();
		n = arm_and_read();
		*b = l.armed;
		if (n == 0 && !wanted())
			return watches ? IDLE_WATCHES : IDLE_ASIDE;
		if (watches)
			atomic_store(&l.watched, 0);
		silence();
		end = now + CREW_NS;
	}
	return IDLE_OVER;
}

/* There is a watch: sleep until there is work, or the watch has gone. */
static void
sleep_aside(void)
{
	uint32_t seen;

	atomic_fetch_add(&l.sleepers, 1);
	seen = atomic_load(&l.stirred);
	if (atomic_load(&l.watched) != 0 && !l.place.work(l.place.ctx))
		word_sleep(&l.stirred, seen, INT64_MAX);
	atomic_fetch_sub(&l.sleepers, 1);
}

/* Another leads: be the watch, unless there is one, and sleep. Who leads arms the
 * bell for it when it stops; where that was done before we came, its ring may have
 * been, too. */
static void
stand_by(void)
{
	struct bell b;

	bell_init(&b, l.bell, l.shared);
	b.seen = atomic_load(&b.at->rung);
	if (!become_watch()) {
		sleep_aside();
	} else if (atomic_load(&l.taken) != 0 &&
		atomic_load(&b.at->asleep) == 0 && !l.place.work(l.place.ctx)) {
		keep_watch(&b);
	} else {
		atomic_store(&l.watched, 0);
		sched_yield();
	}
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
		lead_drop();
		break;
	case IDLE_WATCHES:
		lead_stop();
		/* One that follows now saw that nobody leads, or is told. */
		if (pass_baton())
			atomic_store(&l.watched, 0);
		else
			keep_watch(&b);
		break;
	case IDLE_ASIDE:
		lead_stop();
		if (!pass_baton())
			sleep_aside();
		break;
	}
	run_later();
}

void
lead_busy(void)
{
	if (atomic_load(&l.watched) == 0 && atomic_load(&l.taken) == 0)
		lead_wake_crew();
}

/* --- beginning and end ---------------------------------------------------- */

/* Somebody may lead who is not in the agent: it waits for a future of its own. It
 * stops at its next turn, and none other begins. */
static void
claim(void)
{
	uint32_t no = 0;

	atomic_fetch_add(&l.claimed, 1);
	while (!atomic_compare_exchange_weak(&l.taken, &no, 1)) {
		no = 0;
		sched_yield();
	}
}

static void
disclaim(void)
{
	atomic_store(&l.taken, 0);
	atomic_fetch_sub(&l.claimed, 1);
	pass_baton();
}

void
lead_open(const struct lead_place *place)
{
	claim();
	l.place = *place;
	atomic_store(&l.sources, 0);
	atomic_store(&l.shared, place->bell != NULL);
	atomic_store(&l.bell, place->bell != NULL ? place->bell : &own_bell);
	bell_init(&l.armed, l.bell, l.shared);
	l.env = place->env != NULL ? place->env : &l.own_env;
	if (place->env == NULL)
		wait_env_init(&l.own_env, NULL, 0);
	atomic_store(&l.due, INT64_MAX);
	disclaim();
}

void
lead_add(struct lead_source source)
{
	uint32_t n = atomic_load(&l.sources);

	l.source[n] = source;
	atomic_store_explicit(&l.sources, n + 1, memory_order_release);
}

void
lead_close(void)
{
	claim();
	atomic_store(&l.sources, 0);
	atomic_store(&l.due, INT64_MAX);
	l.place = (struct lead_place){ 0 };
	atomic_store(&l.shared, false);
	atomic_store(&l.bell, &own_bell);
	bell_init(&l.armed, &own_bell, false);
	disclaim();
}

void
lead_abandon(void)
{
	l.abandoned = true;
	atomic_fetch_add(&l.claimed, 1);
	me.leads = false;
}

bool
lead_is_abandoned(void)
{
	return l.abandoned;
}
