/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - what this process has borrowed, by the rings that lead to it.
 *
 * A lender stands for one ring whose reader we are, a hold for one loan over it.
 * To give a loan back is one store into the ring, by any thread, whenever; so the
 * ring stays as long as there are holds, also after the link is closed. When none
 * is left, the reader clears the ring's word in the directory, and promises by
 * that never to look at the ring again.
 *
 * If the writer dies, its ring has to make room for that of its next incarnation,
 * and its spans are to be used again, but for what we hold. So then the holds move
 * into the table of our slot (segment/layout.h), each before the ring is let go,
 * and out of it when they end. If they do not fit, the ring stays.
 */
#ifndef WORKER_SHM_HOLD_H
#define WORKER_SHM_HOLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/member.h"
#include "worker/shm/ring.h"

struct lender {
	pthread_mutex_t lock;
	struct segment_map map;
	uint32_t slot, gen;         /* ours */
	uint32_t writer;            /* its slot */
	uint64_t word;              /* of the ring in the directory */
	_Atomic uint64_t *attached; /* where that stands until it is let go */
	struct ring_head *head;
	struct segment_bell *bell; /* the writer's */
	struct hold *first;        /* all holds */
	uint32_t place;            /* in the table, where to look next */
	_Atomic uint32_t refs;     /* holds, and the link */
	bool over;                 /* the link is closed */
	bool moved; /* the ring is let go; holds are in the table */
};

struct hold {
	struct lender *lender;
	struct hold *next, *prev;
	const void *data;
	uint64_t len;
	uint32_t loan;
	uint32_t entry; /* 1 and its place in the table; 0: none */
	_Atomic uint32_t refs;
};

/* lender_new() - of the ring that @word says, in our row of the directory; NULL:
 * no memory. One reference, the link's.
 *
 * @attached: ours, for rings of @writer: it is @word until the ring is let go */
struct lender *lender_new(const struct segment_map *map, uint32_t slot,
	uint32_t gen, uint32_t writer, uint64_t word);
void lender_attach(struct lender *l, _Atomic uint64_t *attached);

/* hold_new() - a loan is in use, with one reference; NULL: no memory. */
struct hold *hold_new(struct lender *l, const struct ring_ref *ref);

/* hold_find() - one more reference to a hold that @data and @len lie in; NULL: we
 * have borrowed no such thing here. */
struct hold *hold_find(struct lender *l, const void *data, uint64_t len);

void hold_ref(struct hold *h);

/* hold_unref() - the last one gives the loan back. Any thread. */
void hold_unref(struct hold *h);

/* lender_return() - give loan @index back, of which there is no hold. */
void lender_return(struct lender *l, uint32_t index);

/* lender_close() - the link is closed, or lost: the ring is let go as soon as may
 * be. @dead: the writer is. True: what it had is to be swept, by the caller. */
bool lender_close(struct lender *l, bool dead);
void lender_unref(struct lender *l);

#endif /* WORKER_SHM_HOLD_H */
