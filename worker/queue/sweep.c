/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - see user.h: what is left of the dead. */
#include "worker/queue/lane.h"
#include "worker/queue/user.h"

static bool
is_named(const struct hall *h, uint64_t owner)
{
	for (uint32_t i = 0; i < h->plan.lanes; i++)
		if (lane_names(h, &h->lane[i], owner))
			return true;
	return false;
}

/* Memory that it had for what it did not put. What it puts no more cannot be named
 * later. */
static void
sweep_blocks(struct hall *h, struct lane *lane, uint32_t who)
{
	uint64_t kept = 0;

	for (uint32_t i = 0; i < h->plan.blocks; i++) {
		uint64_t owner = atomic_load(&lane->owner[i]);

		if (owner == 0 || owner == kept || owner_who(owner) != who)
			continue;
		if (lane_names(h, lane, owner))
			kept = owner;
		else
			crate_purge(h, lane, owner);
	}
}

static void
sweep_lots(struct hall *h, uint32_t who)
{
	for (uint32_t i = 0; i < HALL_LOTS; i++) {
		uint64_t owner = atomic_load(&h->head->lots[i]);

		if (owner != 0 && owner_who(owner) == who &&
			!is_named(h, owner))
			crate_purge(h, &h->lane[0], owner);
	}
}

static void
free_end(_Atomic uint32_t *end, uint32_t who)
{
	atomic_compare_exchange_strong(end, &who, 0);
}

static void
sweep_lane(struct hall *h, struct lane *lane, uint32_t who)
{
	for (uint32_t i = 0; i < h->plan.items; i++)
		lane_void(h, lane, i, who);
	sweep_blocks(h, lane, who);
	free_end(&lane->ends->writer, who);
	free_end(&lane->ends->reader, who);
}

void
user_sweep(struct hall *h, uint32_t user, const struct user_id *id)
{
	for (uint32_t i = 0; i < h->plan.lanes; i++)
		sweep_lane(h, &h->lane[i], id->who);
	sweep_lots(h, id->who);
	user_free(h, user, id);
	/* It may have been about to wake others. */
	hall_wake(h);
	if (atomic_load(&h->head->polled) != 0) {
		atomic_store(&h->head->lit, 0);
		hall_light(h);
	}
}
