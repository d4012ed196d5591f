/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest.h - who stands on the agent: messages between peers that are no calls.
 *
 * What the agent hears of its peers, a guest hears, too. There are a few, for the life
 * of the process, each set before it has to do with a peer. What it does not want to
 * hear is NULL; of MESSAGE_GUEST there is one that does.
 */
#ifndef WORKER_RPC_GUEST_H
#define WORKER_RPC_GUEST_H

#include <stdint.h>

#include <xrun/transport.h>

struct peer;

struct guest {
	/* arrived() - a message of MESSAGE_GUEST; by who delivers: it may not
	 * wait. */
	void (*arrived)(struct peer *peer, const struct xr_record *record,
		const struct xr_body *body);
	/* lost() - nothing comes of @peer any more, or it has left the group. By
	 * any thread; may not wait. */
	void (*lost)(struct peer *peer);
	/* cancelled() - @peer does not wait for the answer to @corr any more. */
	void (*cancelled)(struct peer *peer, uint64_t corr);
	/* expire() - as expire() of struct lead_place. */
	int64_t (*expire)(int64_t now);
	/* closed() - the agent is being closed: whoever waits is to hear of that.
	 * Peers are gone when it is over. May be called several times. */
	void (*closed)(void);
};

void guest_set(const struct guest *guest);

/* What the agent tells it; nothing where there is none. */
void guest_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);
void guest_lost(struct peer *peer);
void guest_cancelled(struct peer *peer, uint64_t corr);
int64_t guest_expire(int64_t now);
void guest_closed(void);

#endif /* WORKER_RPC_GUEST_H */
