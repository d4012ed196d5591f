/* SPDX-License-Identifier: Apache-2.0 */
/* dead.c - a group that changes: who is off its list; see dynamic.h. */
#include <stddef.h>
#include <stdlib.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/dynamic_inner.h"

#define LOST_KEPT 64

static bool
append(struct xr_value *list, struct xr_value *v)
{
	return xr_value_append(list, v) == XR_OK;
}

enum xr_status
dead_copy(const struct epoch *now, struct dead_copy how, struct epoch *next,
	struct xr_error *err)
{
	size_t count = xr_value_count(now->lost);
	struct member m;
	bool good;

	next->members = xr_value_new_list();
	next->lost = xr_value_new_list();
	good = next->members != NULL && next->lost != NULL;
	for (size_t i = 0; i < xr_value_count(now->members) && good; i++)
		if ((long)i != how.without)
			good = append(next->members,
				xr_value_ref(xr_value_at(now->members, i)));
	for (size_t i = count > LOST_KEPT ? count - LOST_KEPT : 0;
		i < count && good; i++)
		good = append(next->lost,
			xr_value_ref(xr_value_at(now->lost, i)));
	if (good && how.lost && how.without >= 0 &&
		member_read(xr_value_at(now->members, (size_t)how.without), &m))
		good = append(next->lost, xr_value_new_u64(m.incarnation));
	return good ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}

enum xr_status
dead_take_off(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *err)
{
	const struct dead_one *one = ctx;
	long at = roll_place(now->members, one->id, one->incarnation);

	if (at < 0)
		return XR_E_AGAIN;
	next->asks = one->asks;
	return dead_copy(now, (struct dead_copy){ at, one->lost }, next, err);
}

void
dead_bury(uint32_t id, uint64_t incarnation)
{
	struct dead_one one = { id, incarnation, .lost = true };
	struct epoch e = { 0 };

	epoch_change(dynamic.store,
		&(struct epoch_change){ dead_take_off, &one }, &e, NULL, NULL);
	epoch_fini(&e);
}

struct loss {
	struct work work;
	struct peer *peer;
};

/* A link may break between two that live on. */
static void
look_at_lost(struct work *work)
{
	struct loss *l =
		(struct loss *)((char *)work - offsetof(struct loss, work));
	struct peer *p = l->peer;

	free(l);
	if (!peer_is_gone(p) && !atomic_load(&dynamic.leaving) &&
		agent_there(p->addresses, p->id, p->incarnation) !=
			XR_THERE_YES &&
		!peer_is_gone(p))
		dead_bury(p->id, p->incarnation);
}

/* Without memory the next one to join finds it. */
void
dead_lost(struct peer *p)
{
	struct loss *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return;
	l->work.run = look_at_lost;
	l->peer = p;
	if (!crew_post(&l->work))
		free(l);
}
