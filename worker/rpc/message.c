/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - see message.h. */
#include <stddef.h>

#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/prof.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/serve.h"
#include "worker/rpc/way.h"

typedef void handler_fn(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

static handler_fn *const handlers[] = {
#define M(name, number, handler, text) [number] = handler,
	MESSAGE_TABLE(M)
#undef M
};

static __thread const struct agent_carrier *delivering
	__attribute__((tls_model("initial-exec")));

const struct agent_carrier *
message_carrier(void)
{
	return delivering;
}

/* All that is of one peer is delivered by one thread at a time. */
static void
count(struct peer *p, const struct xr_body *body)
{
	uint64_t len = body->len + figures_parts(body->loans, body->loan_count);

	atomic_store_explicit(&p->bytes_in,
		atomic_load_explicit(&p->bytes_in, memory_order_relaxed) + len,
		memory_order_relaxed);
	figures_add(FIGURE_BYTES_IN, len);
}

void
message_hand(struct peer *p, const struct xr_record *record,
	const struct xr_body *body)
{
	count(p, body);
	if (atomic_load_explicit(&p->state, memory_order_relaxed) == PEER_LOST)
		; /* what comes yet is nobody's */
	else if (record->kind < MESSAGE_KINDS && handlers[record->kind] != NULL)
		handlers[record->kind](p, record, body);
	else
		agent_lose(p, "it sent a message of no kind");
}

void
message_deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	delivering = ctx;
	lead_deliver_begin();
	if (__builtin_expect(way_is_group(), false))
		way_arrived(peer, record, body);
	else
		message_hand(peer, record, body);
	lead_deliver_end();
}
