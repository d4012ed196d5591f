/* SPDX-License-Identifier: Apache-2.0 */
/* rest.c - see rest.h. */
#include "base/clock.h"
#include "worker/gang/rest.h"
#include "worker/rpc/word.h"
#include "worker/shm/tick.h"

#define NAP_NS (NS_PER_MS / 2) /* of the sentry */

int64_t
rest_little(const struct gang *g)
{
	int64_t wake =
		atomic_load_explicit(&g->env.wake_ns, memory_order_relaxed);

	return 2 * wake * g->env.rate / NS_PER_MS;
}

/* Nothing is known of tasks before the first ones are over. */
static bool
is_little(struct gang *g, uint32_t tasks)
{
	int64_t each =
		atomic_load_explicit(&g->task_ticks, memory_order_relaxed);

	if (tasks == 0)
		tasks = atomic_fetch_add_explicit(&g->unanswered, 1,
				memory_order_relaxed) +
			1;
	return each > 0 && each < rest_little(g) / tasks;
}

void
rest_answer(struct gang *g, uint64_t counts, uint32_t tasks)
{
	if ((counts & REST_SENTRY) != 0 &&
		(counts / REST_RUNS & REST_MOST) != 0 && is_little(g, tasks))
		return;
	rest_wake(g);
}

/* --- the list ------------------------------------------------------------- */

/* With the lock. False: another one has woken it. */
static bool
list_remove(struct gang *g, struct sleeper *s)
{
	struct sleeper **at = &g->asleep;

	while (*at != NULL && *at != s)
		at = &(*at)->next;
	if (*at == NULL)
		return false;
	*at = s->next;
	return true;
}

/* With the lock, of one that was in the list: it looks for work now. */
static void
count_up(struct gang *g, struct sleeper *s)
{
	uint64_t sentry = atomic_load(&s->sentry) ? REST_SENTRY : 0;

	atomic_fetch_add(&g->counts, REST_LOOKS - REST_ASLEEP - sentry);
	atomic_store(&s->sentry, false);
	atomic_store_explicit(&g->unanswered, 0, memory_order_relaxed);
}

/* With the lock. */
static void
rouse(struct gang *g, struct sleeper *s)
{
	count_up(g, s);
	s->rung = tick_now();
	atomic_store(&s->asleep, 0);
	word_wake(&s->asleep, 1);
}

bool
rest_wake(struct gang *g)
{
	struct sleeper *s;

	pthread_mutex_lock(&g->lock);
	s = g->asleep;
	if (s != NULL) {
		list_remove(g, s);
		rouse(g, s);
		atomic_fetch_add_explicit(&g->wakes, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&g->lock);
	return s != NULL;
}

void
rest_wake_all(struct gang *g)
{
	rest_event(g, 1);
	while (rest_wake(g))
		;
}

/* --- sleeping ------------------------------------------------------------- */

/* Before the last look. What the count of events is. */
static uint64_t
announce(struct gang *g)
{
	uint64_t counts = atomic_load(&g->counts);

	while ((counts & REST_EVENT) == 0 &&
		!atomic_compare_exchange_weak(&g->counts, &counts,
			counts | REST_EVENT))
		;
	return (counts | REST_EVENT) / REST_EVENT;
}

/* In the list, and in the counts. False: there was an event since @event. */
static bool
lie_down(struct gang *g, struct sleeper *s, uint64_t event)
{
	uint64_t counts, now;
	bool sentry;

	pthread_mutex_lock(&g->lock);
	counts = atomic_load(&g->counts);
	do {
		if (counts / REST_EVENT != event) {
			pthread_mutex_unlock(&g->lock);
			return false;
		}
		sentry = (counts & REST_SENTRY) == 0 &&
			(counts / REST_RUNS & REST_MOST) != 0;
		now = counts - REST_LOOKS + REST_ASLEEP +
			(sentry ? REST_SENTRY : 0);
	} while (!atomic_compare_exchange_weak(&g->counts, &counts, now));
	s->rung = 0;
	atomic_store(&s->sentry, sentry);
	atomic_store(&s->asleep, 1);
	s->next = g->asleep;
	g->asleep = s;
	pthread_mutex_unlock(&g->lock);
	return true;
}

/* By itself. */
static void
get_up(struct gang *g, struct sleeper *s)
{
	pthread_mutex_lock(&g->lock);
	if (list_remove(g, s)) {
		count_up(g, s);
		atomic_store(&s->asleep, 0);
	}
	pthread_mutex_unlock(&g->lock);
}

/* --- the sentry ----------------------------------------------------------- */

/* Has something been waiting since the last look? @moves: did somebody begin something
 * meanwhile? */
static bool
is_stuck(struct gang *g, bool *moves)
{
	bool stuck = false;

	*moves = false;
	for (uint32_t i = 0; i < g->seats; i++) {
		struct seat *seat = &g->seat[i];
		uint64_t runs =
			atomic_load_explicit(&seat->runs, memory_order_relaxed);

		if (atomic_exchange_explicit(&seat->runs_seen, runs,
			    memory_order_relaxed) != runs)
			*moves = true;
		else if (!deque_empty(&seat->deque))
			stuck = true;
	}
	stuck = stuck || (!*moves && !inbox_empty(&g->inbox)) ||
		loop_pending(g);
	return stuck && seat_free(g);
}

static void
look_after(struct gang *g, struct sleeper *s)
{
	bool moves, up = is_stuck(g, &moves);

	if (!up && !moves) {
		pthread_mutex_lock(&g->lock);
		if (atomic_load(&s->sentry))
			atomic_fetch_sub(&g->counts, REST_SENTRY);
		atomic_store(&s->sentry, false);
		pthread_mutex_unlock(&g->lock);
		/* Posted by one who saw that there is a sentry. */
		up = gang_pending(g);
	}
	if (up)
		get_up(g, s);
}

/* --- who sleeps ----------------------------------------------------------- */

void
rest_hand(struct gang *g, struct hand *hand, struct wait *wait)
{
	struct sleeper *s = &hand->sleeper;
	uint64_t event = announce(g);

	if (gang_pending(g) && seat_free(g)) {
		wait_again(wait);
		return;
	}
	if (atomic_load(&g->closed) || !lie_down(g, s, event))
		return;
	while (atomic_load(&s->asleep) != 0) {
		bool sentry = atomic_load(&s->sentry);
		int64_t until = sentry ? clock_now() + NAP_NS : INT64_MAX;

		word_sleep(&s->asleep, 1, until);
		if (sentry && clock_now() >= until &&
			atomic_load(&s->asleep) != 0)
			look_after(g, s);
	}
	wait_woken(wait, s->rung != 0 ? tick_now() - s->rung : 0);
}
