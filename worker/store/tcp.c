/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c - a store that rank 0 serves, by frames of src/store/frame.h. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "store/frame.h"
#include "store/peer_uid.h"
#include "worker/store/greeting.h"
#include "worker/store/host.h"
#include "worker/store/link.h"

#define PAUSE_FIRST (5 * NS_PER_MS)
#define PAUSE_MOST  (500 * NS_PER_MS)
#define ONE_NS      (5 * NS_PER_S) /* for one try to connect */

/* Where to connect, and with which secret. */
struct tcp_target {
	const struct store_address *address;
	const struct addrinfo *list;
	const struct store_auth *auth; /* NULL: without */
};

struct tcp {
	struct driver driver;
	struct driver *link;
	struct host *host; /* NULL: another rank's */
};

/* --- what it speaks -------------------------------------------------------- */

static enum xr_status
put_request(struct buf *out, const struct store_request *q, int *fd,
	struct xr_error *err)
{
	(void)fd;
	(void)err;
	frame_put_request(out, q);
	return XR_OK;
}

static enum xr_status
take_reply(struct link_in *in, struct store_reply *r, bool *there,
	struct xr_error *err)
{
	struct span all = { in->bytes.data + in->at, in->bytes.len - in->at };
	struct span part[FRAME_PARTS];
	struct frame f = { .part = part };
	size_t size = 0;
	enum xr_status status = frame_size(all, &size, err);

	*there = status == XR_OK && size > 0 && size <= all.len;
	in->need = size > all.len ? size - all.len : 0;
	if (!*there)
		return status;
	status = frame_read((struct span){ all.at, size }, &f, err);
	in->at += size;
	return status == XR_OK ? frame_reply(&f, r, err) : status;
}

static const struct link_speech speech = {
	.put = put_request,
	.take = take_reply,
};

/* --- connecting ------------------------------------------------------------ */

static bool
await(int fd, short events, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left = until - clock_now();

	return left > 0 &&
		poll(&p, 1, (int)((left + NS_PER_MS - 1) / NS_PER_MS)) == 1;
}

/* -1 and errno. */
static int
connect_once(const struct addrinfo *at, int64_t until)
{
	int fd = socket(at->ai_family,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int sys = 0, on = 1;
	socklen_t len = sizeof(sys);

	if (fd == -1)
		return -1;
	if (connect(fd, at->ai_addr, at->ai_addrlen) == -1)
		sys = errno;
	if (sys == EINPROGRESS) {
		sys = ETIMEDOUT;
		if (await(fd, POLLOUT, until))
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &len);
	}
	if (sys == 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		return fd;
	}
	fd_close(fd);
	errno = sys;
	return -1;
}

/* Without a secret only the user tells which process serves. */
static enum xr_status
tcp_greet(int fd, const struct store_auth *auth, int64_t until,
	struct xr_error *err)
{
	enum xr_status status = greeting_client(fd, auth, until, err);

	if (status != XR_OK || auth != NULL || !peer_is_foreign(fd))
		return status;
	return fail(err, XR_E_AUTH,
		"store: another user of this machine serves there\tanother port");
}

static enum xr_status
try_all(const struct addrinfo *list, const struct store_auth *auth,
	int64_t until, int *fd, struct xr_error *err)
{
	enum xr_status status = XR_E_AGAIN;
	int64_t end = clock_now() + ONE_NS;

	if (end > until)
		end = until;
	for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
		*fd = connect_once(at, end);
		if (*fd == -1) {
			status = fail(err, XR_E_AGAIN, "%s", strerror(errno));
			continue;
		}
		status = tcp_greet(*fd, auth, end, err);
		if (status == XR_OK)
			return status;
		fd_close(*fd);
		if (status != XR_E_AGAIN)
			return status;
	}
	return status;
}

