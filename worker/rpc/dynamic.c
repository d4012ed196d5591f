/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic.c - see dynamic.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/dynamic_inner.h"
#include "worker/rpc/future.h"
#include "worker/rpc/join.h"
#include "worker/rpc/rref.h"
#include "worker/store/reach.h"

#define LEAVE_NS (2 * NS_PER_S) /* that others may take to know */

struct dynamic dynamic = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool
dynamic_is_self(const struct member *m)
{
	return m->incarnation == dynamic.self.incarnation &&
		m->id == dynamic.self.id;
}

bool
dynamic_is(void)
{
	return dynamic.store != NULL;
}

/* --- joining -------------------------------------------------------------- */

struct joining {
	int64_t deadline;
	struct dynamic_lease lease; /* of the member in the way */
};

/* Somebody has our name or id. @dead: he need not count. */
static enum xr_status
meet_holder(struct joining *j, const struct member *m, bool *dead,
	struct xr_error *err)
{
	enum xr_there there = XR_THERE_SILENT;

	while (there == XR_THERE_SILENT) {
		there = agent_there(m->addresses, m->id, m->incarnation);
		if (there != XR_THERE_SILENT)
			break;
		if (dynamic_lease_over(&j->lease))
			there = XR_THERE_NO;
		else if (future_left(j->deadline) == 0)
			there = XR_THERE_YES;
	}
	*dead = there == XR_THERE_NO;
	if (*dead)
		return XR_OK;
	return strcmp(m->name, dynamic.self.name) == 0 ?
		fail(err, XR_E_EXISTS, "ranks %u and %u both have the name %s",
			m->id, dynamic.self.id, m->name) :
		fail(err, XR_E_EXISTS,
			"%s and %s both say that they are rank %u", m->name,
			dynamic.self.name, m->id);
}

/* The lists of @now without those who stand in the way, and are dead. */
static enum xr_status
make_way(struct joining *j, const struct epoch *now, struct epoch *next,
	struct xr_error *err)
{
	struct epoch less = { 0 };
	enum xr_status status =
		dead_copy(now, (struct dead_copy){ .without = -1 }, next, err);
	bool dead = false;
	struct member m;
	size_t i = 0;

	while (status == XR_OK && i < xr_value_count(next->members)) {
		if (!member_read(xr_value_at(next->members, i), &m))
			return fail(err, XR_E_PROTO, "member %zu is none", i);
		if (m.id != dynamic.self.id &&
			strcmp(m.name, dynamic.self.name) != 0) {
			i++;
			continue;
		}
		status = meet_holder(j, &m, &dead, err);
		if (status != XR_OK)
			break;
		less.number = next->number;
		status = dead_copy(next, (struct dead_copy){ (long)i, true },
			&less, err);
		epoch_fini(next);
		*next = less;
		less = (struct epoch){ 0 };
	}
	return status;
}

/* Others may come as soon as it is written: they are known before. */
static enum xr_status
put_on(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *err)
{
	enum xr_status status;

	if (roll_place(now->members, dynamic.self.id,
		    dynamic.self.incarnation) >= 0)
		return XR_E_AGAIN;
	status = make_way(ctx, now, next, err);
	if (status == XR_OK)
		status = xr_value_append(next->members,
			xr_value_ref(dynamic.info));
	if (status == XR_OK)
		status = members_check_devices(next->members, false, err);
	if (status != XR_OK)
		return status;
	next->asks = true;
	return roll_learn(next) ? XR_OK :
				  fail(err, XR_E_NOMEM, "out of memory");
}

/* The first makes it up. */
static enum xr_status
share_secret(struct xr_store *store, uint8_t secret[JOIN_SECRET],
	struct xr_error *err)
{
	struct xr_store_swap swap = {
		.size = sizeof(swap),
		.key = "rpc/dynamic/secret",
		.desired = secret,
		.desired_len = JOIN_SECRET,
	};
	struct xr_store_value now = { 0 };
	enum xr_status status = join_new_secret(secret, err);
	bool there = false;

