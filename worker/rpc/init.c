/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - joining and leaving; see xrun/rpc.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/rpc.h>
#include <xrun/store.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/future.h"
#include "worker/rpc/join.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/rref.h"

/* Joining and leaving, one at a time. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct xr_store *store;
	uint32_t cycle; /* how often this process met in a store */
	bool is_static;
} group;

/* --- what a member tells -------------------------------------------------- */

static struct xr_value *
text(const char *s)
{
	return xr_value_new_text(s, strlen(s));
}

static enum xr_status
put(struct xr_value *dict, const char *key, struct xr_value *v)
{
	return xr_value_put(dict, key, strlen(key), v);
}

struct me {
	const char *name;
	uint32_t rank;
	uint64_t incarnation;
	int64_t said_size;
};

static struct xr_value *
info_of(const struct me *me)
{
	struct xr_value *d = xr_value_new_dict();
	char addresses[sizeof(((struct peer *)NULL)->addresses)];
	enum xr_status status = d != NULL ? XR_OK : XR_E_NOMEM;

	agent_addresses(addresses, sizeof(addresses));
	if (status == XR_OK)
		status = put(d, "name", text(me->name));
	if (status == XR_OK)
		status = put(d, "id", xr_value_new_u64(me->rank));
	if (status == XR_OK)
		status = put(d, "incarnation",
			xr_value_new_u64(me->incarnation));
	if (status == XR_OK)
		status = put(d, "addresses", text(addresses));
	if (status == XR_OK)
		status = put(d, "size", xr_value_new_i64(me->said_size));
	if (status == XR_OK)
		return d;
	xr_value_unref(d);
	return NULL;
}

struct member {
	const char *name, *addresses;
	uint64_t id, incarnation;
	int64_t said_size;
};

static const char *
text_in(const struct xr_value *d, const char *key)
{
	const struct xr_value *v = xr_value_find(d, key, strlen(key));
	size_t len;

	return xr_value_kind(v) == XR_TEXT ? xr_value_data(v, &len) : NULL;
}

static bool
read_member(const struct xr_value *d, struct member *m)
{
	m->name = text_in(d, "name");
	m->addresses = text_in(d, "addresses");
	return m->name != NULL && m->addresses != NULL &&
		xr_value_get_u64(xr_value_find(d, "id", 2), &m->id) == XR_OK &&
		xr_value_get_u64(xr_value_find(d, "incarnation", 11),
			&m->incarnation) == XR_OK &&
		xr_value_get_i64(xr_value_find(d, "size", 4), &m->said_size) ==
		XR_OK;
}

/* Names are nobody else's; all think of a group of the same size. */
static enum xr_status
judge(const struct xr_value *infos, void *ctx, struct xr_error *err)
{
	const struct join *j = ctx;
	struct member m, other;

	for (size_t i = 0; i < xr_value_count(infos); i++) {
		if (!read_member(xr_value_at(infos, i), &m))
			return fail(err, XR_E_PROTO, "rank %zu is no member",
				i);
		if (m.said_size != (int64_t)j->size)
			return fail(err, XR_E_CONFLICT,
				"%s (%zu) says that there are %lld members, and %u are asked for",
				m.name, i, (long long)m.said_size, j->size);
		for (size_t k = 0; k < i; k++)
			if (read_member(xr_value_at(infos, k), &other) &&
				strcmp(m.name, other.name) == 0)
				return fail(err, XR_E_EXISTS,
					"ranks %zu and %zu both have the name %s",
					k, i, m.name);
	}
	return XR_OK;
}

/* --- joining -------------------------------------------------------------- */

