/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - links of the TCP carrier: sending, and the end. See net.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "worker/net/net.h"

#define HELD (64 << 10) /* bytes that wait for "another follows" */

struct xr_link *
net_link_new(struct net_carrier *c, uint32_t id, uint64_t incarnation)
{
	struct xr_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->carrier = c;
	l->id = id;
	l->incarnation = incarnation;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->idle, NULL);
	outbox_init(&l->out);
	return l;
}

void
net_link_free(struct xr_link *l)
{
	outbox_fini(&l->out);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->idle);
	free(l);
}

/* --- the host is called ---------------------------------------------------- */

/* What the host gave is not needed any more; without a lock. */
static void
tell(struct net_carrier *c, struct outbox_pieces *out)
{
	struct outbox_piece *p;

	while ((p = TAILQ_FIRST(out)) != NULL) {
		TAILQ_REMOVE(out, p, list);
		if (p->refers)
			c->host.sent(c->host.ctx, p->token);
		free(p);
	}
}

bool
net_link_enter(struct xr_link *l)
{
	pthread_mutex_lock(&l->lock);
	l->busy = !atomic_load_explicit(&l->closed, memory_order_relaxed);
	pthread_mutex_unlock(&l->lock);
	return l->busy;
}

void
net_link_leave(struct xr_link *l)
{
	pthread_mutex_lock(&l->lock);
	l->busy = false;
	pthread_cond_broadcast(&l->idle);
	pthread_mutex_unlock(&l->lock);
}

/* --- sending: under the lock ----------------------------------------------- */

static void
arm(struct xr_link *l, bool on)
{
	struct epoll_event e = {
		.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN,
		.data.ptr = l->conn,
	};

	if (l->armed != on &&
		epoll_ctl(l->carrier->epoll, EPOLL_CTL_MOD, l->conn->fd, &e) ==
			0)
		l->armed = on;
}

/* What goes, goes out; the thread is to see to the rest. */
static void
flush(struct xr_link *l, struct outbox_pieces *out)
{
	switch (outbox_write(&l->out, l->conn->fd, out, &l->broken)) {
	case OUTBOX_EMPTY:
		arm(l, false);
		break;
	case OUTBOX_BLOCKED:
		arm(l, true);
		break;
	case OUTBOX_BROKEN:
		arm(l, false);
		/* So that the thread hears of it, whatever it was. */
		shutdown(l->conn->fd, SHUT_RDWR);
		break;
	}
}

static bool
is_open(const struct xr_link *l)
{
	return l->state != NET_LINK_OVER && l->broken == 0 &&
		!atomic_load_explicit(&l->closed, memory_order_relaxed);
}

static bool
length_of(const struct xr_message *m, uint64_t *len)
{
	*len = 0;
	for (uint32_t i = 0; i < m->count; i++)
		if (__builtin_add_overflow(*len, m->parts[i].len, len))
			return false;
	return *len <= XR_MESSAGE_MAX;
}

/* Does the sender have to keep it? */
static bool
is_pending(struct xr_link *l, struct outbox_piece *own,
	struct outbox_pieces *out)
{
	if (own == NULL || !own->is_out)
		return own != NULL;
	TAILQ_REMOVE(out, own, list);
	outbox_forget(&l->out, own);
	return false;
}

/* Somebody has to look whether it arrives. */
static void
begin_watch(struct net_carrier *c)
{
	if (!atomic_load_explicit(&c->watching, memory_order_relaxed) &&
		!atomic_exchange(&c->watching, true))
		net_ring(c);
}

enum xr_status
net_link_send(struct xr_link *l, const struct xr_message *message,
	bool *pending)
{
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct outbox_piece *own = NULL;
	enum xr_status status = XR_E_PEER_LOST;
	uint64_t len;
	bool is_up;

	*pending = false;
	if (net_is_heir(l->carrier))
		return XR_E_STATE;
	if (message->loan_count > 0)
		return XR_E_INVAL; /* memory of ours is nothing there */
	if (!length_of(message, &len))
		return XR_E_RANGE;
	pthread_mutex_lock(&l->lock);
	if (is_open(l))
		status = outbox_put(&l->out, message, len, &own);
	l->wants_room = l->wants_room || status == XR_E_AGAIN;
	is_up = is_open(l) && l->state == NET_LINK_UP;
	if (is_up && !l->armed &&
		(status != XR_OK || !message->more || l->out.bytes >= HELD))
		flush(l, &out);
	*pending = is_pending(l, own, &out);
	pthread_mutex_unlock(&l->lock);
	tell(l->carrier, &out);
	if (is_up)
		begin_watch(l->carrier);
	return status;
}

/* Torn, it cannot go on: the other end awaits bytes that nobody has. Then sent() is
 * told when the link is lost, which the caller is not to await. */
