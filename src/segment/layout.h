/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - the shape of a job's segment, and how a slot of it is claimed.
 *
 * A segment is a sealed memfd that all ranks of a job on a machine inherit: a
 * page that the supervisor writes, then a slot for each local rank, then spare
 * ones for workers that ranks will make. Nobody can make it shorter, so a
 * mapping never faults. Pages are made when they are first written to.
 *
 * A slot has one line for the supervisor and one for the rank. Whoever inherits
 * the descriptor can write all of it: the supervisor copies what it reads, and
 * believes nothing (owner.h). The claim is one word, so that a death at any
 * instruction leaves it whole:
 *
 *	claim := gen << 40 | state << 32 | pid of the holder
 *
 * A free slot has holder 0. The preloaded agent marks a slot as met, which keeps
 * nobody out: it may sit in a shell, whose child is the program. A program that
 * is linked with libxrun holds it. Each change of hands adds 1 to gen.
 *
 * Everything is in this header because the agent is linked with nothing.
 */
#ifndef SEGMENT_LAYOUT_H
#define SEGMENT_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC   UINT64_C(0x6765732e6e757278) /* "xrun.seg" */
#define SEGMENT_VERSION 1
#define SEGMENT_HEAD    4096 /* bytes before the first slot */
#define SEGMENT_SLOT    256  /* bytes */
#define SEGMENT_LINE    128  /* pairs of lines are fetched together */
#define SEGMENT_SECRET  32

/* The first bytes of the segment: written once, before the first rank. */
struct segment_head {
	uint64_t magic;
	uint32_t version;
	uint32_t slot_size; /* SEGMENT_SLOT */
	uint64_t size;      /* bytes of all */
	uint64_t job;       /* segment_hash() of the job's id */
	uint32_t attempt;
	uint32_t first;                 /* rank whose slot is the first */
	uint32_t ranks;                 /* slots of ranks */
	uint32_t slots;                 /* and spare ones */
	uint8_t secret[SEGMENT_SECRET]; /* of the job; in no other place */
};

struct segment_slot {
	/* The supervisor's. */
	_Alignas(SEGMENT_LINE) _Atomic int32_t pid; /* of the rank; 0: none */

	/* The rank's: any thread, any process of it. */
	_Alignas(SEGMENT_LINE) _Atomic uint64_t claim;
	_Atomic uint64_t birth; /* gen << 40 | start of the holder, as
				 * /proc/PID/stat has it; of another gen: not
				 * known */
	_Atomic uint64_t tick;  /* steps with each sign of life */
	_Atomic int64_t step;   /* steps done and 1; 0: not told */
	_Atomic int64_t total;  /* steps there are; 0: not told */
	_Atomic int64_t when;   /* CLOCK_MONOTONIC of the last tick */
	_Atomic uint64_t lost;  /* messages that found no room */
};

_Static_assert(sizeof(struct segment_slot) == SEGMENT_SLOT, "a slot");
_Static_assert(offsetof(struct segment_slot, claim) == SEGMENT_LINE,
	"the supervisor's line is its own");
_Static_assert(sizeof(struct segment_head) == 80 &&
		sizeof(struct segment_head) <= SEGMENT_HEAD,
	"the head is what an older version reads");
_Static_assert(SEGMENT_HEAD % SEGMENT_SLOT == 0, "no slot crosses a page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
	"a lock would not be shared");

enum segment_state {
	SEGMENT_FREE,
	SEGMENT_MET,  /* by the agent */
	SEGMENT_HELD, /* by libxrun */
};

static inline uint64_t
segment_claim_word(uint32_t gen, enum segment_state state, uint32_t pid)
{
	return (uint64_t)(gen & 0xffffff) << 40 | (uint64_t)state << 32 | pid;
}

static inline uint32_t
segment_gen(uint64_t claim)
{
	return (uint32_t)(claim >> 40);
}

static inline uint32_t
segment_state(uint64_t claim)
{
	return (uint32_t)(claim >> 32) & 0xff;
}

static inline uint32_t
segment_holder(uint64_t claim)
{
	return (uint32_t)claim;
}

/* segment_birth_word() - what tells the holder from who has its number later. */
static inline uint64_t
segment_birth_word(uint32_t gen, uint64_t start)
{
	return (uint64_t)(gen & 0xffffff) << 40 |
		(start & ((UINT64_C(1) << 40) - 1));
}

/* segment_slot_at() - where slot @index begins. */
static inline uint64_t
segment_slot_at(uint32_t index)
{
	return SEGMENT_HEAD + (uint64_t)index * SEGMENT_SLOT;
}

/* segment_hash() - FNV-1a, 64 bits (draft-eastlake-fnv). */
static inline uint64_t
segment_hash(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* segment_take() - the slot passes from who had @seen to @pid; false: somebody
 * was faster. */
static inline bool
segment_take(struct segment_slot *slot, uint64_t seen, enum segment_state state,
	uint32_t pid)
{
	return atomic_compare_exchange_strong(&slot->claim, &seen,
		segment_claim_word(segment_gen(seen) + 1, state, pid));
}

/* segment_meet() - the agent's claim: of a slot that is free, or that an earlier
 * program of the same process had. */
static inline bool
segment_meet(struct segment_slot *slot, uint32_t pid)
{
	uint64_t seen = atomic_load(&slot->claim);

	if (segment_state(seen) != SEGMENT_FREE && segment_holder(seen) != pid)
		return false;
	return segment_take(slot, seen, SEGMENT_MET, pid);
}

#endif /* SEGMENT_LAYOUT_H */