static enum xr_status
add_members(const struct xr_value *infos, uint32_t self, struct xr_error *err)
{
	struct member m;

	for (size_t i = 0; i < xr_value_count(infos); i++) {
		if (i == self)
			continue;
		if (!read_member(xr_value_at(infos, i), &m))
			return fail(err, XR_E_PROTO, "rank %zu is no member",
				i);
		if (agent_add(m.name, (uint32_t)m.id, m.incarnation,
			    m.addresses) == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
	}
	return XR_OK;
}

static enum xr_status
open_agent(const struct join *j, const struct me *me,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	const struct xr_carrier *carriers[AGENT_CARRIERS_MAX];
	uint8_t secret[JOIN_SECRET];
	struct agent_wish wish = {
		.name = me->name,
		.id = me->rank,
		.incarnation = me->incarnation,
		.threads = opts->threads,
		.timeout = opts->timeout,
		.carriers = carriers,
		.secret = secret,
	};
	enum xr_status status = backend_carriers(opts, carriers,
		AGENT_CARRIERS_MAX, &wish.carrier_count, err);

	if (status == XR_OK)
		status = join_secret(j, secret, err);
	if (status == XR_OK)
		status = agent_open(&wish, err);
	explicit_bzero(secret, sizeof(secret));
	return status;
}

/* What keeps this member from beginning keeps all, and they are told. */
static enum xr_status
tell(const struct join *j, const struct me *me, enum xr_status opened,
	struct xr_error *err)
{
	struct xr_value *info = opened == XR_OK ?
		info_of(me) :
		failure_new(opened, "%s: %s", me->name, err->text);
	struct xr_error why = { 0 };
	enum xr_status status = info != NULL ?
		join_tell(j, info, &why) :
		fail(&why, XR_E_NOMEM, "out of memory");

	xr_value_unref(info);
	if (opened == XR_OK && status != XR_OK)
		*err = why;
	return opened == XR_OK ? status : opened;
}

static enum xr_status
come_together(struct join *j, const struct me *me,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	struct xr_value *infos = NULL;
	enum xr_status status = open_agent(j, me, opts, err);
	enum xr_status opened = status, met;
	struct xr_error why = { 0 };

	status = tell(j, me, opened, err);
	/* Rank 0 gives the verdict, also of its own failure. */
	if (status == XR_OK || j->rank == 0) {
		met = join_meet(j, judge, j, &infos, &why);
		if (status == XR_OK && met != XR_OK) {
			status = met;
			*err = why;
		}
	}
	if (status == XR_OK)
		status = add_members(infos, j->rank, err);
	if (status == XR_OK)
		status = join_ready(j, err);
	xr_value_unref(infos);
	if (status != XR_OK && opened == XR_OK)
		agent_close();
	return status;
}

static bool
is_name(const char *name)
{
	size_t len = name != NULL ? strnlen(name, XR_WORKER_NAME_MAX + 1) : 0;

	for (size_t i = 0; i < len; i++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:",
			    name[i]) == NULL)
			return false;
	return len > 0 && len <= XR_WORKER_NAME_MAX;
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

static enum xr_status
open_store(int64_t rank, int64_t world_size, const struct xr_rpc_opts *opts,
	struct join *j, struct xr_error *err)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	enum xr_status status;

	if (rank >= 0)
		o.rank = rank;
	if (world_size > 0)
		o.world_size = world_size;
	o.timeout = opts->timeout == 0 ? XR_TIMEOUT_NEVER : opts->timeout;
	status = xr_store_open(opts->init_method, &o, &j->store, err);
	if (status == XR_OK)
		status = settle("the rank", rank, xr_store_rank(j->store),
			&j->rank, err);
	if (status == XR_OK)
		status = settle("the size", world_size, xr_store_size(j->store),
			&j->size, err);
	if (status == XR_OK && j->rank >= j->size)
		status = fail(err, XR_E_RANGE, "rank %u of %u", j->rank,
			j->size);
	if (status == XR_OK && j->rank > XR_WORKER_ID_MAX)
		status = fail(err, XR_E_RANGE, "rank %u: the last is %d",
			j->rank, XR_WORKER_ID_MAX);
	return status;
}

