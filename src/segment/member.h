/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - a rank's side of a segment: find it, map it, hold a slot of it.
 *
 * A mapping stays as long as the process, children made by fork share it, and
 * core dumps leave it out. Other ranks may write anything into it at any time.
 * Most ranks want their slot only: that maps no more than the slots, which every
 * limit has room for. All of it is for the data plane (worker/shm/).
 */
#ifndef SEGMENT_MEMBER_H
#define SEGMENT_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include "segment/layout.h"

/* What XRUN_SEGMENT_FD says: "98:4711". */
struct segment_tag {
	int fd;
	uint64_t inode;
};

/* segment_tag_parse() - false, with @tag untouched, if @text is none; or NULL. */
bool segment_tag_parse(const char *text, struct segment_tag *tag);

/*
 * segment_join() - the slot of local rank @rank.
 *
 * Returns  NULL if the descriptor is not what the tag says, is no segment that
 *          was sealed, is of another version, or has no such slot
 * Thread   any, a signal handler too.  Blocks: no.
 */
struct segment_slot *segment_join(const struct segment_tag *tag, uint32_t rank);

/* A segment, all of it. */
struct segment_map {
	char *base;
	uint32_t ranks;
	struct segment_plan plan;
};

/*
 * segment_map() - map all of the segment that @tag names.
 *
 * Returns  false, with @map->base NULL: as segment_join(), or it has slots only,
 *          or there is no room for it in this process
 * Thread   any.  Blocks: no.
 */
bool segment_map(const struct segment_tag *tag, struct segment_map *map);

/* segment_slot() - slot @index, below the plan's slots. */
static inline struct segment_slot *
segment_slot(const struct segment_map *map, uint32_t index)
{
	return (void *)(map->base + segment_slot_at(index));
}

static inline struct segment_shared *
segment_shared(const struct segment_map *map)
{
	return (void *)(map->base + SEGMENT_SHARED);
}

/* segment_dir() - the word of the ring from @writer to @reader, @reader's are
 * behind each other. */
static inline _Atomic uint64_t *
segment_dir(const struct segment_map *map, uint32_t reader, uint32_t writer)
{
	return (_Atomic uint64_t *)(void *)(map->base + map->plan.dir) +
		(uint64_t)reader * map->plan.slots + writer;
}

/* segment_holds() - [SEGMENT_HOLDS], of slot @index. */
static inline _Atomic uint64_t *
segment_holds(const struct segment_map *map, uint32_t index)
{
	return (_Atomic uint64_t *)(void *)(map->base + map->plan.holds) +
		(uint64_t)index * SEGMENT_HOLDS;
}

/* segment_spans() - the map: a word for each span. */
static inline _Atomic uint64_t *
segment_spans(const struct segment_map *map)
{
	return (void *)(map->base + map->plan.map);
}

struct segment_figures;

/* segment_figures() - of slot @index. */
static inline struct segment_figures *
segment_figures(const struct segment_map *map, uint32_t index)
{
	return (void *)(map->base + map->plan.figures +
		(uint64_t)index * SEGMENT_FIGURES);
}

struct segment_gauges;

/* segment_gauges_join() - of local rank @rank, in a mapping of their own; NULL: as
 * segment_join(), or it has none. */
struct segment_gauges *segment_gauges_join(const struct segment_tag *tag,
	uint32_t rank);

/* segment_owns() - does the map say of both ends of these bytes, which lie in the
 * arena, that they are {@slot, @gen}'s? */
static inline bool
segment_owns(const struct segment_map *map, uint32_t slot, uint32_t gen,
	uint64_t offset, uint64_t len)
{
	uint64_t owner =
		segment_span_word(slot, gen, SEGMENT_SPAN_FREE, 0) >> 24;
	uint64_t first = (offset - map->plan.arena) / SEGMENT_SPAN;
	uint64_t last = (offset + (len > 0 ? len - 1 : 0) - map->plan.arena) /
		SEGMENT_SPAN;

	return last < map->plan.spans &&
		atomic_load_explicit(&segment_spans(map)[first],
			memory_order_relaxed) >>
			24 ==
		owner &&
		atomic_load_explicit(&segment_spans(map)[last],
			memory_order_relaxed) >>
			24 ==
		owner;
}

/*
 * segment_hold() - the calling process holds @slot.
 *
 * It passes from whoever had it and died, was replaced by exec, or was only met.
 *
 * Returns  0; else the process that holds it
 */
pid_t segment_hold(struct segment_slot *slot);

/* segment_let_go() - if the calling process holds @slot: nobody does, unless it was
 * to be kept. */
void segment_let_go(struct segment_slot *slot);

/* segment_keep() - what this process holds it holds as long as it lives: memory of
 * the segment is known by that. */
void segment_keep(void);

/*
 * segment_gone() - no thread of the process that has @slot by @claim runs any more?
 *
 * @thorough: look after whether its number has passed on, too; else that is done
 *            only where its death is marked
 * false where nobody can say: it is of another space of process ids.
 */
bool segment_gone(const struct segment_slot *slot, uint64_t claim,
	bool thorough);

#endif /* SEGMENT_MEMBER_H */
