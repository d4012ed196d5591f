/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - what a pool and its workers that are processes write for each other to see.
 *
 * A memfd: a line for each worker's place, and one for each task that may be waiting or
 * in hand. A task has a word that says whose it is:
 *
 *	word := phase << 61 | gen << 32 | place << 20 | life
 *
 *	FREE -> WAITING(gen) -> RUNNING(gen, worker) -> ANSWERED(gen, worker) -> FREE
 *
 * Each change is one compare-and-exchange. A worker takes a task while the queue's cell
 * that it came in is its claim still (queue/lane.h), so whoever is killed leaves it to
 * another, or has it in hand. It has answered when its result is in the queue. Whoever
 * makes a task FREE again is the one that ends it: by its result, or because its worker
 * is dead and had it in hand. What comes for a task that was ended meets another gen. An
 * answer by reference is LENT, not ANSWERED: nobody can have it any more when its worker has
 * ended.
 */
#ifndef WORKER_POOL_LEDGER_H
#define WORKER_POOL_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>

#define LEDGER_GEN_MASK  ((1u << 29) - 1)
#define LEDGER_LIFE_MASK ((1u << 20) - 1)

enum ledger_phase {
	LEDGER_FREE,
	LEDGER_WAITING,
	LEDGER_RUNNING,
	LEDGER_ANSWERED,
	LEDGER_LENT,
};

/* A worker: its place, and how many have had that before it. */
struct ledger_who {
	uint32_t place, life;
};

static inline uint64_t
ledger_word(enum ledger_phase phase, uint32_t gen, struct ledger_who who)
{
	return (uint64_t)phase << 61 | (uint64_t)(gen & LEDGER_GEN_MASK) << 32 |
		(uint64_t)who.place << 20 | (who.life & LEDGER_LIFE_MASK);
}

static inline enum ledger_phase
ledger_phase(uint64_t word)
{
	return (enum ledger_phase)(word >> 61);
}

static inline uint32_t
ledger_gen(uint64_t word)
{
	return (uint32_t)(word >> 32) & LEDGER_GEN_MASK;
}

static inline bool
ledger_is_of(uint64_t word, struct ledger_who who)
{
	return (uint32_t)word ==
		(who.place << 20 | (who.life & LEDGER_LIFE_MASK));
}

struct ledger_task {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint32_t cancelled; /* gen + 1 that nobody waits for */
};

struct ledger_place {
	_Alignas(64) _Atomic uint32_t ready; /* life + 1 that takes tasks */
	_Atomic uint32_t done; /* life + 1 of whom all was had, and that ends */
	_Atomic int64_t since; /* when it began what it runs; 0: nothing. For
				* whoever looks on (segment/gauge.h) */
};

struct ledger_head {
	uint64_t magic;
	uint32_t places, tasks;
	_Atomic uint32_t ended; /* nobody waits for anything */
	_Atomic uint32_t
		starved; /* somebody found no room for a task: cleared by
				   * the worker that says that there may be some */
};

struct ledger {
	int fd;
	struct ledger_head *head;
	struct ledger_place *place; /* [places] */
	struct ledger_task *task;   /* [tasks] */
	uint32_t places, tasks;
	uint64_t size;
};

/* ledger_new() - of a pool; ledger_open() - of a worker, which does not believe what
 * stands there; @fd stays the caller's. */
enum xr_status ledger_new(struct ledger *b, uint32_t places, uint32_t tasks,
	struct xr_error *err);
enum xr_status ledger_open(struct ledger *b, int fd, struct xr_error *err);
void ledger_fini(struct ledger *b); /* zeroed is fine, with fd -1 */

/* ledger_has() - has worker @place something in hand? Its own thread asks. */
static inline bool
ledger_has(const struct ledger *b, uint32_t place)
{
	return atomic_load_explicit(&b->place[place].since,
		       memory_order_relaxed) != 0;
}

/* ledger_since() - worker @place begins a task at @now; 0: it has ended it. Gives what was
 * said before. */
static inline int64_t
ledger_since(struct ledger *b, uint32_t place, int64_t now)
{
	_Atomic int64_t *since = &b->place[place].since;
	int64_t before;

	if (place >= b->places)
		return 0;
	before = atomic_load_explicit(since, memory_order_relaxed);
	atomic_store_explicit(since, now, memory_order_release);
	return before;
}

/* ledger_post() - task @index waits for a worker. */
void ledger_post(struct ledger *b, uint32_t index, uint32_t gen);

/* ledger_take() - it is @who's; false: it waits no more. */
bool ledger_take(struct ledger *b, uint32_t index, uint32_t gen,
	struct ledger_who who);

/* ledger_answer() - its result is on its way; @lent: it refers to what @who has. */
void ledger_answer(struct ledger *b, uint32_t index, uint32_t gen,
	struct ledger_who who, bool lent);

/* ledger_end() - it is free again, if it is that and a worker has had it; false: somebody
 * else has ended it. */
bool ledger_end(struct ledger *b, uint32_t index, uint32_t gen);

/* ledger_drop() - the same, if no worker has it. */
bool ledger_drop(struct ledger *b, uint32_t index, uint32_t gen);

/* ledger_bury() - the same, if @who, which is dead, had it in hand; @gen receives
 * which. */
bool ledger_bury(struct ledger *b, uint32_t index, struct ledger_who who,
	uint32_t *gen);

#endif /* WORKER_POOL_LEDGER_H */
