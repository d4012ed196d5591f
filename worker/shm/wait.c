/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - see wait.h. */
#include <sched.h>

#include "base/clock.h"
#include "worker/shm/cpus.h"
#include "worker/shm/tick.h"
#include "worker/shm/wait.h"

/* What a tight loop may take from a neighbour: performance.md 4.2 has 2 to 5. */
#define PAUSE_NS 5000
/* And of a short wait: a quarter, then it yields: the program's own thread may run
 * on this CPU. [A caller in a loop is back in 0.2 us.] */
#define SHORT_PART 4
/* A sleep costs a wake-up for each side. [20 to 72 us, so 50 to 150] */
#define YIELD_NS_MIN 50000
#define YIELD_NS_MAX 1000000
/* Until the first wake-up was seen. */
#define WAKE_NS     50000
#define WAKE_NS_MAX 1000000
/* [Yields among waiters take 0.2 to 5 us, some 20 and more where the host takes its
 * processor away for a moment; one that lost a slice 1 to 4 ms.] */
#define CROWD_NS     200000
#define CROWDED_NS   (20 * NS_PER_MS)
#define COUNT_NS     NS_PER_MS
#define CLOCK_TURNS  8  /* looks at the clock while it pauses */
#define MISSES       8  /* then the site sleeps soon .. */
#define MISSES_RETRY 16 /* .. but for one wait in so many */

static int64_t
ticks(const struct wait_env *env, int64_t ns)
{
	return (int64_t)((double)ns * env->rate / NS_PER_MS);
}

void
wait_env_init(struct wait_env *env, const struct segment_map *map,
	uint32_t slot)
{
	static struct segment_shared alone; /* of a process without a segment */
	struct segment_shared *shared = &alone;
	uint32_t wake;

	*env = (struct wait_env){ .slot = slot };
	if (map != NULL) {
		env->map = *map;
		shared = segment_shared(map);
		env->shared_wake = &shared->wake_ns;
		env->mine = &segment_slot(map, slot)->cpu;
	}
	env->rate = tick_rate(&shared->ticks);
	env->pause_ticks = ticks(env, PAUSE_NS);
	env->crowd_ticks = ticks(env, CROWD_NS);
	env->crowded_ticks = ticks(env, CROWDED_NS);
	env->count_ticks = ticks(env, COUNT_NS);
	cpus_add(shared);
	env->cpus = cpus_count(shared);
	wake = atomic_load_explicit(&shared->wake_ns, memory_order_relaxed);
	atomic_store_explicit(&env->wake_ns,
		wake > 0 && wake < WAKE_NS_MAX ? wake : WAKE_NS,
		memory_order_relaxed);
}

/* --- who else is awake ---------------------------------------------------- */

static bool
is_awake(const struct segment_slot *s)
{
	return atomic_load_explicit(&s->plane, memory_order_relaxed) != 0 &&
		atomic_load_explicit(&s->bell.asleep, memory_order_relaxed) ==
		0;
}

static uint32_t
count_awake(const struct wait_env *env)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < env->map.plan.slots; i++)
		count += is_awake(segment_slot(&env->map, i));
	return count;
}

/* Counts anew once a millisecond. */
static void
recount(struct wait_env *env, int64_t now)
{
	int64_t counted =
		atomic_load_explicit(&env->counted, memory_order_relaxed);

	if (env->map.base == NULL ||
		(counted <= now && now - counted < env->count_ticks))
		return;
	atomic_store_explicit(&env->counted, now, memory_order_relaxed);
	atomic_store_explicit(&env->cpus, cpus_count(segment_shared(&env->map)),
		memory_order_relaxed);
	atomic_store_explicit(&env->running, count_awake(env),
		memory_order_relaxed);
}

/* Were there CPUs for all, when it was counted last? */
static bool
has_room(const struct wait_env *env)
{
	uint32_t cpus = atomic_load_explicit(&env->cpus, memory_order_relaxed);

	if (env->map.base == NULL)
		return cpus > 1;
	return atomic_load_explicit(&env->running, memory_order_relaxed) <=
		cpus;
}

/* --- the ladder ----------------------------------------------------------- */

int64_t
wait_yield_ns(const struct wait_env *env)
{
	int64_t ns = 2 *
		(int64_t)atomic_load_explicit(&env->wake_ns,
			memory_order_relaxed);

	if (ns < YIELD_NS_MIN)
		return YIELD_NS_MIN;
	return ns > YIELD_NS_MAX ? YIELD_NS_MAX : ns;
}

/* Tells where we are; is who we wait for elsewhere? */
static bool
is_elsewhere(struct wait *w)
{
	uint32_t here = cpus_here(), there;

	if (w->mine != NULL &&
		atomic_load_explicit(w->mine, memory_order_relaxed) != here)
		atomic_store_explicit(w->mine, here, memory_order_relaxed);
	if (w->peer == NULL)
		return here != 0;
	there = atomic_load_explicit(w->peer, memory_order_relaxed);
	return here != 0 && there != 0 && there != here;
}

