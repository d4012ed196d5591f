/* SPDX-License-Identifier: Apache-2.0 */
/* rref_limit.c - remote calls to oneself that have a limit; see rref_inner.h. */
#include "base/status.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rref_inner.h"

void
owned_limit(struct owned *o, struct xr_future *asked, int64_t due)
{
	if (o->asked != NULL || o->ready || (o->begun && !o->is_late))
		return;
	o->asked = xr_future_ref(asked);
	o->due = due;
	rref.births++;
}

static struct xr_future *
take_birth(struct owned *o)
{
	struct xr_future *asked = o->asked;

	if (asked != NULL)
		rref.births--;
	o->asked = NULL;
	return asked;
}

/* A call that needs no limit any more, or whose time is over, as @late says. */
static struct xr_future *
find_birth(int64_t now, int64_t *next, bool *late)
{
	struct gid_node *n;

	*next = INT64_MAX;
	if (rref.births == 0)
		return NULL;
	for (n = gid_first(&rref.owned); n != NULL;
		n = gid_next(&rref.owned, n)) {
		struct owned *o = (struct owned *)n;

		if (o->asked == NULL)
			continue;
		*late = !o->ready && (!o->begun || o->is_late);
		if (!*late || o->due <= now)
			return take_birth(o);
		*next = o->due < *next ? o->due : *next;
	}
	return NULL;
}

int64_t
births_expire(int64_t now)
{
	struct xr_future *asked;
	int64_t next;
	bool late;

	for (;;) {
		pthread_mutex_lock(&rref.lock);
		asked = find_birth(now, &next, &late);
		pthread_mutex_unlock(&rref.lock);
		if (asked == NULL)
			return next;
		if (late)
			future_end(asked,
				failure_new(XR_E_TIMEOUT,
					"a remote call to oneself has not begun in time"),
				true);
		xr_future_unref(asked);
	}
}
