/* SPDX-License-Identifier: Apache-2.0 */
/* gang.c - see gang.h: its threads, and their end. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "worker/gang/rest.h"
#include "worker/rpc/word.h"

/* This thread, if it is a gang's. */
static __thread struct hand *me __attribute__((tls_model("initial-exec")));

/* --- a thread ------------------------------------------------------------- */

/* A seat, when there is something to do; NULL: it is over. It looks for work until
 * then, and runs something from then on. */
static struct seat *
look(struct gang *g, struct hand *hand)
{
	struct seat *seat = NULL;
	struct wait wait;

	wait_begin(&wait, &g->env, NULL, &hand->site);
	for (;;) {
		/* Before the look: what was accepted before is there yet. */
		bool closed = atomic_load(&g->closed);

		if (gang_pending(g))
			seat = seat_take(g, hand->index);
		else if (closed)
			break;
		if (seat != NULL)
			break;
		if (wait_turn(&wait) == WAIT_SLEEP)
			rest_hand(g, hand, &wait);
	}
	wait_end(&wait);
	if (seat != NULL)
		seat_count(g, seat);
	atomic_fetch_sub(&g->counts, REST_LOOKS);
	return seat;
}

static void
work(struct gang *g, struct hand *hand)
{
	struct seat *seat;

	while ((seat = look(g, hand)) != NULL) {
		bool worked = false;

		while (gang_work(g, seat))
			worked = true;
		atomic_fetch_add(&g->counts, REST_LOOKS);
		seat_leave();
		/* What is there is about to be taken, or put, by another. */
		if (!worked)
			sched_yield();
	}
}

static void
end(struct gang *g, const struct hand *hand)
{
	if (g->end != NULL)
		g->end(g->ctx, hand->index);
	atomic_fetch_sub(&g->living, 1);
	word_wake(&g->living, INT_MAX);
}

static void *
live(void *arg)
{
	struct hand *hand = arg;
	struct gang *g = hand->gang;

	pthread_setname_np(pthread_self(), g->name);
	if (hand->replaces)
		pthread_join(hand->before, NULL);
	hand->replaces = false;
	me = hand;
	thread_watch();
	if (g->begin != NULL)
		g->begin(g->ctx, hand->index);
	hand->begun = true;
	work(g, hand);
	me = NULL;
	end(g, hand);
	return NULL;
}

static int
start(struct gang *g, struct hand *hand)
{
	pthread_t thread;
	int sys;

	hand->begun = false;
	atomic_fetch_add(&g->counts, REST_LOOKS);
	atomic_fetch_add(&g->living, 1);
	sys = thread_begin(&thread, live, hand);
	if (sys == 0) {
		hand->thread = thread;
		return 0;
	}
	atomic_fetch_sub(&g->counts, REST_LOOKS);
	atomic_fetch_sub(&g->living, 1);
	return sys;
}

void
thread_has_left(void)
{
	struct hand *hand = me;
	struct gang *g;
	int sys = 0;

	me = NULL;
	if (hand == NULL)
		return;
	g = hand->gang;
	if (hand->begun) {
		hand->replaces = true;
		hand->before = pthread_self();
		sys = start(g, hand);
	} else {
		atomic_fetch_sub(&g->counts, REST_LOOKS);
	}
	if (sys != 0 && g->lost != NULL)
		g->lost(g->ctx, sys);
	end(g, hand);
}

/* --- making --------------------------------------------------------------- */

/* Zeroed, and aligned as the lines in it are. */
static void *
lines(size_t size)
{
	void *memory;

	size = (size + 127) & ~(size_t)127;
	memory = aligned_alloc(128, size);
	return memory != NULL ? memset(memory, 0, size) : NULL;
}

static void
release(struct gang *g)
{
	for (uint32_t i = 0; g->seat != NULL && i < g->seats; i++)
		deque_fini(&g->seat[i].deque);
	pthread_mutex_destroy(&g->lock);
	free(g->seat);
	free(g->hand);
	free(g);
}

