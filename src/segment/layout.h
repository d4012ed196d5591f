/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - the shape of a job's segment, and how a slot of it is claimed.
 *
 * A segment is a sealed memfd that all ranks of a job on a machine inherit:
 *
 *	head       a page that the supervisor writes, and some shared words
 *	slots      one for each local rank, then spare ones for workers that
 *	           ranks will make
 *	directory  for each pair of slots, the ring from the one to the other
 *	holds      for each slot, what it still uses of the dead
 *	map        for each span of the arena, whose it is
 *	figures    a page for each slot: what its agent has counted (figures.h)
 *	roster     a card for each slot: who it is when ranks come together (roster.h)
 *	gauges     for each slot, how its pools and queues are (gauge.h)
 *	arena      spans of 2 MiB: rings, and what ranks hand to each other
 *
 * It is as large as may be needed, up to 64 GiB, and costs what of it is written
 * to: nothing is made before. Nobody can make it shorter, so a mapping never
 * faults. Where what lies follows from the number of slots and the size alone
 * (segment_plan()), so nobody need believe what stands in it.
 *
 * A slot has a line for the supervisor, one for the rank, a doorbell and one of
 * words that tell of its death. Whoever inherits the descriptor can write all of
 * it: the supervisor copies what it reads, and believes nothing (owner.h). The
 * claim is one word, so that a death at any instruction leaves it whole:
 *
 *	claim := gen << 40 | state << 32 | pid of the holder
 *
 * A free slot has holder 0. The preloaded agent marks a slot as met, which keeps
 * nobody out: it may sit in a shell, whose child is the program. A program that
 * is linked with libxrun holds it. Each change of hands adds 1 to gen.
 *
 * The directory, the map and the holds are words, too, that name whose they are:
 *
 *	ring  := offset / 64 << 32 | gen of the writer << 16 | gen of the reader
 *	span  := slot << 48 | gen << 24 | kind << 16 | spans of the run
 *	hold  := offset / 64 << 32 | gen of the holder
 *
 * of which a ring has the low 16 bits of each gen. 0 is: none, free.
 *
 * Everything is in this header because the agent is linked with nothing.
 */
#ifndef SEGMENT_LAYOUT_H
#define SEGMENT_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC      UINT64_C(0x6765732e6e757278) /* "xrun.seg" */
#define SEGMENT_VERSION    6
#define SEGMENT_HEAD       4096 /* bytes before the first slot */
#define SEGMENT_SLOT       512  /* bytes */
#define SEGMENT_LINE       128  /* pairs of lines are fetched together */
#define SEGMENT_SECRET     32
#define SEGMENT_PAGE       4096
#define SEGMENT_FIGURES    4096 /* bytes a slot */
#define SEGMENT_CARD       512  /* the same */
#define SEGMENT_GAUGES     16384
#define SEGMENT_SPAN       (UINT64_C(2) << 20)
#define SEGMENT_SIZE_MAX   (UINT64_C(64) << 30)
#define SEGMENT_HOLDS      512 /* a slot */
#define SEGMENT_CPUS       1024
#define SEGMENT_OWNER_DIED 0x40000000u /* as linux/futex.h has it */
#define SEGMENT_WORDS      8 /* of death, a slot: each wakes one who sleeps */

/* The directory has a word for each pair: beyond it there is no arena. */
#define SEGMENT_SLOTS_MAX 4096
#define SEGMENT_SPANS_MAX (SEGMENT_SIZE_MAX / SEGMENT_SPAN)

/* Whose a span is while the supervisor empties it: no slot's. */
#define SEGMENT_SUPERVISOR 0xffffu

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

/* The head's second half: words that everybody writes, each on its own line. */
struct segment_shared {
	_Alignas(SEGMENT_LINE) _Atomic uint32_t fails; /* deaths told of */

	/* What processes measured, for those that come later; 0: not yet. */
	_Alignas(SEGMENT_LINE) _Atomic uint32_t ticks; /* of the clock, a ms */
	_Atomic uint32_t wake_ns; /* from a ring to the end of a sleep */
	_Atomic uint32_t quota;   /* CPUs that the job may keep busy */

	/* A bit for each CPU that one of them may run on. */
	_Alignas(SEGMENT_LINE) _Atomic uint64_t cpus[SEGMENT_CPUS / 64];

	/* Where to look first for a free span. */
	_Alignas(SEGMENT_LINE) _Atomic uint32_t low;
	/* Beyond it no span was ever taken. */
	_Atomic uint32_t top;
};

#define SEGMENT_SHARED (SEGMENT_HEAD / 2)

/* Wakes a process that sleeps: worker/shm/bell.h. */
struct segment_bell {
	_Atomic uint32_t rung;    /* a futex; steps with each ring */
	_Atomic uint32_t asleep;  /* the number of its nap; 0: awake */
	_Atomic uint64_t rung_at; /* the clock's ticks, for who measures */
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
	_Atomic uint32_t cpu;   /* 1 and where it waited last; 0: not known */
	_Atomic uint32_t plane; /* gen << 8 | times it was opened; 0: it is
				 * closed, and no ring leads here */
	_Atomic uint64_t probe; /* where in its memory .. */
	_Atomic uint64_t proof; /* .. this stands */
	_Atomic uint32_t space; /* of process ids, in which the holder's is one;
				 * 0: not known */
	_Atomic uint32_t holds; /* gen of a holder that used its holds */

	/* The doorbell: written by peers. */
	_Alignas(SEGMENT_LINE) struct segment_bell bell;
	_Atomic uint32_t arrivals; /* steps with each new ring to here */

