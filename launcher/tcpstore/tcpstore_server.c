/* SPDX-License-Identifier: Apache-2.0 */
/* tcpstore_server.c - see tcpstore_server.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "launcher/tcpstore/tcpstore.h"
#include "launcher/tcpstore/tcpstore_server.h"
#include "store/peer_uid.h"
#include "store/store.h"

#define ACCEPT_MAX 16                /* connections a turn */
#define READ_MAX   (64 << 10)        /* bytes a turn and connection */
#define OUT_HIGH   (256 << 10)       /* bytes unsent: nothing more is read */
#define AGAIN_NS   (200 * NS_PER_MS) /* without a descriptor for one more */
#define IN_MAX     ((size_t)STORE_VALUE_MAX + (1 << 20)) /* of one request */

struct tcpstore_conn {
	LIST_ENTRY(tcpstore_conn) list;
	struct tcpstore_server *server;
	struct tcpstore_client *client;
	int fd;
	struct watch *readable, *writable;
	struct buf in;
	size_t in_at;  /* bytes of `in` that were handled */
	size_t out_at; /* bytes of tcpstore_out() that were sent */
};

struct tcpstore_server {
	struct tcpstore_server_config config;
	struct tcpstore *store;
	struct watch *listening;
	struct timer *again;
	LIST_HEAD(, tcpstore_conn) conns;
	uint32_t count;
};

