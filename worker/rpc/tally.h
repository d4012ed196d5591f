/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - how many of something there are, and waiting until there are none. */
#ifndef WORKER_RPC_TALLY_H
#define WORKER_RPC_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct waiter;

/* Static, and zero. */
struct tally {
	_Atomic uint64_t up, down;
	struct waiter *_Atomic idle; /* waits until there are none */
};

/* tally_up(), tally_down() - any thread. */
void tally_up(struct tally *t);
void tally_down(struct tally *t);

/* tally_count() - at this moment; tally_ever(): all that there ever were. */
uint32_t tally_count(const struct tally *t);
uint64_t tally_ever(const struct tally *t);

/* tally_await() - until there were none; false: @deadline came first. One thread at
 * a time. */
bool tally_await(struct tally *t, int64_t deadline);

#endif /* WORKER_RPC_TALLY_H */
