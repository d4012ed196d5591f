/* SPDX-License-Identifier: Apache-2.0 */
/* roll.c - a group that changes: its peers, and the watch; see dynamic.h. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/thread.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/dynamic_inner.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/meet.h"

#define NOMEM_MS 100 /* until one tries again */

long
roll_place(const struct xr_value *members, uint32_t id, uint64_t incarnation)
{
	struct member m;

	for (size_t i = 0; i < xr_value_count(members); i++)
		if (member_read(xr_value_at(members, i), &m) && m.id == id &&
			m.incarnation == incarnation)
			return (long)i;
	return -1;
}

/* --- peers as the list has them ------------------------------------------- */

/* NULL: that life is no member, as far as is known. The lock is held. */
static struct peer *
find(const struct member *m)
{
	struct peer *p = agent_find_id(m->id);

	return p != NULL && p->incarnation == m->incarnation &&
			!peer_is_gone(p) ?
		p :
		NULL;
}

/* The lock is held. */
static struct peer *
learn(const struct member *m)
{
	size_t cap = dynamic.cap == 0 ? 16 : 2 * dynamic.cap;
	struct peer **more, *p;

	if (dynamic.count == dynamic.cap) {
		more = reallocarray(dynamic.present, cap, sizeof(*more));
		if (more == NULL)
			return NULL;
		dynamic.present = more;
		dynamic.cap = cap;
	}
	p = member_add(m, &dynamic.self);
	if (p != NULL)
		dynamic.present[dynamic.count++] = p;
	return p;
}

/* All of @members are peers, and bear @number. The lock is held. */
static bool
learn_all(const struct xr_value *members, uint64_t number)
{
	struct member m;
	struct peer *p;

	for (size_t i = 0; i < xr_value_count(members); i++) {
		if (!member_read(xr_value_at(members, i), &m) ||
			dynamic_is_self(&m))
			continue;
		p = find(&m);
		if (p == NULL)
			p = learn(&m);
		if (p == NULL)
			return false;
		p->listed = number;
	}
	return true;
}

static bool
is_among(const struct xr_value *incarnations, uint64_t incarnation)
{
	uint64_t n;

	for (size_t i = 0; i < xr_value_count(incarnations); i++)
		if (xr_value_get_u64(xr_value_at(incarnations, i), &n) ==
				XR_OK &&
			n == incarnation)
			return true;
	return false;
}

/* Moves those that do not bear the number of @e to @gone, which has room for all; how
 * many. The lock is held. */
static size_t
forget(const struct epoch *e, struct peer **gone)
{
	size_t kept = 0, n = 0;

	for (size_t i = 0; i < dynamic.count; i++) {
		struct peer *p = dynamic.present[i];

		if (p->listed == e->number)
			dynamic.present[kept++] = p;
		else
			gone[n++] = p;
	}
	dynamic.count = kept;
	return n;
}

bool
roll_learn(const struct epoch *e)
{
	bool done;

	pthread_mutex_lock(&dynamic.lock);
	done = learn_all(e->members, e->number);
	pthread_mutex_unlock(&dynamic.lock);
	return done;
}

bool
roll_has(const struct member *m)
{
	bool there;

	pthread_mutex_lock(&dynamic.lock);
	there = find(m) != NULL;
	pthread_mutex_unlock(&dynamic.lock);
	return there;
}

bool
roll_apply(const struct epoch *e)
{
	struct peer **gone;
	bool done = false;
	size_t n = 0;

	pthread_mutex_lock(&dynamic.lock);
	gone = calloc(dynamic.count + 1, sizeof(struct peer *));
	if (e->number > dynamic.applied && gone != NULL) {
		done = learn_all(e->members, e->number);
		n = done ? forget(e, gone) : 0;
	}
	if (done)
		dynamic.applied = e->number;
	pthread_mutex_unlock(&dynamic.lock);
	for (size_t i = 0; i < n; i++) {
		peer_gone(gone[i], is_among(e->lost, gone[i]->incarnation));
		meet_lost(gone[i]);
		guest_lost(gone[i]);
	}
	free(gone);
	return done;
}

/* --- the watch ------------------------------------------------------------ */

/* Others have taken this process off the list: it is alone. */
static void
cast_out(void)
{
	struct peer **alone;
	size_t n;

	pthread_mutex_lock(&dynamic.lock);
	alone = dynamic.present;
	n = dynamic.count;
	dynamic.present = NULL;
	dynamic.count = dynamic.cap = 0;
	pthread_mutex_unlock(&dynamic.lock);
	for (size_t i = 0; i < n; i++)
		peer_lose(alone[i], PEER_LOST,
			"the group has taken this worker for dead");
	free(alone);
}

void
roll_acknowledge(uint64_t before, const struct epoch *e)
{
	enum xr_status status;

	for (uint64_t n = before + 1; n <= e->number; n++) {
		if (n == e->number && !e->asks)
			break;
		do
			status = epoch_ack(dynamic.store, n, dynamic.self.id,
				NULL);
		while (status == XR_E_TIMEOUT);
	}
}

/* False: it is over. */
static bool
follow(const struct epoch *e)
{
	uint64_t before = dynamic.applied;

	while (!roll_apply(e))
		poll(NULL, 0, NOMEM_MS);
	if (roll_place(e->members, dynamic.self.id, dynamic.self.incarnation) <
		0) {
		if (!atomic_load(&dynamic.leaving))
			cast_out();
		return false;
	}
	roll_acknowledge(before, e);
	return true;
}

/* Until it is off the list, or the store is closed, or lost: then the list stays
 * as it is. Only it changes what was applied. */
static void *
watch(void *unused)
{
	enum xr_status status;
	struct epoch e = { 0 };
	bool on = true;

	(void)unused;
	while (on) {
		status = epoch_await(dynamic.store, dynamic.applied, &e, NULL);
		if (status == XR_E_NOMEM || status == XR_E_AGAIN)
			poll(NULL, 0, NOMEM_MS);
		else
			on = status == XR_E_TIMEOUT ||
				(status == XR_OK && follow(&e));
		epoch_fini(&e);
	}
	return NULL;
}

enum xr_status
roll_watch(struct xr_error *err)
{
	int sys = thread_begin(&dynamic.watch, watch, NULL);

	if (sys != 0)
		return fail(err, XR_E_SYS, "no thread to watch the group: %s",
			strerror(sys));
	pthread_setname_np(dynamic.watch, "xrun-group");
	dynamic.watched = true;
	return XR_OK;
}
