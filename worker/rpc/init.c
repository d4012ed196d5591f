/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - joining; see xrun/rpc.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/rpc.h>
#include <xrun/store.h>

#include "base/clock.h"
#include "base/span.h"
#include "base/status.h"
#include "store/address.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/future.h"
#include "worker/rpc/group.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/join.h"
#include "worker/rpc/member.h"
#include "worker/rpc/options.h"
#include "worker/rpc/roster.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/way.h"
#include "worker/store/reach.h"

struct group group = { .changing = PTHREAD_MUTEX_INITIALIZER };

/* --- judging -------------------------------------------------------------- */

/* Names are nobody else's; all think of a group of the same size, and send the same
 * way; device maps fit together. */
static enum xr_status
judge(const struct xr_value *infos, void *ctx, struct xr_error *err)
{
	const struct join *j = ctx;
	enum xr_status status = members_check_names(infos, err);
	struct member m;

	if (status == XR_OK)
		status = members_check_way(infos, err);
	for (size_t i = 0; i < xr_value_count(infos) && status == XR_OK; i++) {
		member_read(xr_value_at(infos, i), &m);
		if (m.said_size != (int64_t)j->size)
			status = fail(err, XR_E_CONFLICT,
				"%s (%zu) says that there are %lld members, and %u are asked for",
				m.name, i, (long long)m.said_size, j->size);
	}
	return status == XR_OK ? members_check_devices(infos, true, err) :
				 status;
}

/* --- joining -------------------------------------------------------------- */

