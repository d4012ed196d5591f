/* SPDX-License-Identifier: Apache-2.0 */
/*
 * there.c - does who gave an address still live there? A greeting that is broken
 * off: who answers says who he is, and is asked for no more.
 */
#include <errno.h>
#include <poll.h>

#include <sys/random.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "worker/net/net.h"
#include "worker/net/proof.h"

#define PATIENCE NS_PER_S

/* It begins no link, so it is nobody of whom there is one. */
#define NOBODY UINT32_MAX

static bool
await(int fd, short events, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = until - clock_now();
		/* Also if this process was late: what has come by then counts. */
		if (left < 0)
			left = 0;
		n = poll(&p, 1, (int)((left + NS_PER_MS - 1) / NS_PER_MS));
	} while (n == -1 && errno == EINTR);
	return n == 1;
}

/* -1, and what that means. */
static int
connect_to(const struct where *where, int64_t until, enum xr_there *means)
{
	int fd = socket(where->at.any.sa_family,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int sys = 0;
	socklen_t len = sizeof(sys);

	*means = XR_THERE_SILENT;
	if (fd == -1)
		return -1;
	if (connect(fd, &where->at.any, where->len) == -1)
		sys = errno;
	if (sys == EINPROGRESS && await(fd, POLLOUT, until))
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &len);
	if (sys == 0)
		return fd;
	if (sys == ECONNREFUSED)
		*means = XR_THERE_NO;
	fd_close(fd);
	return -1;
}

/* Somebody else, or in another life, says so; whoever is no agent is not he. */
static enum xr_there
judge(const struct greet *g, enum greet_event event)
{
	if (event != GREET_ENDED)
		return XR_THERE_YES;
	switch (g->verdict) {
	case GREET_OTHER:
	case GREET_LIFE:
		return XR_THERE_NO;
	case GREET_OK:
		return g->status == XR_E_PROTO || g->status == XR_E_AUTH ?
			XR_THERE_NO :
			XR_THERE_YES;
	default:
		return XR_THERE_YES;
	}
}

/* Where something listens and says nothing, it may be stopped: it is there. */
static enum xr_there
ask(int fd, struct greet *g, int64_t until)
{
	enum greet_event event = GREET_MORE;
	char bytes[GREET_SIZE_MAX];
	ssize_t n;

	if (send(fd, g->out, g->out_len, MSG_NOSIGNAL) != (ssize_t)g->out_len)
		return XR_THERE_NO;
	while (g->step == GREET_AT_ANSWER) {
		if (!await(fd, POLLIN, until))
			return XR_THERE_YES;
		n = recv(fd, bytes, greet_need(g), 0);
		if (n <= 0)
			return XR_THERE_NO;
		event = greet_feed(g, bytes, (size_t)n);
	}
	return judge(g, event);
}

enum xr_there
net_there(void *self, const char *address, uint32_t id, uint64_t incarnation)
{
	struct net_carrier *c = self;
	struct greet_self nobody = { .id = NOBODY, .secret = c->secret };
	int64_t until = clock_now() + PATIENCE;
	enum xr_there there;
	uint8_t challenge[32];
	struct where where;
	struct greet g;
	int fd;

	if (where_parse(address, &where, NULL) != XR_OK || c->secret == NULL)
		return XR_THERE_UNKNOWN;
	nobody.crypto = proof_crypto(NULL);
	if (nobody.crypto == NULL ||
		getrandom(challenge, sizeof(challenge), 0) !=
			(ssize_t)sizeof(challenge))
		return XR_THERE_UNKNOWN;
	fd = connect_to(&where, until, &there);
	if (fd == -1)
		return there;
	greet_dial(&g, &nobody, id, incarnation, 0);
	greet_challenge(&g, challenge);
	there = ask(fd, &g, until);
	fd_close(fd);
	return there;
}
