/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - connections of the TCP carrier: their life, and reading. See net.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/status.h"
#include "worker/net/heir.h"
#include "worker/net/net.h"

/* Without traffic the other end's machine is asked after 5 s, and given up after
 * three questions without an answer: within 15 s. */
#define IDLE_S  5
#define AGAIN_S 3
#define TIMES   3

void
net_due(struct net_carrier *c, int64_t when)
{
	if (when < c->due)
		c->due = when;
}

/* --- life ------------------------------------------------------------------ */

static void
set_up(int fd)
{
	const int on = 1, idle = IDLE_S, again = AGAIN_S, times = TIMES;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof(again));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

struct net_conn *
net_conn_new(struct net_carrier *c, int fd, const struct where *where,
	enum net_conn_state state)
{
	struct net_conn *conn = calloc(1, sizeof(*conn));
	struct epoll_event e = {
		.events = state == NET_CONNECTING ? EPOLLOUT : EPOLLIN,
		.data.ptr = conn,
	};

	if (conn != NULL)
		conn->greet = malloc(sizeof(*conn->greet));
	if (conn == NULL || conn->greet == NULL ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e) == -1) {
		heir_close(fd);
		if (conn != NULL)
			free(conn->greet);
		free(conn);
		return NULL;
	}
	set_up(fd);
	atomic_fetch_add(&c->conns, 1);
	conn->carrier = c;
	conn->fd = fd;
	conn->state = state;
	conn->born = net_now(c);
	conn->until = conn->born + NET_GREET_NS;
	conn->where = *where;
	TAILQ_INSERT_TAIL(&c->young, conn, list);
	return conn;
}

static struct net_conns *
list_of(struct net_conn *conn)
{
	switch (conn->state) {
	case NET_UP:
		return &conn->carrier->up;
	case NET_DEAD:
		return &conn->carrier->dead;
	case NET_CONNECTING:
	case NET_GREETING:
	case NET_DRAINING:
		break;
	}
	return &conn->carrier->young;
}

static void
become(struct net_conn *conn, enum net_conn_state state)
{
	struct net_carrier *c = conn->carrier;

	TAILQ_REMOVE(list_of(conn), conn, list);
	conn->state = state;
	TAILQ_INSERT_TAIL(list_of(conn), conn, list);
	if (!conn->is_stranger)
		return;
	conn->is_stranger = false;
	c->strangers--;
	if (c->is_deaf && c->deaf_until == 0)
		net_listen(c, true);
}

void
net_conn_end(struct net_conn *conn)
{
	struct net_carrier *c = conn->carrier;

	if (conn->state == NET_DEAD)
		return;
	if (conn->state == NET_UP)
		intake_fini(&conn->in);
	become(conn, NET_DEAD);
	conn->link = NULL;
	/* What was cloned meanwhile may hold the file open for a moment: events
	 * of it would come on, and the other end would not hear of its end. */
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
	shutdown(conn->fd, SHUT_RDWR);
	heir_close(conn->fd);
	conn->fd = -1;
}

/* To close a socket that has unread bytes throws away what was sent and has not
 * arrived; so one waits for that. */
void
net_conn_retire(struct net_conn *conn)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = conn };
	int unsent = 0;

	if (conn->state == NET_DEAD)
		return;
	conn->link = NULL;
	if (ioctl(conn->fd, SIOCOUTQ, &unsent) == -1 || unsent == 0 ||
		shutdown(conn->fd, SHUT_WR) == -1) {
		net_conn_end(conn);
		return;
	}
	if (conn->state == NET_UP)
		intake_fini(&conn->in);
	become(conn, NET_DRAINING);
	epoll_ctl(conn->carrier->epoll, EPOLL_CTL_MOD, conn->fd, &e);
	conn->until = net_now(conn->carrier) + NET_DRAIN_NS;
	net_due(conn->carrier, conn->until);
}

void
net_conn_drain(struct net_conn *conn)
{
	struct net_carrier *c = conn->carrier;
	ssize_t n = recv(conn->fd, c->room, NET_READ, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		net_conn_end(conn);
}

/* --- reading --------------------------------------------------------------- */

static void *
place(void *ctx, const struct net_head *head)
{
	struct net_conn *conn = ctx;
	const struct xr_carrier_host *host = &conn->carrier->host;

	if (atomic_load_explicit(&conn->link->closed, memory_order_relaxed))
		return NULL;
	return host->place(host->ctx, conn->link->peer, &head->record,
		head->len);
}

static bool
deliver(void *ctx, const struct net_head *head, const struct xr_body *body)
{
	struct net_conn *conn = ctx;
	struct xr_link *l = conn->link;
	const struct xr_carrier_host *host = &conn->carrier->host;

	if (atomic_load_explicit(&l->closed, memory_order_relaxed))
		return false;
	host->deliver(host->ctx, l->peer, &head->record, body);
	return true;
}

static const struct intake_ops intake_ops = {
	.place = place,
	.deliver = deliver,
};

void
net_conn_up(struct net_conn *conn, struct xr_link *l)
{
	free(conn->greet);
	conn->greet = NULL;
	conn->link = l;
	become(conn, NET_UP);
	intake_init(&conn->in, conn->carrier->bodies, &intake_ops, conn);
	net_link_up(l, conn);
}

/* The bytes there are. Gives what recv(2) did; @status: what came of them. */
static ssize_t
receive(struct net_conn *conn, enum xr_status *status, struct xr_error *err)
{
	struct net_carrier *c = conn->carrier;
	size_t len = NET_READ;
	char *to = intake_rest(&conn->in, &len);
	bool is_long = to != NULL;
	ssize_t n;

	if (is_long && len > NET_READ_LONG)
		len = NET_READ_LONG;
	n = recv(conn->fd, is_long ? to : c->room, len, MSG_DONTWAIT);
	if (n <= 0)
		return n;
	*status = is_long ? intake_filled(&conn->in, (size_t)n) :
			    intake_feed(&conn->in, c->room, (size_t)n, err);
	return n;
}

/* Whoever failed to send has taken the error that was there. */
static int
error_of(struct xr_link *l)
{
	int sys;

	pthread_mutex_lock(&l->lock);
	sys = l->broken;
	pthread_mutex_unlock(&l->lock);
	return sys;
}

static const char *
why_over(const struct net_conn *conn, ssize_t n, int sys)
{
	if (n == 0)
		sys = error_of(conn->link);
	if (sys != 0)
		return strerrordesc_np(sys);
	return intake_is_midway(&conn->in) ?
		"it closed the connection in the middle of a message" :
		"it has closed the connection";
}

void
net_conn_read(struct net_conn *conn)
{
	struct xr_link *l = conn->link;
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;
	const char *why = err.text;
	ssize_t n;
	int sys;

	if (!net_link_enter(l))
		return;
	n = receive(conn, &status, &err);
	sys = errno;
	net_link_leave(l);
	if (status == XR_E_CLOSED || (n < 0 && (sys == EAGAIN || sys == EINTR)))
		return;
	if (n <= 0)
		why = why_over(conn, n, sys);
	if (n <= 0 || status != XR_OK)
		net_link_lose(l, why);
}
