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

/* Which of its meetings. */
struct meet_key {
	struct set_id set;
	uint64_t number;
};

/* What a report is a LIST of. */
enum meet_item {
	MEET_SET_A,
	MEET_SET_B,
	MEET_NUMBER,
	MEET_TIMEOUT, /* how long the asker waits, ns */
	MEET_LEAST, /* the answer is the least of all that bring a number, and 0
		       * if one brings none; else a DICT of what all bring */
	MEET_NAMES, /* BYTES: each with its 0; the first collects */
	MEET_VALUE,
	MEET_ITEMS
};

/* meet_forget_series() - how many meetings there were. */
void meet_forget_series(void);

#endif /* WORKER_RPC_MEET_INNER_H */
