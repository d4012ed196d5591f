/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - see gang_for() in gang.h.
 *
 * A part is a share of what is left, so that all who take part end at about the same
 * time; but no part is so short that to take it costs more than to run it, as far as the
 * parts before it tell.
 *
 * A loop that took less than it takes to share it, is begun alone when it comes again;
 * what its first part says of it is then enough to know whether it is still so.
 */
#include "worker/gang/rest.h"
#include "worker/rpc/word.h"
#include "worker/shm/tick.h"

#define PART_US   20 /* of a part, at least, as soon as that is known */
#define BRIEF_US  2  /* of a loop that is not worth sharing */
#define PER_SEAT  4  /* parts for each seat of what is left */
#define LOOP_OPEN UINT32_C(0x80000000)
#define LOOP_WAKE UINT32_C(0x40000000) /* the last one out wakes whose it is */

struct part {
	uint64_t begin, end;
};

static uint64_t
left_of(struct loop *l)
{
	uint64_t at = atomic_load_explicit(&l->at, memory_order_relaxed);
	uint64_t count = atomic_load_explicit(&l->count, memory_order_relaxed);

	return at < count ? count - at : 0;
}

static bool
next_part(struct loop *l, struct part *part)
{
	uint64_t at = atomic_load_explicit(&l->at, memory_order_relaxed);
	uint64_t size, fit, left;

	do {
		if (at >= l->of.count)
			return false;
		left = l->of.count - at;
		size = left / l->shares;
		fit = atomic_load_explicit(&l->fit, memory_order_relaxed);
		if (size < fit || fit == 1)
			size = fit;
		if (size < l->of.grain)
			size = l->of.grain;
		if (size > left)
			size = left;
	} while (!atomic_compare_exchange_weak(&l->at, &at, at + size));
	*part = (struct part){ at, at + size };
	return true;
}

/* @seat: NULL: none is free. */
static void
run_part(struct gang *g, struct loop *l, const struct part *part,
	struct seat *seat)
{
	uint64_t goal = (uint64_t)g->env.rate * PART_US / 1000;
	uint64_t size = part->end - part->begin, took;
	int64_t begun = tick_now();

	if (seat != NULL)
		atomic_store_explicit(&seat->runs,
			atomic_load_explicit(&seat->runs,
				memory_order_relaxed) +
				1,
			memory_order_relaxed);
	l->of.run(l->of.ctx, part->begin, part->end,
		seat != NULL ? seat->index : GANG_NOBODY);
	begun = tick_now() - begun;
	took = begun < 1 ? 1 : (uint64_t)begun;
	/* Not more than so many times as long: the first ones say little. */
	atomic_store_explicit(&l->fit,
		took < goal / 1024 ? size * 1024 : size * goal / took + 1,
		memory_order_relaxed);
}

/* --- who takes part ------------------------------------------------------- */

static bool
is_open(struct loop *l)
{
	return (atomic_load(&l->gate) & LOOP_OPEN) != 0 && left_of(l) > 0;
}

bool
loop_pending(struct gang *g)
{
	for (int i = 0; i < GANG_LOOPS; i++) {
		if (is_open(&g->loop[i]))
			return true;
	}
	return false;
}

static bool
enter(struct loop *l)
{
	uint32_t gate = atomic_load(&l->gate);

	while ((gate & LOOP_OPEN) != 0) {
		if (atomic_compare_exchange_weak(&l->gate, &gate, gate + 1))
			return true;
	}
	return false;
}

static void
leave(void *loop)
{
	struct loop *l = loop;

	if (atomic_fetch_sub(&l->gate, 1) == (LOOP_WAKE | 1))
		word_wake(&l->gate, 1);
}

/* Inside of it. False: all parts were begun. */
static bool
run_parts(struct gang *g, struct loop *l, struct seat *seat)
{
	struct part part;

	if (!next_part(l, &part))
		return false;
	gang_share(g, 1);
	do
		run_part(g, l, &part, seat);
	while (next_part(l, &part));
	return true;
}

static bool
take_part(struct gang *g, struct loop *l, struct seat *seat)
{
	bool took;

	pthread_cleanup_push(leave, l);
	took = run_parts(g, l, seat);
	pthread_cleanup_pop(1);
	return took;
}

bool
loop_join(struct gang *g, struct seat *seat)
{
	for (int i = 0; i < GANG_LOOPS; i++) {
		struct loop *l = &g->loop[i];

		if (is_open(l) && enter(l) && take_part(g, l, seat))
			return true;
	}
	return false;
}

/* --- brief ones ----------------------------------------------------------- */

static uintptr_t
site_of(const struct gang_loop *of)
{
	return of->site != NULL ? (uintptr_t)of->site : (uintptr_t)of->run;
}

static _Atomic uintptr_t *
memory_of(struct gang *g, uintptr_t site)
{
	return &g->brief[(site >> 4 ^ site >> 12) & (GANG_SITES - 1)];
}

static bool
was_brief(struct gang *g, const struct gang_loop *of)
{
	uintptr_t site = site_of(of);

	return atomic_load_explicit(memory_of(g, site), memory_order_relaxed) ==
		site;
}

