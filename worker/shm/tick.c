/* SPDX-License-Identifier: Apache-2.0 */
/* tick.c - see tick.h. */
#include "base/clock.h"
#include "worker/shm/tick.h"

#define SAMPLE_NS 50000
/* Beyond these no clock of a processor is: 1 MHz (counters of ARM begin there)
 * and 16 GHz. */
#define RATE_MIN 1000u
#define RATE_MAX 16000000u

static uint32_t
within(double rate)
{
	if (rate < RATE_MIN)
		return RATE_MIN;
	return rate > RATE_MAX ? RATE_MAX : (uint32_t)rate;
}

/* Both clocks are read twice, 50 us apart; 0.2 % is more than is needed. */
static uint32_t
measure(void)
{
	int64_t ns = clock_now(), ticks = tick_now(), later;

	do
		later = clock_now();
	while (later - ns < SAMPLE_NS);
	return within((double)(tick_now() - ticks) * NS_PER_MS /
		(double)(later - ns));
}

uint32_t
tick_rate(_Atomic uint32_t *known)
{
	uint32_t rate = 0;

	if (known != NULL)
		rate = atomic_load_explicit(known, memory_order_relaxed);
	if (rate >= RATE_MIN && rate <= RATE_MAX)
		return rate;
	rate = measure();
	if (known != NULL)
		atomic_store_explicit(known, rate, memory_order_relaxed);
	return rate;
}
