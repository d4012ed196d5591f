/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - see agent.h. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/net/proof.h"
#include "worker/net/tcp.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/local.h"
#include "worker/rpc/loop.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/pending.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/serve.h"
#include "worker/rpc/tell.h"
#include "worker/rpc/way.h"
#include "worker/rpc/word.h"

#define NAME_BUCKETS 1024           /* a power of 2 */
#define PATIENCE_NS  (5 * NS_PER_S) /* then functions that run yet are named */

static struct {
	_Atomic uint32_t state;  /* enum agent_state */
	_Atomic int64_t timeout; /* ns; INT64_MAX: no limit */
	int64_t timeout_of_join; /* the same, of xr_rpc_init() */
	struct peer *self;
	struct agent_carrier carrier[AGENT_CARRIERS_MAX];
	uint32_t carriers; /* the first is loop */
	uint8_t *secret;   /* proof_keep(); NULL: none */
	_Atomic bool is_new;
	void (*lost)(struct peer *p);
	pthread_mutex_t adding;
	struct peer *_Atomic by_id[XR_WORKER_ID_MAX + 1];
	struct peer *_Atomic by_name[NAME_BUCKETS];
	struct peer *_Atomic first;
} a = { .adding = PTHREAD_MUTEX_INITIALIZER };

/* --- what carriers call --------------------------------------------------- */

static void
on_sent(void *ctx, void *token)
{
	struct token *t = token;

	(void)ctx;
	if (t != NULL)
		t->sent(t);
}

/* What is long is read into the carrier's memory, where it may stay. */
static void *
on_place(void *ctx, void *peer, const struct xr_record *record, uint64_t len)
{
	(void)ctx;
	(void)peer;
	(void)record;
	(void)len;
	return NULL;
}

static void
on_lost(void *ctx, void *peer, struct xr_link *link, const char *why)
{
	(void)ctx;
	/* What is sent because of it may not wait for room that is made here. */
	lead_deliver_begin();
	agent_lose(peer, why);
	lead_deliver_end();
	peer_unlink(peer, link);
}

static void *
on_accepted(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *link)
{
	const struct agent_carrier *c = ctx;
	struct peer *p =
		id <= XR_WORKER_ID_MAX ? atomic_load(&a.by_id[id]) : NULL;

	if (p == NULL || p->incarnation != incarnation)
		return NULL;
	/* Its first message may come before ours goes. */
	pthread_mutex_lock(&p->lock);
	if (atomic_load(&p->state) == PEER_NEW) {
		p->carrier = c->ops;
		p->carrier_self = c->self;
		p->link = link;
		local_met(p);
		atomic_store(&p->state, PEER_UP);
	}
	pthread_mutex_unlock(&p->lock);
	return p;
}

void
agent_lose(struct peer *p, const char *why)
{
	peer_lose(p, PEER_LOST, why);
	serve_lost(p);
	meet_lost(p);
	rref_lost(p);
	guest_lost(p);
	if (a.lost != NULL && !peer_is_gone(p))
		a.lost(p);
}

static void
on_awake(void *ctx)
{
	(void)ctx;
	lead_bell();
}

static const struct xr_carrier_host host = {
	.size = sizeof(host),
	.deliver = message_deliver,
	.place = on_place,
	.sent = on_sent,
	.accepted = on_accepted,
	.lost = on_lost,
	.awake = on_awake,
};

/* --- members -------------------------------------------------------------- */

static uint32_t
name_bucket(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a, 32 bits */

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash & (NAME_BUCKETS - 1);
}

struct peer *
agent_self(void)
{
	return a.self;
}

struct peer *
agent_first(void)
{
	return atomic_load_explicit(&a.first, memory_order_acquire);
}

struct peer *
agent_next(const struct peer *p)
{
	return p->next;
}

struct peer *
agent_add(const struct agent_member *m)
{
	struct peer *p;
	uint32_t b;

	if (m->id > XR_WORKER_ID_MAX)
		return NULL;
	p = peer_new(m->name, m->id, m->incarnation);
	if (p == NULL)
		return NULL;
	p->addresses = strdup(m->addresses);
	if (p->addresses == NULL) {
		peer_free(p);
		return NULL;
	}
	p->devices = m->devices;
	p->rank = m->rank;
	pthread_mutex_lock(&a.adding);
	b = name_bucket(m->name);
	p->next = atomic_load(&a.first);
	p->same_name = atomic_load(&a.by_name[b]);
	atomic_store_explicit(&a.first, p, memory_order_release);
	atomic_store_explicit(&a.by_name[b], p, memory_order_release);
	atomic_store_explicit(&a.by_id[m->id], p, memory_order_release);
	pthread_mutex_unlock(&a.adding);
	return p;
}

