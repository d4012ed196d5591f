/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - another member, or this one: what is known of it, and the way to it.
 *
 * A peer stays as long as the agent, also when it is lost or has left, so that
 * whoever found it may keep it. Sending to one is serialised; who delivers never
 * waits for room: peer_flush() sends what did not fit.
 */
#ifndef WORKER_RPC_PEER_H
#define WORKER_RPC_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/error.h>
#include <xrun/rpc.h>
#include <xrun/transport.h>

#include "worker/rpc/send_queue.h"

enum peer_state {
	PEER_NEW, /* no way to it yet */
	PEER_UP,
	PEER_LOST, /* it died, or cannot be reached any more */
	PEER_LEFT, /* it said so */
};

struct due;
struct parcel;

#define AGENT_ADDRESSES_MAX (2 * XR_ADDRESS_MAX + 2)

#define PEER_METHODS 1024 /* functions that it has confirmed, by their place */

struct peer_devices;

struct peer {
	char name[XR_WORKER_NAME_MAX + 1];
	uint32_t id;
	uint64_t incarnation;
	uint32_t rank; /* 1 and its rank of this job; 0: it is none */
	bool self;
	_Atomic uint32_t state; /* enum peer_state */
	_Atomic bool gone; /* it is no member any more: new calls are refused */
	bool left;         /* it went by itself; under @lock */
	_Atomic size_t copied; /* bytes of copies that its carrier has yet */
	uint64_t listed;       /* roll.c: the last record of members with it */
	_Atomic uint64_t loss; /* its number among the losses; 0: not lost */
	char why[128];         /* of PEER_LOST; under @lock */
	char *addresses;
	struct peer *next, *same_name; /* agent.c: they only grow */

	struct peer_devices *devices; /* NULL: it has no map, nor we to it */

	const struct xr_carrier *carrier;
	void *carrier_self;
	struct xr_link *link;
	const _Atomic uint32_t *cpu; /* where it waits; NULL: not known */

	pthread_mutex_t
		lock; /* of the link's sending side, and of what follows */
	struct send_queue queue; /* messages that wait for room */
	_Atomic uint64_t knows[PEER_METHODS / 64];

	/* Figures: written under @lock those of sending, bytes_in by who
	 * delivers. */
	_Atomic uint64_t calls, bytes_out, bytes_in, errors;
};

/* peer_knows() - has it confirmed the function with place @i? */
static inline bool
peer_knows(const struct peer *p, uint32_t i)
{
	return i < PEER_METHODS &&
		(atomic_load_explicit(&p->knows[i / 64],
			 memory_order_relaxed) >>
				(i % 64) &
			1) != 0;
}

void peer_learns(struct peer *p, uint32_t i);

/* peer_is_gone() - it left, or was taken out of the group. */
static inline bool
peer_is_gone(const struct peer *p)
{
	return atomic_load_explicit(&p->gone, memory_order_acquire);
}

/*
 * peer_send() - @message to @p.
 *
 * Sleeps until there is room, or until @due, NULL: for ever. A thread that delivers
 * does not wait: the message is copied and sent later.
 *
 * @parcel: what the parts lie in; NULL: they are copied where the carrier would
 *          keep them
 *
 * Returns  XR_OK; XR_E_PEER_LOST, with @err's text; XR_E_TIMEOUT; XR_E_NOMEM;
 *          XR_E_RANGE
 */
enum xr_status peer_send(struct peer *p, const struct xr_message *message,
	struct due *due, struct parcel *parcel, struct xr_error *err);

/* peer_send_whole() - the same, and nothing is done to it on purpose. */
enum xr_status peer_send_whole(struct peer *p, const struct xr_message *message,
	struct due *due, struct parcel *parcel, struct xr_error *err);

/* peer_unsend() - unsend() of struct xr_carrier. */
bool peer_unsend(struct peer *p, void *token);

/* peer_can_lend() - can_lend() of struct xr_carrier, as far as it is known. */
bool peer_can_lend(struct peer *p, const struct xr_part *part);

/* peer_post() - the same by a thread that may not wait, also under a lock of its
 * own: what has no room is copied and sent later. XR_E_AGAIN: somebody sends to
 * it at this moment, maybe this thread. */
enum xr_status peer_post(struct peer *p, const struct xr_message *message);
enum xr_status peer_post_whole(struct peer *p,
	const struct xr_message *message); /* as peer_send_whole() */

/* peer_lose() - it cannot be reached any more: all that is asked of it fails.
 * Once; later calls do nothing. Any thread. */
void peer_lose(struct peer *p, enum peer_state state, const char *why);

/* peer_note_loss() - numbers the loss of @p, whose lock is held. peer_first_lost() - the
 * one of @count peers that was lost first; NULL if none was. */
void peer_note_loss(struct peer *p);
struct peer *peer_first_lost(struct peer *const *peer, size_t count);

/* peer_gone() - it is no member any more: it left, and may yet answer what it was
 * asked; or it was @lost. Once. */
void peer_gone(struct peer *p, bool lost);

/* peer_reach() - a way to it, if there is none yet: its end is heard of from now on. */
void peer_reach(struct peer *p);

/* peer_unlink() - @link is over: it is closed, unless whoever closes the agent
 * does. Of struct xr_carrier_host's lost(). */
void peer_unlink(struct peer *p, struct xr_link *link);

/* peer_lost_error() - XR_E_PEER_LOST, and which, and why. */
enum xr_status peer_lost_error(struct peer *p, struct xr_error *err);

/* peer_await_flushed() - until nothing waits for room, to any peer; or @deadline.
 * Not by a thread that delivers. */
void peer_await_flushed(int64_t deadline);

/* peer_refuse_senders() - ends the waits for room with XR_E_CLOSED, when the agent
 * closes. */
void peer_refuse_senders(void);

/* peer_flush() - send what waits for room, to all; for lead_add(). */
uint32_t peer_flush(void *unused, uint32_t budget);

struct peer *peer_new(const char *name, uint32_t id, uint64_t incarnation);
void peer_free(struct peer *p);

#endif /* WORKER_RPC_PEER_H */
