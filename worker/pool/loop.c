/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - see gang_for() in gang.h.
 *
 * A part is a share of what is left, so that all who take part end at about the same
 * time; but no part is so short that to take it costs more than to run it, as far as the
 * parts before it tell.
 */
#include "worker/pool/rest.h"
#include "worker/rpc/word.h"
#include "worker/shm/tick.h"

#define PART_US   20 /* of a part, at least, as soon as that is known */
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
leave(struct loop *l)
{
	if (atomic_fetch_sub(&l->gate, 1) == (LOOP_WAKE | 1))
		word_wake(&l->gate, 1);
}

bool
loop_join(struct gang *g, struct seat *seat)
{
	struct part part;
	bool took = false;

	for (int i = 0; i < GANG_LOOPS && !took; i++) {
		struct loop *l = &g->loop[i];

		if (!is_open(l) || !enter(l))
			continue;
		while (next_part(l, &part)) {
			if (!took)
				gang_share(g, 1);
			took = true;
			run_part(g, l, &part, seat);
		}
		leave(l);
	}
	return took;
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
open_loop(struct gang *g, struct loop *l, const struct gang_loop *of)
{
	l->of = *of;
	if (l->of.grain == 0)
		l->of.grain = 1;
	l->shares = (uint64_t)PER_SEAT * g->seats;
	atomic_store_explicit(&l->at, 0, memory_order_relaxed);
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
close_loop(struct gang *g, struct loop *l)
{
	uint32_t gate = atomic_fetch_and(&l->gate, ~LOOP_OPEN) & ~LOOP_OPEN;
	struct wait wait;

	if (gate != 0)
		wait_begin(&wait, &g->env, NULL, NULL);
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
run_all(struct gang *g, const struct gang_loop *of, struct seat *seat)
{
	struct loop *l = of->count > of->grain ? claim(g) : NULL;
	uint32_t woken = 0;
	struct part part;

	if (l == NULL) {
		of->run(of->ctx, 0, of->count,
			seat != NULL ? seat->index : GANG_NOBODY);
		return;
	}
	open_loop(g, l, of);
	while (next_part(l, &part)) {
		run_part(g, l, &part, seat);
		call_others(g, l, &woken);
	}
	close_loop(g, l);
}

void
gang_for(struct gang *g, const struct gang_loop *of)
{
	struct seat *seat = seat_mine(g), *aside = NULL;
	struct place before;

	if (of->count == 0)
		return;
	if (seat == NULL)
		seat = aside = seat_take_aside(g, &before);
	run_all(g, of, seat);
	if (aside != NULL)
		seat_leave_aside(g, &before);
}
