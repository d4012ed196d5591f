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
	atomic_fetch_add(&t->count, 1);
}

void
tally_down(struct tally *t)
{
	if (atomic_fetch_sub(&t->count, 1) == 1 &&
		atomic_load(&t->idle) != NULL)
		tell_idle(t);
}

uint32_t
tally_count(const struct tally *t)
{
	return atomic_load(&t->count);
}

bool
tally_await(struct tally *t, int64_t deadline)
{
	struct waiter w = { 0 };
	bool done;

	atomic_store(&t->idle, &w);
	if (atomic_load(&t->count) == 0)
		tell_idle(t);
	done = lead_wait(&w, NULL, deadline);
	if (!done && atomic_exchange(&t->idle, NULL) == NULL)
		done = lead_wait(&w, NULL, INT64_MAX);
	return done;
}
