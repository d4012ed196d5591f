/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.h - what this process's agents have counted, for xrun/rpc.h's metrics and
 * for the supervisor, who reads the same memory (segment/figures.h).
 *
 * Each thread has a lane of its own, as long as there are some, so that counting
 * is a plain store. A call is timed by the processor's clock. Figures stay from
 * one agent of the process to the next.
 */
#ifndef WORKER_RPC_FIGURES_H
#define WORKER_RPC_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/transport.h>

#include "segment/figures.h"
#include "worker/shm/tick.h"

/* figures_open() - before anything is counted; the first time decides where. */
void figures_open(void);

/* figures_lane() - where the calling thread counts. */
extern __thread struct segment_lane *figures_mine
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
struct segment_lane *figures_introduce(void);

static inline struct segment_lane *
figures_lane(void)
{
	return figures_mine != NULL ? figures_mine : figures_introduce();
}

/* figures_step() - a word that one thread writes, unless the lane is shared. */
static inline void
figures_step(const struct segment_lane *lane, _Atomic uint64_t *word,
	uint64_t n)
{
	if (lane->shared != 0)
		atomic_fetch_add_explicit(word, n, memory_order_relaxed);
	else
		atomic_store_explicit(word,
			atomic_load_explicit(word, memory_order_relaxed) + n,
			memory_order_relaxed);
}

static inline void
figures_add(enum figure figure, uint64_t n)
{
	struct segment_lane *lane = figures_lane();

	figures_step(lane, &lane->count[figure], n);
}

/* figures_call() - a call that began at @begun, tick_now(), is over. */
void figures_call(int64_t begun, enum xr_status status);

/* figures_sum() - of all lanes. */
void figures_sum(struct figures_view *view);

/* figures_lost() - rank @rank of the job is lost to this process. False: the
 * supervisor does not read this. */
bool figures_lost(uint32_t rank);

/* figures_are_of_job() - are they in the segment of the job? */
bool figures_are_of_job(void);

/* What a message weighs: its parts, and what is lent with it. */
static inline uint64_t
figures_parts(const struct xr_part *parts, uint32_t count)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < count; i++)
		len += parts[i].len;
	return len;
}

#endif /* WORKER_RPC_FIGURES_H */
