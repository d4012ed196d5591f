/* SPDX-License-Identifier: Apache-2.0 */
/* guest.c - see guest.h. */
#include <stdatomic.h>
#include <stddef.h>

#include "worker/rpc/guest.h"

static const struct guest *_Atomic guest;

void
guest_set(const struct guest *g)
{
	atomic_store(&guest, g);
}

void
guest_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	const struct guest *g =
		atomic_load_explicit(&guest, memory_order_acquire);

	if (g != NULL)
		g->arrived(peer, record, body);
}

void
guest_lost(struct peer *peer)
{
	const struct guest *g = atomic_load(&guest);

	if (g != NULL)
		g->lost(peer);
}

void
guest_cancelled(struct peer *peer, uint64_t corr)
{
	const struct guest *g = atomic_load(&guest);

	if (g != NULL)
		g->cancelled(peer, corr);
}

int64_t
guest_expire(int64_t now)
{
	const struct guest *g = atomic_load(&guest);

	return g != NULL ? g->expire(now) : INT64_MAX;
}

void
guest_closed(void)
{
	const struct guest *g = atomic_load(&guest);

	if (g != NULL)
		g->closed();
}
