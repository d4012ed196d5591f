/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lead.h - who makes things move: one thread at a time reads for all.
 *
 * Whoever waits for something may lead: read what carriers bring, for everybody,
 * until its own is there. Others follow, each on a word of its own, until a leader
 * ends their wait or hands the lead over. Who has looked in vain for long gives
 * the lead away and dozes.
 *
 * When nobody leads, one of the crew (crew.h) keeps watch: it sleeps on the bell
 * of the process, which peers ring. A thread that leads silences the bell, and
 * leaves it armed when it stops; the watch sleeps on meanwhile. So a process whose
 * threads all compute still answers, and one that is in a call pays for no
 * wake-up.
 *
 * No lock is held meanwhile: leading is a role. What must not run in it, such as
 * short callbacks, is put off until the lead was given away (lead_later()).
 */
#ifndef WORKER_RPC_LEAD_H
#define WORKER_RPC_LEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/rpc/waiter.h"
#include "worker/shm/bell.h"
#include "worker/shm/wait.h"

/* For what it waits. */
struct wait_hint {
	const _Atomic uint32_t *cpu; /* of whom it waits for; NULL: not known */
	struct wait_site *site;      /* NULL: nothing is learnt */
};

/* waiter_done() - waiter_end(), also of a wait that this thread leads for. */
void waiter_done(struct waiter *w);

/* A source of things to read. */
struct lead_source {
	uint32_t (*progress)(void *self, uint32_t budget);
	void *self;
};

/* A thread that reads, and delivers by itself. */
struct lead_thread_source {
	/* catch_up() - waits until the thread has delivered all that has arrived. The wait
	 * is bounded. */
	void (*catch_up)(void *self);
	void *self;
};

struct lead_place {
	/* The bell; NULL: a private one. */
	struct segment_bell *bell;
	/* Tells others whether answers are to ring it; NULL: they always do. */
	_Atomic uint32_t *awaits;
	/* What others share of how they wait; NULL: nobody does. */
	struct wait_env *env;
	/* watch() - words that the watch wakes up for, too; NULL: none. */
	uint32_t (*watch)(void *ctx, struct bell_word *words, uint32_t cap);
	/* thorough() - the next read is to look everywhere; NULL. */
	void (*thorough)(void *ctx);
	/* busy() - would a further read do something, though nothing came with
	 * the last? NULL: no. */
	bool (*busy)(void *ctx);
	/* look() - now and then, by who leads: has anybody died? NULL. */
	void (*look)(void *ctx);
	/* expire() - ends what was due by @now; gives when the next is, or
	 * INT64_MAX. One at a time. */
	int64_t (*expire)(void *ctx, int64_t now);
	/* work() - is there any for the crew? */
	bool (*work)(void *ctx);
	/* help() - the calling thread waits and would sleep: it runs work that no
	 * other thread can. Returns true if it ran some; NULL runs none. @ctx is
	 * NULL. */
	bool (*help)(void *ctx);
	void *ctx;
};

/* lead_open() - before there is a crew. Who waits already, for a future that has
 * nothing to do with an agent, goes on, and may read. */
void lead_open(const struct lead_place *place);
void lead_add(struct lead_source source);
void lead_add_thread(struct lead_thread_source source);

/* lead_close() - no source is read any more, by nobody; the crew is gone. */
void lead_close(void);

/*
 * lead_wait() - until @w is done.
 *
 * @hint:     NULL: nothing is known
 * @deadline: of CLOCK_MONOTONIC, ns; INT64_MAX: none
 * Returns  false: it was over before, and @w is not done, or not yet
 * Thread   any but one that delivers
 */
bool lead_wait(struct waiter *w, const struct wait_hint *hint,
	int64_t deadline);

/* lead_expect() - this thread will ask something, and lead_wait() for the answer: it
 * leads already, unless another does, and nobody need be woken. If it does not
 * wait, lead_decline() follows. */
void lead_expect(void);
void lead_decline(void);

/*
 * lead_asked() - an answer will come that no thread may be looking for: it is to
 * ring. Before the question is sent. lead_answered() when it came, or none will; who
 * does not know leaves it, for the answer is to be read all the same.
 *
 * Who looks for its own answer need not say so. Others look at this word whenever
 * they answer: that it hardly ever changes is what makes that cheap.
 */
void lead_asked(void);
void lead_answered(void);

/* lead_poll() - read once, or let whoever leads do so; for who waits for room. Not
 * by a thread that delivers. */
void lead_poll(void);

/* lead_catch_up() - reads all that has arrived, before a wait ends because its time is
 * over: what arrived in time counts, also if this process was too slow to read it. Then
 * it ends what is due, and reads what this process answered to itself.
 * A thread that leads stops first; if it does not for 2 s, because it is in a callback,
 * nothing is read. Otherwise the lead is the caller's. lead_decline() follows.
 * Not by a thread that delivers. */
void lead_catch_up(void);

/* lead_crew() - one of the crew has nothing to do: it leads, keeps watch, or
 * sleeps. Returns when there may be something for it. */
void lead_crew(void);

/* lead_busy() - one of the crew will do something else for a while, and no other
 * leads or keeps watch: another is to. */
void lead_busy(void);

/* lead_wake_crew() - one of the crew that sleeps, if any does, is to look. */
void lead_wake_crew(void);

/* lead_wake_all() - all of the crew. */
void lead_wake_all(void);

/* lead_due() - something is due at @when, for expire(). */
void lead_due(int64_t when);

/* lead_bell() - ring our own bell: there is something to read. */
void lead_bell(void);

/* lead_delivers() - does this thread deliver at this moment, or run a short callback
 * that was put off? Then it may not wait, and what it calls is put off. */
bool lead_delivers(void);

/* lead_abandon() - after fork(), in the child: nobody reads any more. */
void lead_abandon(void);
bool lead_is_abandoned(void);

/* What is put off. */
struct later {
	void (*run)(struct later *later); /* may free it */
	bool waits;                       /* it may */
	struct later *next;
};

/* lead_later() - run it as soon as this thread delivers no more; at once if it
 * does not. */
void lead_later(struct later *later);

/* lead_has_later() - does this thread have anything put off? */
bool lead_has_later(void);

/* lead_deliver_begin(), lead_deliver_end() - around what a carrier's own thread
 * delivers. What was put off runs at the end. */
void lead_deliver_begin(void);
void lead_deliver_end(void);

#endif /* WORKER_RPC_LEAD_H */