struct peer *
agent_find(const char *name)
{
	struct peer *p = atomic_load_explicit(&a.by_name[name_bucket(name)],
		memory_order_acquire);

	while (p != NULL && strcmp(p->name, name) != 0)
		p = p->same_name;
	return p;
}

struct peer *
agent_find_id(uint32_t id)
{
	return id <= XR_WORKER_ID_MAX ?
		atomic_load_explicit(&a.by_id[id], memory_order_acquire) :
		NULL;
}

enum xr_status
agent_peer(const char *name, int64_t id, struct peer **peer,
	struct xr_error *err)
{
	struct peer *p = NULL;

	if (name != NULL)
		p = agent_find(name);
	else if (id >= 0 && id <= XR_WORKER_ID_MAX)
		p = atomic_load_explicit(&a.by_id[id], memory_order_acquire);
	if (p != NULL && peer_is_gone(p))
		return peer_lost_error(p, err);
	if (p == NULL && name != NULL)
		return fail(err, XR_E_NOTFOUND, "%s (%u) knows no worker %s",
			a.self->name, a.self->id,
			name[0] != '\0' ? name : "''");
	if (p == NULL)
		return fail(err, XR_E_NOTFOUND, "%s (%u) knows no worker %lld",
			a.self->name, a.self->id, (long long)id);
	*peer = p;
	return XR_OK;
}

/* --- ways ----------------------------------------------------------------- */

/* The address of @carrier in "shm:1:2 tcp:h:1"; false: there is none. */
static bool
address_for(const char *at, const char *carrier, char *out, size_t cap)
{
	size_t len = strlen(carrier), n;

	for (; *at != '\0'; at += n + (at[n] == ' ')) {
		n = strcspn(at, " ");
		if (n > len && strncmp(at, carrier, len) == 0 &&
			at[len] == ':' && n < cap) {
			memcpy(out, at, n);
			out[n] = '\0';
			return true;
		}
	}
	return false;
}

static bool
connect_by(struct peer *p, const struct agent_carrier *c, struct xr_error *err)
{
	char address[XR_ADDRESS_MAX + 1] = "";

	if (!p->self &&
		!address_for(p->addresses, c->ops->name, address,
			sizeof(address)))
		return false;
	p->carrier = c->ops;
	p->carrier_self = c->self;
	if (c->ops->connect(c->self, address, p->id, p->incarnation, p,
		    &p->link, err) == XR_OK) {
		local_met(p);
		return true;
	}
	p->link = NULL;
	return false;
}

void
agent_connect(struct peer *p)
{
	struct xr_error err = { .text = "no way to reach it" };

	for (uint32_t i = p->self ? 0 : 1; i < (p->self ? 1 : a.carriers); i++)
		if (connect_by(p, &a.carrier[i], &err)) {
			atomic_store(&p->state, PEER_UP);
			return;
		}
	snprintf(p->why, sizeof(p->why), "%.127s", err.text);
	tell_lost(p->rank);
	peer_note_loss(p);
	atomic_store(&p->state, PEER_LOST);
}

enum xr_there
agent_there(const char *addresses, uint32_t id, uint64_t incarnation)
{
	enum xr_there there = XR_THERE_UNKNOWN, one;
	char address[XR_ADDRESS_MAX + 1];

	for (uint32_t i = 1; i < a.carriers && there != XR_THERE_NO; i++) {
		const struct agent_carrier *c = &a.carrier[i];

		if (c->ops->there == NULL ||
			!address_for(addresses, c->ops->name, address,
				sizeof(address)))
			continue;
		one = c->ops->there(c->self, address, id, incarnation);
		if (one == XR_THERE_NO || there == XR_THERE_UNKNOWN ||
			one == XR_THERE_YES)
			there = one;
	}
	return there;
}

size_t
agent_addresses(char *text, size_t cap)
{
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = 1; i < a.carriers; i++)
		if (a.carrier[i].address[0] != '\0' && n < cap)
			n += (size_t)snprintf(text + n, cap - n, "%s%s",
				n > 0 ? " " : "", a.carrier[i].address);
	return n;
}

/* --- beginning ------------------------------------------------------------ */

static int64_t
expire(void *ctx, int64_t now)
{
	/* A collector answers its own question before that expires. */
	int64_t a_meeting = meet_expire(now), a_call = pending_expire(now);
	int64_t told = tell_figures(now), held = fault_expire(now);
	int64_t a_reference = rref_expire(now), guests = guest_expire(now);
	int64_t memory = local_retire(now);

	(void)ctx;
	a_call = a_call < told ? a_call : told;
	a_call = a_call < held ? a_call : held;
	a_call = a_call < a_reference ? a_call : a_reference;
	a_call = a_call < guests ? a_call : guests;
	a_call = a_call < memory ? a_call : memory;
	return a_call < a_meeting ? a_call : a_meeting;
}

