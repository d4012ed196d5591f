/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - connections of the TCP carrier until they are up: accepting, dialling,
 * greeting. See net.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "store/peer_uid.h"
#include "worker/net/heir.h"
#include "worker/net/net.h"
#include "worker/net/proof.h"

#define ACCEPTS 32 /* a turn */

/* Nobody can foretell them. */
static bool
challenge(struct greet *g)
{
	uint8_t bytes[32];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	greet_challenge(g, bytes);
	return true;
}

/* Who we are, with libcrypto if there is one: it is looked for now. */
static const struct greet_self *
self_of(struct net_carrier *c)
{
	if (c->self.crypto == NULL && c->self.secret != NULL)
		c->self.crypto = proof_crypto(NULL);
	return &c->self;
}

bool
net_say(struct net_conn *conn)
{
	struct greet *g = conn->greet;
	size_t len = g->out_len;

	g->out_len = 0;
	return len == 0 ||
		send(conn->fd, g->out, len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		(ssize_t)len;
}

/* --- who comes ------------------------------------------------------------- */

/* The next connection; those of other users of this machine are closed. -1 and
 * errno. */
static int
meet_accept(struct net_carrier *c, struct where *where)
{
	int fd;

	for (int i = 0; i < ACCEPTS; i++) {
		where->len = sizeof(where->at);
		fd = heir_accept(c->door, &where->at.any, &where->len);
		if (fd == -1 || !peer_is_foreign(fd))
			return fd;
		heir_close(fd);
	}
	errno = EAGAIN;
	return -1;
}

static bool
welcome(struct net_carrier *c, int fd, const struct where *where)
{
	struct net_conn *conn = net_conn_new(c, fd, where, NET_GREETING);

	if (conn == NULL)
		return false;
	conn->is_stranger = true;
	c->strangers++;
	net_due(c, conn->until);
	greet_answer(conn->greet, self_of(c));
	if (!challenge(conn->greet))
		net_conn_end(conn);
	return true;
}

void
net_accept(struct net_carrier *c)
{
	struct where where = { .len = 0 };
	int fd = -1;

	for (int i = 0; i < ACCEPTS && c->strangers < NET_STRANGERS; i++) {
		fd = meet_accept(c, &where);
		if (fd == -1 || !welcome(c, fd, &where))
			break;
	}
	if (fd == -1 &&
		(errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			errno == ENOBUFS)) {
		net_listen(c, false);
		c->deaf_until = net_now(c) + NET_DEAF_NS;
		net_due(c, c->deaf_until);
	} else if (c->strangers >= NET_STRANGERS) {
		net_listen(c, false);
		net_due(c, net_now(c));
	}
}

/* Those who come while all places are taken wait for one who says nothing. */
int64_t
net_late(const struct net_conn *conn)
{
	if (conn->is_stranger && conn->carrier->strangers >= NET_STRANGERS)
		return conn->born + NET_CROWD_NS;
	return conn->until;
}

/* --- whom we go to --------------------------------------------------------- */

/* It did not come about. @final: nor would it the next time; but if the other end
 * dials as well, it may reach us. */
static void
try_later(struct xr_link *l, bool final, const char *why)
{
	int64_t now = net_now(l->carrier);

	l->tried = NULL;
	if ((final && !l->crossed) || now + l->pause >= l->until) {
		net_link_lose(l, why);
		return;
	}
	l->again = now + l->pause;
	l->pause = l->pause * 2 < NET_PAUSE_MOST_NS ? l->pause * 2 :
						      NET_PAUSE_MOST_NS;
	net_due(l->carrier, l->again);
}

/* Is this no matter of the moment? */
static bool
is_final(int sys)
{
	switch (sys) {
	case EAGAIN:
	case ECONNRESET:
	case EINTR:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case ETIMEDOUT:
		return false;
	default:
		return true;
	}
}

void
net_dial(struct xr_link *l)
{
	struct net_carrier *c = l->carrier;
	struct net_conn *conn = NULL;
	int fd = heir_socket(l->where.at.any.sa_family);

	l->again = 0;
	if (fd != -1 && connect(fd, &l->where.at.any, l->where.len) == -1 &&
		errno != EINPROGRESS) {
		heir_close(fd);
		fd = -1;
	}
	if (fd == -1) {
		try_later(l, is_final(errno), strerrordesc_np(errno));
		return;
	}
	conn = net_conn_new(c, fd, &l->where, NET_CONNECTING);
	if (conn == NULL) {
		try_later(l, false, "no memory or descriptors to connect");
		return;
	}
	conn->link = l;
	conn->until = l->until;
	l->tried = conn;
	net_due(c, conn->until);
}

static void
give_up(struct net_conn *conn, bool final, const char *why)
{
	struct xr_link *l = conn->link;

	if (l != NULL && conn->state == NET_GREETING)
		l->until += net_now(conn->carrier) - conn->greeted;
	net_conn_end(conn);
	if (l != NULL)
		try_later(l, final, why);
}

static void
connected(struct net_conn *conn)
{
	struct net_carrier *c = conn->carrier;
	struct xr_link *l = conn->link;
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = conn };
	int sys = 0;
	socklen_t len = sizeof(sys);

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &sys, &len) == -1 ||
		sys != 0) {
		give_up(conn, is_final(sys), strerrordesc_np(sys));
		return;
	}
	conn->state = NET_GREETING;
	conn->greeted = net_now(c);
	/* Whether the host still answers is what net_link_watch() checks. */
	conn->until = INT64_MAX;
	l->silent_since = 0;
	atomic_store(&c->watching, true);
	greet_dial(conn->greet, self_of(c), l->id, l->incarnation, ++c->dials);
	if (epoll_ctl(c->epoll, EPOLL_CTL_MOD, conn->fd, &e) == -1 ||
		!challenge(conn->greet) || !net_say(conn))
		give_up(conn, false, "no greeting could be sent");
}

/* --- both ------------------------------------------------------------------ */

/* It came to nothing. */
static void
ended(struct net_conn *conn)
{
	struct xr_link *l = conn->link;
	char why[160];

	if (l == NULL) {
		net_conn_retire(conn);
		return;
	}
	l->crossed = l->crossed || conn->greet->verdict == GREET_CROSSED;
	give_up(conn, greet_is_final(conn->greet),
		greet_words(conn->greet, why, sizeof(why)));
}

/* A packet or a part of one; false: there is no more now. */
static bool
take(struct net_conn *conn)
{
	struct greet *g = conn->greet;
	char bytes[GREET_SIZE_MAX];
	ssize_t n = recv(conn->fd, bytes, greet_need(g), MSG_DONTWAIT);
	enum greet_event event;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		give_up(conn, false,
			n == 0 ? "it has closed the connection" :
				 strerrordesc_np(errno));
		return false;
	}
	event = greet_feed(g, bytes, (size_t)n);
	if (!net_say(conn)) {
		give_up(conn, false, "no greeting could be sent");
		return false;
	}
	switch (event) {
	case GREET_MORE:
		return true;
	case GREET_PROVEN:
		net_admit(conn);
		break;
	case GREET_AGREED:
		net_agreed(conn->link, g->number);
		net_conn_up(conn, conn->link);
		break;
	case GREET_ENDED:
		ended(conn);
		break;
	}
	return false;
}

void
net_greet(struct net_conn *conn)
{
	if (conn->state == NET_CONNECTING) {
		connected(conn);
		return;
	}
	while (take(conn))
		continue;
}

void
net_meet_late(struct net_conn *conn)
{
	if (conn->state == NET_CONNECTING)
		give_up(conn, true, "nobody answers there");
	else
		give_up(conn, false, "it does not answer");
}