/* Waits here outlast the looking: most of them need not look. */
static bool
sleeps_soon(struct wait_site *site)
{
	uint32_t waits;

	if (site != NULL && site->is_long)
		return true;
	if (site == NULL ||
		atomic_load_explicit(&site->misses, memory_order_relaxed) <
			MISSES)
		return false;
	waits = atomic_load_explicit(&site->waits, memory_order_relaxed);
	atomic_store_explicit(&site->waits, waits + 1, memory_order_relaxed);
	return waits % MISSES_RETRY != 0;
}

/* Without a look at the clock, which takes longer than the rest: most waits are
 * over before it is needed. */
static void
climb(struct wait *w)
{
	w->phase =
		is_elsewhere(w) && has_room(w->env) ? WAIT_PAUSES : WAIT_YIELDS;
	w->turns = 0;
	w->now = 0;
}

static void
start_clock(struct wait *w)
{
	struct wait_env *env = w->env;

	w->now = tick_now();
	if (w->begun == 0)
		w->begun = w->now;
	recount(env, w->now);
	if (!has_room(env))
		w->phase = WAIT_YIELDS;
	w->pause_end =
		w->phase == WAIT_PAUSES ? w->now + env->pause_ticks : w->now;
	if (w->is_short) {
		w->yield_end = w->now + env->pause_ticks;
		if (w->phase == WAIT_PAUSES)
			w->pause_end = w->now + env->pause_ticks / SHORT_PART;
	} else {
		w->yield_end = sleeps_soon(w->site) ?
			w->pause_end :
			w->now + ticks(env, wait_yield_ns(env));
	}
}

void
wait_begin(struct wait *w, struct wait_env *env, const _Atomic uint32_t *peer,
	struct wait_site *site)
{
	w->env = env;
	w->site = site;
	w->peer = peer;
	w->mine = env->mine;
	w->begun = 0;
	w->slept = false;
	w->is_short = false;
	climb(w);
}

void
wait_begin_short(struct wait *w, struct wait_env *env)
{
	wait_begin(w, env, NULL, NULL);
	w->is_short = true;
}

static void
yield(struct wait *w)
{
	struct wait_env *env = w->env;
	int64_t before;

	if (w->now == 0)
		start_clock(w);
	before = w->now;
	if (before >= w->yield_end ||
		before < atomic_load_explicit(&env->crowded_until,
				 memory_order_relaxed)) {
		w->phase = WAIT_SLEEPS;
		return;
	}
	sched_yield();
	w->now = tick_now();
	if (w->now - before > env->crowd_ticks)
		atomic_store_explicit(&env->crowded_until,
			w->now + env->crowded_ticks, memory_order_relaxed);
}

static void
look_at_clock(struct wait *w)
{
	if (w->now == 0)
		start_clock(w);
	else
		w->now = tick_now();
	if (w->now >= w->pause_end)
		w->phase = WAIT_YIELDS;
}

/* Now and then: has one of the two moved? */
static enum wait_next
look(struct wait *w)
{
	if (!is_elsewhere(w) && w->phase == WAIT_PAUSES)
		w->phase = WAIT_YIELDS;
	return WAIT_LOOK;
}

enum wait_next
wait_turn(struct wait *w)
{
	w->turns++;
	if (w->phase == WAIT_PAUSES) {
		tick_pause();
		if (w->turns % CLOCK_TURNS == 0)
			look_at_clock(w);
	} else if (w->phase == WAIT_YIELDS) {
		yield(w);
	}
	if (w->phase == WAIT_SLEEPS)
		return WAIT_SLEEP;
	return w->turns % WAIT_LOOKS == 0 ? look(w) : WAIT_AGAIN;
}

void
wait_again(struct wait *w)
{
	climb(w);
}

/* A moving average of 1/8: what a sleep costs here. */
static void
learn_wake(struct wait_env *env, int64_t took)
{
	double ns = (double)took * NS_PER_MS / env->rate;
	uint32_t old =
		atomic_load_explicit(&env->wake_ns, memory_order_relaxed);

	if (took <= 0 || ns > WAKE_NS_MAX)
		return;
	old += (uint32_t)(int32_t)((ns - (double)old) / 8);
	atomic_store_explicit(&env->wake_ns, old, memory_order_relaxed);
	if (env->shared_wake != NULL)
		atomic_store_explicit(env->shared_wake, old,
			memory_order_relaxed);
}

void
wait_woken(struct wait *w, int64_t took)
{
	learn_wake(w->env, took);
	w->slept = true;
	climb(w);
}

/* Who slept, though the wait was no longer than the looking would have been, has
 * to learn that looking pays. */
void
wait_end(struct wait *w)
{
	uint32_t misses;
	bool missed;

	if (w->site == NULL)
		return;
	misses = atomic_load_explicit(&w->site->misses, memory_order_relaxed);
	missed = w->slept &&
		tick_now() - w->begun > ticks(w->env, wait_yield_ns(w->env));
	if (!missed && misses != 0)
		atomic_store_explicit(&w->site->misses, 0,
			memory_order_relaxed);
	else if (missed && misses < MISSES)
		atomic_store_explicit(&w->site->misses, misses + 1,
			memory_order_relaxed);
}