static enum xr_status
open_carrier(const struct xr_carrier *ops, const struct agent_wish *wish,
	struct xr_error *err)
{
	const struct xr_carrier_opts opts = {
		.size = sizeof(opts),
		.id = wish->id,
		.incarnation = wish->incarnation,
		.secret = a.secret,
		.interface = wish->interface,
		.store_host = wish->store_host,
	};
	struct agent_carrier *c = &a.carrier[a.carriers];
	enum xr_status status;

	if (a.carriers == AGENT_CARRIERS_MAX)
		return fail(err, XR_E_RANGE, "more than %d carriers",
			AGENT_CARRIERS_MAX - 1);
	*c = (struct agent_carrier){ .ops = ops, .host = host };
	c->host.ctx = c;
	status = ops->open(&c->host, &opts, &c->self, err);
	if (status != XR_OK)
		return status;
	ops->address(c->self, c->address, sizeof(c->address));
	a.carriers++;
	if (ops->progress != NULL)
		lead_add((struct lead_source){ ops->progress, c->self });
	if (ops == &tcp_carrier)
		lead_add_thread((struct lead_thread_source){ net_catch_up,
			c->self });
	return XR_OK;
}

/* One that is not to be had here is left out. */
static enum xr_status
open_carriers(const struct agent_wish *wish, struct xr_error *err)
{
	enum xr_status status = open_carrier(&loop_carrier, wish, err);

	for (uint32_t i = 0; i < wish->carrier_count && status == XR_OK; i++) {
		status = open_carrier(wish->carriers[i], wish, err);
		if (status == XR_E_NODEV)
			status = XR_OK;
	}
	lead_add((struct lead_source){ peer_flush, NULL });
	return status;
}

/* A carrier with a thread of its own may deliver of another peer meanwhile, and
 * that be answered to this one. */
static void
close_link(struct peer *p)
{
	struct xr_link *link;

	pthread_mutex_lock(&p->lock);
	link = p->link;
	p->link = NULL;
	atomic_store(&p->state, PEER_LEFT);
	pthread_mutex_unlock(&p->lock);
	if (link != NULL)
		p->carrier->link_close(link);
}

static void
close_carriers(void)
{
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		close_link(p);
	while (a.carriers > 0) {
		a.carriers--;
		a.carrier[a.carriers].ops->free(a.carrier[a.carriers].self);
	}
}

static void
forget_peers(void)
{
	struct peer *p = agent_first(), *next;

	for (; p != NULL; p = next) {
		next = p->next;
		atomic_store(&a.by_id[p->id], NULL);
		peer_free(p);
	}
	for (uint32_t i = 0; i < NAME_BUCKETS; i++)
		atomic_store(&a.by_name[i], NULL);
	atomic_store(&a.first, NULL);
	a.self = NULL;
}

static const struct crew_first life = { local_live, local_live_end };

