/* SPDX-License-Identifier: Apache-2.0 */
/* held.c - see held.h. */
#include <stdatomic.h>
#include <stdlib.h>

#include "worker/rpc/agent.h"
#include "worker/rpc/held.h"
#include "worker/rpc/message.h"

struct held {
	_Atomic uint32_t refs;
	const struct xr_carrier *ops;
	void *carrier;
	uint32_t life; /* of the agent */
	struct xr_body_buffer *buffer;
	const void *data;
};

struct held *
held_take(const struct xr_body *body)
{
	const struct agent_carrier *c = message_carrier();
	struct held *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	atomic_init(&h->refs, 1);
	h->ops = c->ops;
	h->carrier = c->self;
	h->life = agent_life();
	h->buffer = c->ops->body_take(c->self, body, &h->data);
	if (h->buffer != NULL)
		return h;
	free(h);
	return NULL;
}

struct held *
held_ref(struct held *held)
{
	atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
	return held;
}

void
held_unref(struct held *held)
{
	bool here;

	if (held == NULL ||
		atomic_fetch_sub_explicit(&held->refs, 1,
			memory_order_acq_rel) != 1)
		return;
	/* It may outlive the agent, and so the carrier. */
	here = agent_come();
	held->ops->buffer_unref(here && held->life == agent_life() ?
			held->carrier :
			NULL,
		held->buffer);
	if (here)
		agent_leave();
	free(held);
}

const void *
held_data(const struct held *held)
{
	return held->data;
}
