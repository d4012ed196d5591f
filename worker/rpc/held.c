/* SPDX-License-Identifier: Apache-2.0 */
/* held.c - see held.h. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/zalloc.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/held.h"
#include "worker/rpc/message.h"

struct loan {
	struct xr_part part;
	struct xr_body_buffer *buffer;
};

struct held {
	_Atomic uint32_t refs;
	void (*unref)(struct xr_body_buffer *buffer); /* of the carrier */
	struct xr_body_buffer *buffer;
	const void *data;
	uint32_t count;
	struct loan loan[]; /* [count] */
};

static void
let_go(struct held *h)
{
	for (uint32_t i = 0; i < h->count; i++)
		h->unref(h->loan[i].buffer);
	if (h->buffer != NULL)
		h->unref(h->buffer);
	free(h);
}

static bool
take_loans(struct held *h, const struct xr_body *body)
{
	const struct agent_carrier *c = message_carrier();

	for (; h->count < body->loan_count; h->count++) {
		struct loan *l = &h->loan[h->count];

		l->part = body->loans[h->count];
		l->buffer = c->ops->loan_take(c->self, body, h->count);
		if (l->buffer == NULL)
			return false;
	}
	return true;
}

struct held *
held_take(const struct xr_body *body)
{
	const struct agent_carrier *c = message_carrier();
	struct held *h =
		zalloc(sizeof(*h) + body->loan_count * sizeof(h->loan[0]));

	if (h == NULL)
		return NULL;
	atomic_init(&h->refs, 1);
	h->unref = c->ops->buffer_unref;
	h->buffer = c->ops->body_take(c->self, body, &h->data);
	if (h->buffer != NULL && take_loans(h, body))
		return h;
	let_go(h);
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
	if (held != NULL &&
		atomic_fetch_sub_explicit(&held->refs, 1,
			memory_order_acq_rel) == 1)
		let_go(held);
}

const void *
held_data(const struct held *held)
{
	return held->data;
}

void *
held_loan(const struct held *held, uint64_t number, uint64_t len)
{
	return number < held->count && len <= held->loan[number].part.len ?
		(void *)held->loan[number].part.data :
		NULL;
}
