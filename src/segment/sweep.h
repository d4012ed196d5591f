/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - what the dead had in a segment is given back.
 *
 * All that a process has there names it: its slot, and the generation in which it
 * held that. So the dead need not have finished anything. A slot whose process is
 * gone is freed first (segment_bury()), which is one store; from then on all that
 * names its generation is nobody's:
 *
 *	spans      of the map, but for those that are in use yet: where a ring of
 *	           the dead has a living reader who did not let it go, and where a
 *	           hold of the living points to
 *	rings      from the dead to the dead
 *
 * A living reader of the dead notes what he holds before he lets the ring go, so
 * nothing can come to be in use later. What the living wrote for the dead they
 * take back themselves.
 *
 * Any process may sweep, several at a time too: a span is taken by who empties it
 * like any other, so that his death leaves it his, and no other empties it later,
 * when it is somebody's. Words that name no slot, and whatever else may stand in a
 * segment, are passed over.
 */
#ifndef SEGMENT_SWEEP_H
#define SEGMENT_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/member.h"

struct segment_sweeper {
	const struct segment_map *map; /* as far as the arena, at least */
	uint32_t slot, gen; /* who sweeps; or SEGMENT_SUPERVISOR, 0 */
	uint32_t most;      /* spans in one go */

	/* Gives the memory of one back, @offset in the segment. */
	void (*empty)(void *ctx, uint64_t offset, uint64_t len);
	void *ctx;
};

struct segment_swept {
	uint32_t freed; /* spans */
	uint32_t kept;  /* of the dead, that are in use */
	bool more;      /* there are more than @most */
};

/*
 * segment_bury() - free slot @index if its holder's process is gone.
 *
 * @thorough: as of segment_gone()
 * Returns  true if it was done, by this call
 * Thread   any.  Blocks: no.
 */
bool segment_bury(const struct segment_map *map, uint32_t index, bool thorough);

/*
 * segment_ring_drop() - @reader never looks again at the ring of @writer that @word says,
 * if that stands in the directory.
 *
 * Returns  true: @writer has died, and who swept before this may have found its ring
 *          read, so that nobody would give back what it had but for the caller
 * Thread   any.  Blocks: no.
 */
bool segment_ring_drop(const struct segment_map *map, uint32_t reader,
	uint32_t writer, uint64_t word);

/* segment_sweep() - give back what the buried had. Thread: any. Cost: a look at the
 * map, 10 us for 32768 spans; some 20 us a MiB that is given back. */
struct segment_swept segment_sweep(const struct segment_sweeper *sweeper);

/* segment_spans_taken() - how many spans of the arena are somebody's. */
uint32_t segment_spans_taken(const struct segment_map *map);

#endif /* SEGMENT_SWEEP_H */
