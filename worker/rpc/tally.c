/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - see tally.h. */
#include "worker/rpc/lead.h"
#include "worker/rpc/tally.h"

/* Whoever takes the waiter out ends its wait. */
static void
tell_idle(struct tally *t)
{
	struct waiter *w = atomic_exchange(&t->idle, NULL);

	if (w != NULL)
		waiter_done(w);
}

void
tally_up(struct tally *t)
{
	atomic_fetch_add(&t->up, 1);
}

void
tally_down(struct tally *t)
{
	uint64_t down = atomic_fetch_add(&t->down, 1) + 1;

	if (atomic_load(&t->idle) != NULL && atomic_load(&t->up) == down)
		tell_idle(t);
}

uint32_t
tally_count(const struct tally *t)
{
	uint64_t down = atomic_load(&t->down); /* first: it is never ahead */

	return (uint32_t)(atomic_load(&t->up) - down);
}

uint64_t
tally_ever(const struct tally *t)
{
	return atomic_load(&t->up);
}

bool
tally_await(struct tally *t, int64_t deadline)
{
	struct waiter w = { 0 };
	bool done;

	atomic_store(&t->idle, &w);
	if (tally_count(t) == 0)
		tell_idle(t);
	done = lead_wait(&w, NULL, deadline);
	if (!done && atomic_exchange(&t->idle, NULL) == NULL)
		done = lead_wait(&w, NULL, INT64_MAX);
	return done;
}
