/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c - what becomes of who opened a connection to the TCP carrier, and has
 * proved who he is. See net.h and cross.h. */
#include <sys/socket.h>

#include <xrun/rpc.h>

#include "worker/net/cross.h"
#include "worker/net/net.h"

static enum cross_link
link_of(const struct net_peer *p)
{
	if (p->link == NULL || p->link->state == NET_LINK_OVER)
		return CROSS_NONE;
	return p->link->state == NET_LINK_UP ? CROSS_UP : CROSS_DIALLING;
}

/* Under the lock. */
static enum cross
judge(const struct net_conn *conn, const struct net_peer *p)
{
	const struct greet *g = conn->greet;
	struct cross_case one = {
		.self = conn->carrier->self.id,
		.other = g->id,
		.seen = p->incarnation,
		.link = link_of(p),
		.known = p->known,
		.incarnation = g->incarnation,
		.dial = g->dial,
	};

	return cross_judge(&one);
}

static void
refuse(struct net_conn *conn, enum greet_verdict verdict, uint64_t number)
{
	greet_decide(conn->greet, verdict, number);
	net_say(conn);
	net_conn_retire(conn);
}

void
net_agreed(struct xr_link *l, uint64_t dial)
{
	struct net_carrier *c = l->carrier;

	pthread_mutex_lock(&c->lock);
	if (c->peers[l->id].incarnation == l->incarnation)
		c->peers[l->id].known = dial;
	pthread_mutex_unlock(&c->lock);
}

/* It is the link's; what it was opening itself is not needed. */
static void
agree(struct net_conn *conn, struct xr_link *l)
{
	struct net_carrier *c = conn->carrier;

	if (l->tried != NULL)
		net_conn_end(l->tried);
	l->tried = conn;
	net_agreed(l, conn->greet->dial);
	conn->link = l;
	greet_decide(conn->greet, GREET_OK, c->dials);
	if (net_say(conn))
		net_conn_up(conn, l);
	else
		net_link_lose(l, "no greeting could be sent");
}

/* Does the host know him? By connect(), meanwhile, is as good. */
static bool
introduce(struct xr_link *l)
{
	struct net_carrier *c = l->carrier;
	bool is_known;
	void *peer;

	/* It had it by connect(), and has closed it. */
	if (!net_link_enter(l))
		return true;
	peer = c->host.accepted(c->host.ctx, l->id, l->incarnation, l);
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&l->lock);
	if (!l->has_peer && peer != NULL) {
		l->peer = peer;
		l->has_peer = true;
	}
	is_known = l->has_peer;
	if (!is_known && c->peers[l->id].link == l)
		c->peers[l->id].link = NULL;
	if (!is_known && l->is_asked)
		TAILQ_REMOVE(&c->asked, l, asked);
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_unlock(&c->lock);
	net_link_leave(l);
	return is_known;
}

/* @old: the link there was, which the host has to hear of before. */
static void
begin(struct net_conn *conn, struct xr_link *l, struct xr_link *old)
{
	struct net_carrier *c = conn->carrier;

	TAILQ_INSERT_TAIL(&c->links, l, list);
	l->is_listed = true;
	l->where = conn->where;
	if (old != NULL)
		net_link_lose(old,
			old->incarnation < l->incarnation ?
				"it was started again" :
				"it has connected anew, and so lost this link");
	if (introduce(l)) {
		agree(conn, l);
		return;
	}
	TAILQ_REMOVE(&c->links, l, list);
	net_link_free(l);
	refuse(conn, GREET_UNKNOWN, 0);
}

/* A new link to it, in the table; NULL: no memory. Under the lock. */
static struct xr_link *
enter_table(struct net_conn *conn, struct net_peer *p)
{
	const struct greet *g = conn->greet;
	struct xr_link *l = net_link_new(conn->carrier, g->id, g->incarnation);

	if (l == NULL)
		return NULL;
	if (g->incarnation > p->incarnation)
		p->known = 0;
	p->incarnation = g->incarnation;
	p->link = l;
	return l;
}

/* Has he gone since? What he sent before may all be there. */
static bool
is_gone(const struct net_conn *conn)
{
	char byte;

	return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void
net_admit(struct net_conn *conn)
{
	struct net_carrier *c = conn->carrier;
	uint32_t id = conn->greet->id;
	struct xr_link *l = NULL, *old = NULL;
	enum cross cross = CROSS_TAKE;
	struct net_peer *p;
	uint64_t seen = 0;

	if (is_gone(conn)) {
		net_conn_end(conn);
		return;
	}
	pthread_mutex_lock(&c->lock);
	p = id <= XR_WORKER_ID_MAX ? net_peer(c, id) : NULL;
	if (p != NULL) {
		seen = p->incarnation;
		old = p->link;
		cross = judge(conn, p);
		if (cross == CROSS_TAKE || cross == CROSS_RENEW)
			l = enter_table(conn, p);
	}
	pthread_mutex_unlock(&c->lock);
	switch (cross) {
	case CROSS_TAKE:
	case CROSS_RENEW:
		if (l != NULL)
			begin(conn, l, old);
		else
			refuse(conn, p == NULL ? GREET_UNKNOWN : GREET_FULL, 0);
		break;
	case CROSS_ADOPT:
		agree(conn, old);
		break;
	case CROSS_WAIT:
		old->crossed = true;
		refuse(conn, GREET_CROSSED, 0);
		break;
	case CROSS_STALE:
		refuse(conn, GREET_STALE, 0);
		break;
	case CROSS_OLD:
		refuse(conn, GREET_OLD, seen);
		break;
	}
}
