/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h - who of a gang looks for work, who sleeps, and when somebody is woken.
 *
 * All of it is in one word: how many run something, look for something, and sleep; is one
 * of the sleepers the sentry; and a count of events, which is odd while somebody is
 * about to sleep. Who posts stores what there is, and looks at the word, a load: if
 * somebody is about to sleep, he makes the count even, so that this one looks again; if
 * nobody looks for work and somebody sleeps, he wakes one. Who is about to sleep makes the
 * count odd, looks, and sleeps unless it has changed.
 *
 * To wake somebody costs more than to do what takes less than some 50 us. So where
 * somebody runs, and the sentry looks after him, nobody is woken for that. The sentry
 * sleeps for half a millisecond at a time, as long as something goes on; it gets up if
 * what it saw has not been begun meanwhile.
 *
 * Source   rayon-core/src/sleep/README.md, but for the sentry
 */
#ifndef WORKER_GANG_REST_H
#define WORKER_GANG_REST_H

#include "worker/gang/inner.h"

#define REST_ASLEEP UINT64_C(1)
#define REST_LOOKS  (UINT64_C(1) << 14)
#define REST_RUNS   (UINT64_C(1) << 28)
#define REST_SENTRY (UINT64_C(1) << 42)
#define REST_EVENT  (UINT64_C(1) << 43) /* odd: somebody is about to sleep */
#define REST_MOST   UINT64_C(0x3fff)    /* of each of the first three */

static inline bool
rest_nobody_looks(uint64_t counts)
{
	return (counts / REST_LOOKS & REST_MOST) == 0;
}

/* rest_answer() - wake one, if it is worth it; nobody looks for work, and somebody
 * sleeps. @tasks: that wait; 0: one more than the last time. */
void rest_answer(struct gang *g, uint64_t counts, uint32_t tasks);

/* rest_event() - @tasks have been posted, or may be there for others; 0: one. */
static inline void
rest_event(struct gang *g, uint32_t tasks)
{
	uint64_t counts = atomic_load(&g->counts);

	while (__builtin_expect((counts & REST_EVENT) != 0, false)) {
		if (atomic_compare_exchange_weak(&g->counts, &counts,
			    counts + REST_EVENT))
			counts += REST_EVENT;
	}
	if (__builtin_expect((counts & REST_MOST) != 0, false) &&
		rest_nobody_looks(counts))
		rest_answer(g, counts, tasks);
}

/* rest_wake() - one that sleeps, to look for work; false: nobody does. */
bool rest_wake(struct gang *g);
void rest_wake_all(struct gang *g);

/* rest_hand() - a thread of the gang that found nothing for a while sleeps, unless there
 * is something. It looks for work, before and afterwards. */
void rest_hand(struct gang *g, struct hand *hand, struct wait *wait);

/* rest_little() - what costs less than two wake-ups, in ticks. */
int64_t rest_little(const struct gang *g);

#endif /* WORKER_GANG_REST_H */