	/* Robust futexes, all with the same in them: the thread that has them,
	 * 0 if none does. The kernel marks each when the thread ends, and wakes
	 * one sleeper of each. */
	_Alignas(SEGMENT_LINE) struct {
		_Atomic uint32_t word;
		uint32_t unused;
	} alive[SEGMENT_WORDS];
	_Atomic uint32_t told; /* gen whose death everybody was told of */
	/* The number of its nap, if it awaits answers in it; else they ring nobody.
	 * Not beside the bell: that is written call by call. */
	_Atomic uint32_t awaits;
};

_Static_assert(sizeof(struct segment_slot) == SEGMENT_SLOT, "a slot");
_Static_assert(offsetof(struct segment_slot, claim) == SEGMENT_LINE,
	"the supervisor's line is its own");
_Static_assert(offsetof(struct segment_slot, bell) == 2 * SEGMENT_LINE &&
		offsetof(struct segment_slot, alive) == 3 * SEGMENT_LINE,
	"so are the others");
_Static_assert(sizeof(struct segment_head) == 80 &&
		sizeof(struct segment_head) <= SEGMENT_SHARED &&
		sizeof(struct segment_shared) <= SEGMENT_HEAD - SEGMENT_SHARED,
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

/* Where what begins, in bytes. */
struct segment_plan {
	uint32_t slots;
	uint32_t spans; /* of the arena; 0: the segment has slots only */
	uint64_t dir, holds, map, figures, roster, gauges, arena;
	uint64_t size; /* of all; of the slots where there is no arena */
};

static inline uint64_t
segment_round(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* segment_plan() - of a segment of so many slots and bytes; false: they do not
 * fit. */
static inline bool
segment_plan(uint32_t slots, uint64_t size, struct segment_plan *plan)
{
	uint64_t spans = size / SEGMENT_SPAN;

	*plan = (struct segment_plan){
		.slots = slots,
		.size = segment_slot_at(slots),
	};
	if (size < plan->size)
		return false;
	if (slots > SEGMENT_SLOTS_MAX || size > SEGMENT_SIZE_MAX)
		return true;
	plan->dir = segment_round(plan->size, SEGMENT_PAGE);
	plan->holds = segment_round(plan->dir + (uint64_t)slots * slots * 8,
		SEGMENT_PAGE);
	plan->map = plan->holds + (uint64_t)slots * SEGMENT_HOLDS * 8;
	plan->figures = segment_round(plan->map + spans * 8, SEGMENT_PAGE);
	plan->roster = plan->figures + (uint64_t)slots * SEGMENT_FIGURES;
	plan->gauges = segment_round(plan->roster + SEGMENT_PAGE +
			(uint64_t)slots * SEGMENT_CARD,
		SEGMENT_PAGE);
	plan->arena =
		segment_round(plan->gauges + (uint64_t)slots * SEGMENT_GAUGES,
			SEGMENT_SPAN);
	if (size < plan->arena + SEGMENT_SPAN)
		return true;
	plan->spans = (uint32_t)((size - plan->arena) / SEGMENT_SPAN);
	plan->size = size;
	return true;
}

/* What the words of the directory, the map and the holds say. */
enum segment_span_kind {
	SEGMENT_SPAN_FREE,
	SEGMENT_SPAN_RUN,  /* the first of a run, maybe of one */
	SEGMENT_SPAN_REST, /* belongs to the run before */
};

static inline uint64_t
segment_ring_word(uint64_t offset, uint32_t writer, uint32_t reader)
{
	return offset / 64 << 32 | (uint64_t)(writer & 0xffff) << 16 |
		(reader & 0xffff);
}

static inline uint64_t
segment_word_offset(uint64_t word)
{
	return (word >> 32) * 64;
}

static inline uint64_t
segment_span_word(uint32_t slot, uint32_t gen, enum segment_span_kind kind,
	uint32_t run)
{
	return (uint64_t)(slot & 0xffff) << 48 |
		(uint64_t)(gen & 0xffffff) << 24 | (uint64_t)kind << 16 |
		(run & 0xffff);
}

static inline uint32_t
segment_span_slot(uint64_t word)
{
	return (uint32_t)(word >> 48);
}

static inline uint32_t
segment_span_gen(uint64_t word)
{
	return (uint32_t)(word >> 24) & 0xffffff;
}

static inline uint32_t
segment_span_kind(uint64_t word)
{
	return (uint32_t)(word >> 16) & 0xff;
}

static inline uint32_t
segment_span_run(uint64_t word)
{
	return (uint32_t)word & 0xffff;
}

static inline uint64_t
segment_hold_word(uint64_t offset, uint32_t gen)
{
	return offset / 64 << 32 | (gen & 0xffffff);
}

static inline uint32_t
segment_hold_gen(uint64_t word)
{
	return (uint32_t)word & 0xffffff;
}

/* segment_has() - is who has had the slot as @claim says libxrun in generation
 * @gen? */
static inline bool
segment_has(uint64_t claim, uint32_t gen)
{
	return segment_state(claim) == SEGMENT_HELD &&
		segment_gen(claim) == (gen & 0xffffff);
}

/* segment_marked() - has the kernel marked the end of the thread that had the
 * slot's robust words? */
static inline bool
segment_marked(const struct segment_slot *slot)
{
	return (atomic_load_explicit(&slot->alive[0].word,
			memory_order_relaxed) &
		       SEGMENT_OWNER_DIED) != 0;
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