int
tcpstore_server_listen(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		listen(fd, SOMAXCONN) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

static void
tcpstore_conn_close(struct tcpstore_conn *c)
{
	struct tcpstore_server *s = c->server;

	LIST_REMOVE(c, list);
	if (s->count-- == s->config.most)
		watch_resume(s->listening);
	watch_close(c->readable);
	watch_close(c->writable);
	tcpstore_leave(c->client);
	buf_fini(&c->in);
	fd_close(c->fd);
	free(c);
}

static size_t
tcpstore_conn_unsent(struct tcpstore_conn *c)
{
	return tcpstore_out(c->client)->len - c->out_at;
}

/* Sends what the socket takes now. If it fails, the socket reports that as readable,
 * and the connection is closed then. */
static void
tcpstore_conn_flush(struct tcpstore_conn *c)
{
	struct buf *out = tcpstore_out(c->client);
	ssize_t n = 0;

	while (out->len > c->out_at && n >= 0) {
		n = send(c->fd, out->data + c->out_at, out->len - c->out_at,
			MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			c->out_at += (size_t)n;
	}
	if (c->out_at == out->len) {
		buf_clear(out);
		c->out_at = 0;
		watch_pause(c->writable);
	} else {
		watch_resume(c->writable);
	}
}

static void
tcpstore_conn_ready(struct tcpstore_client *client, void *of)
{
	(void)client;
	tcpstore_conn_flush(of);
}

static void
tcpstore_conn_compact(struct tcpstore_conn *c)
{
	if (c->in_at == c->in.len && c->in.cap > READ_MAX)
		buf_fini(&c->in); /* of a long value */
	else if (c->in_at > 0)
		memmove(c->in.data, c->in.data + c->in_at,
			c->in.len - c->in_at);
	c->in.len = c->in.len == 0 ? 0 : c->in.len - c->in_at;
	c->in_at = 0;
}

/* Handles the requests that are complete, while the client takes the replies. */
static void
tcpstore_conn_serve(struct tcpstore_conn *c)
{
	enum tcpstore_verdict verdict = TCPSTORE_DONE;
	struct xr_error why = { 0 };
	size_t used;

	while (verdict == TCPSTORE_DONE && tcpstore_conn_unsent(c) < OUT_HIGH) {
		verdict = tcpstore_take(c->client,
			(struct span){ c->in.data + c->in_at,
				c->in.len - c->in_at },
			&used, &why);
		if (verdict == TCPSTORE_DONE)
			c->in_at += used;
	}
	tcpstore_conn_flush(c);
	if (verdict == TCPSTORE_BAD) {
		c->server->config.bad(c->server->config.ctx, &why);
		tcpstore_conn_close(c);
		return;
	}
	if (verdict == TCPSTORE_MORE) {
		watch_resume(c->readable);
		return;
	}
	/* Until the replies are sent. If the socket has taken all of them, the
	 * remaining requests are handled in the next turn. */
	watch_pause(c->readable);
	watch_resume(c->writable);
}

static void
tcpstore_conn_on_readable(int fd, void *ctx)
{
	struct tcpstore_conn *c = ctx;
	ssize_t n = -1;
	char *room;

	tcpstore_conn_compact(c);
	c->in.max = IN_MAX;
	room = buf_room(&c->in, READ_MAX);
	if (room != NULL) {
		c->in.len -= READ_MAX;
		n = recv(fd, room, READ_MAX, MSG_DONTWAIT);
	}
	if (n == -1 && room != NULL && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		tcpstore_conn_close(c);
		return;
	}
	c->in.len += (size_t)n;
	tcpstore_conn_serve(c);
}

static void
tcpstore_conn_on_writable(int fd, void *ctx)
{
	struct tcpstore_conn *c = ctx;

	(void)fd;
	tcpstore_conn_flush(c);
	if (tcpstore_conn_unsent(c) == 0)
		tcpstore_conn_serve(c);
}

/* @fd is taken. */
static void
tcpstore_server_admit(struct tcpstore_server *s, int fd)
{
	struct tcpstore_conn *c = NULL;
	int on = 1;

	if (!peer_is_foreign(fd))
		c = calloc(1, sizeof(*c));
	if (c == NULL) {
		fd_close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->server = s;
	c->fd = fd;
	c->client = tcpstore_enter(s->store, c);
	c->readable = watch_open(s->config.loop, fd, false,
		tcpstore_conn_on_readable, c);
	c->writable = watch_open(s->config.loop, fd, true,
		tcpstore_conn_on_writable, c);
	if (c->client != NULL && c->readable != NULL && c->writable != NULL) {
		watch_pause(c->writable);
		LIST_INSERT_HEAD(&s->conns, c, list);
		/* More clients wait until one leaves: all are of this user. */
		if (++s->count == s->config.most)
			watch_pause(s->listening);
		return;
	}
	watch_close(c->readable);
	watch_close(c->writable);
	if (c->client != NULL)
		tcpstore_leave(c->client);
	fd_close(fd);
	free(c);
}

static void
tcpstore_server_on_connect(int fd, void *ctx)
{
	struct tcpstore_server *s = ctx;
	int conn = 0;

	for (int i = 0;
		i < ACCEPT_MAX && conn != -1 && s->count < s->config.most;
		i++) {
		conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (conn != -1)
			tcpstore_server_admit(s, conn);
	}
	if (conn == -1 && errno != EAGAIN && errno != EINTR &&
		errno != ECONNABORTED) {
		watch_pause(s->listening);
		timer_arm(s->again, AGAIN_NS);
	}
}

static void
tcpstore_server_on_again(void *ctx)
{
	const struct tcpstore_server *s = ctx;

	if (s->count < s->config.most)
		watch_resume(s->listening);
}

struct tcpstore_server *
tcpstore_server_open(const struct tcpstore_server_config *config)
{
	struct tcpstore_server *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->config = *config;
	LIST_INIT(&s->conns);
	s->store = tcpstore_new(tcpstore_conn_ready);
	s->again = timer_open(config->loop, tcpstore_server_on_again, s);
	s->listening = watch_open(config->loop, config->fd, false,
		tcpstore_server_on_connect, s);
	if (s->store != NULL && s->again != NULL && s->listening != NULL)
		return s;
	tcpstore_server_close(s);
	return NULL;
}

void
tcpstore_server_close(struct tcpstore_server *s)
{
	if (s == NULL)
		return;
	while (!LIST_EMPTY(&s->conns))
		tcpstore_conn_close(LIST_FIRST(&s->conns));
	watch_close(s->listening);
	timer_close(s->again);
	tcpstore_free(s->store);
	free(s);
}