bool
net_link_unsend(struct xr_link *l, void *token)
{
	enum outbox_unsent unsent;

	if (net_is_heir(l->carrier))
		return false;
	pthread_mutex_lock(&l->lock);
	unsent = outbox_unsend(&l->out, token);
	if (unsent == OUTBOX_TORN) {
		l->broken = ENOMEM;
		if (l->conn != NULL)
			shutdown(l->conn->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&l->lock);
	return unsent == OUTBOX_UNSENT;
}

/* --- the thread ------------------------------------------------------------ */

/* Room that somebody asked for, and has not had. */
static bool
has_room(struct xr_link *l)
{
	bool has = l->wants_room && l->out.bytes <= OUTBOX_WINDOW / 2;

	l->wants_room = l->wants_room && !has;
	return has;
}

void
net_link_write(struct xr_link *l)
{
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct net_carrier *c = l->carrier;
	bool room;

	pthread_mutex_lock(&l->lock);
	if (is_open(l))
		flush(l, &out);
	room = has_room(l);
	pthread_mutex_unlock(&l->lock);
	tell(c, &out);
	begin_watch(c);
	if (room)
		c->host.awake(c->host.ctx);
}

void
net_link_up(struct xr_link *l, struct net_conn *conn)
{
	pthread_mutex_lock(&l->lock);
	l->state = NET_LINK_UP;
	l->conn = conn;
	l->where = conn->where;
	pthread_mutex_unlock(&l->lock);
	l->tried = NULL;
	net_link_write(l);
}

/* The peer's next link is another. */
static void
leave_table(struct xr_link *l)
{
	struct net_carrier *c = l->carrier;

	pthread_mutex_lock(&c->lock);
	if (l->id < c->peer_count && c->peers[l->id].link == l)
		c->peers[l->id].link = NULL;
	pthread_mutex_unlock(&c->lock);
}

void
net_link_lose(struct xr_link *l, const char *why)
{
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct net_carrier *c = l->carrier;
	struct net_conn *conn = l->tried;
	char text[256], where[WHERE_TEXT];

	if (l->state == NET_LINK_OVER)
		return;
	snprintf(text, sizeof(text), "worker %u at %s: %s", l->id,
		where_text(&l->where, where), why);
	leave_table(l);
	pthread_mutex_lock(&l->lock);
	if (l->state == NET_LINK_UP)
		conn = l->conn;
	l->state = NET_LINK_OVER;
	l->conn = NULL;
	outbox_take_all(&l->out, &out);
	pthread_mutex_unlock(&l->lock);
	l->tried = NULL;
	if (conn != NULL)
		net_conn_end(conn);
	tell(c, &out);
	if (!net_link_enter(l))
		return;
	c->host.lost(c->host.ctx, l->peer, l, text);
	net_link_leave(l);
}

void
net_link_close(struct xr_link *l)
{
	struct outbox_pieces out = TAILQ_HEAD_INITIALIZER(out);
	struct net_carrier *c;
	bool inside;

	if (l == NULL || net_is_heir(l->carrier))
		return;
	c = l->carrier;
	inside = pthread_equal(pthread_self(), c->thread) != 0;
	leave_table(l);
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->closed, true);
	while (l->busy && !inside)
		pthread_cond_wait(&l->idle, &l->lock);
	outbox_take_all(&l->out, &out);
	pthread_mutex_unlock(&l->lock);
	tell(c, &out);
	net_drop(l);
}

/* Bytes that were sent and are not acknowledged; and since when nothing was. */
static int
unacknowledged(int fd, int64_t *ago, bool *in_flight)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int n = 0;

	if (ioctl(fd, SIOCOUTQ, &n) == -1 || n == 0 ||
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == -1)
		return 0;
	*ago = (int64_t)info.tcpi_last_ack_recv * NS_PER_MS;
	*in_flight = info.tcpi_unacked > 0;
	return n;
}

/* The connection whose other end has to acknowledge; NULL: there is none. */
static struct net_conn *
net_link_watched(const struct xr_link *l)
{
	if (l->state == NET_LINK_UP)
		return l->conn;
	return l->state == NET_LINK_DIALLING && l->tried != NULL &&
			l->tried->state == NET_GREETING ?
		l->tried :
		NULL;
}

/*
 * TCP_USER_TIMEOUT would be simpler, but ends connections to whoever does not
 * read for a while, too, be it in a debugger or stopped at a terminal: a window
 * of 0 counts as silence there, though each probe of it is answered [tried,
 * Linux 6.18]. Such a peer has nothing in flight.
 */
bool
net_link_watch(struct xr_link *l, int64_t now)
{
	struct net_conn *conn = net_link_watched(l);
	int64_t ago = 0;
	bool in_flight = false;
	char text[80], took[32];

	if (conn == NULL || unacknowledged(conn->fd, &ago, &in_flight) == 0) {
		l->silent_since = 0;
		return false;
	}
	if (!in_flight || l->silent_since == 0 || ago < now - l->silent_since) {
		l->silent_since = now;
		return true;
	}
	if (now - l->silent_since < NET_SILENT_NS)
		return true;
	snprintf(text, sizeof(text), "it has acknowledged nothing for %s",
		clock_text(now - l->silent_since, took, sizeof(took)));
	net_link_lose(l, text);
	return false;
}
