/* SPDX-License-Identifier: Apache-2.0 */
/* meet_inner.h - meetings, for meet.c, where they are collected, and meet_ask.c. */
#ifndef WORKER_RPC_MEET_INNER_H
#define WORKER_RPC_MEET_INNER_H

#include <stdbool.h>
#include <stdint.h>

/* Who meets, and for what: a hash. */
struct set_id {
	uint64_t a, b;
};

static inline bool
meet_same(struct set_id a, struct set_id b)
{
	return a.a == b.a && a.b == b.b;
}

/* meet_forget_series() - how many meetings there were. */
void meet_forget_series(void);

#endif /* WORKER_RPC_MEET_INNER_H */
