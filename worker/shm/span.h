/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - spans of the arena: taken from all, and given back to all.
 *
 * A span is taken by a store that names who has it, if it was free; a run is
 * taken span by span. Who dies meanwhile has those that name him.
 */
#ifndef WORKER_SHM_SPAN_H
#define WORKER_SHM_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/member.h"
#include "segment/sweep.h"

#define SPAN_NONE UINT32_MAX

struct span_run {
	uint32_t first, count;
};

/* span_take() - the first of @run spans behind each other, now {@slot, @gen}'s;
 * SPAN_NONE: there are not so many. */
uint32_t span_take(const struct segment_map *map, uint32_t slot, uint32_t gen,
	uint32_t run);

/* span_give() - back, and their memory to the system. They are {@slot, @gen}'s;
 * what the map says is another's stays. */
void span_give(const struct segment_map *map, uint32_t slot, uint32_t gen,
	struct span_run run);

/* span_sweep() - give back what the dead had, at most @most spans; see
 * segment/sweep.h. */
struct segment_swept span_sweep(const struct segment_map *map, uint32_t slot,
	uint32_t gen, uint32_t most);

static inline char *
span_data(const struct segment_map *map, uint32_t index)
{
	return map->base + map->plan.arena + index * SEGMENT_SPAN;
}

#endif /* WORKER_SHM_SPAN_H */