/* Rank 0 may begin later than others do. */
static enum xr_status
tcp_connect(const struct tcp_target *t, int64_t until, int *fd,
	struct xr_error *err)
{
	const struct store_address *a = t->address;
	int64_t pause = PAUSE_FIRST;
	struct xr_error why = { 0 };
	enum xr_status status;

	do {
		status = try_all(t->list, t->auth, until, fd, &why);
		if (status == XR_OK)
			return status;
		if (status != XR_E_AGAIN)
			return fail(err, status, "tcp://%s:%u: %s", a->host,
				a->port, why.text);
		if (!driver_pause(-1, pause, until))
			break;
		pause = pause * 2 < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
	} while (clock_now() < until);
	return fail(err, XR_E_TIMEOUT,
		"store: rank 0 does not serve tcp://%s:%u: %s", a->host,
		a->port, why.text);
}

/* --- the driver ------------------------------------------------------------ */

static void
tcp_ask(struct driver *driver, struct store_request *q, int64_t until,
	struct store_reply *r)
{
	struct tcp *t = (struct tcp *)driver;

	t->link->ops->ask(t->link, q, until, r);
}

static void
tcp_close(struct driver *driver)
{
	struct tcp *t = (struct tcp *)driver;

	t->link->ops->close(t->link);
}

static void
tcp_free(struct driver *driver)
{
	struct tcp *t = (struct tcp *)driver;

	if (t->link != NULL)
		t->link->ops->free(t->link);
	host_close(t->host);
	free(t);
}

static const struct driver_ops ops = {
	.ask = tcp_ask,
	.close = tcp_close,
	.free = tcp_free,
};

/* With the secret, for as long as the greeting lasts. */
static enum xr_status
connect_to(const struct store_address *a, const struct addrinfo *list,
	int64_t until, int *fd, struct xr_error *err)
{
	struct store_auth auth = { 0 };
	struct tcp_target target = { a, list, a->open ? NULL : &auth };
	enum xr_status status = XR_OK;

	if (!a->open)
		status = store_auth_open(&auth, err);
	if (status == XR_OK)
		status = tcp_connect(&target, until, fd, err);
	store_auth_close(&auth);
	return status;
}

/* What another process serves there already is as good. */
static enum xr_status
serve(struct tcp *t, const struct store_address *a, const struct addrinfo *list,
	struct xr_error *err)
{
	enum xr_status status = XR_E_SYS;

	if (a->port == 0)
		return fail(err, XR_E_INVAL,
			"store: rank 0 serves port 0, which nobody would find\tanother port");
	for (const struct addrinfo *at = list; at != NULL && status == XR_E_SYS;
		at = at->ai_next)
		status = host_open(a, at, &t->host, err);
	return status == XR_E_EXISTS ? XR_OK : status;
}

static enum xr_status
look_up(const struct store_address *a, struct addrinfo **list,
	struct xr_error *err)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV,
	};
	char port[8];
	int failed;

	snprintf(port, sizeof(port), "%u", a->port);
	failed = getaddrinfo(a->host, port, &hints, list);
	if (failed == 0)
		return XR_OK;
	return fail(err, XR_E_NOTFOUND, "store: tcp://%s:%u: %s", a->host,
		a->port, gai_strerror(failed));
}

enum xr_status
tcp_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *err)
{
	struct tcp *t = calloc(1, sizeof(*t));
	struct addrinfo *list = NULL;
	enum xr_status status;
	int fd = -1;

	if (t == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	t->driver.ops = &ops;
	status = look_up(address, &list, err);
	if (status == XR_OK && address->serve)
		status = serve(t, address, list, err);
	if (status == XR_OK)
		status = connect_to(address, list, until, &fd, err);
	if (status == XR_OK)
		status = link_open(fd, &speech, &t->link, err);
	if (list != NULL)
		freeaddrinfo(list);
	if (status == XR_OK)
		*driver = &t->driver;
	else
		tcp_free(&t->driver);
	return status;
}