	if (status == XR_OK)
		status = xr_store_compare_set(store, &swap, &now, &there, err);
	if (status == XR_OK && (!there || now.len != JOIN_SECRET))
		status = fail(err, XR_E_PROTO, "that is no secret");
	if (status == XR_OK)
		memcpy(secret, now.data, JOIN_SECRET);
	if (now.data != NULL)
		explicit_bzero(now.data, now.len);
	xr_store_value_free(&now);
	return status;
}

static enum xr_status
tell_of_self(const struct member *me, const struct xr_rpc_opts *opts,
	struct xr_error *err)
{
	char addresses[AGENT_ADDRESSES_MAX];
	struct member full = *me;

	agent_addresses(addresses, sizeof(addresses));
	full.addresses = addresses;
	dynamic.info = member_new(&full, opts);
	if (dynamic.info == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	return member_read(dynamic.info, &dynamic.self) ?
		XR_OK :
		fail(err, XR_E_PROTO, "this process is no member");
}

static void
end(void)
{
	xr_store_close(dynamic.store);
	if (dynamic.watched)
		pthread_join(dynamic.watch, NULL);
	dynamic.watched = false;
}

static void
clean(void)
{
	xr_value_unref(dynamic.info);
	free(dynamic.present);
	dynamic.info = NULL;
	dynamic.present = NULL;
	dynamic.count = dynamic.cap = 0;
	dynamic.applied = 0;
	dynamic.store = NULL;
	dynamic.self = (struct member){ 0 };
}

static enum xr_status
come_in(int64_t deadline, struct xr_error *err)
{
	struct joining j = { .deadline = deadline };
	struct epoch now = { 0 }, mine = { 0 };
	enum xr_status status;

	status = epoch_change(dynamic.store,
		&(struct epoch_change){ put_on, &j }, &now, &mine, err);
	if (status == XR_OK && !roll_apply(&now))
		status = fail(err, XR_E_NOMEM, "out of memory");
	/* Others may have written some since. */
	if (status == XR_OK) {
		roll_acknowledge(mine.number, &now);
		status = roll_watch(err);
	}
	if (status == XR_OK)
		status = acks_await(&mine, deadline, err);
	if (status != XR_OK && mine.number != 0)
		dynamic_leave(false, deadline);
	epoch_fini(&now);
	epoch_fini(&mine);
	return status;
}

enum xr_status
dynamic_join(struct xr_store *store, const struct member *me,
	const struct xr_rpc_opts *opts, int64_t deadline, struct xr_error *err)
{
	uint8_t secret[JOIN_SECRET];
	const struct member_begin how = {
		.secret = secret,
		.store_host = store_host(store),
		.is_new = true,
		.lost = dead_lost,
	};
	enum xr_status status = share_secret(store, secret, err);

	dynamic.store = store;
	atomic_store(&dynamic.leaving, false);
	if (status == XR_OK)
		status = member_open(me, opts, &how, err);
	explicit_bzero(secret, sizeof(secret));
	if (status != XR_OK) {
		clean();
		return status;
	}
	status = tell_of_self(me, opts, err);
	if (status == XR_OK)
		status = come_in(deadline, err);
	if (status == XR_OK) {
		rref_set_flags(opts->rref_flags);
		agent_begin();
		return XR_OK;
	}
	end();
	agent_close(NULL, NULL);
	clean();
	return status;
}

/* --- leaving -------------------------------------------------------------- */

/* A store that is lost keeps nobody. */
void
dynamic_leave(bool waits, int64_t deadline)
{
	struct dead_one one = { dynamic.self.id, dynamic.self.incarnation,
		.asks = waits };
	int64_t until = clock_now() + LEAVE_NS;
	struct epoch now = { 0 }, mine = { 0 };

	atomic_store(&dynamic.leaving, true);
	if (epoch_change(dynamic.store,
		    &(struct epoch_change){ dead_take_off, &one }, &now, &mine,
		    NULL) == XR_OK &&
		waits && mine.number != 0)
		acks_await(&mine, until < deadline ? until : deadline, NULL);
	epoch_fini(&now);
	epoch_fini(&mine);
}

void
dynamic_end(void (*look)(void *ctx), void *ctx)
{
	end();
	agent_close(look, ctx);
	clean();
}
