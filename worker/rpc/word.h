/* SPDX-License-Identifier: Apache-2.0 */
/* word.h - sleeping on a word of this process, futex(2). */
#ifndef WORKER_RPC_WORD_H
#define WORKER_RPC_WORD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"

/* word_wake() - up to @count of those who sleep on it. */
static inline void
word_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* word_sleep() - until @word is not @seen, somebody wakes us, or @until, of
 * CLOCK_MONOTONIC, is over; INT64_MAX: never. Maybe early. */
static inline void
word_sleep(_Atomic uint32_t *word, uint32_t seen, int64_t until)
{
	struct timespec t = { until / NS_PER_S, until % NS_PER_S };

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen,
		until == INT64_MAX ? NULL : &t, NULL, FUTEX_BITSET_MATCH_ANY);
}

#endif /* WORKER_RPC_WORD_H */
