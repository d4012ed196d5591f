/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - see span.h. */
#include <errno.h>

#include <sys/mman.h>

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

static void
free_some(const struct segment_map *map, uint32_t first, uint32_t run)
{
	for (uint32_t i = 0; i < run; i++)
		atomic_store_explicit(&segment_spans(map)[first + i], 0,
			memory_order_release);
}

/* How many of @run were taken; the others are somebody's. */
static uint32_t
take_run(const struct segment_map *map, uint32_t first, const uint64_t word[2],
	uint32_t run)
{
	for (uint32_t i = 0; i < run; i++)
		if (!take_one(map, first + i, word[i > 0])) {
			free_some(map, first, i);
			return i;
		}
	return run;
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
		if (take_run(map, at + 1 - run, word, run) == run)
			return at + 1 - run;
		count = 0;
	}
	return SPAN_NONE;
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

	if (run == 0 || run > map->plan.spans)
		return SPAN_NONE;
	if (low < map->plan.spans)
		first = take_from(map, low, word, run);
	if (first == SPAN_NONE && low > 0)
		first = take_from(map, 0, word, run);
	if (first == SPAN_NONE)
		return SPAN_NONE;
	raise(&shared->top, first + run);
	if (run == 1)
		atomic_store_explicit(&shared->low, first + 1,
			memory_order_relaxed);
	return first;
}

void
span_give(const struct segment_map *map, uint32_t first, uint32_t run)
{
	struct segment_shared *shared = segment_shared(map);
	int saved = errno;

	madvise(span_data(map, first), run * SEGMENT_SPAN, MADV_REMOVE);
	errno = saved;
	free_some(map, first, run);
	if (first < atomic_load_explicit(&shared->low, memory_order_relaxed))
		atomic_store_explicit(&shared->low, first,
			memory_order_relaxed);
}
