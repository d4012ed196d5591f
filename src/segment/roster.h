/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roster.h - where the ranks of a job write down who they are, and read who the others
 * are: once, when they come together for the first time (worker/rpc/roster.h).
 *
 * A page with words and what came of it; behind it a card for each slot. A card is
 * written, and then its length; the words are futexes.
 */
#ifndef SEGMENT_ROSTER_H
#define SEGMENT_ROSTER_H

#include <stdatomic.h>
#include <stdint.h>

#include "segment/member.h"

#define SEGMENT_VERDICT 1024 /* bytes */

struct segment_roster {
	_Alignas(SEGMENT_LINE) _Atomic uint32_t come;  /* cards written */
	_Alignas(SEGMENT_LINE) _Atomic uint32_t state; /* the members' */
	_Alignas(SEGMENT_LINE) _Atomic uint32_t
		ready; /* who have read all cards */
	_Alignas(SEGMENT_LINE) _Atomic uint32_t go;  /* 1: all have */
	_Alignas(SEGMENT_LINE) _Atomic uint32_t len; /* of the verdict */
	uint8_t verdict[SEGMENT_VERDICT];
};

struct segment_card {
	_Atomic uint32_t len; /* 0: it is not written yet */
	uint8_t data[SEGMENT_CARD - sizeof(uint32_t)];
};

_Static_assert(sizeof(struct segment_roster) <= SEGMENT_PAGE, "one page");
_Static_assert(sizeof(struct segment_card) == SEGMENT_CARD, "a card");

static inline struct segment_roster *
segment_roster(const struct segment_map *map)
{
	return (void *)(map->base + map->plan.roster);
}

static inline struct segment_card *
segment_card(const struct segment_map *map, uint32_t index)
{
	return (struct segment_card *)(void *)(map->base + map->plan.roster +
		       SEGMENT_PAGE) +
		index;
}

#endif /* SEGMENT_ROSTER_H */
