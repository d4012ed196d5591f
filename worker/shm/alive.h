/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alive.h - that a process died is known to all others within a millisecond.
 *
 * One thread of a process has the words `alive` of its slot, as robust futexes:
 * when it ends, whatever ends it, the kernel marks them, before it takes the
 * memory of the process down, which may take it 20 ms a GiB. Who looks now and
 * then sees the mark; who sleeps, sleeps on a word of some others, too. The
 * kernel wakes one sleeper a word, and has eight words to go through: so whoever
 * is woken tells all others, by their bells (alive_tell()).
 *
 * The list that the kernel goes through is in the thread's own memory, and only
 * the words are in the segment, so nobody can lead it astray. But there is one
 * list a thread: one that has the words must not lock robust mutexes of others
 * (pthread_mutexattr_setrobust()). The thread should live as long as the
 * process: where it ends before, the process is taken for dead. So it is by
 * exec.
 *
 * Where the kernel lacks futex_waitv (before 5.16), who sleeps hears of a death
 * by others who look, or by the supervisor (segment_alarm()), which tells also
 * where a process had not come so far as to have its words.
 */
#ifndef WORKER_SHM_ALIVE_H
#define WORKER_SHM_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/futex.h>

#include "segment/member.h"
#include "worker/shm/bell.h"

_Static_assert(SEGMENT_OWNER_DIED == FUTEX_OWNER_DIED, "the kernel's mark");

#define ALIVE_WATCHED 16 /* slots that one sleeper watches */

/* What the kernel goes through. Stays where it is until the thread has ended. */
struct alive {
	struct segment_slot *slot;
	struct robust_list_head head;
	struct robust_list node[SEGMENT_WORDS];
	struct robust_list_head *before; /* the thread's own */
};

/* alive_take() - the calling thread has the words of @slot from now on; false:
 * it cannot, and nobody will be told of its end. */
bool alive_take(struct alive *a, struct segment_slot *slot);

/* alive_leave() - nobody has, and nobody need be told; by the same thread. */
void alive_leave(struct alive *a);

/* alive_ended() - is the end of who has the slot marked? */
static inline bool
alive_ended(const struct segment_slot *s)
{
	return segment_marked(s);
}

/*
 * alive_is() - does who opened its data plane as @plane still have it?
 *
 * A mark is enough to be dead; so is another generation, or another opening.
 */
static inline bool
alive_is(const struct segment_slot *s, uint32_t plane)
{
	return atomic_load_explicit(&s->plane, memory_order_acquire) == plane &&
		segment_gen(atomic_load_explicit(&s->claim,
			memory_order_relaxed)) == plane >> 8 &&
		!alive_ended(s);
}

/*
 * alive_watch() - words of others for bell_sleep(), at most @cap, and at most
 * ALIVE_WATCHED; gives how many. If one has ended meanwhile, all are told.
 *
 * @self: the slot of the caller, whose neighbours they are
 */
uint32_t alive_watch(const struct segment_map *map, uint32_t self,
	struct bell_word *words, uint32_t cap);

/* alive_look() - tell all of whoever ended, and was not told of yet. Cost: a load
 * or two a slot. */
void alive_look(const struct segment_map *map);

#endif /* WORKER_SHM_ALIVE_H */
