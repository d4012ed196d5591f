/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - see sweep.h. */
#include <stdlib.h>

#include "segment/sweep.h"

/* Bits of slots, and of spans. */
struct marks {
	uint64_t dead[SEGMENT_SLOTS_MAX / 64]; /* had a span */
	uint64_t read[SEGMENT_SLOTS_MAX / 64]; /* of them, whose ring is read */
	uint64_t held[SEGMENT_SPANS_MAX / 64];
	uint64_t claim[]; /* of each slot, as the sweep began */
};

static void
mark(uint64_t *bits, uint32_t index)
{
	bits[index / 64] |= UINT64_C(1) << index % 64;
}

static bool
is_marked(const uint64_t *bits, uint32_t index)
{
	return (bits[index / 64] >> index % 64 & 1) != 0;
}

static uint64_t
claim_of(const struct segment_map *map, uint32_t slot)
{
	return atomic_load(&segment_slot(map, slot)->claim);
}

bool
segment_bury(const struct segment_map *map, uint32_t index, bool thorough)
{
	struct segment_slot *slot = segment_slot(map, index);
	uint64_t claim = atomic_load(&slot->claim);

	return segment_state(claim) == SEGMENT_HELD &&
		segment_gone(slot, claim, thorough) &&
		segment_take(slot, claim, SEGMENT_FREE, 0);
}

/* --- what there is -------------------------------------------------------- */

static uint32_t
top_of(const struct segment_map *map)
{
	uint32_t top = atomic_load_explicit(&segment_shared(map)->top,
		memory_order_acquire);

	return top < map->plan.spans ? top : map->plan.spans;
}

/* Was generation @gen of the slot over, when its claim said that? Generations count
 * on, in 24 bits: one that is ahead has begun since. */
static bool
was_over(uint64_t claim, uint32_t gen)
{
	uint32_t since = (segment_gen(claim) - gen) & 0xffffff;

	if (since == 0)
		return segment_state(claim) != SEGMENT_HELD;
	return since < 0x800000;
}

/* Is it a span of one who was buried when the sweep began? */
static bool
is_of_dead(const struct segment_map *map, const struct marks *m, uint64_t word)
{
	uint32_t slot = segment_span_slot(word);

	return word != 0 && slot < map->plan.slots &&
		was_over(m->claim[slot], segment_span_gen(word));
}

static uint32_t
mark_dead(const struct segment_map *map, struct marks *m)
{
	uint32_t top = top_of(map), count = 0;
	uint64_t word;

	for (uint32_t i = 0; i < map->plan.slots; i++)
		m->claim[i] = claim_of(map, i);
	for (uint32_t i = 0; i < top; i++) {
		word = atomic_load_explicit(&segment_spans(map)[i],
			memory_order_relaxed);
		if (!is_of_dead(map, m, word))
			continue;
		mark(m->dead, segment_span_slot(word));
		count++;
	}
	return count;
}

/* Of a ring only 16 bits of each generation are known. */
static bool
has_low(uint64_t claim, uint32_t gen)
{
	return segment_state(claim) == SEGMENT_HELD &&
		(segment_gen(claim) & 0xffff) == (gen & 0xffff);
}

/* The word first, then the claim; a sweep has the claim first, and then the word. */
bool
segment_ring_drop(const struct segment_map *map, uint32_t reader,
	uint32_t writer, uint64_t word)
{
	uint32_t gen = (uint32_t)(word >> 16);

	atomic_compare_exchange_strong(segment_dir(map, reader, writer), &word,
		0);
	return segment_marked(segment_slot(map, writer)) ||
		!has_low(claim_of(map, writer), gen);
}

/* The ring from @writer, who died in some generation, to @reader. */
static bool
is_read(const struct segment_map *map, uint32_t reader, uint32_t writer)
{
	_Atomic uint64_t *dir = segment_dir(map, reader, writer);
	uint64_t word = atomic_load(dir);

	if (word == 0 || has_low(claim_of(map, writer), (uint32_t)(word >> 16)))
		return false;
	if (has_low(claim_of(map, reader), (uint32_t)word))
		return true;
	atomic_compare_exchange_strong(dir, &word, 0);
	return false;
}

/* Of slots that nobody ever had there is nothing to be seen. */
static bool
is_anywhere_read(const struct segment_map *map, const struct marks *m,
	uint32_t writer)
{
	bool read = false;

	for (uint32_t reader = 0; reader < map->plan.slots; reader++)
		if (m->claim[reader] != 0 && is_read(map, reader, writer))
			read = true;
	return read;
}

