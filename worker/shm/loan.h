/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loan.h - what the writer of a ring has lent to its reader, and awaits back.
 *
 * A loan is a word in the ring (ring.h) and an entry here, in the writer's own
 * memory: which block stands for it, and whom to tell. It is taken before the
 * record that tells of it is published, and ends when the reader makes the word
 * 0, or is dead. So the two can die at any instruction: the writer knows what it
 * has lent to whom, without anything that the reader had to write for that.
 *
 * A block that was borrowed from the reader itself may go back to it by a loan,
 * too; then a hold (hold.h) stands for it.
 */
#ifndef WORKER_SHM_LOAN_H
#define WORKER_SHM_LOAN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/shm/arena.h"
#include "worker/shm/hold.h"
#include "worker/shm/ring.h"

/* What stands in the word. */
enum loan_word {
	LOAN_NONE,
	LOAN_QUIET,  /* set by the writer: it need not be woken for the end */
	LOAN_LOUD,   /* it is to be */
	LOAN_WINDOW, /* set by the reader: it cannot read our memory */
	LOAN_VOID,   /* set by the writer: what was read of it is nothing */
};

struct loan {
	const void *data; /* lent; NULL: a BULK */
	uint64_t len;
	struct xr_part *parts; /* [count]: of a BULK; the loan's own */
	uint32_t count;
	uint16_t prev, next; /* of those out, in their order; of those free */
	struct hold *hold;   /* that stands for it; NULL: a block of ours */
	void *token;
	bool has_token;
	bool out;
	bool fed; /* nothing of it is to go into the windows any more */
};

#define LOAN_END UINT16_MAX

/* Of one ring. take() is the sending thread's, all else the polling one's; each
 * under the lock. */
struct loans {
	pthread_mutex_t lock;
	_Atomic uint64_t *word; /* [RING_LOANS], of the ring */
	_Atomic uint32_t *done;
	_Atomic uint32_t count;   /* out */
	uint32_t seen;            /* done */
	_Atomic uint32_t feeding; /* 1 and the BULK for the windows; 0: none */
	uint16_t first, last, free;
	uint16_t
		used; /* of them, ever: the memory of others was never touched */
	struct loan loan[RING_LOANS];
};

/* What came back. */
struct loan_end {
	const void *data;
	struct hold *hold;
	void *token;
	bool has_token;
};

void loans_init(struct loans *l, struct ring_head *head);

/*
 * loans_take() - lend; its index, or -1: all are out.
 *
 * The reference to the block, or to @hold, is the caller's until then, and goes
 * with it.
 */
int loans_take(struct loans *l, const struct loan *what, enum loan_word word);

/* loans_all_loud() - the reader rings for the end of each loan that is out: a sender
 * waits for one. */
void loans_all_loud(struct loans *l);

/* loans_back() - take a loan back of which nobody was told; gives it. */
struct loan_end loans_back(struct loans *l, uint32_t index);

enum loan_which {
	LOANS_ENDED, /* by their words */
	LOANS_READ, /* the reader reads nothing any more, though its threads may
		      * write yet: whoever is to be told is, but blocks stay
		      * lent */
	LOANS_ALL,  /* no thread of the reader runs any more */
};

/* loans_collect() - those that ended, at most @cap; gives how many. */
uint32_t loans_collect(struct loans *l, struct loan_end *ends, uint32_t cap,
	enum loan_which which);

/*
 * loans_void() - nobody waits any more for the loan that has @token, and its parts
 * are not looked at from now on; the loan stays out until the reader ends it.
 * False: it has ended.
 */
bool loans_void(struct loans *l, const void *token);

/* loans_void_any() - the same for any that has a token, which is given; false: there
 * is none. */
bool loans_void_any(struct loans *l, void **token);

/* loans_covers() - may the reader give back @len bytes at @data as those of loan
 * @index? Then the block of ours has one more reference. */
bool loans_covers(struct loans *l, uint32_t index, struct arena *a,
	const void *data, uint64_t len);

/* loans_asked() - 1 and the first BULK that the reader wants by windows, and has
 * not got; 0: there is none. Under the lock. */
uint32_t loans_asked(const struct loans *l);

#endif /* WORKER_SHM_LOAN_H */