static enum xr_status
add_members(const struct xr_value *infos, uint32_t rank, struct xr_error *err)
{
	struct member m, self;

	if (!member_read(xr_value_at(infos, rank), &self))
		return fail(err, XR_E_PROTO, "rank %u is no member", rank);
	for (size_t i = 0; i < xr_value_count(infos); i++) {
		if (i == rank)
			continue;
		if (!member_read(xr_value_at(infos, i), &m))
			return fail(err, XR_E_PROTO, "rank %zu is no member",
				i);
		if (member_add(&m, &self) == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
	}
	return XR_OK;
}

static enum xr_status
open_agent(const struct join *j, const struct member *me,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	uint8_t secret[JOIN_SECRET];
	enum xr_status status = join_secret(j, secret, err);

	if (status == XR_OK)
		status = member_open(me, opts,
			&(struct member_begin){ .secret = secret,
				.store_host = store_host(j->store) },
			err);
	explicit_bzero(secret, sizeof(secret));
	return status;
}

/* What this member tells: who it is, or why it cannot be one. NULL: no memory. */
static struct xr_value *
info_of(const struct member *me, const struct xr_rpc_opts *opts,
	enum xr_status opened, const struct xr_error *err)
{
	char addresses[AGENT_ADDRESSES_MAX] = "";
	struct member full = *me;

	if (opened != XR_OK)
		return failure_new(opened, "%s: %s", me->name, err->text);
	agent_addresses(addresses, sizeof(addresses));
	full.addresses = addresses;
	return member_new(&full, opts);
}

/* What keeps this member from beginning keeps all, and they are told. */
static enum xr_status
tell(const struct join *j, const struct member *me,
	const struct xr_rpc_opts *opts, enum xr_status opened,
	struct xr_error *err)
{
	struct xr_value *info = info_of(me, opts, opened, err);
	struct xr_error why = { 0 };
	enum xr_status status = info != NULL ?
		join_tell(j, info, &why) :
		fail(&why, XR_E_NOMEM, "out of memory");

	xr_value_unref(info);
	if (opened == XR_OK && status != XR_OK)
		*err = why;
	return opened == XR_OK ? status : opened;
}

/* The others are known; nobody sends before all are ready. */
static enum xr_status
meet_others(const struct join *j, const struct xr_value *infos,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	enum xr_status status = add_members(infos, j->rank, err);

	if (status == XR_OK && backend_is_group(opts))
		status = way_open(j->rank, j->size, err);
	return status;
}

static enum xr_status
by_store(struct join *j, const struct member *me,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	struct xr_value *infos = NULL;
	enum xr_status status = roster_decline(j, err), opened;

	if (status == XR_OK)
		status = join_kind(j->store, true, err);
	if (status != XR_OK)
		return status;
	opened = open_agent(j, me, opts, err);
	status = tell(j, me, opts, opened, err);
	if (status == XR_OK)
		status = join_meet(j, judge, j, &infos, err);
	else if (j->rank == 0)
		join_give_up(j, status, err);
	if (status == XR_OK)
		status = meet_others(j, infos, opts, err);
	if (status == XR_OK)
		status = join_ready(j, err);
	xr_value_unref(infos);
	if (status != XR_OK && opened == XR_OK)
		agent_close(NULL, NULL);
	return status;
}

/* XR_E_STALE: it is to be done by the store. */
static enum xr_status
by_roster(struct join *j, const struct member *me,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	struct xr_value *infos = NULL, *info;
	struct xr_error why = { 0 };
	uint8_t secret[JOIN_SECRET];
	enum xr_status status, opened;

	roster_secret(j, secret);
	opened = member_open(me, opts,
		&(struct member_begin){ .secret = secret, .is_near = true },
		err);
	explicit_bzero(secret, sizeof(secret));
	info = info_of(me, opts, opened, err);
	status = info != NULL ? roster_meet(j, info, judge, &infos, &why) :
				fail(&why, XR_E_NOMEM, "out of memory");
	xr_value_unref(info);
	if (status == XR_OK)
		status = meet_others(j, infos, opts, &why);
	if (status == XR_OK)
		status = roster_ready(j, &why);
	xr_value_unref(infos);
	if (status != XR_OK && opened == XR_OK) {
		agent_close(NULL, NULL);
		*err = why;
	}
	return opened != XR_OK && status != XR_E_STALE ? opened : status;
}

static enum xr_status
come_together(struct join *j, const struct member *me,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	enum xr_status status =
		roster_can(j) ? by_roster(j, me, opts, err) : XR_E_STALE;

	return status == XR_E_STALE ? by_store(j, me, opts, err) : status;
}

/* The store's word counts where this call says nothing, and must not differ. */
static enum xr_status
settle(const char *what, int64_t said, int64_t known, uint32_t *out,
	struct xr_error *err)
{
	if (said >= 0 && known >= 0 && said != known)
		return fail(err, XR_E_CONFLICT,
			"%s is %lld here, and %lld in the group", what,
			(long long)said, (long long)known);
	if (said < 0)
		said = known;
	if (said < 0)
		return fail(err, XR_E_INVAL, "%s is not known: say it", what);
	*out = (uint32_t)said;
	return XR_OK;
}

/* What was asked for. */
struct wanted {
	const char *name;
	int64_t rank, size; /* -1: as the store has them */
	const struct xr_rpc_opts *opts;
};

static enum xr_status
check_rank(uint32_t rank, struct xr_error *err)
{
	return rank <= XR_WORKER_ID_MAX ?
		XR_OK :
		fail(err, XR_E_RANGE, "rank %u: the last is %d", rank,
			XR_WORKER_ID_MAX);
}

/* Those in whose address a rank has no place get it from the variables of whoever
 * started this process; which may be one of many of that rank. */
static bool
says_rank(const char *address)
{
	struct span scheme = store_address_scheme(address);

	return span_is(scheme, "tcp") || span_is(scheme, "file");
}

/* -1: it is not set, or is no number, of which the store tells. */
static int64_t
number_in(const char *variable)
{
	const char *text = getenv(variable);
	uint32_t number;

	if (text == NULL || !number_parse(span_of(text), INT32_MAX, &number))
		return -1;
	return number;
}

/* An argument goes before a variable of the store's. But in a group of which all are
 * members from the beginning, somebody is wrong then. */
static enum xr_status
agree(const struct wanted *w, struct xr_error *err)
{
	bool torch = getenv("XRUN_STORE") == NULL &&
		!span_is(store_address_scheme(w->opts->init_method), "control");
	const char *rank = torch ? "RANK" : "XRUN_RANK";
	const char *size = torch ? "WORLD_SIZE" : "XRUN_SIZE";
	enum xr_status status = XR_OK;
	uint32_t unused;

	if (says_rank(w->opts->init_method))
		return XR_OK;
	if (w->rank >= 0 && number_in(rank) >= 0)
		status = settle("the rank", w->rank, number_in(rank), &unused,
			err);
	if (status == XR_OK && w->size > 0 && number_in(size) >= 0)
		status = settle("the size", w->size, number_in(size), &unused,
			err);
	return status;
}

/* The members of a group learn their secret from the store: a client that nobody
 * has authenticated could then call functions. */
static enum xr_status
check_store(const struct xr_store *store, struct xr_error *err)
{
	const char *allowed = secure_getenv("XRUN_RPC_UNAUTHENTICATED");

	if (!store_is_open(store) ||
		(allowed != NULL && strcmp(allowed, "1") == 0))
		return XR_OK;
	return fail(err, XR_E_AUTH,
		"a store with auth=none would let every process that reaches its port call functions here\tleave auth=none out, or set XRUN_RPC_UNAUTHENTICATED=1");
}

static enum xr_status
open_store(const struct wanted *w, struct join *j, struct xr_error *err)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	enum xr_status status = agree(w, err);

	if (status != XR_OK)
		return status;
	if (w->rank >= 0)
		o.rank = w->rank;
	if (w->size > 0)
		o.world_size = w->size;
	o.timeout = w->opts->timeout;
	status = xr_store_open(w->opts->init_method, &o, &j->store, err);
	if (status == XR_OK)
		status = check_store(j->store, err);
	if (status == XR_OK)
		status = settle("the rank", w->rank, xr_store_rank(j->store),
			&j->rank, err);
	if (status == XR_OK)
		status = settle("the size", w->size, xr_store_size(j->store),
			&j->size, err);
	if (status == XR_OK && j->rank >= j->size)
		status = fail(err, XR_E_RANGE, "rank %u of %u", j->rank,
			j->size);
	return status == XR_OK ? check_rank(j->rank, err) : status;
}