/* It took so long. */
static void
remember(struct gang *g, const struct gang_loop *of, int64_t ticks)
{
	uintptr_t site = site_of(of);
	_Atomic uintptr_t *at = memory_of(g, site);
	bool brief = ticks * 1000 < (int64_t)g->env.rate * BRIEF_US;
	uintptr_t now = atomic_load_explicit(at, memory_order_relaxed);

	if (brief != (now == site))
		atomic_store_explicit(at, brief ? site : 0,
			memory_order_relaxed);
}

/* Alone, unless its first part says that it would take too long: up to where it came. */
static uint64_t
run_brief(struct gang *g, const struct gang_loop *of, uint32_t seat)
{
	uint64_t first = of->grain > 1 ? of->grain : 1;
	void (*run)(void *, uint64_t, uint64_t, uint32_t) =
		of->brief != NULL ? of->brief : of->run;
	int64_t begun = tick_now(), took;

	run(of->ctx, 0, first, seat);
	took = tick_now() - begun;
	if ((double)took * (double)of->count / (double)first * 1000 >
		(double)g->env.rate * BRIEF_US) {
		remember(g, of, INT64_MAX / 1000);
		return first;
	}
	run(of->ctx, first, of->count, seat);
	return of->count;
}

/* --- whose it is ---------------------------------------------------------- */

static struct loop *
claim(struct gang *g)
{
	for (int i = 0; i < GANG_LOOPS; i++) {
		struct loop *l = &g->loop[i];

		if (!atomic_load_explicit(&l->owned, memory_order_relaxed) &&
			!atomic_exchange(&l->owned, true))
			return l;
	}
	return NULL;
}

static void
open_loop(struct gang *g, struct loop *l, const struct gang_loop *of,
	uint64_t at)
{
	l->gang = g;
	l->of = *of;
	if (l->of.grain == 0)
		l->of.grain = 1;
	l->shares = (uint64_t)PER_SEAT * g->seats;
	atomic_store_explicit(&l->at, at, memory_order_relaxed);
	atomic_store_explicit(&l->fit, 1, memory_order_relaxed);
	atomic_store_explicit(&l->count, of->count, memory_order_relaxed);
	atomic_store(&l->gate, LOOP_OPEN);
	rest_event(g, 0);
}

/* What is left is worth more wake-ups than there were: one more, if somebody sleeps. */
static void
call_others(struct gang *g, struct loop *l, uint32_t *woken)
{
	uint64_t fit = atomic_load_explicit(&l->fit, memory_order_relaxed);
	uint64_t part = (uint64_t)g->env.rate * PART_US / 1000;
	double ticks = (double)left_of(l) / (double)fit * (double)part;

	if ((atomic_load(&g->counts) & REST_MOST) != 0 &&
		*woken + 1 < g->seats &&
		ticks > (double)rest_little(g) * (*woken + 1) && rest_wake(g))
		++*woken;
}

/* Until the others are out. */
static void
close_loop(void *loop)
{
	struct loop *l = loop;
	uint32_t gate = atomic_fetch_and(&l->gate, ~LOOP_OPEN) & ~LOOP_OPEN;
	struct wait wait;

	if (gate != 0)
		wait_begin(&wait, &l->gang->env, NULL, NULL);
	while (gate != 0) {
		if (wait_turn(&wait) == WAIT_SLEEP) {
			gate = atomic_fetch_or(&l->gate, LOOP_WAKE) | LOOP_WAKE;
			if (gate != LOOP_WAKE)
				word_sleep(&l->gate, gate, INT64_MAX);
			wait_woken(&wait, 0);
		}
		gate = atomic_load(&l->gate) & ~LOOP_WAKE;
	}
	atomic_store(&l->gate, 0);
	atomic_store(&l->owned, false);
}

static void
run_own(struct gang *g, struct loop *l, struct seat *seat)
{
	uint32_t woken = 0;
	struct part part;

	while (next_part(l, &part)) {
		run_part(g, l, &part, seat);
		call_others(g, l, &woken);
	}
}

static void
run_open(struct gang *g, struct loop *l, struct seat *seat)
{
	pthread_cleanup_push(close_loop, l);
	run_own(g, l, seat);
	pthread_cleanup_pop(1);
}

/* From @at on, with whoever comes. */
static void
share(struct gang *g, const struct gang_loop *of, uint64_t at,
	struct seat *seat)
{
	struct loop *l = claim(g);
	int64_t begun = tick_now();

	if (l == NULL) {
		of->run(of->ctx, at, of->count,
			seat != NULL ? seat->index : GANG_NOBODY);
		return;
	}
	open_loop(g, l, of, at);
	run_open(g, l, seat);
	remember(g, of, tick_now() - begun);
}

static void
run_all(struct gang *g, const struct gang_loop *of, struct seat *seat)
{
	uint32_t index = seat != NULL ? seat->index : GANG_NOBODY;
	uint64_t at = 0;

	if (of->count <= of->grain || of->count == 1) {
		of->run(of->ctx, 0, of->count, index);
		at = of->count;
	} else if (was_brief(g, of)) {
		at = run_brief(g, of, index);
	}
	if (at == of->count)
		return;
	/* One more that runs, for the sentry. */
	if (seat != NULL && !seat->counted)
		seat_count(g, seat);
	share(g, of, at, seat);
}

void
gang_for(struct gang *g, const struct gang_loop *of)
{
	struct seat *seat = seat_mine(g), *aside = NULL;

	if (of->count == 0)
		return;
	if (seat == NULL)
		seat = aside = seat_take(g, 0);
	run_all(g, of, seat);
	if (aside != NULL)
		seat_leave();
}
