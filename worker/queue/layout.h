/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - the shape of a queue's memory.
 *
 * It is a sealed memfd, as large as may be needed, that costs what of it is written to:
 *
 *	head    what the queue is, and words that all share
 *	users   a line for each process that has put or got something
 *	lanes   of each: its ends, its cells, the words of its blocks, its blocks
 *	lots    where items lie that are too long for blocks: only by read(2) and write(2)
 *
 * A cell has a word that says how far it is, in which lap of the ring, and by whom:
 *
 *	state := phase << 62 | user << 52 | gen << 40 | lap
 *
 *	FREE(lap) -> CLAIMED(lap, writer) -> FULL(lap) -> TAKEN(lap, reader) -> FREE(lap + 1)
 *
 * Each change is one store, so that who dies leaves a cell as it was before, or after; a
 * claim of the dead is voided by whoever meets it: a writer's was of nothing that others
 * could see, CLAIMED(lap) becomes FREE(lap + 1). The memory behind an item is named by a
 * word in the cell, which stands on each of its blocks, too:
 *
 *	owner := user << 54 | gen << 42 | number of the item, from 1
 *
 * A block is free, at 0, or has that word. What words of a dead writer no full cell has is
 * freed (user.c). The number is never used again, so that who is late in freeing what
 * was freed before frees nothing.
 *
 * Source: performance.md 5.6; Vyukov's bounded queue, with laps instead of tickets.
 *
 * Nobody believes what stands here where it would lead out of the mapping: where what lies
 * follows from five numbers, which are read once (hall.c), and indices are cut.
 */
#ifndef WORKER_QUEUE_LAYOUT_H
#define WORKER_QUEUE_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HALL_MAGIC    UINT64_C(0x65756575716e7278) /* "xrnqueue" */
#define HALL_VERSION  3
#define HALL_LINE     128 /* pairs of lines are fetched together */
#define HALL_PAGE     4096
#define HALL_USERS    1024 /* the first stays unused: 0 is nobody */
#define HALL_BLOCKS   1024 /* of a lane, at most */
#define HALL_BLOCK    512  /* bytes, at least */
#define HALL_LOTS     4
#define HALL_LOT      (UINT64_C(1) << 40) /* bytes of a lot, where limits allow */
#define CELL_BODY     96
#define CELL_NO_BLOCK UINT32_MAX

enum cell_phase {
	CELL_FREE,
	CELL_CLAIMED,
	CELL_FULL,
	CELL_TAKEN,
};

enum cell_kind {
	CELL_BYTES,
	CELL_VALUE,
	CELL_SHARED, /* a value with descriptors: value.c */
};

struct cell {
	_Alignas(HALL_LINE) _Atomic uint64_t state;
	_Atomic uint64_t len;   /* bytes of the item */
	_Atomic uint64_t owner; /* of the memory it lies in; 0: the body */
	_Atomic uint32_t first; /* block, or HALL_BLOCKS and a lot */
	uint32_t kind;
	uint8_t body[CELL_BODY];
};

_Static_assert(sizeof(struct cell) == HALL_LINE, "a cell");

#define LAP_BITS 40
#define LAP_MASK ((UINT64_C(1) << LAP_BITS) - 1)
#define GEN_BITS 12
#define GEN_MASK ((1u << GEN_BITS) - 1)

/* Who: a user and its generation, as they stand in words; 0: nobody. */
static inline uint32_t
who_word(uint32_t user, uint32_t gen)
{
	return user << GEN_BITS | (gen & GEN_MASK);
}

static inline uint32_t
who_user(uint32_t who)
{
	return who >> GEN_BITS;
}

static inline uint64_t
cell_word(enum cell_phase phase, uint32_t who, uint64_t lap)
{
	return (uint64_t)phase << 62 | (uint64_t)who << LAP_BITS |
		(lap & LAP_MASK);
}

static inline enum cell_phase
cell_phase(uint64_t word)
{
	return (enum cell_phase)(word >> 62);
}

static inline uint32_t
cell_who(uint64_t word)
{
	return (uint32_t)(word >> LAP_BITS) & 0x3fffff;
}

/* cell_behind() - laps from @word's to @lap: 0: the same; -1: it is of the next. */
static inline int64_t
cell_behind(uint64_t word, uint64_t lap)
{
	return (int64_t)((lap - word) << (64 - LAP_BITS)) >> (64 - LAP_BITS);
}

#define OWNER_BITS 42

static inline uint64_t
owner_word(uint32_t who, uint64_t number)
{
	return (uint64_t)who << OWNER_BITS |
		(number & ((UINT64_C(1) << OWNER_BITS) - 1));
}

static inline uint32_t
owner_who(uint64_t owner)
{
	return (uint32_t)(owner >> OWNER_BITS);
}

/* A place where processes sleep: wake.h. */
struct wake {
	_Alignas(HALL_LINE) _Atomic uint32_t rung; /* a futex */
	_Atomic uint32_t armed;                    /* somebody may sleep */
};

enum user_state {
	USER_FREE,
	USER_COMING, /* it has claimed nothing yet */
	USER_THERE,
};

#define USER_NAME 48 /* bytes; more are left out */

/* user := state << 60 | gen << 32 | pid */
struct user {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t start; /* of the process, as /proc/PID/stat has it */
	_Atomic uint64_t name[USER_NAME / 8]; /* of the worker elsewhere for
					       * whom it is; "": for itself */
};

enum hall_end {
	HALL_OPEN,
	HALL_CLOSED,  /* xr_queue_close() */
	HALL_WRITERS, /* the last one is gone */
};

struct hall_head {
	uint64_t magic;
	uint32_t version;
	uint32_t kind;
	uint32_t items, lanes;  /* of each lane; how many */
	uint32_t blocks, block; /* of each lane; bytes */
	uint64_t lot;           /* bytes; 0: there are none */
	uint64_t size;
	uint64_t space; /* of process ids */
	uint32_t mode;
	uint32_t redeliver;

	_Alignas(HALL_LINE) _Atomic uint32_t end; /* enum hall_end */
	_Atomic uint32_t polled;                  /* somebody polls, or did */
	_Atomic uint32_t roll;                    /* steps as users come */
	_Atomic uint32_t lit;     /* the descriptor can be read from */
	_Atomic uint32_t returns; /* items may be given back: there are wards */
	_Alignas(HALL_LINE) _Atomic uint64_t number; /* of the last long item */
	struct wake items_wake;                      /* for something to get */
	struct wake space_wake;                      /* for a cell */
	struct wake memory_wake;                     /* for blocks, or a lot */
	_Alignas(HALL_LINE) _Atomic uint64_t lots[HALL_LOTS]; /* owners */
};

/* The ends of a lane: hints, but for XR_QUEUE_P2P, where each has one who moves it. */
struct lane_head {
	_Alignas(HALL_LINE) _Atomic uint64_t tail;
	_Atomic uint32_t writer; /* who, of XR_QUEUE_P2P */
	_Alignas(HALL_LINE) _Atomic uint64_t head;
	_Atomic uint32_t reader;
	_Atomic uint32_t
		shut; /* of XR_QUEUE_P2P: its reader has found it closed, and
				* empty: lane_shut() */
	_Alignas(HALL_LINE) _Atomic uint32_t block; /* where to look first */
};

#define HALL_USERS_AT 4096

_Static_assert(sizeof(struct hall_head) <= HALL_USERS_AT, "the head's page");

#endif /* WORKER_QUEUE_LAYOUT_H */