static enum xr_status
open_all(const struct agent_wish *wish, struct xr_error *err)
{
	enum xr_status status;
	int sys;

	a.self = agent_add(&(struct agent_member){
		.name = wish->name,
		.id = wish->id,
		.incarnation = wish->incarnation,
		.addresses = "",
		.devices = wish->devices,
	});
	if (a.self == NULL) {
		free(wish->devices);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	a.self->self = true;
	status = open_carriers(wish, err);
	if (status != XR_OK)
		return status;
	sys = crew_open(wish->threads, &life);
	if (sys == 0)
		return XR_OK;
	errno = sys;
	return fail(err, XR_E_SYS, "no thread for the agent: %s",
		strerror(sys));
}

/* Its threads are not here, and what it holds is the parent's. */
static void
in_child(void)
{
	if (atomic_load(&a.state) == AGENT_NONE)
		return;
	atomic_store(&a.state, AGENT_FORKED);
	crew_abandon();
	lead_abandon();
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

enum xr_status
agent_open(const struct agent_wish *wish, struct xr_error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lead_place place = {
		.expire = expire,
		.work = crew_has_work,
		.help = crew_help,
	};
	uint32_t none = AGENT_NONE;
	enum xr_status status;

	if (!atomic_compare_exchange_strong(&a.state, &none, AGENT_JOINING)) {
		free(wish->devices);
		return fail(err, XR_E_STATE,
			"an agent runs in this process already");
	}
	pthread_once(&once, watch_forks);
	a.secret = wish->secret != NULL ? proof_keep(wish->secret) : NULL;
	a.is_new = wish->is_new;
	a.lost = wish->lost;
	atomic_store(&a.timeout, wish->timeout);
	a.timeout_of_join = wish->timeout;
	inside_open();
	rref_open();
	local_open();
	figures_open();
	tell_open();
	local_place(&place);
	lead_open(&place);
	local_retire_begin();
	if (wish->secret == NULL || a.secret != NULL) {
		status = open_all(wish, err);
	} else {
		free(wish->devices);
		status = fail(err, XR_E_NOMEM, "no memory for the secret");
	}
	if (status != XR_OK)
		agent_close(NULL, NULL);
	return status;
}

/* Those who wait in await_begin() look again. */
static void
change_state(enum agent_state state)
{
	atomic_store(&a.state, state);
	word_wake(&a.state, INT_MAX);
}

void
agent_begin(void)
{
	change_state(AGENT_RUNS);
	lead_due(tell_figures(clock_now()));
}

enum agent_state
agent_state(void)
{
	return atomic_load(&a.state);
}

/* --- end ------------------------------------------------------------------ */

/* Those who come meanwhile are refused; those who wait hear of it. */
static void
empty(void *unused)
{
	(void)unused;
	pending_fail_all(NULL, XR_E_CLOSED, "the agent was shut down");
	peer_refuse_senders();
	rref_abandon();
	guest_closed();
}

void
agent_close(void (*look)(void *ctx), void *ctx)
{
	change_state(AGENT_CLOSING);
	inside_await_empty(empty, NULL);
	crew_close(PATIENCE_NS, serve_tell_running);
	if (look != NULL)
		look(ctx);
	tell_last();
	fault_close();
	local_retire_end();
	lead_close();
	serve_forget_all();
	empty(NULL);
	rref_close();
	close_carriers();
	way_close();
	meet_forget_all();
	forget_peers();
	proof_forget(a.secret);
	a.secret = NULL;
	inside_close();
	atomic_store(&a.state, AGENT_NONE);
}

/* --- of everybody --------------------------------------------------------- */

/* A function that serves a call may call, also before this process knows that all
 * have joined: its caller knew. */
static bool
may_call(void)
{
	uint32_t state = atomic_load_explicit(&a.state, memory_order_acquire);

	return state == AGENT_RUNS ||
		(state == AGENT_JOINING && !a.is_new &&
			(crew_is_member() || lead_delivers()));
}

/* Of a group that changes only its caller knew. */
static void
await_begin(void)
{
	if (!crew_is_member() || lead_delivers())
		return;
	crew_wait_begin();
	while (atomic_load(&a.state) == AGENT_JOINING)
		word_sleep(&a.state, AGENT_JOINING, INT64_MAX);
	crew_wait_end();
}

enum xr_status
agent_enter(struct xr_error *err)
{
	enum xr_status status;

	inside_enter();
	if (may_call())
		return XR_OK;
	inside_leave();
	if (atomic_load(&a.state) == AGENT_JOINING) {
		await_begin();
		inside_enter();
		if (atomic_load(&a.state) == AGENT_RUNS)
			return XR_OK;
		inside_leave();
	}
	status = inside_not_forked(err);
	if (status != XR_OK)
		return status;
	return fail(err, XR_E_STATE,
		"no agent runs in this process: xr_rpc_init() comes first");
}

void
agent_leave(void)
{
	inside_leave();
}

bool
agent_come(void)
{
	uint32_t state;

	inside_enter();
	state = atomic_load_explicit(&a.state, memory_order_acquire);
	if (state == AGENT_RUNS || state == AGENT_JOINING)
		return true;
	inside_leave();
	return false;
}

enum xr_status
agent_timeout(int64_t timeout, int64_t *ns, struct xr_error *err)
{
	*ns = timeout == XR_TIMEOUT_DEFAULT ? atomic_load(&a.timeout) : timeout;
	return *ns >= 0 ? XR_OK : timeout_check(timeout, err);
}

enum xr_status
agent_timeout_field(int64_t timeout, int64_t *ns, struct xr_error *err)
{
	return agent_timeout(timeout == 0 ? XR_TIMEOUT_DEFAULT : timeout, ns,
		err);
}

XR_EXPORT enum xr_status
xr_rpc_set_timeout(int64_t timeout, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	status = timeout_argument(&timeout, a.timeout_of_join, err);
	if (status == XR_OK)
		atomic_store(&a.timeout, timeout);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_get_timeout(int64_t *timeout, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);

	if (status != XR_OK)
		return status;
	*timeout = atomic_load(&a.timeout);
	agent_leave();
	return XR_OK;
}
