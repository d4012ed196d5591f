/* SPDX-License-Identifier: Apache-2.0 */
/* left.h - what the dead left in a job's segment, as a rank that maps it sees it. */
#ifndef TESTS_FAULT_LEFT_H
#define TESTS_FAULT_LEFT_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/member.h"

/* left_map() - this job's; false: there is none. */
bool left_map(struct segment_map *map);

/* left_spans() - of the arena, whose owner is gone. left_rings() - to or from one of
 * @size ranks whose bit in @alive is not set. left_used() - spans that @slot has. */
uint32_t left_spans(const struct segment_map *map);
uint32_t left_rings(const struct segment_map *map, uint32_t size,
	uint64_t alive);
uint32_t left_used(const struct segment_map *map, uint32_t slot);

#endif /* TESTS_FAULT_LEFT_H */