static enum xr_status
join_static(const char *name, int64_t rank, int64_t world_size,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	struct join j = { .cycle = group.cycle };
	struct me me = { .name = name };
	enum xr_status status;

	future_deadline(opts->timeout == 0 ? XR_TIMEOUT_NEVER : opts->timeout,
		&j.deadline);
	status = open_store(rank, world_size, opts, &j, err);
	if (status == XR_OK) {
		group.cycle++;
		me.rank = j.rank;
		me.incarnation = (uint64_t)clock_wall();
		me.said_size = world_size > 0 ? world_size : j.size;
		status = come_together(&j, &me, opts, err);
	}
	if (status != XR_OK) {
		xr_store_free(j.store);
		return status;
	}
	group.store = j.store;
	group.is_static = true;
	rref_set_flags(opts->rref_flags);
	agent_begin();
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_rpc_init(const char *name, int64_t rank, int64_t world_size,
	const struct xr_rpc_opts *opts, struct xr_error *err)
{
	struct xr_rpc_opts all = { .size = sizeof(all) };
	struct xr_error why = { 0 };
	enum xr_status status;

	if (!is_name(name))
		return fail(err, XR_E_INVAL,
			"a worker's name is 1 to %d of A-Z a-z 0-9 - _ :",
			XR_WORKER_NAME_MAX);
	if (rank < -1 || world_size < -1)
		return fail(err, XR_E_INVAL, "rank %lld, size %lld",
			(long long)rank, (long long)world_size);
	if (world_size == 0)
		return fail(err, XR_E_INVAL,
			"groups whose members come and go: not with this version");
	status = opts != NULL ? backend_check(opts, &all, &why) :
				xr_rpc_opts_init(0, &all, &why);
	if (status == XR_OK) {
		pthread_mutex_lock(&changing);
		status = agent_state() != AGENT_NONE ?
			fail(&why, XR_E_STATE,
				"an agent runs in this process already") :
			join_static(name, rank, world_size, &all, &why);
		pthread_mutex_unlock(&changing);
	}
	return status == XR_OK ? XR_OK : fail(err, status, "%s", why.text);
}

/* --- leaving -------------------------------------------------------------- */

/* All members, by name. */
static const char **
all_names(size_t *count)
{
	const char **names;
	size_t n = 0;

	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		n++;
	names = calloc(n, sizeof(*names));
	*count = 0;
	for (struct peer *p = agent_first(); p != NULL && names != NULL;
		p = agent_next(p))
		names[(*count)++] = p->name;
	return names;
}

/* Until nobody of the group calls any more: a call of each server is some client's.
 * What is begun between two meetings is counted at the next. */
static enum xr_status
settle_calls(int64_t deadline, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct xr_value *mine, *all, *v;
	const char **names;
	uint64_t sum = 1, n;
	size_t count;

	names = all_names(&count);
	if (names == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	while (sum > 0 && status == XR_OK) {
		status = ask_await_idle(deadline, err);
		mine = xr_value_new_u64(ask_active());
		all = NULL;
		if (status == XR_OK && mine == NULL)
			status = fail(err, XR_E_NOMEM, "out of memory");
		if (status == XR_OK)
			status =
				meet(&(struct xr_rpc_meeting){ .names = names,
					     .count = count,
					     .timeout = future_left(deadline) },
					mine, &all, err);
		sum = 0;
		for (size_t i = 0; i < xr_value_count(all); i++) {
			v = xr_value_at(all, i);
			if (xr_value_get_u64(v, &n) == XR_OK)
				sum += n;
		}
		xr_value_unref(mine);
		xr_value_unref(all);
	}
	free(names);
	return status;
}

/* All members, at the same point. */
static enum xr_status
meet_all(int64_t deadline, struct xr_error *err)
{
	struct xr_rpc_meeting who = { .size = sizeof(who),
		.timeout = future_left(deadline) };
	struct xr_value *nil = xr_value_new_nil();
	const char **names = all_names(&who.count);
	enum xr_status status = XR_E_NOMEM;

	who.names = names;
	if (nil != NULL && names != NULL)
		status = meet(&who, nil, NULL, err);
	else
		fail(err, status, "out of memory");
	free(names);
	xr_value_unref(nil);
	return status;
}

/* Until nobody calls, and nobody has references; then all go. */
static enum xr_status
take_leave(int64_t deadline, struct xr_error *err)
{
	enum xr_status status = settle_calls(deadline, err);

	if (status == XR_OK)
		status = rref_settle(deadline, err);
	if (status == XR_OK)
		status = meet_all(deadline, err);
	return status;
}

static enum xr_status
look_for_leaks(uint32_t flags, enum xr_status status, struct xr_error *err)
{
	char text[4096];
	uint32_t count = rref_leaks(text, sizeof(text));

	if (count == 0)
		return status;
	if ((flags & XR_SHUTDOWN_STRICT) == 0) {
		dprintf(STDERR_FILENO,
			"xrun: %s: %u references were not released: %s\n",
			agent_self()->name, count, text);
		return status;
	}
	return status != XR_OK ? status :
				 fail(err, XR_E_EXISTS,
					 "%u references leaked: %s", count,
					 text);
}

XR_EXPORT enum xr_status
xr_rpc_shutdown(uint32_t flags, int64_t timeout, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct xr_error why = { 0 };
	int64_t deadline;

	if (timeout == 0)
		timeout = XR_TIMEOUT_NEVER;
	if (!future_deadline(timeout, &deadline))
		return fail(err, XR_E_INVAL, "a timeout below 0");
	if (crew_is_member() || lead_delivers())
		return fail(err, XR_E_STATE,
			"a function that serves a call cannot shut the agent down");
	pthread_mutex_lock(&changing);
	status = agent_enter(&why);
	if (status == XR_OK) {
		if ((flags & XR_SHUTDOWN_IMMEDIATE) == 0)
			status = take_leave(deadline, &why);
		status = look_for_leaks(flags, status, &why);
		agent_leave();
		agent_close();
		xr_store_free(group.store);
		group.store = NULL;
	}
	pthread_mutex_unlock(&changing);
	return status == XR_OK ? XR_OK : fail(err, status, "%s", why.text);
}

/* --- members -------------------------------------------------------------- */

static void
copy_worker(const struct peer *p, struct xr_worker *w)
{
	w->id = p->id;
	memcpy(w->name, p->name, sizeof(w->name));
}

static enum xr_status
find_worker(const char *name, int64_t id, struct xr_worker *worker,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct peer *p = NULL;

	if (status != XR_OK)
		return status;
	status = worker == NULL || worker->size < sizeof(*worker) ?
		fail(err, XR_E_INVAL, "struct xr_worker: its size") :
		agent_peer(name, id, &p, err);
	if (status == XR_OK)
		copy_worker(p, worker);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_worker_self(struct xr_worker *worker, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	uint32_t id;

	if (status != XR_OK)
		return status;
	id = agent_self()->id;
	agent_leave();
	return find_worker(NULL, id, worker, err);
}

XR_EXPORT enum xr_status
xr_worker_find(const char *name, struct xr_worker *worker, struct xr_error *err)
{
	if (name == NULL)
		return fail(err, XR_E_INVAL, "no name");
	return find_worker(name, 0, worker, err);
}

XR_EXPORT enum xr_status
xr_worker_find_id(int64_t id, struct xr_worker *worker, struct xr_error *err)
{
	return find_worker(NULL, id, worker, err);
}

XR_EXPORT enum xr_status
xr_worker_list(struct xr_worker *workers, size_t cap, size_t *count,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct peer *p;
	size_t n = 0;

	if (status != XR_OK)
		return status;
	for (int64_t id = 0; id <= XR_WORKER_ID_MAX; id++)
		if (agent_peer(NULL, id, &p, NULL) == XR_OK) {
			if (n < cap)
				copy_worker(p, &workers[n]);
			n++;
		}
	*count = n;
	agent_leave();
	return XR_OK;
}

/* --- meetings of the program's -------------------------------------------- */

XR_EXPORT enum xr_status
xr_rpc_allgather(const struct xr_rpc_meeting *meeting, struct xr_value *value,
	struct xr_value **all, struct xr_error *err)
{
	const struct xr_rpc_meeting everybody = {
		.size = sizeof(everybody),
		.timeout = XR_TIMEOUT_DEFAULT,
	};
	enum xr_status status = agent_enter(err);
	const char **names = NULL;
	struct xr_rpc_meeting all_of_it;

	if (status != XR_OK)
		return status;
	all_of_it = meeting != NULL ? *meeting : everybody;
	if (all_of_it.names == NULL) {
		names = all_names(&all_of_it.count);
		all_of_it.names = names;
	}
	if (all_of_it.names == NULL)
		status = fail(err, XR_E_NOMEM, "out of memory");
	else
		status = agent_timeout(all_of_it.timeout, &all_of_it.timeout,
			err);
	if (status == XR_OK)
		status = meet(&all_of_it, value, all, err);
	free(names);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_barrier(const struct xr_rpc_meeting *meeting, struct xr_error *err)
{
	struct xr_value *nil = xr_value_new_nil();
	enum xr_status status = nil == NULL ?
		fail(err, XR_E_NOMEM, "out of memory") :
		xr_rpc_allgather(meeting, nil, NULL, err);

	xr_value_unref(nil);
	return status;
}