static bool
furnish(struct gang *g)
{
	bool there = true;

	g->seat = lines(g->seats * sizeof(*g->seat));
	g->hand = calloc(g->seats, sizeof(*g->hand));
	if (g->seat == NULL || g->hand == NULL)
		return false;
	for (uint32_t i = 0; i < g->seats; i++) {
		g->seat[i].index = i;
		g->seat[i].random = 2463534242U + i;
		g->hand[i].index = i;
		g->hand[i].gang = g;
		there = deque_init(&g->seat[i].deque) && there;
	}
	return there;
}

static struct gang *
make(const struct gang_opts *o)
{
	struct gang *g = lines(sizeof(*g));

	if (g == NULL)
		return NULL;
	pthread_mutex_init(&g->lock, NULL);
	inbox_init(&g->inbox);
	wait_env_init(&g->env, NULL, 0);
	g->begin = o->begin;
	g->end = o->end;
	g->left = o->left;
	g->lost = o->lost;
	g->ctx = o->ctx;
	snprintf(g->name, sizeof(g->name), "%s",
		o->name != NULL ? o->name : "gang");
	g->seats = o->seats;
	if (furnish(g))
		return g;
	release(g);
	return NULL;
}

int
gang_new(const struct gang_opts *opts, struct gang **gang)
{
	struct gang *g;
	int sys = 0;

	if (opts->seats < 1 || opts->seats > GANG_SEATS_MAX)
		return EINVAL;
	g = make(opts);
	if (g == NULL)
		return ENOMEM;
	while (sys == 0 && g->started < g->seats) {
		sys = start(g, &g->hand[g->started]);
		g->started += sys == 0;
	}
	if (sys == 0)
		*gang = g;
	else
		gang_free(g);
	return sys;
}

/* --- ending --------------------------------------------------------------- */

void
gang_close(struct gang *g)
{
	atomic_store(&g->closed, true);
	rest_wake_all(g);
}

/* All that nobody has taken, from wherever it is. */
static void
drop_all(struct gang *g)
{
	struct gang_task *task;

	while (inbox_take(&g->inbox, &task, 1) == 1)
		task->drop(task);
	for (uint32_t i = 0; i < g->seats; i++) {
		while ((task = deque_steal(&g->seat[i].deque)) != NULL)
			task->drop(task);
	}
}

void
gang_stop(struct gang *g)
{
	atomic_store(&g->stopped, true);
	gang_close(g);
	drop_all(g);
}

bool
gang_stops(const struct gang *g)
{
	return atomic_load_explicit(&g->stopped, memory_order_relaxed);
}

bool
gang_join(struct gang *g, int64_t until)
{
	uint32_t living = atomic_load(&g->living);

	while (living > 0 && clock_now() < until) {
		word_sleep(&g->living, living, until);
		living = atomic_load(&g->living);
	}
	return living == 0;
}

void
gang_free(struct gang *g)
{
	if (g == NULL)
		return;
	gang_stop(g);
	/* From then on none is replaced. */
	gang_join(g, INT64_MAX);
	for (uint32_t i = 0; i < g->started; i++)
		pthread_join(g->hand[i].thread, NULL);
	drop_all(g);
	release(g);
}

void
gang_forget(struct gang *g)
{
	if (g != NULL)
		release(g);
}

void
gang_figures(const struct gang *g, struct gang_figures *f)
{
	uint64_t counts = atomic_load(&g->counts);

	*f = (struct gang_figures){
		.seats = g->seats,
		.asleep = (uint32_t)(counts & REST_MOST),
		.wakes = atomic_load(&g->wakes),
	};
	for (uint32_t i = 0; i < g->seats; i++) {
		f->taken += atomic_load(&g->seat[i].taken);
		f->runs += atomic_load(&g->seat[i].runs);
	}
}
