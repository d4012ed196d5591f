/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bell.h - how a process sleeps until there is something to do, and is woken.
 *
 * A process has one bell, in its slot of the segment, or in memory of its own if
 * it has none; whoever puts something where the process looks rings it. One
 * thread at a time sleeps on it:
 *
 *	bell_arm(b);                    from here on others ring
 *	if (nothing is there)           look again: what came before counts
 *		bell_sleep(b, ...);
 *	bell_disarm(b);
 *
 * Of the two that pass each other, one sees the other: the sleeper stores that it
 * sleeps, and looks; the ringer stores what there is, and looks whether somebody
 * sleeps; each with a full fence between. So nothing wakes up by itself from time
 * to time.
 *
 * Each sleep is a nap with a number, and a ringer rings at most once a nap. It
 * does not take the nap from others: one that is killed, or stopped, between its
 * look and its ring must not keep a second one from ringing. Who dies before it
 * has rung is made up for by who hears of its death (alive.h).
 */
#ifndef WORKER_SHM_BELL_H
#define WORKER_SHM_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/layout.h"
#include "worker/shm/tick.h"

#define BELL_WORDS 127 /* beside the bell itself: FUTEX_WAITV_MAX is 128 */

/* The sleeper's side: by one thread at a time. */
struct bell {
	struct segment_bell *at;
	bool shared;   /* with other processes */
	uint32_t seen; /* rung, when it was armed */
	uint32_t nap;
};

/* A word to be watched while asleep, and what stands in it. */
struct bell_word {
	_Atomic uint32_t *word;
	uint32_t value;
};

/* bell_init() - @at is zeroed memory, or a slot's; @shared: with others. */
void bell_init(struct bell *b, struct segment_bell *at, bool shared);

/* bell_arm() - from now on a ring is heard. */
void bell_arm(struct bell *b);

/*
 * bell_sleep() - until somebody rings, or did since it was armed; a word of
 * @words is another, or somebody wakes those who wait for it; or @until has come.
 *
 * @until: ns of CLOCK_MONOTONIC; INT64_MAX: never
 * @count: at most BELL_WORDS; they are not watched on kernels before 5.16
 *
 * Returns  0, also for nothing, and after a signal; ETIMEDOUT
 * Blocks: yes. Nothing else of xrun may be held.
 */
int bell_sleep(struct bell *b, const struct bell_word *words, uint32_t count,
	int64_t until);

/*
 * bell_disarm() - awake.
 *
 * Returns  ticks since the ring that ended the nap, if one did; else 0
 */
int64_t bell_disarm(struct bell *b);

/* bell_watches() - can words be watched here? */
bool bell_watches(void);

/* bell_wake() - whoever sleeps at @at, whatever it says. Any thread. */
void bell_wake(struct segment_bell *at, bool shared);

/* bell_ring_fenced() - bell_ring_if() by who has a fence between what was stored and
 * this. */
static inline void
bell_ring_fenced(const _Atomic uint32_t *nap, struct segment_bell *at,
	uint32_t *rang, bool shared)
{
	uint32_t now = atomic_load_explicit(nap, memory_order_relaxed);

	if (__builtin_expect(now == 0, true) || (rang != NULL && *rang == now))
		return;
	if (rang != NULL)
		*rang = now;
	bell_wake(at, shared);
}

/* bell_ring_if() - bell_ring() by another word that says whether it sleeps: @nap has
 * the nap's number, or 0. */
static inline void
bell_ring_if(const _Atomic uint32_t *nap, struct segment_bell *at,
	uint32_t *rang, bool shared)
{
	atomic_thread_fence(memory_order_seq_cst);
	bell_ring_fenced(nap, at, rang, shared);
}

/*
 * bell_ring() - wake who sleeps at @at, unless it was done in this nap by who has
 * @rang; NULL: in any case. What it is to see was stored before.
 *
 * Thread   any.  Cost: a load, and some 10 ns for the fence; a system call where
 *          somebody sleeps.
 */
static inline void
bell_ring(struct segment_bell *at, uint32_t *rang, bool shared)
{
	bell_ring_if(&at->asleep, at, rang, shared);
}

#endif /* WORKER_SHM_BELL_H */
