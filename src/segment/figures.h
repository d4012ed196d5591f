/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.h - what the agent of a slot has counted, where the supervisor reads it.
 *
 * A page for each slot, which nobody touches who has no agent. So to tell costs a
 * rank nothing, and what it counted stands there when it was killed.
 *
 * Threads would wait for each other's line, so there are lanes: each has one
 * writer, but for the last, which is everybody's for whom none was left. What a
 * process has counted is the sum over its lanes, of what stands there while it
 * is read: no lane ever counts down.
 */
#ifndef SEGMENT_FIGURES_H
#define SEGMENT_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

#include "segment/layout.h"
#include "segment/scale.h"

#define FIGURES_LANES 4 /* the last one is shared */

/*
 * How long calls took: buckets of a quarter of an octave each. The first has all
 * below 128 ns, the last all of 29 s and more.
 */
#define FIGURES_LATENCIES  112
#define FIGURES_FIRST_LOG2 7

/* F(NAME, member, "what it counts"): what the schemas and metrics call it. */
#define FIGURES_TABLE(F) \
	F(ERRORS, errors, "calls that failed, in whatever way") \
	F(TIMEOUTS, timeouts, "calls that found no answer in time") \
	F(ONEWAY, oneway, "calls that nobody answers") \
	F(SERVED, served, "calls of others") \
	F(BYTES_OUT, bytes_out, "bytes of messages that were sent") \
	F(BYTES_IN, bytes_in, "bytes of messages that came") \
	F(CALL_NS, call_ns, "ns from calls to their ends")

enum figure {
#define F(name, member, text) FIGURE_##name,
	FIGURES_TABLE(F)
#undef F
		FIGURES,
};

struct segment_lane {
	_Alignas(SEGMENT_LINE) _Atomic uint32_t taken;
	/* Of the first lane only: whose they are, gen of the slot and 1; and 1
	 * and the rank of the job that was the first to be lost to it. */
	_Atomic uint32_t gen, lost;
	uint32_t shared;
	_Atomic uint64_t count[14]; /* enum figure */
	/* Calls that have ended, by how long they took. */
	_Atomic uint64_t latency[FIGURES_LATENCIES];
};

struct segment_figures {
	struct segment_lane lane[FIGURES_LANES];
};

_Static_assert(sizeof(struct segment_figures) == SEGMENT_FIGURES, "a page");
_Static_assert((int)FIGURES <= 14, "there is room for all");

#define FIGURES_SCALE \
	((struct scale){ FIGURES_FIRST_LOG2, 2, FIGURES_LATENCIES })

/* figures_bucket() - of a call that took @ns. */
static inline uint32_t
figures_bucket(uint64_t ns)
{
	return scale_bucket(FIGURES_SCALE, ns);
}

/* figures_above() - as scale_above(). */
static inline uint64_t
figures_above(uint32_t i)
{
	return scale_above(FIGURES_SCALE, i);
}

/* What was read of a slot, made harmless: nothing is below 0, or beyond what
 * readers of JSON can count. */
struct figures_view {
	uint32_t lost; /* 1 and a rank of the job; 0: it heard of none */
	int64_t calls; /* that have ended */
	int64_t count[FIGURES];
	int64_t latency[FIGURES_LATENCIES];
};

/* figures_quantile() - as scale_quantile(), of calls. */
static inline int64_t
figures_quantile(const struct figures_view *v, uint32_t per_mille)
{
	return scale_quantile(FIGURES_SCALE, v->latency, v->calls, per_mille);
}

#endif /* SEGMENT_FIGURES_H */
