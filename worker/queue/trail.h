/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trail.h - how many items were in a queue, where a profile is recorded.
 *
 * Of a queue that this process made it is noted with what this process puts and gets. A
 * profile has room for a million events, and a queue may have as many items a second: so
 * what comes within TRAIL_NS of what was noted is only remembered, the last of it, and
 * noted before what comes next, or as the profile ends.
 */
#ifndef WORKER_QUEUE_TRAIL_H
#define WORKER_QUEUE_TRAIL_H

#include "worker/queue/lane.h"
#include "worker/rpc/prof.h"

#define TRAIL_NS 100000

/* trail_begin(), trail_end() - of a queue that this process has made, and is about to
 * leave. */
void trail_begin(struct hall *h);
void trail_end(struct hall *h);

/* trail_note() - trail_moved() where a profile is recorded. */
void trail_note(struct hall *h);

/* trail_moved() - something was put, or got. */
static inline void
trail_moved(struct hall *h)
{
	if (__builtin_expect(prof_is_on(), false) &&
		atomic_load_explicit(&h->trail.is_on, memory_order_relaxed))
		trail_note(h);
}

#endif /* WORKER_QUEUE_TRAIL_H */
