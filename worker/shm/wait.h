/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - how long to look before going to sleep, and how: the wait ladder.
 *
 * To be woken on another CPU takes 10 to 70 us, to see a store there 0.15 us. So
 * who waits looks for a while: for some microseconds in a tight loop, if whom it
 * waits for runs on another CPU and there are CPUs for all; then it yields
 * between two looks, which costs nobody anything among those who wait; and when
 * it has looked for about as long as a sleep would have cost, it sleeps.
 *
 * A yield that took long lost a slice to a process that computes on the same CPU.
 * Then all waits of this process sleep at once for a while: who sleeps is back
 * sooner than who has yielded to such a one.
 *
 *	wait_begin(&w, env, &peer->cpu, &site);
 *	while (!done())
 *		switch (wait_turn(&w)) {
 *		case WAIT_AGAIN: break;
 *		case WAIT_LOOK: look after deadlines and deaths; break;
 *		case WAIT_SLEEP: arm, look, sleep (bell.h);
 *				 wait_woken(&w, bell_disarm(b)); break;
 *		}
 *	wait_end(&w);
 *
 * Figures in brackets: performance.md 2.1, 4.2, on a VM of two CPUs.
 */
#ifndef WORKER_SHM_WAIT_H
#define WORKER_SHM_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/member.h"

#define WAIT_LOOKS 64 /* turns from one WAIT_LOOK to the next */

/* What all waits of a process share. Ticks are tick.h's. */
struct wait_env {
	uint32_t rate; /* ticks a millisecond */
	int64_t pause_ticks, crowd_ticks, crowded_ticks, count_ticks;
	struct segment_map map; /* base NULL: no other process is known */
	uint32_t slot;          /* its own */
	_Atomic uint32_t *mine; /* that slot's cpu; NULL */
	_Atomic uint32_t *shared_wake; /* wake_ns for those to come; NULL */
	_Atomic uint32_t wake_ns;      /* what a wake-up takes, as seen */
	_Atomic uint32_t cpus;         /* that may be kept busy */
	_Atomic uint32_t running;      /* slots that are awake */
	_Atomic int64_t counted;       /* when, in ticks */
	_Atomic int64_t crowded_until; /* ticks */
};

/* wait_env_init() - @map NULL: a process without a segment. Takes 0.1 ms in the
 * first process of a segment. */
void wait_env_init(struct wait_env *env, const struct segment_map *map,
	uint32_t slot);

/* A place in the program that waits, and what it has learnt; zeroed at first. Any
 * number of threads may wait there: a word that is lost does no harm. */
struct wait_site {
	_Atomic uint32_t misses; /* waits in a row that slept in the end */
	_Atomic uint32_t waits;
	bool is_long; /* what it waits for lasts: no need to learn it */
};

enum wait_next {
	WAIT_AGAIN,
	WAIT_LOOK,
	WAIT_SLEEP,
};

enum wait_phase {
	WAIT_PAUSES,
	WAIT_YIELDS,
	WAIT_SLEEPS,
};

struct wait {
	struct wait_env *env;
	struct wait_site *site;
	const _Atomic uint32_t *peer; /* its slot's cpu */
	_Atomic uint32_t *mine;
	enum wait_phase phase;
	uint32_t turns;
	int64_t begun, now, pause_end, yield_end; /* ticks; 0: not looked at */
	bool slept, is_short;
};

/*
 * wait_begin() - begin to wait.
 *
 * @peer: the word `cpu` in the slot of whom it waits for; NULL: for anybody
 * @site: NULL: nothing is learnt
 */
void wait_begin(struct wait *w, struct wait_env *env,
	const _Atomic uint32_t *peer, struct wait_site *site);

/* wait_begin_short() - begin to wait for nothing in particular, and for no longer
 * than the tight loop of other waits. */
void wait_begin_short(struct wait *w, struct wait_env *env);

/* wait_turn() - what was waited for is not there: pause, or yield, and say how to
 * go on. After WAIT_SLEEP it is WAIT_SLEEP until wait_woken(). */
enum wait_next wait_turn(struct wait *w);

/* wait_again() - something came, and it was not what is waited for, or more is: the
 * ladder begins again. A few ns. */
void wait_again(struct wait *w);

/* wait_woken() - the sleep is over, the ladder begins again. @ticks: since it was
 * rung, as bell_disarm() gives it. */
void wait_woken(struct wait *w, int64_t ticks);

/* wait_end() - it is there; the site learns from it. */
void wait_end(struct wait *w);

/* wait_yield_ns() - how long a wait looks before it sleeps. */
int64_t wait_yield_ns(const struct wait_env *env);

#endif /* WORKER_SHM_WAIT_H */
