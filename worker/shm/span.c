/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - see span.h. */
#include <errno.h>

#include <sys/mman.h>

#include "worker/shm/mark.h"
#include "worker/shm/span.h"

static bool
take_one(const struct segment_map *map, uint32_t index, uint64_t word)
{
	uint64_t none = 0;

	return atomic_compare_exchange_strong_explicit(&segment_spans(map)
							       [index],
		&none, word, memory_order_acquire, memory_order_relaxed);
}

static bool
is_free(const struct segment_map *map, uint32_t index)
{
	return atomic_load_explicit(&segment_spans(map)[index],
		       memory_order_relaxed) == 0;
}

/* Only what is the caller's: who wrote over the map shall not make us give away
 * what another has. */
static void
free_one(const struct segment_map *map, uint32_t index, uint64_t word)
{
	atomic_compare_exchange_strong_explicit(&segment_spans(map)[index],
		&word, 0, memory_order_release, memory_order_relaxed);
}

/* How many of @run were taken; the others are somebody's. */
static uint32_t
take_run(const struct segment_map *map, uint32_t first, const uint64_t word[2],
	uint32_t run)
{
	for (uint32_t i = 0; i < run; i++) {
		MARK(MARK_TAKEN);
		if (take_one(map, first + i, word[i > 0]))
			continue;
		for (uint32_t j = 0; j < i; j++)
			free_one(map, first + j, word[j > 0]);
		return i;
	}
	return run;
}

static void
raise(_Atomic uint32_t *top, uint32_t to)
{
	uint32_t seen = atomic_load_explicit(top, memory_order_relaxed);

	while (seen < to &&
		!atomic_compare_exchange_weak_explicit(top, &seen, to,
			memory_order_release, memory_order_relaxed))
		continue;
}

/* The first place from @at on where @run are free, and are ours then. */
static uint32_t
take_from(const struct segment_map *map, uint32_t at, const uint64_t word[2],
	uint32_t run)
{
	uint32_t count = 0, spans = map->plan.spans;

	for (; at < spans; at++) {
		count = is_free(map, at) ? count + 1 : 0;
		if (count < run)
			continue;
		raise(&segment_shared(map)->top, at + 1);
		if (take_run(map, at + 1 - run, word, run) == run)
			return at + 1 - run;
		count = 0;
	}
	return SPAN_NONE;
}

/* `low` and `top` are hints that anybody may spoil: then it takes longer. The
 * top is raised before, lest a sweep overlook what is taken. */
uint32_t
span_take(const struct segment_map *map, uint32_t slot, uint32_t gen,
	uint32_t run)
{
	struct segment_shared *shared = segment_shared(map);
	const uint64_t word[2] = {
		segment_span_word(slot, gen, SEGMENT_SPAN_RUN, run),
		segment_span_word(slot, gen, SEGMENT_SPAN_REST, 0),
	};
	uint32_t low = atomic_load_explicit(&shared->low, memory_order_relaxed);
	uint32_t first = SPAN_NONE;

	if (run == 0)
		return SPAN_NONE;
	if (low < map->plan.spans)
		first = take_from(map, low, word, run);
	if (first == SPAN_NONE && low > 0)
		first = take_from(map, 0, word, run);
	if (first == SPAN_NONE)
		return SPAN_NONE;
	if (run == 1)
		atomic_store_explicit(&shared->low, first + 1,
			memory_order_relaxed);
	return first;
}

static bool
are_ours(const struct segment_map *map, const uint64_t word[2],
	struct span_run run)
{
	for (uint32_t i = 0; i < run.count; i++)
		if (atomic_load_explicit(&segment_spans(map)[run.first + i],
			    memory_order_relaxed) != word[i > 0])
			return false;
	return true;
}

static void
empty(void *ctx, uint64_t offset, uint64_t len)
{
	const struct segment_map *map = ctx;
	int saved = errno;

	madvise(map->base + offset, len, MADV_REMOVE);
	errno = saved;
}

/* Emptied while it is ours. Who dies in between has the rest. */
void
span_give(const struct segment_map *map, uint32_t slot, uint32_t gen,
	struct span_run run)
{
	const uint64_t word[2] = {
		segment_span_word(slot, gen, SEGMENT_SPAN_RUN, run.count),
		segment_span_word(slot, gen, SEGMENT_SPAN_REST, 0),
	};
	struct segment_shared *shared = segment_shared(map);

	if (!are_ours(map, word, run))
		return;
	empty((void *)(uintptr_t)map,
		map->plan.arena + run.first * SEGMENT_SPAN,
		run.count * SEGMENT_SPAN);
	for (uint32_t i = 0; i < run.count; i++) {
		MARK(MARK_GIVEN);
		free_one(map, run.first + i, word[i > 0]);
	}
	if (run.first <
		atomic_load_explicit(&shared->low, memory_order_relaxed))
		atomic_store_explicit(&shared->low, run.first,
			memory_order_relaxed);
}

struct segment_swept
span_sweep(const struct segment_map *map, uint32_t slot, uint32_t gen,
	uint32_t most)
{
	const struct segment_sweeper sweeper = {
		.map = map,
		.slot = slot,
		.gen = gen,
		.most = most,
		.empty = empty,
		.ctx = (void *)(uintptr_t)map,
	};

	for (uint32_t i = 0; i < map->plan.slots; i++)
		segment_bury(map, i, segment_marked(segment_slot(map, i)));
	return segment_sweep(&sweeper);
}