static void
mark_read(const struct segment_map *map, struct marks *m)
{
	for (uint32_t i = 0; i < map->plan.slots; i++)
		if (is_marked(m->dead, i) && is_anywhere_read(map, m, i))
			mark(m->read, i);
}

/* All of the run that span @index is of. */
static void
mark_run(const struct segment_map *map, struct marks *m, uint32_t index)
{
	_Atomic uint64_t *spans = segment_spans(map);
	uint64_t word = atomic_load(&spans[index]);
	uint64_t owner = word >> 24; /* its slot and generation */

	while (index > 0 && segment_span_kind(word) == SEGMENT_SPAN_REST &&
		atomic_load(&spans[index - 1]) >> 24 == owner)
		word = atomic_load(&spans[--index]);
	do {
		mark(m->held, index++);
		if (index == map->plan.spans)
			return;
		word = atomic_load(&spans[index]);
	} while (segment_span_kind(word) == SEGMENT_SPAN_REST &&
		word >> 24 == owner);
}

static void
mark_holds(const struct segment_map *map, struct marks *m, uint32_t slot,
	uint32_t gen)
{
	_Atomic uint64_t *holds = segment_holds(map, slot);

	for (uint32_t i = 0; i < SEGMENT_HOLDS; i++) {
		uint64_t word = atomic_load(&holds[i]);
		uint64_t at = segment_word_offset(word);

		if (word == 0 || segment_hold_gen(word) != gen ||
			at < map->plan.arena || at >= map->plan.size)
			continue;
		at = (at - map->plan.arena) / SEGMENT_SPAN;
		if (at < map->plan.spans)
			mark_run(map, m, (uint32_t)at);
	}
}

static void
mark_held(const struct segment_map *map, struct marks *m)
{
	for (uint32_t i = 0; i < map->plan.slots; i++) {
		uint64_t claim = claim_of(map, i);

		if (segment_state(claim) == SEGMENT_HELD &&
			atomic_load(&segment_slot(map, i)->holds) ==
				segment_gen(claim))
			mark_holds(map, m, i, segment_gen(claim));
	}
}

/* --- giving it back ------------------------------------------------------- */

static bool
give(const struct segment_sweeper *s, uint32_t index, uint64_t word)
{
	const struct segment_map *map = s->map;
	_Atomic uint64_t *span = &segment_spans(map)[index];
	struct segment_shared *shared = segment_shared(map);
	uint64_t mine = segment_span_word(s->slot, s->gen, SEGMENT_SPAN_RUN, 1);

	if (!atomic_compare_exchange_strong(span, &word, mine))
		return false;
	s->empty(s->ctx, map->plan.arena + index * SEGMENT_SPAN, SEGMENT_SPAN);
	atomic_compare_exchange_strong(span, &mine, 0);
	if (index < atomic_load_explicit(&shared->low, memory_order_relaxed))
		atomic_store_explicit(&shared->low, index,
			memory_order_relaxed);
	return true;
}

static struct segment_swept
give_all(const struct segment_sweeper *s, const struct marks *m)
{
	struct segment_swept swept = { .freed = 0 };
	uint32_t top = top_of(s->map);

	for (uint32_t i = 0; i < top; i++) {
		uint64_t word = atomic_load_explicit(&segment_spans(s->map)[i],
			memory_order_relaxed);

		if (!is_of_dead(s->map, m, word))
			continue;
		if (is_marked(m->read, segment_span_slot(word)) ||
			is_marked(m->held, i)) {
			swept.kept++;
			continue;
		}
		if (swept.freed == s->most) {
			swept.more = true;
			return swept;
		}
		swept.freed += give(s, i, word);
	}
	return swept;
}

/* Rings first and holds last, in the other order than a reader writes them. Who is
 * buried after the sweep began is none of its business. */
struct segment_swept
segment_sweep(const struct segment_sweeper *s)
{
	struct segment_swept swept = { .freed = 0 };
	struct marks *m = calloc(1,
		sizeof(*m) + s->map->plan.slots * sizeof(m->claim[0]));

	if (m != NULL && mark_dead(s->map, m) > 0) {
		mark_read(s->map, m);
		mark_held(s->map, m);
		swept = give_all(s, m);
	}
	free(m);
	return swept;
}

uint32_t
segment_spans_taken(const struct segment_map *map)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < map->plan.spans; i++)
		count += atomic_load_explicit(&segment_spans(map)[i],
				 memory_order_relaxed) != 0;
	return count;
}
