/* SPDX-License-Identifier: Apache-2.0 */
/* left.c - see left.h. */
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/fault/left.h"

bool
left_map(struct segment_map *map)
{
	struct segment_tag tag;

	return segment_tag_parse(getenv("XRUN_SEGMENT_FD"), &tag) &&
		segment_map(&tag, map);
}

static bool
is_of_dead(const struct segment_map *map, uint32_t slot, uint32_t gen)
{
	return slot < map->plan.slots &&
		!segment_has(atomic_load(&segment_slot(map, slot)->claim), gen);
}

/* Words of spans that are taken, below where anybody ever was. */
static uint32_t
count_spans(const struct segment_map *map, bool of_dead, uint32_t slot)
{
	uint32_t top = atomic_load(&segment_shared(map)->top), count = 0;

	for (uint32_t i = 0; i < map->plan.spans && i < top; i++) {
		uint64_t word = atomic_load(&segment_spans(map)[i]);

		if (word == 0)
			continue;
		count += of_dead ? is_of_dead(map, segment_span_slot(word),
					   segment_span_gen(word)) :
				   segment_span_slot(word) == slot;
	}
	return count;
}

uint32_t
left_spans(const struct segment_map *map)
{
	return count_spans(map, true, 0);
}

uint32_t
left_used(const struct segment_map *map, uint32_t slot)
{
	return count_spans(map, false, slot);
}

uint32_t
left_rings(const struct segment_map *map, uint32_t size, uint64_t alive)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < size; i++)
		for (uint32_t j = 0; j < size; j++)
			count += ((alive >> i & alive >> j) & 1) == 0 &&
				atomic_load(segment_dir(map, i, j)) != 0;
	return count;
}
