/* SPDX-License-Identifier: Apache-2.0 */
/* alive.c - see alive.h. The kernel's side: kernel/futex/core.c,
 * exit_robust_list(); Documentation/locking/robust-futex-ABI.rst. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "worker/shm/alive.h"

/* The kernel finds a word at the same distance from each entry. */
_Static_assert(sizeof(((struct segment_slot *)NULL)->alive[0]) ==
		sizeof(struct robust_list),
	"a word for each entry of the list");

static void
store_words(struct segment_slot *slot, uint32_t value)
{
	for (uint32_t i = 0; i < SEGMENT_WORDS; i++)
		atomic_store(&slot->alive[i].word, value);
}

static void
link_nodes(struct alive *a, struct segment_slot *slot)
{
	a->slot = slot;
	for (uint32_t i = 0; i + 1 < SEGMENT_WORDS; i++)
		a->node[i].next = &a->node[i + 1];
	a->node[SEGMENT_WORDS - 1].next = &a->head.list;
	a->head = (struct robust_list_head){
		.list.next = &a->node[0],
		.futex_offset = (long)((char *)&slot->alive[0].word -
			(char *)&a->node[0]),
	};
}

/* The list comes first: a word with our number that is in no list would never be
 * marked. */
bool
alive_take(struct alive *a, struct segment_slot *slot)
{
	int saved = errno;
	size_t size;
	bool taken;

	link_nodes(a, slot);
	taken = syscall(SYS_get_robust_list, 0, &a->before, &size) == 0 &&
		syscall(SYS_set_robust_list, &a->head, sizeof(a->head)) == 0;
	if (taken)
		store_words(slot, (uint32_t)syscall(SYS_gettid));
	else
		a->slot = NULL;
	errno = saved;
	return taken;
}

void
alive_leave(struct alive *a)
{
	int saved = errno;

	if (a->slot == NULL)
		return;
	store_words(a->slot, 0);
	syscall(SYS_set_robust_list, a->before, sizeof(*a->before));
	for (uint32_t i = 0; i < SEGMENT_WORDS; i++)
		syscall(SYS_futex, &a->slot->alive[i].word, FUTEX_WAKE, INT_MAX,
			NULL, NULL, 0);
	a->slot = NULL;
	errno = saved;
}

/* --- those who are told --------------------------------------------------- */

/* Bells first and the note last: if we die in between, whoever hears of that
 * tells of both. Whoever arms its bell later looks at `fails` after that. */
static void
tell(const struct segment_map *map, struct segment_slot *dead, uint32_t gen)
{
	atomic_fetch_add(&segment_shared(map)->fails, 1);
	for (uint32_t i = 0; i < map->plan.slots; i++) {
		struct segment_slot *s = segment_slot(map, i);

		if (!alive_ended(s))
			bell_ring(&s->bell, NULL, true);
	}
	atomic_store(&dead->told, gen);
}

static bool
look_at(const struct segment_map *map, struct segment_slot *s)
{
	uint32_t gen;

	if (!alive_ended(s))
		return false;
	gen = segment_gen(atomic_load(&s->claim));
	if (atomic_load(&s->told) != gen)
		tell(map, s, gen);
	return true;
}

void
alive_look(const struct segment_map *map)
{
	for (uint32_t i = 0; i < map->plan.slots; i++)
		look_at(map, segment_slot(map, i));
}

/* The word of @s that is for us, and that the kernel then wakes; false: nobody
 * has it, or it is marked. */
static bool
want(struct segment_slot *s, uint32_t self, struct bell_word *w)
{
	uint32_t seen;

	w->word = &s->alive[self % SEGMENT_WORDS].word;
	seen = atomic_load(w->word);
	while ((seen & FUTEX_TID_MASK) != 0 && (seen & FUTEX_OWNER_DIED) == 0 &&
		(seen & FUTEX_WAITERS) == 0)
		if (atomic_compare_exchange_weak(w->word, &seen,
			    seen | FUTEX_WAITERS))
			seen |= FUTEX_WAITERS;
	w->value = seen;
	return (seen & FUTEX_WAITERS) != 0 && (seen & FUTEX_OWNER_DIED) == 0;
}

uint32_t
alive_watch(const struct segment_map *map, uint32_t self,
	struct bell_word *words, uint32_t cap)
{
	uint32_t count = 0, slots = map->plan.slots;

	for (uint32_t i = 1; i < slots && count < cap && count < ALIVE_WATCHED;
		i++) {
		struct segment_slot *s = segment_slot(map, (self + i) % slots);

		if (atomic_load_explicit(&s->plane, memory_order_relaxed) !=
				0 &&
			!look_at(map, s))
			count += want(s, self, &words[count]);
	}
	return count;
}
