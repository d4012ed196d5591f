/* SPDX-License-Identifier: Apache-2.0 */
/* guest.c - see guest.h. */
#include <stdatomic.h>
#include <stddef.h>

#include "worker/rpc/guest.h"

#define GUESTS 4

static const struct guest *_Atomic guests[GUESTS];

void
guest_set(const struct guest *g)
{
	for (int i = 0; i < GUESTS; i++) {
		const struct guest *none = NULL;

		if (atomic_compare_exchange_strong(&guests[i], &none, g) ||
			none == g)
			return;
	}
}

/* The @i-th; NULL: there are no more. */
static const struct guest *
guest_at(int i)
{
	return i < GUESTS ?
		atomic_load_explicit(&guests[i], memory_order_acquire) :
		NULL;
}

void
guest_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	const struct guest *g;

	for (int i = 0; (g = guest_at(i)) != NULL; i++)
		if (g->arrived != NULL)
			g->arrived(peer, record, body);
}

void
guest_lost(struct peer *peer)
{
	const struct guest *g;

	for (int i = 0; (g = guest_at(i)) != NULL; i++)
		if (g->lost != NULL)
			g->lost(peer);
}

void
guest_cancelled(struct peer *peer, uint64_t corr)
{
	const struct guest *g;

	for (int i = 0; (g = guest_at(i)) != NULL; i++)
		if (g->cancelled != NULL)
			g->cancelled(peer, corr);
}

int64_t
guest_expire(int64_t now)
{
	int64_t next = INT64_MAX, its;
	const struct guest *g;

	for (int i = 0; (g = guest_at(i)) != NULL; i++) {
		its = g->expire != NULL ? g->expire(now) : INT64_MAX;
		next = its < next ? its : next;
	}
	return next;
}

void
guest_closed(void)
{
	const struct guest *g;

	for (int i = 0; (g = guest_at(i)) != NULL; i++)
		if (g->closed != NULL)
			g->closed();
}
