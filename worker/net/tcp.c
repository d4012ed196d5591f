/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c - see tcp.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <xrun/rpc.h>

#include "base/fd.h"
#include "base/status.h"
#include "base/thread.h"
#include "worker/net/door.h"
#include "worker/net/heir.h"
#include "worker/net/net.h"
#include "worker/net/proof.h"
#include "worker/net/tcp.h"

bool
net_is_heir(const struct net_carrier *c)
{
	return heir_generation() != c->generation;
}

void
net_ring(struct net_carrier *c)
{
	const uint64_t one = 1;

	fd_tell(c->bell, &one, sizeof(one));
}

void
net_ask(struct xr_link *link)
{
	if (link->is_asked)
		return;
	link->is_asked = true;
	TAILQ_INSERT_TAIL(&link->carrier->asked, link, asked);
}

void
net_drop(struct xr_link *link)
{
	struct net_carrier *c = link->carrier;

	pthread_mutex_lock(&c->lock);
	link->is_dropped = true;
	net_ask(link);
	pthread_mutex_unlock(&c->lock);
	net_ring(c);
}

struct net_peer *
net_peer(struct net_carrier *c, uint32_t id)
{
	uint32_t n = c->peer_count == 0 ? 16 : c->peer_count;
	struct net_peer *more;

	while (n <= id)
		n *= 2;
	if (n > c->peer_count) {
		more = reallocarray(c->peers, n, sizeof(*more));
		if (more == NULL)
			return NULL;
		memset(more + c->peer_count, 0,
			(n - c->peer_count) * sizeof(*more));
		c->peers = more;
		c->peer_count = n;
	}
	return &c->peers[id];
}

/* --- its life -------------------------------------------------------------- */

static void
dispose(struct net_carrier *c)
{
	struct xr_link *l;

	/* Those that the host did not close. */
	while ((l = TAILQ_FIRST(&c->links)) != NULL) {
		TAILQ_REMOVE(&c->links, l, list);
		if (l->conn != NULL)
			net_conn_end(l->conn);
		net_link_free(l);
	}
	net_bury(c);
	heir_close(c->door);
	heir_close(c->bell);
	heir_close(c->epoll);
	bodies_close(c->bodies);
	pthread_cond_destroy(&c->caught_up);
	pthread_mutex_destroy(&c->lock);
	proof_forget(c->secret);
	free(c->peers);
	free(c->room);
	free(c);
}

static bool
open_parts(struct net_carrier *c)
{
	struct epoll_event bell = { .events = EPOLLIN, .data.ptr = &c->bell };
	struct epoll_event door = { .events = EPOLLIN, .data.ptr = &c->door };

	c->room = malloc(NET_READ);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return c->room != NULL && c->bodies != NULL && heir_note(c->epoll) &&
		heir_note(c->bell) && c->epoll != -1 && c->bell != -1 &&
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->bell, &bell) == 0 &&
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->door, &door) == 0;
}

static int
start(struct net_carrier *c)
{
	int sys = thread_begin(&c->thread, net_run, c);

	if (sys == 0)
		pthread_setname_np(c->thread, "xrun-tcp");
	return sys;
}

static void
net_init_caught_up(struct net_carrier *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->caught_up, &attr);
	pthread_condattr_destroy(&attr);
}

static struct net_carrier *
carrier_new(const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts)
{
	struct net_carrier *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->host = *host;
	c->self = (struct greet_self){
		.id = opts->id,
		.incarnation = opts->incarnation,
	};
	c->generation = heir_generation();
	c->epoll = c->bell = c->door = -1;
	c->due = c->tick = INT64_MAX;
	pthread_mutex_init(&c->lock, NULL);
	net_init_caught_up(c);
	c->bodies = bodies_new();
	TAILQ_INIT(&c->asked);
	TAILQ_INIT(&c->links);
	TAILQ_INIT(&c->young);
	TAILQ_INIT(&c->up);
	TAILQ_INIT(&c->dead);
	if (opts->secret == NULL)
		return c;
	c->secret = proof_keep(opts->secret);
	c->self.secret = c->secret;
	if (c->secret != NULL)
		return c;
	dispose(c);
	return NULL;
}

static enum xr_status
tcp_open(const struct xr_carrier_host *host, const struct xr_carrier_opts *opts,
	void **self, struct xr_error *err)
{
	struct net_carrier *c;
	enum xr_status status;

	if (host->size < sizeof(*host) || opts->size < sizeof(*opts) ||
		opts->id > XR_WORKER_ID_MAX)
		return fail(err, XR_E_INVAL,
			"tcp: a host or options without their size, or id %u above %d",
			opts->id, XR_WORKER_ID_MAX);
	c = carrier_new(host, opts);
	if (c == NULL)
		return fail(err, XR_E_NOMEM, "tcp: out of memory");
	status = door_open(opts->interface, opts->store_host, &c->door,
		&c->where, err);
	if (status == XR_OK && (!open_parts(c) || (errno = start(c)) != 0))
		status = fail(err, XR_E_SYS, "tcp: cannot listen: %s",
			strerror(errno));
	if (status == XR_OK)
		*self = c;
	else
		dispose(c);
	return status;
}

