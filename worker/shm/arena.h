/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - this process's heap in the segment, whose blocks others may read.
 *
 * The arena is spans of 2 MiB. A process takes spans from all by one store into
 * the map, which says whose they are: so what the dead had is found again. All
 * else about its blocks is in its own memory, where nobody can damage it: which
 * there are, and how many references each has. Others have a block by a loan
 * (loan.h), for which one reference stands, or read it as long as the owner
 * keeps it by other means.
 *
 * Blocks of 64 bytes to 1 MiB are cut from spans, in four sizes a doubling; a
 * larger one is a run of spans. What is free is used again before anything else,
 * the last that was freed first: its pages are there, where fresh ones cost 2 to
 * 3 us each (performance.md 2.1). Free spans stay with the process, up to a
 * sixteenth of the arena. If it uses none of them for a second or two, all but
 * ARENA_IDLE bytes go back to the system (arena_retire()).
 *
 * Any thread may call all of it.
 */
#ifndef WORKER_SHM_ARENA_H
#define WORKER_SHM_ARENA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/member.h"

#define ARENA_ALIGN   64
#define ARENA_CLASSES 52
#define ARENA_LARGE   (1u << 20) /* beyond it a block is a run of spans */
#define ARENA_RUN_MAX 65535      /* spans */
#define ARENA_IDLE    (8u << 20) /* bytes of free spans of an idle process */

/* Of one block. */
struct arena_block {
	_Atomic uint32_t refs; /* 0: it is free */
	uint32_t next;         /* 1 and the next free one; 0: none */
};

/* A span of blocks of one size, or a run of them that is one block. */
struct arena_span {
	struct arena_span *next,
		*prev;                /* of its class that have room, or kept */
	struct arena_block *block;    /* [blocks] */
	uint32_t first, run;          /* of the arena's spans */
	uint32_t size;                /* of a block; 0: it is a run */
	uint32_t blocks, used, fresh; /* fresh: never given out, the last */
	uint32_t free;                /* 1 and the first free one; 0: none */
	bool listed;
};

struct arena {
	struct segment_map map;
	uint32_t slot, gen;
	pthread_mutex_t lock;
	_Atomic(struct arena_span *)
		*span; /* [spans]: which of mine is there */
	struct arena_span *room[ARENA_CLASSES];
	struct arena_span
		*kept; /* spans without blocks, the last freed first */
	uint64_t kept_bytes, kept_max;
	bool kept_moved;   /* since the last arena_retire() */
	int64_t retire_at; /* arena_retire() is due, clock_now(); 0: it is not */
	int64_t swept;     /* when, on finding it full; 0: never */
	/* retire() - arena_retire() is to be called at @when, clock_now(). NULL:
	 * nobody calls it. Under the lock. */
	void (*retire)(int64_t when);
};

/* arena_init() - false: no memory. @slot, @gen: who has its spans. */
bool arena_init(struct arena *a, const struct segment_map *map, uint32_t slot,
	uint32_t gen);

/*
 * arena_alloc() - @len bytes with one reference, aligned to 64; 0 are 1.
 *
 * Content is what was there. NULL: the arena is full, or no memory.
 */
void *arena_alloc(struct arena *a, size_t len);

/* arena_has() - does it all lie in the arena, whoever's it is? */
static inline bool
arena_has(const struct arena *a, const void *data, uint64_t len)
{
	uint64_t at = (uint64_t)((const char *)data - a->map.base);

	return at >= a->map.plan.arena && at < a->map.plan.size &&
		len <= a->map.plan.size - at;
}

/* arena_ref() - one more reference to the block of this process that @data and
 * @len lie in; false: there is none, or they are not inside. */
bool arena_ref(struct arena *a, const void *data, uint64_t len);

/* arena_unref() - one less to the block that @data lies in; without any it is
 * free. */
void arena_unref(struct arena *a, const void *data);

/* arena_retire() - gives a run of free spans back if none was used since the last
 * call. Returns when it is to be called again, or INT64_MAX. Cost: 20 us a MiB. */
int64_t arena_retire(struct arena *a, int64_t now);

/* arena_on_retire() - sets retire(). If @retire is NULL, free spans beyond ARENA_IDLE
 * bytes go back at once. */
void arena_on_retire(struct arena *a, void (*retire)(int64_t when));

/* arena_trim() - give back to all what nobody needs, down to @bytes. */
void arena_trim(struct arena *a, uint64_t bytes);

/* arena_room() - bytes of a block that would be given for @len. */
size_t arena_room(size_t len);

#endif /* WORKER_SHM_ARENA_H */
