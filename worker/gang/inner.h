/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inner.h - what the parts of a gang know of each other: gang.c (threads and
 * their end), run.c (seats, posting, finding, running, sweeping), rest.c (sleeping and waking)
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

struct seat;

/* Where a thread sits. */
struct place {
	struct gang *gang;
	struct seat *seat;
};

struct seat {
	struct deque deque;
	_Alignas(128) _Atomic uint32_t taken;
	uint32_t index;
	/* Of who sits there. */
	_Atomic uint64_t runs;
	struct place before; /* where else */
	bool counted;        /* as one who runs something */
	uint32_t random;
	uint32_t timed; /* tasks from one look at the clock to the next, */
	uint32_t left;  /* and how many of them are not over */
	int64_t clock;
	/* What the sentry saw; who was it may be looking yet. */
	_Atomic uint64_t runs_seen;
};

/* A thread of the gang that sleeps, or is about to. */
struct sleeper {
	struct sleeper *next;
	_Atomic uint32_t asleep; /* cleared by who wakes it */
	_Atomic bool sentry;
	int64_t rung; /* when it was woken, in ticks */
};

/* A thread of the gang. */
struct hand {
	struct gang *gang;
	pthread_t thread;
	pthread_t before; /* with @replaces: has ended, or is about to */
	bool replaces;
	uint32_t index;
	bool begun; /* by this thread, or the one before */
	struct wait_site site;
	struct sleeper sleeper;
};

/* A loop that others may take part in: its fields are good for who is inside, counted in
 * the gate. */
struct loop {
	_Alignas(128) _Atomic uint32_t gate;
	_Atomic bool owned;
	struct gang *gang;
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
	_Atomic uint64_t wakes;
	uint32_t seats;
	struct seat *seat; /* [seats] */
	struct hand *hand; /* [seats] */
	struct wait_env env;
	void (*begin)(void *ctx, uint32_t seat);
	void (*end)(void *ctx, uint32_t seat);
	void (*left)(void *ctx, uint32_t seat);
	void (*lost)(void *ctx, int sys);
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

/* thread_watch() - have thread_has_left() called when this thread ends, and its seats left. */
void thread_watch(void);

/* seat_mine() - that this thread has; NULL. */
struct seat *seat_mine(const struct gang *g);

/* seat_take() - a free one, @wanted if that is free; NULL. */
struct seat *seat_take(struct gang *g, uint32_t wanted);

/* seat_count() - who has it is one more that runs something. */
void seat_count(struct gang *g, struct seat *seat);

/* seat_leave() - this thread does, and is where it was before; what is left, or found no
 * seat, is for others. */
void seat_leave(void);

/* seat_free() - is there one, for this moment? */
bool seat_free(struct gang *g);

/* gang_pending() - is there something that could be begun? */
bool gang_pending(struct gang *g);

/* gang_share() - we have what we do next; others may be woken for what is left, @tasks or
 * so. */
void gang_share(struct gang *g, uint32_t tasks);

/* gang_work() - find something and do it; false: there is nothing. */
bool gang_work(struct gang *g, struct seat *seat);

/* --- gang.c --------------------------------------------------------------- */

/* thread_has_left() - this thread has ended, on no seat any more, in what it called; if it is
 * the gang's another one has its place. */
void thread_has_left(void);

/* --- loop.c --------------------------------------------------------------- */

bool loop_pending(struct gang *g);

/* loop_join() - take part in one; false: there is none. */
bool loop_join(struct gang *g, struct seat *seat);

#endif /* WORKER_GANG_INNER_H */
