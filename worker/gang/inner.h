/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inner.h - what the parts of a gang know of each other: gang.c (threads and
 * their end), run.c (seats, posting, finding, running, helping), rest.c (sleeping and waking)
 * and loop.c.
 */
#ifndef WORKER_GANG_INNER_H
#define WORKER_GANG_INNER_H

#include <pthread.h>

#include "worker/gang/deque.h"
#include "worker/gang/gang.h"
#include "worker/gang/inbox.h"
#include "worker/shm/wait.h"

#define GANG_LOOPS 4  /* at a time that others take part in */
#define GANG_SITES 16 /* of loops that are remembered; a power of two */

struct seat {
	struct deque deque;
	_Alignas(128) _Atomic uint32_t taken;
	uint32_t index;
	/* Of who sits there. */
	_Atomic uint64_t runs;
	uint32_t random;
	uint32_t timed; /* tasks from one look at the clock to the next, */
	uint32_t left;  /* and how many of them are not over */
	int64_t clock;
	/* What the sentry saw; who was it may be looking yet. */
	_Atomic uint64_t runs_seen;
};

/* Who sleeps, or is about to: a thread of the gang, or one that helps. */
struct sleeper {
	struct sleeper *next;
	_Atomic uint32_t asleep; /* cleared by who wakes it */
	_Atomic bool sentry;
	bool counted;                 /* woken for work, too */
	const _Atomic uint32_t *word; /* that it waits for; NULL: a hand */
	int64_t rung;                 /* when it was woken, in ticks */
};

/* A thread of the gang. */
struct hand {
	struct gang *gang;
	pthread_t thread;
	uint32_t index;
	struct wait_site site;
	struct sleeper sleeper;
};

/* A loop that others may take part in: its fields are good for who is inside, counted in
 * the gate. */
struct loop {
	_Alignas(128) _Atomic uint32_t gate;
	_Atomic bool owned;
	struct gang_loop of;
	_Atomic uint64_t count; /* of @of, for who looks from outside */
	uint64_t shares;        /* of what is left a part is one */
	_Alignas(128) _Atomic uint64_t at; /* begun up to here */
	_Atomic uint64_t fit; /* how many take as long as a part should */
};

struct gang {
	_Alignas(128) _Atomic uint64_t counts; /* rest.h */
	_Alignas(128) _Atomic bool closed;     /* nothing more from outside */
	_Atomic bool stopped;
	_Atomic int64_t task_ticks;  /* of a task, as seen; 0: not yet */
	_Atomic uint32_t unanswered; /* posts that woke nobody, since somebody
				      * was woken or nothing was left */
	_Atomic uint32_t waiters;    /* who sleep and wait for a word */
	_Atomic uint64_t wakes;
	uint32_t seats;
	struct seat *seat; /* [seats] */
	struct hand *hand; /* [seats] */
	struct wait_env env;
	void (*begin)(void *ctx, uint32_t seat);
	void (*end)(void *ctx, uint32_t seat);
	void *ctx;
	char name[16];
	_Atomic uint32_t living; /* threads */
	uint32_t started;        /* to be joined */
	pthread_mutex_t lock;    /* of the list */
	struct sleeper *asleep;
	struct inbox inbox;
	struct loop loop[GANG_LOOPS];
	_Atomic uintptr_t brief[GANG_SITES]; /* sites of loops that were */
};

/* --- run.c ----------------------------------------------------------- */

/* Where a thread sits. */
struct place {
	const struct gang *gang;
	struct seat *seat;
};

/* seat_mine() - that this thread has; NULL. */
struct seat *seat_mine(const struct gang *g);

/* seat_take() - a free one, @wanted if that is free; NULL. @before: receives where this
 * thread sat. */
struct seat *seat_take(struct gang *g, uint32_t wanted, struct place *before);

/* seat_leave() - back to @before; what is left, or found no seat, is for others. */
void seat_leave(struct gang *g, const struct place *before);

/* seat_take_aside(), seat_leave_aside() - the same of a thread that is not the gang's: it
 * is one more that runs something. */
struct seat *seat_take_aside(struct gang *g, struct place *before);
void seat_leave_aside(struct gang *g, const struct place *before);

/* seat_free() - is there one, for this moment? */
bool seat_free(struct gang *g);

/* gang_pending() - is there something that could be begun? */
bool gang_pending(struct gang *g);

/* gang_share() - we have what we do next; others may be woken for what is left, @tasks or
 * so. */
void gang_share(struct gang *g, uint32_t tasks);

/* gang_work() - find something and do it; false: there is nothing. */
bool gang_work(struct gang *g, struct seat *seat);

/* --- loop.c --------------------------------------------------------------- */

bool loop_pending(struct gang *g);

/* loop_join() - take part in one; false: there is none. */
bool loop_join(struct gang *g, struct seat *seat);

#endif /* WORKER_GANG_INNER_H */
