/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h - the supervisor's side of a segment: it makes, reads and recycles.
 *
 * It has the descriptor and no mapping: what is read is copied by the kernel,
 * which answers with an error where a page cannot be had, and a segment that
 * nobody looks into costs no page of the supervisor's. Ranks may write anything
 * at any time; what comes out here is in range, whatever stands there.
 *
 * When a process ended: segment_recycle() its slot, unless another process has
 * that and lives; segment_alarm() if others had links to it, who wait for its end
 * to have back what they lent, and may not have heard of it; segment_reclaim() if
 * others are there.
 */
#ifndef SEGMENT_OWNER_H
#define SEGMENT_OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct segment_wish {
	const char *job; /* id */
	uint32_t attempt;
	uint32_t first; /* rank whose slot is the first */
	uint32_t ranks; /* on this machine */
	uint32_t spare; /* slots beyond them */
	uint64_t most;  /* bytes; 0: as the machine and its limits allow */
};

/*
 * segment_create() - a sealed segment with its head written.
 *
 * Returns  a descriptor, close-on-exec; -1 with errno: this kernel or its limits
 *          have none
 */
int segment_create(const struct segment_wish *wish);

/* segment_spare() - how many spare slots a machine of so many CPUs has. */
uint32_t segment_spare(void);

/* What a slot says, made harmless. */
struct segment_view {
	uint32_t gen;
	uint32_t holder; /* process id; 0: nobody */
	bool held;       /* by libxrun, not only met by the agent */
	uint64_t tick;
	int64_t step;  /* 0 .. 2^53 - 1; -1: not told */
	int64_t total; /* the same */
	int64_t when;  /* ns of CLOCK_MONOTONIC, not after @now; 0: never */
	int64_t lost;  /* 0 .. 2^53 - 1 */
	bool shares;   /* its holder used the arena */
	bool open;     /* others have links to it */
};

/*
 * segment_look() - read slot @index.
 *
 * @now: clock_now()
 * Returns  false, with @view empty, if it cannot be read
 */
bool segment_look(int fd, uint32_t index, int64_t now,
	struct segment_view *view);

struct figures_view;

/*
 * segment_figures_at() - where the figures of slot 0 stand, in a segment of @slots
 * that was created as @fd; 0: it has none.
 */
uint64_t segment_figures_at(int fd, uint32_t slots);

/*
 * segment_count() - what the last agent of slot @index has counted.
 *
 * @at: what segment_figures_at() gave
 * Returns  false, with @view untouched: it cannot be read, or there was none
 */
bool segment_count(int fd, uint64_t at, uint32_t index,
	struct figures_view *view);

/* segment_uncount() - there was none; only where segment_count() gave true. */
void segment_uncount(int fd, uint64_t at, uint32_t index);

/* segment_name() - whose slot it is: the rank's process. */
void segment_name(int fd, uint32_t index, int32_t pid);

/* segment_recycle() - nobody has slot @index any more, and it says nothing; its
 * gen is one more than @gen. Not while a process that may claim it is of use. */
void segment_recycle(int fd, uint32_t index, uint32_t gen);

/*
 * segment_alarm() - who sleeps in one of @slots slots wakes up, and looks who died.
 *
 * Cost: a look at all slots, and two system calls for each that sleeps.
 */
void segment_alarm(int fd, uint32_t slots);

/*
 * segment_reclaim() - what processes had that are gone is given back (sweep.h): of
 * those whose slot was recycled, and of those that nobody told of.
 *
 * Meanwhile all but the arena is mapped, and what will be looked at is asked for
 * first, so that a page that cannot be had ends it without harm.
 *
 * @ranks, @slots: as the segment was made
 * Returns  spans that were freed
 * Thread   any.  Blocks: some 20 us a MiB that is given back.
 */
uint32_t segment_reclaim(int fd, uint32_t ranks, uint32_t slots);

#endif /* SEGMENT_OWNER_H */
