/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_queue.h - messages to one peer that wait for room at its transport.
 *
 * The progress owner sends them in order, as soon as there is room. An entry is
 * of one of two kinds. A copy belongs to the queue and is freed when it was sent.
 * The entry of a sender is on the stack of a thread that waits: the queue ends the
 * wait when the message was sent or failed. The lock of the peer protects a queue.
 */
#ifndef WORKER_RPC_SEND_QUEUE_H
#define WORKER_RPC_SEND_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/error.h>
#include <xrun/transport.h>

#include "worker/rpc/waiter.h"

struct parcel;

struct send_queue_entry {
	TAILQ_ENTRY(send_queue_entry) list;
	struct xr_message message; /* no parts: a mark, nothing is sent */
	struct parcel *parcel;     /* a reference: of the parts; or NULL */
	struct waiter *sender; /* the thread that waits, or NULL for a copy */
	enum xr_status status; /* for the sender, when its wait has ended */
	bool is_queued;
	bool is_mark;        /* ends the wait when all before it were sent */
	struct xr_part copy; /* of a message that was copied meanwhile */
	struct xr_part part[];
};

TAILQ_HEAD(send_queue_list, send_queue_entry);

struct send_queue {
	struct send_queue_list entries;
	_Atomic bool is_filled; /* also read without the lock */
};

void send_queue_init(struct send_queue *q);

static inline bool
send_queue_is_filled(const struct send_queue *q)
{
	return atomic_load_explicit(&q->is_filled, memory_order_relaxed);
}

extern _Atomic uint32_t send_queue_filled; /* number of queues with entries */

/* send_queue_any() - returns true if a queue of any peer may have entries. Who waits
 * asks at each turn. */
static inline bool
send_queue_any(void)
{
	return atomic_load_explicit(&send_queue_filled, memory_order_relaxed) >
		0;
}

/* send_queue_put() - appends a copy of @m, or a reference to @parcel where that owns
 * the parts. XR_E_NOMEM. */
enum xr_status send_queue_put(struct send_queue *q, const struct xr_message *m,
	struct parcel *parcel);

/* send_queue_add() - appends the entry of a sender, which the queue borrows until
 * it has ended the wait. */
void send_queue_add(struct send_queue *q, struct send_queue_entry *e);

/* send_queue_remove() - removes the entry of a sender whose time is over. Returns
 * false if its wait has ended already. */
bool send_queue_remove(struct send_queue *q, struct send_queue_entry *e);

static inline struct send_queue_entry *
send_queue_first(const struct send_queue *q)
{
	return TAILQ_FIRST(&q->entries);
}

/* send_queue_end() - removes @e, which was sent or failed with @status: frees a copy,
 * ends the wait of a sender. */
void send_queue_end(struct send_queue *q, struct send_queue_entry *e,
	enum xr_status status);

/* send_queue_end_all() - all entries; or those of senders, where @senders_only. */
void send_queue_end_all(struct send_queue *q, enum xr_status status,
	bool senders_only);

#endif /* WORKER_RPC_SEND_QUEUE_H */