static void
tcp_free(void *self)
{
	struct net_carrier *c = self;

	if (c == NULL || net_is_heir(c))
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_mutex_unlock(&c->lock);
	net_ring(c);
	pthread_join(c->thread, NULL);
	dispose(c);
}

void
net_catch_up(void *self)
{
	struct net_carrier *c = self;
	int64_t end = clock_now() + NET_CATCH_UP_NS;
	const struct timespec at = { end / NS_PER_S, end % NS_PER_S };
	uint32_t mine;
	int sys = 0;

	if (net_is_heir(c) || atomic_load(&c->conns) == 0 ||
		pthread_equal(c->thread, pthread_self()))
		return;
	pthread_mutex_lock(&c->lock);
	mine = ++c->wanted;
	net_ring(c);
	while ((int32_t)(c->served - mine) < 0 && !c->ending && sys == 0)
		sys = pthread_cond_timedwait(&c->caught_up, &c->lock, &at);
	pthread_mutex_unlock(&c->lock);
}

static size_t
tcp_address(void *self, char *text, size_t cap)
{
	struct net_carrier *c = self;
	char where[WHERE_TEXT];

	return (size_t)snprintf(text, cap, "tcp:%s",
		where_text(&c->where, where));
}

/* --- links ----------------------------------------------------------------- */

static enum xr_status
check_connect(const struct net_carrier *c, uint32_t id, struct xr_error *err)
{
	if (net_is_heir(c))
		return fail(err, XR_E_STATE,
			"tcp: this process was forked: the carrier is its parent's");
	if (id > XR_WORKER_ID_MAX || id == c->self.id)
		return fail(err, XR_E_INVAL,
			"tcp: a link from worker %u to worker %u", c->self.id,
			id);
	if (c->self.secret == NULL)
		return fail(err, XR_E_NODEV,
			"tcp: this process has no secret of the job, without which no link between machines can be trusted");
	return proof_crypto(err) == NULL ? XR_E_NODEV : XR_OK;
}

/* The link to this incarnation there is, or a new one. Under the lock. */
static struct xr_link *
link_to(struct net_carrier *c, uint32_t id, uint64_t incarnation,
	const struct where *where)
{
	struct net_peer *p = &c->peers[id];
	struct xr_link *l = p->link;

	if (l != NULL && l->incarnation == incarnation)
		return l;
	l = net_link_new(c, id, incarnation);
	if (l == NULL)
		return NULL;
	if (p->link != NULL) {
		p->link->is_fenced = true;
		net_ask(p->link);
	}
	l->where = *where;
	if (incarnation > p->incarnation)
		p->known = 0;
	p->incarnation = incarnation;
	p->link = l;
	net_ask(l);
	return l;
}

static void
set_peer(struct xr_link *l, void *peer)
{
	pthread_mutex_lock(&l->lock);
	if (!l->has_peer)
		l->peer = peer;
	l->has_peer = true;
	pthread_mutex_unlock(&l->lock);
}

static enum xr_status
tcp_connect(void *self, const char *address, uint32_t id, uint64_t incarnation,
	void *peer, struct xr_link **link, struct xr_error *err)
{
	struct net_carrier *c = self;
	struct where where;
	struct net_peer *p;
	struct xr_link *l = NULL;
	enum xr_status status = where_parse(address, &where, err);

	if (status == XR_OK)
		status = check_connect(c, id, err);
	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&c->lock);
	p = net_peer(c, id);
	if (p != NULL && incarnation < p->incarnation)
		status = fail(err, XR_E_FENCED,
			"tcp: worker %u was started again: incarnation %llu is over, %llu was seen",
			id, (unsigned long long)incarnation,
			(unsigned long long)p->incarnation);
	else if (p != NULL)
		l = link_to(c, id, incarnation, &where);
	if (l != NULL)
		set_peer(l, peer);
	pthread_mutex_unlock(&c->lock);
	if (l == NULL)
		return status != XR_OK ?
			status :
			fail(err, XR_E_NOMEM, "tcp: out of memory");
	net_ring(c);
	*link = l;
	return XR_OK;
}

/* --- bodies ---------------------------------------------------------------- */

static struct xr_body_buffer *
tcp_body_take(void *self, const struct xr_body *body, const void **data)
{
	struct net_carrier *c = self;
	struct xr_body_buffer *buffer = body->own;

	if (buffer != NULL) {
		*data = body->data;
		return bodies_ref(buffer);
	}
	buffer = bodies_get(c->bodies, body->len);
	if (buffer == NULL)
		return NULL;
	if (body->len > 0)
		memcpy(bodies_data(buffer), body->data, body->len);
	*data = bodies_data(buffer);
	return buffer;
}

const struct xr_carrier tcp_carrier = {
	.size = sizeof(struct xr_carrier),
	.api = XR_CARRIER_API,
	.name = "tcp",
	.copies = OUTBOX_COPIED,
	.priority = 0,
	.caps = XR_CARRIER_THREAD,
	.open = tcp_open,
	.address = tcp_address,
	.connect = tcp_connect,
	.send = net_link_send,
	.unsend = net_link_unsend,
	.body_take = tcp_body_take,
	.buffer_unref = bodies_unref,
	.link_close = net_link_close,
	.free = tcp_free,
	.there = net_there,
};
