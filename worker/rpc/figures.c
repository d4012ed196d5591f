/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - see figures.h. */
#include <pthread.h>
#include <stddef.h>

#include <xrun/status.h>

#include "base/clock.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/local.h"

#define SHARED (FIGURES_LANES - 1)

static struct segment_figures own; /* where no segment has room for them */

static struct {
	pthread_once_t once;
	pthread_key_t key;
	bool has_key, of_job, read;
	struct segment_figures *at;
	uint64_t ns_per_tick; /* 2^32 of it */
} f = { .once = PTHREAD_ONCE_INIT, .at = &own };

__thread struct segment_lane *figures_mine
	__attribute__((tls_model("initial-exec")));

/* The next thread counts on where this one stopped. */
static void
thread_ends(void *arg)
{
	struct segment_lane *lane = arg;

	figures_mine = &f.at->lane[SHARED];
	atomic_store_explicit(&lane->taken, 0, memory_order_release);
}

/* Of a slot that another process had before, they are that one's. */
static void
begin(struct segment_figures *at, uint32_t gen)
{
	struct segment_lane *first = &at->lane[0];

	if (atomic_load(&first->gen) == gen + 1)
		return;
	for (uint32_t i = 0; i < FIGURES_LANES; i++) {
		struct segment_lane *l = &at->lane[i];

		for (uint32_t k = 0; k < FIGURES; k++)
			atomic_store(&l->count[k], 0);
		for (uint32_t k = 0; k < FIGURES_LATENCIES; k++)
			atomic_store(&l->latency[k], 0);
		l->shared = i == SHARED;
		atomic_store(&l->taken, 0);
	}
	atomic_store(&first->lost, 0);
	atomic_store(&first->gen, gen + 1);
}

static void
open_once(void)
{
	uint32_t gen = 0;
	struct segment_figures *there = local_figures(&gen);

	f.of_job = local_is_of_job(&f.read);
	f.ns_per_tick = (UINT64_C(1000000) << 32) / local_tick_rate();
	f.has_key = pthread_key_create(&f.key, thread_ends) == 0;
	f.at = there != NULL ? there : &own;
	begin(f.at, gen);
}

void
figures_open(void)
{
	pthread_once(&f.once, open_once);
}

struct segment_lane *
figures_introduce(void)
{
	struct segment_lane *lane;
	uint32_t no;

	figures_open();
	for (uint32_t i = 0; i < SHARED && f.has_key; i++) {
		lane = &f.at->lane[i];
		no = 0;
		if (!atomic_compare_exchange_strong(&lane->taken, &no, 1))
			continue;
		if (pthread_setspecific(f.key, lane) == 0) {
			figures_mine = lane;
			return lane;
		}
		thread_ends(lane);
	}
	figures_mine = &f.at->lane[SHARED];
	return figures_mine;
}

/* The clock may go back a little where a thread moves. */
static uint64_t
ns_of(int64_t ticks)
{
	if (ticks <= 0)
		return 0;
	return (uint64_t)(((unsigned __int128)ticks * f.ns_per_tick) >> 32);
}

void
figures_call(int64_t begun, enum xr_status status)
{
	struct segment_lane *lane = figures_lane();
	uint64_t ns = ns_of(tick_now() - begun);

	figures_step(lane, &lane->latency[figures_bucket(ns)], 1);
	figures_step(lane, &lane->count[FIGURE_CALL_NS], ns);
	if (status == XR_OK)
		return;
	figures_step(lane, &lane->count[FIGURE_ERRORS], 1);
	if (status == XR_E_TIMEOUT)
		figures_step(lane, &lane->count[FIGURE_TIMEOUTS], 1);
}

void
figures_sum(struct figures_view *view)
{
	*view = (struct figures_view){
		.lost = atomic_load(&f.at->lane[0].lost),
	};
	for (uint32_t i = 0; i < FIGURES_LANES; i++) {
		const struct segment_lane *l = &f.at->lane[i];

		for (uint32_t k = 0; k < FIGURES; k++)
			view->count[k] += (int64_t)atomic_load(&l->count[k]);
		for (uint32_t k = 0; k < FIGURES_LATENCIES; k++) {
			view->latency[k] +=
				(int64_t)atomic_load(&l->latency[k]);
			view->calls += (int64_t)atomic_load(&l->latency[k]);
		}
	}
}

bool
figures_lost(uint32_t rank)
{
	uint32_t nobody = 0;

	/* The first counts: others may be lost because of it. */
	atomic_compare_exchange_strong(&f.at->lane[0].lost, &nobody, rank + 1);
	return f.read;
}

bool
figures_are_of_job(void)
{
	return f.of_job;
}
