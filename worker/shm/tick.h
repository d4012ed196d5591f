/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tick.h - the clock of the wait ladder: the processor's own, a few ns a look.
 *
 * For intervals of microseconds within one thread. It runs evenly where the
 * processor says so (constant_tsc), is nearly the same on all processors, and may
 * go back a little when a thread moves: who subtracts takes the sign into
 * account. (By builtins of the compilers: <x86intrin.h> is ninety headers, which
 * would be half the time that a file takes to compile.)
 */
#ifndef WORKER_SHM_TICK_H
#define WORKER_SHM_TICK_H

#include <stdatomic.h>
#include <stdint.h>

#if !defined(__x86_64__)
#include "base/clock.h"
#endif

static inline int64_t
tick_now(void)
{
#if defined(__x86_64__)
	return (int64_t)__builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return (int64_t)ticks;
#else
	return clock_now();
#endif
}

/* tick_pause() - in a loop that waits for another processor. */
static inline void
tick_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * tick_rate() - ticks a millisecond, 1000 or more.
 *
 * @known: where it may stand, and is kept if it is there: shared by those who
 *         need it, NULL: by nobody. What cannot be right is measured again.
 *
 * Blocks: 50 us where it is measured.
 */
uint32_t tick_rate(_Atomic uint32_t *known);

#endif /* WORKER_SHM_TICK_H */
