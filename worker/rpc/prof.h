/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof.h - profiles: what is recorded, and what of it travels; see xrun/prof.h.
 *
 * A profile is a counted list of events. One is a thread's own, for its calls and
 * marks; one is of a call that is being served, for what its function does, and is
 * sent back in front of the answer; those of the process are a stack, and each has
 * what ends on any thread. A call that is recorded bears MESSAGE_PROFILE, is known
 * by its number until it ends, and so collects what comes back for it.
 *
 * Whoever calls looks at one word, prof_is_on(). A profile's lock, that of the stack
 * and that of the calls are each held for some stores, the profile's within one of
 * the others.
 */
#ifndef WORKER_RPC_PROF_H
#define WORKER_RPC_PROF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/queue.h>

struct peer;
struct question;
struct xr_body;
struct xr_call;
struct xr_record;

struct prof_event {
	char *key;          /* owned */
	int64_t start, end; /* clock_now() of who recorded it */
	int64_t order;      /* its start; of what came back: that of its call */
	uint32_t sub;       /* of what came back: its place, from 1 */
	uint32_t worker, thread;
	uint32_t
		open; /* of a pool's task: 1, and how many are open at its end */
	uint64_t items; /* of a queue: 1, and how many are in it */
	bool remote;
};

struct prof;

struct prof *prof_new(void); /* one reference; NULL: no memory */
struct prof *prof_ref(struct prof *p);
void prof_unref(struct prof *p); /* NULL is fine */

/* prof_close() - nothing is added any more. */
void prof_close(struct prof *p);

/* prof_add() - a copy of @e; NULL as @p is fine. */
void prof_add(struct prof *p, const struct prof_event *e);

/* prof_sort() - in order; gives them, which are @p's, and how many. It is closed. */
const struct prof_event *prof_sort(struct prof *p, size_t *count);

/* prof_lost() - events for which there was no memory, or no room. */
size_t prof_lost(const struct prof *p);

/* --- who records ---------------------------------------------------------- */

extern _Atomic uint32_t prof_open_count
	__attribute__((visibility("hidden"))); /* profiles of any kind */

/* prof_is_on() - is anything recorded in this process? */
static inline bool
prof_is_on(void)
{
	return atomic_load_explicit(&prof_open_count, memory_order_relaxed) !=
		0;
}

/* Where the events of a thread go. */
struct prof_into {
	struct prof *own, *serving; /* NULL: there is none */
	uint32_t thread;            /* where they began; 0: the calling one */
};

/* prof_into() - of the calling thread, borrowed. */
struct prof_into *prof_into(void);

/* prof_note() - an event of this process is over: to @into and the stack. @key is
 * borrowed. */
void prof_note(const struct prof_into *into, const char *key, int64_t start,
	int64_t end);

/* prof_note_task() - the same of a task of a pool, of which @open are not over, and only
 * for the process's. @e has the key, which is borrowed, start, end, open, and a thread, 0:
 * the calling one. */
void prof_note_task(const struct prof_event *e);

/* prof_note_items() - there are @items in the queue of @key at @now. */
void prof_note_items(const char *key, int64_t now, uint64_t items);

/* prof_on_end() - @fn is called before a profile of the process ends, on the thread that
 * ends it: for what was not worth an event yet. For good; one. */
void prof_on_end(void (*fn)(void));

uint32_t prof_worker(void); /* this one's id; 0 without an agent */
uint32_t prof_thread(void);

/* --- calls ---------------------------------------------------------------- */

/* A call that is recorded. */
struct prof_call;

/* prof_call_open() - it will have the number @corr. NULL: it is not recorded. */
struct prof_call *prof_call_open(const struct question *q, uint64_t corr,
	const char *mode);

/* prof_call_travels() - is what it does elsewhere to be recorded, too? */
bool prof_call_travels(const struct prof_call *c);

/* prof_call_close() - it has ended. NULL is fine. */
void prof_call_close(struct prof_call *c);

/* prof_arrived() - a handler of messages: what ran for a call of ours. */
void prof_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* --- calls of others ------------------------------------------------------ */

/* A function runs on this thread. */
struct prof_run {
	struct prof_into before;
	int64_t start;
};

/* prof_run_begin(), prof_run_end() - around the function of @call. */
void prof_run_begin(struct prof_run *run, struct xr_call *call);
void prof_run_end(struct prof_run *run, const char *func);

/* prof_run_left() - the thread has left the functions that it ran. */
void prof_run_left(void);

/* prof_answer() - @call, which has a profile, is about to be answered. */
void prof_answer(struct xr_call *call);

#endif /* WORKER_RPC_PROF_H */