static struct member
describe(const struct wanted *w, uint32_t rank)
{
	struct member me = {
		.name = w->name,
		.id = rank,
		.incarnation = (uint64_t)clock_wall(),
	};

	/* Before anybody can ask for something that needs them. */
	me.device_count = devices_here(&me.device_kind);
	return me;
}

static enum xr_status
join_static(const struct wanted *w, struct join *j, struct xr_error *err)
{
	enum xr_status status = open_store(w, j, err);
	struct member me;

	if (status != XR_OK)
		return status;
	j->cycle = group.cycle++;
	me = describe(w, j->rank);
	me.said_size = w->size > 0 ? w->size : j->size;
	status = come_together(j, &me, w->opts, err);
	if (status == XR_OK) {
		rref_set_flags(w->opts->rref_flags);
		agent_begin();
	}
	return status;
}

static enum xr_status
open_dynamic(const struct wanted *w, struct join *j, struct xr_error *err)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	const char *address = w->opts->init_method;
	enum xr_status status;

	o.dynamic = true;
	o.timeout = w->opts->timeout;
	if (w->rank >= 0 && says_rank(address))
		o.rank = w->rank;
	status = xr_store_open(address, &o, &j->store, err);
	if (status == XR_OK)
		status = check_store(j->store, err);
	if (status == XR_OK)
		status = settle("the rank", w->rank,
			w->rank < 0 ? xr_store_rank(j->store) : -1, &j->rank,
			err);
	return status == XR_OK ? check_rank(j->rank, err) : status;
}

static enum xr_status
join_dynamic(const struct wanted *w, struct join *j, struct xr_error *err)
{
	enum xr_status status = open_dynamic(w, j, err);
	struct member me;

	if (status == XR_OK)
		status = join_kind(j->store, false, err);
	if (status != XR_OK)
		return status;
	me = describe(w, j->rank);
	return dynamic_join(j->store, &me, w->opts, j->deadline, err);
}

static enum xr_status
join(const struct wanted *w, struct xr_error *err)
{
	struct join j = { 0 };
	enum xr_status status;

	future_deadline(w->opts->timeout, &j.deadline);
	status = w->size == 0 ? join_dynamic(w, &j, err) :
				join_static(w, &j, err);
	if (status == XR_OK)
		group.store = j.store;
	else
		xr_store_free(j.store);
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_init(const char *name, int64_t rank, int64_t world_size,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	struct xr_rpc_opts all = { .size = sizeof(all) };
	struct xr_error why = { 0 };
	enum xr_status status;

	status = inside_not_forked(err);
	if (status == XR_OK)
		status = worker_name_check(name, err);
	if (status != XR_OK)
		return status;
	if (rank < -1 || world_size < -1)
		return fail(err, XR_E_INVAL, "rank %lld, size %lld",
			(long long)rank, (long long)world_size);
	status = opts != NULL ? backend_check(opts, &all, &why) :
				xr_rpc_opts_init(0, &all, &why);
	if (status == XR_OK &&
		(all.rref_flags & ~(uint32_t)XR_RREF_ACK_ON_DONE) != 0)
		status = fail(&why, XR_E_INVAL,
			"rref_flags: %#x has unknown ones", all.rref_flags);
	if (status == XR_OK && world_size == 0 && backend_is_group(&all))
		status = fail(&why, XR_E_INVAL,
			"world_size 0: the backend process_group has no groups whose members come and go");
	if (status == XR_OK) {
		pthread_mutex_lock(&group.changing);
		status = agent_state() != AGENT_NONE ?
			fail(&why, XR_E_STATE,
				"an agent runs in this process already") :
			fault_open(&all, &why);
		if (status == XR_OK)
			status = join(&(struct wanted){ name, rank, world_size,
					      &all },
				&why);
		pthread_mutex_unlock(&group.changing);
	}
	return status == XR_OK ? XR_OK : fail(err, status, "%s", why.text);
}
